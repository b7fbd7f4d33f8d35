"""Chains at shifted scores: their measured values, their marginals, and their best paths.

Chains share transition tables. An energy measures sums over a chain that do not depend on its length:
expected numbers of labels (over all places, weighted by relative position, at the first and at the last
place) and of neighboring pairs. These are the *statistics* of a chain, float64[4 S + S S]; measured values
are sparse combinations of them. A shift of the measured values is therefore a shift of four rows and of one
table, usually of few of its entries, and a chain of T places costs two products with a table per place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.dense_chains import (
    backward_rows,
    backward_with_sums,
    exponentiated,
    forward_pass,
)
from factorwise.kernels.compile.compiler import inner
from factorwise.types import Floats, Ints

PROFILES = 4
LANES = 4  # labels are padded to a multiple of this, because loops without a remainder are faster
FARTHEST = 300.0  # maximum shift of transition scores: beyond it, entries of a table underflow


class Chains(NamedTuple):
    """The chains.

    node : float64[places, S]
        Scores of all chains, concatenated.
    start : int64[chains + 1]
        Where each chain begins.
    edge, edge_weight : float64[tables, S, S]
        Transition scores, and the exp of them with a maximum of 1 in each table.
    edge_peak : float64[tables]
        The largest score of each table.
    table : int64[chains]
        The table of each chain.
    """

    node: Floats
    start: Ints
    edge: Floats
    edge_weight: Floats
    edge_peak: Floats
    table: Ints


class Measured(NamedTuple):
    """The energy.

    row_start, column, coefficient
        Sparse rows over the statistics, one for each measured value.
    profile_used : int64[4]
        Which of the four label sums are used.
    pair : int64[pairs]
        The pairs that are used, ``left * S + right``.
    all_pairs
        Whether all pairs are summed, because they are requested or because many are used.
    kind : int64[measurements]
    target, width : float64[measurements]
        Loss of each measured value.
    weights : float64[chains or 1, measurements]
    """

    row_start: Ints
    column: Ints
    coefficient: Floats
    profile_used: Ints
    pair: Ints
    all_pairs: bool
    kind: Ints
    target: Floats
    width: Floats
    weights: Floats


class Work(NamedTuple):
    """Scratch space of one thread, in few arrays, because compilation time grows with their number.

    rows : float64[4, longest, S]
        Weights, forward sums, marginals, backward sums.
    ends : float64[longest + S]
        The scale of each row; one more row.
    statistics : float64[2, 4 S + S S]
        The statistics of the chain, and the shift of their scores.
    edge_weight : float64[1, S, S]
    points : float64[5, measurements]
        For the solver.
    """

    rows: Floats
    ends: Floats
    statistics: Floats
    edge_weight: Floats
    points: Floats


@inner
def _profile(kind: int, place: int, length: int) -> float:
    if kind == 0:
        return 1.0
    if kind == 1:
        return place / (length - 1) if length > 1 else 0.0
    return 1.0 if place == (0 if kind == 2 else length - 1) else 0.0


@inner
def _move_scores(measured: Measured, shift: Floats, moved: Floats, size: int) -> float:
    """Convert a shift of the measured values to the statistics; return the largest shift of a pair."""
    moved[: PROFILES * size] = 0.0
    pairs = moved[PROFILES * size :]
    for at in range(len(measured.pair)):
        pairs[measured.pair[at]] = 0.0
    for row in range(len(shift)):
        amount = shift[row]
        if amount != 0.0:
            for at in range(measured.row_start[row], measured.row_start[row + 1]):
                moved[measured.column[at]] += amount * measured.coefficient[at]
    farthest = 0.0
    for at in range(len(measured.pair)):
        farthest = max(farthest, abs(pairs[measured.pair[at]]))
    return farthest


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
def use_table(tables: Floats, table: int, own: Floats) -> None:
    """Copy a transition table to the scratch space; entries of pairs that are not used stay as they are."""
    for left in range(len(own)):
        for right in range(len(own)):
            own[left, right] = tables[table, left, right]


@inner
def answer(chains: Chains, chain: int, measured: Measured, work: Work, shift: Floats, found: Floats) -> float:
    """Write the measured values and the marginals at a shift; return log Z, or NaN if it underflows.

    `use_table` must have copied the chain's table of weights before.
    """
    begin, table = chains.start[chain], chains.table[chain]
    length, size = chains.start[chain + 1] - begin, chains.node.shape[1]
    weight, alpha = work.rows[0, :length], work.rows[1, :length]
    marginal, onward = work.rows[2, :length], work.rows[3, :length]
    peak, beta = work.ends[:length], work.ends[len(work.ends) - size :]
    statistics, moved = work.statistics[0], work.statistics[1]
    if _move_scores(measured, shift, moved, size) > FARTHEST:
        return np.nan
    log_scale = (length - 1) * chains.edge_peak[table]
    for place in range(length):
        row = weight[place]
        _shifted_row(measured, chains.node[begin + place], moved, place, length, row)
        log_scale += exponentiated(row, row)
    for at in range(len(measured.pair)):
        left, right = measured.pair[at] // size, measured.pair[at] % size
        away = moved[PROFILES * size + measured.pair[at]] + chains.edge_peak[table]
        work.edge_weight[0, left, right] = np.exp(chains.edge[table, left, right] - away)
    log_partition = forward_pass(weight, work.edge_weight, alpha, peak)
    if not log_partition > -np.inf:
        return np.nan
    if measured.all_pairs:
        pairs = statistics[PROFILES * size :].reshape(size, size)
        meet = backward_with_sums(weight, work.edge_weight, alpha, peak, beta, onward, marginal, pairs)
    else:
        meet = backward_rows(weight, work.edge_weight[0], alpha, peak, beta, onward, marginal)
        _sum_pairs(measured, work, alpha, onward)
    if not meet:
        return np.nan
    _sum_labels(measured, marginal, statistics)
    for number in range(len(found)):
        total = 0.0
        for at in range(measured.row_start[number], measured.row_start[number + 1]):
            total += measured.coefficient[at] * statistics[measured.column[at]]
        found[number] = total
    return log_scale + log_partition


@inner
def _sum_pairs(measured: Measured, work: Work, alpha: Floats, onward: Floats) -> None:
    """Write the expected numbers of the pairs that are used."""
    length, size = alpha.shape
    for at in range(len(measured.pair)):
        left, right = measured.pair[at] // size, measured.pair[at] % size
        total = 0.0
        for place in range(length - 1):
            total += alpha[place, left] * onward[place + 1, right]
        work.statistics[0, PROFILES * size + measured.pair[at]] = total * work.edge_weight[0, left, right]


@inner
def _sum_labels(measured: Measured, marginal: Floats, statistics: Floats) -> None:
    """Write the label sums that are used."""
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
def best_path(chains: Chains, chain: int, measured: Measured, work: Work, shift: Floats, path: Ints) -> None:
    """Write a best path at shifted scores; ties go to the lowest labels, from the last place on.

    `use_table` must have copied the chain's table of scores before. The forward pass keeps only scores; the
    best predecessor is found on the way back, for the labels of the path alone.
    """
    begin, size = chains.start[chain], chains.node.shape[1]
    length = chains.start[chain + 1] - begin
    moved, table, best = work.statistics[1], work.edge_weight[0], work.rows[1]
    _move_scores(measured, shift, moved, size)
    for at in range(len(measured.pair)):
        left, right = measured.pair[at] // size, measured.pair[at] % size
        table[left, right] = (
            chains.edge[chains.table[chain], left, right] - moved[PROFILES * size + measured.pair[at]]
        )
    for place in range(length):
        row, now = work.rows[0, place], best[place]
        _shifted_row(measured, chains.node[begin + place], moved, place, length, row)
        if place > 0:
            _best_before(best[place - 1], table, now)
        for right in range(size):
            now[right] = row[right] + (now[right] if place > 0 else 0.0)
    winner = 0
    for label in range(size):
        if best[length - 1, label] > best[length - 1, winner]:
            winner = label
    path[length - 1] = winner
    for place in range(length - 1, 0, -1):
        right, winner = path[place], 0
        for left in range(1, size):
            if best[place - 1, left] + table[left, right] > best[place - 1, winner] + table[winner, right]:
                winner = left
        path[place - 1] = winner


@inner
def _best_before(before: Floats, table: Floats, now: Floats) -> None:
    """Write the best score of a path to each label, without the label's own score."""
    size = len(now)
    now[:] = -np.inf
    for left in range(0, size, LANES):
        a, b, c, d = before[left], before[left + 1], before[left + 2], before[left + 3]
        first, second, third, fourth = table[left], table[left + 1], table[left + 2], table[left + 3]
        for right in range(size):
            one, two = a + first[right], b + second[right]
            three, four = c + third[right], d + fourth[right]
            upper, lower = one if one > two else two, three if three > four else four
            upper = upper if upper > lower else lower
            now[right] = upper if upper > now[right] else now[right]
