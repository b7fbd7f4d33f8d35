"""The arrays behind a clustering, and the few kernels that change them.

Members of a cluster lie contiguously in blocks of power-of-two capacity inside one arena, so a scan over a
cluster is a scan over memory. Freed blocks wait in one list per capacity, linked through the arena itself.
``live`` is a permutation of all cluster ids whose first ``counters[LIVE]`` entries are in use: a cluster is
picked at random, created or dropped in O(1). ``splittable`` does the same for clusters of two or more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compiler import kernel

NEW = -1  # as a target: a cluster that does not exist yet

LIVE, SPLITTABLE, TOP, COMPACTIONS = 0, 1, 2, 3


class PartitionArrays(NamedTuple):
    """A clustering of n items; cluster ids are 0 to n - 1.

    labels : int32[n]
        Cluster of each item.
    slot : int64[n]
        Where the item stands in ``members``.
    start, size, order : int64[n], int32[n], int32[n]
        Of each cluster in use: first slot, number of members, log2 of the block's capacity.
    types : int32[n]
        Type label of each cluster in use; zero where clusters carry none.
    members : int32[arena]
        Items by slot.
    live, live_at, splittable, splittable_at : int32[n]
        Two permutations of the cluster ids and their inverses.
    free : int64[32]
        First freed block of each order, or -1.
    counters : int64[4]
        Clusters in use, clusters of two or more, end of the arena in use, compactions so far.
    """

    labels: NDArray[np.int32]
    slot: NDArray[np.int64]
    start: NDArray[np.int64]
    size: NDArray[np.int32]
    order: NDArray[np.int32]
    types: NDArray[np.int32]
    members: NDArray[np.int32]
    live: NDArray[np.int32]
    live_at: NDArray[np.int32]
    splittable: NDArray[np.int32]
    splittable_at: NDArray[np.int32]
    free: NDArray[np.int64]
    counters: NDArray[np.int64]


@kernel
def fill_partition(p: PartitionArrays, labels: NDArray[np.int32], types: NDArray[np.int32]) -> None:
    """Set up all arrays from dense ``labels``; ``types[c]`` is the type of cluster c."""
    n = len(labels)
    for cluster in range(n):
        p.size[cluster] = 0
        p.live[cluster] = cluster
        p.live_at[cluster] = cluster
        p.splittable[cluster] = cluster
        p.splittable_at[cluster] = cluster
        p.types[cluster] = 0
    clusters = 0
    for item in range(n):
        p.labels[item] = labels[item]
        p.size[labels[item]] += 1
        clusters = max(clusters, labels[item] + 1)
    p.counters[LIVE] = clusters
    p.counters[SPLITTABLE] = 0
    p.counters[TOP] = 0
    p.counters[COMPACTIONS] = 0
    for order in range(len(p.free)):
        p.free[order] = -1
    for cluster in range(clusters):
        order = order_for(p.size[cluster])
        p.types[cluster] = types[cluster]
        p.order[cluster] = order
        p.start[cluster] = p.counters[TOP]
        p.counters[TOP] += 1 << order
        if p.size[cluster] > 1:
            note_splittable(p, cluster)
        p.size[cluster] = 0
    for item in range(n):
        cluster = labels[item]
        p.slot[item] = p.start[cluster] + p.size[cluster]
        p.members[p.slot[item]] = item
        p.size[cluster] += 1


@kernel
def order_for(size: int) -> int:
    """Log2 of the smallest power of two that holds ``size`` members."""
    order = 0
    while (1 << order) < size:
        order += 1
    return order


@kernel
def note_splittable(p: PartitionArrays, cluster: int) -> None:
    """Enter a cluster that has grown to two members."""
    _exchange(p.splittable, p.splittable_at, p.splittable_at[cluster], p.counters[SPLITTABLE])
    p.counters[SPLITTABLE] += 1


@kernel
def drop_splittable(p: PartitionArrays, cluster: int) -> None:
    """Leave out a cluster that has shrunk to one member."""
    p.counters[SPLITTABLE] -= 1
    _exchange(p.splittable, p.splittable_at, p.splittable_at[cluster], p.counters[SPLITTABLE])


@kernel
def _exchange(
    permutation: NDArray[np.int32], inverse: NDArray[np.int32], first: int, second: int
) -> None:
    a, b = permutation[first], permutation[second]
    permutation[first], permutation[second] = b, a
    inverse[a], inverse[b] = second, first


@kernel
def create_cluster(p: PartitionArrays, label: int) -> int:
    """Take an unused id for an empty cluster with type ``label``."""
    cluster = p.live[p.counters[LIVE]]
    p.counters[LIVE] += 1
    p.size[cluster] = 0
    p.types[cluster] = label
    p.order[cluster] = 0
    p.start[cluster] = allocate_block(p, 0)
    return cluster


@kernel
def drop_cluster(p: PartitionArrays, cluster: int) -> None:
    """Give back an empty cluster's id and block."""
    release_block(p, p.start[cluster], p.order[cluster])
    p.counters[LIVE] -= 1
    _exchange(p.live, p.live_at, p.live_at[cluster], p.counters[LIVE])


