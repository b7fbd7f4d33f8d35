r"""Priors on weights, in the form of penalties: their negative logarithms.

.. math:: -\log p(w) = \lambda_1 \sum_j |w_j| + \lambda_2 \sum_j w_j^2 + \text{constant}

A Gaussian prior of variance :math:`\sigma^2` is :math:`\lambda_2 = 1 / (2 \sigma^2)`, a Laplacian prior of
scale :math:`\beta` is :math:`\lambda_1 = 1 / \beta`; both together are the elastic net.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ShapeError
from factorwise.types import Bools, Float64s, Floats
from factorwise.validation import check_number


@dataclass(frozen=True, slots=True)
class Prior:
    """The penalty ``l1 * sum(abs(w)) + l2 * sum(w ** 2)``; without a half, as CRFsuite's c1 and c2.

    l1, l2
        Penalties per absolute and per squared weight, zero or more.
    penalized : bool[weights] or None
        The weights to which ``l1`` applies; None means all. ``l2`` applies to all weights.

    Implements: mccallum17learning, the Gaussian and the Laplacian prior on w.

    >>> prior = Prior.gaussian(variance=0.5)
    >>> prior.l2, prior.penalty([1.0, -2.0])
    (1.0, 5.0)
    """

    l1: float = 0.0
    l2: float = 0.0
    penalized: Bools | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("l1", "l2"):
            check_number(name, getattr(self, name), least=0, finite=True)

    @classmethod
    def none(cls) -> Prior:
        """Return the prior without penalties: plain maximum likelihood."""
        return cls()

    @classmethod
    def gaussian(cls, variance: float) -> Prior:
        """Return the prior of weights around zero with this variance."""
        check_number("variance", variance, above=0)
        return cls(l2=0.5 / variance)

    @classmethod
    def laplace(cls, scale: float) -> Prior:
        """Return the prior of weights with this mean absolute value, many of them zero at the optimum."""
        check_number("scale", scale, above=0)
        return cls(l1=1.0 / scale)

    @classmethod
    def elastic_net(cls, l1: float, l2: float) -> Prior:
        """Return the prior with both penalties."""
        return cls(l1=l1, l2=l2)

    def on(self, penalized: ArrayLike) -> Prior:
        """Return the same prior with ``l1`` only for the weights that ``penalized`` (bool[weights]) marks."""
        mask = np.array(penalized, dtype=np.bool_)
        if mask.ndim != 1:
            raise ShapeError(
                f"penalized has {mask.ndim} dimensions. Give a flat array with one truth value per weight."
            )
        mask.flags.writeable = False
        return replace(self, penalized=mask)

    def penalty(self, weights: ArrayLike) -> float:
        """Return the penalty of ``weights`` (float64[n])."""
        w = np.asarray(weights, dtype=np.float64)
        return float(np.sum(self._prices(w) * np.abs(w)) + self.l2 * np.dot(w, w))

    def smooth_gradient(self, weights: ArrayLike) -> Float64s:
        """Return the gradient of the squared part, float64[n]."""
        return 2.0 * self.l2 * np.asarray(weights, dtype=np.float64)

    def violation(self, weights: ArrayLike, gradient: ArrayLike) -> Float64s:
        """Return how far each weight is from the conditions of an optimum, float64[n].

        gradient : float64[n]
            Gradient of the objective without the prior. The result is the gradient of objective plus prior if
            that has one; at a kink, it is the smallest slope in either direction, or zero.
        """
        w = np.asarray(weights, dtype=np.float64)
        slope = np.asarray(gradient, dtype=np.float64) + self.smooth_gradient(w)
        prices = self._prices(w)
        shrunk: Floats = np.sign(slope) * np.maximum(np.abs(slope) - prices, 0.0)
        return np.where(w == 0.0, shrunk, slope + np.sign(w) * prices)

    def _prices(self, weights: Floats) -> Float64s:
        if self.penalized is None:
            return np.full(weights.shape, self.l1)
        if self.penalized.shape != weights.shape:
            raise ShapeError(
                f"penalized has {len(self.penalized)} entries, but {weights.size} weights were given:"
                " give one truth value per weight."
            )
        return np.where(self.penalized, self.l1, 0.0)
