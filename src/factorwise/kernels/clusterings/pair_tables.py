"""Tables of pair features: how many pairs of each cluster have each feature, and what follows from it.

A transfer changes the counts of two clusters by the pairs it joins and separates. Most first-order aggregates
(all, exists, most, on average, how many, how many per member) are functions of a count and of the number of
members; how many members have a feature with some other member is counted from each item's own links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partitions import LIVE, NEW, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel

COUNT, ALL, EXISTS, MAJORITY, MEAN, PER_MEMBER, LINKED = range(7)
AGGREGATE_CODES = {
    "count": COUNT,
    "all": ALL,
    "exists": EXISTS,
    "majority": MAJORITY,
    "mean": MEAN,
    "per member": PER_MEMBER,
    "linked": LINKED,
}

MANY = 255  # rows of zeros and ones that fit into a sum of eight bits
BLOCK = np.dtype([("aggregate", np.int64), ("first", np.int64), ("size", np.int64), ("offset", np.int64)])


class TableArrays(NamedTuple):
    """Features of all pairs of items, and how many pairs of each cluster have them.

    rows : uint8[n (n - 1) / 2, width]
        Zeros and ones; the pair (i, j) with i > j stands in row ``i (i - 1) / 2 + j``.
    counts : int32[n + 3, width]
        Pairs of each cluster with each feature; row n stays zero, for clusters that do not exist yet, and the
        last two are scratch, for sides of a cluster that is being split.
    after : int32[2, width]
        The counts of target and source after the transfer at hand.
    links : uint16[n, width]
        Other members of its cluster with which an item has each feature; no rows where nothing asks for it.
    won : int32[width]
        By how many items the transfer at hand raises the number of those with a link.
    small, fresh, sums : uint8[width], uint8[width], int32[width]
        Scratch: sums of at most 255 rows, and of any number.
    blocks : BLOCK[.]
        Which ``aggregate`` of the ``size`` columns from ``first`` on adds to the statistics from ``offset``.
    """

    rows: NDArray[np.uint8]
    counts: NDArray[np.int32]
    after: NDArray[np.int32]
    links: NDArray[np.uint16]
    won: NDArray[np.int32]
    small: NDArray[np.uint8]
    fresh: NDArray[np.uint8]
    sums: NDArray[np.int32]
    blocks: NDArray[np.void]


@lean_kernel
def count_pairs(tables: TableArrays, p: PartitionArrays) -> None:
    """Set the counts of all clusters from scratch."""
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        lo = p.clusters[cluster].start
        for column in range(tables.counts.shape[1]):
            tables.counts[cluster, column] = 0
        hi = lo + p.clusters[cluster].size
        for slot in range(lo, hi):
            item = p.members[slot]
            add_links(tables, p, item, lo, slot, tables.counts[cluster])
            if len(tables.links) > 0:
                for column in range(tables.links.shape[1]):
                    tables.links[item, column] = 0
        if len(tables.links) > 0:
            for slot in range(lo + 1, hi):
                for before in range(lo, slot):
                    link(tables, p.members[slot], p.members[before], 1)


@hot
def row_of(first: int, second: int) -> int:
    """Where the features of two different items stand in the table."""
    if first > second:
        return np.int64(first) * (first - 1) // 2 + second
    return np.int64(second) * (second - 1) // 2 + first


@inner
def link(tables: TableArrays, first: int, second: int, change: int) -> None:
    """Note that two items have come together (1) or apart (-1)."""
    row = row_of(first, second)
    for column in range(tables.links.shape[1]):
        value = np.uint16(np.int32(tables.rows[row, column]) * change)
        tables.links[first, column] = np.uint16(tables.links[first, column] + value)
        tables.links[second, column] = np.uint16(tables.links[second, column] + value)


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
            other = p.members[slot]
            if other == item:
                continue
            row = row_of(item, other)
            for column in range(width):
                small[column] = np.uint8(small[column] + tables.rows[row, column])
        for column in range(width):
            out[column] += np.int32(small[column])
        lo = stop


@inner
def add_marked_links(
    tables: TableArrays, p: PartitionArrays, item: int, lo: int, hi: int, mark: int, out: NDArray[np.int32]
) -> None:
    """Add the features of ``item`` with those other members at the slots lo to hi that bear ``mark``."""
    for slot in range(lo, hi):
        other = p.members[slot]
        if p.items[other].mark == mark and other != item:
            row = row_of(item, other)
            for column in range(tables.rows.shape[1]):
                out[column] += np.int32(tables.rows[row, column])


@inner
def add_links_won(
    tables: TableArrays,
    p: PartitionArrays,
    item: int,
    lo: int,
    hi: int,
    limit: int,
    sign: int,
    out: NDArray[np.int32],
) -> None:
    """Like `add_links`; also count in ``tables.won`` the members for whom this link is the only one.

    ``limit`` is how many links such a member has now: none where the item joins, one where it leaves.
    """
    width = tables.rows.shape[1]
    small, fresh = tables.small, tables.fresh
    while lo < hi:
        stop = min(hi, lo + MANY)
        for column in range(width):
            small[column] = 0
            fresh[column] = 0
        for slot in range(lo, stop):
            other = p.members[slot]
            if other == item:
                continue
            row = row_of(item, other)
            for column in range(width):
                value = tables.rows[row, column]
                small[column] = np.uint8(small[column] + value)
                only = np.uint8(tables.links[other, column] == limit)
                fresh[column] = np.uint8(fresh[column] + np.uint8(value & only))
        for column in range(width):
            out[column] += np.int32(small[column])
            tables.won[column] += np.int32(sign) * np.int32(fresh[column])
        lo = stop


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
        tables.won[column] = 0
    if m == 1:
        relocation_counts(tables, p, items[0], s_lo, s, t_lo, t)
        for column in range(tables.counts.shape[1]):
            there[column] = tables.counts[was, column] + there[column]
            here[column] = tables.counts[source, column] - here[column]
    else:
        if m == s and len(tables.links) == 0:  # nobody stays: the pairs within are all counted already
            for index in range(m):
                add_links(tables, p, items[index], t_lo, t_lo + t, there)
            for column in range(tables.counts.shape[1]):
                there[column] += tables.counts[source, column]
        else:
            transfer_counts(tables, p, items, m, s_lo, s, t_lo, t)
        for column in range(tables.counts.shape[1]):
            there[column] += tables.counts[was, column]
    for block in range(len(tables.blocks)):
        add_aggregate(tables, block, was, source, t, s, m, out)


@inner
def relocation_counts(
    tables: TableArrays, p: PartitionArrays, item: int, s_lo: int, s: int, t_lo: int, t: int
) -> None:
    """Set ``after`` to the links of one item there and here, and ``won``."""
    there, here = tables.after[0], tables.after[1]
    if len(tables.links) == 0:
        add_links(tables, p, item, t_lo, t_lo + t, there)
        add_links(tables, p, item, s_lo, s_lo + s, here)
        return
    add_links_won(tables, p, item, t_lo, t_lo + t, 0, 1, there)
    add_links_won(tables, p, item, s_lo, s_lo + s, 1, -1, here)
    for column in range(tables.counts.shape[1]):
        tables.won[column] += np.int32(there[column] > 0) - np.int32(here[column] > 0)


@inner
def transfer_counts(
    tables: TableArrays,
    p: PartitionArrays,
    items: NDArray[np.int32],
    m: int,
    s_lo: int,
    s: int,
    t_lo: int,
    t: int,
) -> None:
    """Set ``after`` to the pairs of the movers, with the target's members, and of those who stay; ``won``."""
    there, here = tables.after[0], tables.after[1]
    for index in range(m):
        p.items[items[index]].mark = 1
    for slot in range(s_lo, s_lo + s):
        item = p.members[slot]
        if p.items[item].mark == 0:
            add_marked_links(tables, p, item, s_lo, slot, 0, here)
        else:
            add_marked_links(tables, p, item, s_lo, slot, 1, there)
            add_links(tables, p, item, t_lo, t_lo + t, there)
    if len(tables.links) > 0:
        for slot in range(t_lo, t_lo + t):
            count_won(tables, p, p.members[slot], s_lo, s_lo + s, 1, 0, 0, 1)
        for slot in range(s_lo, s_lo + s):
            if p.items[p.members[slot]].mark == 0:
                count_won(tables, p, p.members[slot], s_lo, s_lo + s, 1, 0, 0, -1)
            else:
                count_won(tables, p, p.members[slot], s_lo, s_lo + s, 0, t_lo, t_lo + t, -1)
    for index in range(m):
        p.items[items[index]].mark = 0


