"""The arrays behind a clustering, and the functions that change them one item at a time.

The members of a cluster lie contiguously in a block of power-of-two capacity inside one arena, so a scan over
a cluster is a scan over memory; the fields that a model's functions read are stored in columns beside them,
by slot. Freed blocks are kept in one list per capacity, linked through the arena itself. ``live`` is a
permutation of all cluster ids whose first ``counters[LIVE]`` entries are in use: a cluster is drawn at
random, created or dropped in O(1). ``splittable`` does the same for clusters of two or more. A cluster keeps
its id as long as it has members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import lean_kernel, shared

NEW = -1  # as a target of a diff: a cluster that does not exist yet

LIVE, SPLITTABLE, TOP, COMPACTIONS, FIRST_ID, FREE = range(6)
ORDERS = 32
SPARE_IDS = 2  # beyond one for each item: a move may need two empty clusters at a time


class Clustering(NamedTuple):
    """A clustering of n items; cluster ids are 0 to n + 1.

    label, slot : int32[n], int64[n]
        By item: its cluster, and its position in ``members``.
    size, start, order, type : int32[ids], int64[ids], int32[ids], int32[ids]
        By cluster: how many members, its first slot, log2 of its block's capacity, and its type (0 where
        clusters carry none). The type of an unused id is scratch space for proposers.
    live, live_at, splittable, splittable_at : int32[ids]
        The two permutations of ids, and the position of each id in them.
    members : int32[4n + 4]
        Items by slot.
    counters : int64[6 + ORDERS]
        Clusters in use, clusters of two or more, end of the arena in use, compactions so far, the smallest
        id; then the first freed block of each order, or -1.
    item_ints, item_reals, item_rows : int32[n, .], float32[n, .], float32[n, .]
        By item: the fields that a model's functions read, as columns of whole numbers and of reals, and as
        rows that are compared number by number.
    ints, reals, rows : int32[., slots], float32[., slots], float32[slots, .]
        The same for the member at each slot; slots beyond the arena are spare.
    items : int32[n]
        All items; in a shard of a world (`factorwise.world.shards`) the items of the shard.
    side : int8[n]
        Scratch by item, zero between steps: its side of a split, 1 or 2.
    """

    label: NDArray[np.int32]
    slot: NDArray[np.int64]
    size: NDArray[np.int32]
    start: NDArray[np.int64]
    order: NDArray[np.int32]
    type: NDArray[np.int32]
    live: NDArray[np.int32]
    live_at: NDArray[np.int32]
    splittable: NDArray[np.int32]
    splittable_at: NDArray[np.int32]
    members: NDArray[np.int32]
    counters: NDArray[np.int64]
    item_ints: NDArray[np.int32]
    item_reals: NDArray[np.float32]
    item_rows: NDArray[np.float32]
    ints: NDArray[np.int32]
    reals: NDArray[np.float32]
    rows: NDArray[np.float32]
    items: NDArray[np.int32]
    side: NDArray[np.int8]


def make_clustering(labels: NDArray[np.int32], types: NDArray[np.int32], n_types: int) -> Clustering:
    """Lay out a clustering by dense ``labels``, without columns; ``types[c]`` is the type of cluster c.

    It uses NumPy, so that a world can be built before anything is compiled.
    """
    n, ids = len(labels), len(labels) + max(SPARE_IDS, n_types)  # an empty cluster of each type
    number = np.arange(ids, dtype=np.int32)
    size = np.bincount(labels, minlength=ids).astype(np.int32)
    clusters = int(labels.max()) + 1
    order = np.zeros(ids, np.int32)
    order[:clusters] = np.frexp(size[:clusters] - 1)[1]  # bits of size - 1: log2 of the capacity, rounded up
    capacity = np.where(number < clusters, np.int64(1) << order.astype(np.int64), 0)
    start = np.cumsum(capacity) - capacity
    grouped = np.argsort(labels, kind="stable")  # members in order of item within each cluster
    rank = np.empty(n, np.int64)
    rank[grouped] = np.arange(n) - (np.cumsum(size, dtype=np.int64) - size)[labels[grouped]]
    slot = start[labels] + rank
    members = np.zeros(4 * n + 4, np.int32)
    members[slot] = number[:n]
    splittable = np.argsort(size < 2, kind="stable").astype(np.int32)
    splittable_at = np.empty(ids, np.int32)
    splittable_at[splittable] = number
    counters = np.full(FREE + ORDERS, -1, np.int64)
    counters[:FREE] = clusters, np.count_nonzero(size > 1), capacity.sum(), 0, 0
    kinds = np.zeros(ids, np.int32)
    kinds[:clusters] = types
    columns = no_columns(n)
    return Clustering(
        labels.astype(np.int32),
        slot,
        size,
        start,
        order,
        kinds,
        number.copy(),
        number.copy(),
        splittable,
        splittable_at,
        members,
        counters,
        **columns,
        items=number[:n].copy(),
        side=np.zeros(n, np.int8),
    )


def no_columns(n: int) -> dict[str, NDArray[Any]]:
    """Return empty columns for a clustering of n items whose model reads no fields."""
    return {
        "item_ints": np.zeros((n, 0), np.int32),
        "item_reals": np.zeros((n, 0), np.float32),
        "item_rows": np.zeros((n, 0), np.float32),
        "ints": np.zeros((0, 0), np.int32),
        "reals": np.zeros((0, 0), np.float32),
        "rows": np.zeros((0, 0), np.float32),
    }


@shared
def spare_id(world: Any, kind: int) -> int:
    """Return the id of the next new cluster, and give it a type."""
    cluster = np.int64(world.live[world.counters[LIVE]])
    world.type[cluster] = kind
    return cluster


@shared
def order_for(size: int) -> int:
    """Return log2 of the smallest power of two that holds ``size`` members."""
    order = 0
    while (1 << order) < size:
        order += 1
    return order


@shared
def place(world: Any, slot: int, item: int) -> None:
    """Copy the columns of ``item`` to ``slot``."""
    for column in range(world.item_ints.shape[1]):
        world.ints[column, slot] = world.item_ints[item, column]
    for column in range(world.item_reals.shape[1]):
        world.reals[column, slot] = world.item_reals[item, column]
    for dimension in range(world.item_rows.shape[1]):
        world.rows[slot, dimension] = world.item_rows[item, dimension]


@shared
def has_columns(world: Any) -> bool:
    """Whether any columns are stored beside the members."""
    return world.ints.shape[0] + world.reals.shape[0] + world.rows.shape[1] > 0


@shared
def settle(world: Any, slot: int, item: int) -> None:
    """Make ``item`` the member at ``slot``.

    Unsigned indices need no check for counting from the end.
    """
    at, who = np.uint64(slot), np.uint64(item)
    world.members[at] = item
    world.slot[who] = slot
    place(world, at, who)


@shared
def mark_splittable(world: Any, cluster: int, splittable: bool) -> None:
    """Add a cluster that has grown to two members to ``splittable``, or remove one that has shrunk to one."""
    if not splittable:
        world.counters[SPLITTABLE] -= 1
    here, border = world.splittable_at[cluster], world.counters[SPLITTABLE]
    other = world.splittable[border]
    world.splittable[here], world.splittable[border] = other, cluster
    world.splittable_at[other], world.splittable_at[cluster] = here, border
    if splittable:
        world.counters[SPLITTABLE] += 1


@shared
def swap_live(world: Any, cluster: int, position: int) -> None:
    """Exchange a cluster id with the one at ``position`` of the ids in use."""
    here = world.live_at[cluster]
    other = world.live[position]
    world.live[here], world.live[position] = other, cluster
    world.live_at[other], world.live_at[cluster] = here, position


@shared
def create_cluster(world: Any, cluster: int) -> None:
    """Put an id into use, for a cluster without members."""
    swap_live(world, cluster, world.counters[LIVE])
    world.counters[LIVE] += 1
    world.order[cluster] = 0
    world.start[cluster] = allocate_block(world, 0)


@shared
def drop_cluster(world: Any, cluster: int) -> None:
    """Release the id and block of an empty cluster."""
    release_block(world, world.start[cluster], world.order[cluster])
    world.counters[LIVE] -= 1
    swap_live(world, cluster, world.counters[LIVE])


@shared
def release_block(world: Any, start: int, order: int) -> None:
    """Put a block at the head of the free list of its order."""
    world.members[start] = world.counters[FREE + order]
    world.counters[FREE + order] = start


@shared
def allocate_block(world: Any, order: int) -> int:
    """Find room for ``2 ** order`` members, compacting the arena when it is full."""
    start = world.counters[FREE + order]
    if start >= 0:
        world.counters[FREE + order] = world.members[start]
        return start
    if world.counters[TOP] + (1 << order) > len(world.members):
        compact(world)
    start = world.counters[TOP]
    world.counters[TOP] += 1 << order
    return start


@shared
def compact(world: Any) -> None:
    """Lay out all blocks again with the capacity they need: at most 2n of the arena's 4n slots."""
    for order in range(ORDERS):
        world.counters[FREE + order] = -1
    for k in range(len(world.items)):  # from here on, its position among its cluster's members
        item = world.items[k]
        world.slot[item] -= world.start[world.label[item]]
    top = 0
    for position in range(world.counters[LIVE]):
        cluster = world.live[position]
        order = order_for(world.size[cluster])
        world.order[cluster] = order
        world.start[cluster] = top
        top += 1 << order
    for k in range(len(world.items)):
        item = world.items[k]
        settle(world, world.start[world.label[item]] + world.slot[item], item)
    world.counters[TOP] = top
    world.counters[COMPACTIONS] += 1


