"""Tallies: a function of the count per cluster and key, summed over keys, and a function of that sum.

The functions of these programs are built from two functions of the user: ``part(count)``, whose sum over the
keys is kept per cluster, and ``value(total, size)``. Moving an item reads and changes only the counts of its
own keys in two clusters. Sums are kept in whole multiples of a unit, so undoing a change restores them
exactly.

``mine`` of a tally:

spans, entries : SPAN[n], ENTRY[.]
    The keys that item i shares with other items are those from ``spans[i].begin`` to ``spans[i].end``.
own : int64[n]
    Sum of the parts of the keys that no other item has.
slots : SLOT[.]
    The tables of counts.
total : int64[ids]
    Sum of the parts of each cluster.
weights, offset, place : float64[.], int64[1], int64[1]
    The weights of the statistics stand at ``offset``, their places in the gradient's head from ``place`` on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

from factorwise.kernels.clusterings.counts import (
    add_count,
    clear_slots,
    count_of,
    take_count,
    visit_counts,
)
from factorwise.kernels.compile.compiler import shared, two_forms

_FLAT: dict[str, Any] = {"forceinline": True, "_nrt": False}


@two_forms
def weigh(answer: Any, weights: Any, at: int) -> float:
    """Return the product of a tuple of statistics with the weights from ``at`` on."""
    total = 0.0
    for k in range(len(answer)):
        total += weights[at + k] * answer[k]
    return total


@overload(weigh, jit_options=_FLAT)
def _weigh_compiled(answer: Any, weights: Any, at: Any) -> Callable[..., float]:
    if isinstance(answer, types.BaseTuple) and len(answer) == 1:

        def compiled(answer: Any, weights: Any, at: Any) -> float:
            return weights[at] * answer[0]

    else:  # elements may have different types: one after the other

        def compiled(answer: Any, weights: Any, at: Any) -> float:
            return weights[at] * answer[0] + weigh(answer[1:], weights, at + 1)

    return compiled


@two_forms
def add_statistics(out: Any, at: int, sign: float, answer: Any) -> None:
    """Add a tuple of statistics, times ``sign``, to ``out`` from ``at`` on."""
    for k in range(len(answer)):
        out[at + k] += sign * answer[k]


@overload(add_statistics, jit_options=_FLAT)
def _add_statistics_compiled(out: Any, at: Any, sign: Any, answer: Any) -> Callable[..., None]:
    if isinstance(answer, types.BaseTuple) and len(answer) == 1:

        def compiled(out: Any, at: Any, sign: Any, answer: Any) -> None:
            out[at] += sign * answer[0]

    else:

        def compiled(out: Any, at: Any, sign: Any, answer: Any) -> None:
            out[at] += sign * answer[0]
            add_statistics(out, at + 1, sign, answer[1:])

    return compiled


@shared
def in_units(part: float, unit: float) -> int:
    """Return the nearest whole multiple of a unit."""
    return np.int64(math.floor(part / unit + 0.5))


@lru_cache(maxsize=256)
def tally_functions(
    part: Callable[[int], Any], value: Callable[[float, int], Any], unit: float, single: bool
) -> dict[str, Callable[..., Any]]:
    """Make the functions of a tally's program, by role.

    single
        Whether ``value`` returns one number; a tuple of numbers otherwise.
    """

    def one_answer(total: float, size: int) -> Any:
        return (value(total * unit, size),)

    def several_answers(total: float, size: int) -> Any:
        return value(total * unit, size)

    answer = one_answer if single else several_answers

    def score(mine: Any, total: int, size: int) -> float:
        if size == 0:
            return 0.0
        return weigh(answer(total, size), mine.weights, mine.offset[0])

    def raised(mine: Any, item: int, cluster: int) -> int:
        total = np.int64(mine.own[item])
        for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
            entry = mine.entries[at]
            count = count_of(mine.slots, entry.start, entry.shift, cluster)
            total += in_units(part(count + np.int64(entry.amount)), unit) - in_units(part(count), unit)
        return total

    def lowered(mine: Any, item: int, cluster: int) -> int:
        total = np.int64(mine.own[item])
        for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
            entry = mine.entries[at]
            count = count_of(mine.slots, entry.start, entry.shift, cluster)
            total += in_units(part(count), unit) - in_units(part(count - np.int64(entry.amount)), unit)
        return total

    def tally_begin(world: Any, mine: Any) -> None:
        clear_slots(mine.slots)
        for cluster in range(len(mine.total)):
            mine.total[cluster] = 0
        for item in range(len(world.label)):
            cluster, more = np.int64(world.label[item]), np.int64(mine.own[item])
            for at in range(np.int64(mine.spans[item].begin), np.int64(mine.spans[item].end)):
                entry = mine.entries[at]
                amount = np.int64(entry.amount)
                before = add_count(mine.slots, entry.start, entry.shift, cluster, amount)
                more += in_units(part(before + amount), unit) - in_units(part(before), unit)
            mine.total[cluster] += more

    def tally_gain(world: Any, mine: Any, move: Any) -> float:
        s, t = np.int64(world.size[move.source]), np.int64(world.size[move.target])
        here, there = np.int64(mine.total[move.source]), np.int64(mine.total[move.target])
        left = here - lowered(mine, move.item, move.source)
        joined = there + raised(mine, move.item, move.target)
        won = score(mine, joined, t + 1) - score(mine, there, t)
        return won + score(mine, left, s - 1) - score(mine, here, s)

    def tally_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
        for k in range(move.choices):
            cluster = np.int64(choice.targets[k])
            size, total = np.int64(world.size[cluster]), np.int64(mine.total[cluster])
            if cluster == move.source:
                left = total - lowered(mine, move.item, cluster)
                choice.out[k] += score(mine, total, size) - score(mine, left, size - 1)
            else:
                joined = total + raised(mine, move.item, cluster)
                choice.out[k] += score(mine, joined, size + 1) - score(mine, total, size)

    def add_answer(mine: Any, out: Any, sign: float, total: int, size: int) -> None:
        if size > 0:
            add_statistics(out, mine.place[0], sign, answer(total, size))

    def tally_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
        s, t = np.int64(world.size[move.source]), np.int64(world.size[move.target])
        here, there = np.int64(mine.total[move.source]), np.int64(mine.total[move.target])
        left = here - lowered(mine, move.item, move.source)
        joined = there + raised(mine, move.item, move.target)
        add_answer(mine, gradient.value, 1.0, joined, t + 1)
        add_answer(mine, gradient.value, -1.0, there, t)
        add_answer(mine, gradient.value, 1.0, left, s - 1)
        add_answer(mine, gradient.value, -1.0, here, s)

    def tally_applied(world: Any, mine: Any, move: Any) -> None:
        less = more = np.int64(mine.own[move.item])
        for at in range(np.int64(mine.spans[move.item].begin), np.int64(mine.spans[move.item].end)):
            entry = mine.entries[at]
            amount = np.int64(entry.amount)
            here = take_count(mine.slots, entry.start, entry.shift, move.source, amount)
            there = add_count(mine.slots, entry.start, entry.shift, move.target, amount)
            less += in_units(part(here), unit) - in_units(part(here - amount), unit)
            more += in_units(part(there + amount), unit) - in_units(part(there), unit)
        mine.total[move.source] -= less
        mine.total[move.target] += more

    return {
        "begin": tally_begin,
        "gain": tally_gain,
        "gains": tally_gains,
        "gradient": tally_gradient,
        "applied": tally_applied,
        "visit": visit_counts,
    }
