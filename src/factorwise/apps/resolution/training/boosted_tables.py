"""Weights of comparison levels by gradient boosting: a sum of tables, one for each comparison.

Every round looks at one comparison alone, so that the sum can be read off as a weight for each level. No
weight falls where pairs become more alike. Boosting takes the comparison that tells most at each step, and so
shares what correlated comparisons say among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from factorwise.apps.resolution.training.examples import PairExamples
from factorwise.kernels.clusterings.links import FIXED_WEIGHTS, LINK_WEIGHT
from factorwise.kernels.numeric.level_tables import boost_level_tables
from factorwise.model.clusterings.level_weights import LevelWeights

MOST_PAIRS = 60_000


class Boosting(NamedTuple):
    """How tables are boosted: rounds, learning rate, pieces of a table, pairs of a piece, and ridge."""

    rounds: int = 150
    rate: float = 0.08
    leaves: int = 8
    least_pairs: int = 20
    ridge: float = 1.0


USUAL = Boosting()


def boost_tables(
    examples: PairExamples,
    sizes: tuple[int, ...],
    directions: Sequence[int],
    boosting: Boosting = USUAL,
    *,
    seed: int,
) -> LevelWeights:
    """Fit the weights of links and of their comparison levels to pairs that are known to be the same, or not.

    The weights are for what is added to the scores that the pairs start from.

    sizes
        Levels of each comparison, without level 0.
    directions
        For each comparison 1 where higher levels are more alike, -1 where lower ones are, 0 for neither.
    """
    weights = LevelWeights.zeros(sizes)
    if examples.teach_nothing:
        return weights
    levels, same, share, offset = examples.sample(MOST_PAIRS, seed)
    weights.values[LINK_WEIGHT] = boost_level_tables(
        np.ascontiguousarray(levels.T),
        same,
        share / share.mean(),
        np.zeros(len(same)) if offset is None else offset.copy(),
        np.append(0, np.cumsum(sizes)).astype(np.int64),
        np.asarray(directions, np.int8),
        *boosting,
        weights.values[FIXED_WEIGHTS:],
    )
    return weights
