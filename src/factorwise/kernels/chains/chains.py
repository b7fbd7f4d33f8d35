"""Chains of T variables with K labels: forward, backward, Viterbi, k best paths, backward sampling.

Arguments of all kernels:

node : float64[T, K]
    Score of each label at each place.
edge : float64[T - 1, K, K] or float64[1, K, K]
    Score of each pair of neighboring labels, for each pair of places or one table for all.

Scaled kernels take weights, the exp of the scores with a maximum of 1 in each row and table. They return
UNDERFLOW as soon as a nonzero number falls below ``TINY``: the product of three numbers above it does not
underflow, and the passes never multiply more than three.
"""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import fast_kernel, inlined, kernel
from factorwise.kernels.compile.random import random_uniform
from factorwise.types import Floats, Ints, UInt64s

DONE, IMPOSSIBLE, UNDERFLOW = 0, 1, 2
TINY = 1e-100


@inlined
def _table(edge: Floats, place: int) -> Floats:
    """Return the table between ``place`` and the next one."""
    table: Floats = edge[place if len(edge) > 1 else 0]
    return table


@inlined
def _scale(row: Floats) -> float:
    """Divide ``row`` by its largest entry and return that; return -1 if a nonzero entry becomes tiny."""
    peak = 0.0
    for label in range(len(row)):
        peak = max(peak, row[label])
    if peak > 0.0:
        for label in range(len(row)):
            row[label] /= peak
            if 0.0 < row[label] < TINY:
                return -1.0
    return peak


@fast_kernel
def forward(node_weight: Floats, edge_weight: Floats, alpha: Floats, scale: Floats) -> int:
    """Compute forward sums: ``alpha[t, j]`` (float64[T, K]) over beginnings with label j at t, node included.

    Each row is scaled to a maximum of 1; ``scale`` (float64[T]) gets the factors.
    """
    length, labels = node_weight.shape
    for place in range(length):
        row = alpha[place]
        if place == 0:
            row[:] = node_weight[0]
        else:
            table = _table(edge_weight, place - 1)
            row[:] = 0.0
            for left in range(labels):
                before = alpha[place - 1, left]
                for right in range(labels):
                    row[right] += before * table[left, right]
            for right in range(labels):
                row[right] *= node_weight[place, right]
        scale[place] = _scale(row)
        if scale[place] <= 0.0:
            return IMPOSSIBLE if scale[place] == 0.0 else UNDERFLOW
    return DONE


@fast_kernel
def backward(node_weight: Floats, edge_weight: Floats, beta: Floats, onward: Floats) -> int:
    """Compute backward sums: ``beta[t, i]`` (float64[T, K]) over the endings that follow label i.

    ``onward`` (float64[T, K]) includes the label's own weight; both are scaled to a maximum of 1.
    """
    length, labels = node_weight.shape
    for place in range(length - 1, -1, -1):
        if place == length - 1:
            beta[place] = 1.0
        else:
            table = _table(edge_weight, place)
            for left in range(labels):
                total = 0.0
                for right in range(labels):
                    total += table[left, right] * onward[place + 1, right]
                beta[place, left] = total
        if _scale(beta[place]) < 0.0:
            return UNDERFLOW
        for label in range(labels):
            onward[place, label] = node_weight[place, label] * beta[place, label]
        if _scale(onward[place]) < 0.0:
            return UNDERFLOW
    return DONE


@fast_kernel
def join(
    edge_weight: Floats, alpha: Floats, beta: Floats, onward: Floats, node: Floats, edge: Floats
) -> None:
    """Compute marginals from both passes: ``node`` (float64[T, K]) and ``edge`` (float64[T - 1, K, K])."""
    length, labels = alpha.shape
    for place in range(length):
        total = 0.0
        for label in range(labels):
            node[place, label] = alpha[place, label] * beta[place, label]
            total += node[place, label]
        for label in range(labels):
            node[place, label] /= total
    for place in range(length - 1):
        table = _table(edge_weight, place)
        total = 0.0
        for left in range(labels):
            for right in range(labels):
                edge[place, left, right] = alpha[place, left] * table[left, right] * onward[place + 1, right]
                total += edge[place, left, right]
        for left in range(labels):
            for right in range(labels):
                edge[place, left, right] /= total


@inlined
def _log_sum(terms: Floats) -> float:
    peak: float = -np.inf
    for index in range(len(terms)):
        peak = max(peak, terms[index])
    if peak == -np.inf:
        return peak
    total = 0.0
    for index in range(len(terms)):
        total += np.exp(terms[index] - peak)
    peak += np.log(total)
    return peak


@inlined
def _lower(row: Floats) -> float:
    """Subtract from ``row`` its largest entry, if it is finite, and return that entry."""
    peak = -np.inf
    for label in range(len(row)):
        peak = max(peak, row[label])
    if peak > -np.inf:
        for label in range(len(row)):
            row[label] -= peak
    return peak


