"""The sampled program is solved to its optimum, says how near it is, and is fed by a walk of any length."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix, random_array

from factorwise.errors import ConvergenceWarning, InvalidArgumentError, ShapeError
from factorwise.learning import sampled_program
from factorwise.learning.sampled_program import ConstraintCollector, solve_ranking_program
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream

FALSE_ALARM = 1e-4

seeds = st.integers(0, 2**32 - 1)


def objective(rows, weights, C):
    """The program's value by its definition; weights may be float64[weights, points]."""
    leads = np.asarray(rows) @ weights
    return 0.5 * (weights**2).sum(axis=0) + C * np.maximum(0.0, 1.0 - leads).sum(axis=0)


def general_solver(rows, C):
    """Weights and slacks by sequential quadratic programming on the program as it is written."""
    n, width = rows.shape
    found = minimize(
        lambda z: 0.5 * z[:width] @ z[:width] + C * z[width:].sum(),
        np.concatenate([np.zeros(width), np.ones(n)]),
        jac=lambda z: np.concatenate([z[:width], np.full(n, C)]),
        method="SLSQP",
        bounds=[(None, None)] * width + [(0.0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda z: rows @ z[:width] + z[width:] - 1.0,
            "jac": lambda z: np.hstack([rows, np.eye(n)]),
        },
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return found.x[:width], found.x[width:]


@settings(max_examples=40)
@given(seeds, st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.03, 1.0, 20.0]))
def test_weights_and_slacks_are_those_of_a_general_solver(seed, width, n, C):
    rows = np.random.default_rng(seed).normal(0.4, 1.0, size=(n, width))
    program = solve_ranking_program(rows, C=C, tolerance=1e-8)
    weights, slacks = general_solver(rows, C)
    assert program.objective == pytest.approx(objective(rows, weights, C), rel=1e-6)
    np.testing.assert_allclose(program.weights, weights, atol=1e-3)
    np.testing.assert_allclose(program.slacks, slacks, atol=1e-2)


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
def test_no_point_of_a_grid_is_better_in_two_dimensions(C):
    rows = np.random.default_rng(2).normal(0.5, 1.0, size=(25, 2))
    program = solve_ranking_program(rows, C=C)
    steps = np.linspace(-1.0, 1.0, 401)
    for reach in (1e-3, 0.1, 5.0):
        grid = np.stack(np.meshgrid(steps, steps)).reshape(2, -1) * reach
        best = objective(rows, program.weights[:, None] + grid, C).min()
        assert best >= program.objective * (1.0 - 1e-12) - program.gap
        assert best <= program.objective * (1.0 + 1e-12)  # the grid holds the weights themselves


@given(st.floats(-4.0, 4.0).filter(lambda x: abs(x) > 1e-3), st.floats(0.01, 100.0), st.integers(1, 5))
def test_one_constraint_however_often_is_solved_in_closed_form(row, C, copies):
    program = solve_ranking_program([[row]] * copies, C=C)
    step = min(copies * C, 1.0 / row**2)
    assert program.weights[0] == pytest.approx(step * row)
    np.testing.assert_allclose(program.multipliers, step / copies)


@given(seeds, st.integers(1, 6), st.integers(1, 60), st.sampled_from([0.01, 1.0, 10.0]))
def test_the_result_meets_the_conditions_of_an_optimum(seed, width, n, C):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, size=(n, width)).astype(float)  # zeros, repeats and opposites among them
    program = solve_ranking_program(rows, C=C)
    assert 0.0 <= program.gap <= 1e-6 * program.objective
    assert program.objective == pytest.approx(objective(rows, program.weights, C), rel=1e-12)
    np.testing.assert_allclose(program.slacks, np.maximum(0.0, 1.0 - rows @ program.weights), atol=1e-12)
    np.testing.assert_allclose(program.weights, rows.T @ program.multipliers, atol=1e-9 * (1.0 + C * n))
    assert (program.multipliers >= 0.0).all()
    assert (program.multipliers <= C * (1.0 + 1e-12)).all()
    dual = program.multipliers.sum() - 0.5 * program.weights @ program.weights
    assert program.objective - dual == pytest.approx(program.gap, abs=1e-12 * program.objective)


