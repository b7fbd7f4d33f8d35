"""The share of items with the correct value, a label or a target, one change at a time.

``mine`` has ``truth`` int32[items], the correct value of each item, or -1 if it is unknown, and ``known``
int64[1], the number of known values.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.compile.compiler import shared


@shared
def is_right(mine: Any, item: Any, value: Any) -> float:
    """Return 1.0 if the value is the correct one of an item, else 0.0."""
    return 1.0 if mine.truth[item] == value else 0.0


def judge_value(mine: Any, move: Any) -> float:
    """Return the gain of the share of items with the correct value."""
    gain = is_right(mine, move.item, move.target) - is_right(mine, move.item, move.source)
    return gain / max(mine.known[0], 1)


def share_of_right(world: Any, mine: Any) -> float:
    """Return the share of the items with a known value that have it; NaN if none is known."""
    right = 0.0
    for item in range(len(mine.truth)):
        right += is_right(mine, item, world[0][item])  # the values are the first array of such worlds
    return right / mine.known[0] if mine.known[0] > 0 else math.nan
