"""The exact gain, from all touched factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.inference.mcmc.evaluators.base import Estimate, Float64s, Outcomes
from factorwise.model.contributions import Contributions, as_contributions
from factorwise.rng import Stream


@dataclass(frozen=True, slots=True)
class Exact:
    """Examine every touched factor: the chain samples ``exp(score / temperature)``."""

    @property
    def needs_bounds(self) -> bool:
        """No."""
        return False

    def multipliers(
        self, stream: Stream, changes: Float64s, stratum: NDArray[np.int8], certain: NDArray[np.bool_]
    ) -> Float64s:
        """Return 1 for each factor."""
        return np.ones(changes.shape[1])

    def samples(
        self, changes: Float64s, stratum: NDArray[np.int8], certain: NDArray[np.bool_]
    ) -> Iterator[tuple[float, Float64s]]:
        """Yield all factors."""
        yield 1.0, np.ones(changes.shape[1])

    def evaluate(
        self, stream: Stream, contributions: Contributions | ArrayLike, temperature: float = 1.0
    ) -> Estimate:
        """Sum all changes; draws nothing."""
        listed = as_contributions(contributions)
        return Estimate(listed.total(), len(listed), np.ones(len(listed)))

    def outcomes(self, contributions: Contributions | ArrayLike, temperature: float = 1.0) -> Outcomes:
        """Return the one outcome."""
        listed = as_contributions(contributions)
        return Outcomes(np.ones(1), np.array([listed.total()]), np.array([float(len(listed))]), np.zeros(1))


EXACT = Exact()
