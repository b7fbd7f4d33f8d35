"""Statistics of pairs of an item and its target, and of adjacent items.

``mine`` of these programs:

start, partner : int64[items + 1], int32[pairs]
    The targets with which each item has statistics, ascending.
value, weights, offset : float64[pairs, statistics], float64[weights], int64[1]
    Their statistics, all weights of the model, and the index of the template's first weight.
score : float64[pairs]
    The inner product of both, filled by `begin_pairs`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.accuracy import is_right
from factorwise.kernels.walks.library import put


def begin_pairs(mine: Any) -> None:
    """Compute the score of every pair."""
    for k in range(len(mine.score)):
        mine.score[k] = 0.0
        for s in range(mine.value.shape[1]):
            mine.score[k] += mine.value[k, s] * mine.weights[mine.offset[0] + s]


@shared
def find_pair(mine: Any, item: Any, target: Any) -> Any:
    """Return the row of a pair; -1 if it has no statistics."""
    low, high = np.int64(mine.start[item]), np.int64(mine.start[item + 1])
    end = high
    while low < high:
        middle = (low + high) // 2
        if mine.partner[middle] < target:
            low = middle + 1
        else:
            high = middle
    if low < end and mine.partner[low] == target:
        return low
    return np.int64(-1)


@shared
def pair_score(mine: Any, item: Any, target: Any) -> float:
    """Return the score of an item at a target."""
    row = find_pair(mine, item, target)
    return mine.score[row] if row >= 0 else 0.0


@shared
def put_pair(mine: Any, move: Any, gradient: Any, item: Any, target: Any, sign: float) -> None:
    """Add the statistics of an item at a target to the gradient."""
    row = find_pair(mine, item, target)
    if row >= 0:
        for s in range(mine.value.shape[1]):
            if mine.value[row, s] != 0.0:
                put(gradient, move, mine.offset[0] + s, sign * mine.value[row, s])


def gain_of_target(mine: Any, move: Any) -> float:
    """Return the gain of moving one item to another target."""
    return pair_score(mine, move.item, move.target) - pair_score(mine, move.item, move.source)


def gains_of_targets(mine: Any, move: Any, choice: Any) -> None:
    """Add the score of the item at each offered target."""
    for k in range(move.choices):
        choice.out[k] += pair_score(mine, move.item, choice.targets[k])


def gradient_of_target(mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of the item at its new target, minus those at its old one."""
    put_pair(mine, move, gradient, move.item, move.target, 1.0)
    put_pair(mine, move, gradient, move.item, move.source, -1.0)


def gain_of_exchange(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of exchanging two targets."""
    other = world.holder[move.target]
    after = pair_score(mine, move.item, move.target) + pair_score(mine, other, move.source)
    return after - pair_score(mine, move.item, move.source) - pair_score(mine, other, move.target)


def gradient_of_exchange(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of both items after their exchange, minus those before it."""
    other = world.holder[move.target]
    put_pair(mine, move, gradient, move.item, move.target, 1.0)
    put_pair(mine, move, gradient, move.item, move.source, -1.0)
    put_pair(mine, move, gradient, other, move.source, 1.0)
    put_pair(mine, move, gradient, other, move.target, -1.0)


@shared
def holder_after(world: Any, move: Any, position: Any) -> Any:
    """Return the item at a position after the current exchange."""
    if position == move.source:
        return np.int64(world.holder[move.target])
    if position == move.target:
        return np.int64(move.item)
    return np.int64(world.holder[position])


@shared
def touched_position(world: Any, move: Any, k: Any) -> Any:
    """Return the k-th of up to four positions where it or the next item changes; -1 if there is none."""
    low, high = min(move.source, move.target), max(move.source, move.target)
    position = np.int64(low - 1 + k) if k < 2 else np.int64(high - 3 + k)
    if position < 0 or position + 1 >= len(world.holder) or (k == 2 and position == low):
        return np.int64(-1)
    return position


def gain_of_neighbors(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of an exchange, from pairs of adjacent items."""
    gain = 0.0
    for k in range(4):
        at = touched_position(world, move, k)
        if at >= 0:
            gain += pair_score(mine, holder_after(world, move, at), holder_after(world, move, at + 1))
            gain -= pair_score(mine, world.holder[at], world.holder[at + 1])
    return gain


def gradient_of_neighbors(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of adjacent items after an exchange, minus those before it."""
    for k in range(4):
        at = touched_position(world, move, k)
        if at >= 0:
            after = holder_after(world, move, at), holder_after(world, move, at + 1)
            put_pair(mine, move, gradient, after[0], after[1], 1.0)
            put_pair(mine, move, gradient, world.holder[at], world.holder[at + 1], -1.0)


# preferences: ``mine`` is that of `factorwise.kernels.walks.accuracy`


def judge_exchange(world: Any, mine: Any, move: Any) -> float:
    """Return the gain in the share of right targets by an exchange."""
    other = world.holder[move.target]
    gain = is_right(mine, move.item, move.target) - is_right(mine, move.item, move.source)
    gain += is_right(mine, other, move.source) - is_right(mine, other, move.target)
    return gain / max(mine.known[0], 1)
