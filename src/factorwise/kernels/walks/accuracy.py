"""The share of items with the right value, a label or a target, one change at a time.

``mine`` has ``truth`` int32[items], the right value of each item, or -1 where it is unknown, and ``known``
int64[1], how many are known.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.compile.compiler import shared


@shared
def is_right(mine: Any, item: Any, value: Any) -> float:
    """1.0 where the value is the right one of an item, else 0.0."""
    return 1.0 if mine.truth[item] == value else 0.0


def judge_value(mine: Any, move: Any) -> float:
    """Gain of the share of items with the right value."""
    gain = is_right(mine, move.item, move.target) - is_right(mine, move.item, move.source)
    return gain / max(mine.known[0], 1)


def share_of_right(world: Any, mine: Any) -> float:
    """Share of the items with a known value that have it; nan where none is known."""
    right = 0.0
    for item in range(len(mine.truth)):
        right += is_right(mine, item, world[0][item])  # the values are the first array of such worlds
    return right / mine.known[0] if mine.known[0] > 0 else math.nan
