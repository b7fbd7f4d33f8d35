r"""Bethe-RDA: regularised dual averaging, with the entropy as distance.

.. math:: \bar g_t = \tfrac{t - 1}{t} \bar g_{t-1} + \tfrac1t \nabla L(\mu_{t-1}), \qquad
          \theta_t = \theta - \tfrac{t}{t + \beta} \bar g_t, \qquad \mu_t = \mathrm{marginals}(\theta_t)

The gradient is that at the previous marginals. :math:`\beta = 0` needs no tuning. The method is known to
converge for bounded slopes. Those of Poisson and multinomial losses are unbounded, and if counts are far from
the base model's expectation, the first step may go so far that no later one comes back: :math:`\beta` can
then be found from the first step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from factorwise.errors import require
from factorwise.inference.message_passing.projection.problem import Iterate, Point, Problem
from factorwise.inference.message_passing.projection.results import Projection, Stopping, run

MOST_DOUBLINGS = 40  # of beta, until the first step is far smaller than rounding errors


@dataclass(frozen=True, slots=True, kw_only=True)
class RDA:
    """Regularised dual averaging.

    beta
        Pull towards the base model, the constant of beta_t: larger values give slower, steadier first steps.
        None: the smallest of 0, 1, 3, 7 and so on with which the first step lowers the objective. The shift
        then falls short of the slope by a share of about beta / t, so the certified gap shrinks later than
        the true one.
    average
        Return the mean of all marginals visited, for which the rate of ln(t) / t is known, instead of the
        best point; all are then computed in every iteration. Its ``objective`` is an upper bound on that of
        the mean, and ``shift``, from which predictions are made, is still that of the best point.

    Implements: vilnis2015bethe, Alg. 1 and Proposition 4.
    """

    beta: float | None = 0.0
    average: bool = False

    def __post_init__(self) -> None:
        require(self.beta is None or self.beta >= 0, "beta", self.beta, "zero or more, or None")

    def solve(self, problem: Problem, stopping: Stopping) -> Projection:
        """Run until a stopping rule applies."""
        if not self.average:
            return run(problem, self.steps(problem), stopping, "RDA")
        problem.require_convex("RDA(average=True)")
        mean = _Mean(problem)
        best = run(problem, mean.watched(self.steps(problem)), stopping, "averaged RDA")
        objective = mean.objective
        gap = None if best.gap is None else best.gap + objective - best.objective
        return replace(best, marginals=mean.marginals, measured=mean.measured, objective=objective, gap=gap)

    def steps(self, problem: Problem) -> Iterator[Iterate]:
        """Yield the start and the point after each step, without end."""
        point = problem.start()
        yield Iterate(point, 0.0)
        beta = _steadying(problem, point) if self.beta is None else self.beta
        average = point.shift
        time = 0
        while True:
            time += 1
            average = average + (point.slope - average) / time
            point = problem.point(time / (time + beta) * average)
            yield Iterate(point, 1.0 / time)


def _steadying(problem: Problem, start: Point) -> float:
    """Return the smallest tried beta with which the first step lowers the objective."""
    for doublings in range(MOST_DOUBLINGS):
        beta = 2.0**doublings - 1.0
        if problem.point(start.slope / (1.0 + beta)).objective <= start.objective:
            break
    return beta


class _Mean:
    """Means over the points of a run: marginals, measured numbers, and the objective without the energy.

    The last is an upper bound on its value at the mean of marginals, because the entropy is concave.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.marginals = np.zeros(problem.base.layout.size)
        self.measured = np.zeros(problem.energy.measurement.count)
        self._rest = 0.0

    def watched(self, steps: Iterator[Iterate]) -> Iterator[Iterate]:
        """Yield the iterates, and add them to the means."""
        for count, iterate in enumerate(steps, 1):
            point = iterate.point
            moved = self.problem.energy.measurement.adjoint(point.shift)
            self.marginals += (self.problem.base.marginals(moved) - self.marginals) / count
            self.measured += (point.measured - self.measured) / count
            self._rest += (point.objective - point.energy - self._rest) / count
            yield iterate

    @property
    def objective(self) -> float:
        """An upper bound of the objective at the mean of marginals."""
        return self._rest + self.problem.energy.value_of(self.measured)
