"""The share of right labels, one change at a time.

``mine`` of this program:

code : int32[variables]
    True label of each variable; -1 where it is unknown or observed: such variables are left out.
known, right : int64[1], int64[1]
    How many variables have a known label, and how many of them the right one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared


@shared
def more_right(mine: Any, move: Any) -> int:
    """1 for a wrong label made right, -1 for a right one made wrong, else 0."""
    code = mine.code[move.item]
    if code < 0:
        return np.int64(0)
    return np.int64(move.target == code) - np.int64(move.source == code)


def judge_accuracy(mine: Any, move: Any) -> float:
    """Gain of the share of right labels."""
    return more_right(mine, move) / mine.known[0] if mine.known[0] > 0 else 0.0


def accuracy_applied(mine: Any, move: Any) -> None:
    """Keep the number of right labels in step with a change that was made."""
    mine.right[0] += more_right(mine, move)


def begin_accuracy(world: Any, mine: Any) -> None:
    """Count the right labels of the present world."""
    mine.right[0] = 0
    for variable in range(len(mine.code)):
        mine.right[0] += world.value[variable] == mine.code[variable]


def accuracy_value(mine: Any) -> float:
    """Share of right labels; nan where none is known."""
    return mine.right[0] / mine.known[0] if mine.known[0] > 0 else math.nan
