r"""MAP flows, and weights by hard EM.

For S sequences with populations :math:`N_s`, marginals :math:`\mu_s` of one member, transition weights w and
initial probabilities :math:`\pi`, the objective to be minimised is

.. math:: \sum_s N_s \bigl(-\langle\theta(w, \pi), \mu_s\rangle - H(\mu_s)\bigr) - \log p(y_s \mid N_s \mu_s)
          + \tfrac{\lambda}{2} |w|^2 - \alpha \sum_i \log \pi_i.

Hard EM alternates between flows, by projection for given parameters, and parameters, by maximum likelihood
for given flows. Neither step increases the objective.

Implements: vilnis2015bethe, Eq. 23 and the learning of Sec. 8.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from factorwise.apps.collective.counts import Counts, Series
from factorwise.apps.collective.features import TransitionFeatures
from factorwise.apps.collective.flows import Flows, SeriesFlows
from factorwise.apps.collective.noise import Noise
from factorwise.apps.collective.structure import Structure
from factorwise.apps.collective.transitions import Transitions
from factorwise.errors import InvalidArgumentError
from factorwise.inference.message_passing.projection import BaseModel, project
from factorwise.types import Floats, Ints

MAX_ITERATIONS = 2_000  # iterations of one projection
SMOOTHING = 0.5  # pseudo-count of each place at the first time


class Pass(NamedTuple):
    """One pass of hard EM.

    number
        Number of the pass, from 1.
    objective
        Objective of the parameters before this pass, with their flows.
    change
        Largest absolute change of a weight.
    gap
        Upper bound on the distance of the objective from that of the optimal flows.
    """

    number: int
    objective: float
    change: float
    gap: float


Callback = Callable[[Pass, Floats], object]


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """Learned parameters: weights of the features, and log-probabilities of the places at the first time."""

    weights: Floats
    initial: Floats


class _Sequence(NamedTuple):
    """A sequence with everything that does not depend on the parameters."""

    series: Series
    structure: Structure
    tables: Ints
    population: float


class CollectiveProblem:
    """The objective of a collective model, and its two partial minimisations.

    counts, features
        Both have the same places in the same order.
    noise
        Noise model of the counts.
    populations
        Number of members by sequence name; missing ones are estimated.
    parents
        See `Structure`.
    l2
        L2 penalty of the weights.
    tolerance
        Relative gap to which flows are optimised.
    """

    def __init__(
        self,
        counts: Counts,
        features: TransitionFeatures,
        noise: Noise,
        *,
        populations: Mapping[str, float] | None = None,
        parents: Mapping[str, str] | None = None,
        l2: float = 0.1,
        tolerance: float = 1e-6,
    ) -> None:
        self.places = counts.places
        self.noise = noise
        self.transitions = Transitions(features, l2)
        self.tolerance = tolerance
        known = populations or {}
        self.sequences = [self._sequence(series, known.get(series.name), parents) for series in counts.series]

    def _sequence(
        self, series: Series, population: float | None, parents: Mapping[str, str] | None
    ) -> _Sequence:
        structure = Structure(series.times, parents)
        if not structure.steps:
            raise InvalidArgumentError(
                f"sequence {series.name!r} has the time {series.times[0]!r} only: flows need two or more."
            )
        tables = self.transitions.features.tables_for((series.name, step) for step in structure.names)
        return _Sequence(series, structure, tables, self.noise.population(series, population))

    def flows(self, parameters: Parameters) -> Flows:
        """Return the MAP flows of all sequences."""
        log_probability = self.transitions.log_probabilities(parameters.weights)
        return Flows(
            self.places,
            tuple(
                self._project(
                    sequence, sequence.structure.base(parameters.initial, log_probability[sequence.tables])
                )
                for sequence in self.sequences
            ),
        )

    def _project(self, sequence: _Sequence, base: BaseModel) -> SeriesFlows:
        series, population = sequence.series, sequence.population
        alone = base.answer(np.zeros(base.layout.node_size))
        self.noise.check_reachable(series, self.places, alone.marginals.reshape(series.counts.shape))
        energy = self.noise.energy(series.counts, population)
        result = project(base, energy, tolerance=self.tolerance, max_iterations=MAX_ITERATIONS)
        if result.ended == "interrupted":  # a projection ends early on Ctrl-C; training must stop, too
            raise KeyboardInterrupt
        nodes, size = base.layout.node_size, len(self.places)
        return SeriesFlows(
            series.name,
            series.times,
            sequence.structure.names,
            population * result.marginals[:nodes].reshape(series.counts.shape),
            population * result.marginals[nodes:].reshape(-1, size, size),
            population,
            result.objective,
            np.inf if result.gap is None else result.gap,
            result.converged,
        )

    def objective(self, parameters: Parameters, flows: Flows) -> float:
        """Return the objective, given the optimal flows for the parameters."""
        fit = sum(series.population * series.objective for series in flows.series)
        prior = SMOOTHING * float(parameters.initial.sum())
        return fit + self.transitions.penalty(parameters.weights) - prior

    def uniform_parameters(self) -> Parameters:
        """Return parameters under which all moves and all initial places are equally likely."""
        size, count = len(self.places), len(self.transitions.features.names)
        return Parameters(np.zeros(count), np.full(size, -np.log(size)))

    def initial_parameters(self) -> Parameters:
        """Return the parameters of maximum likelihood if as few members move as the counts allow.

        Hard EM ends in a local optimum; from uniform parameters it learns only slowly that members stay.
        """
        total = np.zeros(self.transitions.features.possible.shape)
        for sequence in self.sequences:
            here = sequence.series.fill_missing()
            here *= sequence.population / np.maximum(here.sum(axis=1, keepdims=True), 1e-300)
            for table, (before, after) in zip(sequence.tables, sequence.structure.steps, strict=True):
                total[table] += fewest_moves(here[before], here[after])
        total *= self.transitions.features.possible
        parameters = self.uniform_parameters()
        return Parameters(self.transitions.fit(total, parameters.weights), parameters.initial)

    def fit_parameters(self, flows: Flows, start: Parameters) -> Parameters:
        """Return the parameters of maximum likelihood for flows, searching from ``start``."""
        return Parameters(self.transitions.fit(self.sum_by_table(flows), start.weights), self._initial(flows))

    def sum_by_table(self, flows: Flows) -> Floats:
        """Return the sum of the flows to which each table of features applies, float64[tables, from, to]."""
        total = np.zeros(self.transitions.features.possible.shape)
        for sequence, series in zip(self.sequences, flows.series, strict=True):
            np.add.at(total, sequence.tables, series.expected)
        return total

    def _initial(self, flows: Flows) -> Floats:
        total = np.full(len(self.places), SMOOTHING)
        for sequence, series in zip(self.sequences, flows.series, strict=True):
            total += series.counts[sequence.structure.roots].sum(axis=0)
        return np.asarray(np.log(total) - logsumexp(np.log(total)))


def fewest_moves(here: Floats, there: Floats) -> Floats:
    """Return flows in which as many members stay as possible, and the others fill the gaps in proportion."""
    stay = np.minimum(here, there)
    wanted = there - stay
    moved = np.outer(here - stay, wanted) / max(float(wanted.sum()), 1e-300)
    return np.asarray(np.diag(stay) + moved)


def hard_em(
    problem: CollectiveProblem,
    *,
    passes: int,
    tolerance: float,
    start: Parameters | None = None,
    callback: Callback | None = None,
) -> tuple[Parameters, list[Pass]]:
    """Learn by hard EM; return the parameters and the history of passes.

    passes
        Maximum number of passes.
    tolerance
        Learning ends when the objective decreases by less than this, relative to its size.
    start
        Initial parameters, `CollectiveProblem.initial_parameters` by default.
    callback
        Called after each pass; learning ends if it returns a true value.
    """
    parameters = start or problem.initial_parameters()
    history: list[Pass] = []
    for number in range(1, passes + 1):
        flows = problem.flows(parameters)
        value = problem.objective(parameters, flows)
        gap = sum(series.population * series.gap for series in flows.series)
        before, parameters = parameters, problem.fit_parameters(flows, parameters)
        change = float(np.abs(parameters.weights - before.weights).max(initial=0.0))
        history.append(Pass(number, value, change, gap))
        if callback is not None and callback(history[-1], parameters.weights):
            break
        if _has_converged(history, tolerance):
            break
    return parameters, history


def _has_converged(history: Sequence[Pass], tolerance: float) -> bool:
    if len(history) < 2:
        return False
    before, now = history[-2].objective, history[-1].objective
    return before - now <= tolerance * max(1.0, abs(now))
