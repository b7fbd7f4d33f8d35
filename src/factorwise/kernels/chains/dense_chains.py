"""Chains with large dense tables, as in collective models: passes that read each table once.

In the scaled domain, weights are the exp of scores, with a maximum of 1 in each row of ``node_weight``
float64[T, S] and in each table of ``edge_weight`` float64[T - 1, S, S] or float64[1, S, S] (one table for
all). The rows of both passes are also scaled to a maximum of 1. Underflow is harmless while the two rows of a
place still overlap: what was lost is below 1e-308, so if their product is above ``FAINTEST``, it is below
1e-150 of the whole. Otherwise the kernels report it, and the caller computes in the log domain.
"""

from __future__ import annotations

import numpy as np

from factorwise.kernels.chains.rows import GROUP, exponential, greater, largest, load_row, store_row
from factorwise.kernels.compile.compiler import fast_kernel, inlined
from factorwise.types import Floats, Ints

FAINTEST = 1e-150


@inlined
def exponentiated(scores: Floats, weight: Floats) -> float:
    """Write exp(score - largest) of a row of scores, and return the largest."""
    size = len(scores)
    whole = size - size % GROUP
    peak = -np.inf
    for label in range(whole, size):
        peak = max(peak, scores[label])
    if whole > 0:
        highest = load_row((0,), scores, 0)
        for label in range(GROUP, whole, GROUP):
            highest = greater(highest, load_row((0,), scores[label:], 0))
        peak = max(peak, largest(highest))
    if peak == -np.inf:
        weight[:] = 0.0
        return peak
    for label in range(0, whole, GROUP):
        store_row(weight[label:], 0, exponential(load_row((0,), scores[label:], 0) - peak))
    for label in range(whole, size):
        weight[label] = np.exp(scores[label] - peak)
    return peak


@inlined
def scaled(row: Floats) -> float:
    """Divide ``row`` by its largest entry, unless that is zero, and return the largest."""
    peak = 0.0
    for label in range(len(row)):
        peak = max(peak, row[label])
    if peak > 0.0:
        factor = 1.0 / peak
        for label in range(len(row)):
            row[label] *= factor
    return peak


@inlined
def times_table(row: Floats, table: Floats, product: Floats) -> None:
    """Write ``row @ table``, four rows of the table at a time, so that ``product`` is accessed less often."""
    size = len(row)
    product[:] = 0.0
    whole = size - size % 4
    for left in range(0, whole, 4):
        a, b, c, d = row[left], row[left + 1], row[left + 2], row[left + 3]
        first, second, third, fourth = table[left], table[left + 1], table[left + 2], table[left + 3]
        for right in range(size):
            product[right] += a * first[right] + b * second[right] + c * third[right] + d * fourth[right]
    for left in range(whole, size):
        a = row[left]
        first = table[left]
        for right in range(size):
            product[right] += a * first[right]


@fast_kernel
def exponentiated_rows(scores: Floats, weight: Floats, peak: Floats) -> None:
    """Write exp(score - largest) of each row of scores (float64[rows, n]); write the largest to ``peak``."""
    for row in range(len(scores)):
        peak[row] = exponentiated(scores[row], weight[row])


@fast_kernel
def forward_pass(node_weight: Floats, edge_weight: Floats, alpha: Floats, peak: Floats) -> float:
    """Compute forward sums ``alpha`` float64[T, S], which include the node at their end; return log Z.

    ``peak`` (float64[T]) gets the scale of each row. The result is ``-inf`` if no path has weight left.
    """
    length, size = node_weight.shape
    tied = len(edge_weight) == 1
    log_scale = 0.0
    for place in range(length):
        row = alpha[place]
        if place == 0:
            for label in range(size):
                row[label] = node_weight[0, label]
        else:
            times_table(alpha[place - 1], edge_weight[0 if tied else place - 1], row)
            for label in range(size):
                row[label] *= node_weight[place, label]
        peak[place] = scaled(row)
        if peak[place] <= 0.0:
            return -np.inf
        log_scale += np.log(peak[place])
    total = 0.0
    for label in range(size):
        total += alpha[length - 1, label]
    return log_scale + np.log(total)


@inlined
def _meet(alpha: Floats, beta: Floats, node: Floats) -> float:
    """Write the marginals of one place; return the sum by which they were divided."""
    total = 0.0
    for label in range(len(alpha)):
        node[label] = alpha[label] * beta[label]
        total += node[label]
    factor = 1.0 / total
    for label in range(len(alpha)):
        node[label] *= factor
    return total


@inlined
def _step_back(table: Floats, after: Floats, beta: Floats) -> None:
    """Write the scaled sum over continuations of each label, given those of the next place."""
    for left in range(len(beta)):
        entries = table[left]
        total = 0.0
        for right in range(len(after)):
            total += entries[right] * after[right]
        beta[left] = total
    scaled(beta)


@fast_kernel
def backward_pass(
    node_weight: Floats, edge_weight: Floats, alpha: Floats, beta: Floats, onward: Floats, node: Floats
) -> bool:
    """Write all marginals, ``node`` float64[T, S]; return whether both passes overlap everywhere.

    ``beta`` and ``onward`` (float64[S]) are scratch: sums over endings, without and with the place's node.
    """
    length, size = node_weight.shape
    tied = len(edge_weight) == 1
    beta[:] = 1.0
    for place in range(length - 1, -1, -1):
        if place < length - 1:
            _step_back(edge_weight[0 if tied else place], onward, beta)
        if not _meet(alpha[place], beta, node[place]) > FAINTEST:
            return False
        for label in range(size):
            onward[label] = node_weight[place, label] * beta[label]
        scaled(onward)
    return True


