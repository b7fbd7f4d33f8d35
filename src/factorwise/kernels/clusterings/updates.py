"""How one violated ranking corrects the weights: the inside of SampleRank's update rules.

Every rule adds a multiple of the gradient to the weights, towards the better world; some know a variance for
each weight and scale the gradient by it, AdaGrad by the squares seen so far. `correction` says by how much,
in plain numbers, so that dense and sparse gradients share it; `learn` applies it to a dense gradient.

Squares are summed in four lanes (index modulo four): the compiler keeps them in one register, and the sum
is the same, bit by bit, as over the entries that are not zero alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import hot, inner

UNIT, PASSIVE_AGGRESSIVE, CW_VARIANCE, CW_DEVIATION, AROW, ADAGRAD = range(6)
KIND, STEPS, UPDATES, MISRANKED = range(4)
LIMIT, MARGIN, SCALED, RATE, DECAY, BOUND, PAD, PHI = range(8)
WITH_VARIANCE = (CW_VARIANCE, CW_DEVIATION, AROW)
LANES = 4
TINY = 1e-200  # squares that sum to less are taken for zero: their products would be


class UpdateArrays(NamedTuple):
    """Weights that are being learned, and what the rule that learns them must know.

    weights : float64[W]
        Changed in place.
    second : float64[W]
        Variance of each weight (confidence-weighted, AROW), or the sum of its squared gradients (AdaGrad).
    drift : float64[W]
        Sum over updates of steps ended before it times its change. With T steps ended, the mean of the T
        weight vectors, each as it was when its step ended, is ``weights - drift / T``.
    settings : float64[8]
        ``LIMIT``: no update where the lead is above this. ``MARGIN``: nor where it is above this, which is
        multiplied by the truth gain if ``SCALED`` is not zero. ``RATE``, ``DECAY``: multiple of the gradient,
        and how it falls with the number of updates. ``BOUND``: largest multiple (passive-aggressive) or
        smallest variance (confidence-weighted, AROW). ``PAD``: what is added to a denominator (1 / (2 cap) in
        PA-II, AROW's regularization, AdaGrad's epsilon). ``PHI``: standard deviations of the lead that make
        the confidence.
    tally : int64[4]
        ``KIND`` of rule; ``STEPS`` ended; ``UPDATES`` made; ``MISRANKED``: calls of `learn` with a better
        world that scored no more than the other.
    largest : float64[1]
        Largest squared norm of a gradient that led to an update.
    """

    weights: NDArray[np.float64]
    second: NDArray[np.float64]
    drift: NDArray[np.float64]
    settings: NDArray[np.float64]
    tally: NDArray[np.int64]
    largest: NDArray[np.float64]


def may_update(settings: Sequence[float] | NDArray[np.float64], lead: float, truth_gain: float) -> bool:
    """Whether a lead may be too small, as far as can be said without the gradient; never for NaN."""
    wanted = settings[MARGIN] * truth_gain if settings[SCALED] != 0.0 else settings[MARGIN]
    return bool(lead <= min(wanted, settings[LIMIT]))


def correction(
    settings: Sequence[float] | NDArray[np.float64],
    kind: int,
    updates: int,
    lead: float,
    truth_gain: float,
    norm: float,
    spread: float,
) -> tuple[float, float]:
    """Multiple of the (scaled) gradient to add, and of its squares to add to the inverse variances.

    The first is zero where the rule is content with the lead. Solves each rule's problem for one gradient in
    closed form, written so that no two nearly equal numbers are subtracted.

    norm, spread
        Sum of squares of the gradient, and the same weighted by the variances; greater than zero.
    """
    step, shrink = settings[RATE], 0.0
    phi, square = settings[PHI], settings[PHI] * settings[PHI]
    if kind == UNIT:
        step /= 1.0 + settings[DECAY] * updates
    elif kind == PASSIVE_AGGRESSIVE:
        wanted = settings[MARGIN] * truth_gain if settings[SCALED] != 0.0 else settings[MARGIN]
        step = min(settings[BOUND], max(0.0, wanted - lead) / (norm + settings[PAD]))
    elif kind == CW_VARIANCE:  # the root a of lead + a v = phi v / (1 + 2 a phi v), where v is the spread
        missing, slope = max(0.0, phi * spread - lead), 1.0 + 2.0 * phi * lead
        root = math.sqrt(slope * slope + 8.0 * phi * missing)
        if slope > 0.0:
            step = 2.0 * missing / (spread * (slope + root))
        else:
            step = (root - slope) / (4.0 * phi * spread)
        shrink = 2.0 * phi * step
    elif (
        kind == CW_DEVIATION
    ):  # the root a of lead + a v = phi sqrt(u), where u = v / (1 + a phi v / sqrt(u))
        needed, half = phi * math.sqrt(spread), (1.0 + 0.5 * square) * lead
        root = math.sqrt(0.25 * square * square * lead * lead + square * (1.0 + square) * spread)
        if lead > 0.0:
            step = max(0.0, needed - lead) * (needed + lead) / (spread * (half + root))
        else:
            step = (root - half) / (spread * (1.0 + square))
        shrink = 0.5 * phi * step * (phi * step + math.sqrt(square * step * step + 4.0 / spread))
    elif kind == AROW:
        step = max(0.0, settings[MARGIN] - lead) / (spread + settings[PAD])
        shrink = 1.0 / settings[PAD]
    return step, shrink


_may_update = hot(may_update)
_correction = hot(correction)


@hot
def count_step(u: UpdateArrays) -> None:
    """End a step, whether or not it taught anything: to be called once a step, after `learn`."""
    u.tally[STEPS] += 1


@hot
def learn(
    u: UpdateArrays, gradient: NDArray[np.float64], direction: float, lead: float, truth_gain: float
) -> bool:
    """Correct the weights if the rule finds the lead of the better world too small; say whether it did.

    gradient : float64[W]
        Statistics of the world after a step minus those of the world before.
    direction
        1 where the world after is the better one, -1 where the world before is.
    lead
        Score of the better world minus that of the other.
    truth_gain
        By how much the better world is better, greater than zero.

    A gradient whose squares sum to zero, to infinity or to NaN changes nothing, nor does a step that is not
    a finite number.
    """
    if lead <= 0.0:
        u.tally[MISRANKED] += 1
    if not _may_update(u.settings, lead, truth_gain):
        return False
    return _correct(u, gradient, direction, lead, truth_gain)


@inner
def _correct(
    u: UpdateArrays, gradient: NDArray[np.float64], direction: float, lead: float, truth_gain: float
) -> bool:
    """Do what `learn` does once the lead alone does not rule it out."""
    kind = u.tally[KIND]
    has_variance = kind in WITH_VARIANCE
    norm = _sum_of_squares(gradient, len(u.weights))
    spread = _weighted_squares(gradient, u.second) if has_variance else norm
    if not (TINY < norm < math.inf and TINY < spread < math.inf):
        return False
    step, shrink = _correction(u.settings, kind, u.tally[UPDATES], lead, truth_gain, norm, spread)
    if not (0.0 < step < math.inf and shrink < math.inf):
        return False
    signed, ended = direction * step, float(u.tally[STEPS])
    if has_variance:
        _add_by_variance(u, gradient, signed, shrink, u.settings[BOUND], ended)
    elif kind == ADAGRAD:
        _add_by_squares(u, gradient, signed, u.settings[PAD], ended)
    else:
        _add(u, gradient, signed, ended)
    u.tally[UPDATES] += 1
    u.largest[0] = max(u.largest[0], norm)
    return True


@hot
def _sum_of_squares(gradient: NDArray[np.float64], size: int) -> float:
    a = b = c = d = 0.0
    whole = size - size % LANES
    for i in range(0, whole, LANES):
        a += gradient[i] * gradient[i]
        b += gradient[i + 1] * gradient[i + 1]
        c += gradient[i + 2] * gradient[i + 2]
        d += gradient[i + 3] * gradient[i + 3]
    if whole < size:
        a += gradient[whole] * gradient[whole]
    if whole + 1 < size:
        b += gradient[whole + 1] * gradient[whole + 1]
    if whole + 2 < size:
        c += gradient[whole + 2] * gradient[whole + 2]
    return (a + b) + (c + d)


@hot
def _weighted_squares(gradient: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    a = b = c = d = 0.0
    size = len(second)
    whole = size - size % LANES
    for i in range(0, whole, LANES):
        a += second[i] * gradient[i] * gradient[i]
        b += second[i + 1] * gradient[i + 1] * gradient[i + 1]
        c += second[i + 2] * gradient[i + 2] * gradient[i + 2]
        d += second[i + 3] * gradient[i + 3] * gradient[i + 3]
    if whole < size:
        a += second[whole] * gradient[whole] * gradient[whole]
    if whole + 1 < size:
        b += second[whole + 1] * gradient[whole + 1] * gradient[whole + 1]
    if whole + 2 < size:
        c += second[whole + 2] * gradient[whole + 2] * gradient[whole + 2]
    return (a + b) + (c + d)


@hot
def _add(u: UpdateArrays, gradient: NDArray[np.float64], signed: float, ended: float) -> None:
    weights, drift = u.weights, u.drift
    for i in range(len(weights)):
        change = signed * gradient[i]
        weights[i] += change
        drift[i] += ended * change


@hot
def _add_by_variance(
    u: UpdateArrays,
    gradient: NDArray[np.float64],
    signed: float,
    shrink: float,
    floor: float,
    ended: float,
) -> None:
    weights, drift, variance = u.weights, u.drift, u.second
    for i in range(len(weights)):
        scaled = variance[i] * gradient[i]
        change = signed * scaled
        weights[i] += change
        drift[i] += ended * change
        variance[i] = max(floor, variance[i] / (1.0 + shrink * (scaled * gradient[i])))


@hot
def _add_by_squares(
    u: UpdateArrays, gradient: NDArray[np.float64], signed: float, pad: float, ended: float
) -> None:
    weights, drift, squares = u.weights, u.drift, u.second
    for i in range(len(weights)):
        squares[i] += gradient[i] * gradient[i]
        change = signed * gradient[i] / (math.sqrt(squares[i]) + pad)
        weights[i] += change
        drift[i] += ended * change
