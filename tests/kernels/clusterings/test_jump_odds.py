"""Sums of odds that stay exact while entries over hundreds of orders of magnitude come and go."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.clusterings.jump_odds import (
    LARGEST_LOG_ODDS,
    JumpArrays,
    add_exactly,
    as_odds,
    choose_by,
    rest_of_row,
    set_odds,
)
from factorwise.kernels.compile.compiler import exposed
from factorwise.world.partition import Partition

ITEMS = 7


@pytest.fixture(scope="module")
def kernels():
    return {part.__name__: exposed(part) for part in (add_exactly, as_odds, choose_by, rest_of_row, set_odds)}


def arrays_for(n):
    """Odds of n clusters, all zero, with no features."""
    nothing, square = np.zeros(0), np.zeros((n, n))
    return JumpArrays(
        settings=np.zeros(6),
        columns=np.zeros(0, np.int64),
        split_weights=nothing,
        merge_weights=nothing,
        contents=np.zeros((n, 0)),
        split_odds=np.zeros(n),
        merge_odds=square,
        between=square.copy(),
        sums=np.zeros((n, 3)),
        gradient=nothing,
        other=nothing,
        items=np.zeros(n, np.int32),
        drawn=np.zeros(4, np.int64),
        part_odds=np.zeros(n),
        sides=np.zeros((2, n), np.int32),
        side_sizes=np.zeros(2, np.int64),
        jump=np.zeros(3, np.int64),
        logs=np.zeros(2),
        tally=np.zeros(1, np.int64),
    )


log_odds = st.floats(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, allow_nan=False)
changes = st.lists(st.tuples(st.integers(1, ITEMS - 1), st.none() | log_odds), max_size=40)


@given(terms=st.lists(st.tuples(st.booleans(), log_odds), max_size=30))
def test_a_sum_in_two_parts_has_the_error_of_twice_the_digits(kernels, terms):
    sums, exact, size = np.zeros((1, 3)), Fraction(0), Fraction(0)
    for negative, log_term in terms:
        term = -math.exp(log_term) if negative else math.exp(log_term)
        kernels["add_exactly"](sums, 0, term)
        exact += Fraction(term)
        size += abs(Fraction(term))
    assert abs(Fraction(sums[0, 0]) + Fraction(sums[0, 1]) - exact) <= size * len(terms) / 2**102


@given(changes=changes)
def test_the_sum_of_a_row_and_what_one_entry_leaves_of_it_are_exact_after_any_changes(kernels, changes):
    jumps, p = arrays_for(ITEMS), Partition.singletons(ITEMS).arrays
    for column, log_value in changes:
        kernels["set_odds"](jumps, p, 0, column, 0.0 if log_value is None else math.exp(log_value))
        row = jumps.merge_odds[0]
        assert jumps.sums[0, 0] + jumps.sums[0, 1] == pytest.approx(math.fsum(row), rel=1e-13)
        for left_out in range(1, ITEMS):
            rest = math.fsum(np.delete(row, left_out))
            assert kernels["rest_of_row"](jumps, p, 0, left_out) == pytest.approx(rest, rel=1e-12)


def test_what_one_entry_leaves_cannot_be_had_from_the_sum_alone(kernels):
    """Two large entries have come and one has gone: the small one is lost in the second part of the sum."""
    jumps, p = arrays_for(ITEMS), Partition.singletons(ITEMS).arrays
    for column, value in ((1, math.exp(100.3)), (2, math.exp(100.7)), (3, 1.0), (2, 0.0)):
        kernels["set_odds"](jumps, p, 0, column, value)
    naive = jumps.sums[0, 0] - jumps.merge_odds[0, 1] + jumps.sums[0, 1]
    assert naive != pytest.approx(1.0, rel=0.5)
    assert kernels["rest_of_row"](jumps, p, 0, 1) == 1.0


def test_a_choice_falls_on_the_first_sum_above_the_threshold_and_never_on_odds_of_zero(kernels):
    odds, p = np.array([0.0, 2.0, 0.0, 3.0, 1.0, 0.0]), Partition.singletons(6).arrays
    thresholds = [0.0, 1.9, 2.0, 4.9, 5.0, 5.9, 6.0, 7.0]
    chosen = [kernels["choose_by"](odds, p, threshold) for threshold in thresholds]
    assert chosen == [1, 1, 3, 3, 4, 4, 4, 4]


def test_odds_are_neither_zero_nor_infinite(kernels):
    found = [kernels["as_odds"](value) for value in (-math.inf, -1e6, 0.0, 1.0, 1e6, math.inf)]
    edge = math.exp(LARGEST_LOG_ODDS)
    assert found == pytest.approx([1 / edge, 1 / edge, 1.0, math.e, edge, edge])
