"""`OntologyAligner`: match the concepts of two ontologies, with an interface as in scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from factorwise.apps.alignment.general import (
    SURE,
    adapted_pairs,
    fit_logistic,
    general_weights,
    sure_matches,
)
from factorwise.apps.alignment.matching import (
    CROWDING,
    ConceptPairs,
    annealed_matching,
    best_matching,
    matching_model,
    starting_weights,
    training_world,
)
from factorwise.apps.learned_estimator import LearnedEstimator
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.acceptances import AcceptanceName
from factorwise.io.models.learned import damaged, plain_settings
from factorwise.io.ontologies.alignments import EQUIVALENT, Correspondence
from factorwise.io.ontologies.ontology import Ontology
from factorwise.learning.samplerank.learner import Callback, Learned, SampleRank
from factorwise.learning.samplerank.preferences import MetricName
from factorwise.learning.updates import UpdateRule, capped_rule
from factorwise.metrics.alignment import score_matches
from factorwise.metrics.calibration import Reliability, reliability
from factorwise.validation import check_count

KIND = "alignment"
DRAWN_BY_LABELS = 5.0  # precision of the Gaussian prior around self-trained weights, given labels

Reference = Iterable[tuple[Any, ...]]  # pairs of ids, or Correspondences


class Match(NamedTuple):
    """A match: the ids of two equivalent concepts, and the confidence from 0 to 1."""

    left: str
    right: str
    confidence: float


class MatchExplanation(NamedTuple):
    """Why two concepts match, or do not.

    probability
        Probability that they match.
    is_match
        Whether `OntologyAligner.predict` would return the match.
    reasons
        Features of the pair and their weights, largest absolute weight first. The sum of the weights is the
        score.
    rivals
        Other candidate pairs of either concept with their probabilities, most probable first.
    conflicts
        Predicted matches that together with this one would make a class unsatisfiable, by the disjointness
        axioms of the ontologies.
    """

    probability: float
    is_match: bool
    reasons: list[tuple[str, float]]
    rivals: list[Match]
    conflicts: list[Match]


class OntologyAligner(LearnedEstimator):
    """Match the concepts of two ontologies: classes with classes, properties with properties.

    The package includes pretrained weights, which are adapted to two ontologies without labels
    (`fit_unlabelled`). Given known matches (`fit`, or `fit_pairs` for several pairs of ontologies),
    SampleRank trains the weights, starting with the adapted ones.

    Predicted matches never make a class unsatisfiable by the disjointness axioms of the ontologies.

    one_to_one
        Whether a concept has at most one match; the best matching is then found exactly. Otherwise annealing
        searches for clusters of any size.
    complete
        Whether the reference contains all matches, so that other concepts have none. With False, pairs of
        concepts that are not in the reference are not used in training; with ``one_to_one``, matches that
        the adapted weights predict with high probability are added to the reference.
    update, cap, accept, temperature, metric
        Parameters of SampleRank: the update rule; for "mira" and other passive-aggressive rules the largest
        step size of an update (a smaller one is slower and less noisy); how moves are accepted and at what
        temperature; and the metric ("pairwise", "b-cubed", "rand") that decides which of two neighboring
        alignments is better.
    passes, steps
        Number of passes over each pair of ontologies, and steps per concept in each pass (of the mean pair,
        if there are several).
    search_steps
        Annealing steps per concept in predictions that are not one to one.
    general
        Initial weights by feature name; None for the pretrained ones. A model file does not contain them, so
        pass them to `load` too.
    random_state
        Random seed; the same seed gives the same weights and matches.
    verbose
        Show progress.

    Attributes
    ----------
    weights_, weight_names_
        The fitted weights and their names.
    history_
        One `PassRecord` per pass: the learning curve.
    calibration_
        Slope and intercept of the calibration that turns a pair's score into a probability.
    reliability_
        Reliability diagram of the probabilities on the training pairs; None after `fit_unlabelled`, or if a
        model file does not contain it.
    """

    _kind = KIND
    _kept = ("one_to_one", "search_steps", "random_state")
    _noun = "aligner"
    _other_features = ": train it again."

    def __init__(
        self,
        *,
        one_to_one: bool = True,
        complete: bool = True,
        update: str | UpdateRule = "mira",
        cap: float = 0.01,
        accept: AcceptanceName = "metropolis",
        temperature: float = 1.0,
        metric: MetricName = "pairwise",
        passes: int = 10,
        steps: int = 100,
        search_steps: int = 200,
        general: Mapping[str, float] | None = None,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.one_to_one = one_to_one
        self.complete = complete
        self.update = update
        self.cap = cap
        self.accept = accept
        self.temperature = temperature
        self.metric = metric
        self.passes = passes
        self.steps = steps
        self.search_steps = search_steps
        self.general = general
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, left: Ontology, right: Ontology, reference: Reference, *, callback: Callback | None = None
    ) -> Self:
        """Fit the model to two ontologies and pairs of ids that are known to match."""
        return self.fit_pairs([(left, right, reference)], callback=callback)

    def fit_pairs(
        self, pairs: Iterable[tuple[Ontology, Ontology, Reference]], *, callback: Callback | None = None
    ) -> Self:
        """Fit one model to several pairs of ontologies, each with pairs of ids that are known to match."""
        check_count("steps", self.steps)
        rule = capped_rule(self.update, self.cap)
        parts, centers = [], []
        for left, right, reference in pairs:
            entity = entities_of(left, right, reference)
            everything, center = self._adapted(left, right)
            to_learn_from(everything, entity, self.complete)  # raises an error if no match is a candidate
            if self.one_to_one and not self.complete:
                entity = with_sure_matches(everything, center, entity)
            parts.append(to_learn_from(everything, entity, self.complete))
            centers.append(center)
        if not parts:
            raise InvalidArgumentError("there are no ontologies to learn from: give at least one pair.")
        true = np.concatenate([np.equal(*entity[candidates.edges].T) for candidates, entity in parts])
        features = np.vstack([candidates.features for candidates, _ in parts])
        matches = np.mean(centers, axis=0)
        if not self.complete:
            matches = fit_logistic(features, true, matches, DRAWN_BY_LABELS)
        learner = SampleRank(
            update=rule,
            accept=self.accept,
            temperature=self.temperature,
            fixed=(CROWDING,) if self.one_to_one else (),
        )
        worlds = [training_world(candidates, entity, metric=self.metric) for candidates, entity in parts]
        model = worlds[0].model
        start = starting_weights(matches, one_to_one=self.one_to_one)
        learned = learner.fit(
            worlds,
            passes=self.passes,
            steps=self.steps * -(-sum(candidates.n_concepts for candidates, _ in parts) // len(parts)),
            seed=self._seed(),
            weights=model.blocks.flat(start),
            progress=bool(self.verbose),
            callback=callback,
        )
        self._keep(learned, model)
        scores = features @ self.weights_[: features.shape[1]]
        self.calibration_: tuple[float, float] = _calibrated(scores, true)
        self.reliability_: Reliability | None = reliability(self._probability(scores), true)
        self._record(
            {
                "update": rule.as_dict(),
                "accept": self.accept,
                "temperature": self.temperature,
                "metric": self.metric,
                "complete": self.complete,
                "passes": self.passes,
                "steps": self.steps,
            }
        )
        return self

    def fit_unlabelled(self, left: Ontology, right: Ontology) -> Self:
        """Adapt the initial weights to two ontologies without known matches."""
        candidates, weights = self._adapted(left, right)
        model = matching_model(candidates)
        flat = model.blocks.flat(starting_weights(weights, one_to_one=self.one_to_one))
        self._keep(Learned(flat, flat, flat, 0.0, [], interrupted=False), model)
        self.calibration_, self.reliability_ = (1.0, 0.0), None
        self._record({"update": "self-training"})
        return self

    def predict(self, left: Ontology, right: Ontology) -> list[Match]:
        """Return the matches of two ontologies, most confident first."""
        candidates, scores, chosen = self._matched(left, right)
        sure = self._probability(scores[chosen])
        chosen, sure = chosen[np.argsort(-sure, kind="stable")], np.sort(sure)[::-1]
        ours, theirs = list(left.by_id), list(right.by_id)
        return [
            Match(ours[a], theirs[b - candidates.n_left], float(confidence))
            for (a, b), confidence in zip(candidates.edges[chosen].tolist(), sure, strict=True)
        ]

    def explain(self, left: Ontology, right: Ontology, ours: str, theirs: str) -> MatchExplanation:
        """Explain why a concept of the left and one of the right, given by their ids, match or do not."""
        check_ontologies(left, right)
        for side, one in ((left, ours), (right, theirs)):
            if one not in side.by_id:
                raise InvalidArgumentError(f"no concept of {side.name!r} has the id {one!r}.")
        number = [list(side.by_id).index(one) for side, one in ((left, ours), (right, theirs))]
        candidates, scores, chosen = self._matched(left, right)
        edges = candidates.edges - np.array([0, candidates.n_left])
        at = np.flatnonzero((edges == number).all(axis=1))
        if not len(at):
            nothing = [("nothing in common, so that they are not compared", 0.0)]
            return MatchExplanation(0.0, False, nothing, [], [])
        row = candidates.features[at[0]] * self.weights_[: len(candidates.names)]
        reasons = [(candidates.names[k], float(row[k])) for k in np.argsort(-np.abs(row)) if row[k]]
        beside = np.flatnonzero((edges == number).any(axis=1))
        beside = beside[np.argsort(-scores[beside], kind="stable")]
        kept = np.setdiff1d(chosen, beside) if self.one_to_one else chosen
        with_it = np.union1d(kept, at)
        broken = [number for some in candidates.conflicts(with_it) for number in some.tolist()]
        left_ids, right_ids = list(left.by_id), list(right.by_id)
        rivals, conflicts = (
            [
                Match(left_ids[edges[k, 0]], right_ids[edges[k, 1]], float(self._probability(scores[k])))
                for k in numbers
                if k != at[0]
            ]
            for numbers in (beside.tolist(), dict.fromkeys(broken))
        )
        probability = float(self._probability(scores[at[0]]))
        return MatchExplanation(probability, at[0] in chosen, reasons, rivals, conflicts)

    def _matched(
        self, left: Ontology, right: Ontology
    ) -> tuple[ConceptPairs, NDArray[np.float64], NDArray[np.int64]]:
        """Return the candidate pairs, their scores, and the indices of those that match."""
        self._check_fitted()
        candidates, _ = self._adapted(left, right)
        model = matching_model(candidates)
        self._give_weights(model)
        scores = self._scores(candidates)
        if self.one_to_one:
            return candidates, scores, best_matching(candidates, scores)
        check_count("search_steps", self.search_steps)
        steps = self.search_steps * candidates.n_concepts
        return candidates, scores, annealed_matching(candidates, model, steps=steps, seed=self._seed())

    def _record(self, learning: Mapping[str, Any]) -> None:
        """Set the training settings that are stored in the model file."""
        self.settings_ = plain_settings(
            {
                "one_to_one": self.one_to_one,
                "search_steps": self.search_steps,
                "random_state": self._seed(),
                "calibration": list(self.calibration_),
                "reliability": None if self.reliability_ is None else self.reliability_.as_dict(),
                "learning": dict(learning),
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cached ontologies, which would make a copy of an aligner large."""
        return {name: value for name, value in super().__getstate__().items() if name != "_last"}

    def _adapted(self, left: Ontology, right: Ontology) -> tuple[ConceptPairs, NDArray[np.float64]]:
        """Return the result of `adapted_pairs`, which is cached for the last two ontologies."""
        check_ontologies(left, right)
        last = self.__dict__.get("_last")
        if last is None or last[0] is not left or last[1] is not right or last[2] is not self.general:
            known = general_weights() if self.general is None else self.general
            last = self._last = (left, right, self.general, adapted_pairs(left, right, known))
        return last[3]

    def score(self, left: Ontology, right: Ontology, reference: Reference) -> float:
        """Return the F1 score of the predicted matches."""
        found = [(match.left, match.right) for match in self.predict(left, right)]
        return score_matches(reference_pairs(reference), found).f1

    def weights_by_name(self) -> dict[str, float]:
        """Return the weights by name, largest absolute value first; fixed weights are left out."""
        everything = super().weights_by_name()
        fixed = self.weight_names_[-2:] if self.one_to_one else []
        return {name: weight for name, weight in everything.items() if name not in fixed}

    @classmethod
    def load(cls, path: str | PathLike[str], **parameters: Any) -> Self:
        """Read a model that `save` or the command line wrote; ``parameters`` replace its settings."""
        made = super().load(path, **parameters)
        try:
            slope, intercept = map(float, made.settings_["calibration"])
            judged = made.settings_.get("reliability")
            made.reliability_ = None if judged is None else Reliability.from_dict(judged)
        except (KeyError, TypeError, ValueError):
            raise damaged(path) from None
        made.calibration_ = (slope, intercept)
        return made

    def _scores(self, candidates: ConceptPairs) -> NDArray[np.float64]:
        return np.asarray(candidates.features @ self.weights_[: len(candidates.names)])

    def _probability(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        slope, intercept = self.calibration_
        return np.asarray(expit(slope * scores + intercept))


def check_ontologies(*sides: object) -> None:
    """Raise an error if an argument is not an `Ontology`, such as the path of its file."""
    for side in sides:
        if not isinstance(side, Ontology):
            raise InvalidArgumentError(
                f"an Ontology is needed, but {side!r} was given: read its file with read_ontology of"
                " factorwise.io.ontologies.ontology."
            )


def reference_pairs(reference: Iterable[Any]) -> list[tuple[str, str]]:
    """Return the pairs of ids of a reference, without correspondences of relations other than ``=``."""
    if isinstance(reference, str | PathLike):
        raise InvalidArgumentError(
            f"a reference is a list of known matches, but {reference!r} was given: read its file with"
            " read_alignment of factorwise.io.ontologies.alignments."
        )
    pairs = []
    for row in reference:
        if isinstance(row, Correspondence):
            if row.relation == EQUIVALENT:
                pairs.append((row.source, row.target))
        elif isinstance(row, str) or len(row) != 2:
            raise InvalidArgumentError(
                f"the reference holds {row!r}, which is no pair: give the ids of a left and a right concept."
            )
        else:
            pairs.append((row[0], row[1]))
    return pairs


def entities_of(left: Ontology, right: Ontology, reference: Reference) -> NDArray[np.int64]:
    """Return an entity id for each concept of both sides; -1 for those that are not in the reference."""
    check_ontologies(left, right)
    known = reference_pairs(reference)
    ours = {name: number for number, name in enumerate(left.by_id)}
    theirs = {name: number + len(ours) for number, name in enumerate(right.by_id)}
    if not known:
        raise InvalidArgumentError("the reference holds no match: there is nothing to learn from.")
    edges = []
    for a, b in known:
        for name, has, side in ((a, ours, "left"), (b, theirs, "right")):
            if name not in has:
                raise InvalidArgumentError(
                    f"the reference matches {name!r}, which the ontology on the {side} does not have: check"
                    " that the ontologies are given in the order of the reference's columns."
                )
        edges.append((ours[a], theirs[b]))
    n, ends = len(ours) + len(theirs), np.array(edges)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n))
    _, entity = connected_components(graph, directed=False)  # matches are taken as transitive
    named = np.zeros(n, bool)
    named[ends.ravel()] = True
    return np.where(named, entity, -1).astype(np.int64)


