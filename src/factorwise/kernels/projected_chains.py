r"""Projection of many short chains, one after the other, within one call.

All chains share a table of transitions; an energy measures sums over a chain that do not depend on its
length: expected numbers of labels (over all places, weighted by how far along they are, at the first and at
the last place) and of neighboring pairs. These are the *statistics* of a chain, float64[4 S + S S]; measured
numbers are sparse combinations of them. So a shift of the measured numbers is a shift of four rows and one
table, and a chain of T places costs three products with a table for each place.

The plain solvers of `factorwise.inference.message_passing.projection` are the twins: the same steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains import viterbi
from factorwise.kernels.compiler import inner, kernel, lean_kernel
from factorwise.kernels.dense_chains import backward_pass, backward_with_sums, forward_pass
from factorwise.kernels.univariate_losses import (
    has_kink,
    loss_conjugate,
    loss_slope,
    loss_value,
    slope_interval,
)
from factorwise.types import Floats, Ints

PROFILES = 4
CONVERGED, OUT_OF_ITERATIONS, STALLED, LOST = range(4)
SHIFT, FOUND, SLOPE, TRIAL, TRIAL_FOUND = range(5)
LARGEST, SMALLEST, GROWTH = 1e12, 1e-12, 4.0


class Chains(NamedTuple):
    """The chains: float64[places, S] scores of all, int64[chains + 1] where each begins, float64[S, S]."""

    node: Floats
    start: Ints
    edge: Floats


class Measured(NamedTuple):
    """The energy.

    row_start, column, coefficient
        Sparse rows over the statistics, one for each measured number.
    profile_used : int64[4]
        Which of the four sums of labels occur.
    pairs_used
        Whether pairs occur.
    kind : int64[measurements]
    target, width : float64[measurements]
        Loss of each measured number.
    weights : float64[chains or 1, measurements]
    """

    row_start: Ints
    column: Ints
    coefficient: Floats
    profile_used: Ints
    pairs_used: bool
    kind: Ints
    target: Floats
    width: Floats
    weights: Floats


class Work(NamedTuple):
    """Scratch of one thread, in few arrays: the compiler takes its time for each.

    rows : float64[4, longest, S]
        Weights, sums over beginnings, marginals, sums over endings.
    ends : float64[longest + S]
        What rows were divided by; one more row.
    statistics : float64[2, 4 S + S S]
        Of the chain, and how much their scores are shifted.
    edge_weight : float64[1, S, S]
    points : float64[5, measurements]
        Of a point: shift, measured, slope; of a trial: shift, measured.
    """

    rows: Floats
    ends: Floats
    statistics: Floats
    edge_weight: Floats
    points: Floats


class Outcome(NamedTuple):
    """What is found for each chain; arrays to be written.

    points : float64[2, chains, measurements]
        Shift and measured numbers.
    node : float64[places, S]
    pairs : float64[chains or 0, S, S]
        Expected number of each pair, if wanted.
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
def _profile(kind: int, place: int, length: int) -> float:
    if kind == 0:
        return 1.0
    if kind == 1:
        return place / (length - 1) if length > 1 else 0.0
    return 1.0 if place == (0 if kind == 2 else length - 1) else 0.0


@inner
def _move_scores(measured: Measured, shift: Floats, moved: Floats) -> None:
    """Carry a shift of the measured numbers back to the statistics."""
    moved[:] = 0.0
    for row in range(len(shift)):
        amount = shift[row]
        if amount != 0.0:
            for at in range(measured.row_start[row], measured.row_start[row + 1]):
                moved[measured.column[at]] += amount * measured.coefficient[at]


@inner
def _shifted_row(
    measured: Measured, node: Floats, moved: Floats, place: int, length: int, row: Floats
) -> None:
    """Write the shifted scores of one place."""
    size = len(row)
    for label in range(size):
        row[label] = node[label]
    for kind in range(PROFILES):
        if measured.profile_used[kind] == 1:
            amount = _profile(kind, place, length)
            if amount != 0.0:
                for label in range(size):
                    row[label] -= amount * moved[kind * size + label]


@inner
def _answer(
    chains: Chains, chain: int, measured: Measured, work: Work, shift: Floats, found: Floats
) -> float:
    """Write the measured numbers at a shift, and the marginals; return log Z, NaN where it is lost."""
    begin, end = chains.start[chain], chains.start[chain + 1]
    length, size = end - begin, chains.node.shape[1]
    weight, alpha = work.rows[0, :length], work.rows[1, :length]
    marginal, onward = work.rows[2, :length], work.rows[3, :length]
    peak, beta = work.ends[:length], work.ends[len(work.ends) - size :]
    statistics, moved = work.statistics[0], work.statistics[1]
    _move_scores(measured, shift, moved)
    log_scale = 0.0
    for place in range(length):
        _shifted_row(measured, chains.node[begin + place], moved, place, length, weight[place])
        log_scale += _exponentiate(weight[place])
    log_scale += (length - 1) * _exponentiate_edges(
        chains.edge, measured.pairs_used, moved, work.edge_weight[0]
    )
    log_partition = forward_pass(weight, work.edge_weight, alpha, peak)
    if not log_partition > -np.inf:
        return np.nan
    if measured.pairs_used:
        pairs = statistics[PROFILES * size :].reshape(size, size)
        meet = backward_with_sums(weight, work.edge_weight, alpha, peak, beta, onward, marginal, pairs)
    else:
        meet = backward_pass(weight, work.edge_weight, alpha, beta, onward[0], marginal)
    if not meet:
        return np.nan
    _sum_labels(measured, marginal, statistics)
    for row in range(len(found)):
        total = 0.0
        for at in range(measured.row_start[row], measured.row_start[row + 1]):
            total += measured.coefficient[at] * statistics[measured.column[at]]
        found[row] = total
    return log_scale + log_partition


