"""The data structures that the loops of a walk and its parts exchange.

A move is one change of a world, or several that are made one after the other. A change moves one item of one
world from a source to a target: an item from cluster to cluster, a variable from label to label. The reverse
of a change swaps source and target; a move is undone by the reverse of its changes, last one first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: What a proposer's ``draw`` returns if it proposes nothing, and ``support`` if there is nothing to choose.
STAY = math.nan

#: The move at hand, as its parts see it.
#:
#: changes
#:     Of how many changes the move consists. With 1, it is the change in ``world`` to ``target`` below; with
#:     more, those in the list of changes.
#: world, item, source, target
#:     The change at hand: which of the worlds side by side, and what goes from where to where.
#: ratio, log_ratio
#:     Probability of proposing the way back over that of proposing the move; the product of ``ratio`` and
#:     exp(``log_ratio``), so that either will do.
#: gain, fixed, better
#:     Change of the model's score; what of it no weight multiplies, while learning; how much better the
#:     preference finds the world after the move.
#: temperature
#:     For acceptances alone.
#: choices
#:     For Gibbs: among how many targets the item chooses.
#: graph
#:     For Gibbs: along the links of which graph the targets were offered, by the address of its neighbors; 0
#:     for none. The places of the item's links then stand in ``linked``.
#: entries, dense
#:     Length of the gradient's list, and of its head, in which every weight has a place of its own.
#: known
#:     1 where the proposer has found out ``gain`` already, and nobody needs a gradient: the loop then only
#:     decides.
#: factors
#:     How many factors the templates have looked at so far.
#: overflow
#:     1 once a gradient did not fit its list, 2 once a function claimed more factors than there is room for.
#:     From 16 on what a user's own function did wrong, see `factorwise.kernels.walks.guards`.
#: broken
#:     Change of the number of hard constraints that the world breaks. Templates that forbid add to it and
#:     leave the infinity out of their gain, so that a move of several changes may pass through forbidden
#:     worlds: the gain of the whole move is minus infinity where it breaks more than it mends, and infinity
#:     where it mends more.
STEP = np.dtype(
    [
        ("changes", np.int64),
        ("world", np.int64),
        ("item", np.int64),
        ("source", np.int64),
        ("target", np.int64),
        ("ratio", np.float64),
        ("log_ratio", np.float64),
        ("gain", np.float64),
        ("fixed", np.float64),
        ("better", np.float64),
        ("temperature", np.float64),
        ("choices", np.int64),
        ("graph", np.int64),
        ("entries", np.int64),
        ("dense", np.int64),
        ("known", np.int64),
        ("factors", np.int64),
        ("overflow", np.int64),
        ("broken", np.int64),
    ]
)

#: One of several changes. In the journal, ``kind`` is the previous kind of the source, if targets have kinds.
CHANGE = np.dtype([(name, np.int32) for name in ("world", "item", "source", "target", "kind")])


class Choice(NamedTuple):
    """The targets among which a Gibbs step chooses.

    targets : int32[most]
        The first ``move.choices`` are the targets; the item's own is among them.
    out : float64[most]
        What the item would add to the score at each target; for its own target, without the item itself.
    place : int32[targets there are]
        Position of each target in ``targets``, plus 1; 0 for all others. The loop clears it after the step.
    linked : int32[most]
        If targets were offered along links: the position, plus 1, of the cluster into which each of the
        item's links leads; 0 if that is not offered. Templates of the same links need not look it up again.
    share : float64[most]
        Scratch for the function that chooses.
    """

    targets: NDArray[np.int32]
    out: NDArray[np.float64]
    place: NDArray[np.int32]
    linked: NDArray[np.int32]
    share: NDArray[np.float64]


class Gradient(NamedTuple):
    """Statistics after the move minus those before it, as a list of (weight, value).

    index : int32[most], value : float64[most]
        The first ``move.dense`` entries belong to fixed weights and are added to in place; the following
        ones, up to ``move.entries``, may name a weight several times until they are merged.
    mark : int32[weights]
        Scratch for merging, zero between calls.
    """

    index: NDArray[np.int32]
    value: NDArray[np.float64]
    mark: NDArray[np.int32]


class Record:
    """One record of an array with its fields as attributes, as in compiled code, for interpreted parts."""

    __slots__ = ("_array", "_at")

    def __init__(self, array: NDArray[np.void], at: int = 0) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_at", at)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._array[name][self._at].item()
        except ValueError as fault:
            raise AttributeError(
                f"a move has no field {name!r}: its fields are {self._array.dtype.names}"
            ) from fault

    def __setattr__(self, name: str, value: Any) -> None:
        self._array[name][self._at] = value


class WalkRecords:
    """An array of records with their fields as attributes, for interpreted parts."""

    __slots__ = ("_array",)

    def __init__(self, array: NDArray[np.void]) -> None:
        self._array = array

    def __getitem__(self, at: int) -> Record:
        return Record(self._array, at)

    def __len__(self) -> int:
        return len(self._array)
