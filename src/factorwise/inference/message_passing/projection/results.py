"""The stopping rules and results that all projection solvers share, and their loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from factorwise.errors import require
from factorwise.inference.message_passing.projection.problem import Iterate, Point, Problem
from factorwise.types import Floats, Int64s
from factorwise.validation import check_count, check_number

Ended = Literal["converged", "iterations", "time", "callback", "interrupted", "stalled"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a callback gets after each iteration; ``gap`` is None if there is no certificate yet."""

    iteration: int
    objective: float
    gap: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """When to stop; however a run ends, its marginals are feasible.

    tolerance
        Gap that counts as converged, relative to the objective's size (at least 1). Without a certificate:
        the squared length of the last step in the geometry of the entropy, per squared share of the way to
        the slope.
    max_iterations
        Largest number of steps.
    seconds
        Largest wall time; None for no limit.
    callback
        Called after each iteration; the run ends if it returns true.
    """

    tolerance: float = 1e-6
    max_iterations: int = 1_000
    seconds: float | None = None
    callback: Callable[[Progress], object] | None = None

    def __post_init__(self) -> None:
        check_number("tolerance", self.tolerance, least=0)
        check_count("max_iterations", self.max_iterations, 0)
        require(
            self.seconds is None or self.seconds > 0, "seconds", self.seconds, "greater than zero or None"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The result of a run: the visited point with the lowest objective.

    marginals : float64[size]
        Of variables and factors, in the order of the base model's layout.
    shift : float64[measurements]
        s: the marginals are those of the base model with scores theta - A's.
    measured : float64[measurements]
        The energy's measurements of the marginals.
    objective
    gap
        Upper limit of how far the objective is above the minimum; None for energies that are not convex.
    trace : float64[iterations + 1]
        Objective at the start and after each iteration.
    iterations, calls
        Number of steps, and of calls of the base model.
    ended
        Why the run stopped.
    method
        Name of the solver.
    """

    problem: Problem = field(repr=False)
    marginals: Floats = field(repr=False)
    shift: Floats = field(repr=False)
    measured: Floats = field(repr=False)
    objective: float
    gap: float | None
    trace: Floats = field(repr=False)
    iterations: int
    calls: int
    ended: Ended
    method: str

    @property
    def converged(self) -> bool:
        """Whether the run met its tolerance."""
        return self.ended == "converged"

    @property
    def node(self) -> tuple[Floats, ...]:
        """Marginals of each variable."""
        return self.problem.base.layout.split(self.marginals)[0]

    @property
    def factor(self) -> tuple[Floats, ...]:
        """Marginals of each factor of two or more variables."""
        return self.problem.base.layout.split(self.marginals)[1]

    @property
    def scores(self) -> Floats:
        """Shifted scores of all variables and factors, rho; at the optimum, theta minus the gradient."""
        return self.problem.base.scores(self._moved)

    def best(self) -> Int64s:
        """Return a most probable setting at the shifted scores: the prediction."""
        return self.problem.base.best(self._moved)

    @property
    def _moved(self) -> Floats:
        return self.problem.energy.measurement.adjoint(self.shift)


class SolverRecord:
    """The record of a run: the best point, the highest bound, the trace, and whether to stop."""

    def __init__(self, problem: Problem, stopping: Stopping) -> None:
        self.problem = problem
        self.stopping = stopping
        self.best: Point | None = None
        self.last: Point | None = None
        self.trace: list[float] = []
        self.ended: Ended = "iterations"
        self._bound = -np.inf
        self._deadline = None if stopping.seconds is None else time.monotonic() + stopping.seconds
        self._small = stopping.tolerance

    @property
    def gap(self) -> float | None:
        """Upper limit of how far the best objective is above the minimum."""
        if self.best is None or self._bound == -np.inf:
            return None
        return max(self.best.objective - self._bound, 0.0)

    def enough(self, iterate: Iterate) -> bool:
        """Record an iterate; return whether to stop after it."""
        point, before = iterate.point, self.last
        self.last = point
        self.trace.append(point.objective)
        self._note(point)
        iteration = len(self.trace) - 1
        if self._within(self.gap) or (before is not None and self._settled(point, before, iterate.share)):
            self.ended = "converged"
            return True
        callback = self.stopping.callback
        if callback is not None and callback(Progress(iteration, point.objective, self.gap)):
            self.ended = "callback"
            return True
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.ended = "time"
            return True
        return iteration >= self.stopping.max_iterations

    def result(self, method: str) -> Projection:
        """Return the best point with all its marginals."""
        point, problem = self.best, self.problem
        assert point is not None, "a run visits its start"
        return Projection(
            problem,
            problem.base.marginals(problem.energy.measurement.adjoint(point.shift)),
            point.shift,
            point.measured,
            point.objective,
            self.gap,
            np.array(self.trace),
            len(self.trace) - 1,
            problem.calls,
            self.ended,
            method,
        )

    def _note(self, point: Point) -> None:
        if self.best is None or point.objective <= self.best.objective:
            self.best = point
        if point.bound is not None:
            self._bound = max(self._bound, point.bound)

    def _within(self, gap: float | None) -> bool:
        assert self.best is not None
        return gap is not None and gap <= self.stopping.tolerance * max(1.0, abs(self.best.objective))

    def _settled(self, point: Point, before: Point, share: float) -> bool:
        """Whether the last step was short enough to stop, for energies without a conjugate."""
        if point.conjugate is not None or share <= 0.0:
            return False
        length = float((point.shift - before.shift) @ (before.measured - point.measured)) / share**2
        if length > self._small * max(1.0, abs(point.objective)):
            return False
        if not self.problem.energy.convex:
            return True
        # where the shift is a slope, its conjugate follows from Fenchel's equality at the previous point
        self._small *= 0.1
        proof = self.problem.point(point.slope)
        conjugate = float(point.slope @ point.measured) - point.energy
        self._bound = max(self._bound, -proof.log_partition - conjugate)
        self._note(proof)
        return self._within(self.gap)


def run(problem: Problem, steps: Iterator[Iterate], stopping: Stopping, method: str) -> Projection:
    """Follow the steps of a solver until a stopping rule applies; an interrupt ends a run, too."""
    record = SolverRecord(problem, stopping)
    try:
        for iterate in steps:
            if record.enough(iterate):
                break
        else:
            record.ended = "stalled"
    except KeyboardInterrupt:
        if record.best is None:
            raise
        record.ended = "interrupted"
    return record.result(method)
