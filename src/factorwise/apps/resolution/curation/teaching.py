"""What answers teach: how probable it is that two groups are one entity, and the weights of the levels.

Both are logistic regressions with a normal prior around what is known without answers, so that one answer
changes little and a hundred a lot. That the pairs were chosen because they are doubtful does no harm: what is
learned is how probable the answer is given what the comparison says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from factorwise.kernels.clusterings.links import LINK_WEIGHT
from factorwise.model.level_weights import LevelWeights
from factorwise.types import Bools, Floats

#: What the log odds of two groups start from: a constant, and factors of the mean and of the best score,
#: first for groups in two entities, then for groups in one.
START = (-1.0, 0.3, 0.5, 1.0, 0.3, 0.0)
SPREAD = (1.5, 0.2, 0.2, 1.5, 0.2, 0.2)  # standard deviations of the prior around it
CAUTION = 10.0  # answers after which the weights follow them halfway: one surprise is no rule
SHIFT_SPREAD, SLOPE_SPREAD, STEP_SPREAD = 2.0, 0.3, 0.25


class GroupOdds:
    """The probability that two groups are one entity, from the scores between them."""

    def __init__(self) -> None:
        self.coefficients = np.array(START)

    def probability(
        self, mean: Floats, best: Floats, together: Bools, variance: Floats | float = 0.0
    ) -> NDArray[np.float64]:
        """Return the probability for each of some pairs of groups; ``variance`` is that of the scores."""
        return damped(_described(mean, best, together) @ self.coefficients, np.asarray(variance))

    def learn(self, mean: Floats, best: Floats, together: Bools, same: Bools) -> None:
        """Fit to all answers so far."""
        features = _described(mean, best, together)
        start = np.array(START)
        self.coefficients = start + fit_around(features, features @ start, same, np.array(SPREAD))[0]


class Teaching(NamedTuple):
    """Weights that have learned from answers, and how uncertain they are.

    weights
        Of links and of their levels.
    base
        What was known before any answer.
    covariance
        Of what was added: a shift, a factor of the score, and the steps from level to level.
    """

    weights: LevelWeights
    base: LevelWeights
    covariance: NDArray[np.float64]

    def variance(self, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the variance of the scores of links with these levels."""
        features = _link_features(self.base, levels)
        return np.asarray(((features @ self.covariance) * features).sum(axis=1))


def teach(base: LevelWeights, levels: NDArray[np.uint8], same: Bools) -> Teaching:
    """Learn weights from answered pairs with these levels.

    base
        What was known before any answer.
    """
    features, scores = _link_features(base, levels), base.link_scores(levels)
    steps = features.shape[1] - 2
    spread = np.concatenate([[SHIFT_SPREAD, SLOPE_SPREAD], np.full(steps, STEP_SPREAD)])
    change, covariance = fit_around(features, scores, same, spread)
    change *= len(same) / (len(same) + CAUTION)
    start = int(base.offsets[0]) if base.sizes else len(base.values)
    values = base.values.copy()
    values[LINK_WEIGHT] = base.link * (1.0 + change[1]) + change[0]
    values[start:] *= 1.0 + change[1]
    added = LevelWeights.zeros(base.sizes)
    added.values[start:] = change[2:]
    values[start:] += added.cumulated().values[start:]
    return Teaching(LevelWeights(base.sizes, values), base, covariance)


def damped(odds: Floats, variance: Floats) -> NDArray[np.float64]:
    """Return probabilities from log odds that are uncertain themselves: nearer to one half."""
    moderate = odds / np.sqrt(1.0 + np.pi / 8.0 * variance)
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * moderate)))


def fit_around(
    features: Floats, offset: Floats, same: Bools, spread: Floats
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what to add to a logistic regression: mode and covariance under a normal prior around nothing.

    offset
        Log odds before anything is added.
    spread
        Standard deviations of the prior.
    """
    found = np.zeros(features.shape[1])
    precision = np.diag(1.0 / np.asarray(spread, np.float64) ** 2)
    with threadpool_limits(1, "blas"):  # small matrices: more threads only wait for each other
        for _ in range(25):
            chance = 0.5 * (1.0 + np.tanh(0.5 * (offset + features @ found)))
            gradient = features.T @ (same - chance) - precision @ found
            certain = np.maximum(chance * (1.0 - chance), 1e-6)
            curvature = (features * certain[:, None]).T @ features + precision
            step = np.linalg.solve(curvature, gradient)
            size = float(np.abs(features @ step).max(initial=0.0))
            found += step * min(1.0, 4.0 / max(size, 1e-12))  # no answer's odds may leap
            if size < 1e-4:
                break
        return found, np.asarray(np.linalg.inv(curvature), np.float64)


def _link_features(base: LevelWeights, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return what the scores of links are made of: a constant, the score before, and steps of levels."""
    steps = [levels[:, [c]] >= np.arange(1, size + 1) for c, size in enumerate(base.sizes)]
    return np.column_stack([np.ones(len(levels)), base.link_scores(levels), *steps])


def _described(mean: Floats, best: Floats, together: Bools) -> NDArray[np.float64]:
    each = np.column_stack([np.ones(len(mean)), mean, best])
    return np.hstack(
        [np.where(together, 0.0, 1.0)[:, None] * each, np.where(together, 1.0, 0.0)[:, None] * each]
    )
