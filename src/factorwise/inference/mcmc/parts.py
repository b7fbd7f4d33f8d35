"""Parts of a walk: what shipped and custom parts have in common.

A part with a method ``program(parts)`` can walk compiled. Its functions also run as plain Python:
`ProgramProposer` uses them to give a proposer ``draw`` and ``support``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.branches import Branches, Tap, every_path
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.kernels.compile.binding import Interpreted
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.guards import check_faults
from factorwise.world.kinds import check_kind


@dataclass(frozen=True)
class Surroundings:
    """What a part may need to know of the walk to which it belongs.

    world
        The world from which the walk starts.
    model
        The model of the walk; None if it is unknown.
    templates
        The programs of the model's templates.
    weights
        The weights with which they score.
    learning
        Whether the weights may change between any two steps, so that gains are computed from gradients.
    ratio
        Whether any part uses the probability of the way back.
    first
        In a joint world, the number of the first kind of changes of ``world``.
    """

    world: Any
    model: Any = None
    templates: Sequence[Program] = ()
    weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    learning: bool = False
    ratio: bool = True
    first: int = 0


class ProgramProposer:
    """A proposer defined by a program, whose functions ``draw`` and ``support`` run as plain Python."""

    #: How many changes a move may have: "one", "many", or the largest number.
    changes: str | int = "one"
    #: The kinds of worlds that it supports; empty for any.
    worlds: ClassVar[tuple[type[Any], ...]] = ()

    def check(self, world: Any) -> None:
        """Refuse a world that the proposer does not fit."""
        check_kind(self, world)

    def program(self, parts: Surroundings) -> Program:
        """Return the program, with a function ``draw``, for worlds like that of the surroundings."""
        raise NotImplementedError(f"{type(self).__name__} does not define its program")

    def draw(self, stream: Any, world: Any) -> Proposal:
        """Draw one proposal.

        Its forward log-probability is 0, and its backward log-probability is the log-ratio.
        """
        return self._drawing(world, stream)()

    def _drawing(self, world: Any, stream: Any) -> Callable[[], Proposal]:
        """Return a function that draws from ``stream`` in the current state of ``world``."""
        check_kind(self, world)
        frame = world.frame(np.zeros(2, np.uint64), many=self.changes not in ("one", 1))
        drawn = Interpreted(self.program(self._surroundings(world)), frame, stream).entry("draw")
        step = frame.step

        def draw() -> Proposal:
            step["changes"], step["world"], step["ratio"], step["log_ratio"] = 1, 0, 1.0, 0.0
            stays = math.isnan(drawn(0))
            check_faults(int(step["overflow"][0]))
            if stays:
                return Proposal(None, 0.0, 0.0)
            ratio, log_ratio = float(step["ratio"][0]), float(step["log_ratio"][0])
            log_ratio += math.log(ratio) if ratio > 0.0 else -math.inf
            return Proposal(world.diff_of(frame), 0.0, log_ratio)

        return draw

    def _surroundings(self, world: Any) -> Surroundings:
        return Surroundings(world)

    def support(self, world: Any) -> Iterator[Proposal]:
        """Enumerate all proposals and the chance to stay; a world is listed once per different ratio."""
        scratch, tap = world.copy(), Tap()
        drawing = self._drawing(scratch, tap)

        def draw(branches: Branches) -> Proposal:
            scratch.take(world)
            tap.source = branches
            return drawing()

        proposals: dict[Any, list[Any]] = {}
        stay = 0.0
        for proposal, probability in every_path(draw):
            if proposal.diff is None:
                stay += probability
                continue
            known = proposals.setdefault((proposal.diff, round(proposal.log_backward, 9)), [proposal, 0.0])
            known[1] += probability
        merged: dict[Any, list[Any]] = {}
        for (diff, ratio), (proposal, probability) in proposals.items():
            known = merged.setdefault((world.after(diff).canonical(), ratio), [proposal, 0.0])
            known[1] += probability
        for proposal, probability in merged.values():
            if probability == 0.0:  # underflow
                continue
            forward = math.log(probability)
            yield Proposal(proposal.diff, forward, forward + proposal.log_backward)
        stay_log = math.log(stay) if stay > 0.0 else -math.inf
        yield Proposal(None, stay_log, stay_log)
