"""A proposer that draws several moves from another one and proposes the best of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.frames import kinds_of, make_adapters
from factorwise.kernels.walks.layouts import STEP
from factorwise.kernels.walks.loops import PLAN
from factorwise.kernels.walks.mixtures import draw_best
from factorwise.model.model import Model
from factorwise.validation import check_count


@dataclass(frozen=True)
class BestOf:
    """Draw several moves and propose the one with the highest gain.

    The ratio to the way back is unknown, so it cannot be part of a valid Metropolis-Hastings chain: use the
    acceptance "greedy", "always", "truth" or "unbalanced".

    proposer
        Draws the moves.
    tries
        How many moves it draws for each one proposed.
    model
        The model that computes gains; that of the walk by default.
    """

    proposer: Any
    tries: int
    model: Model | None = None

    #: Whether the ratio is known, which Metropolis-Hastings needs.
    balanced = False

    def __post_init__(self) -> None:
        check_count("tries", self.tries)

    @property
    def changes(self) -> str | int:
        """How many changes a move may have."""
        changes: str | int = getattr(self.proposer, "changes", "many")
        return changes

    def check(self, world: Any) -> None:
        """Refuse a world that the proposer does not fit."""
        if hasattr(self.proposer, "check"):
            self.proposer.check(world)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws moves, weighs them and keeps the best."""
        if not hasattr(self.proposer, "program"):
            raise NoCompiledFormError(
                f"{type(self.proposer).__name__} has no program: give it a method program(parts) that"
                " returns Program(draw=...), or use engine='plain'."
            )
        changer = parts.world.program()
        worlds = 1 + len(changer.worlds)
        gained = [p for p in parts.templates if not (parts.learning and "gradient" in p.roles)]
        templates = [*parts.templates, *make_adapters(gained, choices=False)]
        many = parts.world.frame(np.zeros(2, np.uint64), many=self.changes not in ("one", 1))
        needed = ("gain", "", "gradient" if parts.learning else "")  # in the order of a walk's columns
        arrays = {
            "inner": Pointers([self.proposer.program(parts)], ("draw",)),
            "tries": np.array([self.tries], np.int64),
            "learning": np.array([parts.learning], np.int64),
            "plan": np.zeros(PLAN, np.int64),
            "apply": Pointers([changer], ("apply",), worlds),
            "templates": Pointers(templates, (*needed, "applied"), worlds),
            "weights": parts.weights,
            "best": np.zeros(1, STEP),
            "best_changes": np.zeros_like(many.changes),
            "kinds": kinds_of(many.world),
        }
        return Program(draw=draw_best, arrays=arrays, name=f"the best of {self.tries}")

    def draw(self, stream: Any, world: Any) -> Proposal:
        """Draw moves, and return the proposal with the highest gain; its two probabilities count as equal."""
        if self.model is None:
            raise InvalidArgumentError(
                "a BestOf that draws in plain Python must have a model to compute gains: use"
                " BestOf(..., model=model)."
            )
        best, highest = Proposal(None, 0.0, 0.0), -math.inf
        for _ in range(self.tries):
            proposal = self.proposer.draw(stream, world)
            if proposal.diff is not None:
                gain = self.model.gain(world, proposal.diff)
                if best.diff is None or gain > highest:
                    best, highest = Proposal(proposal.diff, 0.0, 0.0), gain
        return best
