"""The vectors of quasi-Newton methods from their definitions: plain lists, one sum for each inner product.

``pairs`` are the remembered steps and gradient changes; ``prices`` the l1 penalty of each weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Numbers: TypeAlias = Sequence[float]
Pairs: TypeAlias = Sequence[tuple[Numbers, Numbers]]


def dot(a: Numbers, b: Numbers) -> float:
    """Inner product, rounded once."""
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def pseudo_gradient(weights: Numbers, gradient: Numbers, prices: Numbers) -> list[float]:
    """Where the value falls to the right, its slope to the right; to the left likewise; else zero."""
    slopes = []
    for weight, smooth, price in zip(weights, gradient, prices, strict=True):
        right = smooth + (price if weight >= 0.0 else -price)
        left = smooth + (price if weight > 0.0 else -price)
        slopes.append(right if right < 0.0 else left if left > 0.0 else 0.0)
    return slopes


class Absorbed(NamedTuple):
    """The new gradient and pair, the sums by their columns, and four products for each remembered pair."""

    gradient: list[float]
    step: list[float]
    change: list[float]
    sums: list[float]
    products: list[list[float]]


def absorb(
    weights: Numbers,
    raw: Numbers,
    l2: float,
    prices: Numbers,
    weights_before: Numbers,
    gradient_before: Numbers,
    pairs: Pairs,
) -> Absorbed:
    """Compare a point with the one before it and with the remembered pairs."""
    gradient = [slope + 2.0 * l2 * weight for slope, weight in zip(raw, weights, strict=True)]
    step = [new - old for new, old in zip(weights, weights_before, strict=True)]
    change = [new - old for new, old in zip(gradient, gradient_before, strict=True)]
    slopes = pseudo_gradient(weights, gradient, prices)
    sums = [
        dot(weights, weights),
        dot([abs(weight) for weight in weights], prices),
        float(sum(weight != 0.0 for weight in weights)),
        dot(slopes, slopes),
        dot(step, pseudo_gradient(weights_before, gradient_before, prices)),
        dot(step, gradient),
        dot(step, step),
        dot(step, change),
        dot(change, change),
        dot(step, slopes),
        dot(change, slopes),
    ]
    products = [[dot(s, change), dot(y, change), dot(s, slopes), dot(y, slopes)] for s, y in pairs]
    return Absorbed(gradient, step, change, sums, products)


def walk(weights: Numbers, direction: Numbers, length: float, prices: Numbers) -> list[float]:
    """Step along a direction; a weight with a price may come to zero but not cross it."""
    ends = [weight + length * way for weight, way in zip(weights, direction, strict=True)]
    return [
        0.0 if price > 0.0 and (weight > 0.0 > end or weight < 0.0 < end) else end
        for weight, end, price in zip(weights, ends, prices, strict=True)
    ]


def combine(
    weights: Numbers,
    gradient: Numbers,
    prices: Numbers,
    pairs: Pairs,
    step_factors: Numbers,
    change_factors: Numbers,
    slope_factor: float,
    strict: bool,
) -> list[float]:
    """Sum of all vectors times their factors, without the priced entries that would not lead downhill.

    Unless ``strict``, a weight that is not zero may go uphill by itself, for the sake of the others.
    """
    slopes = pseudo_gradient(weights, gradient, prices)
    direction = []
    for place, slope in enumerate(slopes):
        entry = slope_factor * slope
        for (step, change), p, q in zip(pairs, step_factors, change_factors, strict=True):
            entry += p * step[place] + q * change[place]
        held = prices[place] > 0.0 and (strict or weights[place] == 0.0)
        direction.append(0.0 if held and entry * slope >= 0.0 else entry)
    return direction


def inverse_times(pairs: Pairs, vector: Numbers) -> list[float]:
    """BFGS approximation of the inverse Hessian times a vector, the matrix written out.

    Each pair (s, y), oldest first, makes H out of the H before it: (I - s y' / s'y) H (I - y s' / s'y) +
    s s' / s'y. The first H is s'y / y'y of the newest pair times the identity.
    """
    size = len(vector)
    newest_step, newest_change = pairs[-1]
    scale = dot(newest_step, newest_change) / dot(newest_change, newest_change)
    matrix = [[scale * (row == column) for column in range(size)] for row in range(size)]
    for step, change in pairs:
        curvature = dot(step, change)
        left = [[(i == j) - step[i] * change[j] / curvature for j in range(size)] for i in range(size)]
        half = [[dot(left[i], [matrix[k][j] for k in range(size)]) for j in range(size)] for i in range(size)]
        matrix = [
            [dot(half[i], left[j]) + step[i] * step[j] / curvature for j in range(size)] for i in range(size)
        ]
    return [dot(row, vector) for row in matrix]
