"""Gains of transfers, and keeping the members' fields in step with the clustering.

The compiled pair and cluster functions of a model (see `partition_code`) read the fields of a cluster's
members from the slots where the members stand. A transfer is scored without applying it: clusters as they
would be are laid out in spare slots, or in place where one more item fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partitions import (
    COMPACTIONS,
    LIVE,
    NEW,
    PartitionArrays,
    relocate,
    transfer,
)
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel

PairGain = Callable[..., float] | None  # None where the model has no pair functions
ClusterScore = Callable[..., float] | None  # None where it has no cluster functions


EDGE = np.dtype([("neighbor", np.int64), ("score", np.float64)])


class StorageArrays(NamedTuple):
    """Fields of the items, and their copies by slot.

    item_ints, item_reals, item_rows : int32[n, .], float32[n, .], float32[n, dimensions]
        Of each item: integer fields, real fields, fields compared dimension by dimension.
    ints, reals, rows : int32[., slots], float32[., slots], float32[slots, dimensions]
        The same of the member at each slot; slots beyond the arena are spare.
    weights : float64[weights]
        The model's weights.
    edge_start, edges : int64[n + 1], EDGE[edges]
        Given pairs from both ends: the ``neighbor`` and the ``score`` of being together.
    values : float64[2]
        Scratch: cluster scores of target and source after the transfer at hand.
    """

    item_ints: NDArray[np.int32]
    item_reals: NDArray[np.float32]
    item_rows: NDArray[np.float32]
    ints: NDArray[np.int32]
    reals: NDArray[np.float32]
    rows: NDArray[np.float32]
    weights: NDArray[np.float64]
    edge_start: NDArray[np.int64]
    edges: NDArray[np.void]
    values: NDArray[np.float64]


@inner
def place(h: StorageArrays, slot: int, item: int) -> None:
    """Copy the fields of ``item`` to ``slot``."""
    for column in range(h.item_ints.shape[1]):
        h.ints[column, slot] = h.item_ints[item, column]
    for column in range(h.item_reals.shape[1]):
        h.reals[column, slot] = h.item_reals[item, column]
    for dimension in range(h.item_rows.shape[1]):
        h.rows[slot, dimension] = h.item_rows[item, dimension]


@inner
def place_cluster(h: StorageArrays, p: PartitionArrays, cluster: int) -> None:
    """Copy the fields of all members of one cluster to their slots."""
    for slot in range(p.clusters[cluster].start, p.clusters[cluster].start + p.clusters[cluster].size):
        place(h, slot, p.members[slot])


@inner
def place_everything(h: StorageArrays, p: PartitionArrays) -> None:
    """Copy the fields of all items to their slots."""
    for position in range(p.counters[LIVE]):
        place_cluster(h, p, p.clusters[position].live)


@lean_kernel
def score_clusters(h: StorageArrays, p: PartitionArrays, cluster_score: ClusterScore) -> None:
    """Set the ``value`` of every cluster to its score; the fields must be in their slots."""
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        lo = p.clusters[cluster].start
        p.clusters[cluster].value = score_slots(
            h, cluster_score, lo, lo + p.clusters[cluster].size, p.clusters[cluster].type
        )


@lean_kernel
def add_statistics(
    pair_statistics: Callable[..., None],
    cluster_statistics: Callable[..., None],
    p: PartitionArrays,
    ints: NDArray[np.int32],
    reals: NDArray[np.float32],
    rows: NDArray[np.float32],
    out: NDArray[np.float64],
) -> None:
    """Add the statistics of every cluster to ``out``: each member with those before it, then the whole."""
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        lo = p.clusters[cluster].start
        hi = lo + p.clusters[cluster].size
        for slot in range(lo + 1, hi):
            pair_statistics(ints, reals, rows, lo, slot, slot, 1.0, out)
        cluster_statistics(ints, reals, lo, hi, p.clusters[cluster].type, 1.0, out)


@hot
def score_slots(h: StorageArrays, cluster_score: ClusterScore, lo: int, hi: int, kind: int) -> float:
    """Score of the cluster-wise templates on the members at slots lo to hi; nothing for an empty cluster."""
    if hi == lo:
        return 0.0
    return cluster_score(h.ints, h.reals, lo, hi, kind, h.weights)


@hot
def pair_score(
    h: StorageArrays, pair_gain: PairGain, t_lo: int, t_hi: int, s_lo: int, s_hi: int, slot: int, own: int
) -> float:
    """Pair score of the item at ``slot`` with the slots t_lo to t_hi minus that with s_lo to s_hi."""
    return pair_gain(h.ints, h.reals, h.rows, t_lo, t_hi, s_lo, s_hi, slot, own, h.weights)


@inner
def transfer_gain(
    h: StorageArrays,
    p: PartitionArrays,
    pair_gain: PairGain,
    cluster_score: ClusterScore,
    items: NDArray[np.int32],
    m: int,
    source: int,
    target: int,
    new_type: int,
) -> float:
    """Change of score when ``items[:m]`` leave ``source`` for ``target``; sets ``h.values``."""
    if m == 1:
        return relocation_gain(h, p, pair_gain, cluster_score, items[0], target, new_type)
    spare = len(p.members)
    t_lo, t_hi = 0, 0
    target_type = new_type
    if target != NEW:
        t_lo, t_hi = p.clusters[target].start, p.clusters[target].start + p.clusters[target].size
        target_type = p.clusters[target].type
    for index in range(m):
        p.items[items[index]].mark = 1
    total = 0.0
    rest = spare  # the members that stay, laid out in spare slots
    if pair_gain is not None or cluster_score is not None:
        for slot in range(p.clusters[source].start, p.clusters[source].start + p.clusters[source].size):
            if p.items[p.members[slot]].mark == 0:
                place(h, rest, p.members[slot])
                rest += 1
    if pair_gain is not None:
        for index in range(m):
            total += pair_score(h, pair_gain, t_lo, t_hi, spare, rest, p.items[items[index]].slot, 0)
    if len(h.edges) > 0:
        for index in range(m):
            item = items[index]
            for edge in range(h.edge_start[item], h.edge_start[item + 1]):
                neighbor = h.edges[edge].neighbor
                if target != NEW and p.items[neighbor].label == target:
                    total += h.edges[edge].score
                elif p.items[neighbor].label == source and p.items[neighbor].mark == 0:
                    total -= h.edges[edge].score
    for index in range(m):
        p.items[items[index]].mark = 0
    if cluster_score is not None:
        h.values[1] = score_slots(h, cluster_score, spare, rest, p.clusters[source].type)
        together = rest
        for slot in range(t_lo, t_hi):
            place(h, together, p.members[slot])
            together += 1
        for index in range(m):
            place(h, together, items[index])
            together += 1
        h.values[0] = score_slots(h, cluster_score, rest, together, target_type)
        total += h.values[0] + h.values[1] - p.clusters[source].value
        if target != NEW:
            total -= p.clusters[target].value
    return total


@hot
def relocation_gain(
    h: StorageArrays,
    p: PartitionArrays,
    pair_gain: PairGain,
    cluster_score: ClusterScore,
    item: int,
    target: int,
    new_type: int,
) -> float:
    """Change of score when one item leaves its cluster for ``target``; sets ``h.values``."""
    source = p.items[item].label
    s_lo, s_hi = p.clusters[source].start, p.clusters[source].start + p.clusters[source].size
    t_lo, t_hi = np.int64(0), np.int64(0)
    if target != NEW:
        t_lo, t_hi = p.clusters[target].start, p.clusters[target].start + p.clusters[target].size
    total = 0.0
    if pair_gain is not None:
        total += pair_score(h, pair_gain, t_lo, t_hi, s_lo, s_hi, p.items[item].slot, 1)
    if len(h.edges) > 0:
        for edge in range(h.edge_start[item], h.edge_start[item + 1]):
            cluster = p.items[h.edges[edge].neighbor].label
            if cluster == source:
                total -= h.edges[edge].score
            elif cluster == target:
                total += h.edges[edge].score
    if cluster_score is not None:
        hole = p.items[item].slot
        place(h, hole, p.members[s_hi - 1])
        h.values[1] = score_slots(h, cluster_score, s_lo, s_hi - 1, p.clusters[source].type)
        place(h, hole, item)
        h.values[0] = score_with(h, p, cluster_score, item, target, new_type)
        total += h.values[0] + h.values[1] - p.clusters[source].value
        if target != NEW:
            total -= p.clusters[target].value
    return total


@inner
def score_with(
    h: StorageArrays, p: PartitionArrays, cluster_score: ClusterScore, item: int, target: int, new_type: int
) -> float:
    """Cluster score of ``target`` joined by ``item``: in place where it fits, else in spare slots."""
    spare = len(p.members)
    if target == NEW:
        place(h, spare, item)
        return score_slots(h, cluster_score, spare, spare + 1, new_type)
    lo, size = p.clusters[target].start, p.clusters[target].size
    if size < 1 << p.clusters[target].order:
        place(h, lo + size, item)
        return score_slots(h, cluster_score, lo, lo + size + 1, p.clusters[target].type)
    for index in range(size):
        place(h, spare + index, p.members[lo + index])
    place(h, spare + size, item)
    return score_slots(h, cluster_score, spare, spare + size + 1, p.clusters[target].type)


@inner
def apply_relocation(h: StorageArrays, p: PartitionArrays, item: int, target: int, new_type: int) -> None:
    """Apply a relocation just scored by `relocation_gain`; keep slots and cluster scores in step."""
    source = p.items[item].label
    compactions = p.counters[COMPACTIONS]
    hole = p.items[item].slot
    emptied = p.clusters[source].size == 1
    before = np.int64(-1) if target == NEW else p.clusters[target].start
    joined = relocate(p, item, target, new_type)
    if h.ints.shape[0] + h.reals.shape[0] + h.rows.shape[1] > 0:
        if p.counters[COMPACTIONS] != compactions:
            place_everything(h, p)
        else:
            if not emptied and hole < p.clusters[source].start + p.clusters[source].size:
                place(h, hole, p.members[hole])
            if p.clusters[joined].start == before:
                place(h, p.items[item].slot, item)
            else:
                place_cluster(h, p, joined)
    p.clusters[joined].value = h.values[0]
    if not emptied:
        p.clusters[source].value = h.values[1]


@inner
def apply_transfer(
    h: StorageArrays,
    p: PartitionArrays,
    items: NDArray[np.int32],
    m: int,
    source: int,
    target: int,
    new_type: int,
) -> None:
    """Apply a transfer just scored by `transfer_gain`; keep slots and cluster scores in step."""
    if m == 1:
        apply_relocation(h, p, items[0], target, new_type)
        return
    compactions = p.counters[COMPACTIONS]
    for index in range(m):
        p.items[items[index]].mark = 1
    staying = -1
    for slot in range(p.clusters[source].start, p.clusters[source].start + p.clusters[source].size):
        if p.items[p.members[slot]].mark == 0:
            staying = p.members[slot]
            break
    for index in range(m):
        p.items[items[index]].mark = 0
    joined = transfer(p, items, m, target, new_type)
    left = np.int64(-1) if staying < 0 else np.int64(p.items[staying].label)
    if h.ints.shape[0] + h.reals.shape[0] + h.rows.shape[1] > 0:
        if p.counters[COMPACTIONS] != compactions:
            place_everything(h, p)
        else:
            place_cluster(h, p, joined)
            if left >= 0:
                place_cluster(h, p, left)
    p.clusters[joined].value = h.values[0]
    if left >= 0:
        p.clusters[left].value = h.values[1]
