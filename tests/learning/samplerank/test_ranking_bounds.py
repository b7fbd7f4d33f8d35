"""A ranking learner makes no more mistakes than its theory allows, and as many where the theory is exact."""

import doctest
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize
from scipy.sparse import csr_array

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.learning.samplerank import ranking_bounds
from factorwise.learning.samplerank.ranking_bounds import (
    deviation,
    largest_margin,
    noisy_bound,
    radius_of,
    sample_size,
    separable_bound,
)

FALSE_ALARM = 1e-4
ROUNDING = 1e-9  # by which a bound on a whole number may come out too small

seeds = st.integers(0, 2**32 - 1)


def unit_steps(rows, *, strict=False, start=None):
    """Weights and number of mistakes after unit steps on the rows in their order."""
    weights = np.zeros(len(rows[0])) if start is None else start.copy()
    mistakes = 0
    for row in rows:
        lead = float(weights @ row)
        if lead < 0.0 or (lead == 0.0 and not strict):
            weights += row
            mistakes += 1
    return weights, mistakes


def separated_rows(rng, n, width, margin):
    """Rows of whole numbers and a direction under which each has at least the margin."""
    direction = rng.normal(size=width)
    direction /= np.linalg.norm(direction)
    rows = np.zeros((0, width))
    while len(rows) < n:
        drawn = rng.integers(-3, 4, size=(4 * n, width)).astype(float)
        drawn *= np.where(drawn @ direction < 0.0, -1.0, 1.0)[:, None]
        rows = np.vstack([rows, drawn[drawn @ direction >= margin]])
    return rows[:n], direction


@given(seeds, st.integers(1, 6), st.integers(1, 30), st.floats(0.05, 1.0), st.integers(1, 4))
def test_separable_data_cost_no_more_mistakes_than_radius_over_margin_squared(seed, width, n, margin, passes):
    rng = np.random.default_rng(seed)
    rows, direction = separated_rows(rng, n, width, margin)
    sequence = np.vstack([rng.permutation(rows) for _ in range(passes)])
    _, mistakes = unit_steps(sequence)
    best = largest_margin(rows)
    assert best.margin >= (rows @ direction).min() - ROUNDING
    assert 1 <= mistakes <= separable_bound(radius_of(rows), best.margin) + ROUNDING
    assert mistakes <= separable_bound(radius_of(rows), margin) + ROUNDING


@given(seeds, st.integers(1, 4), st.integers(1, 10))
def test_mistakes_end_and_then_every_better_world_leads(seed, width, n):
    rows, _ = separated_rows(np.random.default_rng(seed), n, width, 0.3)
    most = math.floor(separable_bound(radius_of(rows), largest_margin(rows).margin) + ROUNDING)
    weights, mistakes = unit_steps(np.tile(rows, (most + 1, 1)))
    assert mistakes <= most
    assert (rows @ weights > 0.0).all()


@pytest.mark.parametrize("width", [4, 16])
def test_orthogonal_constraints_cost_as_many_mistakes_as_the_bound_allows(width):
    rows = 3.0 * np.eye(width)
    found = largest_margin(rows)
    assert found.margin == pytest.approx(3.0 / math.sqrt(width))
    assert separable_bound(radius_of(rows), found.margin) == pytest.approx(width)
    assert unit_steps(np.tile(rows, (5, 1)))[1] == width


def test_the_bound_holds_in_every_order():
    rows = np.array([[2.0, 1.0], [-1.0, 1.0], [1.0, -0.5], [-1.5, 2.0], [0.0, 1.0]])
    bound = separable_bound(radius_of(rows), largest_margin(rows).margin)
    counts = {unit_steps(np.tile(rows[list(order)], (20, 1)))[1] for order in permutations(range(5))}
    assert len(counts) > 1
    assert max(counts) <= bound


def test_the_strict_rule_never_leaves_zero_weights():
    rows, _ = separated_rows(np.random.default_rng(3), 40, 4, 0.2)
    weights, mistakes = unit_steps(rows, strict=True)
    assert mistakes == 0
    assert not weights.any()


@given(seeds, st.integers(1, 5))
def test_the_strict_rule_keeps_the_bound_once_a_first_step_has_been_made(seed, width):
    rng = np.random.default_rng(seed)
    rows, _ = separated_rows(rng, 20, width, 0.2)
    later = np.vstack([rng.permutation(rows) for _ in range(4)])
    _, mistakes = unit_steps(later, strict=True, start=rows[0])
    assert 1 + mistakes <= separable_bound(radius_of(rows), largest_margin(rows).margin) + ROUNDING


