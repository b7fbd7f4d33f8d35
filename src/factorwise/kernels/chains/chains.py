"""Chains of T variables with K labels each: forward, backward, Viterbi, the k best, backward sampling.

Shared by all kernels:

node : float64[T, K]
    Score of each label at each place.
edge : float64[T - 1, K, K] or float64[1, K, K]
    Score of each pair of neighboring labels, for each pair of places or one table for all.

Scaled kernels take weights, the exp of the scores with a largest of 1 in each row and table. They return
UNDERFLOW as soon as a number falls below ``TINY`` without being zero: three numbers not below it multiply
without loss, and the passes never multiply more.
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
    """Table between ``place`` and the next one."""
    table: Floats = edge[place if len(edge) > 1 else 0]
    return table


@inlined
def _scale(row: Floats) -> float:
    """Divide ``row`` by its largest entry and return that; -1 if an entry other than zero becomes tiny."""
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
    """Sum over all beginnings: ``alpha[t, j]`` (float64[T, K]) of those that end in label j, node included.

    Each row is scaled to a largest of 1; ``scale`` (float64[T]) holds what was taken out.
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
    """Sum over all endings: ``beta[t, i]`` (float64[T, K]) of those that follow label i.

    ``onward`` (float64[T, K]) is the same with the label's own weight; both scaled to a largest of 1.
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
    """Multiply both passes into marginals: ``node`` (float64[T, K]) and ``edge`` (float64[T - 1, K, K])."""
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
    """Subtract from ``row`` its largest entry, if finite, and return that."""
    peak = -np.inf
    for label in range(len(row)):
        peak = max(peak, row[label])
    if peak > -np.inf:
        for label in range(len(row)):
            row[label] -= peak
    return peak


@kernel
def forward_log(node: Floats, edge: Floats, terms: Floats, alpha: Floats, shift: Floats) -> int:
    """`forward` in the log domain; ``terms`` (float64[K]) is scratch, ``shift`` the log of the scale."""
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
    """`backward` in the log domain; ``terms`` (float64[K]) is scratch."""
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
    """Write a best path and return its score; the lowest labels among equals, from the last place on.

    ``best`` (float64[2, K]) and ``back`` (int64[T, K]) are scratch.
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
    """Whose list continues best into label ``right``: the label to the left (-1 if none) and the score."""
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
    """Write the best paths into the rows of ``paths`` (int64[k, T]), best first; return how many there are.

    Every label of every place keeps its k best beginnings in order, merged from the lists one place before.
    Scratch: ``lists`` (float64[2, K, k]), ``back`` (int64[T, K, k]), ``head`` (int64[K]) and ``end``
    (float64[K, 1]), all zeros.
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
    """Draw a label with probability proportional to exp of ``terms``, which it overwrites."""
    _lower(terms)
    total = 0.0
    for label in range(len(terms)):
        total += np.exp(terms[label])
        terms[label] = total
    threshold = random_uniform(state) * total
    label = 0
    while terms[label] <= threshold:  # ends: a number below 1 times the total stays below the total
        label += 1
    return label


@kernel
def sample(edge: Floats, alpha: Floats, state: UInt64s, terms: Floats, paths: Ints) -> None:
    """Draw paths (rows of int64[size, T]) from the log of the forward pass, last place first."""
    length, labels = alpha.shape
    for row in range(len(paths)):
        for place in range(length - 1, -1, -1):
            for label in range(labels):
                terms[label] = alpha[place, label]
                if place < length - 1:
                    terms[label] += _table(edge, place)[label, paths[row, place + 1]]
            paths[row, place] = _drawn(terms, state)
