"""Families with a closed form: probabilities, gradients, fits, degenerate samples, honest draws."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.cross_entropy import (
    Bernoulli,
    Categorical,
    ClosedFormFamily,
    Gaussian,
    families,
    maximize,
)
from factorwise.rng import Stream

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test

BITS, LABELS, NUMBERS = Bernoulli(3), Categorical((2, 3, 1, 4)), Gaussian(2)
INNER = {
    BITS: np.array([0.2, 0.5, 0.9]),
    LABELS: np.array([0.3, 0.7, 0.2, 0.5, 0.3, 1.0, 0.1, 0.2, 0.3, 0.4]),
    NUMBERS: np.array([-1.0, 2.0, 0.5, 3.0]),
}
FAMILIES = pytest.mark.parametrize("family", INNER, ids=lambda family: type(family).__name__)


def shares_of(count, seed=0):
    weights = np.random.default_rng(seed).random(count)
    return weights / weights.sum()


def differences(function, point, step=1e-6):
    """Gradient by central differences."""
    return np.array(
        [
            (function(point + step * axis) - function(point - step * axis)) / (2 * step)
            for axis in np.eye(len(point))
        ]
    )


class OverAllReals:
    """A family with its parameters replaced by numbers of any size: log-odds, logs; without a closed form."""

    def __init__(self, family):
        self.family = family
        self.size = family.size

    def inner(self, parameters):
        if isinstance(self.family, Bernoulli):
            return 1.0 / (1.0 + np.exp(-parameters))
        if isinstance(self.family, Categorical):
            return np.exp(parameters)
        return np.concatenate([parameters[: self.size // 2], np.exp(parameters[self.size // 2 :])])

    def slope(self, parameters):
        inner = self.inner(parameters)
        if isinstance(self.family, Bernoulli):
            return inner * (1.0 - inner)
        if isinstance(self.family, Categorical):
            return inner
        return np.concatenate([np.ones(self.size // 2), inner[self.size // 2 :]])

    def sample(self, parameters, count, stream):
        return self.family.sample(self.inner(parameters), count, stream)

    def log_prob(self, parameters, samples):
        return self.family.log_prob(self.inner(parameters), samples)

    def log_prob_gradient(self, parameters, samples, shares):
        gradient = self.family.log_prob_gradient(self.inner(parameters), samples, shares)
        return self.slope(parameters) * gradient


@FAMILIES
def test_the_gradient_is_that_of_the_weighted_log_probability(family):
    samples = family.sample(INNER[family], 20, Stream(3))
    shares = shares_of(20)
    gradient = family.log_prob_gradient(INNER[family], samples, shares)
    expected = differences(lambda point: shares @ family.log_prob(point, samples), INNER[family])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


@FAMILIES
def test_the_gradient_takes_shares_that_do_not_sum_to_one(family):
    samples = family.sample(INNER[family], 20, Stream(3))
    shares = 2.5 * shares_of(20)
    gradient = family.log_prob_gradient(INNER[family], samples, shares)
    expected = differences(lambda point: shares @ family.log_prob(point, samples), INNER[family])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-8)


@FAMILIES
def test_the_closed_form_is_where_the_search_for_the_highest_likelihood_ends(family):
    samples = family.sample(INNER[family], 200, Stream(5))
    shares = shares_of(200)
    free = OverAllReals(family)
    assert not isinstance(free, ClosedFormFamily)
    found = free.inner(maximize(free, samples, shares, np.zeros(family.size), ridge=0.0))
    fitted = family.fit(samples, shares)
    if family is LABELS:  # the search may scale the labels of a position as it likes
        blocks = np.split(found, np.cumsum(LABELS.cardinality)[:-1])
        found = np.concatenate([block / block.sum() for block in blocks])
    np.testing.assert_allclose(found, fitted, atol=2e-5)


@FAMILIES
def test_no_other_parameters_are_likelier_than_the_closed_form(family):
    samples = family.sample(INNER[family], 50, Stream(6))
    shares = shares_of(50, seed=1)
    fitted = family.fit(samples, shares)
    highest = shares @ family.log_prob(fitted, samples)
    draw = np.random.default_rng(2)
    for _ in range(200):
        nearby = np.clip(fitted + draw.normal(scale=0.1, size=family.size), 1e-3, None)
        if family is BITS:
            nearby = np.clip(nearby, 0.0, 1.0 - 1e-3)
        assert shares @ family.log_prob(nearby, samples) <= highest + 1e-12


@FAMILIES
def test_the_same_stream_draws_the_same_samples_and_another_one_others(family):
    first, again, other = (family.sample(INNER[family], 30, Stream(seed)) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@FAMILIES
def test_a_stream_goes_on_from_batch_to_batch(family):
    stream = Stream(7)
    first, second = (family.sample(INNER[family], 30, stream) for _ in range(2))
    assert (first != second).any()


@pytest.mark.parametrize("family", [BITS, LABELS], ids=["Bernoulli", "Categorical"])
def test_log_probabilities_are_products_of_probabilities_and_sum_to_one(family):
    parameters = INNER[family]
    cardinality = (2, 2, 2) if family is BITS else family.cardinality
    worlds = list(product(*map(range, cardinality)))
    if family is BITS:
        tables = [(1.0 - p, p) for p in parameters]
    else:
        tables = np.split(parameters, np.cumsum(cardinality)[:-1])
    expected = [np.prod([table[x] for table, x in zip(tables, world, strict=True)]) for world in worlds]
    found = np.exp(family.log_prob(parameters, worlds))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.sum() == pytest.approx(1.0)


def test_gaussian_log_densities_are_those_of_scipy():
    samples = NUMBERS.sample(INNER[NUMBERS], 10, Stream(1))
    expected = norm.logpdf(samples, INNER[NUMBERS][:2], INNER[NUMBERS][2:]).sum(axis=1)
    np.testing.assert_allclose(NUMBERS.log_prob(INNER[NUMBERS], samples), expected, rtol=1e-12)


def test_only_the_ratios_of_categorical_parameters_matter():
    scaled = INNER[LABELS] * np.repeat([3.0, 0.1, 7.0, 2.0], LABELS.cardinality)
    samples = LABELS.sample(INNER[LABELS], 40, Stream(2))
    np.testing.assert_array_equal(samples, LABELS.sample(scaled, 40, Stream(2)))
    np.testing.assert_allclose(LABELS.log_prob(scaled, samples), LABELS.log_prob(INNER[LABELS], samples))


def test_fits_are_weighted_frequencies_means_and_deviations():
    shares = [0.5, 0.3, 0.2]
    np.testing.assert_allclose(Bernoulli(2).fit([[1, 0], [0, 0], [1, 1]], shares), [0.7, 0.2])
    np.testing.assert_allclose(
        Categorical((2, 3)).fit([[0, 2], [1, 2], [0, 1]], shares), [0.7, 0.3, 0.0, 0.2, 0.8]
    )
    np.testing.assert_allclose(Gaussian(1).fit([[1.0], [2.0], [4.0]], shares), [1.9, np.sqrt(1.29)])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda weights: sum(weights) > 1e-3))
def test_a_fit_to_equal_samples_is_certain_and_in_range(weights):
    shares = np.array(weights) / sum(weights)
    ones = np.ones((len(shares), 2), int)
    fitted = Bernoulli(2).fit(ones, shares)
    assert (fitted <= 1.0).all()
    np.testing.assert_allclose(Bernoulli(2).log_prob(fitted, ones), 0.0, atol=1e-12)
    labels = Categorical((3, 2)).fit(ones, shares)
    np.testing.assert_allclose(labels, [0, 1, 0, 0, 1], atol=1e-12)


def test_probabilities_of_zero_and_one_rule_out_and_never_draw():
    certain = np.array([0.0, 1.0, 0.5])
    draws = BITS.sample(certain, 500, Stream(1))
    assert (draws[:, 0] == 0).all()
    assert (draws[:, 1] == 1).all()
    np.testing.assert_allclose(
        BITS.log_prob(certain, [[0, 1, 1], [1, 1, 1], [0, 0, 1]]), [np.log(0.5), -np.inf, -np.inf]
    )
    labels = Categorical((3, 3))
    certain = np.array([0.0, 1.0, 0.0, 0.5, 0.5, 0.0])
    draws = labels.sample(certain, 500, Stream(1))
    assert (draws[:, 0] == 1).all()
    assert set(draws[:, 1].tolist()) == {0, 1}
    np.testing.assert_allclose(labels.log_prob(certain, [[1, 0], [0, 0]]), [np.log(0.5), -np.inf])


def test_the_gradient_at_certainty_is_finite_for_what_can_happen_and_infinite_for_what_cannot():
    certain = np.array([0.0, 1.0, 0.5])
    shares = np.ones(1)
    np.testing.assert_allclose(BITS.log_prob_gradient(certain, [[0, 1, 1]], shares), [-1.0, 1.0, 2.0])
    np.testing.assert_array_equal(
        BITS.log_prob_gradient(certain, [[1, 0, 1]], shares), [np.inf, -np.inf, 2.0]
    )
    labels = Categorical((2,))
    np.testing.assert_allclose(labels.log_prob_gradient(np.array([0.0, 1.0]), [[1]], shares), [-1.0, 0.0])
    assert labels.log_prob_gradient(np.array([0.0, 1.0]), [[0]], shares)[0] == np.inf


def test_the_largest_draw_never_gives_a_label_that_is_impossible(monkeypatch):
    """Ten times a tenth sums to a little less than one: the largest draw lies above every sum."""

    class Largest:
        def random(self, shape):
            return np.full(shape, 1.0 - 2.0**-53)

    parameters = np.array([0.1] * 10 + [0.0, 0.0])
    assert np.cumsum(parameters)[-1] <= 1.0 - 2.0**-53
    monkeypatch.setattr(families, "_generator", lambda count, stream: Largest())
    assert Categorical((12,)).sample(parameters, 2, Stream(0)).tolist() == [[9], [9]]


def test_samples_that_agree_get_the_smallest_deviation():
    family = Gaussian(2, floor=0.01)
    fitted = family.fit([[1.0, 2.0], [1.0, 3.0]], [0.5, 0.5])
    np.testing.assert_allclose(fitted, [1.0, 2.5, 0.01, 0.5])
    assert np.isfinite(family.log_prob(fitted, [[1.0, 2.0]])).all()


def test_starting_points_are_uniform_or_joined():
    np.testing.assert_array_equal(Bernoulli(2).uniform, [0.5, 0.5])
    np.testing.assert_allclose(Categorical((2, 4)).uniform, [0.5] * 2 + [0.25] * 4)
    np.testing.assert_array_equal(Gaussian(2).parameters(1.0, [2.0, 3.0]), [1.0, 1.0, 2.0, 3.0])


@pytest.mark.statistical
def test_draws_have_the_probabilities_that_were_declared(seed):
    count = 20_000
    for family in (BITS, LABELS):
        worlds, observed = np.unique(
            family.sample(INNER[family], count, Stream(seed)), axis=0, return_counts=True
        )
        expected = count * np.exp(family.log_prob(INNER[family], worlds))
        assert expected.sum() == pytest.approx(count)  # every world was seen
        assert chisquare(observed, expected).pvalue > FALSE_ALARM
    draws = NUMBERS.sample(INNER[NUMBERS], count, Stream(seed))
    for column, mean, deviation in zip(draws.T, INNER[NUMBERS][:2], INNER[NUMBERS][2:], strict=True):
        assert kstest(column, norm(mean, deviation).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bernoulli(0), "bits must be at least 1, but 0 was given"),
        (lambda: Categorical(()), "cardinality must be the labels of at least one position"),
        (lambda: Categorical((2, 0)), "cardinality must be at least 1 label at every position"),
        (lambda: Gaussian(0), "dimensions must be at least 1"),
        (
            lambda: Gaussian(1, floor=0.0),
            "floor must be a finite number greater than zero, but 0.0 was given",
        ),
        (lambda: BITS.sample(INNER[BITS], 0, Stream(0)), "count must be at least 1, but 0 was given"),
        (lambda: BITS.log_prob([0.5, 1.5, 0.5], [[0, 0, 0]]), r"parameters\[1\] is 1.5.*from 0 to 1"),
        (lambda: BITS.log_prob([0.5, np.nan, 0.5], [[0, 0, 0]]), r"parameters\[1\] is nan.*must be finite"),
        (lambda: BITS.log_prob(INNER[BITS], [[0, 0, 2]]), "zeros and ones only"),
        (lambda: BITS.fit([[0, 0, 1]], [0.5]), "sum to one.*the sum 0.5: divide nonnegative weights"),
        (lambda: BITS.fit([[0, 0, 1]] * 2, [1.5, -0.5]), "the smallest is -0.5"),
        (lambda: BITS.fit(np.zeros((0, 3), int), []), "no samples to fit to: give at least one"),
        (lambda: LABELS.log_prob(-INNER[LABELS], [[0, 0, 0, 0]]), r"parameters\[0\] is -0.3.*zero or more"),
        (lambda: Categorical((1, 2)).log_prob([1, 0, 0], [[0, 0]]), r"parameters\[1\] and all others.*zero"),
        (lambda: LABELS.log_prob(INNER[LABELS], [[0, 3, 0, 0]]), "labels from 0 to below"),
        (lambda: LABELS.log_prob(INNER[LABELS], [[0, -1, 0, 0]]), "labels from 0 to below"),
        (lambda: LABELS.log_prob(INNER[LABELS], [[0.0, 1.0, 0.0, 0.0]]), "as whole numbers"),
        (lambda: NUMBERS.log_prob([0, 0, 1, 0], [[0, 0]]), r"parameters\[3\] is 0.*greater than zero"),
        (lambda: NUMBERS.fit([[0, np.nan]], [1.0]), "must be finite numbers"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InvalidArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BITS.log_prob([0.5], [[0, 0, 0]]), r"the 3 parameters of Bernoulli.*shape \(1,\)"),
        (lambda: BITS.log_prob(INNER[BITS], [0, 0, 0]), r"shape \(count, 3\), but have shape \(3,\)"),
        (lambda: LABELS.log_prob(INNER[LABELS], [[0, 0]]), r"shape \(count, 4\), but have shape \(1, 2\)"),
        (lambda: NUMBERS.fit([[0.0, 0.0]], [0.5, 0.5]), r"each of the 1 samples, but have shape \(2,\)"),
    ],
)
def test_wrong_shapes_are_named(call, message):
    with pytest.raises(ShapeError, match=message):
        call()
