r"""Delayed acceptance: a sampled test first, and the exact one only for proposals that pass it.

Let :math:`\Delta` be the exact gain and :math:`\hat\Delta_S` an estimate from a sample S of the touched
factors. A proposal is accepted with probability

.. math:: \min\{1, e^{\hat\Delta_S / T} q'/q\} \cdot \min\{1, e^{(\Delta - \hat\Delta_S) / T}\}

The factors that the way back touches are the same with opposite signs, so that the same S has the estimate
:math:`-\hat\Delta_S` there. A sampler whose law over S does not depend on the signs draws S equally often
from both sides; then, for each S, forward over backward probability is
:math:`e^{\hat\Delta_S / T} (q'/q) \cdot e^{(\Delta - \hat\Delta_S) / T}`, which is detailed balance.
Both samplers here are such: a uniform one does not look at the changes, and a confidence interval looks at
their spread.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.evaluators.base import Estimate
from factorwise.inference.mcmc.evaluators.programs import delayed_programs
from factorwise.inference.mcmc.evaluators.sampled import ConfidenceSample, UniformSample
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.model.contributions import Contributions, as_contributions
from factorwise.rng import Stream


@dataclass(frozen=True, slots=True)
class DelayedAcceptance:
    """Examine a sample, and the rest only if the sample speaks for the proposal: the chain stays exact.

    A rejection in the first stage costs the sample; every other proposal costs all factors, so that it saves
    where most proposals are bad. It accepts at most as often as the exact test.

    first
        What the first stage examines.
    """

    first: UniformSample | ConfidenceSample

    def __post_init__(self) -> None:
        if not isinstance(self.first, UniformSample | ConfidenceSample):
            raise InvalidArgumentError(
                f"the first stage must sample by a law that is the same forward and backward: give"
                f" UniformSample or ConfidenceSample, not {self.first!r}."
            )

    @property
    def needs_bounds(self) -> bool:
        """No."""
        return False

    @property
    def estimates(self) -> bool:
        """No: what is accepted has been examined."""
        return False

    def programs(self, parts: Surroundings, *, balanced: bool) -> dict[str, Any]:
        """Return the templates of a walk that samples, and an acceptance with a second stage."""
        return delayed_programs(self.first.sampled(parts), balanced=balanced)

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Estimate the gain for the first stage, and what the second has to correct."""
        listed = as_contributions(contributions)
        found = self.first.evaluate(stream, listed, temperature)
        return found._replace(correction=_correction(listed.total(), found.gain))


def _correction(total: float, estimate: float) -> float:
    """Exact minus estimated gain; nothing to correct where a hard factor has decided."""
    return total - estimate if math.isfinite(estimate) else 0.0
