r"""MAP flows, and weights by hard EM.

For S sequences with populations :math:`N_s`, marginals :math:`\mu_s` of one member, transitions with weights
w and initial probabilities :math:`\pi`, what is minimised is

.. math:: \sum_s N_s \bigl(-\langle\theta(w, \pi), \mu_s\rangle - H(\mu_s)\bigr) - \log p(y_s \mid N_s \mu_s)
          + \tfrac{\lambda}{2} |w|^2 - \alpha \sum_i \log \pi_i.

Flows are found for given parameters by projection, parameters for given flows by maximum likelihood, in turn;
neither raises it.

Implements: vilnis2015bethe, Eq. 23 and the learning that Sec. 8.3 speaks of.
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

MAX_ITERATIONS = 2_000  # of one projection
SMOOTHING = 0.5  # members that are added to each place at the beginning


class Pass(NamedTuple):
    """One turn of hard EM.

    number
    objective
        What is minimised, with the flows that belong to the parameters before this turn.
    change
        Largest change of a weight.
    gap
        By how much the objective may be above that of the best flows.
    """

    number: int
    objective: float
    change: float
    gap: float


Callback = Callable[[Pass, Floats], object]


@dataclass(frozen=True, slots=True, eq=False)
class Parameters:
    """What is learned: weights of the features, and log-probabilities of the places at the beginning."""

    weights: Floats
    initial: Floats


class _Sequence(NamedTuple):
    """A sequence with all that does not depend on parameters."""

    series: Series
    structure: Structure
    tables: Ints
    population: float


class CollectiveProblem:
    """Counts, features and a noise model.

    counts, features
        Of the same places in the same order.
    populations
        For each sequence; one that is not named is estimated.
    parents
        See `Structure`.
    tolerance
        Relative gap at which flows are good enough.
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
        tables = self.transitions.features.resolved((series.name, step) for step in structure.names)
        return _Sequence(series, structure, tables, self.noise.population(series, population))

    def flows(self, parameters: Parameters) -> Flows:
        """Return the MAP flows of all sequences."""
        log_probability = self.transitions.log_probabilities(parameters.weights)
        return Flows(
            self.places,
            tuple(
                self._projected(one, one.structure.base(parameters.initial, log_probability[one.tables]))
                for one in self.sequences
            ),
        )

    def _projected(self, one: _Sequence, base: BaseModel) -> SeriesFlows:
        series, population = one.series, one.population
        alone = base.answer(np.zeros(base.layout.node_size))
        self.noise.check_reachable(series, self.places, alone.marginals.reshape(series.counts.shape))
        energy = self.noise.energy(series.counts, population)
        found = project(base, energy, tolerance=self.tolerance, max_iterations=MAX_ITERATIONS)
        if found.ended == "interrupted":  # a projection takes it for its end; here it is that of everything
            raise KeyboardInterrupt
        nodes, size = base.layout.node_size, len(self.places)
        return SeriesFlows(
            series.name,
            series.times,
            one.structure.names,
            population * found.marginals[:nodes].reshape(series.counts.shape),
            population * found.marginals[nodes:].reshape(-1, size, size),
            population,
            found.objective,
            np.inf if found.gap is None else found.gap,
            found.converged,
        )

    def objective(self, parameters: Parameters, flows: Flows) -> float:
        """Return what is minimised, given the best flows for the parameters."""
        fit = sum(series.population * series.objective for series in flows.series)
        prior = SMOOTHING * float(parameters.initial.sum())
        return fit + self.transitions.penalty(parameters.weights) - prior

    def indifferent(self) -> Parameters:
        """Return no preference for any move, and any place to begin with."""
        size, count = len(self.places), len(self.transitions.features.names)
        return Parameters(np.zeros(count), np.full(size, -np.log(size)))

    def start(self) -> Parameters:
        """Return the parameters of highest likelihood if no more members move than the counts ask for.

        Hard EM ends in a local optimum, and members that stay give it away slowly if it begins with all moves
        alike.
        """
        total = np.zeros(self.transitions.features.possible.shape)
        for one in self.sequences:
            here = one.series.filled()
            here *= one.population / np.maximum(here.sum(axis=1, keepdims=True), 1e-300)
            for table, (before, after) in zip(one.tables, one.structure.steps, strict=True):
                total[table] += least_moves(here[before], here[after])
        total *= self.transitions.features.possible
        parameters = self.indifferent()
        return Parameters(self.transitions.fitted(total, parameters.weights), parameters.initial)

    def refitted(self, flows: Flows, parameters: Parameters) -> Parameters:
        """Return the parameters of highest likelihood for flows."""
        return Parameters(
            self.transitions.fitted(self.summed(flows), parameters.weights), self._initial(flows)
        )

    def summed(self, flows: Flows) -> Floats:
        """Return the flows under each table of features, float64[tables, places, places]."""
        total = np.zeros(self.transitions.features.possible.shape)
        for one, series in zip(self.sequences, flows.series, strict=True):
            np.add.at(total, one.tables, series.expected)
        return total

    def _initial(self, flows: Flows) -> Floats:
        total = np.full(len(self.places), SMOOTHING)
        for one, series in zip(self.sequences, flows.series, strict=True):
            total += series.counts[one.structure.roots].sum(axis=0)
        return np.asarray(np.log(total) - logsumexp(np.log(total)))


def least_moves(here: Floats, there: Floats) -> Floats:
    """Return flows with which as many members stay as can; the others go to all that lack some, alike."""
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
    """Alternate between flows and parameters.

    passes
        Turns at most.
    tolerance
        Fall of the objective, relative to its size, that is too small to go on.
    callback
        Called after each turn; a true answer ends learning.
    """
    parameters = start or problem.start()
    history: list[Pass] = []
    for number in range(1, passes + 1):
        flows = problem.flows(parameters)
        value = problem.objective(parameters, flows)
        gap = sum(series.population * series.gap for series in flows.series)
        before, parameters = parameters, problem.refitted(flows, parameters)
        change = float(np.abs(parameters.weights - before.weights).max(initial=0.0))
        history.append(Pass(number, value, change, gap))
        if callback is not None and callback(history[-1], parameters.weights):
            break
        if _settled(history, tolerance):
            break
    return parameters, history


def _settled(history: Sequence[Pass], tolerance: float) -> bool:
    if len(history) < 2:
        return False
    before, now = history[-2].objective, history[-1].objective
    return before - now <= tolerance * max(1.0, abs(now))
