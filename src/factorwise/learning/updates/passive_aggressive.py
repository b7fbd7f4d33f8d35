"""Passive-aggressive rules: the smallest change that gives the better world its margin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from factorwise.errors import require
from factorwise.kernels.walks.rules import update_passive_aggressive
from factorwise.learning.updates.base import UpdateRule
from factorwise.validation import check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class PassiveAggressive(UpdateRule):
    r"""Update whenever the better world leads by less than the margin.

    With the loss :math:`\ell = \max(0, \text{margin} - \text{lead})` of a gradient :math:`g`, the new weights
    minimise half the squared distance to the old ones

    - "PA": subject to no loss being left, :math:`\tau = \ell / |g|^2`;
    - "PA-I": plus ``cap`` times the loss left, :math:`\tau = \min(\text{cap}, \ell / |g|^2)`;
    - "PA-II": plus ``cap`` times its square, :math:`\tau = \ell / (|g|^2 + 1 / (2\,\text{cap}))`;

    where :math:`\tau` is the multiple of the gradient that is added: each problem is convex, and its solution
    is the multiple at which the derivative along the gradient vanishes. The rules are those of
    crammer2006online with a pair of worlds for the instance and the preference for its label.

    variant
        Which of the three. The paper on SampleRank says MIRA without saying which; `Mira` is "PA-I".
    cap
        Limit of a correction; larger is more aggressive. Without effect in "PA".
    margin
        The lead that the better world must have.
    scale_by_gain
        Multiply the margin by the preference's gain.
    only_misranked
        Do not update as long as the better world leads at all.
    """

    variant: Literal["PA", "PA-I", "PA-II"] = "PA-I"
    cap: float = 1.0
    margin: float = 1.0
    scale_by_gain: bool = False
    only_misranked: bool = False

    function = staticmethod(update_passive_aggressive)

    def __post_init__(self) -> None:
        known = ("PA", "PA-I", "PA-II")
        require(self.variant in known, "variant", self.variant, "one of " + ", ".join(known))
        check_number("cap", self.cap, above=0, finite=True)
        check_number("margin", self.margin, above=0, finite=True)

    @property
    def settings(self) -> Mapping[str, float]:
        """The settings that the rule reads."""
        return {
            "limit": 0.0 if self.only_misranked else math.inf,
            "margin": self.margin,
            "scaled": float(self.scale_by_gain),
            "cap": self.cap if self.variant == "PA-I" else math.inf,
            "pad": 0.5 / self.cap if self.variant == "PA-II" else 0.0,
        }


Mira = PassiveAggressive
"""The name by which the paper on SampleRank calls it; as it stands it is "PA-I"."""
