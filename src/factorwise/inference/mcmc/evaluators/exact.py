"""The exact gain, from all touched factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from factorwise.inference.mcmc.evaluators.base import Estimate
from factorwise.model.contributions import Contributions, as_contributions
from factorwise.rng import Stream
from factorwise.types import Bools, Float64s, Int8s


@dataclass(frozen=True, slots=True)
class Exact:
    """Examine every touched factor, so that the chain samples ``exp(score / temperature)``."""

    @property
    def needs_bounds(self) -> bool:
        """Whether bounds must be known: no."""
        return False

    def multipliers(self, stream: Stream, changes: Float64s, stratum: Int8s, certain: Bools) -> Float64s:
        """Return 1 for each factor."""
        return np.ones(changes.shape[1])

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Sum all changes, without random numbers."""
        listed = as_contributions(contributions)
        return Estimate(listed.total(), len(listed), np.ones(len(listed)))


EXACT = Exact()
