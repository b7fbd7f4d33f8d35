"""Sums of attribute rows and of token rows against the same sums entry by entry."""

import numpy as np
import pytest

from chain_cases import NO_INTS, NO_REALS
from factorwise.kernels.chains import attribute_layout, attribute_rows
from factorwise.kernels.chains.attribute_rows import AHEAD, Entries, Members, Tokens
from factorwise.kernels.chains.rows import GROUP
from reference import attribute_rows as reference

GROUPS = {np.float64: (0,), np.float32: (0, 0, 0)}
ROWS, WEIGHTS = 7, 9
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])
either_way = pytest.mark.parametrize("valued", [False, True], ids=["ones", "valued"])


def columns(dtype):
    return GROUP * len(GROUPS[dtype])


def close(dtype):
    return {"rtol": 40 * np.finfo(dtype).eps, "atol": 40 * np.finfo(dtype).eps}


def random_entries(rng, tokens, valued, labels):
    """Dense and single entries of each token; some have none of the one, of the other, or of both."""
    label_of = rng.integers(0, labels, WEIGHTS).tolist()

    def value():
        return float(rng.choice([0.5, -1.0, 2.0])) if valued else 1.0

    dense = [
        [(int(r), value()) for r in rng.integers(0, ROWS - 1, size)] for size in rng.integers(0, 4, tokens)
    ]
    single = [
        [(int(w), label_of[w], value()) for w in rng.integers(0, WEIGHTS - 1, size)]
        for size in rng.integers(0, 3, tokens)
    ]
    return dense, single


def flat(rows, kinds):
    """Where each row begins, and the parts of its entries one after the other."""
    entries = [entry for row in rows for entry in row]
    parts = [np.array([entry[place] for entry in entries], dtype=kind) for place, kind in enumerate(kinds)]
    return np.cumsum([0, *map(len, rows)], dtype=np.int64), *parts


def as_entries(dense, single, valued):
    dense_start, column, dense_value = flat(dense, [np.int32, np.float32])
    single_start, weight, label, single_value = flat(single, [np.int32, np.int16, np.float32])
    return Entries(
        dense_start,
        np.append(column, np.zeros(AHEAD, dtype=np.int32)),
        dense_value if valued else NO_REALS,
        single_start,
        weight,
        label,
        single_value if valued else NO_REALS,
    )


def as_members(entries, block_size, edges):
    """The same entries by row and by single weight."""
    dense, single = int(entries.dense_start[-1]), len(entries.single_weight)
    blocks = -(-(len(entries.dense_start) - 1) // block_size)
    pair_start = np.zeros((blocks, len(edges)), dtype=np.int64)
    scratch = np.zeros(ROWS, dtype=np.int64), np.zeros(ROWS, dtype=np.int32)
    source = (entries.dense_start, entries.dense_column[:dense], entries.dense_value, block_size, edges)
    no_ends, no_members = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint16)
    pairs = attribute_layout.block_members(
        *source, *scratch, pair_start, NO_INTS, no_ends, no_members, NO_REALS
    )
    column, end = np.zeros(pairs, dtype=np.int32), np.zeros(pairs, dtype=np.int64)
    member, value = np.zeros(dense, dtype=np.uint16), np.zeros(len(entries.dense_value), dtype=np.float32)
    if pairs:
        attribute_layout.block_members(*source, *scratch, pair_start, column, end, member, value)
    token = np.repeat(np.arange(len(entries.single_start) - 1), np.diff(entries.single_start))
    order = np.argsort(entries.single_weight, kind="stable")
    place, count = np.unique(entries.single_weight, return_counts=True)
    label = {int(w): int(k) for w, k in zip(entries.single_weight, entries.single_label, strict=True)}
    return Members(
        pair_start,
        column,
        end,
        member,
        value,
        np.cumsum([0, *count], dtype=np.int64),
        token[order].astype(np.int32),
        entries.single_value[order] if len(entries.single_value) or not single else NO_REALS,
        place.astype(np.int64),
        np.array([label[w] for w in place.tolist()], dtype=np.int64),
    )


@every_type
def test_weights_are_laid_out_in_rows_and_read_back(dtype):
    start, label = np.array([0, 2, 2, 3, 6]), np.array([0, 4, 1, 7, 2, 3], dtype=np.int32)
    rows, weights = np.array([3, 0, 1], dtype=np.int32), np.arange(1.0, 7.0)
    table = np.full((5, columns(dtype)), 9.0, dtype=dtype)
    attribute_rows.expand(start, label, rows, 0, 2, weights, table)
    attribute_rows.expand(start, label, rows, 2, 3, weights, table)
    wanted = reference.expand(start.tolist(), label.tolist(), rows.tolist(), weights.tolist(), columns(dtype))
    np.testing.assert_array_equal(table[:3], wanted)
    assert (table[3:] == 9.0).all()

    gradient = np.full(6, -5.0)
    attribute_rows.collect(start, label, rows, 0, 1, table, gradient)
    attribute_rows.collect(start, label, rows, 1, 3, table, gradient)
    found = reference.collect(start.tolist(), label.tolist(), rows.tolist(), table.tolist())
    assert gradient.tolist() == [found.get(weight, -5.0) for weight in range(6)]
    assert 2 not in found  # a single weight: it has no row