@inner
def count_won(
    tables: TableArrays,
    p: PartitionArrays,
    item: int,
    lo: int,
    hi: int,
    mark: int,
    more_lo: int,
    more_hi: int,
    sign: int,
) -> None:
    """Add to ``won`` whether one item has a link after the transfer, less whether it has one now.

    Its links change by ``sign`` times those with the members at lo to hi that bear ``mark``, and grow by
    those with the members at more_lo to more_hi.
    """
    sums = tables.sums
    for column in range(len(sums)):
        sums[column] = 0
    add_marked_links(tables, p, item, lo, hi, mark, sums)
    if sign < 0:
        for column in range(len(sums)):
            sums[column] = -sums[column]
    add_links(tables, p, item, more_lo, more_hi, sums)
    for column in range(len(sums)):
        before = np.int32(tables.links[item, column])
        tables.won[column] += np.int32(before + sums[column] > 0) - np.int32(before > 0)


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
    t: int,
    s: int,
    m: int,
    out: NDArray[np.float64],
) -> None:
    """Add the change of one aggregate when m of s members of the source join t of the target."""
    first, size, offset = tables.blocks[block].first, tables.blocks[block].size, tables.blocks[block].offset
    aggregate = tables.blocks[block].aggregate
    # cut out before the loops: an index that might be negative keeps them from being vectorised
    change = out[offset : offset + size]
    was_there, was_here = (
        tables.counts[target, first : first + size],
        tables.counts[source, first : first + size],
    )
    there, here = tables.after[0, first : first + size], tables.after[1, first : first + size]
    t_before, s_before, t_after, s_after = pairs_of(t), pairs_of(s), pairs_of(t + m), pairs_of(s - m)
    if aggregate == COUNT:
        for k in range(size):
            change[k] += np.int32(there[k] + here[k] - was_there[k] - was_here[k])
    elif aggregate == ALL:
        for k in range(size):
            more = np.int32(there[k] == t_after) + np.int32(here[k] == s_after)
            less = np.int32(was_there[k] == t_before) + np.int32(was_here[k] == s_before)
            change[k] += np.int32(more - less)
    elif aggregate == EXISTS:
        for k in range(size):
            more = np.int32(there[k] > 0) + np.int32(here[k] > 0)
            change[k] += np.int32(more - np.int32(was_there[k] > 0) - np.int32(was_here[k] > 0))
    elif aggregate == MAJORITY:  # twice the count is above the pairs
        ta, sa = np.int32(max(t_after // 2, 0)), np.int32(max(s_after // 2, 0))
        tb, sb = np.int32(max(t_before // 2, 0)), np.int32(max(s_before // 2, 0))
        for k in range(size):
            more = np.int32(there[k] > ta) + np.int32(here[k] > sa)
            change[k] += np.int32(more - np.int32(was_there[k] > tb) - np.int32(was_here[k] > sb))
    elif aggregate == LINKED:
        won = tables.won[first : first + size]
        for k in range(size):
            change[k] += won[k]
    else:  # counts are zero where there are no pairs
        ta_share, sa_share, tb_share, sb_share = 1.0 / t_after, 1.0 / s_after, 1.0 / t_before, 1.0 / s_before
        if aggregate == PER_MEMBER:
            ta_share, sa_share = 1.0 / (t + m), 1.0 / max(s - m, 1)
            tb_share, sb_share = 1.0 / max(t, 1), 1.0 / s
        for k in range(size):
            more = ta_share * there[k] + sa_share * here[k]
            change[k] += more - (tb_share * was_there[k] + sb_share * was_here[k])


@inner
def keep_links(
    tables: TableArrays, p: PartitionArrays, items: NDArray[np.int32], m: int, source: int, target: int
) -> None:
    """Enter the links of a transfer that is about to be applied."""
    for index in range(m):
        p.items[items[index]].mark = 1
    for index in range(m):
        if target != NEW:
            t_lo = p.clusters[target].start
            for slot in range(t_lo, t_lo + p.clusters[target].size):
                link(tables, items[index], p.members[slot], 1)
        for slot in range(p.clusters[source].start, p.clusters[source].start + p.clusters[source].size):
            if p.items[p.members[slot]].mark == 0:
                link(tables, items[index], p.members[slot], -1)
    for index in range(m):
        p.items[items[index]].mark = 0


@hot
def keep_counts(tables: TableArrays, joined: int, left: int) -> None:
    """Enter the counts of a transfer that was applied; ``left`` is -1 where its source is no more."""
    for column in range(tables.counts.shape[1]):
        tables.counts[joined, column] = tables.after[0, column]
    if left >= 0:
        for column in range(tables.counts.shape[1]):
            tables.counts[left, column] = tables.after[1, column]
