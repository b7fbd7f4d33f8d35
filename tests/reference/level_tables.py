"""Boosting of tables, from the definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class Piece(NamedTuple):
    """Levels from ``low`` to ``high``, and the bounds of their step."""

    low: int
    high: int
    least: float = -math.inf
    most: float = math.inf


class Sums(NamedTuple):
    """Derivatives of the loss by the scores of the pairs of a piece, and how many these are."""

    slope: float
    curvature: float
    pairs: int


def boost_level_tables(
    levels: list[list[int]],
    same: list[bool],
    share: list[float],
    score: list[float],
    sizes: list[int],
    directions: list[int],
    rounds: int,
    rate: float,
    leaves: int,
    least_pairs: int,
    ridge: float,
) -> tuple[float, list[list[float]]]:
    """Return the shift, and the weight of each level of each comparison, 0 for level 0.

    levels
        Of each pair, its level in each comparison.
    """
    tables, shift = [[0.0] * (size + 1) for size in sizes], 0.0
    for _ in range(rounds):
        now = [
            begin + shift + sum(table[level] for table, level in zip(tables, row, strict=True))
            for begin, row in zip(score, levels, strict=True)
        ]
        p = [1.0 / (1.0 + math.exp(-value)) for value in now]
        slope = [weight * (q - yes) for weight, q, yes in zip(share, p, same, strict=True)]
        curvature = [weight * q * (1.0 - q) for weight, q in zip(share, p, strict=True)]

        def sums_in(
            comparison: int, slope: list[float] = slope, curvature: list[float] = curvature
        ) -> Callable[[int, int], Sums]:
            def of(low: int, high: int) -> Sums:
                inside = [k for k, row in enumerate(levels) if low <= row[comparison] <= high]
                return Sums(sum(slope[k] for k in inside), sum(curvature[k] for k in inside), len(inside))

            return of

        def cut_in(
            comparison: int, piece: Piece, sums_in: Callable[[int], Callable[[int, int], Sums]] = sums_in
        ) -> tuple[float, tuple[Piece, Piece]] | None:
            return best_cut(
                sums_in(comparison), piece, sizes[comparison], directions[comparison], least_pairs, ridge
            )

        gains = []
        for comparison, size in enumerate(sizes):
            cut, whole = cut_in(comparison, Piece(1, size)), sums_in(comparison)(1, size)
            missing = len(levels) - whole.pairs
            alone = gain_of(whole, Piece(1, size), ridge) if min(missing, whole.pairs) >= least_pairs else 0.0
            gains.append(alone if cut is None else cut[0])
        chosen = gains.index(max(gains))
        shift -= rate * sum(slope) / (sum(curvature) + ridge)
        if gains[chosen] <= 0.0:
            continue
        pieces = [Piece(1, sizes[chosen])]
        while len(pieces) < leaves:
            cuts = [(cut_in(chosen, piece), place) for place, piece in enumerate(pieces)]
            able = [(cut[0], -place, cut[1]) for cut, place in cuts if cut is not None]
            if not able:
                break
            _, place, (below, above) = max(able, key=lambda cut: cut[:2])
            pieces[-place] = below
            pieces.append(above)
        for piece in pieces:
            step = rate * step_of(sums_in(chosen)(piece.low, piece.high), piece, ridge)
            for level in range(piece.low, piece.high + 1):
                tables[chosen][level] += step
    return shift, tables


def step_of(sums: Sums, piece: Piece, ridge: float) -> float:
    """Return the Newton step of a piece, within its bounds."""
    return min(max(-sums.slope / (sums.curvature + ridge), piece.least), piece.most)


def gain_of(sums: Sums, piece: Piece, ridge: float) -> float:
    """Return by how much the step of a piece lowers the loss, to second order."""
    step = step_of(sums, piece, ridge)
    return -sums.slope * step - (sums.curvature + ridge) * step * step / 2.0


def best_cut(
    sums: Callable[[int, int], Sums], piece: Piece, size: int, direction: int, least_pairs: int, ridge: float
) -> tuple[float, tuple[Piece, Piece]] | None:
    """Return what the best cut of a piece gains, and its two parts with their bounds; None if none gains."""
    whole = 0.0
    if piece[:2] != (1, size):
        whole = gain_of(sums(piece.low, piece.high), piece, ridge)
    best: tuple[float, tuple[Piece, Piece]] | None = None
    for level in range(piece.low, piece.high):
        below, above = piece._replace(high=level), piece._replace(low=level + 1)
        both = sums(below.low, below.high), sums(above.low, above.high)
        if min(part.pairs for part in both) < least_pairs:
            continue
        steps = step_of(both[0], below, ridge), step_of(both[1], above, ridge)
        gain = gain_of(both[0], below, ridge) + gain_of(both[1], above, ridge) - whole
        if direction * (steps[1] - steps[0]) < 0.0 or gain <= (0.0 if best is None else best[0]):
            continue
        middle = sum(steps) / 2.0
        if direction > 0:
            below, above = below._replace(most=middle), above._replace(least=middle)
        elif direction < 0:
            below, above = below._replace(least=middle), above._replace(most=middle)
        best = gain, (below, above)
    return best
