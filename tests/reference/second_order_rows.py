"""Second-order chain CRFs from the definition: every path of labels is visited, one sentence at a time.

``node`` has a row of label scores per token, ``first`` a score for the first label (row) followed by the
second, ``after`` a score for each label that follows two others. Forbidden is ``-inf``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from reference.chains import Path, Rows, Tables, log_sum, paths


class Marginals(NamedTuple):
    """Log Z, label probabilities of the tokens, and expected numbers of first pairs and of triples."""

    log_partition: float
    node: list[list[float]]
    first: list[list[float]]
    triples: list[list[list[float]]]


class Expectations(NamedTuple):
    """What one sentence adds to the loss and to its gradient: all paths less those that agree."""

    loss: float
    residual: list[list[float]]
    first: list[list[float]]
    triples: list[list[list[float]]]


def path_score(node: Rows, first: Rows, after: Tables, path: Path) -> float:
    """Sum of the scores of the labels, of the first pair and of the triples."""
    total = sum(row[label] for row, label in zip(node, path, strict=True))
    if len(path) > 1:
        total += first[path[0]][path[1]]
    return total + sum(after[a][b][c] for a, b, c in zip(path, path[1:], path[2:], strict=False))


def scores(node: Rows, first: Rows, after: Tables) -> dict[Path, float]:
    """Score of every path."""
    return {path: path_score(node, first, after, path) for path in paths(len(node), len(first))}


def marginals(node: Rows, first: Rows, after: Tables) -> Marginals:
    """Probabilities, summed over all paths."""
    labels = range(len(first))
    known = scores(node, first, after)
    log_total = log_sum(known.values())
    single = [[0.0 for _ in labels] for _ in node]
    begun = [[0.0 for _ in labels] for _ in labels]
    triples = [[[0.0 for _ in labels] for _ in labels] for _ in labels]
    for path, score in known.items():
        probability = math.exp(score - log_total)
        for token, label in enumerate(path):
            single[token][label] += probability
        for left, right in itertools.pairwise(path[:2]):
            begun[left][right] += probability
        for a, b, c in zip(path, path[1:], path[2:], strict=False):
            triples[a][b][c] += probability
    return Marginals(log_total, single, begun, triples)


def expectations(
    node: Rows,
    first: Rows,
    after: Tables,
    truth: Sequence[int],
    may_be: Sequence[Sequence[bool]],
    emphasis: float = 1.0,
    cost: Sequence[float] = (),
) -> Expectations:
    """Minus the log-likelihood of what is known, and its gradient in labels, first pairs and triples.

    Where the label is known (``truth`` is not -1) its cost is taken off its score.
    """
    lowered = [
        [score - (cost[label] if cost and label == right else 0.0) for label, score in enumerate(row)]
        for row, right in zip(node, truth, strict=True)
    ]
    agreeing = [
        [score if fits else -math.inf for score, fits in zip(row, allowed, strict=True)]
        for row, allowed in zip(lowered, may_be, strict=True)
    ]
    ours, theirs = marginals(lowered, first, after), marginals(agreeing, first, after)
    return Expectations(
        emphasis * (ours.log_partition - theirs.log_partition),
        _less(ours.node, theirs.node, emphasis),
        _less(ours.first, theirs.first, emphasis),
        [_less(p, q, emphasis) for p, q in zip(ours.triples, theirs.triples, strict=True)],
    )


def decode(node: Rows, first: Rows, after: Tables) -> tuple[Path, float]:
    """Return a best path and its score; among equals the lowest last label decides, then the one before."""
    known = scores(node, first, after)
    best = min(known, key=lambda path: (-known[path], path[::-1]))
    return best, known[best]


def _less(ours: list[list[float]], theirs: list[list[float]], times: float) -> list[list[float]]:
    return [[times * (p - q) for p, q in zip(a, b, strict=True)] for a, b in zip(ours, theirs, strict=True)]
