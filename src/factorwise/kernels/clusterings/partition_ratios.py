"""How likely a transfer and its way back are: the compiled twin of `inference.mcmc.partition_mixture`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partition_moves import (
    MERGE,
    ONE_OVER_TYPES,
    RETYPE,
    SPLIT,
    SPLIT_MERGE,
    TO_CANDIDATE,
    TO_CLUSTER,
    TO_ITEM,
    TO_NEW,
    TYPES,
    MoveArrays,
    is_available,
)
from factorwise.kernels.clusterings.partitions import LIVE, NEW, SPLITTABLE, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner

LOG_2 = np.log(2.0)


@inner
def log_literal(
    kind: int,
    n: int,
    clusters: int,
    splittable: int,
    types: int,
    peers: int,
    s: int,
    m: int,
    t: int,
    links: float,
) -> float:
    """Log-probability that a move draws one literal transfer of m of s items to a cluster of t."""
    if kind == TO_CLUSTER:
        if m == 1 and t > 0:
            return -np.log(n * (clusters - 1.0))
    elif kind == TO_ITEM:
        if m == 1 and t > 0:
            return np.log(t / (n * (peers - 1.0)))
    elif kind == TO_CANDIDATE:
        if m == 1 and t > 0 and links > 0.0:
            return np.log(links / n)
    elif kind == TO_NEW:
        if m == 1 and t == 0:
            return -np.log(n * np.float64(types))
    elif kind == MERGE:
        if m == s and t > 0:
            return -np.log(clusters * (clusters - 1.0))
    elif kind == SPLIT:
        if t == 0 and m < s:
            return -np.log(splittable * np.float64(types)) - s * LOG_2 - np.log1p(-(2.0 ** (1 - s)))
    elif kind == SPLIT_MERGE:
        if t == 0 and m < s:
            return np.log(m * (s - m) / (n * (n - 1.0))) - (s - 2) * LOG_2 - np.log(np.float64(types))
        if t > 0 and m == s:
            return np.log(s * np.float64(t) / (n * (n - 1.0)))
    elif kind == RETYPE:
        if m == 0:
            return -np.log(clusters * (types - 1.0))
    return -np.inf


@inner
def log_outcome(
    moves: MoveArrays,
    n: int,
    clusters: int,
    splittable: int,
    peers: int,
    s: int,
    m: int,
    t: int,
    links: float,
    other_m: int,
    other_links: float,
) -> float:
    """Log-probability of proposing the world that a transfer gives; ``other_m`` > 0 adds its mirror image.

    The mirror image of a split moves the other part, that of a merge the other cluster.
    """
    available = 0.0
    top = -np.inf
    total = 0.0
    for index in range(len(moves.choices)):
        kind = moves.choices[index].kind
        if not is_available(kind, moves, n, clusters, splittable):
            continue
        available += moves.choices[index].weight
        scale = np.log(moves.choices[index].weight)
        types = moves.settings[TYPES]
        for way in range(2):
            if way == 0:
                term = scale + log_literal(kind, n, clusters, splittable, types, peers, s, m, t, links)
            elif other_m == 0:
                continue
            elif t == 0:
                term = scale + log_literal(
                    kind, n, clusters, splittable, types, peers, s, other_m, 0, other_links
                )
            else:
                term = scale + log_literal(
                    kind, n, clusters, splittable, types, peers, other_m, other_m, s, other_links
                )
            if term > top:
                total = total * np.exp(top - term) + 1.0
                top = term
            elif term > -np.inf:
                total += np.exp(term - top)
    if top == -np.inf:
        return top
    return top + np.log(total) - np.log(available)


@inner
def share_of_candidates(moves: MoveArrays, p: PartitionArrays, item: int, cluster: int) -> float:
    """Share of an item's candidates that are in ``cluster``, the item itself aside."""
    degree = moves.candidate_start[item + 1] - moves.candidate_start[item]
    if degree == 0:
        return 0.0
    count = 0
    for index in range(moves.candidate_start[item], moves.candidate_start[item + 1]):
        if p.items[moves.candidate[index]].label == cluster:
            count += 1
    return count / np.float64(degree)


@hot
def relocation_weight(rates: NDArray[np.float64], clusters: int, scale: float, t: int, links: float) -> float:
    """Weight with which relocations draw one given item and a cluster of t for it (0: a new one).

    Up to a factor that forward and backward share, and up to the weight of all moves available.
    """
    if t == 0:
        return rates[TO_NEW] * rates[ONE_OVER_TYPES] * scale
    total = rates[TO_ITEM] * t + rates[TO_CANDIDATE] * links * scale
    if rates[TO_CLUSTER] > 0.0:
        total += rates[TO_CLUSTER] * scale / (clusters - 1.0)
    return total


@hot
def relocations_available(rates: NDArray[np.float64], clusters: int, splittable: int) -> float:
    """Weight of all relocations that have something to propose."""
    total = rates[TO_ITEM] + rates[TO_CANDIDATE]
    if clusters >= 2:
        total += rates[TO_CLUSTER]
    if splittable >= 1:
        total += rates[TO_NEW]
    return total


