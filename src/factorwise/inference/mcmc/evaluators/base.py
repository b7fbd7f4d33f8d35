"""What an evaluator is: how the gain of a diff is obtained from the factors that the diff touches.

An evaluator examines some of the factors and estimates the gain. Metropolis-Hastings weighs the estimate as
if it were the gain, so most evaluators change what a chain samples; the docstring of each says whether it
does.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from factorwise.model.contributions import Contributions
from factorwise.rng import Stream
from factorwise.types import Bools, Float64s, Int8s

_NO_MULTIPLIERS = np.zeros(0)


class Estimate(NamedTuple):
    """What one evaluation found.

    gain
        Estimated change of score, to be weighed by the acceptance.
    examined
        Factors whose scores were computed.
    multiplier : float64[factors]
        What each factor's change was multiplied by before summing: 0 for those not examined. Empty where the
        estimate is no such sum.
    correction
        For a test in two stages: the exact gain minus ``gain``, which the second stage weighs.
    """

    gain: float
    examined: int
    multiplier: Float64s = _NO_MULTIPLIERS
    correction: float | None = None


class Evaluator(Protocol):
    """How the gain of a diff is obtained."""

    @property
    def needs_bounds(self) -> bool:
        """Whether the factors' bounds must be known."""
        ...

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Examine some of the touched factors and estimate the sum of their signed changes."""
        ...


class FactorSampler(Protocol):
    """An evaluator that weighs the factors it samples: what Gibbs sampling and SampleRank can use."""

    def multipliers(self, stream: Stream, changes: Float64s, stratum: Int8s, certain: Bools) -> Float64s:
        """Sample factors and return what each is multiplied by.

        changes : float64[alternatives, factors]
            Signed change of each factor under each alternative to the present setting: one for a diff of
            Metropolis-Hastings, one per other label for Gibbs sampling. One sample serves them all.
        """
        ...
