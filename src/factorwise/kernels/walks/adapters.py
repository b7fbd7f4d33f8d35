"""Derive one function of a template from another, so that templates need not define all of them."""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.compile.pointers import call


def gain_by_choices(mine: Any, move: Any, choice: Any) -> float:
    """Return the gain of a change, from what the item adds at the two targets."""
    choice.targets[0], choice.targets[1], move.choices = move.source, move.target, 2
    choice.out[0], choice.out[1] = 0.0, 0.0
    choice.place[move.source], choice.place[move.target] = 1, 2
    call(mine.inner[0, 0], mine.inner[0, 1])
    choice.place[move.source], choice.place[move.target] = 0, 0
    return choice.out[1] - choice.out[0]


def choices_by_gain(mine: Any, move: Any, choice: Any) -> None:
    """Compute what an item adds at each target, relative to its own, from the gains of moving there."""
    for k in range(move.choices):
        if choice.targets[k] != move.source:
            move.target, move.broken = choice.targets[k], 0
            choice.out[k] += call(mine.inner[0, 0], mine.inner[0, 1])
            if move.broken > 0:
                choice.out[k] = -math.inf
            elif move.broken < 0:
                choice.out[choice.place[move.source] - 1] = -math.inf