@settings(max_examples=40)
@given(seeds, st.integers(1, 4), st.integers(1, 20))
def test_the_gap_bounds_the_distance_to_the_optimum(seed, width, n):
    rows = np.random.default_rng(seed).normal(0.3, 1.0, size=(n, width))
    rough = solve_ranking_program(rows, C=2.0, tolerance=0.05)
    fine = solve_ranking_program(rows, C=2.0, tolerance=1e-9)
    distance = np.linalg.norm(rough.weights - fine.weights)
    assert distance <= math.sqrt(2.0 * rough.gap) + math.sqrt(2.0 * fine.gap) + 1e-9
    assert rough.objective - rough.gap <= fine.objective * (1.0 + 1e-12)


@settings(max_examples=40)
@given(seeds, st.integers(1, 3), st.integers(1, 6), st.integers(2, 4))
def test_repeating_every_row_is_raising_the_price_of_slack(seed, width, n, copies):
    rng = np.random.default_rng(seed)
    rows = rng.normal(0.3, 1.0, size=(n, width))
    repeated = rng.permutation(np.repeat(rows, copies, axis=0))
    once = solve_ranking_program(rows, C=0.7 * copies, tolerance=1e-9)
    often = solve_ranking_program(repeated, C=0.7, tolerance=1e-9)
    assert often.objective == pytest.approx(once.objective, rel=1e-8)
    np.testing.assert_allclose(often.weights, once.weights, atol=1e-3)
    assert len(often.slacks) == len(often.multipliers) == n * copies


def test_contradictory_pairs_leave_zero_weights():
    program = solve_ranking_program([[1.0, 2.0], [-1.0, -2.0]], C=5.0)
    np.testing.assert_allclose(program.weights, 0.0, atol=1e-6)
    np.testing.assert_allclose(program.slacks, 1.0, atol=1e-5)
    assert program.objective == pytest.approx(10.0)


def test_the_majority_wins_where_pairs_contradict_each_other():
    program = solve_ranking_program([[1.0]] * 3 + [[-1.0]] * 2, C=5.0)
    assert program.weights[0] == pytest.approx(1.0, abs=1e-4)
    assert program.slacks[-1] == pytest.approx(2.0, abs=1e-4)


def test_rows_of_zeros_have_a_slack_of_one_and_change_nothing_else():
    rows = [[0.0, 0.0], [1.0, 0.5], [-0.0, 0.0]]
    program, alone = solve_ranking_program(rows, C=3.0), solve_ranking_program(rows[1:2], C=3.0)
    np.testing.assert_array_equal(program.weights, alone.weights)
    np.testing.assert_allclose(program.slacks, [1.0, 0.0, 1.0], atol=1e-6)
    assert program.objective == pytest.approx(alone.objective + 6.0)
    assert program.gap == pytest.approx(alone.gap, abs=1e-12)
    assert solve_ranking_program(np.zeros((2, 3)), C=3.0).objective == 6.0


@pytest.mark.parametrize("C", [1.0, math.inf])
def test_without_constraints_weights_are_zero(C):
    program = solve_ranking_program(np.zeros((0, 3)), C=C)
    np.testing.assert_array_equal(program.weights, np.zeros(3))
    assert program.objective == program.gap == 0.0
    assert len(program.support) == len(program.slacks) == 0