@kernel
def release_block(p: PartitionArrays, start: int, order: int) -> None:
    """Put a block at the head of the free list of its order."""
    p.members[start] = p.free[order]
    p.free[order] = start


@kernel
def allocate_block(p: PartitionArrays, order: int) -> int:
    """Find room for ``2 ** order`` members, compacting the arena when it is full."""
    start = p.free[order]
    if start >= 0:
        p.free[order] = p.members[start]
        return start
    if p.counters[TOP] + (1 << order) > len(p.members):
        compact(p)
    start = p.counters[TOP]
    p.counters[TOP] += 1 << order
    return start


@kernel
def compact(p: PartitionArrays) -> None:
    """Lay all blocks out anew at the capacity they need: at most 2n of the arena's 4n slots.

    Rare, since blocks double and freed ones are reused, so the copy may allocate.
    """
    old = p.members.copy()
    for order in range(len(p.free)):
        p.free[order] = -1
    top = 0
    for position in range(p.counters[LIVE]):
        cluster = p.live[position]
        order = order_for(p.size[cluster])
        for index in range(p.size[cluster]):
            item = old[p.start[cluster] + index]
            p.members[top + index] = item
            p.slot[item] = top + index
        p.start[cluster] = top
        p.order[cluster] = order
        top += 1 << order
    p.counters[TOP] = top
    p.counters[COMPACTIONS] += 1


@kernel
def grow_block(p: PartitionArrays, cluster: int, order: int) -> None:
    """Move a cluster into a block of ``2 ** order`` slots."""
    fresh = allocate_block(p, order)
    start = p.start[cluster]  # read after allocating: a compaction may have moved it
    for index in range(p.size[cluster]):
        item = p.members[start + index]
        p.members[fresh + index] = item
        p.slot[item] = fresh + index
    release_block(p, start, p.order[cluster])
    p.start[cluster] = fresh
    p.order[cluster] = order


@kernel
def detach(p: PartitionArrays, item: int) -> None:
    """Take ``item`` out of its cluster; the last member fills the hole. An empty cluster stays."""
    cluster = p.labels[item]
    hole = p.slot[item]
    p.size[cluster] -= 1
    last = p.members[p.start[cluster] + p.size[cluster]]
    p.members[hole] = last
    p.slot[last] = hole
    if p.size[cluster] == 1:
        drop_splittable(p, cluster)


@kernel
def attach(p: PartitionArrays, item: int, cluster: int) -> None:
    """Append ``item``, which is in no cluster, to ``cluster``."""
    if p.size[cluster] == 1 << p.order[cluster]:
        grow_block(p, cluster, p.order[cluster] + 1)
    p.slot[item] = p.start[cluster] + p.size[cluster]
    p.members[p.slot[item]] = item
    p.labels[item] = cluster
    p.size[cluster] += 1
    if p.size[cluster] == 2:
        note_splittable(p, cluster)


@kernel
def relocate(p: PartitionArrays, item: int, target: int, new_type: int) -> int:
    """Move one item to ``target`` or, for NEW, to a cluster of its own; return the cluster it is in."""
    source = p.labels[item]
    if target == NEW:
        target = create_cluster(p, new_type)
    detach(p, item)
    attach(p, item, target)
    if p.size[source] == 0:
        drop_cluster(p, source)
    return target


@kernel
def transfer(
    p: PartitionArrays, items: NDArray[np.int32], count: int, target: int, new_type: int
) -> int:
    """Move ``items[:count]`` of one cluster to ``target`` or NEW; return the cluster they are in.

    The smaller side moves in memory: a whole cluster merged into a smaller one keeps its block and takes the
    smaller one in, and the large part of a split keeps the block. Cluster ids follow the memory, types follow
    the meaning.
    """
    if count == 1:
        return relocate(p, items[0], target, new_type)
    source = p.labels[items[0]]
    whole = p.size[source] == count
    if target != NEW and whole and count > p.size[target]:
        kept = p.types[target]
        while p.size[target] > 0:
            item = p.members[p.start[target] + p.size[target] - 1]
            detach(p, item)
            attach(p, item, source)
        drop_cluster(p, target)
        p.types[source] = kept
        return source
    if target == NEW and count > p.size[source] - count:
        rest = create_cluster(p, p.types[source])
        p.types[source] = new_type
        for index in range(count):  # to the front, in the given order; what lies behind is the rest
            _swap_members(p, source, p.slot[items[index]], p.start[source] + index)
        while p.size[source] > count:
            item = p.members[p.start[source] + p.size[source] - 1]
            detach(p, item)
            attach(p, item, rest)
        return source
    if target == NEW:
        target = create_cluster(p, new_type)
    for index in range(count):
        detach(p, items[index])
        attach(p, items[index], target)
    if p.size[source] == 0:
        drop_cluster(p, source)
    return target


@kernel
def _swap_members(p: PartitionArrays, cluster: int, first: int, second: int) -> None:
    a, b = p.members[first], p.members[second]
    p.members[first], p.members[second] = b, a
    p.slot[a], p.slot[b] = second, first
