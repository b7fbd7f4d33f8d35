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

from factorwise.kernels.compile.compiler import inner, lean_kernel

NEW = -1  # as a target: a cluster that does not exist yet

LIVE, SPLITTABLE, TOP, COMPACTIONS, FREE = range(5)
ORDERS = 32


ITEM = np.dtype([("label", np.int32), ("mark", np.int32), ("slot", np.int64)], align=True)
CLUSTER = np.dtype(
    [
        ("start", np.int64),
        ("moved_to", np.int64),
        ("value", np.float64),
        ("size", np.int32),
        ("order", np.int32),
        ("type", np.int32),
        ("live_at", np.int32),
        ("splittable_at", np.int32),
        ("live", np.int32),
        ("splittable", np.int32),
    ],
    align=True,
)


class PartitionArrays(NamedTuple):
    """A clustering of n items; cluster ids are 0 to n - 1.

    Records instead of one array per field: what is read together lies together, and every kernel that takes
    the clustering compiles faster with four arrays than with a dozen.

    items : ITEM[n]
        ``label`` is the item's cluster, ``slot`` where it stands in ``members``, ``mark`` scratch.
    clusters : CLUSTER[n]
        By cluster id: ``start`` (first slot), ``moved_to`` (scratch), ``size``, ``order`` (log2 of the
        block's capacity), ``type`` (its label, 0 where clusters carry none), ``value`` (a score kept for the
        samplers), and where the id stands in the two permutations (``live_at``, ``splittable_at``). By
        position: the permutations themselves (``live``, ``splittable``).
    members : int32[4n + 4]
        Items by slot.
    counters : int64[4 + ORDERS]
        Clusters in use, clusters of two or more, end of the arena in use, compactions so far; then the first
        freed block of each order, or -1.
    """

    items: NDArray[np.void]
    clusters: NDArray[np.void]
    members: NDArray[np.int32]
    counters: NDArray[np.int64]


def fill_partition(p: PartitionArrays, labels: NDArray[np.int32], types: NDArray[np.int32]) -> None:
    """Set up all arrays from dense ``labels``; ``types[c]`` is the type of cluster c.

    In NumPy, so that a world can be built before anything is compiled.
    """
    ids = np.arange(len(labels), dtype=np.int32)
    size = np.bincount(labels, minlength=len(labels))
    clusters = int(labels.max()) + 1
    order = np.zeros(len(labels), np.int64)
    order[:clusters] = np.frexp(size[:clusters] - 1)[1]  # bits of size - 1: log2 of the capacity, rounded up
    capacity = np.where(ids < clusters, np.int64(1) << order, 0)
    start = np.cumsum(capacity) - capacity
    grouped = np.argsort(labels, kind="stable")  # members in order of item within each cluster
    rank = np.empty(len(labels), np.int64)
    rank[grouped] = np.arange(len(labels)) - (np.cumsum(size) - size)[labels[grouped]]
    p.items["label"], p.items["slot"] = labels, start[labels] + rank
    p.members[p.items["slot"]] = ids
    p.clusters["start"], p.clusters["size"], p.clusters["order"] = start, size, order
    p.clusters["type"][:clusters] = types
    p.clusters["live"], p.clusters["live_at"] = ids, ids
    split_first = np.argsort(size < 2, kind="stable")
    p.clusters["splittable"] = split_first
    p.clusters["splittable_at"][split_first] = ids
    p.counters[:] = -1
    p.counters[LIVE], p.counters[SPLITTABLE] = clusters, np.count_nonzero(size > 1)
    p.counters[TOP], p.counters[COMPACTIONS] = capacity.sum(), 0


@inner
def order_for(size: int) -> int:
    """Log2 of the smallest power of two that holds ``size`` members."""
    order = 0
    while (1 << order) < size:
        order += 1
    return order


@inner
def mark_splittable(p: PartitionArrays, cluster: int, splittable: bool) -> None:
    """Enter a cluster that has grown to two members, or leave out one that has shrunk to one."""
    if not splittable:
        p.counters[SPLITTABLE] -= 1
    here, border = p.clusters[cluster].splittable_at, p.counters[SPLITTABLE]
    other = p.clusters[border].splittable
    p.clusters[here].splittable, p.clusters[border].splittable = other, cluster
    p.clusters[other].splittable_at, p.clusters[cluster].splittable_at = here, border
    if splittable:
        p.counters[SPLITTABLE] += 1


@inner
def create_cluster(p: PartitionArrays, label: int) -> int:
    """Take an unused id for an empty cluster with type ``label``."""
    cluster = p.clusters[p.counters[LIVE]].live
    p.counters[LIVE] += 1
    p.clusters[cluster].size = 0
    p.clusters[cluster].type = label
    p.clusters[cluster].order = 0
    p.clusters[cluster].start = allocate_block(p, 0)
    return cluster


@inner
def drop_cluster(p: PartitionArrays, cluster: int) -> None:
    """Give back an empty cluster's id and block."""
    release_block(p, p.clusters[cluster].start, p.clusters[cluster].order)
    p.counters[LIVE] -= 1
    first, second = p.clusters[cluster].live_at, p.counters[LIVE]
    last = p.clusters[second].live
    p.clusters[first].live, p.clusters[second].live = last, cluster
    p.clusters[last].live_at, p.clusters[cluster].live_at = first, second