def test_an_infinite_price_gives_the_shortest_weights_that_satisfy_all():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(40, 3))
    rows *= np.sign(rows @ [1.0, -1.0, 0.5])[:, None]
    program = solve_ranking_program(rows, C=math.inf)
    assert (rows @ program.weights).min() == pytest.approx(1.0)
    assert not program.slacks.any()
    assert program.gap <= 1e-9 * program.objective
    np.testing.assert_allclose(rows.T @ program.multipliers, program.weights, rtol=1e-6)
    assert len(program.support) <= 3
    priced = solve_ranking_program(rows, C=1.01 * program.multipliers.max(), tolerance=1e-8)
    np.testing.assert_allclose(priced.weights, program.weights, rtol=1e-3)


def test_an_infinite_price_on_constraints_that_cannot_all_hold_is_refused():
    with pytest.raises(InvalidArgumentError, match="Give a finite C"):
        solve_ranking_program([[1.0], [-1.0]], C=math.inf)


def test_rows_outside_the_support_can_be_left_out():
    rows = np.random.default_rng(7).normal(0.8, 1.0, size=(60, 4))
    program = solve_ranking_program(rows, tolerance=1e-9)
    assert 0 < len(program.support) < 60
    rest = solve_ranking_program(rows[program.support], tolerance=1e-9)
    np.testing.assert_allclose(rest.weights, program.weights, atol=1e-3)
    assert (rows[np.setdiff1d(np.arange(60), program.support)] @ program.weights >= 1.0 - 1e-3).all()


@pytest.mark.parametrize("form", [csr_array, csc_array, coo_array, csr_matrix])
def test_sparse_and_dense_constraints_give_the_same_bits(form):
    rows = random_array((80, 30), density=0.1, rng=np.random.default_rng(9), format="csr")
    rows.data -= 0.3
    dense, sparse = solve_ranking_program(rows.toarray()), solve_ranking_program(form(rows))
    np.testing.assert_array_equal(sparse.weights, dense.weights)
    np.testing.assert_array_equal(sparse.multipliers, dense.multipliers)


def test_the_constraints_given_are_left_as_they_were():
    rows = csr_array((np.array([0.0, 1.0, 2.0]), np.array([0, 1, 1]), np.array([0, 1, 3])), shape=(2, 2))
    before = rows.data.copy(), rows.indices.copy()
    solve_ranking_program(rows)
    np.testing.assert_array_equal(rows.data, before[0])
    np.testing.assert_array_equal(rows.indices, before[1])


def test_two_runs_give_the_same_bits():
    rows = np.random.default_rng(12).normal(0.2, 1.0, size=(300, 8))
    first, second = solve_ranking_program(rows), solve_ranking_program(rows)
    np.testing.assert_array_equal(first.multipliers, second.multipliers)


def test_a_solver_held_up_in_one_order_starts_again_in_another():
    """liblinear with seed 0 takes more than 20,000 passes over these rows, and 700 with another."""
    rows = np.random.default_rng(1209).integers(-2, 3, size=(33, 6)).astype(float)
    program = solve_ranking_program(rows, C=10.0, max_passes=20_000)
    assert program.gap <= 1e-6 * program.objective


