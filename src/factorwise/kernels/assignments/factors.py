"""Factors over fixed tuples of variables, and counts of labels in groups: scores under fixed weights.

One program has all such factors of a model, because each call costs time. ``mine`` of this program:

at : PLACE[variables + 1]
    Where the scores, pairs, larger factors and groups of each variable begin.
score : float64[labels of all variables]
    Sum of the factors of one variable, at each of its labels.
pair : PAIR[.]
    The factors of two variables, listed for each of the two.
large, other : LARGE[. + 1], OTHER[.]
    Factors of more variables, listed for each of them, and the other variables of each.
tables : float64[.]
    Their scores. A few tables of factors of two variables are stored twice, once for each variable, with the
    labels of that variable contiguous.
group, count : GROUP[groups], int64[groups]
    What each group counts, and how many of its variables have the label now.
member : int64[.]
    The groups of each variable.
counted : float64[.]
    Scores of counts.

`pairs_gain` and `pairs_gains` are for models that have only factors of one and two variables and no hard
constraints: they read only ``label`` and ``pair`` of ``at``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared

PLACE = np.dtype([("label", np.int32), ("pair", np.int32)])
WIDE_PLACE = np.dtype([("label", np.int32), ("pair", np.int32), ("large", np.int32), ("member", np.int32)])
PAIR = np.dtype([("table", np.int32), ("stride", np.int32), ("other", np.int32), ("other_stride", np.int32)])
LARGE = np.dtype([("table", np.int64), ("stride", np.int64), ("other", np.int64)])
OTHER = np.dtype([("variable", np.int64), ("stride", np.int64)])
GROUP = np.dtype([("label", np.int64), ("table", np.int64)])


def wide(kind: np.dtype[Any], largest: int) -> np.dtype[Any]:
    """Return a record type whose fields can hold ``largest``; small records save memory bandwidth."""
    if largest < 1 << 31:
        return kind
    return np.dtype([(name, np.int64) for name in kind.names or ()])


def pairs_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the score of the new label minus that of the old one."""
    item, source, target = move.item, move.source, move.target
    first = mine.at[item].label
    total = mine.score[first + target] - mine.score[first + source]
    for at in range(mine.at[item].pair, mine.at[item + 1].pair):
        pair = mine.pair[at]
        place = pair.table + np.int64(world.value[pair.other]) * pair.other_stride
        total += mine.tables[place + target * pair.stride] - mine.tables[place + source * pair.stride]
    return total


def pairs_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Score every offered label."""
    if offers_all(world, move, choice):
        add_all_labels(world, mine, move.item, move.choices, choice.out)
    else:
        for k in range(move.choices):
            choice.out[k] += score_pairs(world, mine, move.item, choice.targets[k])


@shared
def offers_all(world: Any, move: Any, choice: Any) -> bool:
    """Return whether all labels of the variable are offered, in order."""
    return move.choices == world.cardinality[move.item] and choice.targets[0] == 0


@shared
def add_all_labels(world: Any, mine: Any, item: int, labels: int, out: Any) -> None:
    """Add the scores of the factors of one and two variables at each label."""
    first = mine.at[item].label
    for label in range(labels):
        out[label] += mine.score[first + label]
    for at in range(mine.at[item].pair, mine.at[item + 1].pair):
        pair = mine.pair[at]
        place = pair.table + np.int64(world.value[pair.other]) * pair.other_stride
        add_table(mine.tables, place, pair.stride, labels, out)


@shared
def add_table(tables: Any, place: int, stride: int, labels: int, out: Any) -> None:
    """Add the score of a factor at each label."""
    if stride == 1:
        for label in range(labels):
            out[label] += tables[place + label]
    else:
        for label in range(labels):
            out[label] += tables[place + label * stride]


@shared
def score_pairs(world: Any, mine: Any, item: int, label: int) -> float:
    """Return the score of the factors of one and two variables at one label."""
    total = mine.score[mine.at[item].label + label]
    for at in range(mine.at[item].pair, mine.at[item + 1].pair):
        pair = mine.pair[at]
        place = pair.table + np.int64(world.value[pair.other]) * pair.other_stride
        total += mine.tables[place + label * pair.stride]
    return total


def fetch_pairs(world: Any, mine: Any, move: Any) -> float:
    """Read the data that the factors of one and two variables need to score the labels."""
    return score_pairs(world, mine, move.item, 0)


@shared
def place_of(world: Any, factors: Any, others: Any, at: int) -> int:
    """Return the table index of a larger factor at its variable's first label, given the others."""
    place = factors[at].table
    for k in range(factors[at].other, factors[at + 1].other):
        other = others[k]
        place += np.int64(world.value[other.variable]) * other.stride
    return place


