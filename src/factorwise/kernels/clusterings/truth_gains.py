"""Change of a clustering metric against the truth under one transfer: what SampleRank learns from.

With n(c, e) known items of true entity e in cluster c, s(c) known items in c and T(e) known items of e:

- right pairs are the sum of n(n - 1) / 2, predicted pairs that of s(s - 1) / 2, true pairs that of
  T(T - 1) / 2. Pairwise F1 is 2 right / (predicted + true), and 0 where there are no true pairs. The Rand
  index is (all + 2 right - predicted - true) / all, over all pairs of known items.
- B-cubed precision is the mean over known items of n / s, recall that of n / T, for the cluster and entity
  of the item; B-cubed F1 is their harmonic mean. Summed over items they are the sums of n^2 / s and n^2 / T.

A gain is computed from the members of the two clusters at hand and two running sums, in
O(|source| + |target|); nothing is kept per cluster.

**Ties are exactly 0.0.** The pair counts are whole numbers below 2^53, which floats hold exactly, and the
gain of pairwise F1 has the sign of a difference of two products of them. Equal products round alike, so a tie
is 0.0, and rounding keeps order, so no gain has the wrong sign; only where a product passes 2^53 may a gain
below its rounding count as a tie. The change of a B-cubed sum is a sum of quotients of whole numbers: where
the parts of a gain cancel to within TIE of their size it is a tie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.partitions import LIVE, NEW, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel

PAIRWISE_F1, B_CUBED_F1, RAND = range(3)
KIND, KNOWN, TRUE_PAIRS, BASE = range(4)
RIGHT, PREDICTED = range(2)
PRECISION, RECALL = range(2)

TIE = 1e-12


class TruthArrays(NamedTuple):
    """What is known of the truth, and the running sums of one metric for one walk.

    entity : int32[n]
        True entity of each item, numbered from 0; -1 where it is unknown: the metric leaves such items out.
    size : int64[entities]
        Known items of each entity.
    counts : int64[entities]
        Scratch: members of each entity in the cluster last counted, above ``settings[BASE]``. What earlier
        clusters left behind lies below it, so nothing has to be wiped.
    sums : float64[2]
        Right and predicted pairs or, for B-cubed, precision and recall summed over the known items.
    after : float64[2]
        The sums as they would be after the transfer last judged.
    settings : int64[4]
        Which metric, known items, true pairs, zero of the counts.
    """

    entity: NDArray[np.int32]
    size: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    after: NDArray[np.float64]
    settings: NDArray[np.int64]


def truth_arrays(entity: NDArray[np.int32], kind: int) -> TruthArrays:
    """Set up the arrays from each item's entity; `begin_truth` fills the sums."""
    size = np.bincount(entity[entity >= 0]).astype(np.int64)
    settings = np.array([kind, size.sum(), (size * (size - 1) // 2).sum(), 0], np.int64)
    return TruthArrays(entity, size, np.zeros(len(size), np.int64), np.zeros(2), np.zeros(2), settings)


def truth_value(t: TruthArrays) -> float:
    """Metric of the world that the sums describe; nan where too few items are known to define it."""
    kind, known, true = (int(setting) for setting in t.settings[:BASE])
    first, second = (float(total) for total in t.sums)
    if kind == PAIRWISE_F1:
        whole = second + true
        return 2.0 * first / whole if whole > 0.0 else (0.0 if known > 0 else np.nan)
    if kind == RAND:
        pairs = known * (known - 1) // 2
        return (pairs + 2.0 * first - second - true) / pairs if pairs > 0 else np.nan
    return 2.0 * first * second / ((first + second) * known) if known > 0 else np.nan


@hot
def slots_of(p: PartitionArrays, cluster: int) -> tuple[int, int]:
    """First slot of a cluster's members and the one behind the last; none for NEW."""
    lo, hi = 0, 0
    if cluster != NEW:
        lo = p.clusters[cluster].start
        hi = lo + p.clusters[cluster].size
    return lo, hi


@hot
def count_entities(t: TruthArrays, items: NDArray[np.int32], lo: int, hi: int) -> tuple[int, int]:
    """Count each entity in ``items[lo:hi]``; return the known items and the sum of the squared counts.

    The first item's entity, often that of most others, is counted in a register: twice as fast as waiting at
    every item for the count that the one before has stored.
    """
    base = t.settings[BASE] + t.settings[KNOWN]  # above all that is there
    t.settings[BASE] = base
    if lo == hi:
        return 0, 0
    known, squares, most = 0, 0, 0
    first = t.entity[items[lo]]
    for index in range(lo, hi):
        entity = t.entity[items[index]]
        if entity == first:
            most += 1
        elif entity >= 0:
            before = max(t.counts[entity], base)
            t.counts[entity] = before + 1
            squares += 2 * (before - base) + 1
            known += 1
    if first >= 0:
        t.counts[first] = base + most
        squares += most * most
        known += most
    return known, squares


@hot
def count_mates(t: TruthArrays, items: NDArray[np.int32], m: int) -> tuple[int, float]:
    """Pairs of one of ``items[:m]`` and a counted item of its entity; and as shares of the entities."""
    base = t.settings[BASE]
    pairs, shares = 0, 0.0
    for index in range(m):
        entity = t.entity[items[index]]
        if entity >= 0:
            mates = max(t.counts[entity], base) - base
            pairs += mates
            shares += mates / t.size[entity]
    return pairs, shares


@hot
def count_one_entity(t: TruthArrays, p: PartitionArrays, cluster: int, entity: int) -> tuple[int, int]:
    """Known members of a cluster, and those of one entity."""
    lo, hi = slots_of(p, cluster)
    known, same = 0, 0
    for slot in range(lo, hi):
        other = t.entity[p.members[slot]]
        known += other >= 0
        same += other == entity
    return known, same


@hot
def stand_still(t: TruthArrays) -> float:
    """Gain of a transfer that moves no known item."""
    t.after[0], t.after[1] = t.sums[0], t.sums[1]
    return 0.0


@hot
def pairs_gain(t: TruthArrays, right: int, predicted: int) -> float:
    """Gain of pairwise F1 or Rand when the right and predicted pairs change by so many."""
    t.after[RIGHT] = t.sums[RIGHT] + right
    t.after[PREDICTED] = t.sums[PREDICTED] + predicted
    known, true = t.settings[KNOWN], t.settings[TRUE_PAIRS]
    if t.settings[KIND] == RAND:
        return 2 * (2 * right - predicted) / (known * (known - 1)) if known > 1 else 0.0
    if true == 0:
        return 0.0
    whole = t.sums[PREDICTED] + true
    rise = right * whole - t.sums[RIGHT] * predicted
    return 2.0 * rise / (whole * (whole + predicted))


@hot
def quotient_change(squares: int, known: int, more_squares: int, more: int) -> float:
    """Difference of (squares + more_squares) / (known + more) and squares / known, where 0 / 0 is 0."""
    if known == 0:
        return more_squares / more
    if known + more == 0:
        return -squares / known
    size = np.float64(known)
    return (size * more_squares - np.float64(more) * squares) / (size * (size + more))


@hot
def b_cubed_gain(t: TruthArrays, leaving: float, joining: float, recall: float, parts: float) -> float:
    """Gain of B-cubed F1 when its sums change.

    leaving, joining
        Change of the precision sum in the source and in the target.
    recall, parts
        Change of the recall sum, and the sum of the absolute values it was added up from.

    With P and R the sums before, a and b their changes, the harmonic mean rises by
    2 (a R^2 + b P^2 + a b (P + R)) / ((P + R) (P + a + R + b)): no difference of two nearly equal means.
    """
    precision_sum, recall_sum = t.sums[PRECISION], t.sums[RECALL]
    precision = leaving + joining
    t.after[PRECISION], t.after[RECALL] = precision_sum + precision, recall_sum + recall
    p_square, r_square, both = precision_sum**2, recall_sum**2, precision_sum + recall_sum
    rise = precision * r_square + recall * p_square + precision * recall * both
    terms = (abs(leaving) + abs(joining)) * r_square + parts * p_square + abs(precision * recall) * both
    if abs(rise) <= TIE * terms:
        return 0.0
    return 2.0 * rise / (both * (both + precision + recall) * t.settings[KNOWN])


@hot
def relocation_truth_gain(t: TruthArrays, p: PartitionArrays, item: int, source: int, target: int) -> float:
    """Like `truth_gain` for a single item."""
    entity = t.entity[item]
    if entity < 0:
        return stand_still(t)
    if t.settings[KIND] != B_CUBED_F1:
        left, left_same = count_one_entity(t, p, source, entity)
        joined, joined_same = count_one_entity(t, p, target, entity)
        return pairs_gain(t, joined_same - left_same + 1, joined - left + 1)
    lo, hi = slots_of(p, source)
    left, left_squares = count_entities(t, p.members, lo, hi)
    left_mates = t.counts[entity] - t.settings[BASE]
    lo, hi = slots_of(p, target)
    joined, joined_squares = count_entities(t, p.members, lo, hi)
    joined_mates = max(t.counts[entity], t.settings[BASE]) - t.settings[BASE]
    leaving = quotient_change(left_squares, left, 1 - 2 * left_mates, -1)
    joining = quotient_change(joined_squares, joined, 1 + 2 * joined_mates, 1)
    recall = 2.0 * (joined_mates - left_mates + 1) / t.size[entity]
    return b_cubed_gain(t, leaving, joining, recall, abs(recall))


@inner
def group_truth_gain(
    t: TruthArrays, p: PartitionArrays, items: NDArray[np.int32], m: int, source: int, target: int
) -> float:
    """Like `truth_gain` for two items or more."""
    moved, moved_squares = count_entities(t, items, 0, m)
    if moved == 0:
        return stand_still(t)
    _, moved_shares = count_mates(t, items, m)
    lo, hi = slots_of(p, source)
    left, left_squares = count_entities(t, p.members, lo, hi)
    left_mates, left_shares = count_mates(t, items, m)
    lo, hi = slots_of(p, target)
    joined, joined_squares = count_entities(t, p.members, lo, hi)
    joined_mates, joined_shares = count_mates(t, items, m)
    if t.settings[KIND] != B_CUBED_F1:
        return pairs_gain(t, joined_mates - left_mates + moved_squares, moved * (joined - left + moved))
    leaving = quotient_change(left_squares, left, moved_squares - 2 * left_mates, -moved)
    joining = quotient_change(joined_squares, joined, moved_squares + 2 * joined_mates, moved)
    recall = 2.0 * (joined_shares - left_shares + moved_shares)
    return b_cubed_gain(t, leaving, joining, recall, 2.0 * (joined_shares + left_shares + moved_shares))


@hot
def truth_gain(
    t: TruthArrays, p: PartitionArrays, items: NDArray[np.int32], m: int, source: int, target: int
) -> float:
    """Change of the metric if ``items[:m]`` of ``source`` join ``target`` or NEW.

    Sets ``t.after`` and scratch, and changes nothing else.
    """
    if m == 1:
        return relocation_truth_gain(t, p, items[0], source, target)
    return group_truth_gain(t, p, items, m, source, target)


@hot
def keep_truth_gain(t: TruthArrays) -> None:
    """Make the sums those of the world after the transfer last judged, which has been or will be applied."""
    t.sums[0], t.sums[1] = t.after[0], t.after[1]


@lean_kernel
def transfer_truth_gain(
    t: TruthArrays, p: PartitionArrays, items: NDArray[np.int32], source: int, target: int
) -> float:
    """Let Python call `truth_gain`."""
    return truth_gain(t, p, items, len(items), source, target)


@lean_kernel
def begin_truth(t: TruthArrays, p: PartitionArrays) -> None:
    """Sums of the present world from scratch.

    B-cubed's are rounded at every transfer kept: after k of them they are off by about sqrt(k) * 1e-16 of
    their size, so call this again now and then. Counts of pairs stay exact.
    """
    t.sums[0], t.sums[1] = 0.0, 0.0
    for position in range(p.counters[LIVE]):
        cluster = p.clusters[position].live
        lo, hi = slots_of(p, cluster)
        known, squares = count_entities(t, p.members, lo, hi)
        if t.settings[KIND] != B_CUBED_F1:
            t.sums[RIGHT] += (squares - known) // 2
            t.sums[PREDICTED] += known * (known - 1) // 2
        elif known > 0:
            t.sums[PRECISION] += squares / known
            for slot in range(lo, hi):
                entity = t.entity[p.members[slot]]
                if entity >= 0:
                    t.sums[RECALL] += (t.counts[entity] - t.settings[BASE]) / t.size[entity]
    t.after[0], t.after[1] = t.sums[0], t.sums[1]
