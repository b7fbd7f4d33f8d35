"""Block Gibbs sampling: variables that draw their labels jointly, from all their joint settings.

``mine`` of this program:

start, variable : int64[blocks + 1], int32[.]
    The variables of each block.
sweep : int64[1]
    1 to visit all blocks in order in every step, 0 to visit a random block.
templates : int64[k, 3]
    ``gain`` and ``applied`` functions of the model's templates, and their contexts.
score, broken : float64[settings], int64[settings]
    The score of each setting of a block and the number of constraints that it breaks, both relative to
    the current setting; arrays over settings have the size `room_for`.
share : float64[settings]
before, label : int32[variables]
    Scratch space: the labels before the step, and those of the current setting before a visit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import (
    add_change,
    below,
    end_changes,
    pick_share,
    take_shares,
    tempered,
    uniform,
)

GAIN, APPLIED, CONTEXT = range(3)


def draw_blocks(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Resample one block, or all of them in order; the move has the changed labels, and its gain is known.

    The state is unchanged when this returns: the loop applies the move.
    """
    blocks = len(mine.start) - 1
    first, last = 0, blocks
    if mine.sweep[0] == 0:
        first = below(random, blocks)
        last = first + 1
    for k in range(mine.start[first], mine.start[last]):
        mine.before[mine.variable[k]] = world.value[mine.variable[k]]
    gain = 0.0
    for block in range(first, last):
        gain += visit_block(world, mine, random, move, mine.start[block], mine.start[block + 1])
    move.changes = 0
    for k in range(mine.start[first], mine.start[last]):
        variable = mine.variable[k]
        old, new = mine.before[variable], world.value[variable]
        if old != new:  # if blocks overlap, only when the variable first occurs
            add_change(move, changes, variable, old, new)
            set_label(world, mine, move, variable, old)
    if move.changes == 0:
        return STAY
    move.gain, move.known = gain, 1
    end_changes(move, changes)
    return 1.0


@shared
def visit_block(world: Any, mine: Any, random: Any, move: Any, low: int, high: int) -> float:
    """Draw the labels of one block from their conditional distribution given the others; return the gain.

    If every setting is forbidden, only those that break the fewest constraints are drawn.
    """
    chance = uniform(random)
    for k in range(low, high):
        mine.label[mine.variable[k]] = world.value[mine.variable[k]]
    settings = score_settings(world, mine, move, low, high)
    current, least = np.int64(0), mine.broken[0]
    for k in range(low, high):
        variable = mine.variable[k]
        current = current * world.cardinality[variable] + mine.label[variable]
    for setting in range(settings):
        least = min(least, mine.broken[setting])
    present = mine.score[current] if mine.broken[current] == least else -math.inf
    for setting in range(settings):
        if mine.broken[setting] > least:
            mine.score[setting] = -math.inf
    total = take_shares(mine.share, mine.score, settings, tempered(1.0, move.temperature), -1)
    chosen = pick_share(mine.share, settings, chance * total)
    rest = chosen
    for back in range(high - low):
        variable = mine.variable[high - 1 - back]
        set_label(world, mine, move, variable, rest % world.cardinality[variable])
        rest //= world.cardinality[variable]
    return mine.score[chosen] - present if chosen != current else 0.0


@shared
def score_settings(world: Any, mine: Any, move: Any, low: int, high: int) -> Any:
    """Score all joint settings of a block, the last variable changing fastest; return their number."""
    score, settings = 0.0, np.int64(1)
    move.broken = 0
    for k in range(low, high):
        settings *= world.cardinality[mine.variable[k]]
        score += relabel(world, mine, move, mine.variable[k], 0)
    for setting in range(settings):
        mine.score[setting], mine.broken[setting] = score, move.broken
        if setting < settings - 1:
            at = high - 1
            variable = mine.variable[at]
            while world.value[variable] == world.cardinality[variable] - 1:
                score += relabel(world, mine, move, variable, 0)
                at -= 1
                variable = mine.variable[at]
            score += relabel(world, mine, move, variable, world.value[variable] + 1)
    return settings


@shared
def relabel(world: Any, mine: Any, move: Any, variable: int, target: int) -> float:
    """Set the label of a variable; return the gain."""
    gain = 0.0
    if world.value[variable] != target:
        move.item, move.source, move.target = variable, world.value[variable], target
        for k in range(mine.templates.shape[0]):
            if mine.templates[k, GAIN] != 0:
                gain += call(mine.templates[k, GAIN], mine.templates[k, CONTEXT])
        set_label(world, mine, move, variable, target)
    return gain


@shared
def set_label(world: Any, mine: Any, move: Any, variable: int, target: int) -> None:
    """Set the label of a variable, and notify all templates."""
    if world.value[variable] == target:
        return
    move.item, move.source, move.target = variable, world.value[variable], target
    world.value[variable] = target
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, APPLIED] != 0:
            call(mine.templates[k, APPLIED], mine.templates[k, CONTEXT])
