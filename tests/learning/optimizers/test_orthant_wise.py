"""Orthant-wise steps: the optimum against an independent solver, and its conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import history, minimize
from optimizer_cases import Quadratic, Softmax, proximal_gradient, rounded

TIGHT = {"epsilon": 1e-7, "period": 0, "max_iterations": 5_000}


def hashed(seed, examples=120, features=40, labels=3):
    """Return a softmax problem with sparse, correlated features of very different frequency."""
    softmax = Softmax(examples, features, labels, seed)
    rng = np.random.default_rng(seed)
    softmax.features = (rng.random((examples, features)) < np.geomspace(0.9, 0.03, features)).astype(float)
    return softmax


@pytest.mark.parametrize("l1", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimum_is_that_of_proximal_gradient(seed, l1, l2):
    softmax, prior = Softmax(seed=seed), Prior(l1, l2)
    expected = proximal_gradient(softmax, np.zeros(softmax.size), prior)
    found = minimize(softmax, np.zeros(softmax.size), prior=prior, method="owlqn", **TIGHT)
    value = softmax(expected)[0] + prior.penalty(expected)
    assert found.value == pytest.approx(value, rel=1e-9)
    if l2 > 0.0:  # without it softmax weights are not unique in value ties
        np.testing.assert_allclose(found.weights, expected, atol=1e-5)


@given(st.integers(0, 10_000), st.floats(0.02, 5.0), st.sampled_from([0.0, 0.01, 1.0]))
@settings(max_examples=30)
def test_the_conditions_of_an_optimum_hold_at_every_weight(seed, l1, l2):
    softmax, prior = hashed(seed), Prior(l1, l2)
    found = minimize(softmax, np.zeros(softmax.size), prior=prior, epsilon=1e-6, period=0)
    gradient = softmax(found.weights)[1] + prior.smooth_gradient(found.weights)
    zero = found.weights == 0.0
    assert found.converged
    assert (np.abs(gradient[zero]) <= l1 + 1e-4).all()
    np.testing.assert_allclose(gradient[~zero] + l1 * np.sign(found.weights[~zero]), 0.0, atol=1e-4)


def test_a_higher_price_leaves_fewer_weights():
    softmax = hashed(1)
    active = [
        minimize(softmax, np.zeros(softmax.size), prior=Prior(l1=l1)).trace[-1].active
        for l1 in (0.1, 0.5, 2.0, 1_000.0)
    ]
    assert active == sorted(active, reverse=True)
    assert active[0] > active[1] > active[2] > active[3] == 0


def test_a_separable_quadratic_is_soft_thresholded():
    target = np.array([3.0, -0.4, 0.0, -2.0, 0.9])
    found = minimize(
        lambda w: (0.5 * float((w - target) @ (w - target)), w - target), np.zeros(5), prior=Prior(l1=1.0)
    )
    np.testing.assert_allclose(found.weights, [2.0, 0.0, 0.0, -1.0, 0.0], atol=1e-6)
    assert np.count_nonzero(found.weights) == 2


def test_weights_that_pay_nothing_are_not_shrunk():
    quadratic = Quadratic(6)
    free = np.array([True, False, True, False, True, False])
    prior = Prior(l1=1e3).on(free)
    found = minimize(quadratic, np.ones(6), prior=prior, **TIGHT)
    rest = ~free
    expected = np.linalg.solve(quadratic.matrix[np.ix_(rest, rest)], quadratic.shift[rest])
    assert (found.weights[free] == 0.0).all()
    np.testing.assert_allclose(found.weights[rest], expected, atol=1e-5)


def test_without_l1_it_reaches_the_smooth_optimum():
    quadratic = Quadratic(10)
    found = minimize(quadratic, np.zeros(10), prior=Prior(l2=0.2), method="owlqn", **TIGHT)
    np.testing.assert_allclose(found.weights, quadratic.solution(0.2), atol=1e-6)


def test_letting_settled_weights_balance_each_other_saves_iterations(monkeypatch):
    def iterations():
        return sum(
            minimize(hashed(seed), np.zeros(120), prior=Prior(0.1, 0.01), epsilon=1e-5, period=0).iterations
            for seed in range(6)
        )

    free = iterations()
    monkeypatch.setattr(history, "SETTLED", -1.0)
    assert free < 0.9 * iterations()


def test_a_start_with_wrong_signs_is_corrected():
    softmax, prior = Softmax(), Prior(0.3, 0.1)
    best = minimize(softmax, np.zeros(softmax.size), prior=prior, **TIGHT)
    found = minimize(softmax, -5.0 * best.weights, prior=prior, **TIGHT)
    np.testing.assert_allclose(found.weights, best.weights, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_rounding_to_single_precision_ends_the_run_near_the_optimum(seed):
    softmax, prior = Softmax(300, 8, 4, seed=seed), Prior(0.5, 0.1)
    exact = minimize(softmax, np.zeros(softmax.size), prior=prior, **TIGHT)
    settings = {"epsilon": 1e-12, "period": 0, "max_iterations": 1_000}
    found = minimize(rounded(softmax), np.zeros(softmax.size), prior=prior, **settings)
    assert found.converged
    assert "within precision" in found.message
    assert found.iterations < 200
    assert found.value == pytest.approx(exact.value, rel=3e-7)


def test_the_gradient_norm_reported_is_that_of_the_pseudo_gradient():
    softmax, prior = Softmax(), Prior(1.0, 0.1)
    found = minimize(softmax, np.zeros(softmax.size), prior=prior, max_iterations=3)
    norm = np.linalg.norm(prior.violation(found.weights, softmax(found.weights)[1]))
    assert found.gradient_norm == pytest.approx(norm, rel=1e-12)
