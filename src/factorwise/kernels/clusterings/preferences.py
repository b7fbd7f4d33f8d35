"""How much better a clustering becomes by one change, for metrics against the truth.

With n(c, e) known items of true entity e in cluster c, s(c) known items in c and T(e) known items of e:

- right pairs are the sum of n(n - 1) / 2, predicted pairs that of s(s - 1) / 2, true pairs that of
  T(T - 1) / 2. Pairwise F1 is 2 right / (predicted + true), and 0 where there are no true pairs. The Rand
  index is (all + 2 right - predicted - true) / all, over all pairs of known items.
- B-cubed precision is the mean over known items of n / s, recall that of n / T, for the cluster and entity
  of the item; B-cubed F1 is their harmonic mean. Summed over items they are the sums of n^2 / s and n^2 / T.

A gain is computed from stored numbers of the two clusters, two running sums, and the *mates* of the item: the
other items of its entity in either cluster. They are the same before and after the change, so changes that
were made without a judgment, or undone, can be recorded as well.

**Ties are exactly 0.0.** The pair counts are whole numbers below 2^53, which floats hold exactly, and the
gain of pairwise F1 has the sign of a difference of two products of them. Equal products round alike, so a tie
is 0.0, and rounding keeps order, so no gain has the wrong sign; only where a product passes 2^53 may a gain
below its rounding count as a tie. The change of a B-cubed sum is a sum of quotients of whole numbers: where
the parts of a gain cancel to within TIE of their size it is a tie.

``mine`` of the metrics:

entity : int32[n]
    True entity of each item, numbered from 0; -1 where it is unknown: the metric leaves such items out.
entity_start, entity_item : int64[entities + 1], int32[known]
    The items of entity e are ``entity_item[entity_start[e]:entity_start[e + 1]]``.
truth : int64[2]
    Known items, and true pairs.
held : int64[ids, 2]
    By cluster: its known members, and the sum over entities of their squared number.
sums, after : float64[2]
    Right and predicted pairs or, for B-cubed, precision and recall summed over the known items; and what they
    will be after the change last judged.
change : int64[5]
    That change: item, -1 for none; source, target; the item's mates in either.
counts : int64[entities]
    Scratch, zero between calls: members of each entity in a cluster.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE
from factorwise.kernels.compile.compiler import shared, strict

KNOWN, TRUE_PAIRS = range(2)
MEMBERS, SQUARES = range(2)
RIGHT, PREDICTED = range(2)
PRECISION, RECALL = range(2)
ITEM, SOURCE, TARGET, LEFT_MATES, JOINED_MATES = range(5)

TIE = 1e-12


@shared
def count_mates(world: Any, mine: Any, move: Any) -> tuple[int, int]:
    """Count the mates of the item in its source and its target, and store them with the change.

    It scans the items of the entity, or the members of the clusters if these are fewer.
    """
    item, source, target = move.item, move.source, move.target
    entity, home = mine.entity[item], world.label[item]
    left, joined = -np.int64(home == source), -np.int64(home == target)  # the item itself is not a mate
    first, last = mine.entity_start[entity], mine.entity_start[entity + 1]
    if last - first <= np.int64(world.size[source]) + np.int64(world.size[target]):
        for at in range(first, last):
            cluster = world.label[mine.entity_item[at]]
            left += cluster == source
            joined += cluster == target
    else:
        left += count_members(world, mine, source, entity)
        joined += count_members(world, mine, target, entity)
    mine.change[ITEM], mine.change[SOURCE], mine.change[TARGET] = item, source, target
    mine.change[LEFT_MATES], mine.change[JOINED_MATES] = left, joined
    return left, joined


@shared
def count_members(world: Any, mine: Any, cluster: int, entity: int) -> int:
    """Count the members of a cluster that belong to one entity."""
    count = np.int64(0)
    for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
        count += mine.entity[world.members[slot]] == entity
    return count


@shared
def was_judged(mine: Any, move: Any) -> bool:
    """Whether the current change is the one that was judged last."""
    change = mine.change
    return change[ITEM] == move.item and change[SOURCE] == move.source and change[TARGET] == move.target


@shared
def keep_change(mine: Any) -> None:
    """Update the sums, and the numbers of the two clusters, to those after the change."""
    change, held = mine.change, mine.held
    source, target = change[SOURCE], change[TARGET]
    held[source, MEMBERS] -= 1
    held[source, SQUARES] -= 2 * change[LEFT_MATES] + 1
    held[target, MEMBERS] += 1
    held[target, SQUARES] += 2 * change[JOINED_MATES] + 1
    mine.sums[0], mine.sums[1] = mine.after[0], mine.after[1]
    change[ITEM] = -1


@shared
def count_cluster(world: Any, mine: Any, cluster: int) -> float:
    """Compute the numbers of a cluster from its members; return the summed recall of its known members."""
    members, squares, recall = np.int64(0), np.int64(0), 0.0
    first, last = world.start[cluster], world.start[cluster] + world.size[cluster]
    for slot in range(first, last):
        entity = mine.entity[world.members[slot]]
        if entity >= 0:
            members += 1
            squares += 2 * mine.counts[entity] + 1
            mine.counts[entity] += 1
    for slot in range(first, last):
        entity = mine.entity[world.members[slot]]
        if entity >= 0:
            mates = np.float64(mine.counts[entity])
            recall += mates * mates / (mine.entity_start[entity + 1] - mine.entity_start[entity])
            mine.counts[entity] = 0
    mine.held[cluster, MEMBERS], mine.held[cluster, SQUARES] = members, squares
    return recall


@shared
def begin_clusters(world: Any, mine: Any) -> float:
    """Count the clusters of the current world; return the summed recall of all known items."""
    mine.change[ITEM] = -1
    recall = 0.0
    for position in range(world.counters[LIVE], len(world.live)):
        mine.held[world.live[position], MEMBERS], mine.held[world.live[position], SQUARES] = 0, 0
    for position in range(world.counters[LIVE]):
        recall += count_cluster(world, mine, np.int64(world.live[position]))
    return recall


# Pairs of items ---------------------------------------------------------------------------------------------


@shared
def set_pairs_after(world: Any, mine: Any, move: Any) -> None:
    """Set the right and predicted pairs after the current change, from those before it."""
    left_mates, joined_mates = count_mates(world, mine, move)
    more = mine.held[move.target, MEMBERS] - (mine.held[move.source, MEMBERS] - 1)
    mine.after[RIGHT] = mine.sums[RIGHT] + (joined_mates - left_mates)
    mine.after[PREDICTED] = mine.sums[PREDICTED] + more


@strict
def pairwise_gain(
    right: float, predicted: float, more_right: float, more_predicted: float, true: int
) -> float:
    """Return the gain of pairwise F1 when right and predicted pairs change by these numbers."""
    if true == 0:
        return 0.0
    whole = predicted + true
    rise = more_right * whole - right * more_predicted
    return 2.0 * rise / (whole * (whole + more_predicted))


def judge_pairwise(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of pairwise F1."""
    if move.world != 0 or mine.entity[move.item] < 0:
        return 0.0
    set_pairs_after(world, mine, move)
    right, predicted = mine.sums[RIGHT], mine.sums[PREDICTED]
    more_right, more_predicted = mine.after[RIGHT] - right, mine.after[PREDICTED] - predicted
    return pairwise_gain(right, predicted, more_right, more_predicted, mine.truth[TRUE_PAIRS])