@fast_kernel
def backward_with_edges(
    node_weight: Floats,
    edge_weight: Floats,
    alpha: Floats,
    peak: Floats,
    beta: Floats,
    onward: Floats,
    node: Floats,
    edge: Floats,
) -> bool:
    """Compute `backward_pass`, and also write the marginals of neighbors, ``edge`` float64[T - 1, S, S].

    The sum of the entries of a table is known before it is read, from the place that follows: its total
    before scaling is ``peak`` times the overlap of both passes there. So each entry is read and written once.
    """
    length, size = node_weight.shape
    tied = len(edge_weight) == 1
    beta[:] = 1.0
    factor = 0.0
    for place in range(length - 1, -1, -1):
        if place < length - 1:
            table, before = edge_weight[0 if tied else place], alpha[place]
            written = edge[place]
            for left in range(size):
                entries, out = table[left], written[left]
                share = before[left] * factor
                total = 0.0
                for right in range(size):
                    value = entries[right] * onward[right]
                    out[right] = value * share
                    total += value
                beta[left] = total
            scaled(beta)
        total = _meet(alpha[place], beta, node[place])
        if not total > FAINTEST:
            return False
        for label in range(size):
            onward[label] = node_weight[place, label] * beta[label]
        factor = scaled(onward) / (peak[place] * total)
    return True


@inlined
def backward_rows(
    node_weight: Floats,
    table: Floats,
    alpha: Floats,
    peak: Floats,
    beta: Floats,
    onward: Floats,
    node: Floats,
) -> bool:
    """Write the marginals of all places, and the rows ``onward`` (float64[T, S]) for the marginals of pairs.

    The product of row t of ``onward``, the previous row of ``alpha`` and the table is the marginal of a pair.
    """
    length, size = node_weight.shape
    beta[:] = 1.0
    for place in range(length - 1, -1, -1):
        if place < length - 1:
            _step_back(table, onward[place + 1], beta)
        total = _meet(alpha[place], beta, node[place])
        if not total > FAINTEST:
            return False
        factor = 1.0 / (peak[place] * total)
        for label in range(size):
            onward[place, label] = node_weight[place, label] * beta[label] * factor
    return True


@fast_kernel
def backward_with_sums(
    node_weight: Floats,
    edge_weight: Floats,
    alpha: Floats,
    peak: Floats,
    beta: Floats,
    onward: Floats,
    node: Floats,
    pairs: Floats,
) -> bool:
    """Compute `backward_pass` for one table, ``edge_weight`` float64[1, S, S], and sum over all neighbors.

    ``pairs`` (float64[S, S]) gets the expected number of each pair. ``onward`` (float64[T, S]) holds the rows
    of all places, scaled so that their product with the previous row of ``alpha`` and the table is a
    marginal. The sum is then a matrix product, computed for four places at a time, and the table is applied
    once.
    """
    length, size = node_weight.shape
    table = edge_weight[0]
    if not backward_rows(node_weight, table, alpha, peak, beta, onward, node):
        return False
    pairs[:] = 0.0
    whole = length - 1 - (length - 1) % 4
    for place in range(0, whole, 4):
        for left in range(size):
            a, b, c, d = (
                alpha[place, left],
                alpha[place + 1, left],
                alpha[place + 2, left],
                alpha[place + 3, left],
            )
            row = pairs[left]
            first, second, third, fourth = (
                onward[place + 1],
                onward[place + 2],
                onward[place + 3],
                onward[place + 4],
            )
            for right in range(size):
                row[right] += a * first[right] + b * second[right] + c * third[right] + d * fourth[right]
    for place in range(whole, length - 1):
        for left in range(size):
            a, row, first = alpha[place, left], pairs[left], onward[place + 1]
            for right in range(size):
                row[right] += a * first[right]
    for left in range(size):
        for right in range(size):
            pairs[left, right] *= table[left, right]
    return True


@fast_kernel
def chains_range(
    node: Floats,
    start: Ints,
    edge_weight: Floats,
    weight: Floats,
    alpha: Floats,
    scratch: Floats,
    marginal: Floats,
    log_partition: Floats,
    first: int,
    last: int,
) -> None:
    """Write marginals and log Z of chains ``first`` to ``last``, which share their tables of weights.

    ``node``, ``weight``, ``alpha`` and ``marginal`` are float64[places, S] for all chains, concatenated;
    chain c begins at ``start[c]``. ``scratch`` (float64[longest + 2 S]) belongs to the caller's thread. Log Z
    does not include the scale of the table; it is NaN if both passes do not overlap.
    """
    size = node.shape[1]
    beta, onward = scratch[:size], scratch[size : 2 * size]
    for chain in range(first, last):
        begin, end = start[chain], start[chain + 1]
        log_scale = 0.0
        for place in range(begin, end):
            log_scale += exponentiated(node[place], weight[place])
        own, summed = weight[begin:end], alpha[begin:end]
        found = forward_pass(own, edge_weight, summed, scratch[2 * size : 2 * size + end - begin])
        met = found > -np.inf and backward_pass(own, edge_weight, summed, beta, onward, marginal[begin:end])
        log_partition[chain] = log_scale + found if met else np.nan
