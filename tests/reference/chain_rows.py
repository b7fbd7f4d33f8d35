"""Chain CRFs from the definition: every path of labels is visited, one sentence at a time.

``node`` has a row of label scores per token, ``transition`` a score for a label (row) followed by another.
Forbidden is ``-inf``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from reference.chains import Path, Rows, log_sum, paths

UNKNOWN = -1


class Expectations(NamedTuple):
    """What one sentence adds to the loss and to its gradient.

    loss
        Log Z minus log Z of the paths that agree with what is known, times the emphasis.
    residual
        Expected labels of the tokens, less those expected of the paths that agree.
    pairs, pairs_known
        Expected number of times each label follows each other; the same for the paths that agree.
    """

    loss: float
    residual: list[list[float]]
    pairs: list[list[float]]
    pairs_known: list[list[float]]


def path_score(node: Rows, transition: Rows, path: Path) -> float:
    """Sum of the scores of the labels and of the steps between them."""
    steps = itertools.pairwise(path)
    return sum(map(lambda row, label: row[label], node, path)) + sum(transition[a][b] for a, b in steps)


def expectations(
    node: Rows,
    transition: Rows,
    truth: Sequence[int],
    may_be: Sequence[Sequence[bool]],
    emphasis: float = 1.0,
    cost: Sequence[float] = (),
) -> Expectations:
    """Minus the log-likelihood of what is known, and its gradient in labels and pairs.

    Where the label is known (``truth`` is not -1) every other label gains its cost.
    """
    raised = [
        [score + (cost[right] if cost and label != right else 0.0) for label, score in enumerate(row)]
        if right != UNKNOWN
        else list(row)
        for row, right in zip(node, truth, strict=True)
    ]
    agreeing = [
        [score if fits else -math.inf for score, fits in zip(row, allowed, strict=True)]
        for row, allowed in zip(raised, may_be, strict=True)
    ]
    log_all, labels, pairs = marginals(raised, transition)
    log_known, labels_known, pairs_known = marginals(agreeing, transition)
    residual = [
        [emphasis * (p - q) for p, q in zip(ours, theirs, strict=True)]
        for ours, theirs in zip(labels, labels_known, strict=True)
    ]
    times = [[[emphasis * p for p in row] for row in table] for table in (pairs, pairs_known)]
    return Expectations(emphasis * (log_all - log_known), residual, *times)


def marginals(node: Rows, transition: Rows) -> tuple[float, list[list[float]], list[list[float]]]:
    """Log Z, label probabilities of the tokens, and how often each label is expected to follow each other."""
    labels = range(len(transition))
    scores = {path: path_score(node, transition, path) for path in paths(len(node), len(labels))}
    log_total = log_sum(scores.values())
    single = [[0.0 for _ in labels] for _ in node]
    double = [[0.0 for _ in labels] for _ in labels]
    for path, score in scores.items():
        probability = math.exp(score - log_total)
        for token, label in enumerate(path):
            single[token][label] += probability
        for left, right in itertools.pairwise(path):
            double[left][right] += probability
    return log_total, single, double


def decode(node: Rows, transition: Rows) -> tuple[Path, float]:
    """Return a best path and its score; among equals the lowest last label decides, then the one before."""
    scores = {path: path_score(node, transition, path) for path in paths(len(node), len(transition))}
    best = min(scores, key=lambda path: (-scores[path], path[::-1]))
    return best, scores[best]
