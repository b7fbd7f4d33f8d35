"""Confidence-weighted rules: rarely seen weights change more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from factorwise.errors import require
from factorwise.kernels.walks.rules import update_confidence_weighted
from factorwise.learning.updates.base import UpdateRule
from factorwise.validation import check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceWeighted(UpdateRule):
    r"""Keep a Gaussian over the weights that ranks the two worlds correctly with probability ``confidence``.

    The Gaussian :math:`N(\mu, \Sigma)` moves to the one nearest to it, in the Kullback-Leibler divergence of
    the new from the old, for which, with :math:`\phi` the normal quantile of ``confidence`` and :math:`g` the
    gradient towards the better world,

    - "deviation": :math:`\mu g \ge \phi \sqrt{g^\top \Sigma g}`, the exact condition (crammer2008exact);
    - "variance": :math:`\mu g \ge \phi\, g^\top \Sigma g`, an approximation of it (dredze2008confidence).

    Setting the derivatives of the Lagrangian to zero gives :math:`\mu + \alpha \Sigma g` and
    :math:`\Sigma^{-1} + \beta g g^\top`; the constraint, then an equality, is quadratic in :math:`\alpha`.
    With the lead :math:`m = \mu g` and the spread :math:`v = g^\top \Sigma g`, its larger root is

    - "deviation": :math:`\alpha = (-m \psi + \sqrt{m^2 \phi^4 / 4 + v \phi^2 \xi}) / (v \xi)`, where
      :math:`\psi = 1 + \phi^2 / 2` and :math:`\xi = 1 + \phi^2`; :math:`\beta = \alpha \phi / \sqrt{u}`,
      where :math:`\sqrt{u} = (-\alpha v \phi + \sqrt{\alpha^2 v^2 \phi^2 + 4 v}) / 2`;
    - "variance": :math:`\alpha = (-b + \sqrt{b^2 - 8 \phi (m - \phi v)}) / (4 \phi v)`, where
      :math:`b = 1 + 2 \phi m`; :math:`\beta = 2 \alpha \phi`.

    Only variances are kept: of the new :math:`\Sigma^{-1}` the diagonal alone, which is the diagonal Gaussian
    nearest to the full one in the same divergence.

    A lead that noise reverses again and again makes variances decrease without end, in the deviation form by
    their square: if preferences cannot all be satisfied, that form stops learning after some hundred updates,
    unless a floor keeps it learning.

    confidence
        Probability of a correct ranking after an update, above one half. Use smaller values for noisy
        preferences.
    form
        Which constraint. The paper on SampleRank uses "the approximate version", the variance form.
    variance
        Initial variance of every weight, which sets the scale of the weights.
    floor
        Smallest variance, as a share of the initial one. Close to zero, weights settle early and stay.
    only_misranked
        Do not update pairs that are ranked correctly but with too little confidence, as in the paper on
        SampleRank: if no weights rank everything correctly, variances then decrease more slowly.
    """

    confidence: float = 0.9
    form: Literal["variance", "deviation"] = "variance"
    variance: float = 1.0
    floor: float = 0.1
    only_misranked: bool = False

    function = staticmethod(update_confidence_weighted)

    def __post_init__(self) -> None:
        check_number("confidence", self.confidence, above=0.5, below=1)
        known = ("variance", "deviation")
        require(self.form in known, "form", self.form, "one of " + ", ".join(known))
        check_number("variance", self.variance, above=0, finite=True)
        check_number("floor", self.floor, above=0, most=1)

    @property
    def settings(self) -> Mapping[str, float]:
        """The settings that the rule reads."""
        return {
            "limit": 0.0 if self.only_misranked else math.inf,
            "phi": NormalDist().inv_cdf(self.confidence),
            "floor": self.floor * self.variance,
            "deviation": float(self.form == "deviation"),
        }

    @property
    def first(self) -> float:
        """The initial variance."""
        return self.variance
