"""Metrics of a clustering from their definitions, in exact fractions.

``entities`` gives each item's true entity, -1 where unknown; ``labels`` each item's cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

Metric = Literal["pairwise", "b-cubed", "rand"]
Labels = Sequence[int]


def known_items(entities: Labels) -> list[int]:
    """Items whose entity is known: the only ones that any metric looks at."""
    return [item for item, entity in enumerate(entities) if entity >= 0]


def pair_counts(entities: Labels, labels: Labels) -> tuple[int, int, int, int]:
    """Pairs of known items that are right, predicted, true, and all of them."""
    right = predicted = true = every = 0
    for i, j in combinations(known_items(entities), 2):
        together, same = labels[i] == labels[j], entities[i] == entities[j]
        right += together and same
        predicted += together
        true += same
        every += 1
    return right, predicted, true, every


def b_cubed_sums(entities: Labels, labels: Labels) -> tuple[Fraction, Fraction]:
    """Sum over known items of how pure the item's cluster is, and how complete."""
    known = known_items(entities)
    precision = recall = Fraction(0)
    for i in known:
        cluster = {j for j in known if labels[j] == labels[i]}
        entity = {j for j in known if entities[j] == entities[i]}
        precision += Fraction(len(cluster & entity), len(cluster))
        recall += Fraction(len(cluster & entity), len(entity))
    return precision, recall


def begin_truth(entities: Labels, labels: Labels, metric: Metric) -> tuple[Fraction, Fraction]:
    """Right and predicted pairs or, for B-cubed, the sums of precision and recall."""
    if metric == "b-cubed":
        return b_cubed_sums(entities, labels)
    right, predicted, _, _ = pair_counts(entities, labels)
    return Fraction(right), Fraction(predicted)


def truth_value(entities: Labels, labels: Labels, metric: Metric) -> Fraction:
    """Metric of a clustering: a quotient without a denominator is 0."""
    if metric == "b-cubed":
        known = len(known_items(entities))
        precision, recall = b_cubed_sums(entities, labels)
        return 2 * precision * recall / (precision + recall) / known if known else Fraction(0)
    right, predicted, true, every = pair_counts(entities, labels)
    if metric == "rand":
        wrong = (predicted - right) + (true - right)
        return Fraction(every - wrong, every) if every else Fraction(0)
    if right == 0:
        return Fraction(0)
    precision, recall = Fraction(right, predicted), Fraction(right, true)
    return 2 * precision * recall / (precision + recall)


def transfer_truth_gain(
    entities: Labels, labels: Labels, items: Sequence[int], target: int | None, metric: Metric
) -> Fraction:
    """Metric after ``items`` have joined cluster ``target``, or a new one, minus the metric before."""
    moved = list(labels)
    for item in items:
        moved[item] = max(labels) + 1 if target is None else target
    return truth_value(entities, moved, metric) - truth_value(entities, labels, metric)