def judge_rand(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of the Rand index."""
    known = mine.truth[KNOWN]
    if move.world != 0 or mine.entity[move.item] < 0 or known < 2:
        return 0.0
    set_pairs_after(world, mine, move)
    more_right, more_predicted = (
        mine.after[RIGHT] - mine.sums[RIGHT],
        mine.after[PREDICTED] - mine.sums[PREDICTED],
    )
    return 2.0 * (2.0 * more_right - more_predicted) / (np.float64(known) * (known - 1.0))


def pairs_applied(world: Any, mine: Any, move: Any) -> None:
    """Update the pairs after a change."""
    if mine.entity[move.item] < 0:
        return
    if not was_judged(mine, move):
        set_pairs_after(world, mine, move)
    keep_change(mine)


def begin_pairs(world: Any, mine: Any) -> None:
    """Count the pairs of the present world from scratch."""
    begin_clusters(world, mine)
    mine.sums[RIGHT], mine.sums[PREDICTED] = 0.0, 0.0
    for position in range(world.counters[LIVE]):
        held = mine.held[world.live[position]]
        mine.sums[RIGHT] += (held[SQUARES] - held[MEMBERS]) // 2
        mine.sums[PREDICTED] += held[MEMBERS] * (held[MEMBERS] - 1) // 2


def pairwise_value(mine: Any) -> float:
    """Return pairwise F1; NaN if nothing is known."""
    whole = mine.sums[PREDICTED] + mine.truth[TRUE_PAIRS]
    if whole > 0.0:
        return 2.0 * mine.sums[RIGHT] / whole
    return 0.0 if mine.truth[KNOWN] > 0 else math.nan


def rand_value(mine: Any) -> float:
    """Return the Rand index; NaN if fewer than two entities are known."""
    pairs = mine.truth[KNOWN] * (mine.truth[KNOWN] - 1) // 2
    if pairs == 0:
        return math.nan
    return (pairs + 2.0 * mine.sums[RIGHT] - mine.sums[PREDICTED] - mine.truth[TRUE_PAIRS]) / pairs


# B-cubed ----------------------------------------------------------------------------------------------------


@strict
def joining_change(known: int, squares: int, mates: int) -> float:
    """Return the change of squares / known when an item with ``mates`` mates joins; 0 / 0 counts as 0."""
    if known == 0:
        return 1.0
    size = np.float64(known)
    return (size * (2 * mates + 1) - squares) / (size * (size + 1.0))


@shared
def set_b_cubed_after(world: Any, mine: Any, move: Any) -> tuple[float, float, float]:
    """Set the sums after the current change.

    Return the changes of precision by leaving and by joining, and the change of recall.
    """
    held, source, target = mine.held, move.source, move.target
    left_mates, joined_mates = count_mates(world, mine, move)
    others = held[source, SQUARES] - 2 * left_mates - 1
    leaving = -joining_change(held[source, MEMBERS] - 1, others, left_mates)
    joining = joining_change(held[target, MEMBERS], held[target, SQUARES], joined_mates)
    entity = mine.entity[move.item]
    size = mine.entity_start[entity + 1] - mine.entity_start[entity]
    recall = 2.0 * (joined_mates - left_mates) / size
    mine.after[PRECISION] = mine.sums[PRECISION] + (leaving + joining)
    mine.after[RECALL] = mine.sums[RECALL] + recall
    return leaving, joining, recall


@strict
def b_cubed_gain(
    precision_sum: float, recall_sum: float, leaving: float, joining: float, recall: float, known: int
) -> float:
    """Gain of B-cubed F1 when its sums change.

    leaving, joining
        Change of the precision sum in the source and in the target.
    recall
        Change of the recall sum.

    With P and R the sums before, a and b their changes, the harmonic mean rises by
    2 (a R^2 + b P^2 + a b (P + R)) / ((P + R) (P + a + R + b)): no difference of two nearly equal means.
    """
    precision = leaving + joining
    p_square, r_square = precision_sum * precision_sum, recall_sum * recall_sum
    both = precision_sum + recall_sum
    rise = precision * r_square + recall * p_square + precision * recall * both
    terms = (abs(leaving) + abs(joining)) * r_square + abs(recall) * p_square + abs(precision * recall) * both
    if abs(rise) <= TIE * terms:
        return 0.0
    return 2.0 * rise / (both * (both + precision + recall) * known)


def judge_b_cubed(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of B-cubed F1."""
    if move.world != 0 or mine.entity[move.item] < 0:
        return 0.0
    leaving, joining, recall = set_b_cubed_after(world, mine, move)
    return b_cubed_gain(mine.sums[PRECISION], mine.sums[RECALL], leaving, joining, recall, mine.truth[KNOWN])


def b_cubed_applied(world: Any, mine: Any, move: Any) -> None:
    """Update precision and recall after a change."""
    if mine.entity[move.item] < 0:
        return
    if not was_judged(mine, move):
        set_b_cubed_after(world, mine, move)
    keep_change(mine)


def begin_b_cubed(world: Any, mine: Any) -> None:
    """Sum precision and recall over the present world from scratch.

    They are rounded at every change: after k changes their relative error is about sqrt(k) * 1e-16, so walks
    compute them again now and then.
    """
    mine.sums[RECALL], mine.sums[PRECISION] = begin_clusters(world, mine), 0.0
    for position in range(world.counters[LIVE]):
        held = mine.held[world.live[position]]
        if held[MEMBERS] > 0:
            mine.sums[PRECISION] += held[SQUARES] / np.float64(held[MEMBERS])


def b_cubed_value(mine: Any) -> float:
    """Return B-cubed F1; NaN if nothing is known."""
    if mine.truth[KNOWN] == 0:
        return math.nan
    precision, recall = mine.sums[PRECISION], mine.sums[RECALL]
    return 2.0 * precision * recall / ((precision + recall) * mine.truth[KNOWN])
