"""Projection of many short chains within one call.

The steps are those of the plain solvers in `factorwise.inference.message_passing.projection`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.shifted_chains import (
    PROFILES,
    Chains,
    Measured,
    Work,
    answer,
    best_path,
    use_table,
)
from factorwise.kernels.compile.compiler import inner, lean_kernel
from factorwise.kernels.numeric.univariate_losses import (
    SMOOTHED_HINGE,
    has_kink,
    loss_conjugate,
    loss_slope,
    loss_value,
    slope_interval,
)
from factorwise.types import Floats, Ints

CONVERGED, OUT_OF_ITERATIONS, STALLED, LOST = range(4)
SHIFT, FOUND, SLOPE, TRIAL, TRIAL_FOUND = range(5)  # rows of `Work.points`: for a point, and for a trial
LARGEST, SMALLEST, GROWTH = 1e12, 1e-12, 4.0


class ProjectedRun(NamedTuple):
    """The results for each chain, in arrays to be written.

    points : float64[2, chains, measurements]
        Shifts and measured values.
    node : float64[places, S]
    pairs : float64[chains or 0, S, S]
        Expected number of each pair, if requested.
    values : float64[2, chains]
        Objective and gap.
    counts : int64[3, chains]
        Iterations, calls, status.
    """

    points: Floats
    node: Floats
    pairs: Floats
    values: Floats
    counts: Ints


@inner
def _energy(measured: Measured, weights: Floats, found: Floats, shift: Floats) -> tuple[float, float]:
    """Return the energy of the measured values and its conjugate at a shift."""
    value, conjugate = 0.0, 0.0
    for row in range(len(found)):
        weight = weights[row]
        kind, target, width = measured.kind[row], measured.target[row], measured.width[row]
        kept = kind <= SMOOTHED_HINGE and shift[row] == 0.0 and found[row] >= target  # the usual case
        if weight > 0.0 and not kept:
            value += weight * loss_value(kind, target, width, found[row])
            conjugate += weight * loss_conjugate(kind, target, width, shift[row] / weight)
    return value, conjugate


@inner
def _slopes(measured: Measured, weights: Floats, found: Floats, slope: Floats) -> None:
    """Write the slope of the energy in each measured value."""
    for row in range(len(found)):
        slope[row] = weights[row] * loss_slope(
            measured.kind[row], measured.target[row], measured.width[row], found[row]
        )


@inner
def _step(measured: Measured, weights: Floats, points: Floats, step: float) -> None:
    """Write the shift after a mirror descent step; at kinks, the step follows the gradient of the dual."""
    for row in range(len(weights)):
        kind, target, width = measured.kind[row], measured.target[row], measured.width[row]
        if has_kink(kind):
            low, high = slope_interval(kind, target, width)
            along = points[SHIFT, row] + step * (points[FOUND, row] - target)
            points[TRIAL, row] = min(max(along, weights[row] * low), weights[row] * high)
        else:
            points[TRIAL, row] = (points[SHIFT, row] + step * points[SLOPE, row]) / (1.0 + step)


@inner
def _allowed(
    points: Floats, step: float, here: tuple[float, float, float], there: tuple[float, float, float]
) -> float:
    """Return the factor by which the step could be longer; points are given as (log Z, energy, conjugate)."""
    if not there[1] < np.inf:
        return 0.0
    moved, turned, bent = 0.0, 0.0, there[1] - here[1]
    for row in range(points.shape[1]):
        moved += points[FOUND, row] * (points[TRIAL, row] - points[SHIFT, row])
        turned += points[TRIAL_FOUND, row] * (points[SHIFT, row] - points[TRIAL, row])
        bent -= points[SLOPE, row] * (points[TRIAL_FOUND, row] - points[FOUND, row])
    if here[2] < np.inf:
        if not there[2] < np.inf:
            return 0.0
        most, found = 0.5 * (moved - (there[2] - here[2])), moved + there[0] - here[0]
    else:
        most, found = (turned + here[0] - there[0]) / step, bent
    if found <= 1e-14 * max(1.0, max(abs(here[0]), abs(here[1]))):
        return np.inf
    return max(most, 0.0) / found


@inner
def _copy(source: Floats, target: Floats) -> None:
    for index in range(len(target)):
        target[index] = source[index]


@lean_kernel
def project_range(
    chains: Chains,
    measured: Measured,
    descent: bool,
    beta: float,
    tolerance: float,
    max_iterations: int,
    work: Work,
    outcome: ProjectedRun,
    first: int,
    last: int,
) -> None:
    """Project chains ``first`` to ``last`` by adaptive mirror descent, or by RDA; write the results."""
    points = work.points
    for chain in range(first, last):
        weights = measured.weights[chain if len(measured.weights) > 1 else 0]
        best = outcome.points[0, chain]
        least, bound = np.inf, -np.inf
        iteration, calls, status, step = -1, 0, OUT_OF_ITERATIONS, 1.0
        log_partition, energy, conjugate, latest = 0.0, 0.0, 0.0, False
        points[TRIAL] = 0.0
        use_table(chains.edge_weight, chains.table[chain], work.edge_weight[0])
        while True:
            there = answer(chains, chain, measured, work, points[TRIAL], points[TRIAL_FOUND])
            calls += 1
            if there != there:
                status = LOST
                break
            trial_energy, trial_conjugate = _energy(measured, weights, points[TRIAL_FOUND], points[TRIAL])
            if descent and iteration >= 0:
                here = (log_partition, energy, conjugate)
                allowed = _allowed(points, step, here, (there, trial_energy, trial_conjugate))
                if allowed < 1.0 and step <= SMALLEST:
                    status = STALLED
                    break
                if allowed < 1.0:
                    step *= min(0.5, max(0.9 * allowed, 0.05))
                    _step(measured, weights, points, step)
                    continue
                step = min(step * min(GROWTH, max(1.0, 0.9 * allowed)), LARGEST)
            iteration += 1
            log_partition, energy, conjugate = there, trial_energy, trial_conjugate
            _copy(points[TRIAL], points[SHIFT])
            _copy(points[TRIAL_FOUND], points[FOUND])
            objective = energy - log_partition
            for row in range(len(weights)):
                objective -= points[SHIFT, row] * points[FOUND, row]
            bound = max(bound, -log_partition - conjugate)
            latest = objective <= least
            if latest:
                least = objective
                _copy(points[SHIFT], best)
            if least - bound <= tolerance * max(1.0, abs(least)):
                status = CONVERGED
                break
            if iteration >= max_iterations:
                break
            _slopes(measured, weights, points[FOUND], points[SLOPE])
            if descent:
                _step(measured, weights, points, step)
            else:
                # the shift is t / (t + beta) times the average of t slopes: the sum of slopes over t + beta
                for row in range(len(weights)):
                    so_far = (iteration + beta) * points[SHIFT, row] if iteration > 0 else 0.0
                    points[TRIAL, row] = (so_far + points[SLOPE, row]) / (iteration + 1 + beta)
        outcome.values[0, chain] = least
        outcome.values[1, chain] = max(least - bound, 0.0)
        outcome.counts[0, chain] = iteration
        outcome.counts[1, chain] = calls
        outcome.counts[2, chain] = status
        if status != LOST:
            if latest and status != STALLED:
                _copy(points[FOUND], outcome.points[1, chain])
            else:  # compute again at the best shift, to get its marginals
                answer(chains, chain, measured, work, best, outcome.points[1, chain])
            begin, end = chains.start[chain], chains.start[chain + 1]
            for place in range(end - begin):
                _copy(work.rows[2, place], outcome.node[begin + place])
            if len(outcome.pairs) > 0:
                size = chains.node.shape[1]
                for left in range(size):
                    _copy(work.statistics[0, (PROFILES + left) * size :], outcome.pairs[chain, left])


@lean_kernel
def best_range(
    chains: Chains, measured: Measured, shifts: Floats, work: Work, path: Ints, first: int, last: int
) -> None:
    """Write a best path (int64[places]) of chains ``first`` to ``last`` at their shifted scores."""
    for chain in range(first, last):
        use_table(chains.edge, chains.table[chain], work.edge_weight[0])
        own = path[chains.start[chain] : chains.start[chain + 1]]
        best_path(chains, chain, measured, work, shifts[chain], own)