def test_a_proposer_that_never_visits_part_of_the_space_costs_no_more_mistakes():
    """Worlds are 8 labels; the walk flips the first 5 only, some far more often, and accepts everything."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, 2, size=8)
    world = 1 - truth
    mixing = rng.integers(0, 2, size=(8, 4))  # statistics that say nothing about the truth by themselves

    def statistics(labels):
        return np.concatenate([2.0 * labels - 1.0, labels @ mixing])

    met, weights, steps = [], np.zeros(12), []
    for step in range(4_000):
        proposed = world.copy()
        flipped = rng.integers(0, 1 + step % 5)
        proposed[flipped] = 1 - proposed[flipped]
        sign = 1.0 if proposed[flipped] == truth[flipped] else -1.0
        met.append(sign * (statistics(proposed) - statistics(world)))
        if weights @ met[-1] <= 0.0:
            weights += met[-1]
            steps.append(step)
        world = proposed
    direction = np.concatenate([2.0 * truth - 1.0, np.zeros(4)])
    margin = float((np.array(met) @ direction).min() / np.linalg.norm(direction))
    assert margin == pytest.approx(2.0 / math.sqrt(8))
    assert 1 < len(steps) <= separable_bound(radius_of(met), margin)
    assert steps[-1] < 1_000
    assert not weights[5:8].any()


@given(seeds, st.integers(1, 5), st.integers(1, 60), st.floats(0.0, 1.0), st.floats(-3.0, 6.0))
def test_noisy_data_cost_no_more_mistakes_in_one_pass_than_any_direction_allows(
    seed, width, n, noise, log_margin
):
    rng = np.random.default_rng(seed)
    rows, direction = separated_rows(rng, n, width, 0.2)
    rows *= np.where(rng.random(n) < 0.5 * noise, -1.0, 1.0)[:, None]
    _, mistakes = unit_steps(rows)
    for guess in [direction, *rng.normal(size=(5, width))]:
        assert mistakes <= noisy_bound(rows, guess, math.exp(log_margin)) + ROUNDING


@given(seeds, st.integers(1, 4), st.integers(1, 12), st.integers(2, 6))
def test_a_later_pass_is_covered_when_every_meeting_counts(seed, width, n, passes):
    rng = np.random.default_rng(seed)
    met = np.vstack([rng.permutation(rng.integers(-2, 3, size=(n, width)).astype(float))] * passes)
    _, mistakes = unit_steps(met)
    assert mistakes <= noisy_bound(met, rng.normal(size=width), 1.0) + ROUNDING


def test_a_second_pass_is_not_covered_by_the_deviation_of_the_first():
    """Which is why the theorem speaks of the first pass only."""
    rows = np.array([[1.0], [-1.0]])
    assert unit_steps(np.tile(rows, (50, 1)))[1] == 100
    assert noisy_bound(rows, [1.0], 1.0) == pytest.approx(9.0)
    assert noisy_bound(np.tile(rows, (50, 1)), [1.0], 1.0) == pytest.approx((1.0 + math.sqrt(200.0)) ** 2)


def test_constraints_that_contradict_each_other_cost_as_many_mistakes_as_the_bound_allows():
    rows = np.tile([[1.0, 2.0], [-1.0, -2.0]], (30, 1))
    assert unit_steps(rows)[1] == 60
    assert noisy_bound(rows, [1.0, 2.0], 1e7) == pytest.approx(60.0, rel=1e-5)


@given(seeds, st.integers(1, 4), st.integers(1, 8), st.floats(0.1, 10.0))
def test_the_noisy_bound_is_the_separable_one_of_rows_with_a_coordinate_each(seed, width, n, margin):
    """Extended by the root of radius times deviation they are separable, and cost the same in one pass."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, width))
    direction = rng.normal(size=width)
    direction /= np.linalg.norm(direction)
    short = np.maximum(0.0, margin - rows @ direction)
    if not short.any():
        return
    own = math.sqrt(radius_of(rows) * deviation(rows, direction, margin))
    extended = np.hstack([rows, own * np.eye(n)])
    along = np.concatenate([direction, short / own])
    shrunk = float((extended @ along).min() / np.linalg.norm(along))
    assert shrunk >= margin / np.linalg.norm(along) - ROUNDING
    expected = separable_bound(radius_of(extended), margin / np.linalg.norm(along))
    assert noisy_bound(rows, direction, margin) == pytest.approx(expected)
    assert unit_steps(extended)[1] == unit_steps(rows)[1]


