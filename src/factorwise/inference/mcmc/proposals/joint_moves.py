"""Proposals for joint worlds: moves of one world, and of several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.joints import draw_both, draw_within
from factorwise.kernels.walks.layouts import CHANGE
from factorwise.world.joint import Joint


@dataclass(frozen=True)
class Within(ProgramProposer):
    """A move of one of the worlds of a `Joint`.

    part
        The name of the world.
    proposer
        A proposer for worlds of its kind.
    """

    worlds = (Joint,)

    part: str
    proposer: Any

    @property
    def changes(self) -> str | int:  # type: ignore[override]
        """How many changes a move may have."""
        return getattr(self.proposer, "changes", "many")

    def check(self, world: Any) -> None:
        """Refuse a world that the proposer does not fit."""
        super().check(world)
        if hasattr(self.proposer, "check"):
            self.proposer.check(world.part(self.part))

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws as in the one world."""
        if not hasattr(self.proposer, "program"):
            raise NoCompiledFormError(
                f"{type(self.proposer).__name__} has no program, so it cannot move a world of a Joint:"
                " give it a method program(parts) that returns Program(draw=...)."
            )
        self.check(parts.world)
        first = parts.world.first(self.part)
        inner = self.proposer.program(replace(parts, world=parts.world.part(self.part), first=first))
        arrays = {"inner": Pointers([inner], ("draw",)), "first": [first]}
        return Program(draw=draw_within, arrays=arrays, part=self.part, name=f"moves of {self.part}")


@dataclass(frozen=True)
class Together(ProgramProposer):
    """Move several worlds at once, accepted or rejected together.

    proposers
        Moves of different worlds, each a `Within`. What one draws must not depend on what another changes.
    """

    worlds = (Joint,)

    proposers: Sequence[Within]

    changes = "many"

    def __post_init__(self) -> None:
        names = [proposer.part for proposer in self.proposers]
        if len(names) < 2 or len(set(names)) < len(names):
            raise InvalidArgumentError(
                f"Together needs moves of two or more different worlds, but those of {names} were given."
            )

    def check(self, world: Any) -> None:
        """Refuse a world that a proposer does not fit."""
        super().check(world)
        for proposer in self.proposers:
            proposer.check(world)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws from all of them."""
        programs = [proposer.program(parts) for proposer in self.proposers]
        room = len(parts.world.frame(np.zeros(2, np.uint64), many=True).changes)
        arrays = {"inner": Pointers(programs, ("draw",)), "listed": np.zeros(room, CHANGE)}
        return Program(draw=draw_both, arrays=arrays, name="several moves at once")
