"""`CollectiveModel`: how a population moves, learned from counts alone, in the manner of scikit-learn."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from factorwise.apps.collective.counts import Counts
from factorwise.apps.collective.features import TransitionFeatures, by_distance, read_distances, staying
from factorwise.apps.collective.flows import Flows
from factorwise.apps.collective.learning import Callback, CollectiveProblem, Parameters, Pass, hard_em
from factorwise.apps.collective.model_file import LearnedFlows, read_learned, write_learned
from factorwise.apps.collective.noise import NUMBER_OF, Noise, NoiseKind
from factorwise.apps.collective.truth import flows_like, true_flows
from factorwise.errors import ConvergenceWarning, InvalidArgumentError, require
from factorwise.io.listing import difference
from factorwise.io.tables.reading import TableSource
from factorwise.metrics.flows import score_flows
from factorwise.types import Floats
from factorwise.validation import check_count, check_number

SETTINGS = ("noise", "rate", "variance", "population", "parents", "l2", "passes", "tolerance", "gap")


class CollectiveModel(BaseEstimator):  # type: ignore[misc]
    """Learn how the members of a population move between places from counts by time and place.

    A member's places at successive times are a chain (or a tree, see ``parents``) with log-linear transition
    probabilities. Flows are the marginals of one member times the population, found by projection; weights
    are learned by hard EM.

    noise, rate, variance
        How counts come about: "poisson" (with the share ``rate`` of the members being seen), "gaussian" (with
        the variance of its errors), "multinomial" or "exact". Rate and variance are 1 unless given, and
        refused with noise of another kind.
    population
        Number of members, one for all sequences or one for each by name; estimated from the counts unless
        given.
    parents
        In a tree, the time that each time comes from, by their labels; the root has none.
    l2
        Half of this times the squared weights is added to what is minimised.
    passes, tolerance
        Turns of EM at most, and the relative fall of the objective that ends learning.
    gap
        Relative gap to which flows are found.

    Attributes
    ----------
    places_, feature_names_
    weights_
        One for each feature.
    initial_
        Log-probability of each place at the first time.
    history_
        One `Pass` per turn of EM; none if flows were given.

    >>> counts = [{"time": t, "place": p, "count": n} for t, row in enumerate([[90, 10], [50, 50], [20, 80]])
    ...           for p, n in zip("ab", row)]
    >>> flows = CollectiveModel(noise="exact").fit(counts).predict(counts)
    >>> flows[0].expected.sum(axis=(1, 2)).round()
    array([100., 100.])
    """

    weights_: Floats
    initial_: Floats

    def __init__(
        self,
        *,
        noise: NoiseKind = "poisson",
        rate: float | None = None,
        variance: float | None = None,
        population: float | Mapping[str, float] | None = None,
        parents: Mapping[str, str] | None = None,
        l2: float = 0.1,
        passes: int = 300,
        tolerance: float = 1e-6,
        gap: float = 1e-6,
    ) -> None:
        self.noise = noise
        self.rate = rate
        self.variance = variance
        self.population = population
        self.parents = parents
        self.l2 = l2
        self.passes = passes
        self.tolerance = tolerance
        self.gap = gap

    def fit(
        self,
        counts: Counts | TableSource,
        y: None = None,
        *,
        features: TransitionFeatures | TableSource | None = None,
        coordinates: TableSource | None = None,
        flows: TableSource | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from counts.

        counts
            `Counts`, or a table with the columns time, place, count and, for several sequences, sequence.
        features
            `TransitionFeatures`, or a table with from, to, a column for each feature, and time and sequence
            where they differ; pairs it does not have are impossible. Without, the model has weights for
            staying and, with ``coordinates``, for classes of distance.
        coordinates
            A table of places with x and y, or lat and lon.
        flows
            True flows of some or all of the sequences, a table as for `score`. Weights are then those of
            highest likelihood for them, without EM.
        callback
            Called with each `Pass` and the weights; a true answer ends learning.
        """
        check_count("passes", self.passes)
        check_number("tolerance", self.tolerance, least=0)
        check_number("gap", self.gap, above=0)
        require(self.l2 >= 0, "l2", self.l2, "zero or more")
        known, used = _prepared(counts, features, coordinates)
        problem = self._problem(known, used)
        if flows is None:
            learned, self.history_ = hard_em(
                problem, passes=self.passes, tolerance=self.tolerance, callback=callback
            )
        else:
            learned, self.history_ = _from_flows(problem, flows), []
        self.weights_, self.initial_ = learned.weights, learned.initial
        self.places_, self.feature_names_ = used.places, used.names
        self.features_ = used if used.general else None
        return self

    def predict(
        self, counts: Counts | TableSource, *, features: TransitionFeatures | TableSource | None = None
    ) -> Flows:
        """Return the flows behind counts.

        features
            As given to `fit`; needed if those were for its sequences alone, or lack times of the counts.
        """
        self._check_fitted()
        used = self.features_ if features is None else _features(features)
        if used is None:
            raise InvalidArgumentError(
                "the model was fitted with features that belong to the sequences it was fitted to: give those"
                " of these counts, too."
            )
        for what, fitted, given in (
            ("places", self.places_, used.places),
            ("features", self.feature_names_, used.names),
        ):
            if fitted != given:
                raise InvalidArgumentError(
                    f"the model was fitted with other {what}: {difference(fitted, given)}: give the same"
                    " places and features, in that order."
                )
        known = _ordered(counts, used.places)
        flows = self._problem(known, used).flows(Parameters(self.weights_, self.initial_))
        for series in flows.series:
            if not series.converged:
                warnings.warn(
                    f"the flows of sequence {series.name!r} are not the best: their objective is up to"
                    f" {series.gap:.2g} above the least. Set a larger gap, or check features and population.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
        return flows

    def score(
        self,
        counts: Counts | TableSource,
        flows: TableSource,
        *,
        features: TransitionFeatures | TableSource | None = None,
    ) -> float:
        """Return the share of members whose move is right, given the true flows.

        flows
            A table with time, from, to, expected (or count) and, for several sequences, sequence.
        """
        found = self.predict(counts, features=features)
        true = flows_like(found, flows)
        both = zip(found.series, true, strict=True)
        pairs = [(series.expected.ravel(), truth.ravel()) for series, truth in both]
        expected, truth = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return score_flows(expected, truth, np.zeros((), dtype=bool)).overlap

    def weights_by_name(self) -> dict[str, float]:
        """Return the weights with their names, the largest in size first."""
        self._check_fitted()
        order = np.argsort(-np.abs(self.weights_), kind="stable")
        return {self.feature_names_[k]: float(self.weights_[k]) for k in order}

    def save(self, path: str | os.PathLike[str], data: Sequence[str | os.PathLike[str]] = ()) -> None:
        """Write a model file, ``NAME.fw``: JSON and arrays, no pickle; ``data`` are files to name in it."""
        self._check_fitted()
        settings = {name: getattr(self, name) for name in SETTINGS}
        parameters = Parameters(self.weights_, self.initial_)
        learned = LearnedFlows(
            self.places_, self.feature_names_, parameters, settings, self.history_, self.features_
        )
        write_learned(path, learned, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> Self:
        """Read a model that `save` or the command line wrote; ``parameters`` replace its settings.

        A saved rate or variance of another noise than the model's is dropped.
        """
        saved = read_learned(path, SETTINGS)
        settings = {name: saved.settings[name] for name in SETTINGS} | parameters
        for owner, name in NUMBER_OF.items():
            if settings["noise"] != owner and name not in parameters:
                settings[name] = None
        made = cls(**settings)
        made.weights_, made.initial_ = saved.parameters.weights, saved.parameters.initial
        made.places_, made.feature_names_ = saved.places, saved.names
        made.features_, made.history_ = saved.features, list(saved.history)
        return made

    places_: tuple[str, ...]
    feature_names_: tuple[str, ...]
    features_: TransitionFeatures | None
    history_: list[Pass]

    def _problem(self, counts: Counts, features: TransitionFeatures) -> CollectiveProblem:
        given = self.population
        if given is not None and not isinstance(given, Mapping):
            given = {series.name: float(given) for series in counts.series}
        return CollectiveProblem(
            counts,
            features,
            Noise(kind=self.noise, rate=self.rate, variance=self.variance),
            populations=given,
            parents=self.parents,
            l2=self.l2,
            tolerance=self.gap,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(
                "CollectiveModel has no weights yet: call fit(counts), or load a model with"
                " CollectiveModel.load(path)."
            )


def _from_flows(problem: CollectiveProblem, source: TableSource) -> Parameters:
    """Return the parameters of highest likelihood for true flows."""
    steps = {one.series.name: one.structure.names for one in problem.sequences}
    arrays = true_flows(problem.places, steps, source)  # first: a wrong table is told before the work
    start = problem.start()
    found = problem.flows(start)
    known = tuple(replace(one, expected=true) for one, true in zip(found.series, arrays, strict=True))
    return problem.refitted(Flows(found.places, known), start)


def _features(given: TransitionFeatures | TableSource) -> TransitionFeatures:
    return given if isinstance(given, TransitionFeatures) else TransitionFeatures.read(given)


def _prepared(
    counts: Counts | TableSource,
    features: TransitionFeatures | TableSource | None,
    coordinates: TableSource | None,
) -> tuple[Counts, TransitionFeatures]:
    """Return counts and features of the same places in the same order."""
    if coordinates is not None:
        made = by_distance(*read_distances(coordinates))
        made = made if features is None else made.joined(_features(features))
        return _ordered(counts, made.places), made
    if features is not None:
        made = _features(features)
        return _ordered(counts, made.places), made
    known = counts if isinstance(counts, Counts) else Counts.read(counts)
    return known, staying(known.places)


def _ordered(counts: Counts | TableSource, places: tuple[str, ...]) -> Counts:
    """Return counts at all of the places, in their order; refuse others."""
    if not isinstance(counts, Counts):
        return Counts.read(counts, places)
    return counts.at(places)
