"""Keys of rules, against what records share by definition."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.resolution.blocking.tables import lists, numbers, strings, table
from factorwise.apps.resolution.blocking import Part, Rule
from factorwise.apps.resolution.blocking.blocks import blocks_of
from factorwise.apps.resolution.blocking.keys import KeyMaker, band_hashes
from factorwise.errors import InvalidArgumentError

NAMES = ["smith", "smithe", "jones", None, "smith", "schmidt"]
YEARS = [1990, 1991, None, 1990, 1990.0, -0.0]
WORDS = [["a", "b", "c"], ["b", "c"], [], ["c", "d"], ["a", "d"], ["e"]]
TABLE = table(
    6,
    name=("name", {"last": strings(NAMES)}),
    year=("number", {"number": numbers(YEARS)}),
    words=("text", {"tokens": lists(WORDS)}),
)


def pairs_of(rule, normal=TABLE, rows=None):
    """Pairs of rows that share a key."""
    blocks = blocks_of(KeyMaker(normal, rows).keys(rule), normal.n_rows)
    members = np.split(blocks.item, np.cumsum(blocks.size)[:-1]) if len(blocks.size) else []
    return {pair for block in members for pair in combinations(block.tolist(), 2)}


LAST = Part("name", "last")
YEAR = Part("year", "number")
WORD = Part("words", "tokens", "items")


@pytest.mark.parametrize(
    ("parts", "pairs"),
    [
        ((LAST,), {(0, 4)}),
        ((Part("name", "last", "prefix", 2),), {(0, 1), (0, 4), (1, 4)}),
        ((Part("name", "last", "prefix", 1),), {(0, 1), (0, 4), (0, 5), (1, 4), (1, 5), (4, 5)}),
        ((Part("name", "last", "sound"),), {(0, 1), (0, 4), (1, 4)}),
        ((YEAR,), {(0, 3), (0, 4), (3, 4)}),
        ((LAST, YEAR), {(0, 4)}),
        ((Part("year", "number", "rounded", 2),), {(0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4)}),
        ((WORD,), {(0, 1), (0, 3), (1, 3), (0, 4), (3, 4)}),
        ((Part("words", "tokens", "items", most=2),), {(0, 1), (0, 4), (3, 4)}),
        ((WORD, WORD), {(0, 1)}),
        ((WORD, YEAR), {(0, 3), (0, 4), (3, 4)}),
        ((LAST, WORD), {(0, 4)}),
        ((LAST, WORD, WORD), set()),
    ],
    ids=str,
)
def test_records_that_agree_in_every_part_share_a_key_and_no_others_do(parts, pairs):
    assert pairs_of(Rule(parts)) == pairs


def test_of_a_list_only_the_rarest_items_that_are_shared_count():
    normal = table(5, words=("text", {"tokens": lists([["x", "y", "z"], ["x", "y"], ["x"], ["y"], ["x"]])}))
    assert pairs_of(Rule((Part("words", "tokens", "items", 1),)), normal) == {
        *combinations((0, 1, 3), 2),  # y, the rarer of x and y
        (2, 4),
    }


def test_keys_of_some_rows_count_rarity_in_all_rows():
    rule = Rule((Part("words", "tokens", "items", most=2),))
    assert pairs_of(rule, rows=np.array([3, 1])) == set()  # both have c, but so has a third
    assert pairs_of(rule, rows=np.array([4, 0])) == {(0, 1)}


def test_an_item_without_a_part_has_no_key():
    rows = KeyMaker(TABLE).keys(Rule((LAST, YEAR)))
    assert rows.item.tolist() == [0, 1, 4, 5]


def test_negative_zero_is_zero():
    normal = table(2, year=("number", {"number": numbers([0.0, -0.0])}))
    assert pairs_of(Rule((YEAR,)), normal) == {(0, 1)}


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2))
def test_numbers_closer_than_half_a_unit_always_share_a_key(values):
    normal = table(2, x=("number", {"number": numbers(values)}))
    found = pairs_of(Rule((Part("x", "number", "rounded", 10),)), normal)
    if abs(values[0] - values[1]) < 4.999:
        assert found == {(0, 1)}
    if abs(values[0] - values[1]) > 10.001:
        assert found == set()


def jaccard(one, other, size):
    first, second = ({text[k : k + size] for k in range(len(text) - size + 1)} for text in (one, other))
    return len(first & second) / len(first | second)


@pytest.mark.statistical
def test_texts_share_a_band_as_often_as_their_shingles_overlap():
    one, other = "the quick brown fox jumps over the dog", "the quick brown cat jumps over the log"
    bands = 20_000
    hashes = band_hashes(pa.array([one, other]), 3, bands, 1)
    share = float((hashes[0] == hashes[1]).mean())
    chance = jaccard(one, other, 3)
    # 5 standard deviations: a false alarm in less than one of a million
    assert abs(share - chance) < 5 * (chance * (1 - chance) / bands) ** 0.5 + 0.002


def test_bands_depend_on_the_text_alone_and_take_short_and_long_ones():
    texts = ["", "ab", "abc", "abcd", "x" * 100_000, "ab", "äöü"]
    whole = band_hashes(pa.array(texts), 3, 4, 2)
    assert whole.shape == (7, 4)
    assert (whole[1] == whole[5]).all()
    assert len({tuple(row) for row in whole[[0, 1, 2, 3, 4, 6]].tolist()}) == 6
    for k, text in enumerate(texts):
        assert (band_hashes(pa.array([text]), 3, 4, 2)[0] == whole[k]).all()
    assert (band_hashes(pa.array(["", *texts]).slice(1), 3, 4, 2) == whole).all()


def test_a_cut_that_does_not_fit_the_form_is_refused_with_both():
    with pytest.raises(
        InvalidArgumentError, match=r"cuts form 'number' of field 'year' by 'prefix'.*Numbers"
    ):
        KeyMaker(TABLE).keys(Rule((Part("year", "number", "prefix", 2),)))
