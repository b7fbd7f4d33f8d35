"""The F1 of labelled spans, updated with every change of a label.

``mine`` of this program:

begins, ends : bool[labels + 1, labels + 1]
    Whether a span begins, or ends, between two adjacent labels; the last label stands for the outside of a
    chain.
type : int32[labels]
    The span type of each label.
low, high : int64[variables]
    The first variable of each variable's chain, and the one after its last.
true_first, true_type : int32[variables]
    For a variable at which a true span ends: the span's first variable and its type; else -1.
count : int64[3]
    The number of true spans, of predicted spans, and of correctly predicted spans.
smoothing : float64[1]
    The number of additional spans that count as correct when states are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared

TRUE, PREDICTED, RIGHT = range(3)


@shared
def label_at(world: Any, mine: Any, at: Any, low: Any, high: Any, item: Any, label: Any) -> Any:
    """Return the label of a variable in the chain from ``low`` to ``high``; ``item`` has ``label``."""
    if at < low or at >= high:
        return np.int64(len(mine.type))
    return np.int64(label) if at == item else np.int64(world.value[at])


@shared
def count_ends(
    world: Any, mine: Any, item: Any, low: Any, high: Any, label: Any, first: Any, last: Any
) -> Any:
    """Count the spans that end before a variable from ``first`` on, and the correct ones among them.

    Counting stops at the first span that begins after ``last``; variable ``item`` has ``label`` instead of
    its own.
    """
    begun, predicted, right = first - 1, np.int64(0), np.int64(0)
    while begun > low:
        before = label_at(world, mine, begun - 1, low, high, item, label)
        if mine.begins[before, label_at(world, mine, begun, low, high, item, label)]:
            break
        begun -= 1
    at = first
    while at <= high:
        before = label_at(world, mine, at - 1, low, high, item, label)
        after = label_at(world, mine, at, low, high, item, label)
        if at > low and mine.ends[before, after]:
            predicted += 1
            right += mine.true_first[at - 1] == begun and mine.true_type[at - 1] == mine.type[before]
        if mine.begins[before, after]:
            if at > last:
                break
            begun = at
        at += 1
    return predicted, right


@shared
def spans_then(world: Any, mine: Any, move: Any) -> Any:
    """Return the change of the number of spans, and of correct spans, by the current move."""
    item = move.item
    low, high = mine.low[item], mine.high[item]
    then = count_ends(world, mine, item, low, high, move.target, item, item + 1)
    now = count_ends(world, mine, item, low, high, move.source, item, item + 1)
    return then[0] - now[0], then[1] - now[1]


@shared
def span_f1(mine: Any, predicted: Any, right: Any, more: float) -> float:
    """Return the F1 with additional predicted and correct spans, and ``more`` correct ones for smoothing."""
    total = mine.count[TRUE] + mine.count[PREDICTED] + predicted + 2.0 * more
    return 2.0 * (mine.count[RIGHT] + right + more) / total if total > 0.0 else 0.0


def judge_spans(world: Any, mine: Any, move: Any) -> float:
    """Return the gain in span F1."""
    predicted, right = spans_then(world, mine, move)
    if predicted == 0 and right == 0:
        return 0.0
    more = mine.smoothing[0]
    return span_f1(mine, predicted, right, more) - span_f1(mine, 0, 0, more)


def spans_applied(world: Any, mine: Any, move: Any) -> None:
    """Update the counts after a move."""
    predicted, right = spans_then(world, mine, move)
    mine.count[PREDICTED] += predicted
    mine.count[RIGHT] += right


def begin_spans(world: Any, mine: Any) -> None:
    """Count the spans of the current state."""
    mine.count[PREDICTED], mine.count[RIGHT] = 0, 0
    at = np.int64(0)
    while at < len(world.value):
        low, high = mine.low[at], mine.high[at]
        counted = count_ends(world, mine, at, low, high, np.int64(world.value[at]), low, high)
        mine.count[PREDICTED] += counted[0]
        mine.count[RIGHT] += counted[1]
        at = high


def spans_value(mine: Any) -> float:
    """Return the F1 of the spans; 0 if there are none."""
    return span_f1(mine, 0, 0, 0.0)
