"""Update rules from their definitions: multipliers found by bisection, covariances as whole matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.learning.updates import (
    AdaGrad,
    Arow,
    ConfidenceWeighted,
    PassiveAggressive,
    Unit,
    UpdateRule,
)

HALVINGS = 120


class Learned(NamedTuple):
    """Weights, their variances or sums of squared gradients, and the number of updates that led to them."""

    weights: NDArray[np.float64]
    second: NDArray[np.float64]
    updates: int


def root_of(rising: Callable[[float], float]) -> float:
    """Where a rising function of numbers from zero on crosses zero; zero if it begins above."""
    if rising(0.0) >= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while rising(high) < 0.0:
        low, high = high, 2.0 * high
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if rising(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high


def variance_after(multiplier: float, phi: float, spread: float) -> float:
    """Variance of the lead that solves ``u = spread / (1 + multiplier phi spread / sqrt(u))``."""
    return root_of(lambda u: u + multiplier * phi * spread * math.sqrt(u) - spread)


def learn(
    rule: UpdateRule,
    before: Learned,
    gradient: NDArray[np.float64],
    direction: float,
    lead: float,
    truth_gain: float,
) -> Learned:
    """What a rule makes of one pair of worlds; the same object if it leaves everything alone."""
    towards = direction * gradient
    if not towards.any():
        return before
    match rule:
        case Unit():
            if lead > 0.0 or (rule.strict and lead == 0.0):
                return before
            step = rule.rate / (1.0 + rule.decay * before.updates)
            return Learned(before.weights + step * towards, before.second, before.updates + 1)
        case PassiveAggressive():
            if rule.only_misranked and lead > 0.0:
                return before
            step = _passive_aggressive_step(rule, lead, truth_gain, float(towards @ towards))
            if step == 0.0:
                return before
            return Learned(before.weights + step * towards, before.second, before.updates + 1)
        case ConfidenceWeighted():
            return _confidence_weighted(rule, before, towards, lead)
        case Arow():
            if lead >= 1.0:
                return before
            spread = float(towards @ np.diag(before.second) @ towards)
            # The derivative along the gradient of the divergence and the loss that is left.
            step = root_of(lambda a: a - (1.0 - lead - a * spread) / rule.regularization)
            return _moved(before, towards, step, 1.0 / rule.regularization)
        case AdaGrad():
            if lead > rule.margin:
                return before
            squares = before.second + towards**2
            change = rule.rate * towards / (np.sqrt(squares) + rule.epsilon)
            return Learned(before.weights + change, squares, before.updates + 1)
        case _:
            raise NotImplementedError(type(rule).__name__)


def _passive_aggressive_step(rule: PassiveAggressive, lead: float, truth_gain: float, norm: float) -> float:
    """Where the derivative along the gradient of distance and loss vanishes, or where the loss ends."""
    wanted = rule.margin * truth_gain if rule.scale_by_gain else rule.margin
    if rule.variant == "PA-II":
        return root_of(lambda a: a - 2.0 * rule.cap * (wanted - lead - a * norm))
    no_loss = root_of(lambda a: lead + a * norm - wanted)
    return min(rule.cap, no_loss) if rule.variant == "PA-I" else no_loss


def _confidence_weighted(
    rule: ConfidenceWeighted, before: Learned, towards: NDArray[np.float64], lead: float
) -> Learned:
    """The multiplier at which the constraint holds with equality, if it does not hold already."""
    phi = NormalDist().inv_cdf(rule.confidence)
    spread = float(towards @ np.diag(before.second) @ towards)
    if rule.form == "variance":
        step = root_of(lambda a: lead + a * spread - phi * spread / (1.0 + 2.0 * a * phi * spread))
        shrink = 2.0 * step * phi
    else:
        step = root_of(lambda a: lead + a * spread - phi * math.sqrt(variance_after(a, phi, spread)))
        shrink = step * phi / math.sqrt(variance_after(step, phi, spread))
    if step == 0.0:
        return before
    after = _moved(before, towards, step, shrink)
    return after._replace(second=np.maximum(after.second, rule.floor * rule.variance))


def _moved(before: Learned, towards: NDArray[np.float64], step: float, shrink: float) -> Learned:
    """Move the Gaussian and keep the diagonal of its inverse covariance."""
    covariance = np.diag(before.second)
    precision = np.linalg.inv(covariance) + shrink * np.outer(towards, towards)
    return Learned(before.weights + step * covariance @ towards, 1.0 / np.diag(precision), before.updates + 1)


def averaged(history: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Mean of the weight vectors that were kept at the end of each step."""
    return np.array(np.mean(history, axis=0))
