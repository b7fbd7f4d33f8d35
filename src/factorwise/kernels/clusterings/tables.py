"""Tables of pair features: how many pairs of each cluster have each feature, and aggregates of these counts.

Moving an item changes the counts of two clusters by the pairs it joins and separates. Most first-order
aggregates (all, exists, most, on average, how many, how many per member) are functions of a count and of the
number of members; how many members have a feature with some other member is counted from each item's own
links.

``mine`` of this program:

rows : uint8[n (n - 1) / 2, width]
    Zeros and ones; the pair (i, j) with i > j stands in row ``i (i - 1) / 2 + j``.
counts : int32[ids, width]
    Pairs of each cluster with each feature.
without, joined : int32[3, width]
    Counts of a cluster without and with the item: of one to which it might go, THERE; of its own, HERE; and
    zeros.
links : uint16[n, width]
    Number of other members of its cluster with which an item has each feature; no rows if it is not needed.
won : int32[3, width]
    How many members, including the item, have a link only because the item is among them.
small, fresh : uint8[width]
    Scratch: sums of at most 255 rows.
blocks : int64[., 4]
    Each block: the aggregate, the first column, the number of columns, and the first statistic.
change : int64[3]
    Item, source and target of the change that was weighed last, to which the rows above belong; -1 for none.
value : float64[.]
    Scratch: one aggregate.
weights : float64[.]
    Weights of the whole model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE
from factorwise.kernels.compile.compiler import shared

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
AGGREGATE, FIRST, SIZE, PLACE = range(4)
THERE, HERE, NOWHERE = range(3)


@shared
def row_of(first: int, second: int) -> int:
    """Return the row of two different items in the table."""
    if first > second:
        return np.int64(first) * (first - 1) // 2 + second
    return np.int64(second) * (second - 1) // 2 + first


@shared
def link(mine: Any, first: int, second: int, change: int) -> None:
    """Record that two items have come together (1) or apart (-1)."""
    row = row_of(first, second)
    for column in range(mine.links.shape[1]):
        value = np.int32(mine.rows[row, column]) * change
        mine.links[first, column] = np.uint16(np.int32(mine.links[first, column]) + value)
        mine.links[second, column] = np.uint16(np.int32(mine.links[second, column]) + value)


@shared
def add_features(world: Any, mine: Any, item: int, lo: int, hi: int, limit: int, out: Any, won: Any) -> None:
    """Add the features of ``item`` with each of the other members at the slots lo to hi.

    If links are kept, count in ``won`` the members for which this link is the only one: ``limit`` is the
    number of links of such a member now, 0 if the item joins and 1 if it leaves.
    """
    width, linked = mine.rows.shape[1], len(mine.links) > 0
    small, fresh = mine.small, mine.fresh
    while lo < hi:
        stop = min(hi, lo + MANY)
        for column in range(width):
            small[column] = 0
            fresh[column] = 0
        for slot in range(lo, stop):
            other = world.members[slot]
            if other == item:
                continue
            row = row_of(item, other)
            if linked:
                for column in range(width):
                    value = mine.rows[row, column]
                    small[column] = np.uint8(small[column] + value)
                    only = np.uint8(mine.links[other, column] == limit)
                    fresh[column] = np.uint8(fresh[column] + np.uint8(value & only))
            else:
                for column in range(width):
                    small[column] = np.uint8(small[column] + mine.rows[row, column])
        for column in range(width):
            out[column] += np.int32(small[column])
            won[column] += np.int32(fresh[column])
        lo = stop


def begin_tables(world: Any, mine: Any) -> None:
    """Set the counts of all clusters from scratch."""
    for cluster in range(mine.counts.shape[0]):
        for column in range(mine.counts.shape[1]):
            mine.counts[cluster, column] = 0
    for item in range(mine.links.shape[0]):
        for column in range(mine.links.shape[1]):
            mine.links[item, column] = 0
    mine.change[0] = -1
    for position in range(world.counters[LIVE]):
        cluster = world.live[position]
        lo = world.start[cluster]
        for slot in range(lo, lo + world.size[cluster]):
            add_features(world, mine, world.members[slot], lo, slot, -1, mine.counts[cluster], mine.won[0])
            if len(mine.links) > 0:
                for before in range(lo, slot):
                    link(mine, world.members[slot], world.members[before], 1)


@shared
def take_features(world: Any, mine: Any, item: int, cluster: int, end: int) -> None:
    """Set a row of ``without``, ``joined`` and ``won`` from a cluster without and with an item.

    end
        Whether the item is among its members (HERE) or not yet (THERE).
    """
    counts, without, joined, won = mine.counts[cluster], mine.without[end], mine.joined[end], mine.won[end]
    for column in range(mine.counts.shape[1]):
        joined[column] = 0
        won[column] = 0
    lo = world.start[cluster]
    add_features(world, mine, item, lo, lo + world.size[cluster], end, joined, won)
    for column in range(mine.counts.shape[1]):
        found = joined[column]
        won[column] += np.int32(found > 0)
        without[column] = counts[column] - found if end == HERE else counts[column]
        joined[column] = without[column] + found


@shared
def take_both(world: Any, mine: Any, item: int, source: int, target: int) -> None:
    """Compute the features of an item with the members of its target and of its source."""
    take_features(world, mine, item, target, THERE)
    take_features(world, mine, item, source, HERE)


def tables_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the change of all aggregates when one item moves."""
    item, source, target = move.item, move.source, move.target
    take_both(world, mine, item, source, target)
    mine.change[0], mine.change[1], mine.change[2] = item, source, target
    s, t = np.int64(world.size[source]), np.int64(world.size[target])
    move.factors += s + t - 1
    for block in range(len(mine.blocks)):
        size, at = mine.blocks[block, SIZE], mine.blocks[block, PLACE]
        add_aggregate(mine, block, THERE, HERE, t + 1, s, gradient.value[at : at + size])


