"""Adaptive regularization of weights: confidence weighting that bears noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from factorwise.errors import require
from factorwise.kernels.clusterings.updates import AROW, LIMIT, MARGIN, PAD
from factorwise.learning.updates.base import RuleCode, UpdateRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Arow(UpdateRule):
    r"""Update whenever the better world leads by less than one, but do not insist that it then does.

    The Gaussian over the weights moves to the one that minimises the Kullback-Leibler divergence to the old
    one plus :math:`(\max(0, 1 - \mu g)^2 + g^\top \Sigma g) / (2 r)` (crammer2009adaptive). With the lead
    :math:`m = \mu g` and the spread :math:`v = g^\top \Sigma g` before, setting derivatives to zero gives
    :math:`\mu + \alpha \Sigma g`, where :math:`\alpha = \max(0, 1 - m) / (v + r)`, and
    :math:`\Sigma^{-1} + g g^\top / r`, of which the diagonal is kept, as in `ConfidenceWeighted`.

    A margin other than one would only scale all weights.

    regularization
        r: larger means smaller steps and variances that fall more slowly.
    variance
        Of every weight at the start.
    """

    regularization: float = 1.0
    variance: float = 1.0

    def __post_init__(self) -> None:
        given = self.regularization
        require(0 < given < math.inf, "regularization", given, "a finite number greater than zero")
        require(0 < self.variance < math.inf, "variance", self.variance, "a finite number greater than zero")

    def code(self) -> RuleCode:
        """Return the rule as its kernel sees it."""
        return RuleCode(AROW, {LIMIT: math.inf, MARGIN: 1.0, PAD: self.regularization}, self.variance)
