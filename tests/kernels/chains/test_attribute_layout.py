"""Sorting of sparse rows against the same regrouping of lists."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_cases import NO_INTS, NO_REALS, sparse
from factorwise.kernels.chains import attribute_layout
from factorwise.kernels.chains.attribute_layout import UNSEEN
from reference import attribute_layout as reference

COLUMNS, LABELS, SLOTS = 6, 3, 3
VALUES = st.sampled_from([1.0, 2.0, 0.5, -1.0, -0.25])
AWKWARD = {
    "no rows": [],
    "one empty row": [[]],
    "one entry": [[(5, 1.0)]],
    "empty rows around": [[], [(0, 1.0), (5, 2.0)], []],
    "only the last column": [[(5, 1.0)], [(5, -1.0)], [(5, 0.5)]],
    "the same column again and again": [[(2, 1.0), (2, 1.0), (2, -2.0)], [(2, 0.5)]],
    "columns from high to low": [[(5, 1.0), (3, 2.0), (0, 0.5)], [(4, 1.0), (1, 2.0)]],
}
every_matrix = pytest.mark.parametrize("rows", AWKWARD.values(), ids=AWKWARD.keys())


def matrices(columns=COLUMNS, values=VALUES):
    """Up to nine rows, some empty, with columns in any order and more than once."""
    entry = st.tuples(st.integers(0, columns - 1), values)
    return st.lists(st.lists(entry, max_size=5), max_size=9)


def with_labels(rows):
    """The rows with a label each, some of them not known."""
    labels = st.lists(st.integers(-1, LABELS - 1), min_size=len(rows), max_size=len(rows))
    return st.tuples(st.just(rows), labels)


def pieces(start, *columns):
    """The flat arrays cut where the rows begin, as lists of tuples."""
    entries = list(zip(*(column.tolist() for column in columns), strict=True))
    return [entries[a:b] for a, b in pairwise(start)]


def column_starts(matrix):
    sizes = np.bincount(matrix.indices, minlength=matrix.width)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def check_transpose(rows):
    matrix = sparse(rows, COLUMNS)
    start = column_starts(matrix)
    row, entry = np.full((2, matrix.n_entries), -9, dtype=np.int32)
    attribute_layout.transpose(matrix.indptr, matrix.indices, start, row, entry)
    np.testing.assert_array_equal(start, column_starts(matrix))
    assert pieces(start, row, entry) == reference.transpose(rows, COLUMNS)
    only_rows = np.full(matrix.n_entries, -9, dtype=np.int32)
    attribute_layout.transpose(matrix.indptr, matrix.indices, start, only_rows, NO_INTS)
    np.testing.assert_array_equal(only_rows, row)


@every_matrix
def test_transpose_lists_the_rows_of_each_column(rows):
    check_transpose(rows)


@settings(max_examples=50)
@given(matrices())
def test_transpose_lists_the_rows_of_each_column_of_any_matrix(rows):
    check_transpose(rows)


def found_features(rows, truth, lowest, valued):
    """Count first, then write, as callers do; the scratch must come back clean."""
    matrix = sparse(rows, COLUMNS)
    start = column_starts(matrix)
    row, entry = np.zeros((2, matrix.n_entries), dtype=np.int32)
    attribute_layout.transpose(matrix.indptr, matrix.indices, start, row, entry)
    value = matrix.values[entry] if valued else NO_REALS
    times, amount = np.zeros(LABELS, dtype=np.int64), np.zeros(LABELS)
    feature_start = np.zeros(COLUMNS + 1, dtype=np.int64)
    arguments = (start, row, value, np.array(truth, np.int32), lowest, times, amount, feature_start)
    count = attribute_layout.observed(*arguments, NO_INTS)
    label = np.full(count, -9, dtype=np.int32)
    assert attribute_layout.observed(*arguments, label) == count == feature_start[-1]
    assert not times.any()
    assert not amount.any()
    return [label[a:b].tolist() for a, b in pairwise(feature_start)]


@settings(max_examples=100)
@given(matrices().flatmap(with_labels), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 4.0]), st.booleans())
def test_observed_finds_the_labels_each_column_is_seen_with(case, lowest, valued):
    rows, truth = case
    counted = rows if valued else [[(column, 1.0) for column, _ in row] for row in rows]
    wanted = reference.observed(counted, truth, COLUMNS, LABELS, lowest)
    assert found_features(rows, truth, lowest, valued) == wanted


def test_a_pair_whose_values_cancel_out_is_seen_but_not_often():
    rows, truth = [[(0, 2.0)], [(0, -2.0)], [(1, -3.0)]], [1, 1, 2]
    assert found_features(rows, truth, 0.0, True) == [[1], [2], [], [], [], []]
    assert found_features(rows, truth, 0.5, True) == [[]] * COLUMNS


@every_matrix
def test_awkward_matrices_have_the_features_that_occur(rows):
    truth = [row % LABELS for row in range(len(rows))]
    assert found_features(rows, truth, 0.0, True) == reference.observed(rows, truth, COLUMNS, LABELS, 0.0)


@settings(max_examples=50)
@given(matrices(), st.lists(st.integers(0, SLOTS - 1), min_size=COLUMNS, max_size=COLUMNS))
def test_codes_by_slot_names_one_column_of_each_slot_and_marks_slots_with_more(rows, slot):
    matrix = sparse(rows, COLUMNS)
    code = np.full((SLOTS, len(rows)), -1, dtype=np.int32)
    crowded = np.zeros(SLOTS, dtype=bool)
    attribute_layout.codes_by_slot(matrix.indptr, matrix.indices, np.array(slot, np.int32), code, crowded)
    assert (code.tolist(), crowded.tolist()) == reference.codes_by_slot(rows, slot, SLOTS)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 1)), max_size=5))
def test_a_key_determines_what_is_the_same_wherever_the_key_is(pairs):
    key, other = (np.array([pair[side] for pair in pairs], dtype=np.int32) for side in (0, 1))
    image = np.full(4, UNSEEN, dtype=np.int32)
    found = attribute_layout.determines(key, other, image)
    assert found == reference.determines(key.tolist(), other.tolist())
    if found:
        assert {code: image[code + 1] for code, _ in pairs} == dict(pairs)


@settings(max_examples=50)
@given(
    matrices(),
    st.lists(st.integers(0, SLOTS - 1), min_size=COLUMNS, max_size=COLUMNS),
    st.lists(st.booleans(), min_size=SLOTS, max_size=SLOTS),
    st.integers(0, 2),
)
def test_replaced_slots_leave_the_other_columns_and_the_bundles(rows, slot, covered, groups):
    matrix = sparse(rows, COLUMNS)
    rng = np.random.default_rng(len(rows))
    bundle = rng.integers(COLUMNS, COLUMNS + 3, size=(groups, len(rows)), dtype=np.int32)
    bundle[rng.random(bundle.shape) < 0.3] = -1
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    column = np.full(matrix.n_entries + bundle.size, -9, dtype=np.int32)
    attribute_layout.replace_slots(
        matrix.indptr, matrix.indices, np.array(slot, np.int32), np.array(covered), bundle, start, column
    )
    found = [column[a:b].tolist() for a, b in pairwise(start)]
    assert found == reference.replace_slots(rows, slot, covered, bundle.tolist())
    assert (column[start[-1] :] == -9).all()


def split_up(rows, place, label_of, valued):
    """Count first, then write, as callers do."""
    matrix = sparse(rows, COLUMNS)
    value = matrix.values if valued else NO_REALS
    source = (matrix.indptr, matrix.indices, value, place, label_of)
    dense_start, single_start = np.zeros((2, len(rows) + 1), dtype=np.int64)
    no_labels = np.zeros(0, dtype=np.int16)
    attribute_layout.split(
        *source, dense_start, NO_INTS, NO_REALS, single_start, NO_INTS, no_labels, NO_REALS
    )
    dense, single = int(dense_start[-1]), int(single_start[-1])
    column, weight = np.zeros(dense, np.int32), np.zeros(single, np.int32)
    label = np.zeros(single, np.int16)
    dense_value = np.zeros(dense if valued else 0, np.float32)
    single_value = np.zeros(single if valued else 0, np.float32)
    attribute_layout.split(
        *source, dense_start, column, dense_value, single_start, weight, label, single_value
    )
    if not valued:
        dense_value, single_value = np.ones(dense), np.ones(single)
    return pieces(dense_start, column, dense_value), pieces(single_start, weight, label, single_value)


@settings(max_examples=50)
@given(
    matrices(),
    st.lists(st.integers(-5, 3), min_size=COLUMNS, max_size=COLUMNS),
    st.lists(st.integers(0, LABELS - 1), min_size=4, max_size=4),
    st.booleans(),
)
def test_split_parts_the_entries_by_where_their_weights_lie(rows, place, label_of, valued):
    found = split_up(rows, np.array(place, np.int32), np.array(label_of, np.int32), valued)
    counted = rows if valued else [[(column, 1.0) for column, _ in row] for row in rows]
    assert found == reference.split(counted, place, label_of)


def members(rows, block_size, edges, valued):
    """Count first, then write, as callers do; return the blocks' columns, and the segments' pairs."""
    matrix = sparse(rows, COLUMNS)
    value = matrix.values if valued else NO_REALS
    count, touched = np.zeros(COLUMNS, dtype=np.int64), np.zeros(COLUMNS, dtype=np.int32)
    blocks = -(-len(rows) // block_size)
    pair_start = np.full((blocks, len(edges)), -9, dtype=np.int64)
    source = (matrix.indptr, matrix.indices, value, block_size, edges, count, touched, pair_start)
    no_ends, no_members = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint16)
    pairs = attribute_layout.block_members(*source, NO_INTS, no_ends, no_members, NO_REALS)
    assert not count.any()
    column, end = np.full(pairs, -9, dtype=np.int32), np.full(pairs, -9, dtype=np.int64)
    member = np.zeros(matrix.n_entries, dtype=np.uint16)
    member_value = np.zeros(matrix.n_entries if valued else 0, dtype=np.float32)
    if pairs:
        assert attribute_layout.block_members(*source, column, end, member, member_value) == pairs
    assert not count.any()
    of_pair = pieces([0, *end], member, member_value if valued else np.ones(len(member)))
    return pair_start, column, of_pair


def check_members(rows, block_size, edges, valued):
    counted = rows if valued else [[(column, 1.0) for column, _ in row] for row in rows]
    pair_start, column, of_pair = members(rows, block_size, np.array(edges, np.int64), valued)
    if len(column) == 0:
        assert not any(rows)
        return
    for block, wanted in enumerate(reference.block_members(counted, block_size)):
        begin, end = pair_start[block, 0], pair_start[block, -1]
        assert dict(zip(column[begin:end].tolist(), of_pair[begin:end], strict=True)) == wanted
        assert column[begin:end].tolist() == list(wanted)
        for segment in range(len(edges) - 1):
            inside = column[pair_start[block, segment] : pair_start[block, segment + 1]].tolist()
            assert inside == [c for c in wanted if edges[segment] <= c < edges[segment + 1]]
    assert pair_start[0, 0] == 0
    assert pair_start[-1, -1] == len(column)
    np.testing.assert_array_equal(pair_start[1:, 0], pair_start[:-1, -1])


@settings(max_examples=100)
@given(
    matrices(),
    st.sampled_from([1, 2, 4, 100]),
    st.lists(st.integers(0, COLUMNS), max_size=4).map(sorted),
    st.booleans(),
)
def test_members_of_the_columns_follow_one_another_in_each_block(rows, block_size, inner, valued):
    check_members(rows, block_size, [0, *inner, COLUMNS], valued)


@pytest.mark.parametrize("block_size", [1, 2, 4096])
@every_matrix
def test_awkward_matrices_have_their_members(rows, block_size):
    check_members(rows, block_size, [0, 3, COLUMNS], True)
