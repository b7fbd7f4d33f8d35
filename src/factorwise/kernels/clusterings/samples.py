"""Gains estimated from a sample of the pairs that a relocation touches.

The templates here contain other templates.

The pairs of the item with the members of its target come first, then those with the members that it leaves
behind, each in memory order. They are drawn without replacement by a partial shuffle, which is undone after
each move, so that a sample of k pairs takes time k whatever the size of the clusters.

``mine`` of these programs:

inner : int64[templates, 2]
    The function ``pairs`` of each template whose factors are pairs of items, and its context.
order, swapped : int32[n], int32[n]
    The numbers from 0 on, in order after every move; the partner of each exchange.
changes : float64[n]
    The contributions of the drawn pairs to the gain.
rule : float64[4]
    SHARE of the pairs; INTERVAL at which drawing stops; Z, its half-width in standard errors; GROWTH of the
    sample between checks.
options : int64[3]
    Whether the mean of the sample is SCALED to all pairs, the number of STRATA, and the MINIMUM number of
    pairs before the first check.
sums : float64[2, 3]
    For each stratum: ORIGIN, the first change, and the sum and the sum of SQUARES of the differences from it.
found : float64[2]
    The ESTIMATE of the current move, and the number of pairs DRAWN for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.library import below, exponential, tempered, uniform

SHARE, INTERVAL, Z, GROWTH = range(4)
SCALED, STRATA, MINIMUM = range(3)
ORIGIN, SUM, SQUARES = range(3)
ESTIMATE, DRAWN = range(2)


@shared
def draw_on(mine: Any, random: Any, first: int, last: int, end: int) -> None:
    """Shuffle so that the positions up to ``last`` are a random sample of those up to ``end``.

    The positions before ``first`` were drawn before and stay.
    """
    for place in range(first, last):
        other = place + below(random, end - place)
        mine.swapped[place] = other
        mine.order[place], mine.order[other] = mine.order[other], mine.order[place]


@shared
def put_back(mine: Any, first: int, last: int) -> None:
    """Undo a shuffle of the positions from ``first`` up to ``last``."""
    for back in range(last - first):
        place = last - 1 - back
        other = mine.swapped[place]
        mine.order[place], mine.order[other] = mine.order[other], mine.order[place]


@shared
def score_places(world: Any, mine: Any, move: Any, choice: Any, first: int, last: int) -> None:
    """Set the changes of the pairs at some positions of the order."""
    t = np.int64(world.size[move.target])
    t_first, s_first = np.int64(world.start[move.target]), np.int64(world.start[move.source])
    own = np.int64(world.slot[move.item])
    for place in range(first, last):
        number = np.int64(mine.order[place])
        slot = t_first + number
        if number >= t:
            slot = s_first + number - t
            slot += np.int64(slot >= own)  # the item itself is left out
        choice.targets[place - first] = world.members[slot]
        choice.out[place - first] = 0.0
    move.choices = last - first
    for k in range(mine.inner.shape[0]):
        call(mine.inner[k, 0], mine.inner[k, 1])
    for place in range(first, last):
        score = choice.out[place - first]
        mine.changes[place] = score if mine.order[place] < t else -score
    move.factors += last - first


@shared
def add_changes(mine: Any, first: int, last: int) -> float:
    """Return the sum of the changes at some positions."""
    total = 0.0
    for place in range(first, last):
        total += mine.changes[place]
    return total


@shared
def scaled(mine: Any, total: float, factors: int, drawn: int) -> float:
    """Scale the sum of a sample to all factors."""
    if mine.options[SCALED] == 0 or drawn == 0:
        return total
    return total * (np.float64(factors) / drawn)


@shared
def keep_estimate(mine: Any, gain: float, drawn: int) -> float:
    """Record the estimate, for a second stage."""
    mine.found[ESTIMATE], mine.found[DRAWN] = gain, drawn
    return gain


def uniform_gain(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Estimate the gain from a share of the pairs, rounded to the nearest number and at least one.

    Implements: singh2012montecarlo, Sec. 3.1.
    """
    factors = np.int64(world.size[move.target]) + np.int64(world.size[move.source]) - 1
    drawn = factors
    if factors >= 2:
        drawn = min(factors, max(np.int64(1), np.int64(math.floor(mine.rule[SHARE] * factors + 0.5))))
    shuffled = drawn if drawn < factors else np.int64(0)
    draw_on(mine, random, 0, shuffled, factors)
    score_places(world, mine, move, choice, 0, drawn)
    total = add_changes(mine, 0, drawn)
    put_back(mine, 0, shuffled)
    return keep_estimate(mine, scaled(mine, total, factors, drawn), drawn)


