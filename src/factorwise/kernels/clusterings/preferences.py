"""How much better a clustering becomes by one change.

Metrics against the truth, and pairs known to belong together.

With n(c, e) known items of true entity e in cluster c, s(c) known items in c and T(e) known items of e:

- right pairs are the sum of n(n - 1) / 2, predicted pairs that of s(s - 1) / 2, true pairs that of
  T(T - 1) / 2. Pairwise F1 is 2 right / (predicted + true), and 0 where there are no true pairs. The Rand
  index is (all + 2 right - predicted - true) / all, over all pairs of known items.
- B-cubed precision is the mean over known items of n / s, recall that of n / T, for the cluster and entity
  of the item; B-cubed F1 is their harmonic mean. Summed over items they are the sums of n^2 / s and n^2 / T.

A gain is computed from the members of the two clusters at hand and two running sums; nothing is kept per
cluster. What changes when an item goes from one cluster to another is counted over their *other* members,
which are the same before and after: so a change that was made without being judged, or taken back, is entered
as well.

**Ties are exactly 0.0.** The pair counts are whole numbers below 2^53, which floats hold exactly, and the
gain of pairwise F1 has the sign of a difference of two products of them. Equal products round alike, so a tie
is 0.0, and rounding keeps order, so no gain has the wrong sign; only where a product passes 2^53 may a gain
below its rounding count as a tie. The change of a B-cubed sum is a sum of quotients of whole numbers: where
the parts of a gain cancel to within TIE of their size it is a tie.

``mine`` of the metrics:

entity : int32[n]
    True entity of each item, numbered from 0; -1 where it is unknown: the metric leaves such items out.
entity_size : int64[entities]
    Known items of each entity.
truth : int64[2]
    Known items, and true pairs.
sums, after : float64[2]
    Right and predicted pairs or, for B-cubed, precision and recall summed over the known items; and what they
    will be after the change last judged.
change : int64[3]
    That change: item, source, target; -1 for none.
counts, base : int64[entities], int64[1]
    Scratch: members of each entity in the cluster last counted, above ``base``. What earlier clusters left
    behind lies below it, so nothing has to be wiped.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE
from factorwise.kernels.compile.compiler import shared, strict

KNOWN, TRUE_PAIRS = range(2)
RIGHT, PREDICTED = range(2)
PRECISION, RECALL = range(2)

TIE = 1e-12


@shared
def keep_judged(mine: Any, move: Any) -> None:
    """Remember which change the sums after it are those of."""
    mine.change[0], mine.change[1], mine.change[2] = move.item, move.source, move.target


@shared
def was_judged(mine: Any, move: Any) -> bool:
    """Whether the change at hand is the one that was judged last."""
    return mine.change[0] == move.item and mine.change[1] == move.source and mine.change[2] == move.target


@shared
def keep_sums(mine: Any) -> None:
    """Let the sums be those after the change."""
    mine.sums[0], mine.sums[1] = mine.after[0], mine.after[1]
    mine.change[0] = -1


@shared
def begin_sums(mine: Any) -> None:
    """Start from sums of zero and no change."""
    mine.sums[0], mine.sums[1] = 0.0, 0.0
    mine.change[0] = -1


# Pairs of items ---------------------------------------------------------------------------------------------


@shared
def count_one_entity(world: Any, mine: Any, cluster: int, item: int) -> tuple[int, int]:
    """Known members of a cluster, and those of the entity of ``item``; itself left out."""
    known, same = 0, 0
    entity = mine.entity[item]
    lo = world.start[cluster]
    for slot in range(lo, lo + world.size[cluster]):
        other = mine.entity[world.members[slot]]
        known += other >= 0
        same += other == entity
    itself = np.int64(world.label[item] == cluster)
    return known - itself, same - itself


@shared
def set_pairs_after(world: Any, mine: Any, move: Any) -> None:
    """Set the right and predicted pairs after the change at hand, from those before it."""
    left, left_same = count_one_entity(world, mine, move.source, move.item)
    joined, joined_same = count_one_entity(world, mine, move.target, move.item)
    mine.after[RIGHT] = mine.sums[RIGHT] + (joined_same - left_same)
    mine.after[PREDICTED] = mine.sums[PREDICTED] + (joined - left)


@strict
def pairwise_gain(
    right: float, predicted: float, more_right: float, more_predicted: float, true: int
) -> float:
    """Gain of pairwise F1 when the right and predicted pairs change by so many."""
    if true == 0:
        return 0.0
    whole = predicted + true
    rise = more_right * whole - right * more_predicted
    return 2.0 * rise / (whole * (whole + more_predicted))


def judge_pairwise(world: Any, mine: Any, move: Any) -> float:
    """Gain of pairwise F1."""
    if move.world != 0 or mine.entity[move.item] < 0:
        return 0.0
    set_pairs_after(world, mine, move)
    keep_judged(mine, move)
    right, predicted = mine.sums[RIGHT], mine.sums[PREDICTED]
    more_right, more_predicted = mine.after[RIGHT] - right, mine.after[PREDICTED] - predicted
    return pairwise_gain(right, predicted, more_right, more_predicted, mine.truth[TRUE_PAIRS])


def judge_rand(world: Any, mine: Any, move: Any) -> float:
    """Gain of the Rand index."""
    known = mine.truth[KNOWN]
    if move.world != 0 or mine.entity[move.item] < 0 or known < 2:
        return 0.0
    set_pairs_after(world, mine, move)
    keep_judged(mine, move)
    more_right, more_predicted = (
        mine.after[RIGHT] - mine.sums[RIGHT],
        mine.after[PREDICTED] - mine.sums[PREDICTED],
    )
    return 2.0 * (2.0 * more_right - more_predicted) / (np.float64(known) * (known - 1.0))


def pairs_applied(world: Any, mine: Any, move: Any) -> None:
    """Keep the pairs in step with a change that was made."""
    if mine.entity[move.item] < 0:
        return
    if not was_judged(mine, move):
        set_pairs_after(world, mine, move)
    keep_sums(mine)


def begin_pairs(world: Any, mine: Any) -> None:
    """Count the pairs of the present world from scratch."""
    begin_sums(mine)
    for position in range(world.counters[LIVE]):
        known, squares = count_entities(world, mine, np.int64(world.live[position]))
        mine.sums[RIGHT] += (squares - known) // 2
        mine.sums[PREDICTED] += known * (known - 1) // 2


def pairwise_value(mine: Any) -> float:
    """Pairwise F1; nan where nothing is known."""
    whole = mine.sums[PREDICTED] + mine.truth[TRUE_PAIRS]
    if whole > 0.0:
        return 2.0 * mine.sums[RIGHT] / whole
    return 0.0 if mine.truth[KNOWN] > 0 else math.nan


def rand_value(mine: Any) -> float:
    """Rand index; nan where fewer than two entities are known."""
    pairs = mine.truth[KNOWN] * (mine.truth[KNOWN] - 1) // 2
    if pairs == 0:
        return math.nan
    return (pairs + 2.0 * mine.sums[RIGHT] - mine.sums[PREDICTED] - mine.truth[TRUE_PAIRS]) / pairs


# B-cubed ----------------------------------------------------------------------------------------------------


@shared
def count_entities(world: Any, mine: Any, cluster: int) -> tuple[int, int]:
    """Count each entity among the members of a cluster.

    Return the known ones and the sum of the squared counts.

    The first item's entity, often that of most others, is counted in a register: twice as fast as waiting at
    every item for the count that the one before has stored.
    """
    base = mine.base[0] + mine.truth[KNOWN]  # above all that is there
    mine.base[0] = base
    known, squares, most = np.int64(0), np.int64(0), np.int64(0)
    lo, hi = world.start[cluster], world.start[cluster] + world.size[cluster]
    if lo == hi:
        return known, squares
    first = mine.entity[world.members[lo]]
    for slot in range(lo, hi):
        entity = mine.entity[world.members[slot]]
        if entity == first:
            most += 1
        elif entity >= 0:
            before = max(mine.counts[entity], base)
            mine.counts[entity] = before + 1
            squares += 2 * (before - base) + 1
            known += 1
    if first >= 0:
        mine.counts[first] = base + most
        squares += most * most
        known += most
    return known, squares


@shared
def count_others(world: Any, mine: Any, cluster: int, item: int) -> tuple[int, int, int]:
    """Count as `count_entities`, and the members of the entity of ``item``; itself left out of all three."""
    known, squares = count_entities(world, mine, cluster)
    mates = max(mine.counts[mine.entity[item]], mine.base[0]) - mine.base[0]
    if world.label[item] == cluster:
        return known - 1, squares - 2 * mates + 1, mates - 1
    return known, squares, mates


@strict
def joining_change(known: int, squares: int, mates: int) -> float:
    """Change of squares / known when one more joins them that has so many mates among them; 0 / 0 is 0."""
    if known == 0:
        return 1.0
    size = np.float64(known)
    return (size * (2 * mates + 1) - squares) / (size * (size + 1.0))


@shared
def set_b_cubed_after(world: Any, mine: Any, move: Any) -> tuple[float, float, float]:
    """Set the sums after the change at hand.

    Return the change of precision by leaving and joining, and of recall.
    """
    left, left_squares, left_mates = count_others(world, mine, move.source, move.item)
    joined, joined_squares, joined_mates = count_others(world, mine, move.target, move.item)
    leaving = -joining_change(left, left_squares, left_mates)
    joining = joining_change(joined, joined_squares, joined_mates)
    recall = 2.0 * (joined_mates - left_mates) / mine.entity_size[mine.entity[move.item]]
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
    """Gain of B-cubed F1."""
    if move.world != 0 or mine.entity[move.item] < 0:
        return 0.0
    leaving, joining, recall = set_b_cubed_after(world, mine, move)
    keep_judged(mine, move)
    return b_cubed_gain(mine.sums[PRECISION], mine.sums[RECALL], leaving, joining, recall, mine.truth[KNOWN])


def b_cubed_applied(world: Any, mine: Any, move: Any) -> None:
    """Keep precision and recall in step with a change that was made."""
    if mine.entity[move.item] < 0:
        return
    if not was_judged(mine, move):
        set_b_cubed_after(world, mine, move)
    keep_sums(mine)


def begin_b_cubed(world: Any, mine: Any) -> None:
    """Sum precision and recall over the present world from scratch.

    They are rounded at every change: after k of them they are off by about sqrt(k) * 1e-16 of their size, so
    walks begin anew now and then.
    """
    begin_sums(mine)
    for position in range(world.counters[LIVE]):
        cluster = np.int64(world.live[position])
        known, squares = count_entities(world, mine, cluster)
        if known > 0:
            mine.sums[PRECISION] += squares / np.float64(known)
            for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
                entity = mine.entity[world.members[slot]]
                if entity >= 0:
                    mine.sums[RECALL] += (mine.counts[entity] - mine.base[0]) / np.float64(
                        mine.entity_size[entity]
                    )


def b_cubed_value(mine: Any) -> float:
    """B-cubed F1; nan where nothing is known."""
    if mine.truth[KNOWN] == 0:
        return math.nan
    precision, recall = mine.sums[PRECISION], mine.sums[RECALL]
    return 2.0 * precision * recall / ((precision + recall) * mine.truth[KNOWN])


# Pairs that are known to belong together, or apart ----------------------------------------------------------


@shared
def more_kept(world: Any, mine: Any, item: int, source: int, target: int) -> float:
    """By how many more constraints hold when an item goes from one cluster to another.

    ``mine`` has ``start`` int64[n + 1]; the items that i has a constraint with are at ``start[i]`` to
    ``start[i + 1]`` of ``neighbor`` int64[.], and ``worth`` float64[.] is 1 for those that must be with it
    and -1 for those that must not.
    """
    more = 0.0
    for at in range(mine.start[item], mine.start[item + 1]):
        cluster = world.label[mine.neighbor[at]]
        if cluster == target:
            more += mine.worth[at]
        elif cluster == source:
            more -= mine.worth[at]
    return more


def judge_constraints(world: Any, mine: Any, move: Any) -> float:
    """Gain of the share of constraints kept.

    ``mine`` has ``total`` int64[1] of them, and ``kept`` float64[1].
    """
    if move.world != 0 or mine.total[0] == 0:
        return 0.0
    return more_kept(world, mine, move.item, move.source, move.target) / mine.total[0]


def constraints_applied(world: Any, mine: Any, move: Any) -> None:
    """Keep the number of constraints in step with a change that was made."""
    mine.kept[0] += more_kept(world, mine, move.item, move.source, move.target)


def begin_constraints(world: Any, mine: Any) -> None:
    """Count the constraints that hold in the present world.

    A constraint stands with each of its two items.
    """
    mine.kept[0] = 0.0
    for item in range(len(world.label)):
        for at in range(mine.start[item], mine.start[item + 1]):
            together = world.label[item] == world.label[mine.neighbor[at]]
            mine.kept[0] += 0.5 * (together == (mine.worth[at] > 0.0))


def constraints_value(mine: Any) -> float:
    """Share of constraints kept; nan where there are none."""
    return mine.kept[0] / mine.total[0] if mine.total[0] > 0 else math.nan