def tables_applied(world: Any, mine: Any, move: Any) -> None:
    """Update counts and links after a change."""
    item, source, target = move.item, move.source, move.target
    if mine.change[0] != item or mine.change[1] != source or mine.change[2] != target:
        take_both(world, mine, item, source, target)
    mine.change[0] = -1
    for column in range(mine.counts.shape[1]):
        mine.counts[target, column] = mine.joined[THERE, column]
        mine.counts[source, column] = mine.without[HERE, column]
    if len(mine.links) > 0:
        lo = world.start[target]
        for slot in range(lo, lo + world.size[target]):
            if world.members[slot] != item:
                link(mine, item, world.members[slot], 1)
        lo = world.start[source]
        for slot in range(lo, lo + world.size[source]):
            link(mine, item, world.members[slot], -1)


def tables_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Compute what the item adds to the aggregates of each target."""
    mine.change[0] = -1  # the stored numbers of the change weighed last are overwritten
    for k in range(move.choices):
        cluster = np.int64(choice.targets[k])
        size, own = np.int64(world.size[cluster]), cluster == move.source
        take_features(world, mine, move.item, cluster, HERE if own else THERE)
        for block in range(len(mine.blocks)):
            columns, at = mine.blocks[block, SIZE], mine.blocks[block, PLACE]
            for column in range(columns):
                mine.value[column] = 0.0
            if own:
                add_aggregate(mine, block, NOWHERE, HERE, 0, size, mine.value)
            else:
                add_aggregate(mine, block, THERE, NOWHERE, size + 1, 0, mine.value)
            for column in range(columns):
                change = mine.weights[at + column] * mine.value[column]
                choice.out[k] += -change if own else change
        move.factors += size - np.int64(own)


@shared
def pairs_of(members: int) -> int:
    """Return the number of pairs of a cluster.

    -1 if there are none, so that no feature holds for all of them.
    """
    return np.int32(members * (members - 1) // 2) if members > 1 else np.int32(-1)


@shared
def add_aggregate(mine: Any, block: int, there: int, here: int, t: int, s: int, change: Any) -> None:
    """Add the change of one aggregate as an item joins a cluster of t members and leaves one of s."""
    first, last = mine.blocks[block, FIRST], mine.blocks[block, FIRST] + mine.blocks[block, SIZE]
    aggregate = mine.blocks[block, AGGREGATE]
    # cut before the loops, because an index that might be negative prevents vectorisation
    was_there, then_there = mine.without[there][first:last], mine.joined[there][first:last]
    then_here, was_here = mine.without[here][first:last], mine.joined[here][first:last]
    size = last - first
    t_before, t_after, s_before, s_after = pairs_of(t - 1), pairs_of(t), pairs_of(s), pairs_of(s - 1)
    if aggregate == COUNT:
        for k in range(size):
            change[k] += np.int32(then_there[k] - was_there[k] + then_here[k] - was_here[k])
    elif aggregate == ALL:
        for k in range(size):
            after = np.int32(then_there[k] == t_after) + np.int32(then_here[k] == s_after)
            change[k] += np.int32(
                after - np.int32(was_there[k] == t_before) - np.int32(was_here[k] == s_before)
            )
    elif aggregate == EXISTS:
        for k in range(size):
            after = np.int32(then_there[k] > 0) + np.int32(then_here[k] > 0)
            change[k] += np.int32(after - np.int32(was_there[k] > 0) - np.int32(was_here[k] > 0))
    elif aggregate == MAJORITY:  # twice the count exceeds the number of pairs
        ta, sa = np.int32(max(t_after // 2, 0)), np.int32(max(s_after // 2, 0))
        tb, sb = np.int32(max(t_before // 2, 0)), np.int32(max(s_before // 2, 0))
        for k in range(size):
            after = np.int32(then_there[k] > ta) + np.int32(then_here[k] > sa)
            change[k] += np.int32(after - np.int32(was_there[k] > tb) - np.int32(was_here[k] > sb))
    elif aggregate == LINKED:
        won, lost = mine.won[there][first:last], mine.won[here][first:last]
        for k in range(size):
            change[k] += np.int32(won[k] - lost[k])
    else:  # counts are zero if there are no pairs
        ta_share, sa_share, tb_share, sb_share = 1.0 / t_after, 1.0 / s_after, 1.0 / t_before, 1.0 / s_before
        if aggregate == PER_MEMBER:
            ta_share, sa_share = 1.0 / max(t, 1), 1.0 / max(s - 1, 1)
            tb_share, sb_share = 1.0 / max(t - 1, 1), 1.0 / max(s, 1)
        for k in range(size):
            after = ta_share * then_there[k] + sa_share * then_here[k]
            change[k] += after - (tb_share * was_there[k] + sb_share * was_here[k])
