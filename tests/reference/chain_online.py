"""Corrections after mistakes from the definition: every path is visited, every weight vector is kept.

A sentence is moved towards the best path that agrees with what is known of it, away from the best of all.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from factorwise.rng import Stream
from reference.chain_rows import UNKNOWN, path_score
from reference.chains import Path, paths

TIE = 1e-9  # scores closer than this are equal but for rounding


class Model(NamedTuple):
    """Which weights there are, and what labels must not do.

    state, pairs
        Where the weight of an attribute with a label, or of a label followed by another, stands.
    forbidden
        Pairs that must not follow one another.
    not_first, not_last
        Labels that must not begin or end a sentence.
    cost
        What is taken off the score of a known label; empty for nothing.
    """

    labels: int
    size: int
    state: Mapping[tuple[int, int], int]
    pairs: Mapping[tuple[int, int], int]
    forbidden: frozenset[tuple[int, int]]
    not_first: frozenset[int]
    not_last: frozenset[int]
    cost: Sequence[float]


class Sentence(NamedTuple):
    """Tokens as lists of (attribute, value), and what is known of their labels.

    truth
        The label of each token; -1 where it is not known.
    may_be
        Which labels agree with what is known.
    """

    tokens: Sequence[Sequence[tuple[int, float]]]
    truth: Sequence[int]
    may_be: Sequence[Sequence[bool]]
    emphasis: float


class Corrected(NamedTuple):
    """Weights at the end, the mean of those at the start and after each sentence, losses and mistakes."""

    weights: list[float]
    mean: list[float]
    loss: float
    wrong: int


def shuffle(order: Sequence[int], stream: Stream) -> list[int]:
    """Return the numbers in random order: each place from the last down draws from what is left."""
    left, drawn = list(order), []
    for place in range(len(left) - 1, 0, -1):
        choice = stream.below(place + 1)
        left[choice], left[place] = left[place], left[choice]
        drawn.append(left.pop())
    return [*left, *reversed(drawn)]


def features(model: Model, sentence: Sentence, path: Path) -> Counter[int]:
    """Sum of the features of a path that have a weight."""
    total: Counter[int] = Counter()
    for token, label in zip(sentence.tokens, path, strict=True):
        for attribute, value in token:
            if (attribute, label) in model.state:
                total[model.state[attribute, label]] += value  # type: ignore[assignment]
    for pair in itertools.pairwise(path):
        if pair in model.pairs and pair not in model.forbidden:
            total[model.pairs[pair]] += 1
    return total


def node_scores(model: Model, sentence: Sentence, weights: Sequence[float]) -> list[list[float]]:
    """Scores of the labels of each token, less the cost of known ones; ``-inf`` where forbidden."""
    rows = []
    last = len(sentence.tokens) - 1
    for place, (token, right) in enumerate(zip(sentence.tokens, sentence.truth, strict=True)):
        row = []
        for label in range(model.labels):
            found = [
                weights[model.state[a, label]] * value for a, value in token if (a, label) in model.state
            ]
            lowered = model.cost[label] if model.cost and label == right != UNKNOWN else 0.0
            bad = (place == 0 and label in model.not_first) or (place == last and label in model.not_last)
            row.append(-math.inf if bad else sum(found) - lowered)
        rows.append(row)
    return rows


def transition_scores(model: Model, weights: Sequence[float]) -> list[list[float]]:
    """Scores of a label (row) followed by another; ``-inf`` where forbidden."""
    labels = range(model.labels)

    def score(pair: tuple[int, int]) -> float:
        if pair in model.forbidden:
            return -math.inf
        return weights[model.pairs[pair]] if pair in model.pairs else 0.0

    return [[score((left, right)) for right in labels] for left in labels]


def best_path(scores: Mapping[Path, float]) -> Path:
    """Return the best path; among equals the lowest last label decides, then the one before."""
    top = max(scores.values())
    return min((path for path, score in scores.items() if score >= top - TIE), key=lambda path: path[::-1])


def step_length(kind: str, bound: float, loss: float, norm: float) -> float:
    """How many times the difference of features to add."""
    if kind == "perceptron":
        return 1.0
    if kind == "arow":
        return loss / (norm + bound)
    if kind == "pa2":
        return loss / (norm + 0.5 / bound)
    if norm == 0.0:
        return 0.0
    return min(bound, loss / norm) if kind == "pa1" else loss / norm


def correct_mistakes(
    model: Model,
    sentences: Sequence[Sentence],
    order: Sequence[int],
    start: Sequence[float],
    kind: str,
    bound: float = 1.0,
    by_errors: bool = True,
    variance: float = 1.0,
) -> Corrected:
    """Go through the sentences in this order; ``kind`` is perceptron, pa0, pa1, pa2 or arow."""
    weights, visited = list(start), [list(start)]
    spread = [variance if kind == "arow" else 1.0] * model.size
    total, mistakes = 0.0, 0
    for sentence in (sentences[number] for number in order):
        node, transition = node_scores(model, sentence, weights), transition_scores(model, weights)
        scores = {path: path_score(node, transition, path) for path in paths(len(node), model.labels)}
        agreeing = {
            path: score
            for path, score in scores.items()
            if all(fits[label] for fits, label in zip(sentence.may_be, path, strict=True))
        }
        guess, target = best_path(scores), best_path(agreeing)
        wrong = sum(a != b for a, b in zip(guess, target, strict=True))
        if wrong:
            difference = features(model, sentence, target)
            difference.subtract(features(model, sentence, guess))
            margin = wrong if kind == "arow" else math.sqrt(wrong) if by_errors else 1.0
            loss = wrong / len(node) if kind == "perceptron" else scores[guess] - scores[target] + margin
            norm = sum(value**2 * spread[place] for place, value in difference.items())
            amount = sentence.emphasis * step_length(kind, bound, loss, norm)
            for place, value in difference.items():
                weights[place] += amount * spread[place] * value
                if kind == "arow":
                    spread[place] = 1.0 / (1.0 / spread[place] + value**2 / bound)
            total += sentence.emphasis * loss
            mistakes += wrong
        visited.append(list(weights))
    mean = [sum(values) / len(visited) for values in zip(*visited, strict=True)]
    return Corrected(weights, mean, total, mistakes)
