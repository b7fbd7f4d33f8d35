"""How likely a jump is and how likely the way back, from the present world alone.

What the odds will be on the other side follows from gradients of the present world: the contents of new
clusters add up, and a part's odds with every other cluster are those it would have had it left its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.jump_draws import ONE_MEMBER, Allocation, is_able
from factorwise.kernels.clusterings.jump_features import (
    ClusterModel,
    clear_sides,
    content_of,
    mixed_odds,
    set_part_odds,
)
from factorwise.kernels.clusterings.jump_odds import (
    EXPLORE,
    GUIDED,
    LOG_PART,
    LOG_RATIO,
    MERGE,
    MOVE,
    SPLIT,
    JumpArrays,
    rest_of_row,
    total_merge_odds,
    total_split_odds,
)
from factorwise.kernels.clusterings.partitions import LIVE, SPLITTABLE, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner

LOG_2 = np.log(2.0)


@hot
def log_kind(jumps: JumpArrays, kind: int, clusters: int, splittable: int) -> float:
    """Log-probability of a kind of jump in a world with these counts."""
    total = 0.0
    for other in range(3):
        if is_able(other, clusters, splittable):
            total += jumps.settings[other]
    return np.log(jumps.settings[kind] / total)


@hot
def log_share(jumps: JumpArrays, odds: float, total: float, count: int) -> float:
    """Log-probability of one of ``count`` choices, made by odds or else uniformly."""
    explore = jumps.settings[EXPLORE]
    return np.log((1.0 - explore) * odds / total + explore / count)


@hot
def log_uniform_part(size: int) -> float:
    """Log-probability of either side of a split in two: 1 / (2^(size - 1) - 1)."""
    return -(size - 1) * LOG_2 - np.log1p(-(2.0 ** (1.0 - size)))


@hot
def log_moved_part(size: int, moving: int) -> float:
    """Log-probability that a move takes one particular part."""
    log_any = np.log((1.0 - ONE_MEMBER) / 2.0) + log_uniform_part(size)
    if moving > 1:
        return log_any
    return np.log(ONE_MEMBER / size + np.exp(log_any))


@inner
def jump_log_ratio(
    allocation: Allocation,
    o: ClusterModel,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    gradient: NDArray[np.float64],
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
) -> None:
    """Set the log-probability of the way back minus that of the drawn jump, whose gradient is given."""
    if jumps.jump[0] == MERGE:
        ratio = merge_log_ratio(allocation, o, jumps, drawn, gradient, state)
    elif jumps.jump[0] == SPLIT:
        ratio = split_log_ratio(o, jumps, items, drawn, no_features)
    else:
        ratio = move_log_ratio(o, jumps, items, drawn, gradient, no_features)
    jumps.logs[LOG_RATIO] = ratio


@inner
def no_log_ratio(
    allocation: Allocation,
    o: ClusterModel,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    gradient: NDArray[np.float64],
    no_features: NDArray[np.float32],
    state: NDArray[np.uint64],
) -> None:
    """Stand in for `jump_log_ratio` in walks that do not ask, so that nothing has to be compiled for it."""


@inner
def merge_log_ratio(
    allocation: Allocation,
    o: ClusterModel,
    jumps: JumpArrays,
    drawn: NDArray[np.int64],
    gradient: NDArray[np.float64],
    state: NDArray[np.uint64],
) -> float:
    """Of merging two clusters: the way back splits the new one."""
    p = o.p
    first, second = drawn[1], drawn[2]
    s, t = int(p.clusters[first].size), int(p.clusters[second].size)
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    pairs = clusters * (clusters - 1) // 2
    forward = log_kind(jumps, MERGE, clusters, splittable)
    forward += log_share(jumps, jumps.merge_odds[first, second], total_merge_odds(jumps, p) / 2.0, pairs)
    together = 0.0
    for k in range(len(jumps.columns)):
        content = jumps.contents[first, k] + jumps.contents[second, k] + gradient[jumps.columns[k]]
        together += jumps.split_weights[k] * content
    size = s + t
    odds = mixed_odds(jumps, together, size)
    splittable = splittable - (s >= 2) - (t >= 2) + 1
    total = odds + split_odds_but(jumps, p, first, second)
    back = log_kind(jumps, SPLIT, clusters - 1, splittable) + log_share(jumps, odds, total, splittable)
    if jumps.settings[GUIDED] == 0.0:
        return back + log_uniform_part(size) - forward
    forward -= LOG_2 + np.log(s) + np.log(t)
    list_both(jumps, p, first, second)
    allocation(o, jumps, size, True, state)
    clear_sides(o, jumps)
    return back + jumps.logs[LOG_PART] - np.log(size) - np.log(size - 1) - forward


@inner
def split_odds_but(jumps: JumpArrays, p: PartitionArrays, first: int, second: int) -> float:
    """Sum of the odds of being split over all clusters but two."""
    total = 0.0
    for position in range(p.counters[SPLITTABLE]):
        cluster = p.clusters[position].splittable
        if cluster != first and cluster != second:
            total += jumps.split_odds[cluster]
    return total


@inner
def list_both(jumps: JumpArrays, p: PartitionArrays, first: int, second: int) -> None:
    """List the members of two clusters in ``jumps.items``."""
    count = 0
    for which in range(2):
        cluster = first if which == 0 else second
        for slot in range(p.clusters[cluster].start, p.clusters[cluster].start + p.clusters[cluster].size):
            jumps.items[count] = p.members[slot]
            count += 1


@inner
def split_log_ratio(
    o: ClusterModel,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    no_features: NDArray[np.float32],
) -> float:
    """Of splitting a cluster: the way back merges the two parts."""
    p = o.p
    m, source = drawn[0], drawn[1]
    size = int(p.clusters[source].size)
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    forward = log_kind(jumps, SPLIT, clusters, splittable)
    forward += log_share(jumps, jumps.split_odds[source], total_split_odds(jumps, p), splittable)
    total = 0.0  # pairs of clusters that stay as they are, each counted twice
    for position in range(clusters):
        cluster = p.clusters[position].live
        if cluster != source:
            total += rest_of_row(jumps, p, cluster, source)
    total /= 2.0
    total += set_part_odds(o, jumps, items, m, source, no_features)
    odds = jumps.part_odds[source]
    for index in range(m):
        p.items[items[index]].mark = 1
    count = 0
    for slot in range(p.clusters[source].start, p.clusters[source].start + size):
        if p.items[p.members[slot]].mark == 0:
            jumps.sides[0, count] = p.members[slot]
            count += 1
    for index in range(m):
        p.items[items[index]].mark = 0
    total += odds + set_part_odds(o, jumps, jumps.sides[0], count, source, no_features)
    splittable = splittable - 1 + (m >= 2) + (size - m >= 2)
    pairs = clusters * (clusters + 1) // 2
    back = log_kind(jumps, MERGE, clusters + 1, splittable) + log_share(jumps, odds, total, pairs)
    if jumps.settings[GUIDED] == 0.0:
        return back - forward - log_uniform_part(size)
    back -= LOG_2 + np.log(m) + np.log(size - m)
    return back - forward - jumps.logs[LOG_PART] + np.log(size) + np.log(size - 1)


@inner
def move_log_ratio(
    o: ClusterModel,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    gradient: NDArray[np.float64],
    no_features: NDArray[np.float32],
) -> float:
    """Of moving a part to another cluster: the way back takes the same part home."""
    p = o.p
    m, source, target = drawn[0], drawn[1], drawn[2]
    s, t = int(p.clusters[source].size), int(p.clusters[target].size)
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    total = set_part_odds(o, jumps, items, m, source, no_features)
    forward = log_kind(jumps, MOVE, clusters, splittable)
    forward += log_share(jumps, jumps.split_odds[source], total_split_odds(jumps, p), splittable)
    forward += log_moved_part(s, m) + log_share(jumps, jumps.part_odds[target], total, clusters - 1)
    home = 0.0
    for position in range(clusters):
        cluster = p.clusters[position].live
        if cluster != target:
            home += jumps.part_odds[cluster]
    # set_part_odds has left in jumps.other what splitting the part off gains
    content_of(o, items, m, jumps.gradient)
    joined, left = 0.0, 0.0
    for k in range(len(jumps.columns)):
        column = jumps.columns[k]
        part, apart = jumps.gradient[column], jumps.other[column]
        joined += jumps.split_weights[k] * (jumps.contents[target, k] + part + gradient[column] - apart)
        left += jumps.split_weights[k] * (jumps.contents[source, k] + apart - part)
    odds = mixed_odds(jumps, joined, t + m)
    mixed = odds + split_odds_but(jumps, p, source, target)
    if s - m >= 2:
        mixed += mixed_odds(jumps, left, s - m)
    splittable = splittable - 1 - (t >= 2) + (s - m >= 2) + 1
    back = log_kind(jumps, MOVE, clusters, splittable) + log_share(jumps, odds, mixed, splittable)
    back += log_moved_part(t + m, m) + log_share(jumps, jumps.part_odds[source], home, clusters - 1)
    return back - forward
