r"""The dual over the measured numbers, solved by L-BFGS within bounds.

.. math:: \max_s\; -\log Z(\theta - A^\top s) - \sum_j \psi_j\, \ell_j^*(s_j / \psi_j)

has one unknown for each measured number, a gradient from one answer of the base model, :math:`a -
\nabla\Phi^*(s)`, and no constraint except an interval for each unknown. Unknowns at the end of their interval
whose gradient points outward stay there; the others move along the quasi-Newton direction and stop at their
ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.inference.message_passing.projection.energies import MeasuredEnergy
from factorwise.inference.message_passing.projection.problem import Iterate, Point, Problem
from factorwise.inference.message_passing.projection.results import Projection, Stopping, run
from factorwise.kernels.numeric.quasi_newton_steps import inverse_curvature_times
from factorwise.types import Bools, Floats
from factorwise.validation import check_count

# share of the way to the end of an interval, where the conjugate is infinite, that steps keep clear
INSIDE = 1e-12
SUFFICIENT = 1e-4  # share of the predicted rise of the bound
SHORTEST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class DualLBFGS:
    """L-BFGS on the dual, for weighted sums of losses of measured numbers.

    memory
        Number of pairs of steps and gradient changes to remember.
    """

    memory: int = 12

    def __post_init__(self) -> None:
        check_count("memory", self.memory)

    def solve(self, problem: Problem, stopping: Stopping) -> Projection:
        """Run until a stopping rule applies."""
        problem.require_convex("DualLBFGS")
        energy = problem.energy
        if not isinstance(energy, MeasuredEnergy):
            raise InvalidArgumentError(
                f"DualLBFGS needs the conjugate of the energy and its slope, which {energy.name!r} of type"
                f" {type(energy).__name__} does not have: use MirrorDescent()."
            )
        return run(problem, self._steps(problem, energy), stopping, "dual L-BFGS")

    def _steps(self, problem: Problem, energy: MeasuredEnergy) -> Iterator[Iterate]:
        point = problem.start()
        yield Iterate(point, 0.0)
        low, high = energy.slope_bounds
        first = _first_shift(energy, point)
        if first.any():
            point = problem.point(first)
            yield Iterate(point, 0.0)
        history = _History(self.memory, len(point.shift))
        gradient = _gradient(energy, point)
        while True:
            free = ~(((point.shift <= low) & (gradient > 0)) | ((point.shift >= high) & (gradient < 0)))
            inverse = 1.0 / np.maximum(_diagonal(energy, point), 1e-300)
            direction = -history.times(gradient, inverse, free)
            better = _searched(problem, energy, point, direction, gradient)
            if better is None and not history.count:
                return
            if better is None:
                history.clear()
                continue
            before, old = point, gradient
            point = better
            gradient = _gradient(energy, point)
            history.add(point.shift - before.shift, gradient - old)
            yield Iterate(point, 0.0)


class _History:
    """The last steps and gradient changes, and the curvature that they imply."""

    def __init__(self, memory: int, size: int) -> None:
        self._steps, self._changes = np.empty((2, memory, size))
        self._shares = np.empty((memory, 2))
        self._added = 0
        self.count = 0

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a pair if the gradient rose along it, which rounding may prevent."""
        if float(step @ change) > 1e-14 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            row = self._added % len(self._steps)
            self._steps[row], self._changes[row] = step, change
            self._added += 1
            self.count = min(self.count + 1, len(self._steps))

    def clear(self) -> None:
        """Drop all pairs."""
        self.count = 0

    def times(self, gradient: Floats, diagonal: Floats, free: Bools) -> Floats:
        """Multiply by the inverse curvature among the free unknowns, starting from a diagonal one."""
        newest_first = np.arange(self._added - 1, self._added - 1 - self.count, -1) % len(self._steps)
        result = gradient.copy()
        inverse_curvature_times(
            self._steps, self._changes, newest_first, diagonal, free, self._shares, result
        )
        return result


def _searched(
    problem: Problem, energy: MeasuredEnergy, point: Point, direction: Floats, gradient: Floats
) -> Point | None:
    """Return a point along the direction with a sufficient rise of the bound; None if there is none."""
    low, high = energy.slope_bounds
    assert point.bound is not None
    length = 1.0
    while length > SHORTEST:
        shift = np.clip(point.shift + length * direction, low, high)
        inside = point.shift + (1.0 - INSIDE) * (shift - point.shift)
        shift = np.where(energy.losses.open_ended & (shift >= high), inside, shift)
        promised = float(gradient @ (point.shift - shift))
        if promised <= 0.0:
            return None
        trial = problem.point(shift)
        assert trial.bound is not None
        rise = trial.bound - point.bound
        if rise >= SUFFICIENT * promised:
            return trial
        # the top of the parabola through the known slope and height here and the height there
        length *= min(0.5, max(0.5 * promised / (promised - rise), 0.1)) if np.isfinite(rise) else 0.1
    return None


def _gradient(energy: MeasuredEnergy, point: Point) -> Floats:
    """Return the gradient of minus the bound."""
    return energy.conjugate_slope(point.shift) - point.measured


def _diagonal(energy: MeasuredEnergy, point: Point) -> Floats:
    """Return an approximate second derivative of minus the bound: a variance plus a conjugate's curvature."""
    return energy.measurement.squared(point.marginals) + energy.conjugate_curvature(point.shift)


def _first_shift(energy: MeasuredEnergy, start: Point) -> Floats:
    """Return the first shift: zero if that has a finite conjugate, else about the likely slope.

    A count of zero has the slope of its end. A multinomial count has no slope of zero: it begins at that of
    the total of counts over the total of probabilities.
    """
    losses, weights = energy.losses, energy.weights
    _, high = energy.slope_bounds
    counted = losses.logarithmic & (losses.target == 0)
    endless = losses.logarithmic & ~counted & (high == 0.0) & (weights > 0)
    ratio = losses.target[endless].sum() / max(start.measured[endless].sum(), 1e-300)
    return np.where(counted, high, np.where(endless, -weights * ratio, 0.0))
