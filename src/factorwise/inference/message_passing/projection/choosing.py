"""Project with the solver that suits the energy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from factorwise.inference.message_passing.projection.bases import BaseModel
from factorwise.inference.message_passing.projection.dual import DualLBFGS
from factorwise.inference.message_passing.projection.energies import Energy, MeasuredEnergy
from factorwise.inference.message_passing.projection.mirror_descent import MirrorDescent
from factorwise.inference.message_passing.projection.problem import Problem
from factorwise.inference.message_passing.projection.results import Progress, Projection, Stopping


class Solver(Protocol):
    """A solver of projection problems."""

    def solve(self, problem: Problem, stopping: Stopping) -> Projection:
        """Run until a stopping rule applies."""
        ...


def choose_solver(energy: Energy) -> Solver:
    """Return the dual solver if the energy has a dual over its measurements, else mirror descent."""
    return DualLBFGS() if isinstance(energy, MeasuredEnergy) else MirrorDescent()


def project(
    base: BaseModel,
    energy: Energy,
    *,
    solver: Solver | None = None,
    tolerance: float = 1e-6,
    max_iterations: int = 1_000,
    seconds: float | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> Projection:
    """Minimise minus the expected score, minus the entropy, plus the energy, over the marginals of ``base``.

    solver
        `RDA`, `MirrorDescent`, `AcceleratedRDA` or `DualLBFGS`; by default chosen by the energy.
    tolerance, max_iterations, seconds, callback
        See `Stopping`.
    """
    stopping = Stopping(
        tolerance=tolerance, max_iterations=max_iterations, seconds=seconds, callback=callback
    )
    return (solver or choose_solver(energy)).solve(Problem(base, energy), stopping)
