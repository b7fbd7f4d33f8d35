"""What sets share, against Python's sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.text.set_overlaps import set_overlaps, set_overlaps_by_two
from reference import set_overlaps as reference

ROWS = st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=8)


@given(ROWS, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=12), st.integers(0, 99))
def test_shared_weights_are_those_of_the_intersection(rows, pairs, seed):
    codes = np.array([code for row in rows for code in sorted(row)], np.int32)
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    weight = np.random.default_rng(seed).random(13).astype(np.float32)
    first, second = np.array(pairs, np.int32).reshape(-1, 2).T.copy() % np.int32(len(rows))
    found, expected = np.full((2, len(pairs)), -1.0, np.float32)
    marked = np.zeros((13, 2), np.float32)
    set_overlaps(offsets, codes, weight, first, second, marked[:, 0].copy(), found)
    reference.set_overlaps(offsets, codes, weight, first, second, expected)
    assert found.tolist() == expected.tolist()
    other = np.random.default_rng(seed + 1).random(13).astype(np.float32)
    both, expected_both = np.full((2, 2, len(pairs)), -1.0, np.float32)
    set_overlaps_by_two(offsets, codes, np.stack([weight, other], axis=1), first, second, marked, *both)
    reference.set_overlaps_by_two(offsets, codes, weight, other, first, second, *expected_both)
    assert both.tolist() == expected_both.tolist()
    assert not marked.any()


def test_a_set_shares_all_it_has_with_itself_and_nothing_with_an_empty_one():
    offsets, codes = np.array([0, 3, 3], np.int64), np.array([0, 2, 3], np.int32)
    weight = np.array([1.0, 8.0, 2.0, 4.0], np.float32)
    shared = np.full(3, -1.0, np.float32)
    first, second = np.array([[0, 0, 1], [0, 1, 1]], np.int32)
    marked = np.zeros(4, np.float32)
    set_overlaps(offsets, codes, weight, first, second, marked, shared)
    assert shared.tolist() == [7.0, 0.0, 0.0]
    assert not marked.any()
