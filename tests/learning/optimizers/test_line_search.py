"""Line searches on functions of one variable."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.learning.optimizers.line_search import (
    ENOUGH,
    USED_UP,
    LineTrial,
    Search,
    backtracking,
    more_thuente,
)


def strong_backtracking(search):
    return backtracking(search, strong=True)


SEARCHES = [more_thuente, backtracking, strong_backtracking]
STRONG = [more_thuente, strong_backtracking]


def search_on(function, first, noise=0.0, most=30):
    """Return a search over value and slope, and the list of steps it tried."""
    tried = []

    def evaluate(step):
        tried.append(step)
        return LineTrial(step, *function(step))

    return Search(evaluate, LineTrial(0.0, *function(0.0)), first, noise, most), tried


def bowl(step):
    """A parabola with its minimum at 1."""
    return (step - 1.0) ** 2, 2.0 * (step - 1.0)


def quartic(step):
    """Steep, then flat, then steep: minimum at 2."""
    return (step - 2.0) ** 4, 4.0 * (step - 2.0) ** 3


def valley(step):
    """A function of Moré and Thuente's kind: falls to a minimum at 2, with an almost flat tail."""
    return -step / (step**2 + 2.0), (step**2 - 2.0) / (step**2 + 2.0) ** 2


FUNCTIONS = [bowl, quartic, valley]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("search", STRONG)
@given(first=st.floats(1e-3, 1e3))
def test_the_step_found_obeys_the_strong_wolfe_conditions(search, function, first):
    setting, tried = search_on(function, first)
    found = search(setting)
    assert found is not None
    start = setting.start
    assert found.value <= start.value + ENOUGH * found.step * start.slope
    assert abs(found.slope) <= USED_UP * abs(start.slope)
    assert tried[-1] == found.step


@pytest.mark.parametrize("function", FUNCTIONS)
@given(first=st.floats(1e-3, 1e3))
def test_backtracking_obeys_the_wolfe_conditions(function, first):
    setting, tried = search_on(function, first)
    found = backtracking(setting)
    assert found is not None
    start = setting.start
    assert found.value <= start.value + ENOUGH * found.step * start.slope
    assert found.slope >= USED_UP * start.slope
    assert tried[-1] == found.step


def test_fits_need_few_evaluations_even_from_far_away():
    for first in (1e-3, 1e3):
        setting, tried = search_on(bowl, first)
        assert more_thuente(setting) is not None
        assert len(tried) <= 8


@pytest.mark.parametrize("search", SEARCHES)
def test_a_good_first_step_is_taken_as_it_is(search):
    setting, tried = search_on(bowl, 1.0)
    found = search(setting)
    assert found.step == 1.0
    assert tried == [1.0]


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("edge", [math.nan, math.inf])
def test_steps_where_nothing_is_defined_are_taken_back(search, edge):
    setting, _ = search_on(lambda step: bowl(step) if step < 1.05 else (edge, math.nan), 64.0)
    found = search(setting)
    assert found is not None
    assert found.step < 1.05


@pytest.mark.parametrize("search", SEARCHES)
def test_a_function_that_only_rises_gives_nothing(search):
    setting, tried = search_on(lambda step: (step, 1.0 if step else -1.0), 1.0)
    assert search(setting) is None
    assert len(tried) <= 31


@pytest.mark.parametrize("search", SEARCHES)
def test_where_rounding_hides_the_fall_slopes_decide(search):
    def rounded(step):
        value, slope = bowl(step)
        return float(np.float32(1e9 + value)), slope

    setting, tried = search_on(rounded, 0.9, noise=100.0)
    found = search(setting)
    assert found is not None
    assert tried == [0.9]


@pytest.mark.parametrize("search", SEARCHES)
def test_when_time_is_up_the_best_step_is_kept(search):
    """The slopes lie: no step passes, but the value did fall."""
    setting, tried = search_on(lambda step: (bowl(step)[0], -2.0), 0.5, most=4)
    found = search(setting)
    assert found is not None
    assert found.value < setting.start.value
    assert tried[-1] == found.step