def test_the_deviation_follows_its_definition():
    rows = [[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    assert deviation(rows, [5.0, 0.0], 1.0) == pytest.approx(math.sqrt(0.0 + 1.0 + 4.0))
    assert deviation(csr_array(rows), [5.0, 0.0], 1.0) == deviation(rows, [5.0, 0.0], 1.0)
    assert noisy_bound(rows, [5.0, 0.0], 1.0) == pytest.approx((2.0 + math.sqrt(5.0)) ** 2)
    assert noisy_bound(rows[:1], [1.0, 0.0], 0.5) == separable_bound(2.0, 0.5)


@given(seeds, st.integers(1, 5), st.integers(1, 40))
def test_the_largest_margin_is_attained_and_its_shares_prove_that_none_is_larger(seed, width, n):
    rows, _ = separated_rows(np.random.default_rng(seed), n, width, 0.1)
    found = largest_margin(rows)
    assert np.linalg.norm(found.direction) == pytest.approx(1.0)
    assert (rows @ found.direction).min() == found.margin
    assert (found.shares >= 0.0).all()
    assert found.shares.sum() == pytest.approx(1.0)
    assert np.linalg.norm(found.shares @ rows) == pytest.approx(found.margin)


def test_the_largest_margin_is_what_trying_all_directions_finds():
    rows, _ = separated_rows(np.random.default_rng(5), 12, 2, 0.3)
    angles = np.linspace(0.0, 2.0 * math.pi, 200_001)
    leads = rows @ np.stack([np.cos(angles), np.sin(angles)])
    assert largest_margin(rows).margin == pytest.approx(leads.min(axis=0).max(), rel=1e-4)
    assert largest_margin(csr_array(rows)).margin == largest_margin(rows).margin


def test_the_largest_margin_agrees_with_a_general_solver():
    rows, start = separated_rows(np.random.default_rng(6), 30, 4, 0.4)
    shortest = minimize(
        lambda w: 0.5 * w @ w,
        start / 0.4,
        jac=lambda w: w,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: rows @ w - 1.0, "jac": lambda w: rows},
        options={"ftol": 1e-14},
    )
    assert largest_margin(rows).margin == pytest.approx(1.0 / np.linalg.norm(shortest.x), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 0.0], [-1.0, 0.0]],
        [[1.0, 1.0], [0.0, 0.0]],
        [[0.0, 0.0]],
        [[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]],
    ],
    ids=["opposite", "a row of zeros", "nothing but zeros", "around zero"],
)
def test_constraints_that_no_direction_satisfies_have_no_margin(rows, scale):
    assert largest_margin(scale * np.array(rows)) is None


def test_more_rows_than_weights_in_general_position_are_not_separable_when_half_are_flipped():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(400, 5))
    assert largest_margin(rows) is None
    assert largest_margin(rows * np.sign(rows @ rng.normal(size=5))[:, None]) is not None


@pytest.mark.parametrize("epsilon", [0.3, 0.1, 0.01])
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("n_weights", [1, 3, 50])
def test_the_scenario_size_is_the_smallest_that_will_do(n_weights, epsilon, delta):
    size = sample_size(n_weights, epsilon, delta, method="scenario")
    assert stats.binom.cdf(n_weights - 1, size, epsilon) <= delta
    assert size == n_weights or stats.binom.cdf(n_weights - 1, size - 1, epsilon) > delta


def test_the_scenario_size_for_one_weight_is_that_of_a_single_threshold():
    assert sample_size(1, 0.1, 0.05, method="scenario") == math.ceil(math.log(0.05) / math.log(0.9))


@pytest.mark.parametrize("epsilon", [0.9, 0.1, 1e-3])
@pytest.mark.parametrize("delta", [0.9, 0.05, 1e-9])
@pytest.mark.parametrize("n_weights", [1, 3, 50, 10_000])
def test_the_uniform_size_makes_the_chance_of_failure_small_enough(n_weights, epsilon, delta):
    """The chance that the docstring's argument bounds, not its closed form."""
    size = sample_size(n_weights, epsilon, delta)
    log_growth = n_weights * math.log(2.0 * math.e * size / n_weights)
    assert math.log(2.0) + log_growth - 0.5 * epsilon * size * math.log(2.0) <= math.log(delta)
    assert (
        stats.binom.sf(math.ceil(0.5 * epsilon * size) - 1, size, epsilon) >= 0.5
    )  # the second sample tells
    assert size > sample_size(n_weights, epsilon, delta, method="scenario")


def test_the_uniform_size_has_the_order_that_the_paper_gives():
    def order(n_weights, epsilon, delta):
        return (n_weights * math.log(1.0 / epsilon) + math.log(1.0 / delta)) / epsilon

    cases = [(k, e, d) for k in (1, 100, 10_000) for e in (0.1, 1e-3, 1e-6) for d in (0.1, 1e-9)]
    ratios = [sample_size(*case) / order(*case) for case in cases]
    assert 4.0 / math.log(2.0) <= min(ratios)
    assert max(ratios) < 16.0