def to_learn_from(
    everything: ConceptPairs, entity: NDArray[np.int64], complete: bool
) -> tuple[ConceptPairs, NDArray[np.int64]]:
    """Return the candidate pairs with known labels, and the entity ids of their concepts.

    All pairs of a concept in the reference are labelled, because it has no other matches. Pairs of two
    concepts that are not in the reference are labelled only if it is complete.
    """
    known = np.any(entity[everything.edges] >= 0, axis=1) | complete
    candidates, concepts = everything.taken(np.asarray(known))
    kept = entity[concepts]
    alone = kept < 0
    kept[alone] = len(entity) + np.arange(np.count_nonzero(alone))
    right = kept[candidates.edges[:, 0]] == kept[candidates.edges[:, 1]]
    if not right.any():
        raise InvalidArgumentError(
            "no pair of the reference is among the candidate pairs, whose names or texts have something in"
            " common: there is nothing to learn from."
        )
    return candidates, kept


def with_sure_matches(
    candidates: ConceptPairs, weights: NDArray[np.float64], entity: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Add the matches that the self-trained weights predict with high probability to a partial reference."""
    sure = candidates.edges[sure_matches(candidates, weights, SURE)]
    new = sure[(entity[sure] < 0).all(axis=1)]
    added = entity.copy()
    # `to_learn_from` numbers concepts without an entity from len(entity) on
    added[new] = 2 * len(entity) + np.arange(len(new))[:, None]
    return added


def _calibrated(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and intercept of the calibration of scores, by logistic regression."""
    if right.all():
        return 1.0, 0.0
    fitted = LogisticRegression().fit(scores[:, None], right)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
