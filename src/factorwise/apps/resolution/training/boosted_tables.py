"""Weights of comparison levels by gradient boosting: a sum of tables, one for each comparison.

Every tree of the ensemble looks at one comparison alone, so that the ensemble is additive and can be read off
as a weight for each level. No weight falls where pairs become more alike. Boosting takes the comparison that
tells most at each step, and so shares what correlated comparisons say among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from factorwise.apps.resolution.training.examples import PairExamples
from factorwise.kernels.clusterings.links import LINK_WEIGHT
from factorwise.model.level_weights import LevelWeights

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

    sizes
        Levels of each comparison, without level 0.
    directions
        For each comparison 1 where higher levels are more alike, -1 where lower ones are, 0 for neither.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes a second to import

    weights = LevelWeights.zeros(sizes)
    if examples.teach_nothing:
        return weights
    levels, same, share = examples.sample(MOST_PAIRS, seed)
    ensemble = HistGradientBoostingClassifier(
        max_iter=boosting.rounds,
        learning_rate=boosting.rate,
        max_leaf_nodes=boosting.leaves,
        min_samples_leaf=boosting.least_pairs,
        l2_regularization=boosting.ridge,
        interaction_cst=[{comparison} for comparison in range(len(sizes))],
        monotonic_cst=list(directions),
        early_stopping=False,
        random_state=seed,
    )
    features = _features(levels)
    features[:, np.isnan(features).all(axis=0)] = 0.0  # which the ensemble cannot bin
    with threadpool_limits(1, user_api="openmp"):  # sums are rounded alike whatever the number of threads
        ensemble.fit(features, same, share / share.mean())
        scores = ensemble.decision_function(_features(_one_level_each(sizes)))
    weights.values[LINK_WEIGHT] = scores[0]
    weights.values[weights.offsets[0] :] = scores[1:] - scores[0]
    return weights


def _features(levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    features = levels.astype(np.float32)
    features[levels == 0] = np.nan
    return features


def _one_level_each(sizes: Sequence[int]) -> NDArray[np.uint8]:
    """Return levels of pairs with nothing to compare, and then with one level of one comparison each."""
    comparison = np.repeat(np.arange(len(sizes)), sizes)
    level = np.concatenate([np.zeros(0, np.int64), *(np.arange(1, size + 1) for size in sizes)])
    levels = np.zeros((len(level) + 1, len(sizes)), np.uint8)
    levels[np.arange(1, len(level) + 1), comparison] = level
    return levels
