import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.inference.message_passing.projection.losses import KINDS, Losses
from factorwise.kernels import univariate_losses as kernels
from factorwise.kernels.univariate_losses import HUBER, MULTINOMIAL, POISSON, SMOOTHED_HINGE, SQUARED

numbers = st.floats(-3.0, 3.0)


def single(kind, target, width):
    return Losses(np.array([kind]), np.array([target]), np.array([width]))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: KINDS[kind].name)
@settings(deadline=None, max_examples=80)
@given(st.floats(0.0, 3.0), st.floats(0.1, 2.0), st.one_of(numbers, st.sampled_from([-1.0, 0.0, 1.0])))
def test_compiled_losses_equal_the_plain_ones(kind, target, width, place):
    plain = single(kind, target, width)
    at = np.array([abs(place) if kind in (POISSON, MULTINOMIAL) else place])
    assert kernels.loss_value(kind, target, width, at[0]) == pytest.approx(plain.value(at)[0], abs=1e-13)
    assert kernels.loss_slope(kind, target, width, at[0]) == pytest.approx(plain.slope(at)[0], abs=1e-13)
    found = kernels.loss_conjugate(kind, target, width, place)
    assert found == pytest.approx(plain.conjugate(np.array([place]))[0], abs=1e-12)
    assert kernels.slope_interval(kind, target, width) == tuple(end[0] for end in plain.slopes)
    assert kernels.has_kink(kind) == plain.kinked[0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: KINDS[kind].name)
@settings(deadline=None, max_examples=60)
@given(st.floats(0.1, 3.0), st.floats(0.1, 2.0), st.floats(0.05, 3.0), st.floats(-0.95, 0.95))
def test_a_loss_and_its_conjugate_meet_at_the_slope_and_nowhere_else(kind, target, width, place, other):
    loss = single(kind, target, width)
    at = np.array([place])
    slope = loss.slope(at)
    assert loss.conjugate(slope) + loss.value(at) == pytest.approx(slope * at, abs=1e-9)
    aside = np.array([other * (width if kind == HUBER else 1.0)])
    assert (loss.conjugate(aside) + loss.value(at) >= aside * at - 1e-12).all()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: KINDS[kind].name)
def test_slopes_and_curvatures_are_derivatives(kind):
    random = np.random.default_rng(kind)
    for place in random.uniform(0.3, 2.5, 20):
        loss, step = single(kind, 1.234, 0.7), 1e-6
        left, right = np.array([place - step]), np.array([place + step])
        slope = (loss.value(right) - loss.value(left)) / (2 * step)
        assert loss.slope(np.array([place])) == pytest.approx(slope, abs=1e-6)
        bent = (loss.slope(right) - loss.slope(left)) / (2 * step)
        assert loss.curvature(np.array([place])) == pytest.approx(bent, abs=1e-5)


@pytest.mark.parametrize("kind", [SMOOTHED_HINGE, SQUARED, HUBER, POISSON, MULTINOMIAL])
def test_derivatives_of_conjugates_are_derivatives(kind):
    loss, step = single(kind, 1.5, 0.7), 1e-6
    for slope in (-0.6, -0.3, -0.1):
        left, at, right = (np.array([slope + side * step]) for side in (-1, 0, 1))
        first = (loss.conjugate(right) - loss.conjugate(left)) / (2 * step)
        assert loss.conjugate_slope(at) == pytest.approx(first, rel=1e-6)
        second = (loss.conjugate_slope(right) - loss.conjugate_slope(left)) / (2 * step)
        assert loss.conjugate_curvature(at) == pytest.approx(second, rel=1e-4)
