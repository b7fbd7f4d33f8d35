"""The features of clusters that an adaptive proposer reads, from the ``gradient`` functions of templates.

The proposer has its own clustering, which it synchronizes with the walk's when it draws, and in which it
makes the proposed jump. Statistics that are sums over pairs of items are stored in two square matrices: the
contribution of each pair, weighted for merges and for splits. All others come from gradients in that
clustering: the gain of joining two clusters is that of moving the members of one to the other, one by one.

``mine`` of the programs here has the arrays of its clustering (`Clustering`), those of `jump_odds`, and:

state : int64[8]
    Whether parts are guided; whether ratios are needed; whether weights are new, so that nothing stored is
    valid; the number of clusters that have ``changed``; the id of a part that is set aside; the number of
    pairs of items examined so far; whether the clustering is one jump ahead of the walk's; whether it has
    come back from there.
split, merge : float64[features]
    Weights of the features of one cluster and of two. The last feature is the logarithm of the size.
affinity, content : float64[n, n]
    The contribution of each pair of items to the log-odds, times pairs: of a merge that joins it, and of a
    split of its cluster.
pairs, pair_step, pair_value, pair_index, pair_place
    Gradients of the statistics that are sums over pairs, in a world of singletons: the functions, the record
    of their move, the head to which they add, the positions of the chosen ones in it, and their feature
    numbers.
rest, step, value, index, place, apply
    The same for the other statistics, in the clustering of the proposer, and the function that changes it.
near : float64[ids]
    Odds of the current cluster with every other.
dirty, changed : int32[ids]
    Marks of the clusters whose odds are not up to date, and the list of them.
before, ends, kept : int32[n], int64[2], float64[2, ids + 1]
    State before the current jump: the cluster of each item; the ids of its source and target; their odds with
    each cluster and, last, their odds of being split.
items, moved : int32[n]
    Scratch: members to allocate; members that are moving.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.clusterings.adaptive.jump_odds import as_odds, forget_cluster, set_odds, sum_row
from factorwise.kernels.clusterings.arrays import LIVE
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call

GUIDED, BALANCED, STALE, CHANGED, ASIDE, SEEN, AHEAD, BACK = range(8)
GRADIENT, APPLIED, BEGIN, CONTEXT = range(4)
BEGIN_ODDS, UPDATE_ODDS, WEIGH_ASIDE = range(
    3
)  # rows of ``odds``: functions that are compiled separately and called


@shared
def shift(mine: Any, item: int, target: int) -> None:
    """Move an item in the clustering of the proposer."""
    step = mine.step[0]
    step.item, step.source, step.target = item, mine.label[item], target
    call(mine.apply[0, 0], mine.apply[0, 1])
    for k in range(len(mine.rest)):
        if mine.rest[k, APPLIED] != 0:
            call(mine.rest[k, APPLIED], mine.rest[k, CONTEXT])


@shared
def spare(mine: Any) -> int:
    """Return an id that is not in use."""
    return int(mine.live[mine.counters[LIVE]])


@shared
def last_of(mine: Any, cluster: int) -> int:
    """Return the last member of a cluster."""
    return int(mine.members[mine.start[cluster] + mine.size[cluster] - 1])


@shared
def clear(value: Any) -> None:
    """Set the head of a gradient to zero."""
    for k in range(len(value)):
        value[k] = 0.0


@shared
def add_gradient(mine: Any, item: int, target: int) -> None:
    """Add the gradient of moving an item."""
    step = mine.step[0]
    step.item, step.source, step.target = item, mine.label[item], target
    for k in range(len(mine.rest)):
        call(mine.rest[k, GRADIENT], mine.rest[k, CONTEXT])


@shared
def add_pair(mine: Any, first: int, second: int) -> None:
    """Add the statistics of a pair of items."""
    step = mine.pair_step[0]
    step.item, step.source, step.target = first, first, second
    for k in range(len(mine.pairs)):
        call(mine.pairs[k, 0], mine.pairs[k, 1])


@shared
def join_rest(mine: Any, first: int, second: int) -> None:
    """Set ``value`` to the gain of joining two clusters, which are then restored."""
    clear(mine.value)
    moving, staying = first, second
    if mine.size[first] > mine.size[second]:
        moving, staying = second, first
    count = int(mine.size[moving])
    for k in range(count):
        item = last_of(mine, moving)
        add_gradient(mine, item, staying)
        if k < count - 1:  # the last one need not move
            mine.moved[k] = item
            shift(mine, item, staying)
    for k in range(count - 2, -1, -1):
        shift(mine, mine.moved[k], moving)


@shared
def part_rest(mine: Any, cluster: int) -> None:
    """Set ``value`` to the gain of splitting a cluster into single items, which is then restored."""
    clear(mine.value)
    count = int(mine.size[cluster])
    for k in range(count - 1):
        item, alone = last_of(mine, cluster), spare(mine)
        add_gradient(mine, item, alone)
        mine.moved[k] = item
        shift(mine, item, alone)
    for k in range(count - 2, -1, -1):
        shift(mine, mine.moved[k], cluster)


@shared
def weighed(index: Any, place: Any, value: Any, weights: Any) -> float:
    """Return the weighted sum of the statistics that are features."""
    total = 0.0
    for k in range(len(index)):
        total += weights[place[k]] * value[index[k]]
    return total


@shared
def odds_by(total: float, weights: Any, pairs: int, size: int) -> float:
    """Return the odds from the weighted statistics of ``pairs`` pairs of items.

    ``size`` enters by its logarithm.
    """
    return as_odds(total / pairs + weights[len(weights) - 1] * math.log(size))


@shared
def weigh_neighbors(mine: Any, cluster: int) -> None:
    """Set ``near`` to the odds of merging a cluster with each of the others."""
    lo, size = mine.start[cluster], int(mine.size[cluster])
    for position in range(mine.counters[LIVE]):
        mine.near[mine.live[position]] = 0.0
    for slot in range(lo, lo + size):
        row = mine.affinity[mine.members[slot]]
        for item in range(len(mine.label)):
            mine.near[mine.label[item]] += row[item]
    for position in range(mine.counters[LIVE]):
        other = int(mine.live[position])
        if other != cluster:
            pairs = size * int(mine.size[other])
            if len(mine.index) > 0:
                join_rest(mine, cluster, other)
                mine.near[other] += weighed(mine.index, mine.place, mine.value, mine.merge)
                mine.state[SEEN] += pairs
            mine.near[other] = odds_by(mine.near[other], mine.merge, pairs, pairs)


def weigh_aside(mine: Any) -> None:
    """Set ``near`` to the odds of the part that is set aside with each cluster."""
    weigh_neighbors(mine, mine.state[ASIDE])


@shared
def mixed_odds(mine: Any, cluster: int) -> float:
    """Return the odds of splitting a cluster of two or more."""
    lo, size = mine.start[cluster], int(mine.size[cluster])
    total = 0.0
    for slot in range(lo + 1, lo + size):
        row = mine.content[mine.members[slot]]
        for before in range(lo, slot):
            total += row[mine.members[before]]
    pairs = size * (size - 1) // 2
    if len(mine.index) > 0:
        part_rest(mine, cluster)
        total -= weighed(mine.index, mine.place, mine.value, mine.split)
        mine.state[SEEN] += pairs
    return odds_by(total, mine.split, pairs, size)


@shared
def side_odds(mine: Any, item: int, side: int) -> float:
    """Return the odds of a single item with one of two sides."""
    lo, size = mine.start[side], int(mine.size[side])
    total = 0.0
    for slot in range(lo, lo + size):
        total += mine.affinity[item, mine.members[slot]]
    if len(mine.index) > 0:
        mine.state[SEEN] += size
        clear(mine.value)
        add_gradient(mine, item, side)
        total += weighed(mine.index, mine.place, mine.value, mine.merge)
    return odds_by(total, mine.merge, size, size)


@shared
def note_change(mine: Any, cluster: int) -> None:
    """Add a cluster to the list of those that have changed."""
    if mine.dirty[cluster] == 0:
        mine.dirty[cluster] = 1
        mine.changed[mine.state[CHANGED]] = cluster
        mine.state[CHANGED] += 1


@shared
def keep_odds(world: Any, mine: Any, source: int, target: int) -> None:
    """Store the odds of two clusters that a jump is about to change, and the clusters of all items."""
    for item in range(len(mine.label)):
        mine.before[item] = world.label[item]
    mine.ends[0], mine.ends[1], mine.state[AHEAD] = source, target, 1
    for k in range(2):
        for position in range(world.counters[LIVE]):
            other = world.live[position]
            mine.kept[k, other] = mine.merge_odds[mine.ends[k], other]
        mine.kept[k, len(mine.size)] = mine.split_odds[mine.ends[k]]


def update_odds(mine: Any) -> None:
    """Update the odds of changed clusters; after a jump back, restore the stored ones."""
    for k in range(mine.state[CHANGED]):
        cluster = int(mine.changed[k])
        mine.dirty[cluster] = 0
        if mine.size[cluster] == 0:
            forget_cluster(mine, cluster)
    for k in range(mine.state[CHANGED]):
        cluster = int(mine.changed[k])
        if mine.size[cluster] == 0:
            continue
        end = 0 if cluster == mine.ends[0] else 1
        mixed = mine.kept[end, len(mine.size)]
        if mine.state[BACK] == 0:
            weigh_neighbors(mine, cluster)
            mixed = mixed_odds(mine, cluster) if mine.size[cluster] > 1 else 0.0
        for position in range(mine.counters[LIVE]):
            other = int(mine.live[position])
            if other != cluster:
                odds = mine.near[other] if mine.state[BACK] == 0 else mine.kept[end, other]
                mine.merge_odds[cluster, other] = odds
                set_odds(mine, other, cluster, odds)
        sum_row(mine, cluster)
        mine.split_odds[cluster] = mixed
    mine.state[CHANGED] = 0


def begin_odds(mine: Any) -> None:
    """Use new weights: weigh all pairs of items, and discard all odds."""
    for first in range(len(mine.affinity) if len(mine.pairs) > 0 else 0):
        for second in range(first):
            clear(mine.pair_value)
            add_pair(mine, first, second)
            affinity = weighed(mine.pair_index, mine.pair_place, mine.pair_value, mine.merge)
            content = weighed(mine.pair_index, mine.pair_place, mine.pair_value, mine.split)
            mine.affinity[first, second], mine.affinity[second, first] = affinity, affinity
            mine.content[first, second], mine.content[second, first] = content, content
            mine.state[SEEN] += 1
    for k in range(len(mine.rest)):
        if mine.rest[k, BEGIN] != 0:
            call(mine.rest[k, BEGIN], mine.rest[k, CONTEXT])
    for cluster in range(len(mine.size)):
        mine.split_odds[cluster] = 0.0
        for other in range(len(mine.size)):
            mine.merge_odds[cluster, other] = 0.0
        for k in range(3):
            mine.sums[cluster, k] = 0.0
        if mine.size[cluster] > 0:
            note_change(mine, cluster)
    mine.state[STALE], mine.state[AHEAD] = 0, 0


@shared
def follow(world: Any, mine: Any) -> None:
    """Synchronize the clustering of the proposer, and all odds, with the walk's."""
    if mine.state[STALE] != 0:
        call(mine.odds[BEGIN_ODDS, 0], mine.odds[BEGIN_ODDS, 1])
    back = mine.state[AHEAD] != 0
    for item in range(len(mine.label)):
        source, target = int(mine.label[item]), int(world.label[item])
        back = back and mine.before[item] == target
        if source != target:
            note_change(mine, source)
            note_change(mine, target)
            shift(mine, item, target)
    if mine.state[CHANGED] > 0:
        mine.state[BACK] = back
        call(mine.odds[UPDATE_ODDS, 0], mine.odds[UPDATE_ODDS, 1])
    mine.state[BACK], mine.state[AHEAD] = 0, 0


