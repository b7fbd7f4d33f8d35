"""How the values of two rows stand to each other, one pair at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence


def shared_rarities(one: int, two: int, rarity: Sequence[float]) -> float:
    """Return the rarity of a value that both have, 0 for two values, NaN where one is missing."""
    if min(one, two) < 0:
        return math.nan
    return rarity[one] if one == two else 0.0


def name_relations(one: Sequence[int], two: Sequence[int]) -> float:
    """Return how given names stand to each other, by the codes of name, root, sound and initial."""
    if min(one[3], two[3]) < 0:
        return math.nan
    for relation in range(3):
        if one[relation] == two[relation] >= 0:
            return relation + 1.0
    if one[3] != two[3]:
        return 6.0
    return 5.0 if min(one[0], two[0]) >= 0 else 4.0


def cut_levels(value: float, edges: Sequence[float]) -> int:
    """Return 0 for NaN, the value itself without edges, otherwise one more than the edges it reaches."""
    if math.isnan(value):
        return 0
    return 1 + sum(value >= edge for edge in edges) if edges else int(value)


def add_level_weights(value: float, edges: Sequence[float], weights: Sequence[float], score: float) -> float:
    """Add the weight of the value's level to a score."""
    return score + weights[cut_levels(value, edges)]
