"""Functions that parts of a walk may call, the same interpreted and compiled.

Interpreted, ``random`` is a `factorwise.rng.Stream` (or anything with ``uniform`` and ``below``); compiled,
it is the state of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import shared, two_forms
from factorwise.kernels.compile.random import random_below, random_uniform
from factorwise.kernels.walks.layouts import Gradient

_LOOSE: Any = cgutils  # numba's own functions have no types
Scores = TypeVar("Scores", float, NDArray[np.float64])
INLINED: Any = {"forceinline": True, "_nrt": False}
LARGEST_EXPONENT = 700.0  # of what still is a finite number
VANISHING = -37.0  # rounding loses exp of less in a sum whose largest term is 1


@two_forms
def uniform(random: Any) -> float:
    """Draw a number from [0, 1)."""
    return random.uniform()  # a number, or something that is compared like one


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
    """Divide scores or gains by the temperature: the one place where it enters."""
    return score / temperature


@shared
def exponential(x: float) -> float:
    """Exp of ``x``, finite for every finite ``x``, in plain Python as well."""
    return math.exp(min(x, LARGEST_EXPONENT))


@two_forms
def share_of(lead: float) -> float:
    """Exp of how far a target lies behind the best one; 0 where the sum of all would not show it."""
    return math.exp(lead) if lead > VANISHING else 0.0


@overload(share_of, jit_options=INLINED)
def _share_compiled(lead: Any) -> Callable[..., float]:
    def compiled(lead: Any) -> float:
        return _called_exp(lead) if lead > VANISHING else 0.0  # type: ignore[call-arg]

    return compiled


@intrinsic
def _called_exp(typing_context: Any, x: Any) -> Any:
    """Call exp where the code says so.

    LLVM takes its own exp for cheap: it would compute it for all targets at once, most of which do not need
    it, and exp of numbers that underflow is slow.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType()])
        function = _LOOSE.get_or_insert_function(builder.module, kind, "exp")
        return builder.call(function, arguments)

    return types.float64(types.float64), generate


@shared
def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), for any ``x``."""
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
    """Copy one change, or the change at hand of a move, to another place."""
    to.world, to.item, to.source, to.target = change.world, change.item, change.source, change.target


@shared
def end_changes(move: Any, changes: Any) -> None:
    """Let a single change of the list be the change at hand, as the loops want it."""
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
    """Name every weight of the list once, by adding up its values: needed before squares are taken."""
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
    """Sum of the squares of a merged gradient."""
    total = 0.0
    for k in range(move.entries):
        total += gradient.value[k] * gradient.value[k]
    return total


@shared
def listed(weights: Any, gradient: Gradient, move: Any) -> float:
    """Product of the weights with the gradient: the gain of the move."""
    total = 0.0
    for k in range(move.entries):
        total += weights[gradient.index[k]] * gradient.value[k]
    return total
