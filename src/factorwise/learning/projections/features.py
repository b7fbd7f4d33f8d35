r"""Learn weights of nearest-target energies as a linear function of features of the input.

With the marginals held fixed, the energy of sequence i shifts its chain by :math:`\psi_i d_i`, where
:math:`d_i` is the gradient of its distance. The log-likelihood of the truth is then concave in
:math:`\psi_i`, with slope :math:`-d_i^\top (a_i^* - a_i)`, and so it is in the coefficients of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection import (
    ChainsBase,
    FeatureWeights,
    NearestParts,
    project_chains,
)
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import minimize
from factorwise.types import Float64s, Floats, Ints
from factorwise.validation import check_count

INNER = 30  # iterations with the marginals held fixed
LEAST = 1e-6  # with a smaller weight, the shift does not determine the slope


@dataclass(frozen=True, eq=False)
class LabeledChains:
    """Chains with their true labels, their energies except for the weights, and features of each.

    truth : int[places]
        Labels of all chains, one after the other.
    features : float64[chains, features]
    """

    base: ChainsBase
    energy: NearestParts
    truth: Ints
    features: Floats

    def __post_init__(self) -> None:
        positions, chains = len(self.base.node), len(self.base.start) - 1
        if self.truth.shape != (positions,) or self.features.ndim != 2 or len(self.features) != chains:
            raise ShapeError(
                f"labels of shape {self.truth.shape} and features of shape {self.features.shape} were"
                f" given for {chains} chains with {positions} positions: give a label for each position"
                " and a row of features for each chain."
            )

    def directions(self, weights: FeatureWeights, max_iterations: int, candidates: int) -> Floats:
        """Project, and return the gradient of the distances at the marginals.

        At a kink of the distance it is the subgradient at which the projection stopped.
        """
        energy = self.energy.with_weights(weights.at(self.features)[:, 0])
        projected = project_chains(self.base, energy, max_iterations=max_iterations, candidates=candidates)
        weight = energy.spread(energy.weights)
        slope = energy.unit_slope_of(projected.measured)
        np.divide(projected.shift, weight, out=slope, where=np.abs(weight) > LEAST)
        return slope

    def held(self, weights: FeatureWeights, directions: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood of the truth for fixed directions, and its gradient.

        Implements: vilnis2015bethe, Eq. 12, and Eq. 15 to 17 with the sign that they leave out.
        """
        energy = self.energy
        shift = energy.spread(weights.at(self.features)[:, 0]) * directions
        marginals, log_partitions = self.base.answers(energy.measurement.adjoint(shift))
        apart = energy.measurement.apply(marginals) - self._true_measured
        value = self._true_score - float(shift @ self._true_measured) - float(log_partitions.sum())
        gradient = energy.summed(directions * apart)
        return value, weights.gradient(self.features, gradient[:, None])

    @cached_property
    def _true_measured(self) -> Floats:
        labels = len(self.base.edge)
        return self.energy.measurement.apply(np.eye(labels)[self.truth].ravel())

    @cached_property
    def _true_score(self) -> float:
        base, path = self.base, self.truth
        inner = np.setdiff1d(np.arange(1, len(path)), base.start)
        return float(
            base.node[np.arange(len(path)), path].sum() + base.edge[path[inner - 1], path[inner]].sum()
        )


def learn_feature_weights(
    groups: Sequence[LabeledChains],
    *,
    prior: Prior,
    begin: Floats | None = None,
    rounds: int = 4,
    max_iterations: int = 20,
    candidates: int = 1,
) -> FeatureWeights:
    """Learn the coefficients of features in which the weights of the energies are linear.

    groups
        Chains with the same features; each group may have its own table, for chains that were trained on
        different parts of the data.
    begin : float64[features]
        Initial coefficients; zeros by default.
    rounds
        How often all chains are projected. After each projection the likelihood is maximised with the
        marginals held fixed.
    max_iterations, candidates
        Options of the projections.

    Implements: vilnis2015bethe, Algorithm 2, with its inner loop run to convergence by L-BFGS.
    """
    if not groups or len({group.features.shape[1] for group in groups}) != 1:
        raise InvalidArgumentError("give at least one group of chains, all with the same features.")
    check_count("rounds", rounds)
    size = groups[0].features.shape[1]
    coefficients = np.zeros(size) if begin is None else np.asarray(begin, dtype=np.float64)
    for _ in range(rounds):
        now = _weights(coefficients)
        directions = [group.directions(now, max_iterations, candidates) for group in groups]
        loss = partial(_loss, groups, directions)
        coefficients = minimize(loss, coefficients, prior=prior, max_iterations=INNER).weights
    return _weights(coefficients)


def _loss(
    groups: Sequence[LabeledChains], directions: Sequence[Floats], coefficients: Float64s
) -> tuple[float, Float64s]:
    """Return the negative log-likelihood for fixed marginals, and its gradient."""
    value, gradient = 0.0, np.zeros(len(coefficients))
    for group, own in zip(groups, directions, strict=True):
        added, slope = group.held(_weights(coefficients), own)
        value -= added
        gradient -= slope[0]
    return value, gradient


def _weights(coefficients: Floats) -> FeatureWeights:
    return FeatureWeights(coefficients[None], nonnegative=False)
