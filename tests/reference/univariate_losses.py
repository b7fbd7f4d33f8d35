"""Convex losses of one number, one line of formulas for each, over arrays.

Values follow from the definitions; the conjugate of a slope t is taken where the loss has that slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from factorwise.kernels.numeric.univariate_losses import (
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
from factorwise.types import Floats, Ints

Function = Callable[[float, float, float], float]


@dataclass(frozen=True, slots=True)
class Formulas:
    """One kind of loss: functions of (place or slope, target, width) and the interval of its slopes."""

    value: Function
    slope: Function
    curvature: Function
    conjugate_slope: Function
    conjugate_curvature: Function
    interval: Callable[[float, float], tuple[float, float]]


def _count_log(count: float, value: float) -> float:
    if count == 0.0:
        return 0.0
    return count * float(np.log(value)) if value > 0.0 else -np.inf


def _over(count: float, value: float) -> float:
    return count / max(value, SMALLEST)


def _smoothed_hinge(short: float, width: float) -> float:
    if short <= 0.0:
        return 0.0
    return short**2 / (2.0 * width) if short < width else short - width / 2.0


def _huber(away: float, width: float) -> float:
    return away**2 / 2.0 if away < width else width * away - width**2 / 2.0


FORMULAS: dict[int, Formulas] = {
    HINGE: Formulas(
        lambda a, c, h: max(c - a, 0.0),
        lambda a, c, h: -float(a < c),
        lambda a, c, h: 0.0,
        lambda t, c, h: c,
        lambda t, c, h: 0.0,
        lambda c, h: (-1.0, 0.0),
    ),
    SMOOTHED_HINGE: Formulas(
        lambda a, c, h: _smoothed_hinge(c - a, h),
        lambda a, c, h: -float(np.clip((c - a) / h, 0.0, 1.0)),
        lambda a, c, h: float(c - h < a < c) / h,
        lambda t, c, h: c + h * t,
        lambda t, c, h: h,
        lambda c, h: (-1.0, 0.0),
    ),
    ABSOLUTE: Formulas(
        lambda a, c, h: abs(a - c),
        lambda a, c, h: float(np.sign(a - c)),
        lambda a, c, h: 0.0,
        lambda t, c, h: c,
        lambda t, c, h: 0.0,
        lambda c, h: (-1.0, 1.0),
    ),
    SQUARED: Formulas(
        lambda a, c, h: (a - c) ** 2 / 2.0,
        lambda a, c, h: a - c,
        lambda a, c, h: 1.0,
        lambda t, c, h: c + t,
        lambda t, c, h: 1.0,
        lambda c, h: (-np.inf, np.inf),
    ),
    HUBER: Formulas(
        lambda a, c, h: _huber(abs(a - c), h),
        lambda a, c, h: float(np.clip(a - c, -h, h)),
        lambda a, c, h: float(abs(a - c) < h),
        lambda t, c, h: c + t,
        lambda t, c, h: 1.0,
        lambda c, h: (-h, h),
    ),
    POISSON: Formulas(
        lambda a, c, h: a - _count_log(c, a),
        lambda a, c, h: 1.0 - _over(c, a),
        lambda a, c, h: _over(_over(c, a), a),
        lambda t, c, h: _over(c, 1.0 - t),
        lambda t, c, h: _over(_over(c, 1.0 - t), 1.0 - t),
        lambda c, h: (-np.inf, 1.0),
    ),
    MULTINOMIAL: Formulas(
        lambda a, c, h: -_count_log(c, a),
        lambda a, c, h: -_over(c, a),
        lambda a, c, h: _over(_over(c, a), a),
        lambda t, c, h: _over(c, -t),
        lambda t, c, h: _over(_over(c, -t), -t),
        lambda c, h: (-np.inf if c > 0.0 else 0.0, 0.0),
    ),
}


def values(kind: Ints, target: Floats, width: Floats, place: Floats, found: Floats) -> None:
    """Each loss at its place."""
    found[:] = [FORMULAS[k].value(a, c, h) for k, c, h, a in _rows(kind, target, width, place)]


def slopes(kind: Ints, target: Floats, width: Floats, place: Floats, found: Floats) -> None:
    """Each derivative at its place."""
    found[:] = [FORMULAS[k].slope(a, c, h) for k, c, h, a in _rows(kind, target, width, place)]


def curvatures(kind: Ints, target: Floats, width: Floats, place: Floats, found: Floats) -> None:
    """Each second derivative at its place."""
    found[:] = [FORMULAS[k].curvature(a, c, h) for k, c, h, a in _rows(kind, target, width, place)]


def conjugates(kind: Ints, target: Floats, width: Floats, slope: Floats, found: Floats) -> None:
    """``t a - loss(a)`` where the loss has slope t: a kink and a count of zero have one such place."""
    for row, (k, c, h, t) in enumerate(_rows(kind, target, width, slope)):
        formulas = FORMULAS[k]
        low, high = formulas.interval(c, h)
        closed = c == 0.0 or k not in (POISSON, MULTINOMIAL)  # whether the greatest slope is reached
        if not (low - SLACK <= t <= high + SLACK and (closed or t < high)):
            found[row] = np.inf
            continue
        within = min(max(t, low), high)
        place = formulas.conjugate_slope(within, c, h)
        found[row] = within * place - formulas.value(place, c, h)


def conjugate_slopes(kind: Ints, target: Floats, width: Floats, slope: Floats, found: Floats) -> None:
    """The place where each loss has its slope."""
    found[:] = [FORMULAS[k].conjugate_slope(t, c, h) for k, c, h, t in _rows(kind, target, width, slope)]


def conjugate_curvatures(kind: Ints, target: Floats, width: Floats, slope: Floats, found: Floats) -> None:
    """The second derivative of each conjugate at its slope."""
    found[:] = [FORMULAS[k].conjugate_curvature(t, c, h) for k, c, h, t in _rows(kind, target, width, slope)]


def slope_intervals(kind: Ints, target: Floats, width: Floats, low: Floats, high: Floats) -> None:
    """Least and greatest slope of each loss."""
    for row in range(len(kind)):
        low[row], high[row] = FORMULAS[int(kind[row])].interval(float(target[row]), float(width[row]))


def _rows(kind: Ints, target: Floats, width: Floats, at: Floats) -> zip[tuple[int, float, float, float]]:
    return zip(kind.tolist(), target.tolist(), width.tolist(), at.tolist(), strict=True)
