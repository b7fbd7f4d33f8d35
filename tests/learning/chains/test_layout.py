"""Where weights and entries lie: layouts must hold the matrix they were made of, however it is regrouped."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_cases import any_rows, sparse, templates
from factorwise.learning.chains import layout as chain_layout
from factorwise.learning.chains.layout import SEGMENTS, Bundles, StateFeatures, WeightLayout
from factorwise.variables.sparse_rows import SparseRows
from reference import attribute_layout as reference

EMPTY = SparseRows(np.zeros(1, np.int64), np.zeros(0, np.int32), None, 4)


def listed(rows):
    """The matrix as lists of (column, value)."""
    entries = list(zip(rows.indices.tolist(), rows.value_of_each().tolist(), strict=True))
    return [entries[a:b] for a, b in pairwise(rows.indptr.tolist())]


# features


@pytest.mark.parametrize("lowest", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("valued", [False, True])
def test_observed_features_are_the_pairs_that_occur(valued, lowest, seed):
    rng = np.random.default_rng(seed)
    rows, truth = any_rows(rng, 20, valued), rng.integers(-1, 4, 20).astype(np.int32)
    features = StateFeatures.observed(rows, truth, 4, lowest)
    wanted = reference.observed(listed(rows), truth.tolist(), rows.width, 4, lowest)
    assert [features.label[a:b].tolist() for a, b in pairwise(features.start)] == wanted
    assert len(features) == sum(map(len, wanted))
    assert features.per_attribute.tolist() == [len(labels) for labels in wanted]


def test_without_tokens_or_known_labels_nothing_is_observed():
    assert len(StateFeatures.observed(EMPTY, np.zeros(0, np.int32), 3)) == 0
    unknown = StateFeatures.observed(sparse([[(0, 1.0)]], 2), np.array([-1], np.int32), 3)
    assert unknown.start.tolist() == [0, 0, 0]


def test_all_pairs_give_every_attribute_every_label():
    features = StateFeatures.all_pairs(3, 2)
    assert features.start.tolist() == [0, 2, 4, 6]
    assert features.label.tolist() == [0, 1, 0, 1, 0, 1]
    assert len(StateFeatures.all_pairs(0, 5)) == 0


# bundles


def unbundled(bundles, width):
    """The tokens with each bundle replaced by what it consists of."""
    tokens = bundles.tokens.to_dense()
    return tokens[:, :width] + tokens[:, width:] @ bundles.contents.to_dense()


def test_bundles_of_templates_stand_for_the_same_attributes(seed):
    rng = np.random.default_rng(seed)
    rows, slot = templates(rng, 60)
    bundles = Bundles.find(rows, slot)
    np.testing.assert_array_equal(unbundled(bundles, rows.width), rows.to_dense())
    assert bundles.tokens.values is None
    assert len(bundles.contents) == 3  # one for each word: the word, and what is a function of it
    assert sorted(map(len, listed(bundles.contents))) == [2, 3, 3]
    assert (np.diff(bundles.tokens.indptr) <= 3).all()
    assert bundles.tokens.n_entries + bundles.contents.n_entries < rows.n_entries


@st.composite
def slotted(draw):
    """Tokens with slots: functions of a word, of another slot, with gaps, crowded, or of their own."""
    tokens, words = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = draw(st.lists(st.sampled_from(["word", "of word", "gaps", "own", "crowded", "rare"]), max_size=6))
    word = rng.integers(0, words, tokens)
    rows, width, slot = [[] for _ in range(tokens)], 0, []
    for number, kind in enumerate(kinds):
        code = {
            "word": word,
            "of word": rng.integers(0, 3, words)[word],
            "gaps": rng.integers(-1, 2, words)[word],
            "own": rng.integers(0, 3, tokens),
            "crowded": rng.integers(0, 3, tokens),
            "rare": np.where(word == 0, 0, -1),
        }[kind]
        for token in range(tokens):
            if code[token] >= 0:
                rows[token].append((width + int(code[token]), 1.0))
            if kind == "crowded" and rng.random() < 0.5:
                rows[token].append((width + int(rng.integers(0, 3)), 1.0))
        own = max(3, words)
        slot += [number] * own
        width += own
    for row in rows:
        rng.shuffle(row)
    return sparse(rows, width, valued=False), np.array(slot, dtype=np.int32)


@settings(max_examples=200)
@given(slotted())
def test_bundles_of_any_slots_stand_for_the_same_attributes(case):
    rows, slot = case
    bundles = Bundles.find(rows, slot)
    np.testing.assert_array_equal(unbundled(bundles, rows.width), rows.to_dense())
    assert bundles.tokens.n_entries <= rows.n_entries


def test_slots_that_most_tokens_lack_are_bundled_where_they_occur():
    """Tokens without any of the slots get no bundle, or there would be more entries than before."""
    rows = sparse([[(0, 1.0), (1, 1.0)] if token % 10 == 0 else [] for token in range(100)], 2, valued=False)
    bundles = Bundles.find(rows, np.array([0, 1], dtype=np.int32))
    assert bundles.tokens.n_entries == 10
    np.testing.assert_array_equal(unbundled(bundles, 2), rows.to_dense())


def test_what_depends_on_the_lack_of_a_key_is_bundled_too():
    rows = [[(0, 1.0), (1, 1.0)] if token % 2 else [(2, 1.0)] for token in range(12)]
    rows = sparse(rows, 3, valued=False)
    bundles = Bundles.find(rows, np.array([0, 1, 1], dtype=np.int32))
    np.testing.assert_array_equal(unbundled(bundles, 3), rows.to_dense())


@pytest.mark.parametrize(
    ("rows", "slot"),
    [
        (sparse([[(0, 1.0), (1, 1.0)]] * 20, 2, valued=False), None),
        (sparse([[(0, 0.5), (1, 2.0)]] * 20, 2), np.array([0, 1], np.int32)),
        (sparse([[(0, 1.0)]] + [[]] * 200, 2, valued=False), np.array([0, 1], np.int32)),
        (sparse([[]] * 5, 2, valued=False), np.array([0, 1], np.int32)),
        (
            sparse([[(0, 1.0), (1, 1.0)], [(2, 1.0), (1, 1.0)]], 3, valued=False),
            np.array([0, 1, 0], np.int32),
        ),
        (EMPTY, np.zeros(4, np.int32)),
    ],
    ids=["no slots", "values", "mostly empty", "all empty", "too few tokens", "no tokens"],
)
def test_nothing_is_bundled_where_it_may_not_or_would_not_help(rows, slot):
    bundles = Bundles.find(rows, slot)
    assert bundles.tokens is rows
    assert len(bundles.contents) == 0
    assert bundles.contents.width == rows.width


# layout


def rebuilt(layout, entries, tokens, columns):
    """Tokens by (attribute or bundle) again, from the parted entries; and the labels of single weights."""
    owner = np.repeat(np.arange(len(layout.features.per_attribute)), layout.features.per_attribute)
    dense = np.zeros((tokens, columns))
    for token in range(tokens):
        for entry in range(entries.dense_start[token], entries.dense_start[token + 1]):
            row = entries.dense_column[entry]
            column = (
                layout.rows[row] if row < len(layout.rows) else len(layout.place) + row - len(layout.rows)
            )
            dense[token, column] += entries.dense_value[entry] if len(entries.dense_value) else 1.0
        for entry in range(entries.single_start[token], entries.single_start[token + 1]):
            weight = entries.single_weight[entry]
            assert layout.features.label[weight] == entries.single_label[entry]
            dense[token, owner[weight]] += entries.single_value[entry] if len(entries.single_value) else 1.0
    return dense


@pytest.mark.parametrize("valued", [False, True])
def test_entries_are_the_tokens_without_the_attributes_that_have_no_weight(valued, seed):
    rng = np.random.default_rng(seed)
    rows, truth = any_rows(rng, 30, valued), rng.integers(0, 3, 30).astype(np.int32)
    features = StateFeatures.observed(rows, truth, 3, 1.5)
    layout = WeightLayout.of(features)
    weights = features.per_attribute
    assert {0, 1} < set(weights.tolist())
    assert layout.rows.tolist() == np.flatnonzero(weights > 1).tolist()
    found = rebuilt(layout, layout.entries(rows), 30, rows.width)
    np.testing.assert_array_equal(found, np.where(weights > 0, rows.to_dense(), 0.0))


def test_entries_name_bundles_after_the_rows(seed):
    rng = np.random.default_rng(seed)
    rows, slot = templates(rng, 40)
    layout = WeightLayout.of(StateFeatures.observed(rows, rng.integers(0, 3, 40).astype(np.int32), 3))
    bundles = Bundles.find(rows, slot)
    count = len(bundles.contents)
    assert count > 0
    entries = layout.entries(bundles.tokens, count)
    found = rebuilt(layout, entries, 40, rows.width + count)
    np.testing.assert_array_equal(found, bundles.tokens.to_dense())


@pytest.mark.parametrize("block", [4, 7, 4096])
@pytest.mark.parametrize("valued", [False, True])
def test_members_are_the_entries_by_attribute(valued, block, seed, monkeypatch):
    monkeypatch.setattr(chain_layout, "BLOCK", block)
    rng = np.random.default_rng(seed)
    rows, truth = any_rows(rng, 30, valued), rng.integers(0, 3, 30).astype(np.int32)
    layout = WeightLayout.of(StateFeatures.observed(rows, truth, 3))
    entries = layout.entries(rows)
    members = layout.members(entries, len(layout.rows) + 2)  # two bundles that no token has
    assert members.pair_start.shape == (-(-30 // block), SEGMENTS + 1)
    assert members.pair_start[-1, -1] == len(members.pair_column)

    found = np.zeros((30, rows.width))
    begin = 0
    for pair, end in enumerate(members.pair_end.tolist()):
        at = int(np.searchsorted(members.pair_start[:, -1], pair, side="right"))
        for entry in range(begin, end):
            amount = members.value[entry] if len(members.value) else 1.0
            found[at * block + members.member[entry], layout.rows[members.pair_column[pair]]] += amount
        begin = end
    owner = np.repeat(np.arange(rows.width), layout.features.per_attribute)
    for single, (first, last) in enumerate(pairwise(members.single_start)):
        weight = members.single_place[single]
        assert members.single_label[single] == layout.features.label[weight]
        for entry in range(first, last):
            amount = members.single_value[entry] if len(members.single_value) else 1.0
            found[members.single_token[entry], owner[weight]] += amount
    np.testing.assert_array_equal(found, rows.to_dense())


def test_segments_of_the_members_part_the_columns(seed):
    rng = np.random.default_rng(seed)
    rows = any_rows(rng, 30)
    layout = WeightLayout.of(StateFeatures.all_pairs(rows.width, 3))
    members = layout.members(layout.entries(rows), len(layout.rows))
    of_segment = [
        set(members.pair_column[a:b].tolist()) for start in members.pair_start for a, b in pairwise(start)
    ]
    assert sum(map(len, of_segment)) == len(set().union(*of_segment)) == len(set(rows.indices.tolist()))


def test_a_layout_of_no_tokens_and_one_of_no_attributes_are_empty():
    layout = WeightLayout.of(StateFeatures.all_pairs(4, 2))
    members = layout.members(layout.entries(EMPTY), 4)
    assert members.pair_start.shape == (0, SEGMENTS + 1)
    bare = WeightLayout.of(StateFeatures.all_pairs(0, 2))
    entries = bare.entries(sparse([[], []], 0, valued=False))
    assert entries.dense_start.tolist() == entries.single_start.tolist() == [0, 0, 0]
    assert len(bare.members(entries, 0).pair_column) == 0
