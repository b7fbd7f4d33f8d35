r"""Convex functions of one number each, with everything that solvers need of them.

Each loss :math:`\ell(a)` comes with its slope, its curvature and its conjugate
:math:`\ell^*(t) = \sup_a\, ta - \ell(a)`, which is finite for slopes t in an interval only.

==============  ==================================================================  ================
hinge           max(0, m - a)                                                       t in [-1, 0]
smoothed hinge  0 below z = 0, z^2 / 2h up to z = h, then z - h / 2; z = m - a      t in [-1, 0]
absolute        abs(a - c)                                                          t in [-1, 1]
squared         (a - c)^2 / 2                                                       all t
huber           (a - c)^2 / 2 up to a distance of h, then h abs(a - c) - h^2 / 2    t in [-h, h]
poisson         a - y log a, the expected count a of an observed count y            t < 1
multinomial     -y log a, the probability a of what was observed y times            t < 0
==============  ==================================================================  ================

Poisson and multinomial omit terms that depend only on the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import CountsError, InvalidArgumentError, ShapeError
from factorwise.kernels.numeric import univariate_losses as kernels
from factorwise.kernels.numeric.univariate_losses import (
    ABSOLUTE,
    HINGE,
    HUBER,
    MULTINOMIAL,
    POISSON,
    SMOOTHED_HINGE,
    SQUARED,
)
from factorwise.types import Bools, Floats, Int64s

NAMES = {
    HINGE: "hinge",
    SMOOTHED_HINGE: "smoothed hinge",
    ABSOLUTE: "absolute",
    SQUARED: "squared",
    HUBER: "huber",
    POISSON: "poisson",
    MULTINOMIAL: "multinomial",
}


@dataclass(frozen=True, eq=False)
class Losses:
    """One loss for each measurement.

    kind : int64[measurements]
        Which function, by its number in `factorwise.kernels.numeric.univariate_losses`.
    target : float64[measurements]
        The margin m, the center c or the observed count y.
    width : float64[measurements]
        The width h; one where the loss has none.
    """

    kind: Int64s
    target: Floats
    width: Floats

    def __len__(self) -> int:
        return len(self.kind)

    def value(self, at: Floats) -> Floats:
        """Return each loss at its number."""
        return self._each(kernels.values, at)

    def slope(self, at: Floats) -> Floats:
        """Return each slope; zero at the kink of an absolute loss, and at that of a hinge."""
        return self._each(kernels.slopes, at)

    def curvature(self, at: Floats) -> Floats:
        """Return each second derivative; zero at kinks."""
        return self._each(kernels.curvatures, at)

    def conjugate(self, slope: Floats) -> Floats:
        """Return each conjugate; ``inf`` outside the interval of slopes."""
        return self._each(kernels.conjugates, slope)

    def conjugate_slope(self, slope: Floats) -> Floats:
        """Return the number at which each loss has the given slope."""
        return self._each(kernels.conjugate_slopes, slope)

    def conjugate_curvature(self, slope: Floats) -> Floats:
        """Return the second derivative of each conjugate."""
        return self._each(kernels.conjugate_curvatures, slope)

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        """Least and greatest slope of each loss."""
        low, high = np.empty((2, len(self)))
        kernels.slope_intervals(self.kind, self.target, self.width, low, high)
        return low, high

    @cached_property
    def kinked(self) -> Bools:
        """Which losses have a kink, at their target."""
        return np.isin(self.kind, [HINGE, ABSOLUTE])

    @cached_property
    def logarithmic(self) -> Bools:
        """Which losses are defined for positive numbers only."""
        return np.isin(self.kind, [POISSON, MULTINOMIAL])

    @cached_property
    def open_ended(self) -> Bools:
        """Which losses have an infinite conjugate at their greatest slope."""
        return self.logarithmic & (self.target > 0)

    def joined(self, *more: Losses) -> Losses:
        """Return these losses and the others, one after the other."""
        parts = (self, *more)
        return Losses(
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.target for part in parts]),
            np.concatenate([part.width for part in parts]),
        )

    def repeated(self, count: int) -> Losses:
        """Return a single loss ``count`` times."""
        return Losses(
            np.repeat(self.kind, count), np.repeat(self.target, count), np.repeat(self.width, count)
        )

    def name_of(self, index: int) -> str:
        """Return the name of one loss, for messages."""
        return NAMES[int(self.kind[index])]

    def _each(self, function: Callable[..., None], at: Floats) -> Floats:
        if at.shape != self.target.shape:
            raise ShapeError(f"{len(self)} losses were asked at {at.shape} numbers: give one for each.")
        result = np.empty(len(self))
        function(self.kind, self.target, self.width, at, result)
        return result


def hinge(margin: ArrayLike = 1.0, *, count: int | None = None) -> Losses:
    """Return the loss ``max(0, margin - a)``, for lower limits; change the sign of a for upper limits."""
    return _losses(HINGE, margin, 1.0, count)


def smoothed_hinge(margin: ArrayLike = 1.0, width: ArrayLike = 1.0, *, count: int | None = None) -> Losses:
    """Return a hinge whose kink is replaced by a parabola of the given width below the margin."""
    return _losses(SMOOTHED_HINGE, margin, width, count)


def absolute(target: ArrayLike, *, count: int | None = None) -> Losses:
    """Return the distance from the target."""
    return _losses(ABSOLUTE, target, 1.0, count)


def squared(target: ArrayLike, *, count: int | None = None) -> Losses:
    """Return half the squared distance from the target."""
    return _losses(SQUARED, target, 1.0, count)


def huber(target: ArrayLike, width: ArrayLike = 1.0, *, count: int | None = None) -> Losses:
    """Return half the squared distance up to ``width``, and a linear loss beyond."""
    return _losses(HUBER, target, width, count)


def poisson(counts: ArrayLike) -> Losses:
    """Return minus the log-likelihood of counts whose expectations are measured, up to a constant."""
    return _losses(POISSON, _checked_counts(counts), 1.0, None)


def multinomial(counts: ArrayLike) -> Losses:
    """Return minus the log-likelihood of counts whose probabilities are measured, up to a constant."""
    return _losses(MULTINOMIAL, _checked_counts(counts), 1.0, None)


def _checked_counts(counts: ArrayLike) -> Floats:
    array = np.atleast_1d(np.asarray(counts, dtype=np.float64))
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise CountsError(
            f"count {int(bad[0])} is {array.ravel()[bad[0]]}: counts must be finite and zero or more."
            " Leave the measurement out if nothing was counted."
        )
    return array.ravel()


def _losses(kind: int, target: ArrayLike, width: ArrayLike, count: int | None) -> Losses:
    targets, widths = np.atleast_1d(np.asarray(target, float)), np.atleast_1d(np.asarray(width, float))
    shape = (count,) if count is not None else np.broadcast_shapes(targets.shape, widths.shape)
    if len(shape) != 1:
        raise ShapeError(f"targets of losses must be a flat array, but have shape {shape}: flatten them.")
    name = NAMES[kind]
    if not np.isfinite(targets).all():
        raise InvalidArgumentError(f"a {name} loss has a target that is not finite: {targets}.")
    if not (np.isfinite(widths) & (widths > 0)).all():
        raise InvalidArgumentError(f"the width of a {name} loss must be greater than zero: {widths}.")
    return Losses(
        np.full(shape, kind), np.broadcast_to(targets, shape).copy(), np.broadcast_to(widths, shape).copy()
    )
