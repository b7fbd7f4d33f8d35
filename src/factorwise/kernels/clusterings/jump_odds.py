"""Odds of jumps: which clusters look mixed and which pairs alike, with sums that stay exact as they change.

The odds of merging stand in a square by cluster id, symmetric, zero for ids not in use. Of every row the sum
is kept in two floating-point numbers, whose error is that of twice their digits, and added up afresh when it
has shrunk so far that even these would be lost. A jump changes one or two rows and columns, so it costs time
in proportion to the number of clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partitions import LIVE, SPLITTABLE, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below, random_uniform

SPLIT, MERGE, MOVE = range(3)
EXPLORE, GUIDED, ADDITIVE = 3, 4, 5
LOG_PART, LOG_RATIO = range(2)
LARGEST_LOG_ODDS = 300.0  # beyond it odds would leave the range of floating-point numbers
SHRUNK = 2.0**-20  # a sum below this share of what it has been is added up afresh
SMALL_REST = 2.0**-30  # so is what one entry leaves of a sum, below this share of it


class JumpArrays(NamedTuple):
    """The weights of an adaptive proposer, the odds that follow from them, and scratch.

    settings : float64[6]
        Odds of splits, merges and moves, the share of uniform choices, whether parts are guided, whether all
        features are sums over pairs of items.
    columns : int64[features - 1]
        The statistics of the model that are features; the last feature is the logarithm of the size.
    split_weights, merge_weights : float64[features]
        Weights of the features of one cluster and of two.
    contents : float64[n, features - 1]
        By cluster id: what the chosen statistics gain from holding the members together.
    split_odds : float64[n]
        By cluster id; zero for clusters of one and for ids not in use.
    merge_odds : float64[n, n]
        By two cluster ids; zero where one is not in use.
    between : float64[n, n]
        By two cluster ids: the weighed statistics that merging them gains, before they are taken per pair.
    sums : float64[n, 3]
        Sum of each row of ``merge_odds`` in two parts, and the largest it has been since it was added up.
    gradient, other : float64[weights]
        Scratch: gradients.
    items, drawn : int32[n], int64[4]
        Scratch: a transfer that is looked at, not the one at hand.
    part_odds : float64[n]
        By cluster id: odds of a part with each cluster.
    sides, side_sizes : int32[2, n], int64[2]
        Scratch: two sides of a cluster to be split.
    jump : int64[3]
        Of the jump at hand: its kind; with guided parts, the two members drawn to be apart.
    logs : float64[2]
        Of the guided split at hand, log-probability that the others join the two as they do; of the jump at
        hand, log-probability of the way back minus that of the way there.
    tally : int64[1]
        Pairs of items looked at for the odds.
    """

    settings: NDArray[np.float64]
    columns: NDArray[np.int64]
    split_weights: NDArray[np.float64]
    merge_weights: NDArray[np.float64]
    contents: NDArray[np.float64]
    split_odds: NDArray[np.float64]
    merge_odds: NDArray[np.float64]
    between: NDArray[np.float64]
    sums: NDArray[np.float64]
    gradient: NDArray[np.float64]
    other: NDArray[np.float64]
    items: NDArray[np.int32]
    drawn: NDArray[np.int64]
    part_odds: NDArray[np.float64]
    sides: NDArray[np.int32]
    side_sizes: NDArray[np.int64]
    jump: NDArray[np.int64]
    logs: NDArray[np.float64]
    tally: NDArray[np.int64]


@hot
def as_odds(log_odds: float) -> float:
    """Odds, neither zero nor infinite."""
    return np.exp(min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS))


@hot
def add_exactly(sums: NDArray[np.float64], row: int, value: float) -> None:
    """Add to a sum kept in two parts: what rounding takes from the first goes to the second."""
    old = sums[row, 0]
    new = old + value
    taken = new - old
    rest = sums[row, 1] + ((old - (new - taken)) + (value - taken))
    sums[row, 0] = new + rest
    sums[row, 1] = rest - (sums[row, 0] - new)


@inner
def sum_row(jumps: JumpArrays, p: PartitionArrays, row: int) -> None:
    """Add up one row of merge odds afresh."""
    for k in range(3):
        jumps.sums[row, k] = 0.0
    for position in range(p.counters[LIVE]):
        add_exactly(jumps.sums, row, jumps.merge_odds[row, p.clusters[position].live])
    jumps.sums[row, 2] = jumps.sums[row, 0]


@inner
def set_odds(jumps: JumpArrays, p: PartitionArrays, row: int, column: int, odds: float) -> None:
    """Change one entry of the merge odds and the sum of its row."""
    before = jumps.merge_odds[row, column]
    jumps.merge_odds[row, column] = odds
    add_exactly(jumps.sums, row, odds)
    add_exactly(jumps.sums, row, -before)
    total = jumps.sums[row, 0]
    if total > jumps.sums[row, 2]:
        jumps.sums[row, 2] = total
    elif total < SHRUNK * jumps.sums[row, 2]:
        sum_row(jumps, p, row)


@inner
def rest_of_row(jumps: JumpArrays, p: PartitionArrays, row: int, column: int) -> float:
    """Sum of one row of merge odds but for one entry."""
    rest = jumps.sums[row, 0] - jumps.merge_odds[row, column] + jumps.sums[row, 1]
    if rest >= SMALL_REST * jumps.sums[row, 0]:
        return rest
    rest = 0.0  # the entry is nearly all of the sum, whose second part may have lost what is beside it
    for position in range(p.counters[LIVE]):
        other = p.clusters[position].live
        if other != column:
            rest += jumps.merge_odds[row, other]
    return rest


@inner
def forget_cluster(jumps: JumpArrays, p: PartitionArrays, cluster: int) -> None:
    """Clear the odds of a cluster id that is no longer in use."""
    jumps.split_odds[cluster] = 0.0
    for position in range(p.counters[LIVE]):
        other = p.clusters[position].live
        jumps.merge_odds[cluster, other] = 0.0
        set_odds(jumps, p, other, cluster, 0.0)
    for k in range(3):
        jumps.sums[cluster, k] = 0.0


@inner
def total_merge_odds(jumps: JumpArrays, p: PartitionArrays) -> float:
    """Sum of the rows: every pair counts twice."""
    total = 0.0
    for position in range(p.counters[LIVE]):
        total += jumps.sums[p.clusters[position].live, 0]
    return total


@inner
def total_split_odds(jumps: JumpArrays, p: PartitionArrays) -> float:
    """Sum over the clusters of two or more."""
    total = 0.0
    for position in range(p.counters[SPLITTABLE]):
        total += jumps.split_odds[p.clusters[position].splittable]
    return total


@inner
def choose_mixed(jumps: JumpArrays, p: PartitionArrays, state: NDArray[np.uint64]) -> int:
    """Draw a cluster of two or more: by its odds, or uniformly."""
    count = p.counters[SPLITTABLE]
    if random_uniform(state) < jumps.settings[EXPLORE]:
        return int(p.clusters[random_below(state, count)].splittable)
    threshold = random_uniform(state) * total_split_odds(jumps, p)
    chosen = int(p.clusters[0].splittable)
    running = 0.0
    for position in range(count):
        chosen = int(p.clusters[position].splittable)
        running += jumps.split_odds[chosen]
        if running > threshold:
            break
    return chosen


@inner
def choose_pair(jumps: JumpArrays, p: PartitionArrays, state: NDArray[np.uint64]) -> tuple[int, int]:
    """Draw two clusters: by the odds of merging them, or uniformly."""
    count = p.counters[LIVE]
    if random_uniform(state) < jumps.settings[EXPLORE]:
        first = random_below(state, count)
        second = random_below(state, count - 1)
        if second >= first:
            second += 1
        return int(p.clusters[first].live), int(p.clusters[second].live)
    threshold = random_uniform(state) * total_merge_odds(jumps, p)
    row = int(p.clusters[0].live)
    running = 0.0
    for position in range(count):
        row = int(p.clusters[position].live)
        running += jumps.sums[row, 0]
        if running > threshold:
            break
    return row, choose_by(jumps.merge_odds[row], p, random_uniform(state) * jumps.sums[row, 0])


@inner
def choose_by(odds: NDArray[np.float64], p: PartitionArrays, threshold: float) -> int:
    """Return the first cluster at which the running sum of odds passes ``threshold``."""
    chosen = -1
    running = 0.0
    for position in range(p.counters[LIVE]):
        cluster = int(p.clusters[position].live)
        if odds[cluster] > 0.0:
            chosen = cluster
            running += odds[cluster]
            if running > threshold:
                break
    return chosen


@lean_kernel
def spread_odds(
    jumps: JumpArrays, p: PartitionArrays, between: NDArray[np.float64], within: NDArray[np.float64]
) -> None:
    """Set all odds from log-odds: of pairs by position, (a, b) with a > b at a (a - 1) / 2 + b; of clusters.

    ``within`` is in the order of the clusters of two or more.
    """
    for cluster in range(len(jumps.split_odds)):
        jumps.split_odds[cluster] = 0.0
        for other in range(len(jumps.split_odds)):
            jumps.merge_odds[cluster, other] = 0.0
    for position in range(p.counters[SPLITTABLE]):
        jumps.split_odds[p.clusters[position].splittable] = as_odds(within[position])
    for a in range(p.counters[LIVE]):
        first = p.clusters[a].live
        for b in range(a):
            second = p.clusters[b].live
            odds = as_odds(between[a * (a - 1) // 2 + b])
            jumps.merge_odds[first, second] = odds
            jumps.merge_odds[second, first] = odds
    for position in range(p.counters[LIVE]):
        sum_row(jumps, p, p.clusters[position].live)
