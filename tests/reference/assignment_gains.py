"""Scores around a variable, from the definition: by scoring whole worlds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from factorwise.model.grounding import FactorGraph
from factorwise.model.unrolling import CountFactors


def total_score(values: Sequence[int], graph: FactorGraph, counts: CountFactors) -> float:
    """Sum of all factors at one full setting."""
    total = graph.score(np.array(values))
    for factor in range(len(counts.label)):
        members = counts.members[counts.start[factor] : counts.start[factor + 1]].tolist()
        count = sum(values[member] == counts.label[factor] for member in members)
        total += float(counts.tables[counts.table_start[factor] + count])
    return total


def joint_scores(
    values: Sequence[int], graph: FactorGraph, counts: CountFactors, settings: Sequence[dict[int, int]]
) -> list[float]:
    """Score of the world after each of some changes ``variable: label``."""
    scores = []
    for setting in settings:
        changed = list(values)
        for variable, label in setting.items():
            changed[variable] = label
        scores.append(total_score(changed, graph, counts))
    return scores


def local_scores(
    values: Sequence[int], graph: FactorGraph, counts: CountFactors, variable: int
) -> list[float]:
    """Score of the world with each label of ``variable``."""
    labels = range(int(graph.cardinality[variable]))
    return joint_scores(values, graph, counts, [{variable: label} for label in labels])


def pick_position(chance: float, scores: Sequence[float], without: int = -1) -> int:
    """Return where ``chance`` falls when drawing from exp(scores) without one position; -1: nowhere."""
    kept = {place: score for place, score in enumerate(scores) if place != without and score > -math.inf}
    if not kept:
        return -1
    top = max(kept.values())
    total = sum(math.exp(score - top) for score in kept.values())
    reached = 0.0
    for place, score in kept.items():
        reached += math.exp(score - top) / total
        if chance < reached:
            return place
    return max(kept)
