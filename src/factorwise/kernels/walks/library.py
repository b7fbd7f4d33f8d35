"""Functions that parts of a walk may call, the same interpreted and compiled.

In interpreted walks, ``random`` is a `factorwise.rng.Stream` (or anything with ``uniform`` and ``below``); in
compiled ones it is the state of a stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from factorwise.kernels.chains.rows import GROUP, largest, load_row, store_row, sum_of
from factorwise.kernels.chains.rows import exponential as exponentials
from factorwise.kernels.compile.compiler import shared, two_forms
from factorwise.kernels.compile.random import random_below, random_uniform
from factorwise.kernels.walks.layouts import Gradient

Scores = TypeVar("Scores", float, NDArray[np.float64])
INLINED: Any = {"forceinline": True, "_nrt": False}
LARGEST_EXPONENT = 700.0  # largest exponent with a finite result
FEW = 3  # this many numbers are exponentiated one by one: eight at a time would take longer


@two_forms
def uniform(random: Any) -> float:
    """Draw a number from [0, 1)."""
    return random.uniform()  # a number, or an object that can be compared like one


@overload(uniform, jit_options=INLINED)
def _uniform_compiled(random: Any) -> Callable[..., float]:
    def compiled(random: Any) -> float:
        return random_uniform(random)

    return compiled


@two_forms
def below(random: Any, bound: int) -> int:
    """Draw a whole number from 0 to ``bound - 1``."""
    return random.below(bound)


@overload(below, jit_options=INLINED)
def _below_compiled(random: Any, bound: Any) -> Callable[..., int]:
    def compiled(random: Any, bound: Any) -> int:
        return random_below(random, bound)

    return compiled


@shared
def two_below(random: Any, bound: int) -> tuple[int, int]:
    """Draw two different whole numbers from 0 to ``bound - 1``, in any order."""
    first = below(random, bound)
    second = below(random, bound - 1)
    return first, second + (second >= first)


@shared
def tempered(score: Scores, temperature: float) -> Scores:
    """Divide scores or gains by the temperature: the only function that does."""
    return score / temperature


@shared
def exponential(x: float) -> float:
    """Return exp of ``x``, finite for every finite ``x``, in plain Python, too."""
    return math.exp(min(x, LARGEST_EXPONENT))


def room_for(count: int) -> int:
    """Return the length of an array for ``count`` choices, which are processed eight at a time."""
    return -(-count // GROUP) * GROUP


@two_forms
def take_shares(share: Any, scores: Any, count: int, scale: float, without: int) -> float:
    """Set shares to exp(scale * scores), relative to the largest, and to 0 at ``without``; return their sum.

    If all others are forbidden, the sum is 0 and the shares are unchanged. Both arrays have the length that
    `room_for` returns.
    """
    kept = [k for k in range(count) if k != without]
    best = max((float(scores[k]) for k in kept), default=-math.inf)
    if best == -math.inf:
        return 0.0
    share[:count] = 0.0
    for k in kept:
        share[k] = math.exp(scale * (scores[k] - best))
    return float(sum(share[k] for k in kept))


@overload(take_shares, jit_options=INLINED)
def _take_shares_compiled(
    share: Any, scores: Any, count: Any, scale: Any, without: Any
) -> Callable[..., float]:
    def compiled(share: Any, scores: Any, count: Any, scale: Any, without: Any) -> float:
        left_out = 0.0
        if without >= 0:
            left_out = scores[without]
            scores[without] = -math.inf
        whole = count // GROUP
        best = -math.inf
        for group in range(whole):
            best = max(best, largest(load_row((0,), scores, group)))
        for k in range(whole * GROUP, count):
            best = max(best, scores[k])
        total = 0.0
        if best > -math.inf:
            for group in range(whole):
                row = exponentials((load_row((0,), scores, group) - best) * scale)
                store_row(share, group, row)
                total += sum_of(row)
            if count - whole * GROUP > FEW:
                store_row(share, whole, exponentials((load_row((0,), scores, whole) - best) * scale))
                for k in range(whole * GROUP, count):
                    total += share[k]
            else:
                for k in range(whole * GROUP, count):
                    share[k] = 1.0 if scores[k] == best else math.exp(scale * (scores[k] - best))
                    total += share[k]
        if without >= 0:
            scores[without] = left_out
        return total

    return compiled


@shared
def pick_share(share: Any, count: int, threshold: Any) -> Any:
    """Return the position at which the running sum of the shares passes ``threshold``."""
    chosen = np.int64(0)
    for k in range(count):
        if share[k] > 0.0:  # rounding may leave a rest for the last choice, which must be possible
            chosen = np.int64(k)
            threshold -= share[k]
            if threshold < 0.0:
                break
    return chosen


@shared
def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x)), for any ``x``."""
    if x < -LARGEST_EXPONENT:
        return 0.0
    return 1.0 / (1.0 + math.exp(-x))


@shared
def add_change(move: Any, changes: Any, item: int, source: int, target: int) -> None:
    """Add a change of the first world to the changes of the move."""
    change = changes[move.changes]
    change.world, change.item, change.source, change.target = 0, item, source, target
    move.changes += 1


@shared
def copy_change(change: Any, to: Any) -> None:
    """Copy one change, or the current change of a move, to another record."""
    to.world, to.item, to.source, to.target = change.world, change.item, change.source, change.target


@shared
def end_changes(move: Any, changes: Any) -> None:
    """Make a single change of the list the current change, as the loops expect."""
    if move.changes == 1:
        move.item, move.source, move.target = changes[0].item, changes[0].source, changes[0].target


@shared
def put(gradient: Gradient, move: Any, weight: int, value: float) -> None:
    """Add an entry to the gradient's list; a weight may be named several times."""
    at = move.entries
    if at < len(gradient.index):
        gradient.index[at] = weight
        gradient.value[at] = value
        move.entries = at + 1
    else:
        move.overflow = 1


@shared
def merge(gradient: Gradient, move: Any) -> None:
    """Merge entries of the same weight, which is needed before squares are computed."""
    if move.entries == move.dense:
        return
    last = move.dense
    for k in range(move.dense):
        gradient.mark[gradient.index[k]] = k + 1
    for k in range(move.dense, move.entries):
        weight = gradient.index[k]
        at = gradient.mark[weight] - 1
        if at >= 0:
            gradient.value[at] += gradient.value[k]
        else:
            gradient.index[last] = weight
            gradient.value[last] = gradient.value[k]
            last += 1
            gradient.mark[weight] = last
    move.entries = last
    for k in range(last):
        gradient.mark[gradient.index[k]] = 0


@shared
def squares(gradient: Gradient, move: Any) -> float:
    """Return the sum of the squares of a merged gradient."""
    total = 0.0
    for k in range(move.entries):
        total += gradient.value[k] * gradient.value[k]
    return total


@shared
def listed(weights: Any, gradient: Gradient, move: Any) -> float:
    """Return the product of the weights with the gradient, which is the gain of the move."""
    total = 0.0
    for k in range(move.entries):
        total += weights[gradient.index[k]] * gradient.value[k]
    return total
