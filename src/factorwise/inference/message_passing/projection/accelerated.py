r"""Accelerated Bethe-RDA, which finds its own constant.

.. math:: u_t = (1 - c_t) \mu_{t-1} + c_t \nu_{t-1}, \quad
          \bar g_t = (1 - c_t) \bar g_{t-1} + c_t \nabla L(u_t), \quad
          \nu_t = \mathrm{marginals}\Bigl(\theta - \tfrac{t(t+1)}{4K + t(t+1)} \bar g_t\Bigr), \quad
          \mu_t = (1 - c_t) \mu_{t-1} + c_t \nu_t

with :math:`c_t = 2 / (t + 1)` and K the smoothness of the energy relative to the entropy. Only measured
numbers are averaged, never marginals: a point :math:`\nu_t` is what a run returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from factorwise.inference.message_passing.projection.problem import Iterate, Point, Problem
from factorwise.inference.message_passing.projection.results import Projection, Stopping, run
from factorwise.validation import check_number

EASING = 0.8  # factor per iteration, so that one difficult region does not shorten the steps of the whole run


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratedRDA:
    """Accelerated dual averaging for convex energies without kinks.

    smoothness
        Initial guess of K; doubled whenever it proves too small, and reduced a little in every iteration.
    restart
        Restart from the current point whenever the objective rises, which drops momentum in the wrong
        direction.

    Implements: vilnis2015bethe, Alg. 5, with the scores themselves not shrunk.
    """

    smoothness: float = 1.0
    restart: bool = True

    def __post_init__(self) -> None:
        check_number("smoothness", self.smoothness, above=0)

    def solve(self, problem: Problem, stopping: Stopping) -> Projection:
        """Run until a stopping rule applies.

        Raise `ConvexityError` for energies that are not convex and smooth.
        """
        problem.require_convex("AcceleratedRDA")
        problem.require_smooth("AcceleratedRDA")
        return run(problem, self._steps(problem), stopping, "accelerated RDA")

    def _steps(self, problem: Problem) -> Iterator[Iterate]:
        energy = problem.energy
        center = point = problem.start()
        yield Iterate(point, 0.0)
        smoothness = self.smoothness
        measured, average, time = point.measured, np.zeros_like(point.shift), 0
        while True:
            time += 1
            share = 2.0 / (time + 1)
            looked = (1.0 - share) * measured + share * point.measured
            value, slope = energy.value_of(looked), energy.slope_of(looked)
            drawn = (1.0 - share) * average + share * slope
            while True:
                pull = 4.0 * smoothness / (time * (time + 1))
                trial = problem.point((drawn + pull * center.shift) / (1.0 + pull))
                moved = (1.0 - share) * measured + share * trial.measured
                bent = energy.value_of(moved) - value - float(slope @ (moved - looked))
                if bent <= share**2 * smoothness * max(trial.divergence(point), 0.0) + _noise(point):
                    break
                smoothness *= 2.0
            rises = trial.objective > point.objective
            yield Iterate(trial, share)
            point, measured, average = trial, moved, drawn
            smoothness *= EASING
            if self.restart and rises:
                center, measured, average, time = point, point.measured, np.zeros_like(average), 0


def _noise(point: Point) -> float:
    return 1e-13 * max(1.0, abs(point.log_partition), abs(point.energy))
