"""Statistics of factors over labels: their changes, and their scores under weights that are being learned.

During learning, nothing is summed in advance. ``mine`` of the program of weighted factors:

weights : float64[weights of the model]
at : WEIGHTED[variables + 1]
    Where the features, pairs and tabled factors of each variable begin.
feature, amount : int32[.], float64[.]
    Features of the variables: with label l, the weight at ``feature + l`` counts ``amount`` times. If all
    features count once, ``amount`` is empty, because reading it would dominate the running time.
pair : CROSSED[.]
    Factors of two variables, listed for each of them. At index p of its table, the weight at
    ``base[k] + p`` counts ``value[k]`` times, for k from ``low`` to ``high``.
base, value : int32[.], float64[.]
tabled, other : LARGE[. + 1], OTHER[.]
    Factors of any variables whose statistics are stored as rows, one for each index of their tables.
row, index, number : int64[rows + 1], int32[.], float64[.]
    At index p, weight ``index[k]`` counts ``number[k]`` times, for k from ``row[p]`` to ``row[p + 1]``.

The program of weighted counts has ``at`` MEMBERS[variables + 1], ``member``, ``group`` and ``count`` as in
`factors`, and rows, one for each count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.assignments.factors import counted_step, place_of
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.library import put

WEIGHTED = np.dtype([("feature", np.int32), ("pair", np.int32), ("tabled", np.int32)])
MEMBERS = np.dtype([("member", np.int32)])
CROSSED = np.dtype([(name, np.int32) for name in ("low", "high", "stride", "other", "other_stride")])


def weighted_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of a variable's factors with its new label minus those with its old one."""
    item, source, target = move.item, move.source, move.target
    for at in range(mine.at[item].pair, mine.at[item + 1].pair):
        pair = mine.pair[at]
        place = np.int64(world.value[pair.other]) * pair.other_stride
        before, after = place + source * pair.stride, place + target * pair.stride
        put_crossed(gradient, move, mine.base, mine.value, pair.low, pair.high, before, after)
    for at in range(mine.at[item].tabled, mine.at[item + 1].tabled):
        place, stride = place_of(world, mine.tabled, mine.other, at), mine.tabled[at].stride
        put_row(gradient, move, mine, place + target * stride, 1.0)
        put_row(gradient, move, mine, place + source * stride, -1.0)
    low, high = mine.at[item].feature, mine.at[item + 1].feature
    if len(mine.amount) == 0:
        put_binary(gradient, move, mine.feature, low, high, source, target)
    else:
        put_crossed(gradient, move, mine.feature, mine.amount, low, high, source, target)


@shared
def put_crossed(
    gradient: Any, move: Any, base: Any, value: Any, low: int, high: int, before: int, after: int
) -> None:
    """Add the weights from ``base`` on to the gradient: positive at ``after``, negative at ``before``."""
    at = move.entries
    if at + 2 * (high - low) > len(gradient.index):
        move.overflow = 1
        return
    for k in range(low, high):
        gradient.index[at], gradient.value[at] = base[k] + after, value[k]
        gradient.index[at + 1], gradient.value[at + 1] = base[k] + before, -value[k]
        at += 2
    move.entries = at


@shared
def put_binary(gradient: Any, move: Any, base: Any, low: int, high: int, before: int, after: int) -> None:
    """Add weights to the gradient like `put_crossed`, where all values are 1."""
    at = move.entries
    if at + 2 * (high - low) > len(gradient.index):
        move.overflow = 1
        return
    for k in range(low, high):
        gradient.index[at], gradient.value[at] = base[k] + after, 1.0
        gradient.index[at + 1], gradient.value[at + 1] = base[k] + before, -1.0
        at += 2
    move.entries = at


@shared
def put_row(gradient: Any, move: Any, mine: Any, row: int, sign: float) -> None:
    """Add one row of statistics to the gradient."""
    for k in range(mine.row[row], mine.row[row + 1]):
        put(gradient, move, mine.index[k], sign * mine.number[k])


@shared
def score_row(mine: Any, row: int) -> float:
    """Return the score of one row of statistics under the current weights."""
    total = 0.0
    for k in range(mine.row[row], mine.row[row + 1]):
        total += mine.weights[mine.index[k]] * mine.number[k]
    return total


def weighted_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Score every offered label under the current weights."""
    item = move.item
    for k in range(mine.at[item].feature, mine.at[item + 1].feature):
        amount = mine.amount[k] if len(mine.amount) > 0 else 1.0
        add_crossed(mine.weights, np.int64(mine.feature[k]), 1, amount, move, choice)
    for at in range(mine.at[item].pair, mine.at[item + 1].pair):
        pair = mine.pair[at]
        place = np.int64(world.value[pair.other]) * pair.other_stride
        for k in range(pair.low, pair.high):
            add_crossed(mine.weights, place + mine.base[k], pair.stride, mine.value[k], move, choice)
    for at in range(mine.at[item].tabled, mine.at[item + 1].tabled):
        place, stride = place_of(world, mine.tabled, mine.other, at), mine.tabled[at].stride
        for k in range(move.choices):
            choice.out[k] += score_row(mine, place + choice.targets[k] * stride)


@shared
def add_crossed(weights: Any, place: Any, stride: int, value: float, move: Any, choice: Any) -> None:
    """Add the score of one feature with each offered label."""
    for k in range(move.choices):
        choice.out[k] += value * weights[place + choice.targets[k] * stride]


def counted_gradient(mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of the changed counts after the move minus those before it."""
    source, target = move.source, move.target
    for at in range(mine.at[move.item].member, mine.at[move.item + 1].member):
        step = counted_step(mine, mine.member[at], source, target)
        if step != 0:
            row = mine.group[mine.member[at]].table + mine.count[mine.member[at]]
            put_row(gradient, move, mine, row + step, 1.0)
            put_row(gradient, move, mine, row, -1.0)


def counted_gains(mine: Any, move: Any, choice: Any) -> None:
    """Score every offered label by the counts that result."""
    for at in range(mine.at[move.item].member, mine.at[move.item + 1].member):
        group = mine.group[mine.member[at]]
        row = group.table + mine.count[mine.member[at]] - np.int64(group.label == move.source)
        for k in range(move.choices):
            choice.out[k] += score_row(mine, row + np.int64(group.label == choice.targets[k]))
