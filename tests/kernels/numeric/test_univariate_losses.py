import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.inference.message_passing.projection.losses import NAMES, Losses
from factorwise.kernels.numeric import univariate_losses as kernels
from factorwise.kernels.numeric.univariate_losses import HUBER, MULTINOMIAL, POISSON, SMOOTHED_HINGE, SQUARED
from reference import univariate_losses as reference

AT_PLACES = ("values", "slopes", "curvatures")
AT_SLOPES = ("conjugates", "conjugate_slopes", "conjugate_curvatures")
numbers = st.one_of(st.floats(-3.0, 3.0), st.sampled_from([-1.0, 0.0, 1.0]))
every_kind = pytest.mark.parametrize("kind", NAMES, ids=NAMES.get)


def single(kind, target, width):
    return Losses(np.array([kind]), np.array([target]), np.array([width]))


def answered(module, function, *losses_and_numbers):
    found = np.empty(len(losses_and_numbers[0]))
    getattr(module, function)(*losses_and_numbers, found)
    return found


@settings(deadline=None, max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(NAMES)), st.floats(0.0, 3.0), st.floats(0.1, 2.0), numbers), min_size=1
    )
)
def test_compiled_losses_equal_the_plain_ones(rows):
    kind, target, width, at = (np.array(column) for column in zip(*rows, strict=True))
    place = np.where(np.isin(kind, [POISSON, MULTINOMIAL]), np.abs(at), at)
    for names, asked in ((AT_PLACES, place), (AT_SLOPES, at)):
        for name in names:
            plain = answered(reference, name, kind, target, width, asked)
            compiled = answered(kernels, name, kind, target, width, asked)
            np.testing.assert_allclose(compiled, plain, rtol=1e-12, atol=1e-12, err_msg=name)
    intervals = np.empty((2, 2, len(kind)))
    kernels.slope_intervals(kind, target, width, *intervals[0])
    reference.slope_intervals(kind, target, width, *intervals[1])
    np.testing.assert_array_equal(intervals[0], intervals[1])
    assert [kernels.has_kink(each) for each in kind] == Losses(kind, target, width).kinked.tolist()


@pytest.mark.parametrize("slope", [-1e-90, -1e-100, -6e-101, -1e-263])
def test_the_conjugate_goes_on_in_a_straight_line_where_its_slope_stops_growing(slope):
    losses = np.array([MULTINOMIAL]), np.array([1.5]), np.array([1.0])
    plain = answered(reference, "conjugates", *losses, np.array([slope]))
    assert answered(kernels, "conjugates", *losses, np.array([slope])) == pytest.approx(plain, rel=1e-14)


@every_kind
@settings(deadline=None, max_examples=60)
@given(st.floats(0.1, 3.0), st.floats(0.1, 2.0), st.floats(0.05, 3.0), st.floats(-0.95, 0.95))
def test_a_loss_and_its_conjugate_meet_at_the_slope_and_nowhere_else(kind, target, width, place, other):
    loss = single(kind, target, width)
    at = np.array([place])
    slope = loss.slope(at)
    assert loss.conjugate(slope) + loss.value(at) == pytest.approx(slope * at, abs=1e-9)
    aside = np.array([other * (width if kind == HUBER else 1.0)])
    assert (loss.conjugate(aside) + loss.value(at) >= aside * at - 1e-12).all()


@every_kind
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
