"""Chains from the definition: every path is visited.

``node`` has one row of label scores per place, ``edge`` one table per pair of neighbors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from factorwise.rng import Stream

Rows: TypeAlias = Sequence[Sequence[float]]
Tables: TypeAlias = Sequence[Rows]
Path: TypeAlias = tuple[int, ...]


def log_sum(terms: Iterable[float]) -> float:
    """Log of the sum of exp."""
    values = list(terms)
    peak = max(values, default=-math.inf)
    if peak == -math.inf:
        return peak
    return peak + math.log(math.fsum(math.exp(value - peak) for value in values))


def paths(places: int, labels: int) -> Iterator[Path]:
    """All sequences of labels."""
    return itertools.product(range(labels), repeat=places)


def score(node: Rows, edge: Tables, path: Path) -> float:
    """Sum of the scores along a path, which may end early."""
    inside = sum(node[place][label] for place, label in enumerate(path))
    return inside + sum(edge[t][left][right] for t, (left, right) in enumerate(itertools.pairwise(path)))


def forward(node: Rows, edge: Tables) -> list[list[float]]:
    """Sum over all beginnings that end at a place in a label, scaled to a largest of 1 at each place."""
    return [scaled(row) for row in forward_log(node, edge)]


def backward(node: Rows, edge: Tables) -> list[list[float]]:
    """Sum over all endings that follow a label at a place, scaled to a largest of 1 at each place."""
    return [scaled(row) for row in backward_log(node, edge)]


def scaled(row: Sequence[float]) -> list[float]:
    """Exp of a row of logs, divided by the largest."""
    return [math.exp(value - max(row)) for value in row]


def forward_log(node: Rows, edge: Tables) -> list[list[float]]:
    """Log of the sum over all beginnings that end at a place in a label."""
    labels = range(len(node[0]))
    return [
        [log_sum(score(node, edge, (*begun, label)) for begun in paths(t, len(labels))) for label in labels]
        for t in range(len(node))
    ]


def backward_log(node: Rows, edge: Tables) -> list[list[float]]:
    """Log of the sum over all endings that follow a label at a place, without the label's own score."""
    labels = range(len(node[0]))

    def after(place: int, label: int) -> float:
        endings = paths(len(node) - place - 1, len(labels))
        own = node[place][label]
        if own == -math.inf:
            silent = [[0.0 for _ in row] if t == place else row for t, row in enumerate(node)]
            return log_sum(score(silent[place:], edge[place:], (label, *ending)) for ending in endings)
        return log_sum(score(node[place:], edge[place:], (label, *ending)) - own for ending in endings)

    return [[after(place, label) for label in labels] for place in range(len(node))]


def log_partition(node: Rows, edge: Tables) -> float:
    """Log of the sum over all paths of exp(score)."""
    return log_sum(score(node, edge, path) for path in paths(len(node), len(node[0])))


def join(node: Rows, edge: Tables) -> tuple[list[list[float]], list[list[list[float]]]]:
    """Marginals of places and of neighboring pairs: sums of path probabilities."""
    places, labels = len(node), len(node[0])
    single = [[0.0] * labels for _ in range(places)]
    double = [[[0.0] * labels for _ in range(labels)] for _ in range(places - 1)]
    total = log_partition(node, edge)
    for path in paths(places, labels):
        probability = math.exp(score(node, edge, path) - total)
        for place, label in enumerate(path):
            single[place][label] += probability
        for place, (left, right) in enumerate(itertools.pairwise(path)):
            double[place][left][right] += probability
    return single, double


def k_best(node: Rows, edge: Tables, k: int) -> list[tuple[float, Path]]:
    """The best possible paths with their scores, best first."""
    scored = [(score(node, edge, path), path) for path in paths(len(node), len(node[0]))]
    possible = [(value, path) for value, path in scored if value > -math.inf]
    return sorted(possible, key=lambda pair: -pair[0])[:k]


def viterbi(node: Rows, edge: Tables) -> tuple[float, Path]:
    """A best path with its score; the lowest labels among equals, from the last place on."""
    scored = [(score(node, edge, path), path) for path in paths(len(node), len(node[0]))]
    return min(scored, key=lambda pair: (-pair[0], pair[1][::-1]))


def sample(node: Rows, edge: Tables, stream: Stream, size: int) -> list[Path]:
    """Draw paths from the last place to the first, each label given what follows it."""
    alpha = forward_log(node, edge)
    drawn = []
    for _ in range(size):
        path: Path = ()
        for place in reversed(range(len(node))):
            onward = [edge[place][label][path[0]] if path else 0.0 for label in range(len(node[0]))]
            terms = [own + next_score for own, next_score in zip(alpha[place], onward, strict=True)]
            path = (choose(terms, stream), *path)
        drawn.append(path)
    return drawn


def choose(terms: Sequence[float], stream: Stream) -> int:
    """Draw an index with probability proportional to exp of its term."""
    weights = [math.exp(term - max(terms)) for term in terms]
    threshold = stream.uniform() * sum(weights)
    ladder = itertools.accumulate(weights)
    return next(index for index, rung in enumerate(ladder) if rung > threshold)