@hot
def relocation_ratio(
    moves: MoveArrays,
    p: PartitionArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    linked: bool | None,
) -> float:
    """Backward over forward probability of a relocation, for mixtures of nothing but relocations.

    The same as `transfer_log_ratio` without logarithms: probabilities of relocations do not underflow.
    """
    item, source, target = items[0], drawn[1], drawn[2]
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    s = p.clusters[source].size
    t = 0 if target == NEW else p.clusters[target].size
    target_type = drawn[3] if target == NEW else np.int64(p.clusters[target].type)
    same_type = p.clusters[source].type == target_type
    scale = np.float64(max(peers_of(moves, p, item) - 1, 1))
    links, home_links, other_links, other_home_links = 0.0, 0.0, 0.0, 0.0
    if linked is not None:
        links = share_of_candidates(moves, p, item, target)
        home_links = share_of_candidates(moves, p, item, source)
        if s == 1 and t == 1:
            other_links = share_of_candidates(moves, p, p.members[p.clusters[target].start], source)
        if s == 2 and t == 0:
            first = p.clusters[source].start
            other = p.members[first] if p.members[first] != item else p.members[first + 1]
            other_home_links = share_of_candidates(moves, p, other, source)
    there = splittable - (s >= 2) - (t >= 2) + (s - 1 >= 2) + (t + 1 >= 2)
    clusters_there = clusters + (t == 0) - (s == 1)
    forward = relocation_weight(moves.rates, clusters, scale, t, links)
    backward = relocation_weight(moves.rates, clusters_there, scale, s - 1, home_links)
    if same_type and s == 1 and t == 1:  # either item may join the other, and either may leave again
        forward += relocation_weight(moves.rates, clusters, scale, 1, other_links)
        backward += relocation_weight(moves.rates, clusters_there, scale, 0, 0.0)
    if same_type and s == 2 and t == 0:
        forward += relocation_weight(moves.rates, clusters, scale, 0, 0.0)
        backward += relocation_weight(moves.rates, clusters_there, scale, 1, other_home_links)
    here = relocations_available(moves.rates, clusters, splittable)
    return backward * here / (forward * relocations_available(moves.rates, clusters_there, there))


@hot
def peers_of(moves: MoveArrays, p: PartitionArrays, item: int) -> int:
    """Number of items in the block of ``item``; of all items without blocking."""
    if len(moves.block_start) > 2:
        block = moves.blocks[item].of
        return moves.block_start[block + 1] - moves.block_start[block]
    return len(p.items)


@inner
def transfer_log_ratio(
    moves: MoveArrays, p: PartitionArrays, items: NDArray[np.int32], drawn: NDArray[np.int64]
) -> float:
    """Log of backward over forward probability of the drawn transfer."""
    m, source, target = drawn[0], drawn[1], drawn[2]
    if m == 0:
        return 0.0  # a change of type is as likely as the way back
    n = len(p.items)
    s = np.int64(p.clusters[source].size)
    t = np.int64(0) if target == NEW else np.int64(p.clusters[target].size)
    clusters = p.counters[LIVE]
    splittable = p.counters[SPLITTABLE]
    peers = peers_of(moves, p, items[0])
    target_type = drawn[3] if t == 0 else np.int64(p.clusters[target].type)
    mirrored = p.clusters[source].type == target_type and (t == 0 or m == s)
    there = splittable - (s >= 2) - (t >= 2) + (s - m >= 2) + (t + m >= 2)
    links, home_links, other_links, other_home_links = 0.0, 0.0, 0.0, 0.0
    if len(moves.candidate) > 0:
        if m == 1 and t > 0:
            links = share_of_candidates(moves, p, items[0], target)
        if m == 1 and m < s:
            home_links = share_of_candidates(moves, p, items[0], source)
        if m == s and t == 1:
            other_links = share_of_candidates(moves, p, p.members[p.clusters[target].start], source)
        if t == 0 and s - m == 1:
            other_home_links = _share_among(moves, _left_behind(p, source, items, m), items, m)
    other = 0
    if mirrored:
        other = s - m if t == 0 else t
    forward = log_outcome(moves, n, clusters, splittable, peers, s, m, t, links, other, other_links)
    clusters_there = clusters + (t == 0) - (m == s)
    backward = log_outcome(
        moves, n, clusters_there, there, peers, t + m, m, s - m, home_links, other, other_home_links
    )
    return backward - forward


@inner
def _left_behind(p: PartitionArrays, source: int, items: NDArray[np.int32], m: int) -> int:
    """Return the one member of ``source`` that does not move."""
    for index in range(p.clusters[source].size):
        item = p.members[p.clusters[source].start + index]
        moving = False
        for k in range(m):
            if items[k] == item:
                moving = True
                break
        if not moving:
            return item
    return -1


@inner
def _share_among(moves: MoveArrays, item: int, items: NDArray[np.int32], m: int) -> float:
    """Share of an item's candidates among ``items[:m]``."""
    degree = moves.candidate_start[item + 1] - moves.candidate_start[item]
    if degree == 0:
        return 0.0
    count = 0
    for index in range(moves.candidate_start[item], moves.candidate_start[item + 1]):
        for k in range(m):
            if items[k] == moves.candidate[index]:
                count += 1
                break
    return count / np.float64(degree)
