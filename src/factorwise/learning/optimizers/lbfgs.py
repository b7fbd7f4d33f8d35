"""Limited-memory BFGS: steps along minus the gradient times a matrix built from the last few steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.learning.optimizers.base import (
    Ending,
    Monitor,
    OptimizerConfig,
    Optimum,
    Problem,
    Watch,
    refuse_start,
)
from factorwise.learning.optimizers.history import Arrival, HistoryWorkspace
from factorwise.learning.optimizers.line_search import LineTrial, Search, backtracking, more_thuente

# From the current state and the first length to try, to a better point, or None if there is none.
StepRule: TypeAlias = Callable[[HistoryWorkspace, Arrival, float, float], "tuple[Arrival, float] | None"]

# A predicted decrease below this many rounding errors of the value counts as zero.
ROUNDING_ERRORS = 100.0


def lbfgs(problem: Problem, config: OptimizerConfig, watch: Watch | None = None) -> Optimum:
    """Minimize a smooth objective with a Gaussian prior or none."""
    if problem.prior.l1 > 0.0:
        raise InvalidArgumentError(
            f"lbfgs needs a smooth penalty, but the prior has l1 = {problem.prior.l1:g}: use"
            " method='owlqn', or Prior.gaussian."
        )
    return descend(problem, config, watch, partial(wolfe_step, config))


def descend(
    problem: Problem,
    config: OptimizerConfig,
    watch: Watch | None,
    rule: StepRule,
    *,
    steepest: bool = False,
) -> Optimum:
    """Compute directions and step along them until a rule says to stop.

    steepest
        Forget the curvature before each direction, but keep its scale.
    """
    monitor = Monitor(config, watch)
    with Team(config.threads) as team:
        space = HistoryWorkspace(problem, config, team)
        at = space.evaluate(0.0)
        if not at.finite:
            raise refuse_start(at.standing.value)
        space.begin()
        ending = monitor.record(at.standing, space.weights, 0.0, space.evaluations)
        while ending is None:
            if steepest:
                space.forget()
            length = 1.0 if space.remembers else space.first_length or 1.0 / at.standing.gradient_norm
            slope = space.turn(length)
            found = rule(space, at, slope, length) if slope < 0.0 else None
            if found is not None:
                at, step = found
                space.accept()
                ending = monitor.record(at.standing, space.weights, step, space.evaluations)
            elif space.remembers:
                space.forget()
            else:
                ending = _stuck(-slope * length, config.precision * abs(at.standing.value))
        return monitor.result(space.weights, space.evaluations, ending)


def wolfe_step(
    config: OptimizerConfig, space: HistoryWorkspace, at: Arrival, slope: float, length: float
) -> tuple[Arrival, float] | None:
    """Search along the direction for a point that satisfies the Wolfe conditions."""
    latest = at

    def evaluate(step: float) -> LineTrial:
        nonlocal latest
        latest = space.evaluate(step)
        # not defined, or too short to change any weight
        if not latest.finite or not latest.fall_before < 0.0:
            return LineTrial(step, math.nan, math.nan)
        # As a ratio, because weights that change only in their last digits do not change by exactly this
        # step.
        return LineTrial(step, latest.standing.value, slope * latest.fall_after / latest.fall_before)

    start = LineTrial(0.0, at.standing.value, slope)
    noise = config.precision * abs(at.standing.value)
    search = Search(evaluate, start, length, noise, config.max_linesearch)
    if config.line_search == "MoreThuente":
        trial = more_thuente(search)
    else:
        trial = backtracking(search, strong=config.line_search == "StrongBacktracking")
    return None if trial is None else (latest, trial.step)


def _stuck(foretold: float, rounding: float) -> Ending:
    if foretold <= ROUNDING_ERRORS * rounding:
        return Ending(True, "no further improvement within precision")
    return Ending(
        False,
        f"no step along the gradient lowers the value, although a decrease of {foretold:.3g} was"
        " predicted: compare the gradient with finite differences of the value, or raise precision if"
        " the value is that noisy",
    )
