"""The perceptron's rule: add the gradient itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from factorwise.kernels.walks.rules import update_unit
from factorwise.learning.updates.base import UpdateRule
from factorwise.validation import check_number

# A lead closer to zero than the smallest normal number is a tie.
TIE = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(UpdateRule):
    """Add ``rate / (1 + decay * updates so far)`` times the gradient whenever the better world does not lead.

    rate
        The first multiple.
    decay
        How fast it decreases; zero for constant steps. The steps sum to infinity for any value, so that all
        weights can be reached; with a positive one the sum of their squares is finite.
    strict
        Do not update on ties. From zero weights everything is a tie, so nothing is ever learned.

    Implements: wick2009samplerank, Alg. 1 with a scalar rate, except that a tie is an error whichever of the
      two worlds is the better one (printed there for the world after the step only);
      rohanimanesh2009inference, Alg. 1, whose inequality is the strict one.
    """

    rate: float = 1.0
    decay: float = 0.0
    strict: bool = False

    function = staticmethod(update_unit)

    def __post_init__(self) -> None:
        check_number("rate", self.rate, above=0, finite=True)
        check_number("decay", self.decay, least=0, finite=True)

    @property
    def settings(self) -> Mapping[str, float]:
        """The settings that the rule reads."""
        return {"rate": self.rate, "decay": self.decay, "limit": -TIE if self.strict else 0.0}
