"""Boosting of tables: an additive score of comparison levels that separates two classes of pairs."""

from __future__ import annotations

import math

import numpy as np

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Bools, Float64s, Int8s, Int64s, UInt8s


@kernel
def boost_level_tables(
    levels: UInt8s,
    same: Bools,
    share: Float64s,
    score: Float64s,
    start: Int64s,
    direction: Int8s,
    rounds: int,
    rate: float,
    leaves: int,
    least_pairs: int,
    ridge: float,
    table: Float64s,
) -> float:
    """Add rounds of Newton boosting steps of the logistic loss to ``table``; return the shift of all scores.

    Each round selects the comparison in which one threshold on its levels reduces the loss most, splits its
    levels into pieces, and adds to the weights of each piece. Level 0 (missing) has no weight. If no split is
    possible, as with a single level, all levels other than 0 form one piece.

    levels : uint8[comparisons, pairs]
        The level of each pair in each comparison.
    same, share
        Whether each pair is of the first class, and its weight.
    score
        The initial score of each pair; the final score on return.
    start : int64[comparisons + 1]
        Where the weights of each comparison begin in ``table``, with that of level 1 first.
    direction
        For each comparison: 1 if weights must not decrease with the level, -1 if they must not increase, or
        0.
    rounds, rate, leaves, least_pairs, ridge
        Number of rounds; learning rate; maximum number of pieces of a table; minimum number of pairs in a
        piece; and L2 penalty, which is added to the curvature of a piece.
    """
    n = levels.shape[1]
    slope, curvature = np.zeros(n), np.zeros(n)
    slopes, curvatures, counts = np.zeros(256), np.zeros(256), np.zeros((len(start) - 1, 256))
    for comparison in range(len(start) - 1):
        for k in range(n):
            counts[comparison, levels[comparison, k]] += 1.0
    everything, cut, shift = np.array([-math.inf, math.inf]), np.empty(4), 0.0
    for _ in range(rounds):
        total_slope, total_curvature = 0.0, 0.0
        for k in range(n):
            p = 1.0 / (1.0 + math.exp(-score[k]))
            slope[k] = share[k] * (p - same[k])
            curvature[k] = share[k] * p * (1.0 - p)
            total_slope += slope[k]
            total_curvature += curvature[k]
        best, chosen = 0.0, -1
        for comparison in range(len(start) - 1):
            _add_up(levels[comparison], slope, curvature, slopes, curvatures)
            size = start[comparison + 1] - start[comparison]
            sums = _running_sums(slopes, curvatures, counts[comparison], size)
            _find_cut(sums, 0, size, everything, direction[comparison], least_pairs, ridge, cut)
            if cut[0] > best:
                best, chosen = cut[0], comparison
        step = -rate * total_slope / (total_curvature + ridge)
        shift += step
        for k in range(n):
            score[k] += step
        if chosen >= 0:
            _add_up(levels[chosen], slope, curvature, slopes, curvatures)
            size = start[chosen + 1] - start[chosen]
            sums = _running_sums(slopes, curvatures, counts[chosen], size)
            piece = _cut_into_pieces(sums, size, direction[chosen], leaves, least_pairs, ridge)
            for level in range(size):
                table[start[chosen] + level] += rate * piece[level + 1]
            for k in range(n):
                score[k] += rate * piece[levels[chosen, k]]
    return shift


@kernel
def _add_up(
    level: UInt8s, slope: Float64s, curvature: Float64s, slopes: Float64s, curvatures: Float64s
) -> None:
    """Sum the slopes and curvatures of pairs by level."""
    slopes[:], curvatures[:] = 0.0, 0.0
    for k in range(len(level)):
        slopes[level[k]] += slope[k]
        curvatures[level[k]] += curvature[k]


