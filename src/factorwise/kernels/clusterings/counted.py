"""Sums over pairs computed from counts: how many members of a cluster have the item's value of a key.

Pairs of equal values are counted in tables by value (see `counts`), pairs of different ones by how many
members have any value of the key. So the gain of a move takes two look-ups per value of the item, whatever
the size of the clusters. Values stand in the item's entries with an amount of 1 and the number of their key
as ``kind``.

``mine`` of this program:

spans, entries, slots : SPAN[n], ENTRY[.], SLOT[.]
    Values of the items that other items have, too, and their tables.
known : uint32[n]
    A bit for each key with conflicts of which the item has a value, with a table or without.
having : int32[ids, conflicts]
    Members of each cluster that have a value of each such key.
equal_at, conflict_at, pair_at : int64[keys], int64[conflicts], int64[1]
    Positions of the weights of agreeing on a key, of conflicting on it, and of any pair; -1 for none.
conflict_key : int64[conflicts]
    Which key each of them is.
weights, sign : float64[.], float64[1]
    The weights, and -1 for repulsion.
worth, against, each : float64[keys], float64[conflicts], float64[1]
    The score of one more pair that agrees on a key, that has two different values of it, and of any pair.
look_ups : int64[1]
    Number of counts that gains have read so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.clusterings.counts import (
    add_count,
    clear_slots,
    count_of,
    take_count,
    visit_counts,
)
from factorwise.kernels.compile.compiler import shared


@shared
def has_value(mine: Any, item: int, conflict: int) -> bool:
    """Whether an item has a value of a key with conflicts."""
    return (mine.known[item] >> np.uint32(conflict)) & np.uint32(1) != 0


@shared
def weight_at(mine: Any, at: int) -> float:
    """Return the weight of a statistic; 0 if there is none."""
    return mine.sign[0] * mine.weights[at] if at >= 0 else 0.0


def counted_begin(world: Any, mine: Any) -> None:
    """Read the weights, and count the members of all clusters."""
    for key in range(len(mine.worth)):
        mine.worth[key] = weight_at(mine, mine.equal_at[key])
    for conflict in range(len(mine.against)):
        mine.against[conflict] = weight_at(mine, mine.conflict_at[conflict])
        mine.worth[mine.conflict_key[conflict]] -= mine.against[conflict]  # equal values are no conflict
    mine.each[0] = weight_at(mine, mine.pair_at[0])
    clear_slots(mine.slots)
    for cluster in range(mine.having.shape[0]):
        for conflict in range(mine.having.shape[1]):
            mine.having[cluster, conflict] = 0
    for item in range(len(world.label)):
        cluster = np.int64(world.label[item])
        for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
            add_count(mine.slots, mine.entries[at].start, mine.entries[at].shift, cluster, np.int64(1))
        for conflict in range(mine.having.shape[1]):
            if has_value(mine, item, conflict):
                mine.having[cluster, conflict] += 1


def counted_gain(world: Any, mine: Any, move: Any) -> float:
    """Return pairs joined minus pairs separated, from the counts of the old and the new cluster."""
    item, source, target = move.item, move.source, move.target
    s, t = np.int64(world.size[source]), np.int64(world.size[target])
    gain = mine.each[0] * (t - s + 1)
    begin, end = np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)
    for at in range(begin, end):
        start, shift = np.int64(mine.entries[at].start), np.int64(mine.entries[at].shift)
        change = np.int64(0)
        if s > 1:  # a single item leaves nothing behind
            change = 1 - count_of(mine.slots, start, shift, source)  # without the item itself
        if t > 0:
            change += count_of(mine.slots, start, shift, target)
        gain += mine.worth[mine.entries[at].kind] * change
    for conflict in range(len(mine.against)):
        if has_value(mine, item, conflict):
            more = np.int64(mine.having[target, conflict]) - np.int64(mine.having[source, conflict]) + 1
            gain += mine.against[conflict] * more
    mine.look_ups[0] += (end - begin) * (np.int64(s > 1) + np.int64(t > 0))
    move.factors += t + s - 1
    return gain


def counted_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Compute the score of the pairs of the item with the members of each target."""
    item = move.item
    for k in range(move.choices):
        cluster = np.int64(choice.targets[k])
        own = np.int64(cluster == move.source)  # the item itself is left out
        total = mine.each[0] * (np.int64(world.size[cluster]) - own)
        for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
            count = count_of(mine.slots, mine.entries[at].start, mine.entries[at].shift, cluster)
            total += mine.worth[mine.entries[at].kind] * (count - own)
        for conflict in range(len(mine.against)):
            if has_value(mine, item, conflict):
                total += mine.against[conflict] * (np.int64(mine.having[cluster, conflict]) - own)
        choice.out[k] += total
        move.factors += np.int64(world.size[cluster]) - own


def counted_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of pairs joined minus those of pairs separated."""
    item, source, target = move.item, move.source, move.target
    s, t = np.int64(world.size[source]), np.int64(world.size[target])
    out, sign = gradient.value, mine.sign[0]
    if mine.pair_at[0] >= 0:
        out[mine.pair_at[0]] += sign * (t - s + 1)
    for conflict in range(len(mine.conflict_at)):
        if has_value(mine, item, conflict):
            more = np.int64(mine.having[target, conflict]) - np.int64(mine.having[source, conflict]) + 1
            out[mine.conflict_at[conflict]] += sign * more
    for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
        start, shift = mine.entries[at].start, mine.entries[at].shift
        key = np.int64(mine.entries[at].kind)
        change = count_of(mine.slots, start, shift, target) - count_of(mine.slots, start, shift, source) + 1
        if mine.equal_at[key] >= 0:
            out[mine.equal_at[key]] += sign * change
        for conflict in range(len(mine.conflict_at)):
            if mine.conflict_key[conflict] == key:
                out[mine.conflict_at[conflict]] -= sign * change
    move.factors += t + s - 1


def counted_applied(world: Any, mine: Any, move: Any) -> None:
    """Update the counts after a change."""
    item, source, target = move.item, move.source, move.target
    for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
        start, shift = mine.entries[at].start, mine.entries[at].shift
        take_count(mine.slots, start, shift, source, np.int64(1))
        add_count(mine.slots, start, shift, target, np.int64(1))
    for conflict in range(mine.having.shape[1]):
        if has_value(mine, item, conflict):
            mine.having[source, conflict] -= 1
            mine.having[target, conflict] += 1


def counted_visit(world: Any, mine: Any, move: Any) -> None:
    """Read everything that steps among the items of a group will read: see `visit_counts`."""
    visit_counts(world, mine, move)
    total = np.int64(0)
    if mine.having.shape[1] > 0:
        for at in range(mine.group_start[move.item], mine.group_start[move.item + 1]):
            item = mine.group_item[at]
            total += np.int64(mine.known[item]) + mine.having[world.label[item], 0]
    mine.fetched[0] += total


def counted_pairs(mine: Any, move: Any, choice: Any) -> None:
    """Compute the score of the pair of the item with each target: equal values have the same table.

    This is the plain form of what compiled walks do with the rows of codes, ``item_ints``.
    """
    item = move.item
    for k in range(move.choices):
        other = np.int64(choice.targets[k])
        total = mine.each[0]
        for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
            for there in range(np.int64(mine.spans[other].begin), np.int64(mine.spans[other].end)):
                if mine.entries[at].start == mine.entries[there].start:
                    total += mine.worth[mine.entries[at].kind]
        for conflict in range(len(mine.against)):
            if has_value(mine, item, conflict) and has_value(mine, other, conflict):
                total += mine.against[conflict]
        choice.out[k] += total
