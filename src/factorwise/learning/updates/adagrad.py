"""AdaGrad: a rate for each weight that decreases with its past gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from factorwise.kernels.walks.rules import update_adagrad
from factorwise.learning.updates.base import UpdateRule
from factorwise.validation import check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaGrad(UpdateRule):
    r"""Add ``rate`` times the gradient, each entry divided by the root of the sum of its squares so far.

    The entry :math:`g_j` moves its weight by :math:`\text{rate}\, g_j / (\sqrt{\sum g_j^2} + \epsilon)`. The
    sum runs over the gradients that led to an update, this one included: the diagonal form of
    duchi2011adaptive on the hinge loss :math:`\max(0, \text{margin} - \text{lead})`.

    rate
        Size of the first change of a weight.
    epsilon
        Keeps the quotient finite for a weight without past gradients.
    margin
        Update whenever the lead of the better world is no more than this.
    """

    rate: float = 1.0
    epsilon: float = 1e-8
    margin: float = 0.0

    function = staticmethod(update_adagrad)

    def __post_init__(self) -> None:
        check_number("rate", self.rate, above=0, finite=True)
        check_number("epsilon", self.epsilon, above=0, finite=True)
        check_number("margin", self.margin, least=0, finite=True)

    @property
    def settings(self) -> Mapping[str, float]:
        """The settings that the rule reads."""
        return {"rate": self.rate, "epsilon": self.epsilon, "margin": self.margin}
