r"""Delayed acceptance: a sampled test first, and the exact one only for proposals that pass it.

Let :math:`\Delta` be the exact gain and :math:`\hat\Delta_S` an estimate from a sample S of the touched
factors. A proposal is accepted with probability

.. math:: \min\{1, e^{\hat\Delta_S / T} q'/q\} \cdot \min\{1, e^{(\Delta - \hat\Delta_S) / T}\}

The way back touches the same factors with opposite signs, so the same S gives the estimate
:math:`-\hat\Delta_S` there. A sampler whose distribution over S does not depend on the signs draws S with the
same probability in both directions; then, for each S, forward over backward probability is
:math:`e^{\hat\Delta_S / T} (q'/q) \cdot e^{(\Delta - \hat\Delta_S) / T}`, which is detailed balance. Both
samplers here have this property: the uniform one does not read the changes, and the confidence interval
depends only on their spread.
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
    """Examine a sample first, and the rest only if the sample favors the proposal: the chain stays exact.

    A rejection in the first stage costs the sample; any other proposal costs all factors. So it saves time if
    most proposals are bad. It accepts at most as often as the exact test.

    first
        The evaluator of the first stage.
    """

    first: UniformSample | ConfidenceSample

    def __post_init__(self) -> None:
        if not isinstance(self.first, UniformSample | ConfidenceSample):
            raise InvalidArgumentError(
                f"the first stage must sample in the same way forward and backward, but {self.first!r}"
                " was given: use UniformSample or ConfidenceSample."
            )

    @property
    def needs_bounds(self) -> bool:
        """Whether bounds must be known: no."""
        return False

    @property
    def estimates(self) -> bool:
        """Whether the gains of accepted moves are estimates: no, they were computed exactly."""
        return False

    def programs(self, parts: Surroundings, *, balanced: bool) -> dict[str, Any]:
        """Return the sampling templates of a walk, and an acceptance with a second stage."""
        return delayed_programs(self.first.sampled(parts), balanced=balanced)

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Estimate the gain for the first stage, and the correction for the second."""
        listed = as_contributions(contributions)
        estimate = self.first.evaluate(stream, listed, temperature)
        return estimate._replace(correction=_correction(listed.total(), estimate.gain))


def _correction(total: float, estimate: float) -> float:
    """Return the exact minus the estimated gain; zero if a hard factor has decided."""
    return total - estimate if math.isfinite(estimate) else 0.0
