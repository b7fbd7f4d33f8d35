"""Tables of pair features from the definition: look at every pair of every cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

Features = Mapping[frozenset[int], Sequence[int]]  # truth values of each pair of items


def count_pairs(features: Features, members: Iterable[int], size: int) -> list[int]:
    """How many pairs of one cluster have each of ``size`` features."""
    counts = [0] * size
    for pair in combinations(members, 2):
        for k, value in enumerate(features[frozenset(pair)]):
            counts[k] += value
    return counts


def aggregate(name: str, features: Features, members: Sequence[int], k: int) -> Fraction:
    """One statistic of a cluster: an aggregate of feature k."""
    values = [features[frozenset(pair)][k] for pair in combinations(members, 2)]
    if not values:
        return Fraction(0)
    linked = [any(features[frozenset((i, j))][k] for j in members if j != i) for i in members]
    return {
        "count": Fraction(sum(values)),
        "all": Fraction(all(values)),
        "exists": Fraction(any(values)),
        "majority": Fraction(sum(values) > len(values) - sum(values)),
        "mean": Fraction(sum(values), len(values)),
        "per member": Fraction(sum(values), len(members)),
        "linked": Fraction(sum(linked)),
    }[name]


def statistics(
    features: Features, clusters: Sequence[Sequence[int]], aggregates: Sequence[str], size: int
) -> list[Fraction]:
    """Every aggregate of every feature, summed over clusters; by aggregate, then by feature."""
    return [
        sum((aggregate(name, features, members, k) for members in clusters), Fraction(0))
        for name in aggregates
        for k in range(size)
    ]
