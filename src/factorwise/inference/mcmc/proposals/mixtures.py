"""Mixtures of proposers for worlds of any kind.

A mixture draws one of its proposers with fixed probabilities, and each has its own ratio, so that each leaves
the distribution invariant by itself. Moves that can undo each other, such as relocations to an item and to a
new cluster, form one proposer, whose ratio adds up all ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.mixtures import draw_mixture
from factorwise.types import Float64s, Int32s


@dataclass(frozen=True)
class Mixture(ProgramProposer):
    """One of several proposers, drawn with probabilities in proportion to the weights.

    If the proposer that is drawn has nothing to propose, the step changes nothing.

    components
        The proposers. Those of one ``family``, such as relocations of clusterings, are combined into one.
    weights
        A weight for each; equal by default.

    It draws the component, then what the component draws.
    """

    components: Sequence[Any]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        given_weights = () if self.weights is None else tuple(float(weight) for weight in self.weights)
        weights = given_weights or (1.0,) * len(self.components)
        object.__setattr__(self, "components", tuple(self.components))
        object.__setattr__(self, "weights", weights)
        if not self.components or len(self.components) != len(weights):
            raise InvalidArgumentError(
                f"a mixture of {len(self.components)} proposers was given {len(weights)} weights: give"
                " at least one proposer and one weight for each."
            )
        if not all(0.0 < weight < math.inf for weight in weights):
            raise InvalidArgumentError(
                f"the weights of a mixture must be positive and finite, but {list(weights)} were given:"
                " leave a proposer out to switch it off."
            )
        blocks = [part for part in self.components if getattr(part, "blocks", None) is not None]
        across = [move for move, _ in self.parts() if getattr(move, "crosses_blocks", False)]
        if blocks and across:
            raise InvalidArgumentError(
                f"{type(across[0]).__name__} may join items of different blocks: with blocks, use"
                " RelocateToItem(blocks), RelocateToNew, Split and RetypeCluster."
            )

    def parts(self) -> list[tuple[Any, float]]:
        """Return the proposers with their weights; those of one family are combined."""
        combined: dict[Any, tuple[Any, float]] = {}
        for number, (move, weight) in enumerate(zip(self.components, self.weights or (), strict=True)):
            key = getattr(move, "family", "") or number
            if key in combined:
                known, sum_so_far = combined[key]
                combined[key] = known.mixed(move, sum_so_far, weight), sum_so_far + weight
            else:
                combined[key] = move, weight
        return list(combined.values())

    @property
    def changes(self) -> str | int:  # type: ignore[override]
        """How many changes a move may have: the largest of its components."""
        changes = [getattr(component, "changes", "many") for component in self.components]
        return "many" if "many" in changes else max(1 if some == "one" else some for some in changes)

    def check(self, world: Any) -> None:
        """Refuse a world that a component does not fit."""
        for move, _ in self.parts():
            if hasattr(move, "check"):
                move.check(world)

    def groups(self, world: Any) -> Int32s | None:
        """Return group numbers, such that only items of one group can come together; None if any two may."""
        groups: Int32s | None = None
        for move, _ in self.parts():
            joins = hasattr(move, "groups")
            if joins and groups is None:
                groups = move.groups(world)
            if getattr(move, "crosses_blocks", True) or (joins and groups is None):
                return None
        return groups

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a component, then from it."""
        proposers = self.parts()
        strangers = [proposer for proposer, _ in proposers if not hasattr(proposer, "program")]
        if strangers:
            raise NoCompiledFormError(
                f"{type(strangers[0]).__name__} has no program: give it a method program(parts) that"
                " returns Program(draw=...), or use engine='plain'."
            )
        programs = [proposer.program(parts) for proposer, _ in proposers]
        if len(programs) == 1:
            return programs[0]  # type: ignore[no-any-return]
        arrays = {"shares": self._shares(), "parts": Pointers(programs, ("draw",))}
        return Program(draw=draw_mixture, arrays=arrays, name="a mixture of proposers")

    def _shares(self) -> Float64s:
        weights = np.array([weight for _, weight in self.parts()])
        return np.asarray(np.cumsum(weights) / weights.sum())

    def _drawing(self, world: Any, stream: Any) -> Callable[[], Proposal]:
        """Return a function that draws as the program does, also from components without programs."""
        shares = self._shares()
        drawn = [
            proposer._drawing(world, stream)
            if isinstance(proposer, ProgramProposer)
            else partial(proposer.draw, stream, world)
            for proposer, _ in self.parts()
        ]

        def draw() -> Proposal:
            if len(drawn) == 1:
                return drawn[0]()
            threshold, chosen = stream.uniform(), 0
            while chosen < len(shares) - 1 and not threshold < shares[chosen]:
                chosen += 1
            return drawn[chosen]()

        return draw


@dataclass(frozen=True, init=False)
class PartitionMixture(Mixture):
    """A weighted mixture of moves over clusterings: another name for `Mixture`."""

    def __init__(self, moves: Sequence[Any], weights: Sequence[float] = ()) -> None:
        super().__init__(moves, weights)

    @property
    def moves(self) -> Sequence[Any]:
        """The moves that are mixed."""
        return self.components
