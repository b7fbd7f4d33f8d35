"""Tables of pair features: how many pairs of each cluster have each feature, and what follows from it.

A transfer changes the counts of two clusters by the pairs it joins and separates; every first-order
aggregate (all, exists, most, on average, how many) is a function of a count and of the number of pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compiler import hot, inner, lean_kernel
from factorwise.kernels.partitions import LIVE, NEW, PartitionArrays

COUNT, ALL, EXISTS, MAJORITY, MEAN = range(5)
AGGREGATE_CODES = {"count": COUNT, "all": ALL, "exists": EXISTS, "majority": MAJORITY, "mean": MEAN}

MANY = 255  # rows of zeros and ones that fit into a sum of eight bits
BLOCK = np.dtype([("aggregate", np.int64), ("first", np.int64), ("size", np.int64), ("offset", np.int64)])


class TableArrays(NamedTuple):
    """Features of all pairs of items, and how many pairs of each cluster have them.

    rows : uint8[n (n - 1) / 2, width]
        Zeros and ones; the pair (i, j) with i > j stands in row ``i (i - 1) / 2 + j``.
    counts : int32[n + 1, width]
        Pairs of each cluster with each feature; the last row stays zero, for clusters that do not exist yet.
    after : int32[2, width]
        The counts of target and source after the transfer at hand.
    small : uint8[width]
        Scratch: sums of at most 255 rows.
    blocks : BLOCK[.]
        Which ``aggregate`` of the ``size`` columns from ``first`` on adds to the statistics from ``offset``.
    """

    rows: NDArray[np.uint8]
    counts: NDArray[np.int32]
    after: NDArray[np.int32]
    small: NDArray[np.uint8]
    blocks: NDArray[np.void]


@lean_kernel
def count_pairs(tables: TableArrays, p: PartitionArrays) -> None:
    """Set the counts of all clusters from scratch."""
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        lo = p.clusters[cluster].start
        for column in range(tables.counts.shape[1]):
            tables.counts[cluster, column] = 0
        for slot in range(lo + 1, lo + p.clusters[cluster].size):
            add_links(tables, p, p.members[slot], lo, slot, tables.counts[cluster])


@inner
def add_links(
    tables: TableArrays, p: PartitionArrays, item: int, lo: int, hi: int, out: NDArray[np.int32]
) -> None:
    """Add the features of ``item`` with each of the other members at the slots lo to hi."""
    width = tables.rows.shape[1]
    small = tables.small
    while lo < hi:
        stop = min(hi, lo + MANY)
        for column in range(width):
            small[column] = 0
        for slot in range(lo, stop):
            other = np.int64(p.members[slot])
            if other == item:
                continue
            row = other * (other - 1) // 2 + item if other > item else item * (item - 1) // 2 + other
            for column in range(width):
                small[column] = np.uint8(small[column] + tables.rows[row, column])
        for column in range(width):
            out[column] += np.int32(small[column])
        lo = stop


@inner
def add_marked_links(
    tables: TableArrays, p: PartitionArrays, item: int, lo: int, hi: int, mark: int, out: NDArray[np.int32]
) -> None:
    """Add the features of ``item`` with those members at the slots lo to hi that bear ``mark``."""
    for slot in range(lo, hi):
        if p.items[p.members[slot]].mark == mark:
            add_links(tables, p, item, slot, slot + 1, out)


@inner
def table_gradient(
    tables: TableArrays,
    p: PartitionArrays,
    items: NDArray[np.int32],
    m: int,
    source: int,
    target: int,
    out: NDArray[np.float64],
) -> None:
    """Add the change of all aggregates when ``items[:m]`` move; sets ``tables.after``."""
    s_lo, s = p.clusters[source].start, np.int64(p.clusters[source].size)
    t_lo, t = np.int64(0), np.int64(0)
    was = len(p.items)  # the row of zeros
    if target != NEW:
        t_lo, t, was = p.clusters[target].start, np.int64(p.clusters[target].size), np.int64(target)
    there, here = tables.after[0], tables.after[1]
    for column in range(tables.counts.shape[1]):
        there[column] = 0
        here[column] = 0
    if m == 1:
        add_links(tables, p, items[0], t_lo, t_lo + t, there)
        add_links(tables, p, items[0], s_lo, s_lo + s, here)
        for column in range(tables.counts.shape[1]):
            there[column] = tables.counts[was, column] + there[column]
            here[column] = tables.counts[source, column] - here[column]
    else:
        for index in range(m):
            p.items[items[index]].mark = 1
        for slot in range(s_lo, s_lo + s):  # the pairs of those that stay, then of those that move
            item = p.members[slot]
            if p.items[item].mark == 0:
                add_marked_links(tables, p, item, s_lo, slot, 0, here)
            else:
                add_marked_links(tables, p, item, s_lo, slot, 1, there)
                add_links(tables, p, item, t_lo, t_lo + t, there)
        for index in range(m):
            p.items[items[index]].mark = 0
        for column in range(tables.counts.shape[1]):
            there[column] += tables.counts[was, column]
    for block in range(len(tables.blocks)):
        add_aggregate(
            tables, block, was, source, pairs_of(t), pairs_of(s), pairs_of(t + m), pairs_of(s - m), out
        )


@hot
def pairs_of(members: int) -> int:
    """Pairs of a cluster; -1 where there are none, so that no feature holds for all of them."""
    return np.int32(members * (members - 1) // 2) if members > 1 else np.int32(-1)


@inner
def add_aggregate(
    tables: TableArrays,
    block: int,
    target: int,
    source: int,
    t_before: int,
    s_before: int,
    t_after: int,
    s_after: int,
    out: NDArray[np.float64],
) -> None:
    """Add the change of one aggregate, given the pairs of target and source before and after."""
    first, size, offset = tables.blocks[block].first, tables.blocks[block].size, tables.blocks[block].offset
    aggregate = tables.blocks[block].aggregate
    was_there, was_here = tables.counts[target], tables.counts[source]
    there, here = tables.after[0], tables.after[1]
    if aggregate == COUNT:
        for k in range(size):
            c = first + k
            out[offset + k] += np.int32(there[c] + here[c] - was_there[c] - was_here[c])
    elif aggregate == ALL:
        for k in range(size):
            c = first + k
            more = np.int32(there[c] == t_after) + np.int32(here[c] == s_after)
            out[offset + k] += np.int32(
                more - np.int32(was_there[c] == t_before) - np.int32(was_here[c] == s_before)
            )
    elif aggregate == EXISTS:
        for k in range(size):
            c = first + k
            more = np.int32(there[c] > 0) + np.int32(here[c] > 0)
            out[offset + k] += np.int32(more - np.int32(was_there[c] > 0) - np.int32(was_here[c] > 0))
    elif aggregate == MAJORITY:
        ta, sa, tb, sb = t_after // 2, s_after // 2, t_before // 2, s_before // 2  # 2 counts > pairs
        for k in range(size):
            c = first + k
            more = np.int32(there[c] > max(ta, 0)) + np.int32(here[c] > max(sa, 0))
            out[offset + k] += np.int32(
                more - np.int32(was_there[c] > max(tb, 0)) - np.int32(was_here[c] > max(sb, 0))
            )
    else:
        ta_share, sa_share, tb_share, sb_share = 1.0 / t_after, 1.0 / s_after, 1.0 / t_before, 1.0 / s_before
        for k in range(size):  # counts are zero where there are no pairs
            c = first + k
            more = ta_share * there[c] + sa_share * here[c]
            out[offset + k] += more - (tb_share * was_there[c] + sb_share * was_here[c])


@hot
def keep_counts(tables: TableArrays, joined: int, left: int) -> None:
    """Enter the counts of a transfer that was applied; ``left`` is -1 where its source is no more."""
    for column in range(tables.counts.shape[1]):
        tables.counts[joined, column] = tables.after[0, column]
    if left >= 0:
        for column in range(tables.counts.shape[1]):
            tables.counts[left, column] = tables.after[1, column]
