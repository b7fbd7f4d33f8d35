r"""The likelihood of labels under projections, and its gradients.

A projection of a sequence is a chain Q with scores :math:`\rho = \theta - A^\top s`. Learning uses as a
surrogate the log-probability of the true labels under these chains; with the marginals held fixed and
:math:`s_j = \psi_j \ell_j'(a_j)`, its gradients are

.. math::

    \nabla_\theta = \sum_i S(y_i) - \mu_i, \qquad
    \partial / \partial \psi_j = -\sum_i \ell_j'(a_{ij}) (a_j^\top S(y_i) - a_{ij}).

Implements: vilnis2015bethe, Eq. 11 to 17, with the sign that Eq. 15 to 17 leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import EnergyError, ShapeError
from factorwise.inference.message_passing.projection import (
    ChainBase,
    Energy,
    Losses,
    MeasuredEnergy,
    Measurement,
    Projection,
    SequenceEnergy,
    SequenceProjections,
    TiedMeasurement,
    project_sequences,
)
from factorwise.kernels.compile.threads import Team
from factorwise.learning.projections.derivatives import implicit_gradients
from factorwise.learning.projections.scores import BaseScores
from factorwise.types import Floats, Ints

Differentiate = Literal["fixed", "implicit"]


class ProjectedLikelihood(NamedTuple):
    """The log-likelihood of some sequences and its gradients.

    log_likelihood
    weights : float64[measurements]
        Gradient in the weights of the energy, psi.
    parameters : float64[parameters]
        Gradient in the parameters of the base model, theta.
    measured : float64[sequences, measurements]
        The measurements at the marginals.
    """

    log_likelihood: float
    weights: Floats
    parameters: Floats
    measured: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The accuracy of each projection: see `Stopping`."""

    tolerance: float = 1e-4
    max_iterations: int = 40


