"""Assignments as flat arrays that compiled walks read and change."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Labels(NamedTuple):
    """A label for every variable.

    value : int32[variables]
        Code of each variable's label.
    cardinality : int32[variables]
        How many labels each variable has.
    movable : int32[movable]
        Variables that are hidden and have more than one label.
    """

    value: NDArray[np.int32]
    cardinality: NDArray[np.int32]
    movable: NDArray[np.int32]


def apply_label(world: Any, move: Any) -> None:
    """Make the change at hand: a variable gets another label."""
    world.value[move.item] = move.target