def confidence_gain(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Estimate the gain from as many pairs as the interval of their mean needs to be narrow enough.

    The pairs are one population or, in two strata, those that the move joins and those that it separates.

    Implements: singh2012montecarlo, Sec. 3.2.
    """
    joined, parted = np.int64(world.size[move.target]), np.int64(world.size[move.source]) - 1
    factors = joined + parted
    if factors < 2:
        score_places(world, mine, move, choice, 0, factors)
        return keep_estimate(mine, add_changes(mine, 0, factors), factors)
    border = factors  # where the second stratum begins
    if mine.options[STRATA] == 2:
        border = joined if joined > 0 and parted > 0 else factors
    for stratum in range(2):
        for k in range(3):
            mine.sums[stratum, k] = 0.0
    first, second = np.int64(0), np.int64(0)  # number drawn from each stratum
    look = min(np.int64(mine.options[MINIMUM]), factors)
    while True:
        wanted, more = look, np.int64(0)
        if border < factors:
            wanted, more = allot(look, border, factors), allot(look, factors - border, factors)
        draw_on(mine, random, first, wanted, border)
        draw_on(mine, random, border + second, border + more, factors)
        score_places(world, mine, move, choice, first, wanted)
        score_places(world, mine, move, choice, border + second, border + more)
        add_squares(mine, 0, 0, first, wanted)
        add_squares(mine, 1, border, border + second, border + more)
        first, second = wanted, more
        if look == factors:
            break
        width = stratum_variance(mine, 0, border, first, factors)
        width += stratum_variance(mine, 1, factors - border, second, factors)
        if 4.0 * mine.rule[Z] * mine.rule[Z] * width < mine.rule[INTERVAL] * mine.rule[INTERVAL]:
            break
        look = min(factors, max(look + 1, np.int64(math.ceil(look * mine.rule[GROWTH]))))
    total = scaled(mine, add_changes(mine, 0, first), border, first)
    total += scaled(mine, add_changes(mine, border, border + second), factors - border, second)
    put_back(mine, border, border + second)
    put_back(mine, 0, first)
    return keep_estimate(mine, total, first + second)


@shared
def allot(size: int, own: int, factors: int) -> int:
    """Return how many of a sample are drawn from a stratum: rounded up, so that both directions agree."""
    return min(own, max(np.int64(2), -(-size * own // factors)))


@shared
def add_squares(mine: Any, stratum: int, begin: int, first: int, last: int) -> None:
    """Add changes to the sums of a stratum as differences from its first change, for less cancellation."""
    for place in range(first, last):
        if place == begin:
            mine.sums[stratum, ORIGIN] = mine.changes[place]
        distance = mine.changes[place] - mine.sums[stratum, ORIGIN]
        mine.sums[stratum, SUM] += distance
        mine.sums[stratum, SQUARES] += distance * distance


@shared
def stratum_variance(mine: Any, stratum: int, population: int, size: int, factors: int) -> float:
    """Return the contribution of a stratum to the variance of the mean change over all factors."""
    if size >= population:
        return 0.0
    n, rest = np.float64(size), np.float64(population - size)
    spread = max(mine.sums[stratum, SQUARES] - mine.sums[stratum, SUM] * mine.sums[stratum, SUM] / n, 0.0)
    share = np.float64(population) / factors
    return share * share * rest / (population - 1.0) * spread / (n * (n - 1.0))


def accept_delayed(world: Any, mine: Any, random: Any, move: Any) -> bool:
    """Accept a move that passes a test of the estimated gain, and then one of the correction.

    ``mine`` has ``exact`` int64[templates, 2], the exact gains of the templates that were sampled, ``found``,
    and ``balanced`` int64[1], whether the proposer's ratio counts. One number serves both tests.
    """
    chance, ratio, log_ratio = uniform(random), 1.0, 0.0
    if mine.balanced[0] != 0:
        ratio, log_ratio = move.ratio, move.log_ratio
    first = min(1.0, ratio * exponential(tempered(move.gain, move.temperature) + log_ratio))
    if not chance < first:
        return False
    if move.world != 0:  # nothing was sampled for a change of another world
        return True
    missed, seen = -mine.found[ESTIMATE], move.factors - np.int64(mine.found[DRAWN])
    for k in range(mine.exact.shape[0]):
        missed += call(mine.exact[k, 0], mine.exact[k, 1])
    factors = np.int64(world.size[move.target]) + np.int64(world.size[move.source]) - 1
    move.factors = seen + factors  # each counts once, however many templates score it
    move.gain += missed
    return chance < first * min(1.0, exponential(tempered(missed, move.temperature)))
