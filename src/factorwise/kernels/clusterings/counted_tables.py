"""Counts per cluster and value, so that a sum over all pairs of an item with a cluster is a few look-ups.

Items stand in positions, those of a block next to each other. Every value (a key and a code) that two or more
items of a block have owns a small hash table of its own among the ``slots``: linear probing, as many slots
as a power of two at twice the number of those items, so that it never fills up. What a table maps is a
cluster to the number of its members with that value. The tables of the values of one item, and in each the
old and the new cluster, are all that a relocation looks at. Values that a single item of a block has agree
with nothing and have no table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import hot, inner, lean_kernel

EMPTY = -1  # as the cluster of a slot
SIZE, MATES, KNOWN = 0, 1, 2  # columns of a cluster's row
SPARE, SPLITTABLE = 0, 1  # columns of a block's row

ENTRY = np.dtype([("start", np.uint32), ("shift", np.uint8), ("key", np.uint8)], align=True)
SLOT = np.dtype([("cluster", np.int32), ("count", np.int32)])
VALUE = np.dtype([("code", np.uint64), ("start", np.uint32), ("count", np.int32)])

_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class ValueArrays(NamedTuple):
    """The values of all items, laid out once for any number of walks.

    block_start, slot_start, block_of : int64[blocks + 1], int64[blocks + 1], int32[n]
        Positions and slots of each block, and the block of each position.
    first, entries : int64[n + 1], ENTRY[entries]
        The values of the item at a position that have a table: where it ``start`` s, 64 minus the logarithm
        of its capacity (``shift``) and which ``key`` the value is of.
    known : uint32[n]
        A bit for each key with conflicts of which the item has a value, with a table or without.
    """

    block_start: NDArray[np.int64]
    slot_start: NDArray[np.int64]
    block_of: NDArray[np.int32]
    first: NDArray[np.int64]
    entries: NDArray[np.void]
    known: NDArray[np.uint32]


class CountArrays(NamedTuple):
    """A clustering and its counts. Clusters are numbered like the positions of their block.

    labels : int32[n]
        Cluster of the item at each position.
    clusters : int32[n, 2 + keys with conflicts]
        Size; exclusive or of the members' positions; members that have a value of each such key.
    slots : SLOT[slots]
        The tables.
    spare, blocks : int32[n], int64[blocks, 2]
        Unused clusters from the first position of each block on; their number, and that of clusters of two
        or more.
    """

    labels: NDArray[np.int32]
    clusters: NDArray[np.int32]
    slots: NDArray[np.void]
    spare: NDArray[np.int32]
    blocks: NDArray[np.int64]


class CountWeights(NamedTuple):
    """What counts are worth.

    equal : float64[keys]
        Weight of agreeing on each key, minus that of conflicting on it.
    conflict : float64[keys with conflicts]
        Weight of two different values.
    pair, cluster, single : float64
        Weight of a pair whatever its values, of a cluster, and of a cluster of one.
    """

    equal: NDArray[np.float64]
    conflict: NDArray[np.float64]
    pair: float
    cluster: float
    single: float


@lean_kernel
def lay_out_values(
    codes: NDArray[np.int32],
    column_key: NDArray[np.uint8],
    block_start: NDArray[np.int64],
    slot_start: NDArray[np.int64],
    table: NDArray[np.void],
    first: NDArray[np.int64],
    entries: NDArray[np.void],
) -> int:
    """Give every value that two items of a block share a table; return how many slots they take.

    codes : int32[n, columns]
        By position; zero stands for nothing. Columns of one key lie next to each other.
    table : VALUE[capacity]
        Scratch: a power of two at twice the values of the largest block.
    slot_start, first, entries
        To be filled in.
    """
    slots, top = np.int64(0), np.int64(0)
    for block in range(len(block_start) - 1):
        lo, hi = block_start[block], block_start[block + 1]
        slot_start[block] = slots
        order = 1
        while (1 << order) < 2 * (hi - lo) * codes.shape[1]:
            order += 1
        for index in range(1 << order):
            table[index].code, table[index].count = 0, 0
        for position in range(lo, hi):
            for column in range(codes.shape[1]):
                if is_fresh(codes, column_key, position, column):
                    at = value_at(table, order, column_key[column], codes[position, column])
                    table[at].count += 1
        for position in range(lo, hi):
            first[position] = top
            for column in range(codes.shape[1]):
                if not is_fresh(codes, column_key, position, column):
                    continue
                at = value_at(table, order, column_key[column], codes[position, column])
                many = abs(table[at].count)
                if many < 2:
                    continue
                bits = 2
                while (1 << bits) < 2 * many:
                    bits += 1
                if table[at].count > 0:
                    table[at].start = slots
                    table[at].count = -many  # a minus: its table has a place
                    slots += 1 << bits
                entries[top].start = table[at].start
                entries[top].shift = 64 - bits
                entries[top].key = column_key[column]
                top += 1
    first[len(first) - 1], slot_start[len(slot_start) - 1] = top, slots
    return slots


@hot
def is_fresh(codes: NDArray[np.int32], column_key: NDArray[np.uint8], position: int, column: int) -> bool:
    """Whether there is a value, and not the same one in an earlier column of the key."""
    code = codes[position, column]
    if code <= 0:
        return False
    other = column - 1
    while other >= 0 and column_key[other] == column_key[column]:
        if codes[position, other] == code:
            return False
        other -= 1
    return True


@hot
def value_at(table: NDArray[np.void], order: int, key: int, code: int) -> int:
    """Find a value in the scratch table, or enter it."""
    wanted = (np.uint64(key) << np.uint64(32)) | np.uint64(code)
    mask = (np.int64(1) << order) - 1
    at = np.int64((wanted * _SPREAD) >> np.uint64(64 - order))
    while table[at].code != wanted and table[at].code != 0:
        at = (at + 1) & mask
    table[at].code = wanted
    return at


@hot
def home_of(cluster: int, shift: int) -> int:
    """Slot of a table at which the search for a cluster begins."""
    return np.int64((np.uint64(cluster) * _SPREAD) >> np.uint64(shift))


@hot
def slot_of(slots: NDArray[np.void], start: int, shift: int, cluster: int) -> int:
    """Where a table holds a cluster, or the empty slot where it would."""
    mask = (np.int64(1) << (64 - shift)) - 1
    at = home_of(cluster, shift)
    while (slots[start + at].cluster != cluster) & (slots[start + at].cluster != EMPTY):
        at = (at + 1) & mask
    return start + at


@hot
def count_of(slots: NDArray[np.void], start: int, shift: int, cluster: int) -> int:
    """Members of a cluster that have a value; empty slots hold a count of 0, which saves a branch."""
    return np.int64(slots[slot_of(slots, start, shift, cluster)].count)


@inner
def count_up(slots: NDArray[np.void], start: int, shift: int, cluster: int) -> int:
    """Count one more member of a cluster with a value; return how many there were before."""
    at = slot_of(slots, start, shift, cluster)
    slots[at].cluster = cluster
    slots[at].count += 1
    return np.int64(slots[at].count) - 1


@inner
def count_down(slots: NDArray[np.void], start: int, shift: int, cluster: int) -> None:
    """Count one member less; a cluster without any leaves the table, and those behind it move up."""
    found = slot_of(slots, start, shift, cluster)
    slots[found].count -= 1
    if slots[found].count > 0:
        return
    mask = (np.int64(1) << (64 - shift)) - 1
    hole = found - start
    at = (hole + 1) & mask
    while slots[start + at].cluster != EMPTY:
        home = home_of(slots[start + at].cluster, shift)
        if ((at - home) & mask) >= ((at - hole) & mask):  # a search that begins at home passes the hole
            slots[start + hole].cluster = slots[start + at].cluster
            slots[start + hole].count = slots[start + at].count
            hole = at
        at = (at + 1) & mask
    slots[start + hole].cluster = EMPTY
    slots[start + hole].count = 0


@lean_kernel
def count_members(
    v: ValueArrays, c: CountArrays, w: CountWeights, scores: NDArray[np.float64], first: int, last: int
) -> None:
    """Count the members of all clusters of some blocks; set the score of each block.

    ``c.labels`` are given, each a position of the same block; all counts are zero and all slots empty.
    """
    for block in range(first, last):
        lo, hi = v.block_start[block], v.block_start[block + 1]
        score = 0.0
        for position in range(lo, hi):
            cluster = c.labels[position]
            score += w.pair * c.clusters[cluster, SIZE]
            c.clusters[cluster, SIZE] += 1
            c.clusters[cluster, MATES] ^= position
            for key in range(len(w.conflict)):
                if (v.known[position] >> np.uint32(key)) & np.uint32(1):
                    score += w.conflict[key] * c.clusters[cluster, KNOWN + key]
                    c.clusters[cluster, KNOWN + key] += 1
            for index in range(v.first[position], v.first[position + 1]):
                entry = v.entries[index]
                score += w.equal[entry.key] * count_up(c.slots, entry.start, entry.shift, cluster)
        spare, splittable = 0, 0
        for cluster in range(lo, hi):
            size = c.clusters[cluster, SIZE]
            if size == 0:
                c.spare[lo + spare] = cluster
                spare += 1
            else:
                score += w.cluster + (w.single if size == 1 else 0.0)
                splittable += size > 1
        c.blocks[block, SPARE], c.blocks[block, SPLITTABLE] = spare, splittable
        scores[block] = score
