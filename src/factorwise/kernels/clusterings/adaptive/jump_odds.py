"""Odds of jumps (which clusters look mixed, and which pairs alike), with sums that stay exact as they change.

The odds of merging form a symmetric matrix over cluster ids, zero for ids not in use. The sum of every row is
kept in two floating-point numbers, with the precision of twice their digits, and is computed again when it
has shrunk so far that even these would be lost. A jump changes one or two rows and columns, so its time is
proportional to the number of clusters.

These functions read and write the following arrays of ``mine`` (all are listed in `jump_features`):

settings : float64[4]
    Odds of splits, merges and moves, and the share of choices that are made uniformly.
split_odds : float64[ids]
    By cluster; zero for clusters of one and for ids not in use.
merge_odds : float64[ids, ids]
    By two clusters; zero where one is not in use.
sums : float64[ids, 3]
    Sum of each row of ``merge_odds`` in two parts, and its largest value since it was last computed from
    scratch.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.clusterings.arrays import LIVE, SPLITTABLE
from factorwise.kernels.compile.compiler import shared, strict
from factorwise.kernels.walks.library import below, two_below, uniform

SPLIT, MERGE, MOVE, EXPLORE = range(4)
LARGEST_LOG_ODDS = 300.0  # larger odds would leave the range of floating-point numbers
SHRUNK = 2.0**-20  # a sum below this share of its largest value is computed again
ONE_MEMBER = 0.5  # share of moves that take a single member; the others take any proper part


@shared
def as_odds(log_odds: float) -> float:
    """Return odds that are neither zero nor infinite."""
    return math.exp(min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS))


@strict
def add_exactly(sums: Any, row: int, value: float) -> None:
    """Add to a sum kept in two parts; the second collects the rounding errors of the first."""
    old = sums[row, 0]
    new = old + value
    taken = new - old
    rest = sums[row, 1] + ((old - (new - taken)) + (value - taken))
    sums[row, 0] = new + rest
    sums[row, 1] = rest - (sums[row, 0] - new)


@shared
def sum_row(mine: Any, row: int) -> None:
    """Compute the sum of one row of merge odds from scratch."""
    for k in range(3):
        mine.sums[row, k] = 0.0
    for position in range(mine.counters[LIVE]):
        add_exactly(mine.sums, row, mine.merge_odds[row, mine.live[position]])
    mine.sums[row, 2] = mine.sums[row, 0]


@shared
def set_odds(mine: Any, row: int, column: int, odds: float) -> None:
    """Change one entry of the merge odds and the sum of its row."""
    before = mine.merge_odds[row, column]
    mine.merge_odds[row, column] = odds
    add_exactly(mine.sums, row, odds)
    add_exactly(mine.sums, row, -before)
    total = mine.sums[row, 0]
    if total > mine.sums[row, 2]:
        mine.sums[row, 2] = total
    elif total < SHRUNK * mine.sums[row, 2]:
        sum_row(mine, row)


@shared
def forget_cluster(mine: Any, cluster: int) -> None:
    """Clear the odds of a cluster id that is no longer in use."""
    mine.split_odds[cluster] = 0.0
    for other in range(len(mine.size)):
        mine.merge_odds[cluster, other] = 0.0
        if mine.size[other] > 0:
            set_odds(mine, other, cluster, 0.0)
        else:
            mine.merge_odds[other, cluster] = 0.0
    for k in range(3):
        mine.sums[cluster, k] = 0.0


@shared
def total_merge_odds(mine: Any) -> float:
    """Sum of the rows: every pair counts twice."""
    total = 0.0
    for position in range(mine.counters[LIVE]):
        total += mine.sums[mine.live[position], 0]
    return total


@shared
def total_split_odds(mine: Any) -> float:
    """Sum over the clusters of two or more."""
    total = 0.0
    for position in range(mine.counters[SPLITTABLE]):
        total += mine.split_odds[mine.splittable[position]]
    return total


@shared
def choose_mixed(world: Any, mine: Any, random: Any) -> int:
    """Draw a cluster of two or more, by its odds or uniformly."""
    count = world.counters[SPLITTABLE]
    if uniform(random) < mine.settings[EXPLORE]:
        return int(world.splittable[below(random, count)])
    threshold = uniform(random) * total_split_odds(mine)
    chosen, running = -1, 0.0
    for position in range(count):
        chosen = int(world.splittable[position])
        running += mine.split_odds[chosen]
        if running > threshold:
            break
    return chosen


@shared
def choose_pair(world: Any, mine: Any, random: Any) -> tuple[int, int]:
    """Draw two clusters, by the odds of merging them or uniformly."""
    count = world.counters[LIVE]
    if uniform(random) < mine.settings[EXPLORE]:
        first, second = two_below(random, count)
        return int(world.live[first]), int(world.live[second])
    threshold = uniform(random) * total_merge_odds(mine)
    row, running = -1, 0.0
    for position in range(count):
        row = int(world.live[position])
        running += mine.sums[row, 0]
        if running > threshold:
            break
    return row, choose_by(world, mine.merge_odds[row], uniform(random) * mine.sums[row, 0])


@shared
def choose_by(world: Any, odds: Any, threshold: float) -> int:
    """Return the first cluster at which the running sum of odds passes ``threshold``."""
    chosen, running = -1, 0.0
    for position in range(world.counters[LIVE]):
        cluster = int(world.live[position])
        if odds[cluster] > 0.0:
            chosen = cluster
            running += odds[cluster]
            if running > threshold:
                break
    return chosen


@shared
def is_able(kind: int, clusters: int, splittable: int) -> bool:
    """Whether a kind of jump can propose anything in a world with these counts."""
    return (kind == MERGE or splittable >= 1) and (kind == SPLIT or clusters >= 2)


@shared
def draw_kind(mine: Any, random: Any) -> int:
    """Draw a kind among those that can propose something; -1 if there is none."""
    total = 0.0
    for kind in range(3):
        if is_able(kind, mine.counters[LIVE], mine.counters[SPLITTABLE]):
            total += mine.settings[kind]
    if total == 0.0:
        return -1
    threshold = uniform(random) * total
    chosen, running = -1, 0.0
    for kind in range(3):
        if is_able(kind, mine.counters[LIVE], mine.counters[SPLITTABLE]) and mine.settings[kind] > 0.0:
            chosen = kind
            running += mine.settings[kind]
            if running > threshold:
                break
    return chosen


@shared
def log_kind(mine: Any, kind: int) -> float:
    """Return the log-probability of a kind of jump that can propose something."""
    total = 0.0
    for other in range(3):
        if is_able(other, mine.counters[LIVE], mine.counters[SPLITTABLE]):
            total += mine.settings[other]
    return math.log(mine.settings[kind] / total)


@shared
def log_share(mine: Any, odds: float, total: float, count: int) -> float:
    """Return the log-probability of one of ``count`` choices, made by odds or uniformly."""
    explore = mine.settings[EXPLORE]
    return math.log((1.0 - explore) * (odds / total) + explore / count)


@shared
def log_mixed(mine: Any, cluster: int) -> float:
    """Return the log-probability of choosing this cluster to split, or to give a part away."""
    return log_share(mine, mine.split_odds[cluster], total_split_odds(mine), mine.counters[SPLITTABLE])


@shared
def log_pair(mine: Any, first: int, second: int) -> float:
    """Return the log-probability of choosing these two clusters to merge."""
    pairs = mine.counters[LIVE] * (mine.counters[LIVE] - 1) // 2
    return log_share(mine, mine.merge_odds[first, second], total_merge_odds(mine) / 2.0, pairs)


@shared
def log_any_part(size: int) -> float:
    """Return the log-probability of one particular way to split a cluster in two: 1 / (2^(size - 1) - 1)."""
    return -(size - 1) * math.log(2.0) - math.log1p(-(2.0 ** (1.0 - size)))


@shared
def log_moved_part(size: int, moving: int) -> float:
    """Return the log-probability that a move takes one particular part."""
    log_any = math.log((1.0 - ONE_MEMBER) / 2.0) + log_any_part(size)
    if moving > 1:
        return log_any
    return math.log(ONE_MEMBER / size + math.exp(log_any))