def test_too_few_passes_warn_and_the_gap_says_what_was_reached():
    rows = np.random.default_rng(13).normal(0.1, 1.0, size=(200, 6))
    with pytest.warns(ConvergenceWarning, match="Raise max_passes or tolerance, or lower C"):
        program = solve_ranking_program(rows, C=100.0, max_passes=3)
    best = solve_ranking_program(rows, C=100.0, max_passes=200_000)
    assert program.gap > 1e-6 * program.objective
    assert program.objective - program.gap <= best.objective <= program.objective


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"C": 0.0}, "C must be greater than zero"),
        ({"C": math.nan}, "C must be greater than zero"),
        ({"tolerance": 0.0}, "tolerance must be between 0 and 1"),
        ({"max_passes": 0}, "max_passes must be at least 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        solve_ranking_program([[1.0]], **options)


def test_constraints_that_are_no_table_of_numbers_are_refused():
    with pytest.raises(ShapeError, match="one row of better minus worse statistics"):
        solve_ranking_program([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=r"row 2 of constraints .* Leave the pair out"):
        solve_ranking_program([[1.0, 1.0], [0.0, 0.0], [0.0, math.inf]])


def test_the_collector_turns_every_pair_towards_its_better_world():
    collector = ConstraintCollector(3)
    collector.append(np.array([1.0, 0.0, -2.0]), 0.5)
    collector.append(SparseVector.of([1], [4.0]), -1)
    collector.append([9.0, 9.0, 9.0], 0.0)
    collector.append(SparseVector.empty())
    np.testing.assert_array_equal(collector.matrix().toarray(), [[1, 0, -2], [0, -4, 0], [0, 0, 0]])
    assert len(collector) == collector.seen == 3


def test_what_was_collected_can_be_solved():
    collector = ConstraintCollector(2)
    assert solve_ranking_program(collector.matrix()).objective == 0.0
    for gradient, truth_gain in [([1.0, 0.0], 1.0), ([0.0, 1.0], -1.0), ([2.0, -1.0], 0.3)]:
        collector.append(gradient, truth_gain)
    np.testing.assert_allclose(solve_ranking_program(collector.matrix(), C=9.0).weights, [1, -1], atol=1e-3)


def test_a_row_taken_is_not_changed_by_what_the_walk_does_to_its_buffer():
    collector, buffer = ConstraintCollector(2), np.array([1.0, 2.0])
    collector.append(buffer)
    buffer[:] = 0.0
    np.testing.assert_array_equal(collector.matrix().toarray(), [[1.0, 2.0]])


def collected(n, capacity, seed):
    collector = ConstraintCollector(1, capacity=capacity, seed=seed)
    for value in range(1, n + 1):
        collector.append([float(value)])
    assert collector.seen == n
    return collector.matrix().toarray().ravel()


def test_a_full_collector_keeps_its_size_and_no_pair_twice():
    kept = collected(5_000, 100, 3)
    assert len(set(kept)) == len(kept) == 100
    np.testing.assert_array_equal(kept, collected(5_000, 100, 3))
    assert set(kept) != set(collected(5_000, 100, 4))
    np.testing.assert_array_equal(collected(50, 100, Stream(1)), np.arange(1, 51))


@pytest.mark.statistical
def test_a_full_collector_keeps_every_pair_with_the_same_chance(seed):
    runs, n, capacity = 3_000, 12, 4
    counts = np.zeros(n)
    for run in range(runs):
        counts[collected(n, capacity, Stream(seed, run)).astype(int) - 1] += 1.0
    # Draws without replacement: the deviations sum to zero, and are correlated just as in a multinomial.
    share = capacity / n
    statistic = ((counts - runs * share) ** 2).sum() / (runs * share * (1.0 - share)) * (n - 1) / n
    assert statistic < stats.chi2.isf(FALSE_ALARM, n - 1)


@pytest.mark.parametrize(
    ("call", "kind", "remedy"),
    [
        (lambda: ConstraintCollector(0), InvalidArgumentError, "n_weights must be at least 1"),
        (lambda: ConstraintCollector(1, capacity=0), InvalidArgumentError, "capacity must be at least 1"),
        (lambda: ConstraintCollector(2).append([1.0]), ShapeError, "one number per weight"),
        (lambda: ConstraintCollector(2).append([1.0, 2.0], math.nan), InvalidArgumentError, "zero for a tie"),
        (
            lambda: ConstraintCollector(2).append(SparseVector.of([2], [1.0])),
            ShapeError,
            "Give the collector the size of the model's weights",
        ),
    ],
)
def test_what_cannot_be_collected_is_refused(call, kind, remedy):
    with pytest.raises(kind, match=remedy):
        call()


def test_what_the_docstrings_show_is_what_comes_out():
    assert doctest.testmod(sampled_program) == (0, 5)
