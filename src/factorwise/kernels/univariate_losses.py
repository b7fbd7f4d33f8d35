"""Convex losses of one number by their kind: value, slope and conjugate, for compiled solvers.

What each loss is, `factorwise.inference.message_passing.projection.losses` says, whose functions over arrays
are the twins of these.
"""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compiler import inlined_kernel

HINGE, SMOOTHED_HINGE, ABSOLUTE, SQUARED, HUBER, POISSON, MULTINOMIAL = range(7)
SMALLEST = 1e-100  # expected count below which slopes stop growing: their squares would overflow
SLACK = 1e-12  # by which rounding may take a mixture of slopes out of their interval


@inlined_kernel
def has_kink(kind: int) -> bool:
    """Whether the loss has a kink at its target."""
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
    """Return the conjugate at ``slope``; ``inf`` where no place has it."""
    low, high = slope_interval(kind, target, width)
    if slope < low - SLACK or slope > high + SLACK:
        return np.inf
    slope = min(max(slope, low), high)
    if kind == POISSON or kind == MULTINOMIAL:
        left = 1.0 - slope if kind == POISSON else -slope
        return (
            -target + _count_log(target, target / max(left, SMALLEST)) if left > 0 or target == 0 else np.inf
        )
    bent = width if kind == SMOOTHED_HINGE else (1.0 if kind == SQUARED or kind == HUBER else 0.0)
    return slope * target + 0.5 * bent * slope * slope


@inlined_kernel
def slope_interval(kind: int, target: float, width: float) -> tuple[float, float]:
    """Return the least and the greatest slope."""
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
