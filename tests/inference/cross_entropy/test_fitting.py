"""Fitting any family to its elite: the maximum, the ridge that keeps it finite, errors that help."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

from factorwise.errors import ConvergenceWarning, InvalidArgumentError, ShapeError
from factorwise.inference.cross_entropy import Bernoulli, Gaussian, fit, maximize


class Choice:
    """One of several options, likelier the higher the weighted sum of its features; samples are a list."""

    def __init__(self, features):
        self.features = np.asarray(features, dtype=float)
        self.size = self.features.shape[1]

    def sample(self, parameters, count, stream):
        odds = np.cumsum(softmax(self.features @ parameters))
        return [int(np.searchsorted(odds[:-1], stream.uniform(), side="right")) for _ in range(count)]

    def log_prob(self, parameters, samples):
        return log_softmax(self.features @ parameters)[list(samples)]

    def log_prob_gradient(self, parameters, samples, shares):
        expected = softmax(self.features @ parameters) @ self.features
        return shares @ self.features[list(samples)] - shares.sum() * expected


THREE = Choice([[0.0, 1.0], [1.0, 0.5], [2.0, -1.0]])
TWO = Choice([[1.0], [0.0]])


def test_the_gradient_of_the_log_linear_family_is_that_of_its_log_probability():
    point, samples, shares = np.array([0.3, -0.7]), [0, 2, 2, 1], np.array([0.1, 0.2, 0.3, 0.4])
    step = 1e-6
    expected = [
        shares @ (THREE.log_prob(point + axis, samples) - THREE.log_prob(point - axis, samples)) / (2 * step)
        for axis in step * np.eye(2)
    ]
    np.testing.assert_allclose(THREE.log_prob_gradient(point, samples, shares), expected, rtol=1e-7)


def test_the_maximum_of_a_log_linear_family_gives_the_frequencies_of_the_samples():
    shares = np.array([0.2, 0.5, 0.3])
    found = maximize(THREE, [0, 1, 2], shares, np.zeros(2), ridge=0.0)
    np.testing.assert_allclose(softmax(THREE.features @ found), shares, atol=1e-5)


def test_the_maximum_does_not_depend_on_where_the_search_starts():
    shares = np.array([0.2, 0.5, 0.3])
    found = [maximize(THREE, [0, 1, 2], shares, start, ridge=0.01) for start in ([0, 0], [5, -3], [-4, 4])]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, atol=1e-3)


def test_samples_without_a_share_do_not_count_and_repeated_ones_add_up():
    expected = maximize(THREE, [0, 1], [0.25, 0.75], np.zeros(2), ridge=0.1)
    found = maximize(THREE, [0, 2, 1, 1], [0.25, 0.0, 0.5, 0.25], np.zeros(2), ridge=0.1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_sample_without_a_share_may_be_impossible_and_the_others_keep_their_numbers():
    class Partial(Choice):
        def log_prob(self, parameters, samples):
            possible = np.array(samples) != 2
            return np.where(possible, super().log_prob(parameters, samples), -np.inf)

    family = Partial(THREE.features)
    found = maximize(family, [2, 0, 1], [0.0, 0.5, 0.5], np.zeros(2), ridge=0.1)
    np.testing.assert_array_equal(found, maximize(THREE, [0, 1], [0.5, 0.5], np.zeros(2), ridge=0.1))
    with pytest.raises(InvalidArgumentError, match="is -inf for elite sample 2 at"):
        maximize(family, [2, 0, 2], [0.0, 0.5, 0.5], np.zeros(2))


@pytest.mark.parametrize("ridge", [1e-4, 1e-3, 0.1, 2.0])
def test_a_ridge_keeps_a_maximum_at_infinity_finite(ridge):
    """All elite samples are the option with the feature: more weight is always better, but for the ridge."""
    found = maximize(TWO, [0, 0], [0.5, 0.5], np.zeros(1), ridge=ridge)
    expected = brentq(lambda weight: ridge * weight - 1.0 / (1.0 + np.exp(weight)), 0.0, 50.0)
    np.testing.assert_allclose(found, [expected], rtol=1e-2)


def test_without_a_ridge_the_maximum_at_infinity_runs_away():
    assert maximize(TWO, [0], [1.0], np.zeros(1), ridge=0.0)[0] > 10.0
    assert maximize(TWO, [0], [1.0], np.zeros(1))[0] < 6.0


def test_the_ridge_can_hold_the_parameters_to_the_previous_ones():
    previous = np.array([3.0])
    near, free = (
        maximize(TWO, [0, 1], [0.5, 0.5], previous, ridge=1e3, around=a) for a in ("previous", "zero")
    )
    np.testing.assert_allclose(near, previous, atol=1e-2)
    np.testing.assert_allclose(free, 0.0, atol=1e-2)
    expected = brentq(lambda w: 0.2 * (w - 3.0) - 0.5 + 1.0 / (1.0 + np.exp(-w)), -10, 10)
    found = maximize(TWO, [0, 1], [0.5, 0.5], previous, ridge=0.2, around="previous")
    np.testing.assert_allclose(found, [expected], atol=1e-5)


def test_each_parameter_may_have_a_ridge_of_its_own():
    held = maximize(THREE, [2], [1.0], np.zeros(2), ridge=[1e4, 1e-2])
    assert abs(held[0]) < 1e-3
    assert held[1] < -1.0
    same = [maximize(THREE, [2], [1.0], np.zeros(2), ridge=ridge) for ridge in (0.3, [0.3, 0.3])]
    np.testing.assert_array_equal(*same)


def test_a_parameter_that_no_sample_depends_on_goes_to_the_center_of_its_ridge():
    family = Choice([[1.0, 0.0], [0.0, 0.0]])
    zero = maximize(family, [0, 1], [0.7, 0.3], [0.0, 2.0], ridge=0.1)
    stay = maximize(family, [0, 1], [0.7, 0.3], [0.0, 2.0], ridge=0.1, around="previous")
    np.testing.assert_allclose([zero[1], stay[1]], [0.0, 2.0], atol=1e-4)


def test_the_previous_parameters_are_left_alone():
    previous = np.array([0.5, -0.5])
    maximize(THREE, [0], [1.0], previous)
    assert previous.tolist() == [0.5, -0.5]


def test_a_closed_form_is_used_where_there_is_one_and_the_search_where_there_is_none():
    bits = np.array([[1, 0], [1, 1]])
    assert fit(Bernoulli(2), bits, [0.75, 0.25], [0.5, 0.5]).tolist() == [1.0, 0.25]
    found = fit(THREE, [0, 1], [0.5, 0.5], np.zeros(2), ridge=0.2, around="previous")
    expected = maximize(THREE, [0, 1], [0.5, 0.5], np.zeros(2), ridge=0.2, around="previous")
    np.testing.assert_array_equal(found, expected)


def test_too_few_steps_give_a_warning_that_says_so():
    with pytest.warns(ConvergenceWarning, match="after 1 steps with a gradient of .* allow more steps"):
        maximize(THREE, [0, 1, 2], [0.1, 0.1, 0.8], [8.0, 8.0], steps=1)


def test_a_gradient_that_is_not_that_of_the_log_probability_gives_a_warning():
    class Wrong(Choice):
        def log_prob_gradient(self, parameters, samples, shares):
            return -super().log_prob_gradient(parameters, samples, shares)

    with pytest.warns(ConvergenceWarning, match="compare log_prob_gradient with differences of log_prob"):
        maximize(Wrong(THREE.features), [0], [1.0], np.zeros(2), ridge=0.0)


class Broken(Choice):
    """A family that returns what it is told to."""

    def __init__(self, log_prob=None, gradient=None):
        super().__init__(THREE.features)
        self.returned = log_prob, gradient

    def log_prob(self, parameters, samples):
        given = self.returned[0]
        return super().log_prob(parameters, samples) if given is None else np.array(given)

    def log_prob_gradient(self, parameters, samples, shares):
        given = self.returned[1]
        return super().log_prob_gradient(parameters, samples, shares) if given is None else np.array(given)


@pytest.mark.parametrize(
    ("family", "error", "message"),
    [
        (Broken(log_prob=[0.0]), ShapeError, r"log_prob of Broken .* each of 2 samples.*shape \(1,\)"),
        (Broken(log_prob=[0.0, np.nan]), InvalidArgumentError, "is nan for elite sample 1 at parameters"),
        (Broken(log_prob=[-np.inf, 0.0]), InvalidArgumentError, "is -inf for elite sample 0.*logs of odds"),
        (Broken(gradient=[0.0]), ShapeError, r"log_prob_gradient of Broken .* 2 parameters.*shape \(1,\)"),
        (Broken(gradient=[0.0, np.inf]), InvalidArgumentError, "is inf in parameter 1 at parameters"),
    ],
)
def test_a_family_that_returns_nonsense_is_named(family, error, message):
    with pytest.raises(error, match=message):
        maximize(family, [0, 1], [0.5, 0.5], np.zeros(2))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([], [], [0, 0]), {}, InvalidArgumentError, "no samples to fit to"),
        (([0], [0.5, 0.5], [0, 0]), {}, ShapeError, "one entry for each of the 1 samples"),
        (([0, 1], [0.5, 0.6], [0, 0]), {}, InvalidArgumentError, "sum to one.*the sum 1.1"),
        (([0, 1], [np.nan, 0.6], [0, 0]), {}, InvalidArgumentError, "sum to one"),
        (([0], [1.0], [0.0]), {}, ShapeError, r"previous must hold the 2 parameters of Choice.*\(1,\)"),
        (([0], [1.0], [0.0, np.inf]), {}, InvalidArgumentError, r"previous\[1\] is inf.*must be finite"),
        (([0], [1.0], [0, 0]), {"ridge": -1.0}, InvalidArgumentError, "ridge must be zero or more"),
        (([0], [1.0], [0, 0]), {"ridge": [1.0] * 3}, ShapeError, r"each of the 2 parameters.*shape \(3,\)"),
        (
            ([0], [1.0], [0, 0]),
            {"around": "one"},
            InvalidArgumentError,
            "around must be 'zero' or 'previous'",
        ),
        (([0], [1.0], [0, 0]), {"steps": 0}, InvalidArgumentError, "steps must be at least 1"),
    ],
)
def test_bad_input_is_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        maximize(THREE, *arguments, **options)


def test_a_closed_form_that_returns_nonsense_is_named():
    class Short(Gaussian):
        def fit(self, samples, shares):
            return np.zeros(1)

    with pytest.raises(ShapeError, match=r"fit\(...\) must hold the 2 parameters of Short"):
        fit(Short(1), [[0.0]], [1.0], [0.0, 1.0])
