"""What all optimizers promise: the same optimum, the same account of how they got there."""

from itertools import pairwise

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError, WeightError
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import METHODS, ObjectiveError, OptimizerConfig, minimize
from optimizer_cases import Quadratic, Softmax

TIGHT = OptimizerConfig(epsilon=1e-7, period=0, max_iterations=5_000)
L1_METHODS = ["owlqn", "gradient_descent", "coordinate_descent"]
GRADIENT_METHODS = [name for name in METHODS if name != "powell"]  # uses values only


@pytest.mark.parametrize("method", GRADIENT_METHODS)
def test_a_quadratic_is_solved_exactly(method):
    quadratic = Quadratic(12)
    found = minimize(quadratic, np.zeros(12), prior=Prior(l2=0.3), method=method, config=TIGHT)
    assert found.converged
    np.testing.assert_allclose(found.weights, quadratic.solution(l2=0.3), atol=2e-7)


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_agree_on_a_softmax_problem(method):
    softmax, prior = Softmax(), Prior.gaussian(variance=2.0)
    best = minimize(softmax, np.zeros(softmax.size), prior=prior, config=TIGHT, precision=1e-15)
    assert np.abs(prior.violation(best.weights, softmax(best.weights)[1])).max() < 1e-6
    config = OptimizerConfig(epsilon=1e-7, delta=0.0, max_iterations=5_000)
    found = minimize(softmax, np.full(softmax.size, 0.1), prior=prior, method=method, config=config)
    np.testing.assert_allclose(found.weights, best.weights, atol=1e-6)
    assert found.value == pytest.approx(best.value, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_result_tells_where_it_ended(method):
    softmax, prior = Softmax(seed=2), Prior(l2=0.5)
    softmax.calls = 0
    found = minimize(softmax, np.zeros(softmax.size), prior=prior, method=method)
    assert found.evaluations == softmax.calls
    value, gradient = softmax(found.weights)
    assert found.value == pytest.approx(value + prior.penalty(found.weights), rel=1e-13)
    norm = np.linalg.norm(prior.violation(found.weights, gradient))
    assert found.gradient_norm == pytest.approx(norm, rel=1e-6, abs=1e-12)
    assert [entry.iteration for entry in found.trace] == list(range(found.iterations + 1))
    assert found.trace[-1].value == found.value
    assert found.trace[-1].active == np.count_nonzero(found.weights)
    values = [entry.value for entry in found.trace]
    assert values[0] == pytest.approx(60 * np.log(3.0))
    assert all(after <= before * (1.0 + 1e-7) for before, after in pairwise(values))


@pytest.mark.parametrize("method", METHODS)
def test_a_watcher_sees_each_iteration_and_can_stop(method):
    seen = []

    def watch(progress):
        assert not progress.weights.flags.writeable
        seen.append((progress.iteration, progress.value, progress.weights.copy()))
        return progress.iteration == 2

    softmax, prior = Softmax(), Prior(l2=0.1)
    found = minimize(softmax, np.zeros(softmax.size), prior=prior, method=method, watch=watch)
    assert [iteration for iteration, _, _ in seen] == [1, 2]
    assert not found.converged
    assert "watcher" in found.message
    assert found.iterations == 2
    np.testing.assert_array_equal(found.weights, seen[-1][2])
    for _, value, weights in seen:
        assert value == pytest.approx(softmax(weights)[0] + prior.penalty(weights), rel=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_the_limit_on_iterations_is_kept(method):
    softmax = Softmax()
    found = minimize(softmax, np.zeros(softmax.size), prior=Prior(l2=0.1), method=method, max_iterations=1)
    assert found.iterations == 1
    assert not found.converged
    nothing = minimize(softmax, np.ones(softmax.size), prior=Prior(), method=method, max_iterations=0)
    np.testing.assert_array_equal(nothing.weights, 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_a_start_at_the_optimum_is_left_alone(method):
    quadratic = Quadratic(4)
    start = quadratic.solution()
    found = minimize(quadratic, start, prior=Prior.none(), method=method)
    assert (found.converged, found.iterations, found.evaluations) == (True, 0, 1)
    np.testing.assert_array_equal(found.weights, start)
    assert found.weights is not start


@pytest.mark.parametrize("method", ["lbfgs", *L1_METHODS])
def test_a_warm_start_needs_fewer_iterations(method):
    softmax, prior = Softmax(), Prior(l1=0.2 if method in L1_METHODS else 0.0, l2=0.1)
    cold = minimize(softmax, np.zeros(softmax.size), prior=prior, method=method, config=TIGHT)
    near = cold.weights * 1.001
    warm = minimize(softmax, near, prior=prior, method=method, config=TIGHT)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("broken", ["value", "gradient"])
def test_an_objective_that_is_not_finite_at_the_start_is_refused(method, broken):
    def objective(weights):
        return (np.nan, weights) if broken == "value" else (1.0, np.full_like(weights, np.nan))

    with pytest.raises(ObjectiveError, match=r"not finite at the start.*Start from other weights"):
        minimize(objective, [1.0, 2.0], prior=Prior(), method=method)


@pytest.mark.parametrize("method", GRADIENT_METHODS)
def test_a_step_into_nan_is_taken_back(method):
    """The minimum of w - log(w) is at 1; there is nothing at or below zero, and steep slopes lead there."""

    def objective(weights):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.sum(weights - np.log(weights))), 1.0 - 1.0 / weights

    found = minimize(objective, [9.0, 0.3], prior=Prior(), method=method, config=TIGHT)
    np.testing.assert_allclose(found.weights, 1.0, atol=1e-5)


@pytest.mark.parametrize("method", ["lbfgs", "owlqn", "gradient_descent"])
def test_a_wrong_gradient_ends_with_advice_instead_of_convergence(method):
    quadratic = Quadratic(5)

    def uphill(weights):
        value, gradient = quadratic(weights)
        return value, -gradient

    found = minimize(uphill, np.ones(5), prior=Prior(), method=method)
    assert not found.converged
    assert "finite differences" in found.message


def test_only_some_methods_take_an_l1_penalty():
    softmax = Softmax()
    for method in set(METHODS) - {*L1_METHODS, "lbfgs"}:
        with pytest.raises(InvalidArgumentError, match="method='owlqn'"):
            minimize(softmax, np.zeros(softmax.size), prior=Prior(l1=1.0), method=method)
    orthant, plain = (
        minimize(softmax, np.zeros(softmax.size), prior=Prior(l1=1.0), method=method)
        for method in ("owlqn", "lbfgs")
    )
    np.testing.assert_array_equal(orthant.weights, plain.weights)


def test_newtons_method_uses_the_product_that_is_given():
    softmax, prior, calls = Softmax(), Prior(l2=0.2), []

    def product(weights, direction):
        calls.append(1)
        return softmax.hessian_product(weights, direction)

    start = np.zeros(softmax.size)
    given = minimize(softmax, start, prior=prior, method="newton_cg", config=TIGHT, hessian_product=product)
    by_differences = minimize(softmax, start, prior=prior, method="newton_cg", config=TIGHT)
    assert calls
    assert given.evaluations < by_differences.evaluations
    np.testing.assert_allclose(given.weights, by_differences.weights, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "remedy"),
    [
        ({"method": "adam"}, InvalidArgumentError, "one of lbfgs, owlqn"),
        ({"memory": 0}, InvalidArgumentError, "memory must be at least 1"),
        ({"epsilon": -1.0}, InvalidArgumentError, "epsilon must be zero or more"),
        ({"max_iterations": -1}, InvalidArgumentError, "or None for no limit"),
        ({"line_search": "Exact"}, InvalidArgumentError, "one of MoreThuente, Backtracking"),
        ({"history": "float16"}, InvalidArgumentError, "'float32' or 'float64'"),
        ({"learning_rate": 0.1}, InvalidArgumentError, "one of max_iterations, epsilon"),
        ({"hessian_product": lambda w, d: d}, InvalidArgumentError, "method='newton_cg'"),
        ({"prior": Prior(l1=1.0).on([True])}, ShapeError, "one truth value per weight"),
        ({"start": [[0.0]]}, ShapeError, "one flat array"),
        ({"start": [0.0, np.inf]}, WeightError, "start from finite weights"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(arguments, error, remedy):
    settings = {"start": np.zeros(2), "prior": Prior()} | arguments
    with pytest.raises(error, match=remedy):
        minimize(lambda w: (float(w @ w), 2.0 * w), settings.pop("start"), **settings)


@pytest.mark.parametrize("method", METHODS)
def test_a_gradient_of_another_length_is_refused(method):
    with pytest.raises(ShapeError, match="one number per weight"):
        minimize(lambda w: (0.0, np.ones(3)), np.zeros(2), prior=Prior(), method=method)


def test_settings_by_name_prevail_over_the_configuration():
    config = OptimizerConfig(max_iterations=7, memory=2)
    found = minimize(Softmax(), np.zeros(15), prior=Prior(l2=0.1), config=config, max_iterations=1)
    assert found.iterations == 1
    assert config.as_dict()["memory"] == 2
