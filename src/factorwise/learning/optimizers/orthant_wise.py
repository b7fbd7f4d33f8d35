"""Orthant-wise limited-memory quasi-Newton: L-BFGS for objectives with an l1 penalty.

Within an orthant, where no weight changes its sign, the absolute value is linear. Each step stays in the
orthant into which the pseudo-gradient points: a weight that would change its sign stops at zero. The
curvature is that of the smooth part, including the squared penalty. So far this is the method of Andrew and
Gao (2007), which also keeps only those entries of the direction that oppose the pseudo-gradient. That drives
weights to zero quickly, but later loses what the curvature says of how weights balance each other. So it is
done for all weights only while the number of active ones still changes fast, and then only for those at zero,
which would leave the orthant otherwise.
"""

from __future__ import annotations

from functools import partial

from factorwise.learning.optimizers.base import OptimizerConfig, Optimum, Problem, Watch
from factorwise.learning.optimizers.history import Arrival, HistoryWorkspace
from factorwise.learning.optimizers.lbfgs import descend
from factorwise.learning.optimizers.line_search import ENOUGH, SHORTER, SLOPE_ENOUGH

MOST_GROWTH = 10.0  # how much longer than the last step a step may initially be
SHORTEST = 0.1  # the smallest factor by which a step is shortened at once
FAR = 4  # trials after which steps are only halved: if they still fail, the slope is wrong


def owlqn(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Minimize a smooth objective with any prior; without l1 no weight is held at zero."""
    return descend(problem, config, watch, partial(orthant_step, config))


def orthant_step(
    config: OptimizerConfig, space: HistoryWorkspace, at: Arrival, slope: float, length: float
) -> tuple[Arrival, float] | None:
    """Shorten the step until the value decreases enough compared with the pseudo-gradient's prediction.

    While signs still change, the curvature of one orthant may make a step far too long in another. So a step
    is not much longer than the last one, and if it fails badly it is shortened, to a tenth at most, to the
    minimum of a parabola through both values with the predicted slope. If the values differ only by rounding,
    slopes decide, as in the line searches.
    """
    value = at.standing.value
    noise = config.precision * abs(value)
    length = min(length, MOST_GROWTH / max(space.growth, MOST_GROWTH))
    for number in range(config.max_linesearch):
        trial = space.evaluate(length)
        if trial.finite and trial.fall_before < 0.0:
            if trial.standing.value <= value + ENOUGH * trial.fall_before:
                return trial, length
            level = abs(trial.standing.value - value) <= noise
            if level and trial.slope_after <= (2.0 * SLOPE_ENOUGH - 1.0) * trial.fall_before:
                return trial, length
        length *= _shorter(value, trial) if number < FAR else SHORTER
    return None


def _shorter(value: float, trial: Arrival) -> float:
    """Return the factor by which to shorten a step that does not decrease enough from ``value``."""
    rise = trial.standing.value - value
    if not trial.finite or trial.fall_before >= 0.0 or rise <= trial.fall_before:
        return SHORTER
    return min(SHORTER, max(SHORTEST, 0.5 * trial.fall_before / (trial.fall_before - rise)))