@kernel
def forward_log(node: Floats, edge: Floats, terms: Floats, alpha: Floats, shift: Floats) -> int:
    """Compute `forward` in the log domain; ``terms`` (float64[K]) is scratch, ``shift`` the log scale."""
    length, labels = node.shape
    for place in range(length):
        for right in range(labels):
            alpha[place, right] = node[place, right]
            if place > 0:
                table = _table(edge, place - 1)
                for left in range(labels):
                    terms[left] = alpha[place - 1, left] + table[left, right]
                alpha[place, right] += _log_sum(terms)
        shift[place] = _lower(alpha[place])
        if shift[place] == -np.inf:
            return IMPOSSIBLE
    return DONE


@kernel
def backward_log(node: Floats, edge: Floats, terms: Floats, beta: Floats) -> None:
    """Compute `backward` in the log domain; ``terms`` (float64[K]) is scratch space."""
    length, labels = node.shape
    beta[length - 1] = 0.0
    for place in range(length - 2, -1, -1):
        table = _table(edge, place)
        for left in range(labels):
            for right in range(labels):
                terms[right] = table[left, right] + node[place + 1, right] + beta[place + 1, right]
            beta[place, left] = _log_sum(terms)
        _lower(beta[place])


@kernel
def viterbi(node: Floats, edge: Floats, best: Floats, back: Ints, path: Ints) -> float:
    """Write a best path and return its score; ties go to the lowest labels, from the last place on.

    ``best`` (float64[2, K]) and ``back`` (int64[T, K]) are scratch space.
    """
    length, labels = node.shape
    best[0] = node[0]
    for place in range(1, length):
        table = _table(edge, place - 1)
        before, now = best[(place - 1) % 2], best[place % 2]
        now[:] = -np.inf
        back[place] = 0
        for left in range(labels):
            for right in range(labels):
                score = before[left] + table[left, right]
                if score > now[right]:
                    now[right] = score
                    back[place, right] = left
        for right in range(labels):
            now[right] += node[place, right]
    last = best[(length - 1) % 2]
    path[length - 1] = np.argmax(last)
    for place in range(length - 1, 0, -1):
        path[place - 1] = back[place, path[place]]
    total: float = last[path[length - 1]]
    return total


@inlined
def _next_best(lists: Floats, head: Ints, table: Floats, right: int) -> tuple[int, float]:
    """Return the left label (-1 if none) whose list continues best into label ``right``, and the score."""
    winner, peak = -1, -np.inf
    for left in range(len(lists)):
        if head[left] < lists.shape[1]:
            score = lists[left, head[left]] + table[left, right]
            if score > peak:
                winner, peak = left, score
    return winner, peak


@kernel
def k_best(
    node: Floats, edge: Floats, lists: Floats, back: Ints, head: Ints, end: Floats, paths: Ints
) -> int:
    """Write the best paths into the rows of ``paths`` (int64[k, T]), best first; return their number.

    Every label of every place keeps its k best beginnings in order, merged from the lists of the previous
    place. Scratch space: ``lists`` (float64[2, K, k]), ``back`` (int64[T, K, k]), ``head`` (int64[K]) and
    ``end`` (float64[K, 1]), all zeros.
    """
    length, labels = node.shape
    k = len(paths)
    lists[0] = -np.inf
    lists[0, :, 0] = node[0]
    for place in range(1, length):
        table = _table(edge, place - 1)
        before, now = lists[(place - 1) % 2], lists[place % 2]
        for right in range(labels):
            head[:] = 0
            now[right] = -np.inf
            for rank in range(k):
                left, score = _next_best(before, head, table, right)
                if left < 0:
                    break
                now[right, rank] = score + node[place, right]
                back[place, right, rank] = left * k + head[left]
                head[left] += 1
    head[:] = 0
    for rank in range(k):
        label, _ = _next_best(lists[(length - 1) % 2], head, end, 0)
        if label < 0:
            return rank
        at = head[label]
        head[label] += 1
        for place in range(length - 1, -1, -1):
            paths[rank, place] = label
            label, at = divmod(back[place, label, at], k)
    return k


@inlined
def _drawn(terms: Floats, state: UInt64s) -> int:
    """Draw a label with probability proportional to exp of ``terms``, which are overwritten."""
    _lower(terms)
    total = 0.0
    for label in range(len(terms)):
        total += np.exp(terms[label])
        terms[label] = total
    threshold = random_uniform(state) * total
    label = 0
    while terms[label] <= threshold:  # terminates, because the threshold is below the total
        label += 1
    return label


@kernel
def sample(edge: Floats, alpha: Floats, state: UInt64s, terms: Floats, paths: Ints) -> None:
    """Draw paths (rows of int64[size, T]) backward from the log of the forward pass."""
    length, labels = alpha.shape
    for row in range(len(paths)):
        for place in range(length - 1, -1, -1):
            for label in range(labels):
                terms[label] = alpha[place, label]
                if place < length - 1:
                    terms[label] += _table(edge, place)[label, paths[row, place + 1]]
            paths[row, place] = _drawn(terms, state)