@inner
def _exponentiate(row: Floats) -> float:
    """Replace scores by the exp of them less their largest, and return that."""
    peak = -np.inf
    for label in range(len(row)):
        peak = max(peak, row[label])
    for label in range(len(row)):
        row[label] = np.exp(row[label] - peak)
    return peak


@inner
def _exponentiate_edges(edge: Floats, pairs_used: bool, moved: Floats, table: Floats) -> float:
    """Write the weights of transitions; return the largest score, which they were divided by."""
    size = len(edge)
    peak = -np.inf
    for left in range(size):
        own = moved[(PROFILES + left) * size :]
        for right in range(size):
            score = edge[left, right] - own[right] if pairs_used else edge[left, right]
            table[left, right] = score
            peak = max(peak, score)
    for left in range(size):
        for right in range(size):
            table[left, right] = np.exp(table[left, right] - peak)
    return peak


@inner
def _sum_labels(measured: Measured, marginal: Floats, statistics: Floats) -> None:
    """Write the sums of labels that occur."""
    length, size = marginal.shape
    for kind in range(PROFILES):
        if measured.profile_used[kind] == 1:
            row = statistics[kind * size : (kind + 1) * size]
            row[:] = 0.0
            for place in range(length):
                amount = _profile(kind, place, length)
                if amount != 0.0:
                    for label in range(size):
                        row[label] += amount * marginal[place, label]


@inner
def _energy(measured: Measured, weights: Floats, found: Floats, shift: Floats) -> tuple[float, float]:
    """Return the energy of measured numbers and its conjugate at a shift."""
    value, conjugate = 0.0, 0.0
    for row in range(len(found)):
        weight = weights[row]
        if weight > 0.0:
            kind, target, width = measured.kind[row], measured.target[row], measured.width[row]
            value += weight * loss_value(kind, target, width, found[row])
            conjugate += weight * loss_conjugate(kind, target, width, shift[row] / weight)
    return value, conjugate


@inner
def _slopes(measured: Measured, weights: Floats, found: Floats, slope: Floats) -> None:
    """Write the slope of the energy in each measured number."""
    for row in range(len(found)):
        slope[row] = weights[row] * loss_slope(
            measured.kind[row], measured.target[row], measured.width[row], found[row]
        )


@inner
def _step(measured: Measured, weights: Floats, points: Floats, step: float) -> None:
    """Write where a step of mirror descent takes the shift; at kinks along the gradient of the dual."""
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
    """How many times longer the step might be; each point as (log Z, energy, conjugate)."""
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
    outcome: Outcome,
    first: int,
    last: int,
) -> None:
    """Project chains ``first`` to ``last`` by adaptive mirror descent, or by RDA; write what is found."""
    points = work.points
    for chain in range(first, last):
        weights = measured.weights[chain if len(measured.weights) > 1 else 0]
        best = outcome.points[0, chain]
        least, bound = np.inf, -np.inf
        iteration, calls, status, step = -1, 0, OUT_OF_ITERATIONS, 1.0
        log_partition, energy, conjugate = 0.0, 0.0, 0.0
        points[TRIAL] = 0.0
        while True:
            there = _answer(chains, chain, measured, work, points[TRIAL], points[TRIAL_FOUND])
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
            if objective <= least:
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
            # once more at the best shift, for its marginals
            _answer(chains, chain, measured, work, best, outcome.points[1, chain])
            begin, end = chains.start[chain], chains.start[chain + 1]
            for place in range(end - begin):
                _copy(work.rows[2, place], outcome.node[begin + place])
            if len(outcome.pairs) > 0:
                size = len(chains.edge)
                for left in range(size):
                    _copy(work.statistics[0, (PROFILES + left) * size :], outcome.pairs[chain, left])


@kernel
def best_range(
    chains: Chains,
    measured: Measured,
    shifts: Floats,
    work: Work,
    back: Ints,
    path: Ints,
    first: int,
    last: int,
) -> None:
    """Write a best path (int64[places]) of chains ``first`` to ``last`` at their shifted scores.

    ``back`` (int64[longest, S]) is scratch.
    """
    size = len(chains.edge)
    moved = work.statistics[1]
    for chain in range(first, last):
        begin, end = chains.start[chain], chains.start[chain + 1]
        _move_scores(measured, shifts[chain], moved)
        for place in range(end - begin):
            node = chains.node[begin + place]
            _shifted_row(measured, node, moved, place, end - begin, work.rows[0, place])
        for left in range(size):
            for right in range(size):
                score = chains.edge[left, right]
                if measured.pairs_used:
                    score -= moved[(PROFILES + left) * size + right]
                work.edge_weight[0, left, right] = score
        viterbi(
            work.rows[0, : end - begin],
            work.edge_weight,
            work.rows[1, :2],
            back[: end - begin],
            path[begin:end],
        )
