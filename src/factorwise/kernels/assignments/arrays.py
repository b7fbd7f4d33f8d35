"""Assignments as flat arrays that compiled walks read and modify."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Labels(NamedTuple):
    """A label for every variable.

    value : int32[variables]
        Code of each variable's label.
    cardinality : int32[variables]
        Number of labels of each variable.
    movable : int32[movable]
        The hidden variables that have more than one label.
    """

    value: NDArray[np.int32]
    cardinality: NDArray[np.int32]
    movable: NDArray[np.int32]


def apply_label(world: Any, move: Any) -> None:
    """Apply the current move, which gives a variable another label."""
    world.value[move.item] = move.target
