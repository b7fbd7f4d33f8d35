"""Updates in plain Python from a sparse gradient: the numbers of the compiled form, for any kind of world."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.updates import (
    ADAGRAD,
    BOUND,
    KIND,
    LANES,
    MISRANKED,
    PAD,
    STEPS,
    TINY,
    UPDATES,
    WITH_VARIANCE,
    UpdateArrays,
    correction,
    may_update,
)
from factorwise.model.weights import SparseVector


def count_step(u: UpdateArrays) -> None:
    """End a step, whether or not it taught anything: to be called once a step, after `learn_sparse`."""
    u.tally[STEPS] += 1


def learn_sparse(
    u: UpdateArrays, gradient: SparseVector, direction: float, lead: float, truth_gain: float
) -> bool:
    """Correct the weights if the rule finds the lead of the better world too small; say whether it did.

    gradient
        Statistics of the world after a step minus those of the world before.
    direction
        1 where the world after is the better one, -1 where the world before is.
    lead
        Score of the better world minus that of the other.
    truth_gain
        By how much the better world is better, greater than zero.

    Touches only the weights that the gradient names, and leaves exactly the numbers that the compiled `learn`
    leaves for the same gradient with its zeros.
    """
    if lead <= 0.0:
        u.tally[MISRANKED] += 1
    settings, kind = u.settings.tolist(), int(u.tally[KIND])
    if not may_update(settings, lead, truth_gain):
        return False
    index, value, second = gradient.index, gradient.value, u.second[gradient.index]
    with np.errstate(over="ignore", invalid="ignore"):  # sums that are not finite are refused below
        norm = _sum_by_lanes(index, value * value)
        spread = _sum_by_lanes(index, second * value * value) if kind in WITH_VARIANCE else norm
    if not (TINY < norm < math.inf and TINY < spread < math.inf):
        return False
    step, shrink = correction(settings, kind, int(u.tally[UPDATES]), lead, truth_gain, norm, spread)
    if not (0.0 < step < math.inf and shrink < math.inf):
        return False
    change = direction * step * value
    if kind in WITH_VARIANCE:
        scaled = second * value
        change = direction * step * scaled
        u.second[index] = np.maximum(settings[BOUND], second / (1.0 + shrink * (scaled * value)))
    elif kind == ADAGRAD:
        u.second[index] = second + value * value
        change /= np.sqrt(u.second[index]) + settings[PAD]
    u.weights[index] += change
    u.drift[index] += float(u.tally[STEPS]) * change
    u.tally[UPDATES] += 1
    u.largest[0] = max(u.largest[0], norm)
    return True


def _sum_by_lanes(index: NDArray[np.int64], terms: NDArray[np.float64]) -> float:
    """Add in the order of the compiled sum, which the zeros left out do not alter."""
    a, b, c, d = np.bincount(index % LANES, weights=terms, minlength=LANES).tolist()
    return float((a + b) + (c + d))
