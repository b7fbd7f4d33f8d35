"""Limited-memory BFGS: stopping rules, line searches, rounding, threads."""

import numpy as np
import pytest
from scipy import optimize

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.numeric.quasi_newton import CHUNK
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import OptimizerConfig, minimize
from factorwise.learning.optimizers.base import Problem
from factorwise.learning.optimizers.history import CHUNKS_WORTH_SHARING
from factorwise.learning.optimizers.lbfgs import lbfgs
from optimizer_cases import Quadratic, Softmax, rounded

SEARCHES = ["MoreThuente", "Backtracking", "StrongBacktracking"]


@pytest.mark.parametrize("history", ["float32", "float64"])
@pytest.mark.parametrize("line_search", SEARCHES)
def test_every_line_search_and_kind_of_memory_reaches_the_optimum(line_search, history):
    quadratic = Quadratic(30, spread=1e3)
    settings = {"epsilon": 1e-8, "period": 0}
    found = minimize(
        quadratic, np.zeros(30), prior=Prior(), line_search=line_search, history=history, **settings
    )
    assert found.converged
    np.testing.assert_allclose(found.weights, quadratic.solution(), atol=1e-7)


def test_remembering_in_single_precision_costs_no_more_iterations():
    def iterations(history):
        return [
            minimize(
                Softmax(200, 20, 4, seed=seed),
                np.zeros(80),
                prior=Prior(l2=0.01),
                history=history,
                epsilon=1e-6,
            ).iterations
            for seed in range(5)
        ]

    assert sum(iterations("float32")) <= 1.1 * sum(iterations("float64"))


def test_it_needs_about_as_many_iterations_as_scipys_with_the_same_memory():
    ours = theirs = 0
    for seed in range(5):
        quadratic, options = Quadratic(40, seed, spread=1e3), {"maxcor": 6, "gtol": 1e-5, "ftol": 0.0}
        theirs += optimize.minimize(quadratic, np.zeros(40), jac=True, method="L-BFGS-B", options=options).nit
        ours += minimize(quadratic, np.zeros(40), prior=Prior(), epsilon=1e-5, period=0).iterations
    assert ours <= 1.2 * theirs


def test_the_gradient_rule_is_relative_to_the_weights():
    """At w = 1000 + e the gradient is e; the rule asks for e <= epsilon * 1000."""
    found = minimize(
        lambda w: (0.5 * float((w - 1e3) @ (w - 1e3)), w - 1e3), [1e3 + 0.9], prior=Prior(), epsilon=1e-3
    )
    assert (found.iterations, found.converged) == (0, True)
    further = minimize(
        lambda w: (0.5 * float((w - 1e3) @ (w - 1e3)), w - 1e3), [1e3 + 1.1], prior=Prior(), epsilon=1e-3
    )
    assert further.iterations > 0


def test_the_improvement_rule_compares_with_the_value_a_period_ago():
    softmax = Softmax(100, 10, 3)
    settings = {"epsilon": 0.0, "delta": 1e-3, "period": 4}
    found = minimize(softmax, np.zeros(30), prior=Prior(l2=0.01), **settings)
    values = [entry.value for entry in found.trace]
    falls = [(old - new) / new for old, new in zip(values, values[4:], strict=False)]
    assert found.converged
    assert "delta" in found.message
    assert falls[-1] < 1e-3
    assert min(falls[:-1]) >= 1e-3


@pytest.mark.parametrize("line_search", SEARCHES)
@pytest.mark.parametrize("seed", range(4))
def test_rounding_to_single_precision_ends_the_run_near_the_optimum(seed, line_search):
    """Tolerances that rounding never lets come true: the run must see that nothing more can be won."""
    softmax, prior = Softmax(300, 8, 4, seed=seed), Prior(l2=0.1)
    exact = minimize(softmax, np.zeros(softmax.size), prior=prior, epsilon=1e-8, period=0)
    settings = {"epsilon": 1e-12, "delta": 0.0, "period": 0, "line_search": line_search}
    found = minimize(rounded(softmax), np.zeros(softmax.size), prior=prior, max_iterations=1_000, **settings)
    assert found.converged
    assert "within precision" in found.message
    assert found.iterations < 200
    assert found.value == pytest.approx(exact.value, rel=3e-7)
    np.testing.assert_allclose(found.weights, exact.weights, atol=1e-3)


def test_any_number_of_threads_gives_the_same_bits():
    size = CHUNK * CHUNKS_WORTH_SHARING + 17
    rng = np.random.default_rng(5)
    curvature, target = rng.uniform(0.1, 10.0, size), rng.normal(size=size)

    def objective(weights):
        apart = weights - target
        return 0.5 * float(np.sum(curvature * apart**2 + 0.1 * apart**4)), curvature * apart + 0.2 * apart**3

    for prior in (Prior(l2=0.1), Prior(l1=0.3, l2=0.1)):
        runs = [
            minimize(objective, np.zeros(size), prior=prior, threads=threads, max_iterations=12)
            for threads in (1, 2, 3)
        ]
        assert runs[0].iterations == 12
        for other in runs[1:]:
            assert other.weights.tobytes() == runs[0].weights.tobytes()
            assert [e.value for e in other.trace] == [e.value for e in runs[0].trace]


def test_lbfgs_by_itself_refuses_an_l1_penalty():
    with pytest.raises(InvalidArgumentError, match="use method='owlqn'"):
        lbfgs(Problem(Quadratic(2), np.zeros(2), Prior(l1=1.0)), OptimizerConfig())


def test_an_objective_without_curvature_does_not_spoil_the_memory():
    """Down a line the gradient does not change: no pair can be remembered, and the run goes on."""

    def objective(weights):
        far = np.maximum(np.abs(weights) - 1.0, 0.0)
        return float(np.abs(weights).sum() + (far**3).sum()), np.sign(weights) * (1.0 + 3.0 * far**2)

    found = minimize(objective, [0.9, 5.0], prior=Prior(), max_iterations=50)
    assert np.isfinite(found.weights).all()
    assert found.value < 1.5


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_scale_of_the_objective_does_not_matter(scale):
    quadratic = Quadratic(6)

    def scaled(weights):
        value, gradient = quadratic(weights)
        return scale * value, scale * gradient

    found = minimize(scaled, np.zeros(6), prior=Prior(), epsilon=1e-9 * scale, period=0)
    np.testing.assert_allclose(found.weights, quadratic.solution(), atol=1e-6)
