r"""Convex functions of one number each, with what every route to the optimum needs of them.

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

Poisson and multinomial leave out what depends on the counts alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import CountsError, InvalidArgumentError, ShapeError
from factorwise.kernels.univariate_losses import (
    ABSOLUTE,
    HINGE,
    HUBER,
    MULTINOMIAL,
    POISSON,
    SLACK,
    SMALLEST,
    SMOOTHED_HINGE,
    SQUARED,
)
from factorwise.types import Bools, Floats

Function = Callable[[Floats, Floats, Floats], Floats]


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of loss, over arrays: functions of (place, target, width) and the interval of its slopes."""

    name: str
    value: Function
    slope: Function
    curvature: Function
    conjugate: Function
    conjugate_slope: Function
    conjugate_curvature: Function
    slopes: Callable[[Floats, Floats], tuple[Floats, Floats]]
    kinked: bool = False


def _log(count: Floats, value: Floats) -> Floats:
    """``count log value``, zero for a count of zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(count > 0, count * np.log(value), 0.0))


def _over(count: Floats, value: Floats) -> Floats:
    """``count / value``, zero for a count of zero; values are kept so large that the result is finite."""
    return np.asarray(count / np.maximum(value, SMALLEST))


def _smoothed(z: Floats, h: Floats) -> Floats:
    inside = np.clip(z, 0.0, h)
    return np.asarray(inside * (z - 0.5 * inside) / h)


def _constant(low: float, high: float) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
    return lambda c, h: (np.full(len(c), low), np.full(len(c), high))


KINDS: dict[int, _Kind] = {
    HINGE: _Kind(
        "hinge",
        lambda a, c, h: np.maximum(c - a, 0.0),
        lambda a, c, h: -(a < c).astype(np.float64),
        lambda a, c, h: np.zeros(len(a)),
        lambda t, c, h: t * c,
        lambda t, c, h: c,
        lambda t, c, h: np.zeros(len(t)),
        _constant(-1.0, 0.0),
        kinked=True,
    ),
    SMOOTHED_HINGE: _Kind(
        "smoothed hinge",
        lambda a, c, h: _smoothed(c - a, h),
        lambda a, c, h: -np.clip((c - a) / h, 0.0, 1.0),
        lambda a, c, h: ((a < c) & (a > c - h)) / h,
        lambda t, c, h: t * c + 0.5 * h * t * t,
        lambda t, c, h: c + h * t,
        lambda t, c, h: h,
        _constant(-1.0, 0.0),
    ),
    ABSOLUTE: _Kind(
        "absolute",
        lambda a, c, h: np.abs(a - c),
        lambda a, c, h: np.sign(a - c),
        lambda a, c, h: np.zeros(len(a)),
        lambda t, c, h: t * c,
        lambda t, c, h: c,
        lambda t, c, h: np.zeros(len(t)),
        _constant(-1.0, 1.0),
        kinked=True,
    ),
    SQUARED: _Kind(
        "squared",
        lambda a, c, h: 0.5 * (a - c) ** 2,
        lambda a, c, h: a - c,
        lambda a, c, h: np.ones(len(a)),
        lambda t, c, h: t * c + 0.5 * t * t,
        lambda t, c, h: c + t,
        lambda t, c, h: np.ones(len(t)),
        _constant(-np.inf, np.inf),
    ),
    HUBER: _Kind(
        "huber",
        lambda a, c, h: h * _smoothed(np.abs(a - c), h),
        lambda a, c, h: np.clip(a - c, -h, h),
        lambda a, c, h: (np.abs(a - c) < h).astype(np.float64),
        lambda t, c, h: t * c + 0.5 * t * t,
        lambda t, c, h: c + t,
        lambda t, c, h: np.ones(len(t)),
        lambda c, h: (-h, h),
    ),
    POISSON: _Kind(
        "poisson",
        lambda a, c, h: a - _log(c, a),
        lambda a, c, h: 1.0 - _over(c, a),
        lambda a, c, h: _over(_over(c, a), a),
        lambda t, c, h: -c + _log(c, _over(c, 1.0 - t)),
        lambda t, c, h: _over(c, 1.0 - t),
        lambda t, c, h: _over(_over(c, 1.0 - t), 1.0 - t),
        lambda c, h: (np.full(len(c), -np.inf), np.ones(len(c))),
    ),
    MULTINOMIAL: _Kind(
        "multinomial",
        lambda a, c, h: -_log(c, a),
        lambda a, c, h: -_over(c, a),
        lambda a, c, h: _over(_over(c, a), a),
        lambda t, c, h: -c + _log(c, _over(c, -t)),
        lambda t, c, h: _over(c, -t),
        lambda t, c, h: _over(_over(c, -t), -t),
        lambda c, h: (np.where(c > 0, -np.inf, 0.0), np.zeros(len(c))),
    ),
}


@dataclass(frozen=True, eq=False)
class Losses:
    """One loss for each measurement.

    kind : int64[measurements]
        Which function, by its number in `factorwise.kernels.univariate_losses`.
    target : float64[measurements]
        The margin m, the center c or the observed count y.
    width : float64[measurements]
        The width h; one where the loss has none.
    """

    kind: NDArray[np.int64]
    target: Floats
    width: Floats

    def __len__(self) -> int:
        return len(self.kind)

    def value(self, place: Floats) -> Floats:
        """Return each loss at its place."""
        return self._each("value", place)

    def slope(self, place: Floats) -> Floats:
        """Return each slope; zero at the kink of an absolute loss, and at that of a hinge."""
        return self._each("slope", place)

    def curvature(self, place: Floats) -> Floats:
        """Return each second derivative; zero at kinks."""
        return self._each("curvature", place)

    def conjugate(self, slope: Floats) -> Floats:
        """Return each conjugate; ``inf`` outside the interval of slopes."""
        low, high = self.slopes
        found = self._each("conjugate", np.clip(slope, low, high))
        beyond = (slope < low - SLACK) | (slope > high + SLACK) | (self.open_ended & (slope >= high))
        return np.where(beyond, np.inf, found)

    def conjugate_slope(self, slope: Floats) -> Floats:
        """Return the place at which each loss has the given slope."""
        return self._each("conjugate_slope", slope)

    def conjugate_curvature(self, slope: Floats) -> Floats:
        """Return the second derivative of each conjugate."""
        return self._each("conjugate_curvature", slope)

    @cached_property
    def slopes(self) -> tuple[Floats, Floats]:
        """Least and greatest slope of each loss."""
        low, high = np.empty((2, len(self)))
        for kind, where in self._kinds:
            low[where], high[where] = kind.slopes(self.target[where], self.width[where])
        return low, high

    @cached_property
    def kinked(self) -> Bools:
        """Which losses have a kink, at their target."""
        return np.isin(self.kind, [code for code, kind in KINDS.items() if kind.kinked])

    @cached_property
    def logarithmic(self) -> Bools:
        """Which losses exist for positive numbers only."""
        return np.isin(self.kind, [POISSON, MULTINOMIAL])

    @cached_property
    def open_ended(self) -> Bools:
        """Which losses have an infinite conjugate at their greatest slope."""
        return self.logarithmic & (self.target > 0)

    def joined(self, *others: Losses) -> Losses:
        """Return these losses and the others, one after the other."""
        parts = (self, *others)
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
        return KINDS[int(self.kind[index])].name

    @cached_property
    def _kinds(self) -> list[tuple[_Kind, Bools | slice]]:
        present = np.unique(self.kind).tolist()
        if len(present) == 1:
            return [(KINDS[present[0]], slice(None))]
        return [(KINDS[code], self.kind == code) for code in present]

    def _each(self, function: str, place: Floats) -> Floats:
        found = np.empty(len(self))
        for kind, where in self._kinds:
            found[where] = getattr(kind, function)(place[where], self.target[where], self.width[where])
        return found


def hinge(margin: ArrayLike = 1.0, *, count: int | None = None) -> Losses:
    """``max(0, margin - a)``: pay for what is missing from the margin. Change the sign of a for "at most"."""
    return _losses(HINGE, margin, 1.0, count)


def smoothed_hinge(margin: ArrayLike = 1.0, width: ArrayLike = 1.0, *, count: int | None = None) -> Losses:
    """A hinge whose kink is a parabola of the given width below the margin."""
    return _losses(SMOOTHED_HINGE, margin, width, count)


def absolute(target: ArrayLike, *, count: int | None = None) -> Losses:
    """Distance from the target."""
    return _losses(ABSOLUTE, target, 1.0, count)


def squared(target: ArrayLike, *, count: int | None = None) -> Losses:
    """Half the squared distance from the target."""
    return _losses(SQUARED, target, 1.0, count)


def huber(target: ArrayLike, width: ArrayLike = 1.0, *, count: int | None = None) -> Losses:
    """Half the squared distance up to ``width``, linear from there."""
    return _losses(HUBER, target, width, count)


def poisson(counts: ArrayLike) -> Losses:
    """Minus the log-likelihood of counts whose expectations are measured, up to a constant."""
    return _losses(POISSON, _checked_counts(counts), 1.0, None)


def multinomial(counts: ArrayLike) -> Losses:
    """Minus the log-likelihood of counts whose probabilities are measured, up to a constant."""
    return _losses(MULTINOMIAL, _checked_counts(counts), 1.0, None)


def _checked_counts(counts: ArrayLike) -> Floats:
    given = np.atleast_1d(np.asarray(counts, dtype=np.float64))
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(bad):
        raise CountsError(
            f"count {int(bad[0])} is {given.ravel()[bad[0]]}: a count is finite and zero or more. Leave the"
            " measurement out where nothing was counted."
        )
    return given.ravel()


def _losses(kind: int, target: ArrayLike, width: ArrayLike, count: int | None) -> Losses:
    targets, widths = np.atleast_1d(np.asarray(target, float)), np.atleast_1d(np.asarray(width, float))
    shape = (count,) if count is not None else np.broadcast_shapes(targets.shape, widths.shape)
    if len(shape) != 1:
        raise ShapeError(f"losses come in a row, but targets of shape {shape} were given: flatten them.")
    name = KINDS[kind].name
    if not np.isfinite(targets).all():
        raise InvalidArgumentError(f"a {name} loss has a target that is not finite: {targets}.")
    if not (np.isfinite(widths) & (widths > 0)).all():
        raise InvalidArgumentError(f"the width of a {name} loss must be greater than zero: {widths}.")
    return Losses(
        np.full(shape, kind), np.broadcast_to(targets, shape).copy(), np.broadcast_to(widths, shape).copy()
    )
