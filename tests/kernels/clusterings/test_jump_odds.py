"""Sums of odds that stay exact while entries over hundreds of orders of magnitude come and go."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.clusterings.adaptive.jump_odds import (
    LARGEST_LOG_ODDS,
    add_exactly,
    as_odds,
    choose_by,
    set_odds,
)
from factorwise.world.partition import Partition

ITEMS = 7


def odds_for(n):
    """Odds of n clusters, all zero."""
    p = Partition.singletons(n).arrays
    ids = len(p.size)
    return SimpleNamespace(
        merge_odds=np.zeros((ids, ids)), sums=np.zeros((ids, 3)), counters=p.counters, live=p.live
    )


log_odds = st.floats(-LARGEST_LOG_ODDS, LARGEST_LOG_ODDS, allow_nan=False)
changes = st.lists(st.tuples(st.integers(1, ITEMS - 1), st.none() | log_odds), max_size=40)


@given(terms=st.lists(st.tuples(st.booleans(), log_odds), max_size=30))
def test_a_sum_in_two_parts_has_the_error_of_twice_the_digits(terms):
    sums, exact, size = np.zeros((1, 3)), Fraction(0), Fraction(0)
    for negative, log_term in terms:
        term = -math.exp(log_term) if negative else math.exp(log_term)
        add_exactly(sums, 0, term)
        exact += Fraction(term)
        size += abs(Fraction(term))
    assert abs(Fraction(sums[0, 0]) + Fraction(sums[0, 1]) - exact) <= size * len(terms) / 2**102


@given(changes=changes)
def test_the_sum_of_a_row_is_exact_after_any_changes(changes):
    mine = odds_for(ITEMS)
    for column, log_value in changes:
        set_odds(mine, 0, column, 0.0 if log_value is None else math.exp(log_value))
        assert mine.sums[0, 0] + mine.sums[0, 1] == pytest.approx(math.fsum(mine.merge_odds[0]), rel=1e-13)


def test_a_choice_falls_on_the_first_sum_above_the_threshold_and_never_on_odds_of_zero():
    odds, p = np.array([0.0, 2.0, 0.0, 3.0, 1.0, 0.0]), Partition.singletons(6).arrays
    thresholds = [0.0, 1.9, 2.0, 4.9, 5.0, 5.9, 6.0, 7.0]
    chosen = [choose_by(p, odds, threshold) for threshold in thresholds]
    assert chosen == [1, 1, 3, 3, 4, 4, 4, 4]


def test_odds_are_neither_zero_nor_infinite():
    found = [as_odds(value) for value in (-math.inf, -1e6, 0.0, 1.0, 1e6, math.inf)]
    edge = math.exp(LARGEST_LOG_ODDS)
    assert found == pytest.approx([1 / edge, 1 / edge, 1.0, math.e, edge, edge])
