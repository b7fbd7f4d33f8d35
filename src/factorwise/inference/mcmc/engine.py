"""One chain, however it walks: stepping a plain transition kernel, or in compiled code."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Protocol

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError, require
from factorwise.inference.mcmc.adaptive.engine import JumpEngine
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.assignment_engine import AssignmentEngine
from factorwise.inference.mcmc.assignment_gibbs import BlockGibbs, Gibbs
from factorwise.inference.mcmc.counted_engine import CountedEngine, can_count
from factorwise.inference.mcmc.gradient_engine import GradientEngine
from factorwise.inference.mcmc.kernel import TransitionKernel
from factorwise.inference.mcmc.metropolis import require_exact
from factorwise.inference.mcmc.partition_engine import PartitionEngine, check_start
from factorwise.inference.mcmc.partition_gibbs import PartitionGibbs
from factorwise.inference.mcmc.sampled_engine import SampledEngine, can_sample
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.rng import Stream
from factorwise.world.assignment import Assignment
from factorwise.world.partition import Partition

EngineName = Literal["auto", "compiled", "plain"]


class PlainEngineWarning(UserWarning):
    """The walk runs in plain Python, thousands of times slower, because it has no compiled form."""


class Engine(Protocol):
    """One chain that owns its world."""

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps; return how many changed the world."""
        ...

    @property
    def score(self) -> float:
        """Score of the current world."""
        ...

    @property
    def view(self) -> Any:
        """The current world itself: to look at, until the next step."""
        ...

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        ...


class PlainEngine:
    """A chain that steps a transition kernel as it is written: the reference for the compiled ones."""

    def __init__(self, kernel: TransitionKernel, world: Any, model: Model) -> None:
        check_start(kernel, world)
        self.kernel = kernel
        self._world = world.copy()
        self.score = model.score(world)
        self.factors_seen = 0  # by evaluators that count what they examine

    @property
    def view(self) -> Any:
        """The current world itself: to look at, until the next step."""
        return self._world

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        return self._world.copy()

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Step and apply."""
        changed = 0
        for _ in range(steps):
            step = self.kernel.step(stream, self._world, temperature)
            self.factors_seen += step.examined
            if step.accepted:
                self._world.apply(step.diff)
                self.score += step.gain
                changed += 1
        return changed


def make_engine(kernel: Any, world: Any, engine: EngineName = "auto", like: Engine | None = None) -> Engine:
    """Build the chain that ``engine`` asks for; "auto" walks compiled where there is a compiled form.

    like
        A chain of the same kernel over the same items: it walks the same way, and may share its program.
    """
    if not all(hasattr(kernel, name) for name in ("step", "transitions", "model")):
        raise InvalidArgumentError(
            f"{type(kernel).__name__} is not a transition kernel: give Metropolis(model, proposer),"
            " Gibbs(model), PartitionGibbs(model) or one of your own."
        )
    if not isinstance(world, Partition | Assignment):
        raise InvalidArgumentError(
            f"a chain starts from a Partition or an Assignment, but a {type(world).__name__} was given."
        )
    stranger = (Gibbs, BlockGibbs) if isinstance(world, Partition) else PartitionGibbs
    if isinstance(kernel, stranger):
        raise InvalidArgumentError(
            f"{type(kernel).__name__} does not walk over a {type(world).__name__}: Gibbs and BlockGibbs are"
            " for assignments, PartitionGibbs is for partitions."
        )
    require(engine in ("auto", "compiled", "plain"), "engine", engine, "'auto', 'compiled' or 'plain'")
    if engine != "plain" and not isinstance(like, PlainEngine):
        try:
            if isinstance(world, Partition):
                return _partition_engine(kernel, world, like)
            require_exact(kernel)
            return AssignmentEngine(kernel, world)
        except (NoCompiledFormError, TemplateError) as fault:
            if engine == "compiled":
                raise
            warnings.warn(f"walking in plain Python: {fault}", PlainEngineWarning, stacklevel=4)
    return PlainEngine(kernel, world, kernel.model)


def _partition_engine(kernel: Any, world: Partition, like: Engine | None) -> Engine:
    """Choose by what the kernel asks for and what the model declares."""
    if can_count(kernel, world):
        return CountedEngine(kernel, world, layout=like.layout if isinstance(like, CountedEngine) else None)
    if isinstance(like, PartitionEngine | GradientEngine | SampledEngine):
        program = like.program
    else:
        program = PartitionProgram(kernel.model, world.n_items)
    if can_sample(kernel):
        return SampledEngine(kernel, world, program=program)
    require_exact(kernel)
    if isinstance(getattr(kernel, "proposer", None), AdaptiveSplitMerge):
        return JumpEngine(kernel, world, program=program)
    if program.has_tables:
        return GradientEngine(kernel, world, program=program)
    return PartitionEngine(kernel, world, program=program)