@kernel
def _running_sums(slopes: Float64s, curvatures: Float64s, counts: Float64s, size: int) -> Float64s:
    """Return cumulative slopes, curvatures and numbers of pairs over the levels: float64[size + 1, 3].

    Level 0 is included only in the numbers of pairs.
    """
    sums = np.zeros((size + 1, 3))
    sums[0, 2] = counts[0]
    for level in range(1, size + 1):
        sums[level, 0] = sums[level - 1, 0] + slopes[level]
        sums[level, 1] = sums[level - 1, 1] + curvatures[level]
        sums[level, 2] = sums[level - 1, 2] + counts[level]
    return sums


@kernel
def _step_of_piece(
    sums: Float64s, low: int, high: int, bounds: Float64s, ridge: float
) -> tuple[float, float]:
    """Return the Newton step of the levels from ``low`` + 1 to ``high`` within bounds, and its gain."""
    slope, curvature = sums[high, 0] - sums[low, 0], sums[high, 1] - sums[low, 1] + ridge
    step = min(max(-slope / curvature, bounds[0]), bounds[1])
    return step, -(slope * step + 0.5 * curvature * step * step)


@kernel
def _find_cut(
    sums: Float64s,
    low: int,
    high: int,
    bounds: Float64s,
    direction: int,
    least_pairs: int,
    ridge: float,
    cut: Float64s,
) -> None:
    """Write the gain of the best split of a piece, the last level below it, and the steps of both parts.

    The gain is relative to one step of the whole piece, or to no step if the piece has all levels. If these
    cannot be split, they stay one piece, and the last level below is the highest level.
    """
    step, whole = _step_of_piece(sums, low, high, bounds, ridge)
    everything = low == 0 and high == len(sums) - 1
    cut[0] = 0.0
    if everything:
        alone, whole = whole, 0.0
    for level in range(low + 1, high):
        if sums[level, 2] - sums[low, 2] < least_pairs or sums[high, 2] - sums[level, 2] < least_pairs:
            continue
        below, gain_below = _step_of_piece(sums, low, level, bounds, ridge)
        above, gain_above = _step_of_piece(sums, level, high, bounds, ridge)
        gain = gain_below + gain_above - whole
        if direction * (above - below) >= 0.0 and gain > cut[0]:
            cut[0], cut[1], cut[2], cut[3] = gain, level, below, above
    if everything and cut[0] <= 0.0 and min(sums[0, 2], sums[high, 2] - sums[0, 2]) >= least_pairs:
        cut[0], cut[1], cut[2], cut[3] = alone, high, step, step


@kernel
def _cut_into_pieces(
    sums: Float64s, size: int, direction: int, leaves: int, least_pairs: int, ridge: float
) -> Float64s:
    """Return the step of each level, 0 for level 0, splitting the piece with the largest gain each time."""
    ends = np.zeros((leaves, 2), np.int64)
    bounds, cuts = np.empty((leaves, 2)), np.empty((leaves, 4))
    ends[0, 1] = size
    bounds[0, 0], bounds[0, 1] = -math.inf, math.inf
    _find_cut(sums, 0, size, bounds[0], direction, least_pairs, ridge, cuts[0])
    pieces = 1
    while pieces < leaves:
        piece = int(np.argmax(cuts[:pieces, 0]))
        if cuts[piece, 0] <= 0.0 or cuts[piece, 1] == ends[piece, 1]:
            break
        middle = 0.5 * (cuts[piece, 2] + cuts[piece, 3])
        ends[pieces, 0], ends[pieces, 1] = int(cuts[piece, 1]), ends[piece, 1]
        ends[piece, 1] = ends[pieces, 0]
        bounds[pieces] = bounds[piece]
        if direction > 0:
            bounds[piece, 1] = bounds[pieces, 0] = middle
        elif direction < 0:
            bounds[piece, 0] = bounds[pieces, 1] = middle
        for part in (piece, pieces):
            _find_cut(
                sums, ends[part, 0], ends[part, 1], bounds[part], direction, least_pairs, ridge, cuts[part]
            )
        pieces += 1
    steps = np.zeros(size + 1)
    for piece in range(pieces):
        low, high = ends[piece]
        steps[low + 1 : high + 1] = _step_of_piece(sums, low, high, bounds[piece], ridge)[0]
    return steps
