"""Convex losses of one number by kind: values, conjugates and their derivatives.

The losses are defined in `factorwise.inference.message_passing.projection.losses`. The kernels at the end
process many losses at once: ``kind`` int64[n], ``target``, ``width`` and the arguments float64[n]; the last
array gets the results.
"""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.types import Floats, Ints

HINGE, SMOOTHED_HINGE, ABSOLUTE, SQUARED, HUBER, POISSON, MULTINOMIAL = range(7)
SMALLEST = 1e-100  # expected count below which slopes stop growing, because their squares would overflow
SLACK = 1e-12  # tolerance for slopes that rounding moves out of their interval


@inlined_kernel
def has_kink(kind: int) -> bool:
    """Return whether the loss has a kink at its target."""
    return kind == HINGE or kind == ABSOLUTE


@inlined_kernel
def _count_log(count: float, value: float) -> float:
    if count == 0.0:
        return 0.0
    return count * np.log(value) if value > 0.0 else -np.inf


@inlined_kernel
def loss_value(kind: int, target: float, width: float, place: float) -> float:
    """Return the loss at ``place``."""
    if kind == HINGE:
        return max(target - place, 0.0)
    if kind == SMOOTHED_HINGE:
        inside = min(max(target - place, 0.0), width)
        return inside * (target - place - 0.5 * inside) / width
    if kind == ABSOLUTE:
        return abs(place - target)
    if kind == SQUARED:
        return 0.5 * (place - target) ** 2
    if kind == HUBER:
        inside = min(abs(place - target), width)
        return inside * (abs(place - target) - 0.5 * inside)
    if kind == POISSON:
        return place - _count_log(target, place)
    return -_count_log(target, place)


@inlined_kernel
def loss_slope(kind: int, target: float, width: float, place: float) -> float:
    """Return the derivative at ``place``; zero at kinks."""
    if kind == HINGE:
        return -1.0 if place < target else 0.0
    if kind == SMOOTHED_HINGE:
        return -min(max((target - place) / width, 0.0), 1.0)
    if kind == ABSOLUTE:
        return 1.0 if place > target else (-1.0 if place < target else 0.0)
    if kind == SQUARED:
        return place - target
    if kind == HUBER:
        return min(max(place - target, -width), width)
    ratio = target / max(place, SMALLEST)
    return 1.0 - ratio if kind == POISSON else -ratio


@inlined_kernel
def loss_conjugate(kind: int, target: float, width: float, slope: float) -> float:
    """Return the conjugate at ``slope``; ``inf`` if the loss never has this slope."""
    low, high = slope_interval(kind, target, width)
    if slope < low - SLACK or slope > high + SLACK:
        return np.inf
    slope = min(max(slope, low), high)
    if kind == POISSON or kind == MULTINOMIAL:
        left = 1.0 - slope if kind == POISSON else -slope
        if left <= 0.0 and target != 0.0:
            return np.inf
        return _count_log(target, target / max(left, SMALLEST)) - target * min(left / SMALLEST, 1.0)
    bent = width if kind == SMOOTHED_HINGE else (1.0 if kind == SQUARED or kind == HUBER else 0.0)
    return slope * target + 0.5 * bent * slope * slope


@inlined_kernel
def slope_interval(kind: int, target: float, width: float) -> tuple[float, float]:
    """Return the smallest and the largest slope."""
    if kind == HINGE or kind == SMOOTHED_HINGE:
        return -1.0, 0.0
    if kind == ABSOLUTE:
        return -1.0, 1.0
    if kind == HUBER:
        return -width, width
    if kind == POISSON:
        return -np.inf, 1.0
    if kind == MULTINOMIAL:
        return (-np.inf if target > 0.0 else 0.0), 0.0
    return -np.inf, np.inf


@inlined_kernel
def loss_curvature(kind: int, target: float, width: float, place: float) -> float:
    """Return the second derivative at ``place``; zero at kinks."""
    if kind == SMOOTHED_HINGE:
        return 1.0 / width if target - width < place < target else 0.0
    if kind == SQUARED:
        return 1.0
    if kind == HUBER:
        return 1.0 if abs(place - target) < width else 0.0
    if kind == POISSON or kind == MULTINOMIAL:
        expected = max(place, SMALLEST)
        return target / expected / expected
    return 0.0


@inlined_kernel
def conjugate_slope(kind: int, target: float, width: float, slope: float) -> float:
    """Return the argument at which the loss has the given slope."""
    if kind == SMOOTHED_HINGE:
        return target + width * slope
    if kind == SQUARED or kind == HUBER:
        return target + slope
    if kind == POISSON:
        return target / max(1.0 - slope, SMALLEST)
    if kind == MULTINOMIAL:
        return target / max(-slope, SMALLEST)
    return target


@inlined_kernel
def conjugate_curvature(kind: int, target: float, width: float, slope: float) -> float:
    """Return the second derivative of the conjugate."""
    if kind == SMOOTHED_HINGE:
        return width
    if kind == SQUARED or kind == HUBER:
        return 1.0
    if kind == POISSON or kind == MULTINOMIAL:
        left = max(1.0 - slope if kind == POISSON else -slope, SMALLEST)
        return target / left / left
    return 0.0


@kernel
def values(kind: Ints, target: Floats, width: Floats, place: Floats, found: Floats) -> None:
    """Write the value of each loss at its argument."""
    for row in range(len(kind)):
        found[row] = loss_value(kind[row], target[row], width[row], place[row])


@kernel
def slopes(kind: Ints, target: Floats, width: Floats, place: Floats, found: Floats) -> None:
    """Write the derivative of each loss at its argument."""
    for row in range(len(kind)):
        found[row] = loss_slope(kind[row], target[row], width[row], place[row])


@kernel
def curvatures(kind: Ints, target: Floats, width: Floats, place: Floats, found: Floats) -> None:
    """Write the second derivative of each loss at its argument."""
    for row in range(len(kind)):
        found[row] = loss_curvature(kind[row], target[row], width[row], place[row])


@kernel
def conjugates(kind: Ints, target: Floats, width: Floats, slope: Floats, found: Floats) -> None:
    """Write the conjugate of each loss at its slope."""
    for row in range(len(kind)):
        found[row] = loss_conjugate(kind[row], target[row], width[row], slope[row])


@kernel
def conjugate_slopes(kind: Ints, target: Floats, width: Floats, slope: Floats, found: Floats) -> None:
    """Write the argument at which each loss has its slope."""
    for row in range(len(kind)):
        found[row] = conjugate_slope(kind[row], target[row], width[row], slope[row])


@kernel
def conjugate_curvatures(kind: Ints, target: Floats, width: Floats, slope: Floats, found: Floats) -> None:
    """Write the second derivative of each conjugate at its slope."""
    for row in range(len(kind)):
        found[row] = conjugate_curvature(kind[row], target[row], width[row], slope[row])


@kernel
def slope_intervals(kind: Ints, target: Floats, width: Floats, low: Floats, high: Floats) -> None:
    """Write the smallest and the largest slope of each loss."""
    for row in range(len(kind)):
        low[row], high[row] = slope_interval(kind[row], target[row], width[row])
