"""Relocations whose gain is estimated from a sample of the pair factors they touch.

The compiled twin of `Metropolis` with `UniformSample` and `ConfidenceSample`: random numbers are drawn in the
same order, so both examine the same factors. The pairs of the item with the members of the target come
first, then those with the members it leaves behind, each in the order in which they stand in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partition_moves import MoveArrays, WorkArrays, draw_kind, draw_relocation
from factorwise.kernels.clusterings.partition_ratios import relocation_ratio
from factorwise.kernels.clusterings.partition_sweeps import tempered
from factorwise.kernels.clusterings.partitions import NEW, PartitionArrays, relocate
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below, random_uniform

ALL, SHARE, CONFIDENCE = range(3)  # which factors are examined

RowScores = Callable[..., None]


class SampleRule(NamedTuple):
    """Which factors are examined, and what becomes of their sum.

    kind
        ALL, SHARE or CONFIDENCE.
    share
        Of the factors, for SHARE.
    interval, z, minimum, growth
        For CONFIDENCE: width at which sampling stops, half-width in standard errors, factors before the first
        look, growth of the sample between looks.
    scaled
        Whether the sample's mean stands for all factors, or its sum for itself.
    hastings
        Whether the ratio of the proposal probabilities is weighed.
    """

    kind: int
    share: float
    interval: float
    z: float
    minimum: int
    growth: float
    scaled: bool
    hastings: bool


class SampleArrays(NamedTuple):
    """Fields of the items in rows, and scratch.

    ints, reals, weights : int32[n, .], float32[n, .], float64[weights]
    order, swapped : int32[n], int32[n]
        The numbers from 0 on, as they are again after every sample; with what each was exchanged.
    others, scores : int32[n], float64[n]
        Items of the sample, and the scores of their pairs.
    """

    ints: NDArray[np.int32]
    reals: NDArray[np.float32]
    weights: NDArray[np.float64]
    order: NDArray[np.int32]
    swapped: NDArray[np.int32]
    others: NDArray[np.int32]
    scores: NDArray[np.float64]


@lean_kernel
def sampled_sweep(
    row_scores: RowScores,
    p: PartitionArrays,
    a: SampleArrays,
    rule: SampleRule,
    moves: MoveArrays,
    work: WorkArrays,
    state: NDArray[np.uint64],
    temperature: float,
    steps: int,
    first: int,
    last: int,
) -> None:
    """Propose, estimate, decide, apply: ``steps`` times over all items, or block by block.

    Where ``first < last`` these blocks are visited in turn, with as many steps in each as it has items.
    """
    drawn = work.drawn
    for block in range(first, max(last, first + 1)):
        lo, hi, count = 0, 0, steps
        if first < last:
            lo, hi = moves.block_start[block], moves.block_start[block + 1]
            count = hi - lo
        for _ in range(count):
            kind = draw_kind(moves, p, state)
            changes = False
            if kind >= 0:
                changes = draw_relocation(kind, moves, p, lo, hi, state, work.items, drawn)
            chance = random_uniform(state)
            if not changes:
                work.tally[2] += 1
                continue
            ratio = 1.0
            if rule.hastings:
                ratio = relocation_ratio(moves, p, work.items, drawn, True)
            item, target, new_type = np.int64(work.items[0]), drawn[2], drawn[3]
            gain = estimated_gain(row_scores, p, a, rule, item, target, state, work.tally)
            if chance < ratio * np.exp(tempered(gain, temperature)):
                work.tally[0] += 1
                relocate(p, item, target, new_type)


@hot
def estimated_gain(
    row_scores: RowScores,
    p: PartitionArrays,
    a: SampleArrays,
    rule: SampleRule,
    item: int,
    target: int,
    state: NDArray[np.uint64],
    tally: NDArray[np.int64],
) -> float:
    """Estimate the change of score when ``item`` goes to ``target``."""
    t = np.int64(0) if target == NEW else np.int64(p.clusters[target].size)
    factors = t + p.clusters[p.items[item].label].size - 1
    drawn = factors
    if factors >= 2 and rule.kind == SHARE:
        drawn = min(factors, max(1, np.int64(np.floor(rule.share * factors + 0.5))))
        if drawn < factors:
            draw_on(a, factors, 0, drawn, state)
    elif factors >= 2 and rule.kind == CONFIDENCE:
        drawn = draw_until_sure(row_scores, p, a, rule, item, target, t, factors, state)
    if factors < 2 or rule.kind != CONFIDENCE:
        score_drawn(row_scores, p, a, item, target, t, 0, drawn)
    total = 0.0
    for place in range(drawn):
        total += a.scores[place] if a.order[place] < t else -a.scores[place]
    put_back(a, drawn if drawn < factors or (factors >= 2 and rule.kind == CONFIDENCE) else 0)
    tally[1] += drawn
    return total * (np.float64(factors) / drawn) if rule.scaled else total


@inner
def draw_until_sure(
    row_scores: RowScores,
    p: PartitionArrays,
    a: SampleArrays,
    rule: SampleRule,
    item: int,
    target: int,
    t: int,
    factors: int,
    state: NDArray[np.uint64],
) -> int:
    """Draw and score factors until the interval of their mean is narrow enough; return how many."""
    done, look = np.int64(0), min(np.int64(rule.minimum), np.int64(factors))
    origin, total, squares = 0.0, 0.0, 0.0  # sums of distances from the first change, so that little cancels
    while True:
        draw_on(a, factors, done, look, state)
        score_drawn(row_scores, p, a, item, target, t, done, look)
        for place in range(done, look):
            change = a.scores[place] if a.order[place] < t else -a.scores[place]
            if place == 0:
                origin = change
            total += change - origin
            squares += (change - origin) * (change - origin)
        done = look
        if done == factors:
            return done
        # 2 z sqrt(s^2 / n (N - n) / (N - 1)) < i, multiplied out: no root, no division
        n, rest = np.float64(done), np.float64(factors - done)
        spread = max(n * squares - total * total, 0.0)  # n (n - 1) s^2
        width = 4.0 * rule.z * rule.z * spread * rest
        if width < rule.interval * rule.interval * n * n * (n - 1.0) * (factors - 1.0):
            return done
        look = max(done + 1, np.int64(np.ceil(done * rule.growth)))
        look = min(look, np.int64(factors))


@hot
def draw_on(a: SampleArrays, factors: int, done: int, size: int, state: NDArray[np.uint64]) -> None:
    """Shuffle so that the first ``size`` of the order are a random sample, the first ``done`` staying."""
    for place in range(done, size):
        other = place + random_below(state, factors - place)
        a.swapped[place] = other
        a.order[place], a.order[other] = a.order[other], a.order[place]


@hot
def put_back(a: SampleArrays, size: int) -> None:
    """Undo a shuffle."""
    for back in range(size):
        place = size - 1 - back
        other = a.swapped[place]
        a.order[place], a.order[other] = a.order[other], a.order[place]


@inner
def score_drawn(
    row_scores: RowScores,
    p: PartitionArrays,
    a: SampleArrays,
    item: int,
    target: int,
    t: int,
    lo: int,
    hi: int,
) -> None:
    """Score the factors at ``lo`` to ``hi`` of the order."""
    source, own = p.items[item].label, p.items[item].slot
    s_lo = p.clusters[source].start
    t_lo = np.int64(0) if target == NEW else np.int64(p.clusters[target].start)
    for place in range(lo, hi):
        number = np.int64(a.order[place])
        if number < t:
            slot = t_lo + number
        else:
            slot = s_lo + number - t
            slot += slot >= own  # the item itself is left out
        a.others[place] = p.members[slot]
    row_scores(a.ints, a.reals, item, a.others, lo, hi, a.weights, a.scores)