@inner
def release_block(p: PartitionArrays, start: int, order: int) -> None:
    """Put a block at the head of the free list of its order."""
    p.members[start] = p.counters[FREE + order]
    p.counters[FREE + order] = start


@inner
def allocate_block(p: PartitionArrays, order: int) -> int:
    """Find room for ``2 ** order`` members, compacting the arena when it is full."""
    start = p.counters[FREE + order]
    if start >= 0:
        p.counters[FREE + order] = p.members[start]
        return start
    if p.counters[TOP] + (1 << order) > len(p.members):
        compact(p)
    start = p.counters[TOP]
    p.counters[TOP] += 1 << order
    return start


@inner
def compact(p: PartitionArrays) -> None:
    """Lay all blocks out anew at the capacity they need: at most 2n of the arena's 4n slots."""
    for order in range(ORDERS):
        p.counters[FREE + order] = -1
    top = 0
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        order = order_for(p.clusters[cluster].size)
        p.clusters[cluster].order = order
        p.clusters[cluster].moved_to = top
        top += 1 << order
    for item in range(len(p.items)):  # the order within a cluster is kept
        cluster = p.items[item].label
        p.items[item].slot += p.clusters[cluster].moved_to - p.clusters[cluster].start
    for item in range(len(p.items)):
        p.members[p.items[item].slot] = item
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        p.clusters[cluster].start = p.clusters[cluster].moved_to
    p.counters[TOP] = top
    p.counters[COMPACTIONS] += 1


@inner
def grow_block(p: PartitionArrays, cluster: int, order: int) -> None:
    """Move a cluster into a block of ``2 ** order`` slots."""
    fresh = allocate_block(p, order)
    start = p.clusters[cluster].start  # read after allocating: a compaction may have moved it
    for index in range(p.clusters[cluster].size):
        item = p.members[start + index]
        p.members[fresh + index] = item
        p.items[item].slot = fresh + index
    release_block(p, start, p.clusters[cluster].order)
    p.clusters[cluster].start = fresh
    p.clusters[cluster].order = order


@inner
def move_item(p: PartitionArrays, item: int, target: int) -> None:
    """Move ``item`` to another cluster; the last member fills the hole. An emptied cluster stays in use."""
    if p.clusters[target].size == 1 << p.clusters[target].order:
        grow_block(p, target, p.clusters[target].order + 1)
    source = p.items[item].label
    hole = p.items[item].slot
    p.clusters[source].size -= 1
    last = p.members[p.clusters[source].start + p.clusters[source].size]
    p.members[hole] = last
    p.items[last].slot = hole
    if p.clusters[source].size == 1:
        mark_splittable(p, source, False)
    slot = p.clusters[target].start + p.clusters[target].size
    p.members[slot] = item
    p.items[item].slot = slot
    p.items[item].label = target
    p.clusters[target].size += 1
    if p.clusters[target].size == 2:
        mark_splittable(p, target, True)


@inner
def relocate(p: PartitionArrays, item: int, target: int, new_type: int) -> int:
    """Move one item to ``target`` or, for NEW, to a cluster of its own; return the cluster it is in."""
    source = p.items[item].label
    if target == NEW:
        target = create_cluster(p, new_type)
    move_item(p, item, target)
    if p.clusters[source].size == 0:
        drop_cluster(p, source)
    return target


@lean_kernel
def transfer(p: PartitionArrays, items: NDArray[np.int32], count: int, target: int, new_type: int) -> int:
    """Move ``items[:count]`` of one cluster to ``target`` or NEW; return the cluster they are in.

    The smaller side moves in memory: a whole cluster merged into a smaller one keeps its block and takes the
    smaller one in, and the large part of a split keeps the block. Cluster ids follow the memory, types follow
    the meaning.
    """
    if count == 1:
        return relocate(p, items[0], target, new_type)
    source = p.items[items[0]].label
    whole = p.clusters[source].size == count
    if target != NEW and whole and count > p.clusters[target].size:
        kept = p.clusters[target].type
        while p.clusters[target].size > 0:
            item = p.members[p.clusters[target].start + p.clusters[target].size - 1]
            move_item(p, item, source)
        drop_cluster(p, target)
        p.clusters[source].type = kept
        return source
    if target == NEW and count > p.clusters[source].size - count:
        rest = create_cluster(p, p.clusters[source].type)
        p.clusters[source].type = new_type
        for index in range(count):  # to the front, in the given order; what lies behind is the rest
            _swap_members(p, source, p.items[items[index]].slot, p.clusters[source].start + index)
        while p.clusters[source].size > count:
            item = p.members[p.clusters[source].start + p.clusters[source].size - 1]
            move_item(p, item, rest)
        return source
    if target == NEW:
        target = create_cluster(p, new_type)
    for index in range(count):
        move_item(p, items[index], target)
    if p.clusters[source].size == 0:
        drop_cluster(p, source)
    return target


@inner
def _swap_members(p: PartitionArrays, cluster: int, first: int, second: int) -> None:
    a, b = p.members[first], p.members[second]
    p.members[first], p.members[second] = b, a
    p.items[a].slot, p.items[b].slot = second, first
