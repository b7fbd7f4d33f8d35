"""Mixtures of moves over clusterings.

A mixture draws one of its moves with fixed probabilities, and each move brings its own ratio, so that each
leaves the distribution invariant by itself. Moves that are each other's way back, such as relocations to an
item and to a new cluster, are one move there: its ratio adds up all ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.arguments import check_types
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.mixtures import draw_mixture
from factorwise.world.partition import Partition


@check_types
@dataclass(frozen=True)
class PartitionMixture(ProgramProposer):
    """A weighted mixture of moves.

    Where a move has nothing to propose, the step changes nothing.
    """

    moves: Sequence[Any]
    weights: Sequence[float] = field(default=())

    def __post_init__(self) -> None:
        if not len(self.moves):
            raise InvalidArgumentError("a mixture needs a move: give PartitionMixture([Merge(), ...]).")
        strangers = [move for move in self.moves if not hasattr(move, "program")]
        if strangers:
            raise InvalidArgumentError(
                f"{type(strangers[0]).__name__} is not a move that can be mixed: it has no program. Use"
                " it as the"
                " proposer by itself."
            )
        weights = tuple(float(w) for w in self.weights) or (1.0,) * len(self.moves)
        if len(weights) != len(self.moves) or not all(w > 0 and math.isfinite(w) for w in weights):
            raise InvalidArgumentError(
                f"{len(self.moves)} moves need as many positive weights, but {self.weights!r} was given."
            )
        object.__setattr__(self, "moves", tuple(self.moves))
        object.__setattr__(self, "weights", weights)
        blocks = next((move.blocks for move in self.moves if getattr(move, "blocks", None) is not None), None)
        across = [
            move for move, _ in self.parts() if blocks is not None and getattr(move, "crosses_blocks", False)
        ]
        if across:
            raise InvalidArgumentError(
                f"{type(across[0]).__name__} may join items of different blocks, which blocks forbid:"
                " use RelocateToItem(blocks), RelocateToNew, Split and RetypeCluster."
            )

    def parts(self) -> list[tuple[Any, float]]:
        """Return the moves with their weights, those of one family as one move."""
        found: dict[Any, tuple[Any, float]] = {}
        for number, (move, weight) in enumerate(zip(self.moves, self.weights, strict=True)):
            key = getattr(move, "family", "") or number
            if key in found:
                known, sum_so_far = found[key]
                found[key] = known.mixed(move, sum_so_far, weight), sum_so_far + weight
            else:
                found[key] = move, weight
        return list(found.values())

    @property
    def changes(self) -> str:  # type: ignore[override]
        """Whether a move may have several changes."""
        return "many" if any(move.changes == "many" for move in self.moves) else "one"

    def check(self, world: Partition) -> None:
        """Refuse a world that a move was not made for."""
        for move, _ in self.parts():
            if hasattr(move, "check"):
                move.check(world)

    def groups(self, world: Partition) -> NDArray[np.int32] | None:
        """Return numbers such that only items of one number can come together; None where any two may."""
        found: NDArray[np.int32] | None = None
        for move, _ in self.parts():
            joins = hasattr(move, "groups")
            if joins and found is None:
                found = move.groups(world)
            if getattr(move, "crosses_blocks", True) or (joins and found is None):
                return None
        return found

    def program(self, parts: Surroundings) -> Program:
        """Draw a move, then from it."""
        moves = self.parts()
        programs = [move.program(parts) for move, _ in moves]
        if len(programs) == 1:
            return programs[0]  # type: ignore[no-any-return]
        weights = np.array([weight for _, weight in moves])
        arrays = {"shares": np.cumsum(weights) / weights.sum(), "parts": Pointers(programs, ("draw",))}
        return Program(draw=draw_mixture, arrays=arrays, name="a mixture of moves")

    def _surroundings(self, world: Any) -> Surroundings:
        wanting = [move for move in self.moves if hasattr(move, "model")]
        return wanting[0]._surroundings(world) if wanting else Surroundings(world)
