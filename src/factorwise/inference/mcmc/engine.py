"""One chain, run by stepping a plain transition kernel or by compiled code."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError, require, warn_caller
from factorwise.inference.mcmc.kernel import TransitionKernel
from factorwise.inference.mcmc.walk import Walk, check_start
from factorwise.model.model import Model
from factorwise.rng import Stream

EngineName = Literal["auto", "compiled", "plain"]


class PlainEngineWarning(UserWarning):
    """The walk runs in plain Python, thousands of times slower than compiled code.

    A part of it has no compiled form.
    """


class Engine(Protocol):
    """One chain, which owns its world."""

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps; return how many changed the world."""
        ...

    @property
    def score(self) -> float:
        """Score of the current world."""
        ...

    @property
    def view(self) -> Any:
        """The current world itself: read it only until the next step."""
        ...

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        ...


class PlainEngine:
    """A chain that calls a plain transition kernel: the reference for compiled chains."""

    def __init__(self, kernel: TransitionKernel, world: Any, model: Model) -> None:
        check_start(kernel, world)
        self.kernel = kernel
        self._world = world.copy()
        self.score = model.score(world)
        self.factors_seen = 0  # counted by evaluators that sample factors

    @property
    def view(self) -> Any:
        """The current world itself: read it only until the next step."""
        return self._world

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        return self._world.copy()

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps and apply their diffs; return how many changed the world."""
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
    """Return a chain for the requested engine; "auto" uses compiled code if every part has a compiled form.

    like
        A chain of the same kernel over the same items; the new one uses the same engine and may share its
        program.
    """
    if not all(hasattr(kernel, name) for name in ("step", "model")):
        raise InvalidArgumentError(
            f"{type(kernel).__name__} is not a transition kernel: give Metropolis(model, proposer),"
            " Gibbs(model), PartitionGibbs(model) or your own transition kernel."
        )
    if not all(hasattr(world, name) for name in ("apply", "copy", "canonical")):
        raise InvalidArgumentError(
            "a chain starts from a world such as a Partition or an Assignment, but a"
            f" {type(world).__name__} was given."
        )
    lacking = [name for name in getattr(kernel, "walks_over", ()) if not hasattr(world, name)]
    if lacking:
        raise InvalidArgumentError(
            f"{type(kernel).__name__} does not support a {type(world).__name__}: Gibbs and BlockGibbs"
            " are for assignments, PartitionGibbs is for partitions, WorldGibbs for other worlds."
        )
    require(engine in ("auto", "compiled", "plain"), "engine", engine, "'auto', 'compiled' or 'plain'")
    if engine == "plain":
        try:
            return Walk(kernel, world, interpreted=True)
        except (AttributeError, NoCompiledFormError, TemplateError):  # some part has no program
            return PlainEngine(kernel, world, kernel.model)
    if not isinstance(like, PlainEngine):
        try:
            return Walk(kernel, world)
        except (NoCompiledFormError, TemplateError) as fault:
            if engine == "compiled":
                raise
            warn_caller(
                f"walking in plain Python, which is slow: {fault}",
                PlainEngineWarning,
            )
    return PlainEngine(kernel, world, kernel.model)
