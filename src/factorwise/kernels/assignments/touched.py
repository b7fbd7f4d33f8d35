"""Factors that exist depending on the labels: those that a variable touches, and their scores.

The functions of these programs are built from two user functions: ``touched(values, variable, out)``, which
writes the keys of the factors that exist and returns their number, and ``statistics(values, key)`` of a
factor.

``mine`` of these programs:

keys : int64[rows, width]
    Scratch space, with more rows than ``touched`` may return.
weights, offset : float64[weights], int64[1]
    All weights of the model, and the index of the template's first weight.
change : float64[statistics]
    Scratch space: the change of the statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from factorwise.kernels.clusterings.tallies import add_statistics, weigh
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.library import put


@shared
def is_fresh(keys: Any, row: int) -> bool:
    """Return whether a key differs from all keys in earlier rows."""
    for earlier in range(row):
        same = True
        for k in range(keys.shape[1]):
            same = same and keys[earlier, k] == keys[row, k]
        if same:
            return False
    return True


@lru_cache(maxsize=256)
def touched_functions(
    touched: Callable[..., int], statistics: Callable[..., Any], limit: int
) -> dict[str, Callable[..., Any]]:
    """Make the functions of a template's program, by role.

    limit
        Maximum number of keys that one variable may touch.
    """

    def list_keys(world: Any, mine: Any, move: Any) -> int:
        count = touched(world.value, move.item, mine.keys)
        if count < 0 or count > limit:
            move.overflow = 2
            return 0
        return count

    def score(world: Any, mine: Any, move: Any) -> float:
        total = 0.0
        for row in range(list_keys(world, mine, move)):
            if is_fresh(mine.keys, row):
                total += weigh(statistics(world.value, mine.keys[row]), mine.weights, mine.offset[0])
        return total

    def add_all(world: Any, mine: Any, move: Any, sign: float) -> None:
        for row in range(list_keys(world, mine, move)):
            if is_fresh(mine.keys, row):
                add_statistics(mine.change, 0, sign, statistics(world.value, mine.keys[row]))

    def touched_gain(world: Any, mine: Any, move: Any) -> float:
        before = score(world, mine, move)
        world.value[move.item] = move.target
        after = score(world, mine, move)
        world.value[move.item] = move.source
        return after - before

    def touched_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
        for k in range(move.choices):
            world.value[move.item] = choice.targets[k]
            choice.out[k] += score(world, mine, move)
        world.value[move.item] = move.source

    def touched_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
        for k in range(len(mine.change)):
            mine.change[k] = 0.0
        add_all(world, mine, move, -1.0)
        world.value[move.item] = move.target
        add_all(world, mine, move, 1.0)
        world.value[move.item] = move.source
        for k in range(len(mine.change)):
            if mine.change[k] != 0.0:
                put(gradient, move, mine.offset[0] + k, mine.change[k])

    return {"gain": touched_gain, "gains": touched_gains, "gradient": touched_gradient}
