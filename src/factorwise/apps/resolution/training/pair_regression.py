"""Logistic regression of match weights on labelled pairs: a slope and shift, or a weight for every level.

The weight of a level is the sum of the steps from each level to the next, with an L2 penalty on the steps.
So neighboring levels share information, and a level without training pairs gets the weight of the level
below. With initial weights, the penalty is on the difference from their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from factorwise.apps.resolution.training.examples import PairExamples
from factorwise.kernels.clusterings.links import FIXED_WEIGHTS, LINK_WEIGHT
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Bools, Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_PAIRS = 60_000
RIDGE = 10.0  # L2 penalty on the steps between levels, where a pair of mean share counts 1
SLOPE_SPREAD, SHIFT_SPREAD = 0.5, 2.0  # standard deviations of the prior of slope and shift
ITERATIONS, SETTLED = 100, 1e-6  # most iterations, and the relative gain at which they stop


def scale_weights(examples: PairExamples, weights: LevelWeights) -> LevelWeights:
    """Rescale weights with a slope and a shift of the link weight, fitted to labelled pairs."""
    if examples.teach_nothing:
        return weights
    slope, shift = fit_slope_and_shift(weights.link_scores(examples.levels), examples.same, examples.share)
    values = weights.values.copy()
    values[LINK_WEIGHT] = slope * values[LINK_WEIGHT] + shift
    values[FIXED_WEIGHTS:] *= slope
    return LevelWeights(weights.sizes, values)


def fit_slope_and_shift(score: Floats, same: Bools, share: Floats) -> tuple[float, float]:
    """Fit a slope and a shift of scores to labelled pairs, by penalised logistic regression.

    The prior of the slope is centred at 1, and that of the shift at 0. The shares of the pairs are sample
    weights.
    """
    sign = np.where(same, 1.0, -1.0)

    def loss(numbers: Floats) -> tuple[float, Floats]:
        slope, shift = numbers
        value, residual = _logistic_loss(slope * score + shift, sign, share)
        prior = (slope - 1.0) / SLOPE_SPREAD, shift / SHIFT_SPREAD
        gradient = np.array([residual @ score, residual.sum()])
        gradient += prior[0] / SLOPE_SPREAD, prior[1] / SHIFT_SPREAD
        return value + 0.5 * (prior[0] ** 2 + prior[1] ** 2), gradient

    slope, shift = _least(loss, np.array([1.0, 0.0])).tolist()
    return slope, shift


def regress_levels(examples: PairExamples, start: LevelWeights, *, seed: int) -> LevelWeights:
    """Fit a weight for every level to labelled pairs, with an L2 penalty towards the initial weights."""
    if examples.teach_nothing:
        return start
    levels, same, share, _ = examples.sample(MOST_PAIRS, seed)
    share = share / share.mean()
    offset, sign = start.link_scores(levels), np.where(same, 1.0, -1.0)
    seen, size = _levels_seen(levels, start), len(start.values) - FIXED_WEIGHTS

    def loss(steps: Floats) -> tuple[float, Floats]:
        table = _cumulate(steps[1:], start.sizes)
        value, residual = _logistic_loss(offset + steps[0] + seen @ table, sign, share)
        by_level = seen.T @ residual
        gradient = np.append(residual.sum(), _cumulate(by_level[::-1], start.sizes[::-1])[::-1])
        gradient[1:] += RIDGE * steps[1:]
        return value + 0.5 * RIDGE * float(steps[1:] @ steps[1:]), gradient

    steps = _least(loss, np.zeros(size + 1))
    values = start.values.copy()
    values[LINK_WEIGHT] += steps[0]
    values[FIXED_WEIGHTS:] += _cumulate(steps[1:], start.sizes)
    return LevelWeights(start.sizes, values)


def _logistic_loss(score: Floats, sign: Floats, share: Floats) -> tuple[float, Floats]:
    """Return the logistic loss of scores, and its gradient with respect to them."""
    margin = sign * score
    wrong = 0.5 * (1.0 - np.tanh(0.5 * margin))
    return float(share @ np.logaddexp(0.0, -margin)), -share * sign * wrong


def _least(loss: Callable[[Floats], tuple[float, Floats]], start: Floats) -> Floats:
    from scipy.optimize import minimize  # imported here, so that applying a model does not load SciPy

    options = {"maxiter": ITERATIONS, "ftol": SETTLED}
    with threadpool_limits(1):  # the arrays are too small for several threads to help
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)


def _cumulate(steps: Floats, sizes: tuple[int, ...]) -> Floats:
    """Return the running sums of steps within each comparison."""
    sums = np.append(0.0, np.cumsum(steps))
    starts = np.cumsum((0, *sizes))[:-1]
    return np.asarray(sums[1:] - np.repeat(sums[starts], sizes))


def _levels_seen(levels: NDArray[np.uint8], weights: LevelWeights) -> csr_array:
    """Return a sparse 0/1 matrix, with a row per pair and a one for its level in each comparison."""
    from scipy.sparse import csr_array

    there = levels > 0
    columns = (levels.astype(np.int64) + (weights.offsets - FIXED_WEIGHTS - 1))[there]
    bounds = np.append(0, np.cumsum(there.sum(axis=1)))
    size = len(weights.values) - FIXED_WEIGHTS
    return csr_array((np.ones(len(columns)), columns, bounds), shape=(len(levels), size))
