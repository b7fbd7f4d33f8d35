"""Priors are the penalties their densities say they are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.learning.likelihood.priors import Prior

positive = st.floats(0.1, 100.0)
weights = st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=5).map(np.array)


@given(positive, weights)
def test_a_gaussian_prior_is_minus_the_log_density_up_to_a_constant(variance, w):
    density = stats.norm(scale=np.sqrt(variance))
    fall = density.logpdf(0.0) * len(w) - density.logpdf(w).sum()
    assert Prior.gaussian(variance).penalty(w) == pytest.approx(fall, rel=1e-9, abs=1e-9)


@given(positive, weights)
def test_a_laplacian_prior_is_minus_the_log_density_up_to_a_constant(scale, w):
    density = stats.laplace(scale=scale)
    fall = density.logpdf(0.0) * len(w) - density.logpdf(w).sum()
    assert Prior.laplace(scale).penalty(w) == pytest.approx(fall, rel=1e-9, abs=1e-9)


def test_crfsuites_c2_of_one_is_a_variance_of_one_half():
    assert Prior.gaussian(0.5) == Prior(l2=1.0)
    assert Prior.laplace(0.25) == Prior(l1=4.0)
    assert Prior.elastic_net(0.1, 0.2) == Prior(l1=0.1, l2=0.2)
    assert Prior.none() == Prior()


@given(weights)
def test_the_smooth_gradient_is_the_slope_of_the_squared_part(w):
    prior, h = Prior(l2=0.7), 1e-4
    slopes = [(prior.penalty(w + h * e) - prior.penalty(w - h * e)) / (2 * h) for e in np.eye(len(w))]
    np.testing.assert_allclose(prior.smooth_gradient(w), slopes, rtol=1e-6, atol=1e-6)


def test_weights_left_out_pay_the_squared_part_only():
    prior = Prior(l1=2.0, l2=0.5).on([True, False])
    assert prior.penalty([1.0, -3.0]) == 2.0 + 0.5 * 10.0


def test_the_violation_is_zero_exactly_where_no_small_change_helps():
    prior = Prior(l1=1.0).on([True, True, True, False])
    slopes = prior.violation([0.0, 0.0, 2.0, 0.0], [0.9, -1.5, -1.0, 0.1])
    np.testing.assert_allclose(slopes, [0.0, -0.5, 0.0, 0.1], atol=1e-15)
    both = Prior(l1=1.0, l2=0.25).violation([2.0, -4.0], [0.5, 3.0])
    np.testing.assert_allclose(both, [0.5 + 1.0 + 1.0, 3.0 - 2.0 - 1.0], atol=1e-15)


@pytest.mark.parametrize(
    ("build", "remedy"),
    [
        (lambda: Prior(l1=-1.0), "l1 must be a finite number, zero or more"),
        (lambda: Prior(l2=np.inf), "l2 must be a finite number, zero or more"),
        (lambda: Prior(l2=np.nan), "l2 must be a finite number, zero or more"),
        (lambda: Prior.gaussian(0.0), "variance must be greater than zero"),
        (lambda: Prior.laplace(-2.0), "scale must be greater than zero"),
    ],
)
def test_prices_and_widths_that_make_no_sense_are_refused(build, remedy):
    with pytest.raises(InvalidArgumentError, match=remedy):
        build()


def test_a_mask_of_another_length_is_refused():
    with pytest.raises(ShapeError, match="one truth value per weight"):
        Prior(l1=1.0).on([True]).penalty([1.0, 2.0])
    with pytest.raises(ShapeError, match="flat array"):
        Prior(l1=1.0).on([[True]])
