r"""Bethe mirror descent with adaptive steps.

.. math:: \theta_t = \frac{\theta_{t-1} + \eta_t (\theta - \nabla L(\mu_{t-1}))}{1 + \eta_t}

because the gradient of the entropy at the marginals of a tree is minus their scores. The shift :math:`\theta
- \theta_t` moves a share :math:`\eta / (1 + \eta)` of the way to the gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from factorwise.errors import require
from factorwise.inference.message_passing.projection.problem import Iterate, Point, Problem
from factorwise.inference.message_passing.projection.results import Projection, Stopping, run
from factorwise.validation import check_number

Schedule = Callable[[int], float]

LARGEST, SMALLEST = 1e12, 1e-12  # limits of steps, beyond which nothing changes
GROWTH = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorDescent:
    """Mirror descent; with adaptive steps it is the default for energies without a short dual.

    step
        "adaptive"; or one length for all iterations; or a function of the iteration, counted from 1, such as
        ``inverse_time()``.

    Implements: vilnis2015bethe, Alg. 4.
    """

    step: Literal["adaptive"] | float | Schedule = "adaptive"

    def __post_init__(self) -> None:
        fits = self.step == "adaptive" or callable(self.step) or (np.isreal(self.step) and self.step > 0)
        require(bool(fits), "step", self.step, "'adaptive', a number above zero, or a function")

    def solve(self, problem: Problem, stopping: Stopping) -> Projection:
        """Run until a stopping rule applies."""
        return run(problem, self.steps(problem), stopping, "mirror descent")

    def steps(self, problem: Problem) -> Iterator[Iterate]:
        """Yield the start and the point after each step; adaptive steps end when none helps any more."""
        return _adaptive(problem) if self.step == "adaptive" else self._scheduled(problem)

    def _scheduled(self, problem: Problem) -> Iterator[Iterate]:
        step = self.step
        point = problem.start()
        yield Iterate(point, 0.0)
        time = 0
        while True:
            time += 1
            length = step(time) if callable(step) else float(step)
            require(length > 0, f"step({time})", length, "greater than zero")
            share = length / (1.0 + length)
            point = problem.toward(point, point.slope, share)
            yield Iterate(point, share)


def inverse_time(convexity: float = 1.0) -> Schedule:
    """Return the schedule ``1 / (convexity t)``, for which averages are known to converge."""
    check_number("convexity", convexity, above=0)
    return lambda time: 1.0 / (convexity * time)


def _adaptive(problem: Problem) -> Iterator[Iterate]:
    """Yield steps whose lengths adapt to their gains.

    A step that was too long is repeated with a shorter length; the last step determines how long the next one
    may be.
    """
    point = problem.start()
    yield Iterate(point, 0.0)
    step = 1.0
    while True:
        share = step / (1.0 + step)
        trial = problem.point(problem.energy.moved(point.measured, point.slope, point.shift, step))
        certain = point.conjugate is not None and point.conjugate < np.inf
        allowed = (_bound_rises if certain else _energy_is_majorized)(point, trial, step)
        if allowed < 1.0 and step > SMALLEST:
            step *= min(0.5, max(0.9 * allowed, 0.05))
            continue
        if allowed < 1.0:
            return
        yield Iterate(trial, share)
        point = trial
        step = min(step * min(GROWTH, max(1.0, 0.9 * allowed)), LARGEST)


def _bound_rises(point: Point, trial: Point, step: float) -> float:
    """Return how much longer the step may be for the lower bound to rise by half of the predicted amount.

    The bound is concave in the shift: its rise is the amount that its slope at the point predicts minus a
    divergence.
    """
    assert point.conjugate is not None
    assert trial.conjugate is not None
    if not trial.energy < np.inf or not trial.conjugate < np.inf:
        return 0.0
    promised = float(point.measured @ (trial.shift - point.shift)) - (trial.conjugate - point.conjugate)
    return _ratio(0.5 * promised, point.divergence(trial), point)


def _energy_is_majorized(point: Point, trial: Point, step: float) -> float:
    """Return how much longer the step may be for its model of the energy to stay above the energy.

    Then the objective decreases, convex or not.
    """
    if not trial.energy < np.inf:
        return 0.0
    bent = trial.energy - point.energy - float(point.slope @ (trial.measured - point.measured))
    return _ratio(trial.divergence(point) / step, bent, point)


def _ratio(most: float, actual: float, point: Point) -> float:
    noise = 1e-14 * max(1.0, abs(point.log_partition), abs(point.energy))
    if actual <= noise:
        return np.inf
    return max(most, 0.0) / actual
