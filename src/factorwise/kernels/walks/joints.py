"""Parts of a walk over a joint world, made of the parts of its worlds.

Kinds of changes are numbered: those of the first world come first. A program of one world numbers its own
from 0.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import copy_change

JUDGE, APPLIED, BEGIN, VALUE, CONTEXT = range(5)


def apply_within(mine: Any, move: Any) -> None:
    """Make the current change; ``mine`` has ``inner`` int64[kinds of changes, 2]: the function for each."""
    call(mine.inner[move.world, 0], mine.inner[move.world, 1])


def draw_within(mine: Any, move: Any, changes: Any) -> float:
    """Draw a move of one world; ``mine`` has ``inner`` int64[1, 2], the draw, and ``first`` int64[1]."""
    drawn = call(mine.inner[0, 0], mine.inner[0, 1])
    if math.isnan(drawn):
        return STAY
    move.world += mine.first[0]
    if move.changes > 1:
        for k in range(move.changes):
            changes[k].world += mine.first[0]
    return drawn


def draw_both(mine: Any, move: Any, changes: Any) -> float:
    """Draw moves of several proposers, one after the other, and propose all their changes as one move.

    ``mine`` has ``inner`` int64[proposers, 2], their draws, and ``listed`` CHANGE[.], scratch. Neither the
    draws of later proposers nor any ratio may depend on the changes of earlier ones.
    """
    count, ratio, log_ratio = 0, 1.0, 0.0
    for k in range(mine.inner.shape[0]):
        move.changes, move.world, move.ratio, move.log_ratio = 1, 0, 1.0, 0.0
        if math.isnan(call(mine.inner[k, 0], mine.inner[k, 1])):
            return STAY
        for at in range(move.changes):
            if move.changes == 1:
                copy_change(move, mine.listed[count])
            else:
                copy_change(changes[at], mine.listed[count])
            count += 1
        ratio *= move.ratio
        log_ratio += move.log_ratio
    for at in range(count):
        copy_change(mine.listed[at], changes[at])
    move.changes, move.ratio, move.log_ratio, move.known = count, ratio, log_ratio, 0
    if count == 1:
        copy_change(changes[0], move)
    return 1.0


def offer_within(mine: Any, move: Any) -> float:
    """Offer targets of one world; ``mine`` has ``inner`` int64[1, 2], its support, and ``first`` int64[1]."""
    offered = call(mine.inner[0, 0], mine.inner[0, 1])
    move.world += mine.first[0]
    return offered


# preferences: ``mine`` has ``inner`` int64[k, 5], those of some worlds, ``share`` float64[k], ``first``
# int64[k], and ``owner`` int64[kinds of changes], the preference that judges each; -1 for none


def judge_within(mine: Any, move: Any) -> float:
    """Return how much better the world after the change is, by the preference of the changed world."""
    k = mine.owner[move.world]
    if k < 0:
        return 0.0
    move.world -= mine.first[k]
    better = mine.share[k] * call(mine.inner[k, JUDGE], mine.inner[k, CONTEXT])
    move.world += mine.first[k]
    return better


def applied_within(mine: Any, move: Any) -> None:
    """Notify the preference of the world that was changed."""
    k = mine.owner[move.world]
    if k >= 0 and mine.inner[k, APPLIED] != 0:
        move.world -= mine.first[k]
        call(mine.inner[k, APPLIED], mine.inner[k, CONTEXT])
        move.world += mine.first[k]


def begin_within(mine: Any) -> None:
    """Let all preferences start from the current worlds."""
    for k in range(mine.inner.shape[0]):
        if mine.inner[k, BEGIN] != 0:
            call(mine.inner[k, BEGIN], mine.inner[k, CONTEXT])


def value_within(mine: Any) -> float:
    """Return the mean quality of the worlds; NaN if one is unknown."""
    total, shares = 0.0, 0.0
    for k in range(mine.inner.shape[0]):
        if mine.inner[k, VALUE] == 0:
            return math.nan
        total += mine.share[k] * call(mine.inner[k, VALUE], mine.inner[k, CONTEXT])
        shares += mine.share[k]
    return total / shares
