"""A chain over worlds of any kind, with any parts that have programs.

It runs compiled, or interpreted with the same trace.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError, TemplateError
from factorwise.inference.mcmc.branches import Tap
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import Parts
from factorwise.kernels.walks.guards import check_faults
from factorwise.kernels.walks.loops import ACCEPTED
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.validation import check_count, check_number
from factorwise.world.kinds import check_kind


class Walk:
    """One chain, on a copy of the world it starts from.

    kernel
        The transition kernel, which has the model and the programs of its parts, by role.
    weights : float64[weights]
        The weights with which the templates score; a copy of the model's by default. An update rule changes
        them in place.
    learning
        Compute gains from gradients, so that weights may change between any two steps.
    clock, journal
        Counts of all walks that learn with one rule, and how many moves an episode has that are undone after
        it: see `factorwise.kernels.walks.loops.Walk`.
    interpreted
        Run the functions and the loop as plain Python: ten thousand steps a second at most. A stream instead
        of True is the source of all draws.
    roles
        Programs of further parts: a preference (``judge``), a rule (``update``, ``kept``, ``episode``).

    factors_seen
        Number of factors that the steps so far have examined, for templates that count them.
    """

    def __init__(
        self,
        kernel: Any,
        world: Any,
        *,
        weights: NDArray[np.float64] | None = None,
        learning: bool = False,
        clock: NDArray[np.int64] | None = None,
        journal: int = 0,
        interpreted: Any = False,
        **roles: Program,
    ) -> None:
        if not hasattr(kernel, "programs"):
            raise NoCompiledFormError(
                f"{type(kernel).__name__} has no compiled form: give it a method programs(parts) that"
                " returns the programs of its parts by role, or use engine='plain'."
            )
        model: Model = kernel.model
        check_start(kernel, world)
        self.kernel = kernel
        self._world = world.copy()
        self.weights = model.weights.copy() if weights is None else weights
        groups = _groups(kernel, self._world)
        programs = model_programs(model, self._world, self.weights, learning=learning, groups=groups)
        self._world.arrays = programs.arrays
        lacking = [program.name for program in programs.templates if not _has_gain(program)]
        gradients = learning or bool(lacking)
        given = [program.for_learning() if gradients else program for program in programs.templates]
        own = kernel.programs(Surroundings(self._world, model, given, self.weights, gradients))
        if lacking and not learning and "support" in own:  # choices are weighed by gains
            lacking = [p.name for p in programs.templates if not {"gain", "gains"} & p.roles]
            gradients, given = False, list(programs.templates)
            own = kernel.programs(Surroundings(self._world, model, given, self.weights))
        templates = own.pop("templates", given)  # an evaluator may replace them
        if learning and templates is not given:
            raise NoCompiledFormError(
                f"learning from {type(kernel.evaluator).__name__} has no compiled form: use engine='plain'."
            )
        if lacking and "support" in own:
            raise NoCompiledFormError(
                f"{lacking[0]} compute changes of statistics but not gains of choices, so no Gibbs step"
                " can be compiled with them: use Metropolis or engine='plain'."
            )
        many = len(self._world.frame(np.zeros(2, np.uint64), many=True).changes)
        changes = {"one": 1, "many": many}.get(kernel.changes, kernel.changes)
        entries = changes * sum(program.entries for program in programs.templates) if gradients else 0
        self._stream_state = np.zeros(2, np.uint64)
        self._follows = interpreted is True
        self._tap = Tap() if self._follows else interpreted or None
        self.frame = self._world.frame(
            self._stream_state, many=changes > 1, weights=model.blocks.size, entries=entries
        )
        self.parts = Parts(
            self.frame,
            self._world.program(),
            templates,
            stream=self._tap,
            weights=self.weights,
            learning=gradients,
            clock=clock,
            journal=journal * len(self.frame.changes),
            visits=kernel.visits(self._world) if hasattr(kernel, "visits") else 1,
            **own,
            **roles,
        )
        self._start: float | None = None
        self.parts.begin()

    @property
    def score(self) -> float:
        """Score of the current world, computed when it is first needed and then updated by gains."""
        gained = float(self.parts.walk.score[0])
        if not math.isfinite(gained):  # a forbidden world was left
            self.parts.walk.score[0], gained, self._start = 0.0, 0.0, None
        if self._start is None:
            self._start = self.kernel.model.score(self._world) - gained
        return self._start + gained

    @property
    def factors_seen(self) -> int:
        """Number of factors examined so far."""
        return int(self.frame.step["factors"][0])

    @property
    def view(self) -> Any:
        """The current world itself: read it only until the next step."""
        return self._world

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        return self._world.copy()

    def reset(self, world: Any) -> None:
        """Set the current world to a copy of ``world``."""
        if world.layout_key() != self._world.layout_key():
            raise ShapeError(
                f"the walk is over {self._world!r}, but it was to be reset to {world!r}: give a world"
                " of the same items and types."
            )
        self._world.take(world)
        self.parts.walk.score[0] = 0.0
        self._start = None
        self.parts.begin()

    def advance(self, stream: Any, temperature: float, steps: int, *, episode: int = 0) -> int:
        """Make ``steps`` steps; return how many changed the world."""
        check_number("temperature", temperature, above=0)
        check_count("steps", steps, 0)
        before = int(self.parts.walk.tally[ACCEPTED])
        if self._tap is not None:
            if self._follows:
                self._tap.source = stream
            self.parts.advance(steps, float(temperature), episode=episode)
        else:
            self._stream_state[:] = stream.state
            self.parts.advance(steps, float(temperature), episode=episode)
            stream.state[:] = self._stream_state
        overflow = int(self.frame.step["overflow"][0])
        if overflow == 2:
            raise TemplateError(
                "touched of a DynamicTemplate returned more keys than max_touched: raise max_touched."
            )
        check_faults(overflow)
        if overflow:
            raise InvalidArgumentError(
                "a template's gradient did not fit its list: declare how many entries the gradient of"
                " one change may have, with Program(gradient=..., entries=...)."
            )
        changed = int(self.parts.walk.tally[ACCEPTED]) - before
        if changed and getattr(self.kernel, "estimates", False):  # the gains are not those of the score
            self._start, self.parts.walk.score[0] = None, 0.0
        return changed


def _groups(kernel: Any, world: Any) -> NDArray[np.int32] | None:
    """Return group numbers, such that only items of one group can come together.

    None if any two items may, or if no template uses groups.
    """
    proposer: Any = getattr(kernel, "proposer", None)
    uses_groups = any(getattr(template, "asks_for_groups", False) for template in kernel.model.templates)
    return proposer.groups(world) if uses_groups and hasattr(proposer, "groups") else None


def _has_gain(program: Program) -> bool:
    """Whether the gain of a move is computed directly rather than from the gradient."""
    return "gain" in program.roles or ("gains" in program.roles and "gradient" not in program.roles)


def check_start(kernel: Any, world: Any) -> None:
    """Refuse a world that the kernel's blocks or candidates do not fit."""
    check_kind(kernel, world)
    proposer: Any = getattr(kernel, "proposer", None)
    if hasattr(proposer, "check"):
        proposer.check(world)