class SequenceLikelihood:
    """The likelihood of labeled sequences as a function of the weights of an energy and of a base model.

    base
        `GivenScores` to learn the energy alone, `LinearScores` to learn both.
    truth : int[places]
        True labels of all sequences, one after the other.
    measurement, losses
        The energy except for its weights.
    """

    def __init__(
        self, base: BaseScores, truth: ArrayLike, measurement: TiedMeasurement, losses: Losses
    ) -> None:
        self.base = base
        self.truth = np.asarray(truth, dtype=np.int64)
        if measurement.labels != base.labels:
            raise ShapeError(
                f"the measurement is of {measurement.labels} labels, but the scores are of {base.labels}:"
                " build both for the same labels."
            )
        if len(self.truth) != base.start[-1]:
            raise ShapeError(
                f"{len(self.truth)} true labels were given for {int(base.start[-1])} places: give one for"
                " each."
            )
        self.measurement = measurement
        self.losses = losses.repeated(measurement.count) if len(losses) == 1 else losses
        if len(self.losses) != measurement.count:
            raise ShapeError(
                f"{len(self.losses)} losses were given for {measurement.count} measurements: give one"
                " loss for each."
            )
        self._of_length = lru_cache(maxsize=None)(self._measurement_of)

    @property
    def count(self) -> int:
        """The number of sequences."""
        return len(self.base.start) - 1

    def true_measured(self, which: Ints | None = None) -> Floats:
        """Return the measurements of the true labels, float64[sequences, measurements]."""
        chosen = self._which(which)
        paths = [self._path(index) for index in chosen.tolist()]
        start = np.cumsum([0, *map(len, paths)])
        return self.measurement.of_paths(np.concatenate([np.zeros(0, dtype=np.int64), *paths]), start)

    def taken(self, rows: Ints) -> SequenceLikelihood:
        """Return the likelihood with only some of the measurements."""
        part = TiedMeasurement(self.measurement.labels, self.measurement.matrix[rows])
        losses = Losses(self.losses.kind[rows], self.losses.target[rows], self.losses.width[rows])
        return SequenceLikelihood(self.base, self.truth, part, losses)

    def project(
        self,
        weights: Floats,
        parameters: Floats | None = None,
        which: Ints | None = None,
        accuracy: Accuracy | None = None,
        team: Team | None = None,
    ) -> SequenceProjections:
        """Project some of the sequences, or all."""
        chosen, theta, limits = self._which(which), self._theta(parameters), accuracy or Accuracy()
        nodes, edges = self.base.scores(theta, chosen)
        return project_sequences(
            nodes,
            edges,
            SequenceEnergy(self.measurement, self.losses, weights),
            table=self.base.table[chosen],
            tolerance=limits.tolerance,
            max_iterations=limits.max_iterations,
            pairs=self.base.parameters > 0,
            team=team,
        )

    def evaluate(
        self,
        weights: Floats,
        parameters: Floats | None = None,
        which: Ints | None = None,
        *,
        differentiate: Differentiate = "fixed",
        accuracy: Accuracy | None = None,
        team: Team | None = None,
    ) -> ProjectedLikelihood:
        """Project, and return the log-likelihood of the truth with its gradients.

        differentiate
            ``"fixed"`` holds the marginals fixed, as in the paper; ``"implicit"`` differentiates through the
            projections, which gives the gradient of the likelihood itself if they are accurate.
        """
        chosen, theta = self._which(which), self._theta(parameters)
        projected = self.project(weights, theta, chosen, accuracy, team)
        nodes, edges = self.base.scores(theta, chosen)
        losses = self._each(self.losses.value, projected.measured) @ weights
        partition = losses - (projected.shift * projected.measured).sum(axis=1) - projected.objective
        truth = self.true_measured(chosen)
        value = self._true_scores(nodes, edges, chosen) - (projected.shift * truth).sum(axis=1) - partition
        slopes = self._each(self.losses.slope, projected.measured)
        if differentiate == "fixed":
            gradient = (slopes * (projected.measured - truth)).sum(axis=0)
            pull = self._pull(
                chosen, np.split(projected.node, projected.start[1:-1]), projected.pairs.sum(axis=0)
            )
            return ProjectedLikelihood(float(value.sum()), gradient, pull, projected.measured)
        gradient, moved_pairs = np.zeros(len(weights)), np.zeros_like(edges[0])
        moved = []
        for row, index in enumerate(chosen.tolist()):
            energy = MeasuredEnergy(self._of_length(len(nodes[row])), self.losses, weights)
            base = ChainBase(nodes[row], edges[self.base.table[index]])
            own = implicit_gradients(base, energy, projected.shift[row], truth[row])
            gradient += own.weights
            moved_pairs += own.pairs
            moved.append(own.node)
        expected = [
            rows - own
            for rows, own in zip(np.split(projected.node, projected.start[1:-1]), moved, strict=True)
        ]
        pull = self._pull(chosen, expected, projected.pairs.sum(axis=0) - moved_pairs)
        return ProjectedLikelihood(float(value.sum()), gradient, pull, projected.measured)

    def held(
        self,
        weights: Floats,
        measured: Floats,
        parameters: Floats | None = None,
        which: Ints | None = None,
        team: Team | None = None,
    ) -> ProjectedLikelihood:
        """Return the surrogate at weights other than those of the projection.

        measured : float64[sequences, measurements]
            The measurements at the fixed marginals, which determine the direction of the energy's pull.

        Implements: vilnis2015bethe, Eq. 12, and one inner step of Algorithm 2.
        """
        chosen, theta = self._which(which), self._theta(parameters)
        nodes, edges = self.base.scores(theta, chosen)
        size = self.base.labels
        slopes = self._each(self.losses.slope, measured)
        shift, now, partition = slopes * weights, np.zeros_like(measured), np.zeros(len(chosen))
        expected: list[Floats] = [np.zeros(0)] * len(chosen)
        pairs = np.zeros((len(chosen), size, size))

        def work(first: int, last: int) -> None:
            for row in range(first, last):
                base = ChainBase(nodes[row], edges[self.base.table[chosen[row]]])
                measurement = self._of_length(len(nodes[row]))
                answer = base.answer(measurement.adjoint(shift[row]))
                now[row], partition[row] = measurement.apply(answer.marginals), answer.log_partition
                split = base.layout.node_size
                expected[row] = answer.marginals[:split].reshape(nodes[row].shape)
                pairs[row] = answer.marginals[split:].reshape(-1, size, size).sum(axis=0)

        (team or Team(1)).share(len(chosen), work)
        truth = self.true_measured(chosen)
        value = self._true_scores(nodes, edges, chosen) - (shift * truth).sum(axis=1) - partition
        gradient = (slopes * (now - truth)).sum(axis=0)
        return ProjectedLikelihood(
            float(value.sum()), gradient, self._pull(chosen, expected, pairs.sum(axis=0)), measured
        )

    def _pull(self, chosen: Ints, expected: Sequence[Floats], pairs: Floats) -> Floats:
        """Return the gradient in theta: true minus expected statistics, carried back to the parameters."""
        if not self.base.parameters:
            return np.zeros(0)
        node, counted = [], -pairs
        for index, rows in zip(chosen.tolist(), expected, strict=True):
            path = self._path(index)
            left = -rows
            left[np.arange(len(path)), path] += 1.0
            np.add.at(counted, (path[:-1], path[1:]), 1.0)
            node.append(left)
        return self.base.gradient(chosen, node, counted)

    def _true_scores(self, nodes: list[Floats], edges: Floats, chosen: Ints) -> Floats:
        scores = np.zeros(len(chosen))
        for row, index in enumerate(chosen.tolist()):
            path, edge = self._path(index), edges[self.base.table[index]]
            scores[row] = nodes[row][np.arange(len(path)), path].sum() + edge[path[:-1], path[1:]].sum()
        return scores

    def _path(self, index: int) -> Ints:
        return self.truth[int(self.base.start[index]) : int(self.base.start[index + 1])]

    def _measurement_of(self, length: int) -> Measurement:
        layout = self.measurement.of_length(length)
        size = length * self.base.labels
        return layout.widened(size + (length - 1) * self.base.labels**2)

    def _each(self, function: Callable[[Floats], Floats], measured: Floats) -> Floats:
        return np.stack([function(row) for row in measured]) if len(measured) else np.zeros_like(measured)

    def _which(self, which: Ints | None) -> Ints:
        return np.arange(self.count) if which is None else which

    def _theta(self, parameters: Floats | None) -> Floats:
        return np.zeros(self.base.parameters) if parameters is None else parameters


def energy_gradient(projection: Projection, statistics: Floats) -> tuple[float, Floats]:
    """Return the log-likelihood of one truth under a projection, and its gradient in the weights.

    projection
        A projection onto any base model, with any energy.
    statistics : float64[size]
        Statistics of the truth, laid out like the marginals: one for each true label and each true setting of
        a factor.

    The marginals are held fixed.
    """
    if statistics.shape != projection.marginals.shape:
        raise ShapeError(
            f"statistics of shape {statistics.shape} were given, but the marginals have"
            f" {projection.marginals.shape}: use the base model's layout."
        )
    energy: Energy = projection.problem.energy
    value = energy.value_of(projection.measured)
    if not np.isfinite(value):
        raise EnergyError(f"the energy {energy.name!r} is {value} at the projection.")
    partition = value - float(projection.shift @ projection.measured) - projection.objective
    scores, present = projection.scores, statistics != 0
    score = float(scores[present] @ statistics[present])
    return score - partition, -energy.cross_gradient(projection.marginals, statistics - projection.marginals)