@shared
def grow_block(world: Any, cluster: int) -> None:
    """Move a cluster into a block of twice the capacity."""
    order = world.order[cluster]
    fresh = allocate_block(world, order + 1)
    start = world.start[cluster]  # read after allocating, because a compaction may have moved it
    for index in range(world.size[cluster]):
        settle(world, fresh + index, world.members[start + index])
    release_block(world, start, world.order[cluster])
    world.start[cluster] = fresh
    world.order[cluster] = order + 1


@shared
def move_item(world: Any, item: int, target: int) -> None:
    """Move ``item`` to another cluster, whose id may be unused; the last member fills the gap."""
    who, new = np.uint64(item), np.uint64(target)
    source = world.label[who]
    old = np.uint64(source)
    if world.size[new] == 0:
        create_cluster(world, target)
    elif world.size[new] == 1 << world.order[new]:
        grow_block(world, target)
    hole = world.slot[who]
    left = np.int64(world.size[old]) - 1
    world.size[old] = left
    last = world.start[old] + left
    if hole != last:
        settle(world, hole, world.members[np.uint64(last)])
    size = np.int64(world.size[new])
    settle(world, world.start[new] + size, item)
    world.label[who] = target
    world.size[new] = size + 1
    if size == 1:
        mark_splittable(world, target, True)
    if world.size[old] == 1:
        mark_splittable(world, source, False)
    elif world.size[old] == 0:
        drop_cluster(world, source)


def apply_change(world: Any, move: Any) -> None:
    """Move the item of the current change to its target: the program of a clustering."""
    move_item(world, move.item, move.target)


def apply_type(world: Any, move: Any) -> None:
    """Give the cluster of the current change another type: the program of the types of clusters."""
    world.type[move.item] = move.target


@lean_kernel
def transfer(world: Clustering, items: NDArray[np.int32], count: int, target: int, new_type: int) -> int:
    """Move ``items[:count]`` of one cluster to ``target`` or NEW; return the cluster they are in."""
    if target == NEW:
        target = spare_id(world, new_type)
    for index in range(count):
        move_item(world, items[index], target)
    return target
