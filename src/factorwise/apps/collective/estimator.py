"""`CollectiveModel`: a scikit-learn estimator of how a population moves, learned from counts alone."""

from __future__ import annotations

import os
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
from factorwise.errors import ConvergenceWarning, InvalidArgumentError, require, warn_caller
from factorwise.io.listing import difference
from factorwise.io.tables.reading import TableSource
from factorwise.metrics.flows import score_flows
from factorwise.types import Floats
from factorwise.validation import check_count, check_number

SETTINGS = ("noise", "rate", "variance", "population", "parents", "l2", "passes", "tolerance", "gap")


class CollectiveModel(BaseEstimator):  # type: ignore[misc]
    """Learn how the members of a population move between places from counts by time and place.

    The places of a member at successive times form a chain (or a tree, see ``parents``) with log-linear
    transition probabilities. Flows are the marginals of one member, found by projection, times the
    population; weights are learned by hard EM.

    noise, rate, variance
        Noise model of the counts: "poisson" (a share ``rate`` of the members is seen), "gaussian" (errors of
        variance ``variance``), "multinomial" or "exact". Rate and variance are 1 by default and may only be
        given with their own kind of noise.
    population
        Number of members, one number for all sequences or one for each by name; estimated from the counts by
        default.
    parents
        If the times form a tree: the parent of each time but the root, by name.
    l2
        L2 penalty: the objective contains ``l2 / 2`` times the squared norm of the weights.
    passes, tolerance
        Maximum number of passes of EM; learning ends when the objective decreases by less than ``tolerance``,
        relative to its size.
    gap
        Relative gap to which flows are optimised.

    Attributes
    ----------
    places_, feature_names_
        Names of the places and of the features.
    weights_
        One weight for each feature.
    initial_
        Log-probability of each place at the first time.
    history_
        One `Pass` for each pass of EM; empty if true flows were given.

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
            `TransitionFeatures`, or a table with from, to and a column for each feature, and with time and
            sequence where features differ between them; absent pairs are impossible moves. By default the
            model has one feature, staying, and with ``coordinates`` also classes of distance.
        coordinates
            A table of places with x and y, or lat and lon.
        flows
            True flows of some or all of the sequences, as a table for `score`. The weights are then those of
            maximum likelihood for these flows, without EM.
        callback
            Called with each `Pass` and the weights; learning ends if it returns a true value.
        """
        check_count("passes", self.passes)
        check_number("tolerance", self.tolerance, least=0)
        check_number("gap", self.gap, above=0)
        require(self.l2 >= 0, "l2", self.l2, "zero or more")
        known, used = _prepare(counts, features, coordinates)
        problem = self._problem(known, used)
        if flows is None:
            learned, self.history_ = hard_em(
                problem, passes=self.passes, tolerance=self.tolerance, callback=callback
            )
        else:
            learned, self.history_ = _fit_to_flows(problem, flows), []
        self.weights_, self.initial_ = learned.weights, learned.initial
        self.places_, self.feature_names_ = used.places, used.names
        self.features_ = used if used.is_general else None
        return self

    def predict(
        self, counts: Counts | TableSource, *, features: TransitionFeatures | TableSource | None = None
    ) -> Flows:
        """Return the flows that explain counts.

        features
            As for `fit`; needed if the features of `fit` were limited to its sequences or lack some times.
        """
        self._check_fitted()
        used = self.features_ if features is None else _features(features)
        if used is None:
            raise InvalidArgumentError(
                "the model was fitted with features that apply to its training sequences only: give the"
                " features of these counts, too."
            )
        for what, fitted, current in (
            ("places", self.places_, used.places),
            ("features", self.feature_names_, used.names),
        ):
            if fitted != current:
                raise InvalidArgumentError(
                    f"the model was fitted with different {what}: {difference(fitted, current)}. Give the"
                    " same places and features, in that order."
                )
        known = _order_places(counts, used.places)
        flows = self._problem(known, used).flows(Parameters(self.weights_, self.initial_))
        for series in flows.series:
            if not series.converged:
                warn_caller(
                    f"the flows of sequence {series.name!r} have not converged: their objective may be"
                    f" {series.gap:.2g} above its minimum. Set a larger gap, or check features and"
                    " population.",
                    ConvergenceWarning,
                )
        return flows

    def score(
        self,
        counts: Counts | TableSource,
        flows: TableSource,
        *,
        features: TransitionFeatures | TableSource | None = None,
    ) -> float:
        """Return the share of members whose move agrees with the true flows.

        flows
            A table with time, from, to, expected (or count) and, for several sequences, sequence.
        """
        predicted = self.predict(counts, features=features)
        both = zip(predicted.series, flows_like(predicted, flows), strict=True)
        pairs = [(series.expected.ravel(), truth.ravel()) for series, truth in both]
        expected, truth = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return score_flows(expected, truth, np.zeros((), dtype=bool)).overlap

    def weights_by_name(self) -> dict[str, float]:
        """Return the weights by feature name, in decreasing order of magnitude."""
        self._check_fitted()
        order = np.argsort(-np.abs(self.weights_), kind="stable")
        return {self.feature_names_[k]: float(self.weights_[k]) for k in order}

    def save(self, path: str | os.PathLike[str], data: Sequence[str | os.PathLike[str]] = ()) -> None:
        """Write a model file, ``NAME.fw`` (JSON and arrays, no pickle).

        data
            Files of training data whose names and checksums the model file records.
        """
        self._check_fitted()
        settings = {name: getattr(self, name) for name in SETTINGS}
        parameters = Parameters(self.weights_, self.initial_)
        learned = LearnedFlows(
            self.places_, self.feature_names_, parameters, settings, self.history_, self.features_
        )
        write_learned(path, learned, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **parameters: Any) -> Self:
        """Read a model that `save` or ``factorwise flows fit`` wrote; ``parameters`` replace its settings.

        If ``noise`` is replaced, a saved rate or variance of the earlier noise is dropped.
        """
        saved = read_learned(path, SETTINGS)
        settings = {name: saved.settings[name] for name in SETTINGS} | parameters
        for owner, name in NUMBER_OF.items():
            if settings["noise"] != owner and name not in parameters:
                settings[name] = None
        model = cls(**settings)
        model.weights_, model.initial_ = saved.parameters.weights, saved.parameters.initial
        model.places_, model.feature_names_ = saved.places, saved.names
        model.features_, model.history_ = saved.features, list(saved.history)
        return model

    places_: tuple[str, ...]
    feature_names_: tuple[str, ...]
    features_: TransitionFeatures | None
    history_: list[Pass]

    def _problem(self, counts: Counts, features: TransitionFeatures) -> CollectiveProblem:
        populations = self.population
        if populations is not None and not isinstance(populations, Mapping):
            populations = {series.name: float(populations) for series in counts.series}
        return CollectiveProblem(
            counts,
            features,
            Noise(kind=self.noise, rate=self.rate, variance=self.variance),
            populations=populations,
            parents=self.parents,
            l2=self.l2,
            tolerance=self.gap,
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(
                "this CollectiveModel is not fitted: call fit(counts), or load a model with"
                " CollectiveModel.load(path)."
            )


def _fit_to_flows(problem: CollectiveProblem, source: TableSource) -> Parameters:
    """Return the parameters of maximum likelihood for true flows."""
    steps = {sequence.series.name: sequence.structure.names for sequence in problem.sequences}
    arrays = true_flows(problem.places, steps, source)  # first, to report a wrong table before the work
    start = problem.initial_parameters()
    inferred = problem.flows(start)
    pairs = zip(inferred.series, arrays, strict=True)
    known = tuple(replace(series, expected=array) for series, array in pairs)
    return problem.fit_parameters(Flows(inferred.places, known), start)


def _features(source: TransitionFeatures | TableSource) -> TransitionFeatures:
    return source if isinstance(source, TransitionFeatures) else TransitionFeatures.read(source)


def _prepare(
    counts: Counts | TableSource,
    features: TransitionFeatures | TableSource | None,
    coordinates: TableSource | None,
) -> tuple[Counts, TransitionFeatures]:
    """Return counts and features with the same places in the same order."""
    if coordinates is not None:
        used = by_distance(*read_distances(coordinates))
        used = used if features is None else used.join(_features(features))
        return _order_places(counts, used.places), used
    if features is not None:
        used = _features(features)
        return _order_places(counts, used.places), used
    known = counts if isinstance(counts, Counts) else Counts.read(counts)
    return known, staying(known.places)


def _order_places(counts: Counts | TableSource, places: tuple[str, ...]) -> Counts:
    """Return counts with exactly these places, in this order; other places are an error."""
    if not isinstance(counts, Counts):
        return Counts.read(counts, places)
    return counts.reorder_places(places)