@shared
def end_row(mine: Any, sign: float, pairs: int, size: int, out: Any) -> None:
    """Write the features of ``pairs`` pairs of items from the statistics in the two heads."""
    for k in range(len(mine.pair_index)):
        out[mine.pair_place[k]] = mine.pair_value[mine.pair_index[k]] / pairs
    for k in range(len(mine.index)):
        out[mine.place[k]] = sign * mine.value[mine.index[k]] / pairs
    out[len(out) - 1] = math.log(size)


@shared
def write_between(mine: Any, first: int, second: int, out: Any) -> None:
    """Write the features of two clusters."""
    clear(mine.pair_value)
    for slot in range(mine.start[first], mine.start[first] + mine.size[first]):
        for other in range(mine.start[second], mine.start[second] + mine.size[second]):
            add_pair(mine, mine.members[slot], mine.members[other])
    if len(mine.index) > 0:
        join_rest(mine, first, second)
    pairs = int(mine.size[first]) * int(mine.size[second])
    mine.state[SEEN] += pairs
    end_row(mine, 1.0, pairs, pairs, out)


def write_features(world: Any, mine: Any) -> None:
    """Write the features of all pairs of ``clusters`` and of all clusters that are ``large``.

    Those of the pair at positions (a, b), a > b, go to row a (a - 1) / 2 + b of ``between``, those of large
    clusters to rows of ``within`` in their order.
    """
    follow(world, mine)
    for a in range(len(mine.clusters)):
        for b in range(a):
            row = mine.between[a * (a - 1) // 2 + b]
            write_between(mine, int(mine.clusters[a]), int(mine.clusters[b]), row)
    for position in range(len(mine.large)):
        cluster = int(mine.large[position])
        clear(mine.pair_value)
        for slot in range(mine.start[cluster], mine.start[cluster] + mine.size[cluster]):
            for before in range(mine.start[cluster], slot):
                add_pair(mine, mine.members[slot], mine.members[before])
        if len(mine.index) > 0:
            part_rest(mine, cluster)
        size = int(mine.size[cluster])
        end_row(mine, -1.0, size * (size - 1) // 2, size, mine.within[position])


def write_part_features(world: Any, mine: Any) -> None:
    """Write the features of ``part`` with each of ``clusters``, including the rest of its own."""
    follow(world, mine)
    source, aside = int(mine.label[mine.part[0]]), spare(mine)
    for k in range(len(mine.part)):
        shift(mine, mine.part[k], aside)
    for position in range(len(mine.clusters)):
        write_between(mine, aside, int(mine.clusters[position]), mine.between[position])
    for k in range(len(mine.part)):
        shift(mine, mine.part[k], source)
