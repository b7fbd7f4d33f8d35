"""The interface of evaluators, which compute the gain of a diff from the factors that it touches.

An evaluator examines some of the factors and estimates the gain. Metropolis-Hastings uses the estimate as if
it were the gain, so most evaluators change the distribution of the chain; the docstring of each says whether
it does.
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
    """The result of one evaluation.

    gain
        Estimated change of score, which the acceptance uses.
    examined
        Number of factors whose scores were computed.
    multiplier : float64[factors]
        The number by which each factor's change was multiplied in the sum: 0 for those not examined. Empty if
        the estimate is not such a sum.
    correction
        For a test in two stages: the exact gain minus ``gain``, which the second stage uses.
    """

    gain: float
    examined: int
    multiplier: Float64s = _NO_MULTIPLIERS
    correction: float | None = None


class Evaluator(Protocol):
    """A way to compute the gain of a diff."""

    @property
    def needs_bounds(self) -> bool:
        """Whether the evaluator must know the factors' bounds."""
        ...

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Examine some of the touched factors and estimate the sum of their signed changes."""
        ...


class FactorSampler(Protocol):
    """An evaluator that multiplies sampled factors, which Gibbs sampling and SampleRank can use."""

    def multipliers(self, stream: Stream, changes: Float64s, stratum: Int8s, certain: Bools) -> Float64s:
        """Sample factors and return the multiplier of each.

        changes : float64[alternatives, factors]
            Signed change of each factor under each alternative to the current setting: one for a diff of
            Metropolis-Hastings, one per other label for Gibbs sampling. One sample serves all alternatives.
        """
        ...
