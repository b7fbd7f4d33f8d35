"""Orthant-wise limited-memory quasi-Newton: L-BFGS for objectives with an l1 penalty.

Within an orthant, where no weight changes its sign, the absolute value is linear. Each step stays in the
orthant that the pseudo-gradient points into: a weight that would change its sign stops at zero. The curvature
is that of the smooth part, the squared penalty included. So far this is the method of Andrew and Gao (2007),
which also keeps only those entries of the direction that go against the pseudo-gradient. That drives weights
to zero quickly, but later throws away what the curvature knows of how weights balance each other. So it is
done for all weights only while the number of active ones still changes fast, and then for those at zero,
which would leave the orthant otherwise.
"""

from __future__ import annotations

from functools import partial

from factorwise.learning.optimizers.base import OptimizerConfig, Optimum, Problem, Watch
from factorwise.learning.optimizers.history import Arrival, HistoryWorkspace
from factorwise.learning.optimizers.lbfgs import descend
from factorwise.learning.optimizers.line_search import ENOUGH, SHORTER, SLOPE_ENOUGH

MOST_GROWTH = 10.0  # how many times as long as the last step one may be at first
SHORTEST = 0.1  # what a step is multiplied with at once, at the least
FAR = 4  # trials after which steps are only halved: if they still go astray, the slope is wrong


def owlqn(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Minimize a smooth objective with any prior; without l1 no weight is held at zero."""
    return descend(problem, config, watch, partial(orthant_step, config))


def orthant_step(
    config: OptimizerConfig, space: HistoryWorkspace, at: Arrival, slope: float, length: float
) -> tuple[Arrival, float] | None:
    """Shorten the step until the value falls enough against what the pseudo-gradient foretells.

    While signs still change, the curvature of one orthant may send the step very far in another: so it is not
    much longer than the last one, and if it went far astray it is cut to a tenth, not halved many times: to
    where a parabola through both values, with the slope foretold, has its minimum. Where the values differ by
    no more than rounding, slopes decide, as in the line searches.
    """
    value = at.standing.value
    noise = config.precision * abs(value)
    length = min(length, MOST_GROWTH / max(space.growth, MOST_GROWTH))
    for number in range(config.max_linesearch):
        there = space.evaluate(length)
        if there.finite and there.fall_before < 0.0:
            if there.standing.value <= value + ENOUGH * there.fall_before:
                return there, length
            level = abs(there.standing.value - value) <= noise
            if level and there.slope_after <= (2.0 * SLOPE_ENOUGH - 1.0) * there.fall_before:
                return there, length
        length *= _shorter(value, there) if number < FAR else SHORTER
    return None


def _shorter(value: float, there: Arrival) -> float:
    """Return by which factor to shorten a step that does not fall enough from ``value``."""
    rise = there.standing.value - value
    if not there.finite or there.fall_before >= 0.0 or rise <= there.fall_before:
        return SHORTER
    return min(SHORTER, max(SHORTEST, 0.5 * there.fall_before / (there.fall_before - rise)))