def violated_share(weights, low=1.0, high=3.0):
    """Share of constraints violated that ask any one weight for 1/u or more, u uniform from low to high."""
    needed = np.divide(1.0, weights, out=np.full(len(weights), np.inf), where=weights > 0.0)
    return float(np.mean(np.clip((needed - low) / (high - low), 0.0, 1.0)))


def failures(rng, trials, size, n_weights, epsilon):
    """Trials in which the optimum of a sampled program violates more than epsilon; the share is exact."""
    count = 0
    for _ in range(trials):
        rows = np.zeros((size, n_weights))
        rows[np.arange(size), rng.integers(n_weights, size=size)] = rng.uniform(1.0, 3.0, size=size)
        found = largest_margin(rows)  # the shortest weights that give every row a lead of one are these:
        count += violated_share(found.direction / found.margin) > epsilon
    return count


@pytest.mark.statistical
@pytest.mark.parametrize("n_weights", [1, 3])
def test_optima_of_sampled_programs_violate_more_than_allowed_as_rarely_as_promised(n_weights, seed):
    """Constraints on one weight each make every constraint count, so that the promise is nearly exact."""
    epsilon, delta, trials = 0.15, 0.2, 300
    rng = np.random.default_rng(seed)
    size = sample_size(n_weights, epsilon, delta, method="scenario")
    failed = failures(rng, trials, size, n_weights, epsilon)
    chance = stats.binom.cdf(n_weights - 1, size, epsilon)
    assert failed <= stats.binom.isf(FALSE_ALARM / 2, trials, delta)
    assert failed >= stats.binom.ppf(FALSE_ALARM / 2, trials, 0.8 * chance)
    assert failures(rng, trials, size // 2, n_weights, epsilon) > stats.binom.isf(FALSE_ALARM, trials, delta)


@pytest.mark.statistical
def test_weights_learned_by_unit_steps_violate_no_more_than_promised_for_all_weights(seed):
    """Fresh constraints judge, which take a share of epsilon for more with half the false-alarm rate."""
    n_weights, epsilon, delta, trials, fresh = 3, 0.2, 0.2, 40, 2_000
    rng = np.random.default_rng(seed)
    most = stats.binom.isf(FALSE_ALARM / 2, trials, delta)
    direction = np.array([0.6, 0.8, 0.0])

    def drawn(count):
        rows = rng.normal(size=(count, n_weights))
        return rows + np.outer(np.abs(rows @ direction) + 0.05 - rows @ direction, direction)

    def failed(size):
        count = 0
        for _ in range(trials):
            rows, mistakes, weights = drawn(size), 1, np.zeros(n_weights)
            while mistakes:
                weights, mistakes = unit_steps(rows, start=weights)
            wrong = int((drawn(fresh) @ weights <= 0.0).sum())
            count += wrong > stats.binom.isf(FALSE_ALARM / (2 * trials), fresh, epsilon)
        return count

    assert failed(sample_size(n_weights, epsilon, delta)) <= most
    assert failed(1) > most


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: separable_bound(-1.0, 1.0), "radius must be a finite number, zero or more"),
        (lambda: separable_bound(1.0, 0.0), "margin must be a finite number greater than zero"),
        (lambda: noisy_bound([[1.0]], [1.0], -1.0), "margin must be a finite number greater than zero"),
        (lambda: deviation([[1.0]], [0.0], 1.0), "direction must be finite and not zero everywhere"),
        (lambda: radius_of([[1.0], [math.nan]]), r"row 1 of constraints .* Leave the pair out"),
        (lambda: largest_margin(np.zeros((0, 3))), "collect constraints first"),
        (lambda: sample_size(0, 0.1, 0.1), "n_weights must be at least 1"),
        (lambda: sample_size(1, 1.0, 0.1), "epsilon must be between 0 and 1"),
        (lambda: sample_size(1, 0.1, 0.0), "delta must be between 0 and 1"),
        (lambda: sample_size(1, 0.1, 0.1, method="exact"), "method must be 'uniform' or 'scenario'"),
    ],
)
def test_what_makes_no_sense_is_refused(call, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        call()


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="one row of better minus worse statistics"):
        radius_of([1.0, 2.0])
    with pytest.raises(ShapeError, match="one number per weight"):
        deviation([[1.0, 2.0]], [1.0], 1.0)


def test_what_the_docstrings_show_is_what_comes_out():
    assert doctest.testmod(ranking_bounds) == (0, 5)
