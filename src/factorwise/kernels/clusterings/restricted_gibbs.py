"""Restricted-Gibbs split-merge, compiled: the twin of `inference.mcmc.restricted_gibbs`.

Two sides grow in the spare slots behind the arena; the clustering itself is left alone until the proposal
is accepted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partition_gains import (
    ClusterScore,
    PairGain,
    StorageArrays,
    pair_score,
    place,
    score_slots,
)
from factorwise.kernels.clusterings.partition_moves import (
    RESTRICTED_GIBBS,
    SCANS,
    TYPES,
    MoveArrays,
    SideArrays,
    WorkArrays,
    is_available,
    take_all,
)
from factorwise.kernels.clusterings.partitions import LIVE, NEW, SPLITTABLE, PartitionArrays
from factorwise.kernels.compile.compiler import inner
from factorwise.kernels.compile.random import random_below, random_uniform


@inner
def draw_restricted(
    pair_gain: PairGain,
    cluster_score: ClusterScore,
    p: PartitionArrays,
    h: StorageArrays,
    moves: MoveArrays,
    work: WorkArrays,
    sides: SideArrays,
    state: NDArray[np.uint64],
) -> float:
    """Draw a split or a merge into ``work`` and return log backward minus log forward probability."""
    n = len(p.items)
    types = moves.settings[TYPES]
    stays = random_below(state, n)
    mover = random_below(state, n - 1)
    mover += mover >= stays
    target, source = np.int64(p.items[stays].label), np.int64(p.items[mover].label)
    splits = source == target
    new_type = np.int64(p.clusters[source].type)
    if splits:
        new_type = np.int64(0)
        if types > 1:
            new_type = random_below(state, types)
    count = _gather(p, sides.order, target, stays, mover, 0)
    if not splits:
        count = _gather(p, sides.order, source, stays, mover, count)
    sort_ascending(sides.order, count)
    stay_type = np.int64(p.clusters[target].type)
    _launch(p, h, sides, state, count, stays, mover)
    for _ in range(moves.settings[SCANS]):
        _scan(pair_gain, cluster_score, p, h, sides, state, count, stay_type, new_type, False, source)
    log_scan = _scan(
        pair_gain, cluster_score, p, h, sides, state, count, stay_type, new_type, not splits, source
    )
    clusters, splittable = p.counters[LIVE], p.counters[SPLITTABLE]
    log_types = np.log(np.float64(types))
    if splits:
        work.items[0] = mover
        m = 1
        for index in range(count):
            if sides.places[sides.order[index]].side == 1:
                work.items[m] = sides.order[index]
                m += 1
        sort_ascending(work.items, m)
        work.drawn[0], work.drawn[1], work.drawn[2], work.drawn[3] = m, source, NEW, new_type
        rest = p.clusters[source].size - m
        there = splittable - 1 + (m >= 2) + (rest >= 2)
        return (
            _log_share(moves, n, clusters + 1, there)
            - _log_share(moves, n, clusters, splittable)
            - log_scan
            + log_types
        )
    take_all(p, source, work.items, work.drawn)
    work.drawn[2], work.drawn[3] = target, 0
    there = splittable - (p.clusters[source].size >= 2) - (p.clusters[target].size >= 2) + 1
    return (
        _log_share(moves, n, clusters - 1, there)
        - _log_share(moves, n, clusters, splittable)
        + log_scan
        - log_types
    )


@inner
def _log_share(moves: MoveArrays, n: int, clusters: int, splittable: int) -> float:
    """Log of this move's share among the moves available in a world with these counts."""
    own, total = 0.0, 0.0
    for index in range(len(moves.choices)):
        if is_available(moves.choices[index].kind, moves, n, clusters, splittable):
            total += moves.choices[index].weight
            if moves.choices[index].kind == RESTRICTED_GIBBS:
                own += moves.choices[index].weight
    return np.log(own / total)


@inner
def _gather(
    p: PartitionArrays, order: NDArray[np.int32], cluster: int, stays: int, mover: int, count: int
) -> int:
    for slot in range(p.clusters[cluster].start, p.clusters[cluster].start + p.clusters[cluster].size):
        if p.members[slot] != stays and p.members[slot] != mover:
            order[count] = p.members[slot]
            count += 1
    return count


@inner
def _launch(
    p: PartitionArrays,
    h: StorageArrays,
    sides: SideArrays,
    state: NDArray[np.uint64],
    count: int,
    stays: int,
    mover: int,
) -> None:
    """Put the two anchors on their sides and toss a coin for every other item."""
    sides.sizes[:] = 0
    _join(p, h, sides, stays, 0)
    _join(p, h, sides, mover, 1)
    for index in range(count):
        _join(p, h, sides, sides.order[index], 1 if random_uniform(state) < 0.5 else 0)


