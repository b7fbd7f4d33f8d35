"""The perceptron's rule: add the gradient itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from factorwise.arguments import check_types
from factorwise.kernels.walks.rules import update_unit
from factorwise.learning.updates.base import UpdateRule
from factorwise.validation import check_number

# A lead nearer to zero than the smallest normal number is a tie.
TIE = float(np.finfo(np.float64).tiny)


@check_types
@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(UpdateRule):
    """Add ``rate / (1 + decay * updates so far)`` times the gradient whenever the better world does not lead.

    rate
        First multiple.
    decay
        How fast it falls; zero for steps of one size. The steps sum to infinity for any value, so no weights
        are out of reach; with a positive one their squares do not.
    strict
        Let ties pass. From weights of zero everything is a tie and nothing is ever learned.

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
        """What the rule reads."""
        return {"rate": self.rate, "decay": self.decay, "limit": -TIE if self.strict else 0.0}
