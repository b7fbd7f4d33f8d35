"""Adaptive regularization of weights: confidence weighting that tolerates noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from factorwise.kernels.walks.rules import update_arow
from factorwise.learning.updates.base import UpdateRule
from factorwise.validation import check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Arow(UpdateRule):
    r"""Update whenever the better world leads by less than one, without requiring that it then does.

    The Gaussian over the weights moves to the one that minimises the Kullback-Leibler divergence to the old
    one plus :math:`(\max(0, 1 - \mu g)^2 + g^\top \Sigma g) / (2 r)` (crammer2009adaptive). With the lead
    :math:`m = \mu g` and the spread :math:`v = g^\top \Sigma g` before, setting derivatives to zero gives
    :math:`\mu + \alpha \Sigma g`, where :math:`\alpha = \max(0, 1 - m) / (v + r)`, and
    :math:`\Sigma^{-1} + g g^\top / r`, of which the diagonal is kept, as in `ConfidenceWeighted`.

    A margin other than one would only scale all weights.

    regularization
        r: larger means smaller steps and variances that fall more slowly.
    variance
        Initial variance of every weight.
    """

    regularization: float = 1.0
    variance: float = 1.0

    function = staticmethod(update_arow)

    def __post_init__(self) -> None:
        check_number("regularization", self.regularization, above=0, finite=True)
        check_number("variance", self.variance, above=0, finite=True)

    @property
    def settings(self) -> Mapping[str, float]:
        """The settings that the rule reads."""
        return {"regularization": self.regularization}

    @property
    def first(self) -> float:
        """The initial variance."""
        return self.variance
