"""Weights of links from labelled pairs alone: a logistic regression, the start of what walks learn.

A level counts as all levels up to it: its weight is the sum of the steps from one level to the next, and the
ridge keeps those steps small. So neighbouring levels learn from each other, and levels that were never seen
have the weight of the one below.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.links import LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.model.level_weights import LevelWeights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_PAIRS = 100_000
RIDGE = 0.1  # inverse strength of the ridge, as scikit-learn has it


def logistic_links(
    levels: NDArray[np.uint8],
    same: NDArray[np.bool_],
    sizes: tuple[int, ...],
    *,
    share: NDArray[np.float64] | None = None,
    linked: float = 1.0,
    seed: int,
) -> LevelWeights:
    """Fit the weights of comparisons with so many levels to pairs that are known to be the same, or not.

    share
        How much each pair counts for, relative to the others; None for all the same.
    linked
        The share of the pairs of one entity that are linked at all. Where it is small, not being linked says
        nothing against a pair; where it is large, it does.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rows = np.arange(len(levels))
    if len(rows) > MOST_PAIRS:
        rows = np.sort(np.random.default_rng([seed, 4]).choice(len(rows), MOST_PAIRS, replace=False))
    weights = LevelWeights.zeros(sizes)
    if not sizes or same[rows].all() or not same[rows].any():
        return weights  # nothing to tell, or nothing to tell apart
    regression = LogisticRegression(C=RIDGE, max_iter=300)
    counts = np.ones(len(rows)) if share is None else share[rows] / share[rows].mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near enough: ways of learning are judged anyway
        regression.fit(up_to_level(levels[rows], weights), same[rows], counts)
    weights.values[LINK_WEIGHT] = regression.intercept_[0]
    weights.values[UNLINKED_WEIGHT] = -max(0.0, 2.0 * linked - 1.0)
    weights.values[weights.offsets[0] :] = regression.coef_[0]
    return weights.cumulated()


def up_to_level(levels: NDArray[np.uint8], weights: LevelWeights) -> csr_array:
    """Return a row of zeros and ones for each pair: a one for every level up to the one it has."""
    from scipy.sparse import csr_array

    counts = levels.astype(np.int64)
    starts = np.broadcast_to(weights.offsets - weights.offsets[0], counts.shape)
    repeats = counts.ravel()
    ends = np.cumsum(repeats)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - repeats, repeats)
    columns = np.repeat(starts.ravel(), repeats) + within
    bounds = np.append(0, np.cumsum(counts.sum(axis=1)))
    size = len(weights.values) - int(weights.offsets[0])
    return csr_array((np.ones(len(columns), np.float32), columns, bounds), shape=(len(levels), size))