def factors_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the new label's score minus the old one's; also count the change in broken constraints."""
    item, source, target = move.item, move.source, move.target
    broken, total = 0, 0.0
    first = mine.at[item].label
    total, broken = add_change(mine.score, first + source, first + target, total, broken)
    for at in range(mine.at[item].pair, mine.at[item + 1].pair):
        pair = mine.pair[at]
        place = pair.table + np.int64(world.value[pair.other]) * pair.other_stride
        before, after = place + source * pair.stride, place + target * pair.stride
        total, broken = add_change(mine.tables, before, after, total, broken)
    for at in range(mine.at[item].large, mine.at[item + 1].large):
        place, stride = place_of(world, mine.large, mine.other, at), mine.large[at].stride
        before, after = place + source * stride, place + target * stride
        total, broken = add_change(mine.tables, before, after, total, broken)
    for at in range(mine.at[item].member, mine.at[item + 1].member):
        step = counted_step(mine, mine.member[at], source, target)
        if step != 0:
            place = mine.group[mine.member[at]].table + mine.count[mine.member[at]]
            total, broken = add_change(mine.counted, place, place + step, total, broken)
    move.broken += broken
    return total


@shared
def add_change(table: Any, before: int, after: int, total: float, broken: int) -> tuple[float, int]:
    """Add the change of a factor's score; if an entry is forbidden, count a broken constraint instead."""
    if table[after] == -math.inf:
        broken += 1
    else:
        total += table[after]
    if table[before] == -math.inf:
        broken -= 1
    else:
        total -= table[before]
    return total, broken


@shared
def counted_step(mine: Any, group: int, source: int, target: int) -> Any:
    """Return the change of a group's count when one of its variables changes its label."""
    label = mine.group[group].label
    return np.int64(label == target) - np.int64(label == source)


def factors_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Score every offered label."""
    item = move.item
    whole = offers_all(world, move, choice)
    if whole:
        add_all_labels(world, mine, item, move.choices, choice.out)
    else:
        for k in range(move.choices):
            choice.out[k] += score_pairs(world, mine, item, choice.targets[k])
    for at in range(mine.at[item].large, mine.at[item + 1].large):
        place, stride = place_of(world, mine.large, mine.other, at), mine.large[at].stride
        for k in range(move.choices):
            choice.out[k] += mine.tables[place + choice.targets[k] * stride]
    for at in range(mine.at[item].member, mine.at[item + 1].member):
        group = mine.group[mine.member[at]]
        place = group.table + mine.count[mine.member[at]] - np.int64(group.label == move.source)
        for k in range(move.choices):
            choice.out[k] += mine.counted[place + np.int64(group.label == choice.targets[k])]


def begin_counts(world: Any, mine: Any) -> None:
    """Count the labels of all groups."""
    for group in range(len(mine.count)):
        mine.count[group] = 0
    for variable in range(len(world.value)):
        for at in range(mine.at[variable].member, mine.at[variable + 1].member):
            if mine.group[mine.member[at]].label == world.value[variable]:
                mine.count[mine.member[at]] += 1


def counts_applied(mine: Any, move: Any) -> None:
    """Update the group counts after a variable has changed its label."""
    source, target = move.source, move.target
    for at in range(mine.at[move.item].member, mine.at[move.item + 1].member):
        mine.count[mine.member[at]] += counted_step(mine, mine.member[at], source, target)
