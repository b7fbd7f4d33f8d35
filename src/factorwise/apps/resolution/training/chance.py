"""Check whether labels are related to the records: shuffled labels, or those of another table, are not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import HasPairs
from factorwise.types import Ints

_FEWEST = 100  # labelled candidate pairs, and expected matches (below), that the check needs
_FEWEST_SAME = 10
_ENRICHED = 1.5  # ratio of matches among candidates to the number expected by chance
_RANKED = 0.6  # probability that a match is more similar than a non-match (AUC)


def describe_chance(
    candidates: HasPairs, levels: NDArray[np.uint8], directions: Sequence[int], entity: Ints
) -> str | None:
    """Return a warning if labels explain no more than chance would; None if they do, or with few pairs.

    levels
        Comparison levels of the candidates.
    directions
        For each comparison, 1 if higher levels mean more similar, -1 if lower levels do.
    """
    first, second = entity[candidates.first], entity[candidates.second]
    known = (first >= 0) & (second >= 0)
    same = (first == second)[known]
    sizes = np.bincount(entity[entity >= 0]).astype(np.float64)
    records = sizes.sum()
    share = float((sizes * (sizes - 1.0)).sum() / max(records * (records - 1.0), 1.0))
    expected = share * len(same)
    if len(same) < _FEWEST or expected < _FEWEST_SAME or not same.any() or same.all():
        return None
    if same.sum() > _ENRICHED * expected + 3.0 * np.sqrt(expected):
        return None
    some = levels[known].astype(np.float64) * np.asarray(directions, np.float64)
    alike = (some / np.maximum(np.abs(some).max(axis=0, initial=1.0), 1.0)).sum(axis=1)
    place, count = np.unique(alike, return_inverse=True, return_counts=True)[1:]
    rank = (np.cumsum(count) - (count - 1) / 2.0)[place]
    positive = float(same.sum())
    ranked = (rank[same].mean() - (positive + 1.0) / 2.0) / (len(same) - positive)
    if ranked > _RANKED:
        return None
    return (
        "the labels explain no more than chance: records of one entity share no more, and are no more alike,"
        f" than any others (of the candidates, {same.mean():.2%} are of one entity, by chance {share:.2%})."
        " Check that the column of entities belongs to these records, and that their order was not changed."
    )
