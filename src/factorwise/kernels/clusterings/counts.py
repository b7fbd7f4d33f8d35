"""Counts per cluster and key, in one small hash table for each key.

A key that two or more items have owns a table among the ``slots``, which maps a cluster to the sum of the
amounts that its members have of the key. The number of slots of a table is a power of two, at least twice the
number of those items, so that it never fills up; it is searched slot by slot from the hash of the cluster's
number. A count that reaches zero leaves the table, and later entries move up. The move of an item reads only
the tables of its own keys, and in each of them the old and the new cluster: mostly one cache line for both.
Keys that only one item has need no table.

Counts are whole numbers, so undoing a change restores them exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import shared, two_forms
from factorwise.kernels.walks.library import INLINED

EMPTY = -1  # as the cluster of a slot
BITS = 32  # of a hash

#: A key of an item: where its table starts, how much of the key the item has, 32 minus log2 of the table's
#: capacity, and the kind of the key, if there are several.
ENTRY = np.dtype([("start", np.uint32), ("amount", np.uint16), ("shift", np.uint8), ("kind", np.uint8)])
#: Where the entries of an item begin and end.
SPAN = np.dtype([("begin", np.uint32), ("end", np.uint32)])
#: A slot of a table: a cluster, or EMPTY with a count of 0, and how much of the key the cluster has.
SLOT = np.dtype([("cluster", np.int32), ("count", np.int32)])

MOST_AMOUNT = np.iinfo(np.uint16).max
MOST_COUNT = np.iinfo(np.int32).max
MOST_SLOTS = 1 << 32
LEAST_BITS = 2  # of a table's capacity
LINE = 8  # slots, or entries, of a cache line

SPREAD = 2_654_435_769  # 2 ** 32 divided by the golden ratio: spreads consecutive numbers evenly
LOW = 0xFFFFFFFF


def table_bits(holders: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return log2 of the capacity of tables for keys that this many items have."""
    return np.maximum(np.frexp(2.0 * holders - 1.0)[1], LEAST_BITS).astype(np.int64)


def empty_slots(count: int) -> NDArray[np.void]:
    """Return tables without any counts."""
    slots: NDArray[np.void] = np.zeros(count, SLOT)
    slots["cluster"] = EMPTY
    return slots


@shared
def home_of(cluster: int, shift: int) -> int:
    """Return the slot of a table at which the search for a cluster begins."""
    return ((np.int64(cluster) * SPREAD) & LOW) >> np.int64(shift)


@two_forms
def holds_another(found: int, cluster: int) -> bool:
    """Whether a search for a cluster goes on after a slot that holds ``found``."""
    return found not in (cluster, EMPTY)


@overload(holds_another, jit_options=INLINED)
def _holds_another_compiled(found: Any, cluster: Any) -> Callable[..., bool]:
    # Which of the two conditions ends a search is hard to predict, but the end itself, at the first slot, is
    # not. The product, which is zero in either case, is one branch; it is unsigned, so that the compiler does
    # not make two of it.
    def compiled(found: Any, cluster: Any) -> bool:
        return np.uint64(np.int64(found) - np.int64(cluster)) * np.uint64(
            np.int64(found) - EMPTY
        ) != np.uint64(0)

    return compiled


@shared
def slot_of(slots: Any, start: int, shift: int, cluster: int) -> int:
    """Return the slot of a cluster in a table, or the empty slot in which it would be."""
    first, mask = np.int64(start), (np.int64(1) << (BITS - np.int64(shift))) - 1
    at = home_of(cluster, shift)
    while holds_another(slots[first + at].cluster, cluster):
        at = (at + 1) & mask
    return first + at


@shared
def count_of(slots: Any, start: int, shift: int, cluster: int) -> int:
    """Return how much of a key a cluster has; an empty slot has a count of 0, which saves a branch."""
    return np.int64(slots[slot_of(slots, start, shift, cluster)].count)


@shared
def add_count(slots: Any, start: int, shift: int, cluster: int, amount: int) -> int:
    """Increase a cluster's amount of a key; return the previous amount."""
    at = slot_of(slots, start, shift, cluster)
    before = np.int64(slots[at].count)
    slots[at].cluster = cluster
    slots[at].count = before + amount
    return before


@shared
def take_count(slots: Any, start: int, shift: int, cluster: int, amount: int) -> int:
    """Decrease a cluster's amount of a key; return the previous amount.

    A cluster without any amount left leaves the table, and later entries move up.
    """
    first, mask = np.int64(start), (np.int64(1) << (BITS - np.int64(shift))) - 1
    found = slot_of(slots, start, shift, cluster)
    before = np.int64(slots[found].count)
    slots[found].count = before - amount
    if before > amount:
        return before
    hole = found - first
    at = (hole + 1) & mask
    while slots[first + at].cluster != EMPTY:
        home = home_of(slots[first + at].cluster, shift)
        if ((at - home) & mask) >= ((at - hole) & mask):  # a search that begins at home passes the gap
            slots[first + hole].cluster = slots[first + at].cluster
            slots[first + hole].count = slots[first + at].count
            hole = at
        at = (at + 1) & mask
    slots[first + hole].cluster = EMPTY
    slots[first + hole].count = 0
    return before


def visit_counts(world: Any, mine: Any, move: Any) -> None:
    """Read everything that steps among the items of group ``move.item`` will read.

    So that they find it in the cache.

    Streaming is many times faster than reading it in the order of the steps. ``mine`` has ``group_start``,
    ``group_item``, ``group_entries`` and ``group_slots`` of
    `factorwise.model.clusterings.count_layout.CountLayout`, and ``fetched`` int64[1].
    """
    group, total = move.item, np.int64(0)
    for at in range(mine.group_slots[group], mine.group_slots[group + 1], LINE):
        total += mine.slots[at].count
    for at in range(mine.group_entries[group], mine.group_entries[group + 1], LINE):
        total += mine.entries[at].start
    for at in range(mine.group_start[group], mine.group_start[group + 1]):
        total += mine.spans[mine.group_item[at]].begin
    mine.fetched[0] = total  # kept, so that the reads are not optimised away


@shared
def clear_slots(slots: Any) -> None:
    """Forget all counts."""
    for at in range(len(slots)):
        slots[at].cluster = EMPTY
        slots[at].count = 0
