"""Descent on the likelihood from the definition: all weights shrink, and every path is summed over."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from reference.chain_online import Model, Sentence, node_scores, transition_scores
from reference.chain_rows import expectations, marginals


class Descended(NamedTuple):
    """Weights at the end, the sum of losses and the number of labels whose most probable value is wrong."""

    weights: list[float]
    loss: float
    wrong: int


def sentence_gradient(
    model: Model, sentence: Sentence, weights: Sequence[float]
) -> tuple[float, int, list[float]]:
    """Loss, wrong labels and gradient of one sentence."""
    lowered = node_scores(model, sentence, weights)
    plain = node_scores(model._replace(cost=()), sentence, weights)
    transition = transition_scores(model, weights)
    found = expectations(plain, transition, sentence.truth, sentence.may_be, sentence.emphasis, model.cost)
    _, labels, _ = marginals(lowered, transition)
    wrong = sum(
        not fits[max(range(model.labels), key=row.__getitem__)]
        for row, fits in zip(labels, sentence.may_be, strict=True)
    )
    gradient = [0.0] * model.size
    for token, row in zip(sentence.tokens, found.residual, strict=True):
        for attribute, value in token:
            for label, amount in enumerate(row):
                if (attribute, label) in model.state:
                    gradient[model.state[attribute, label]] += value * amount
    for (left, right), place in model.pairs.items():
        gradient[place] += found.pairs[left][right] - found.pairs_known[left][right]
    return found.loss, wrong, gradient


def descend(
    model: Model,
    sentences: Sequence[Sentence],
    order: Sequence[int],
    start: Sequence[float],
    rate: float,
    shrink: float,
) -> Descended:
    """Shrink all weights, then go down the gradient, by steps of ``1 / (1 / rate + shrink * t)``."""
    weights, total, mistakes = list(start), 0.0, 0
    for t, number in enumerate(order):
        step = 1.0 / (1.0 / rate + shrink * t)
        weights = [(1.0 - step * shrink) * weight for weight in weights]
        loss, wrong, gradient = sentence_gradient(model, sentences[number], weights)
        weights = [weight - step * slope for weight, slope in zip(weights, gradient, strict=True)]
        total, mistakes = total + loss, mistakes + wrong
    return Descended(weights, total, mistakes)


def sentences_with(sentences: Sequence[Sentence]) -> Counter[int]:
    """Count for each attribute the sentences that have it."""
    return Counter(
        attribute
        for sentence in sentences
        for attribute in {attribute for token in sentence.tokens for attribute, _ in token}
    )


def descend_by_squares(
    model: Model,
    sentences: Sequence[Sentence],
    order: Sequence[int],
    start: Sequence[float],
    rate: float,
    l2: float,
    offset: float,
) -> Descended:
    """AdaGrad with a proximal L2 step at the sentences that have the attribute, or a transition."""
    weights, squares = list(start), [offset] * model.size
    with_attribute = sentences_with(sentences)
    with_pairs = sum(len(sentence.tokens) > 1 for sentence in sentences)
    total, mistakes = 0.0, 0
    for number in order:
        sentence = sentences[number]
        loss, wrong, gradient = sentence_gradient(model, sentence, weights)
        total, mistakes = total + loss, mistakes + wrong
        here = {attribute for token in sentence.tokens for attribute, _ in token}
        pull = {
            place: 2.0 * l2 / with_attribute[attribute]
            for (attribute, _), place in model.state.items()
            if attribute in here
        }
        if len(sentence.tokens) > 1:
            free = (place for pair, place in model.pairs.items() if pair not in model.forbidden)
            pull |= dict.fromkeys(free, 2.0 * l2 / with_pairs)
        for place, strength in pull.items():
            squares[place] += gradient[place] ** 2
            step = rate / math.sqrt(squares[place])
            weights[place] = (weights[place] - step * gradient[place]) / (1.0 + step * strength)
    return Descended(weights, total, mistakes)
