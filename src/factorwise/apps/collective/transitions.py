r"""Log-linear transition probabilities.

.. math:: p_k(j \mid i) = \frac{\exp(w^\top f_{kij})}{\sum_{j'} \exp(w^\top f_{kij'})}

over the possible pairs of table k. Given flows, L-BFGS finds the weights of maximum likelihood; the objective
is convex.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import logsumexp

from factorwise.apps.collective.features import TransitionFeatures
from factorwise.types import Floats


class Transitions:
    """Transition probabilities as a function of features and weights.

    features
        Features of each pair of places.
    l2
        L2 penalty: the objective contains ``l2 / 2`` times the squared norm of the weights.
    """

    def __init__(self, features: TransitionFeatures, l2: float) -> None:
        self.features = features
        self.l2 = l2

    def log_probabilities(self, weights: Floats) -> Floats:
        """Return the log-probabilities of all moves, float64[tables, from, to]."""
        scores = np.where(self.features.possible, self.features.values @ weights, -np.inf)
        return np.asarray(scores - logsumexp(scores, axis=2, keepdims=True))

    def penalty(self, weights: Floats) -> float:
        """Return the L2 penalty of the weights."""
        return 0.5 * self.l2 * float(weights @ weights)

    def objective(self, weights: Floats, flows: Floats) -> tuple[float, Floats]:
        """Return the penalised negative log-likelihood of flows [tables, from, to], and its gradient."""
        log_probability = self.log_probabilities(weights)
        taken = flows > 0
        value = self.penalty(weights) - float(flows[taken] @ log_probability[taken])
        surplus = flows.sum(axis=2, keepdims=True) * np.exp(log_probability) - flows
        gradient = np.tensordot(surplus, self.features.values, axes=3) + self.l2 * weights
        return value, gradient

    def fit(self, flows: Floats, start: ArrayLike) -> Floats:
        """Return the weights that minimise the objective."""
        result = minimize(
            self.objective,
            np.asarray(start, dtype=np.float64),
            args=(flows,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-7 * max(1.0, float(flows.sum()))},
        )
        return np.asarray(result.x)