@every_type
@either_way
def test_a_token_scores_its_rows_and_its_single_weights(dtype, valued, seed):
    rng = np.random.default_rng(seed)
    labels, tokens = columns(dtype) - 2, 12
    dense, single = random_entries(rng, tokens, valued, labels)
    table = np.zeros((ROWS, columns(dtype)), dtype=dtype)
    table[:, :labels] = rng.normal(size=(ROWS, labels))
    weights, base = rng.normal(size=WEIGHTS), rng.normal(size=(1, columns(dtype))).astype(dtype)
    unit = np.eye(labels, columns(dtype), dtype=dtype)
    start = np.array([0, tokens])
    given = Tokens(start, as_entries(dense, single, valued), table, unit, weights, base)
    out = np.full((tokens + 3, columns(dtype)), 9.0, dtype=dtype)
    attribute_rows.sum_rows(GROUPS[dtype], given, 0, 5, 2, out)
    attribute_rows.sum_rows(GROUPS[dtype], given, 5, tokens, 2, out)
    wanted = reference.sum_rows(dense, single, table.tolist(), weights.tolist(), base[0].tolist())
    np.testing.assert_allclose(out[2 : tokens + 2], wanted, **close(dtype))
    assert (out[:2] == 9.0).all()
    assert (out[tokens + 2 :] == 9.0).all()


def test_sums_of_rows_may_be_written_below_them_in_the_same_table():
    """As bundles are: rows of the table that sum others."""
    table = np.vstack([np.arange(1.0, 3.0)[:, None] * np.ones((2, GROUP)), np.zeros((2, GROUP))])
    dense, single = [[(0, 1.0), (1, 1.0)], [(1, 1.0)]], [[], []]
    unit, base = np.eye(2, GROUP), np.zeros((1, GROUP))
    tokens = Tokens(np.array([0, 2]), as_entries(dense, single, False), table, unit, np.zeros(1), base)
    attribute_rows.sum_rows((0,), tokens, 0, 2, 2, table)
    assert table[:, 0].tolist() == [1.0, 2.0, 3.0, 2.0]


@every_type
@either_way
@pytest.mark.parametrize("block_size", [1, 5, 100])
def test_rows_and_single_weights_collect_what_their_tokens_have(dtype, valued, block_size, seed):
    rng = np.random.default_rng(seed)
    labels, tokens, offset = columns(dtype) - 2, 12, 3
    dense, single = random_entries(rng, tokens, valued, labels)
    source = rng.normal(size=(tokens + offset, columns(dtype))).astype(dtype)
    own = source[offset:].astype(np.float64).tolist()
    members = as_members(as_entries(dense, single, valued), block_size, np.array([0, 2, 2, 5, ROWS]))

    out = np.ones((ROWS, columns(dtype)), dtype=dtype)
    attribute_rows.sum_members(GROUPS[dtype], members, source, offset, block_size, 0, 3, out)
    attribute_rows.sum_members(GROUPS[dtype], members, source, offset, block_size, 3, 4, out)
    wanted = np.array(reference.sum_members(dense, own, ROWS, columns(dtype)))
    np.testing.assert_allclose(out, 1.0 + wanted, **close(dtype))

    gradient = np.full(WEIGHTS, 2.0)
    attribute_rows.sum_single_members(members, source, offset, 0, 2, gradient)
    attribute_rows.sum_single_members(members, source, offset, 2, len(members.single_place), gradient)
    found = reference.sum_single_members(single, own)
    np.testing.assert_allclose(gradient, [2.0 + found.get(w, 0.0) for w in range(WEIGHTS)], **close(dtype))


def test_tokens_without_entries_add_up_to_nothing():
    entries = as_entries([[], []], [[], []], False)
    table, unit, base = np.zeros((0, GROUP)), np.eye(3, GROUP), np.full((1, GROUP), 4.0)
    tokens = Tokens(np.array([0, 2]), entries, table, unit, np.zeros(0), base)
    out = np.zeros((2, GROUP))
    attribute_rows.sum_rows((0,), tokens, 0, 2, 0, out)
    assert (out == 4.0).all()
    members = as_members(entries, 4, np.array([0, ROWS]))
    attribute_rows.sum_members((0,), members, out, 0, 4, 0, 1, table)
    gradient = np.full(2, 7.0)
    attribute_rows.sum_single_members(members, out, 0, 0, 0, gradient)
    assert gradient.tolist() == [7.0, 7.0]
