"""Gibbs sampling for assignments: the loops, drawing as the plain forms do.

Every kernel changes ``values``, the counts and the random ``state`` in place and returns how many steps
changed the world, and the total gain of score. Gains count ``scale`` times: one over the temperature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.assignments.assignment_gains import (
    Codes,
    CountedFactors,
    Float64s,
    Int64s,
    LocalFactors,
    TouchedFactors,
    TouchedScore,
    WholeFactors,
    add_touched,
    assign,
    local_scores,
    pick_position,
    score_gain,
    score_of,
    touched_gain,
)
from factorwise.kernels.compile.compiler import fast_kernel, inlined
from factorwise.kernels.compile.random import random_below, random_uniform

LOOKAHEAD = 16


class Blocks(NamedTuple):
    """Blocks of variables, with the factors and the count factors that each touches, each once.

    Block ``b`` has ``variable[start[b]:start[b + 1]]``, ``factor[factor_start[b]:factor_start[b + 1]]`` and
    ``counted[counted_start[b]:counted_start[b + 1]]``.
    """

    start: Int64s
    variable: Int64s
    factor_start: Int64s
    factor: Int64s
    counted_start: Int64s
    counted: Int64s


@fast_kernel
def gibbs_steps(
    state: NDArray[np.uint64],
    values: Codes,
    local: LocalFactors,
    counted: CountedFactors,
    touched_score: TouchedScore,
    touched: TouchedFactors,
    movable: Int64s,
    cardinality: Int64s,
    systematic: bool,
    scale: float,
    steps: int,
    scores: Float64s,
    weights: Float64s,
    ahead: Int64s,
    chances: Float64s,
) -> tuple[int, float]:
    """Resample one variable a step, or all of them in order."""
    changed_steps = 0
    total = 0.0
    if len(movable) == 0:
        return changed_steps, total
    visits = len(movable) if systematic else 1
    changed = False
    for first in range(0, steps * visits, LOOKAHEAD):
        count = min(LOOKAHEAD, steps * visits - first)
        for place in range(count):
            ahead[place] = movable[
                (first + place) % visits if systematic else random_below(state, len(movable))
            ]
            chances[place] = random_uniform(state)
        ahead[LOOKAHEAD] = _warmed(local, ahead, count)
        for place in range(count):
            variable = ahead[place]
            labels = cardinality[variable]
            local_scores(values, local, counted, variable, labels, scores)
            add_touched(values, touched_score, touched, variable, labels, scores)
            new = pick_position(chances[place], scores, labels, scale, -1, weights)
            old = values[variable]
            if new >= 0 and new != old:
                total += score_gain(scores[new], scores[old])
                assign(values, counted, variable, new)
                changed = True
            if (first + place + 1) % visits == 0:
                changed_steps += changed
                changed = False
    return changed_steps, total


@inlined
def _warmed(local: LocalFactors, ahead: Int64s, count: int) -> int:
    """Read what the next visits will read, all at once, so that they do not wait for memory one by one."""
    total = 0
    for place in range(count):
        entry = local.pair_start[ahead[place]]
        if entry < local.pair_start[ahead[place] + 1]:
            total += local.pair_table[entry] + local.pair_other[entry] + local.pair_stride[entry]
            total += local.pair_other_stride[entry]
    return total


@fast_kernel
def block_gibbs_steps(
    state: NDArray[np.uint64],
    values: Codes,
    whole: WholeFactors,
    counted: CountedFactors,
    touched_score: TouchedScore,
    touched: TouchedFactors,
    blocks: Blocks,
    cardinality: Int64s,
    systematic: bool,
    scale: float,
    steps: int,
    scores: Float64s,
    weights: Float64s,
    before: Codes,
) -> tuple[int, float]:
    """Resample one block of variables jointly a step, or all blocks in order."""
    changed_steps = 0
    total = 0.0
    n_blocks = len(blocks.start) - 1
    visits = n_blocks if systematic else 1
    for _ in range(steps):
        changed = False
        if systematic:  # blocks may overlap, so that only the whole sweep tells what changed
            for variable in blocks.variable:
                before[variable] = values[variable]
        for visit in range(visits):
            block = visit if systematic else random_below(state, n_blocks)
            chance = random_uniform(state)
            variables = blocks.variable[blocks.start[block] : blocks.start[block + 1]]
            factors = blocks.factor[blocks.factor_start[block] : blocks.factor_start[block + 1]]
            groups = blocks.counted[blocks.counted_start[block] : blocks.counted_start[block + 1]]
            settings = 1
            current = 0
            for variable in variables:
                settings *= cardinality[variable]
                current = current * cardinality[variable] + values[variable]
            gained = 0.0
            for setting in range(settings):
                gained += _assign_setting(
                    values, counted, touched_score, touched, variables, cardinality, setting
                )
                scores[setting] = score_of(values, whole, counted, factors, groups) + gained
            chosen = pick_position(chance, scores, settings, scale, -1, weights)
            if chosen < 0:
                chosen = current
            if chosen != current:
                total += score_gain(scores[chosen], scores[current])
                changed = True
            _assign_setting(values, counted, touched_score, touched, variables, cardinality, chosen)
        if systematic:
            changed = False
            for variable in blocks.variable:
                changed = changed or before[variable] != values[variable]
        changed_steps += changed
    return changed_steps, total


@inlined
def _assign_setting(
    values: Codes,
    counted: CountedFactors,
    touched_score: TouchedScore,
    touched: TouchedFactors,
    variables: Int64s,
    cardinality: Int64s,
    setting: int,
) -> float:
    """Give a block the labels of one joint setting, the last variable changing fastest.

    Returns what the factors that come and go gain.
    """
    gained = 0.0
    rest = setting
    for back in range(len(variables)):
        variable = variables[len(variables) - 1 - back]
        label = rest % cardinality[variable]
        if label != values[variable]:
            gained += touched_gain(values, touched_score, touched, variable, label)
            assign(values, counted, variable, label)
        rest //= cardinality[variable]
    return gained