@inner
def _first_slot(p: PartitionArrays, side: int) -> int:
    """Each side may grow to all items: room for n behind the arena, and for n more."""
    return len(p.members) + side * (len(p.items) + 1)


@inner
def _join(p: PartitionArrays, h: StorageArrays, sides: SideArrays, item: int, side: int) -> None:
    slot = _first_slot(p, side) + sides.sizes[side]
    place(h, slot, item)
    sides.places[item].side = side
    sides.places[item].spot = slot
    sides.spare[slot - len(p.members)] = item
    sides.sizes[side] += 1


@inner
def _leave(p: PartitionArrays, h: StorageArrays, sides: SideArrays, item: int) -> None:
    side = sides.places[item].side
    sides.sizes[side] -= 1
    hole = sides.places[item].spot
    last = sides.spare[_first_slot(p, side) + sides.sizes[side] - len(p.members)]
    place(h, hole, last)
    sides.places[last].spot = hole
    sides.spare[hole - len(p.members)] = last


@inner
def _scan(
    pair_gain: PairGain,
    cluster_score: ClusterScore,
    p: PartitionArrays,
    h: StorageArrays,
    sides: SideArrays,
    state: NDArray[np.uint64],
    count: int,
    stay_type: int,
    move_type: int,
    forced: bool,
    source: int,
) -> float:
    """Place each item anew given all others; return the log-probability of the choices.

    ``forced``: the choices are those of the present clustering, whose cluster ``source`` is side 1.
    """
    log_scan = 0.0
    zero, one = _first_slot(p, 0), _first_slot(p, 1)
    for index in range(count):
        item = sides.order[index]
        _leave(p, h, sides, item)
        gain = 0.0  # of side 1 over side 0
        if pair_gain is not None:
            gain += pair_score(
                h, pair_gain, one, one + sides.sizes[1], zero, zero + sides.sizes[0], p.items[item].slot, 0
            )
        if len(h.edges) > 0:
            for edge in range(h.edge_start[item], h.edge_start[item + 1]):
                neighbor = h.edges[edge].neighbor
                if _stands_on_a_side(p, sides, neighbor):
                    gain += h.edges[edge].score if sides.places[neighbor].side == 1 else -h.edges[edge].score
        if cluster_score is not None:
            gain += _cluster_gain(cluster_score, p, h, sides, item, stay_type, move_type)
        # log of the probability of side 1, and of side 0
        log_one = -np.log1p(np.exp(-gain)) if gain > 0 else gain - np.log1p(np.exp(gain))
        if forced:
            side = 1 if p.items[item].label == source else 0
        else:
            side = 1 if random_uniform(state) < np.exp(log_one) else 0
        log_scan += log_one if side == 1 else log_one - gain
        _join(p, h, sides, item, side)
    return log_scan


@inner
def _stands_on_a_side(p: PartitionArrays, sides: SideArrays, item: int) -> bool:
    """Whether an item stands on one of the two sides now."""
    slot = sides.places[item].spot - len(p.members)
    if slot < 0 or slot >= len(sides.spare):
        return False
    side = 0 if slot < len(p.items) + 1 else 1
    return sides.spare[slot] == item and slot - side * (len(p.items) + 1) < sides.sizes[side]


@inner
def _cluster_gain(
    cluster_score: ClusterScore,
    p: PartitionArrays,
    h: StorageArrays,
    sides: SideArrays,
    item: int,
    stay_type: int,
    move_type: int,
) -> float:
    zero, one = _first_slot(p, 0), _first_slot(p, 1)
    gain = score_slots(h, cluster_score, zero, zero + sides.sizes[0], stay_type)
    gain -= score_slots(h, cluster_score, one, one + sides.sizes[1], move_type)
    place(h, one + sides.sizes[1], item)
    gain += score_slots(h, cluster_score, one, one + sides.sizes[1] + 1, move_type)
    place(h, zero + sides.sizes[0], item)
    gain -= score_slots(h, cluster_score, zero, zero + sides.sizes[0] + 1, stay_type)
    return gain


@inner
def sort_ascending(values: NDArray[np.int32], count: int) -> None:
    """Sort the first ``count`` values in place (Shell's method: short to compile, fast enough here)."""
    gap = count // 2
    while gap > 0:
        for index in range(gap, count):
            value = values[index]
            place_of_value = index
            while place_of_value >= gap and values[place_of_value - gap] > value:
                values[place_of_value] = values[place_of_value - gap]
                place_of_value -= gap
            values[place_of_value] = value
        gap //= 2
