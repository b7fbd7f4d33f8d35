"""Match weights by gradient boosting: a sum of tables, one for each comparison.

Every boosting round uses a single comparison, so that the sum is a weight for each level. Weights are
monotone in similarity, where a direction is given. Each round takes the comparison that lowers the loss most,
so the evidence of correlated comparisons is divided among them.
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
    """Boosting settings: rounds, learning rate, leaves per table, least pairs per leaf, and L2 penalty."""

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
    """Fit the link weight and the match weights of comparison levels to labelled pairs.

    The weights are added to the initial scores of the pairs.

    sizes
        Number of levels of each comparison, without level 0.
    directions
        For each comparison, 1 if higher levels mean more similar, -1 if lower levels do, 0 for neither.
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
