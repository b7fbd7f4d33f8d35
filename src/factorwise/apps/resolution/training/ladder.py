"""Training methods, ordered as rungs of a ladder: each one learns more from labels than the one before.

After the rungs, one more step is tried in the same way: scoring pairs in the context of the clusters of their
records.

The first rung is safe with a handful of labelled entities: it keeps the weights that were estimated without
labels, and fits a slope and a shift. The last rung needs many. A later rung is chosen only if it is better on
held-out entities than the one chosen so far, by more than chance would explain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.context.model import FIRST_PASS, STRICTNESS, ContextModel
from factorwise.apps.resolution.knowledge import unlinked_pair_weight
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.record_items import LINKS, further_model
from factorwise.apps.resolution.training.boosted_tables import boost_tables
from factorwise.apps.resolution.training.calibration import Calibration, Case, calibrate
from factorwise.apps.resolution.training.context_training import train_context
from factorwise.apps.resolution.training.examples import PairExamples, TrainingData
from factorwise.apps.resolution.training.folds import FOLDS, HeldOutRecords, Judgement, Scorer, hold_out
from factorwise.apps.resolution.training.link_learning import LinkTraining, Weights
from factorwise.apps.resolution.training.pair_regression import regress_levels, scale_weights
from factorwise.distributed.mixing import Mixer
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.clusterings.links import CLUSTER_WEIGHT, LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.kernels.compile.threads import Team
from factorwise.learning.samplerank.learner import PassRecord
from factorwise.metrics.clustering import ClusterScore, b_cubed
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Floats

CHANCE = 1.0  # standard errors of B-cubed F1 by which a rung must be better than the chosen one
CLEARLY = 2.0  # standard errors by which the loss of pairs may be lower instead
FEWEST_FOR_WEIGHTS = 20  # known entities needed to learn more than a slope and a shift
FEWEST_FOR_CONTEXT = 100  # known entities needed to train and evaluate the context model
ROUNDS = 4  # most rounds of the searches that compare rungs
IN_CONTEXT = ", in context"  # suffix of the name of a rung with context
WITH_TEMPLATES = ", with your templates"  # suffix of the name of a method with user-defined templates


class Start(NamedTuple):
    """What all rungs start from.

    unlabelled
        Weights that were estimated without labels.
    directions
        For each comparison, 1 if higher levels mean more similar, -1 if lower levels do.
    """

    unlabelled: LevelWeights
    directions: tuple[int, ...]
    seed: int


class Rung(NamedTuple):
    """A training method: its name, how it fits weights to labelled pairs, and when it is tried.

    fewest
        Known entities that it needs; with fewer, chance would decide which of two methods is better.
    """

    name: str
    fit: Callable[[PairExamples, Start], LevelWeights]
    fewest: int = 0

    def scorer(self, start: Start) -> Callable[[PairExamples], Scorer]:
        """Return a function that fits weights to pairs and returns a scorer of other pairs."""
        return lambda examples: self.fit(examples, start).link_scores


def _scaled(examples: PairExamples, start: Start) -> LevelWeights:
    return scale_weights(examples, start.unlabelled)


def _corrected(examples: PairExamples, start: Start) -> LevelWeights:
    return regress_levels(examples, scale_weights(examples, start.unlabelled), seed=start.seed)


def _learned(examples: PairExamples, start: Start) -> LevelWeights:
    """Fit weights by regression and by boosting, and average them to lower the variance."""
    zeros = LevelWeights.zeros(start.unlabelled.sizes)
    regressed = regress_levels(examples, zeros, seed=start.seed)
    boosted = boost_tables(examples, zeros.sizes, start.directions, seed=start.seed)
    return LevelWeights(zeros.sizes, 0.5 * (regressed.values + boosted.values))


#: Training methods, from the one that needs the fewest labels to the one that needs most.
RUNGS = (
    Rung("unlabelled weights, scaled", _scaled),
    Rung("unlabelled weights, corrected", _corrected, FEWEST_FOR_WEIGHTS),
    Rung("labelled pairs", _learned, FEWEST_FOR_WEIGHTS),
)


class Fitted(NamedTuple):
    """Fitted weights, and how they were learned.

    calibration
        The calibration, fitted on held-out entities; the defaults if there are none.
    method
        Name of the chosen training method.
    scores
        B-cubed of each method on held-out entities, or on the training records if none were held out.
    held_out
        Number of held-out records on which methods were compared.
    context
        The context model, if it improves the result on held-out entities.
    """

    weights: Weights
    calibration: Calibration
    method: str
    scores: dict[str, ClusterScore]
    held_out: int
    context: ContextModel | None = None


class _Scores(dict[str, ClusterScore]):
    """B-cubed of each training method, reported as soon as it is known."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        super().__init__()
        self.on_message = on_message

    def __setitem__(self, method: str, score: ClusterScore) -> None:
        super().__setitem__(method, score)
        self.on_message(f"{method}: B-cubed F1 {score.f1:.4f}")


class _Held(NamedTuple):
    """The training method chosen so far.

    score
        Out-of-fold scores of the pairs.
    method
        Name of the method: that of the rung, with a suffix for context.
    context
        The context model on top of the rung, if it is used.
    """

    method: str
    rung: Rung
    judgement: Judgement
    walk: LinkWalk
    score: Floats
    context: ContextModel | None = None


def climb_ladder(
    data: TrainingData,
    start: Start,
    template_weights: NDArray[np.float64],
    learner: LinkTraining,
    search: LinkSearch,
    *,
    team: Team,
    normal: NormalTable | None = None,
    mixer: Mixer | None = None,
    on_pass: Callable[[PassRecord], None] | None = None,
    on_message: Callable[[str], None] = lambda text: None,
) -> Fitted:
    """Choose a training method on held-out entities, and fit weights with it to all labelled entities.

    template_weights
        Initial weights of user-defined templates. They are learned at the end with SampleRank, together with
        the out-of-fold scores of links, in context if that is used.
    normal
        The normal forms of the records, for their context; None to leave context out.
    mixer, on_pass
        Runs SampleRank in shards, None for no shards; and a callback after each pass.
    on_message
        Called with the score of each method.
    """
    seed = start.seed
    unlinked = unlinked_pair_weight(data.linked_share())
    held_out = hold_out(data, seed)
    scores = _Scores(on_message)
    teacher = _TemplateTeacher(learner, template_weights, unlinked, seed, mixer)
    if held_out is None:
        return _without_folds(data, start, teacher, search, scores, team=team, on_pass=on_pass)
    held = _climb(held_out, start, unlinked, search, scores, team=team)
    if normal is not None and _entities_judged(held_out) >= FEWEST_FOR_CONTEXT:
        held = _add_context(held, held_out, normal, unlinked, search, scores, seed=seed, team=team)
    cases = [Case(held.walk, held_out.among.entity, held_out.judged, held_out.group)]
    links, context = held.rung.fit(data.pair_examples(data.entity >= 0), start), held.context
    weights = Weights(_with_unlinked(links, unlinked), template_weights)
    if data.templates:
        taught = _taught(held_out, held.score)
        cases, judgement = teacher.out_of_fold_cases(taught, held_out, _quick(search), team=team)
        scores[f"{held.method}{WITH_TEMPLATES}"] = judgement.score
        learned = teacher.fit(taught, on_pass=on_pass)
        if context is None:
            weights = Weights(_shifted(weights.links, learned.links), learned.further)
        else:
            weights, context = (
                weights._replace(further=learned.further),
                context.shifted(learned.links, unlinked),
            )
    calibration = calibrate(cases, seed=seed, team=team)
    return Fitted(weights, calibration, held.method, dict(scores), int(held_out.judged.sum()), context)


def _without_folds(
    data: TrainingData,
    start: Start,
    teacher: _TemplateTeacher,
    search: LinkSearch,
    scores: _Scores,
    *,
    team: Team,
    on_pass: Callable[[PassRecord], None] | None,
) -> Fitted:
    """Fit with the first rung, if there are too few entities to hold any out."""
    known, rung = data.entity >= 0, RUNGS[0]
    links = _with_unlinked(rung.fit(data.pair_examples(known), start), teacher.unlinked)
    weights = Weights(links, teacher.first)
    if data.templates:
        learned = teacher.fit(replace(data, offset=links.link_scores(data.levels)), on_pass=on_pass)
        weights = Weights(_shifted(links, learned.links), learned.further)
    score = weights.links.link_scores(data.levels)
    walk = cluster_by(data, score, weights, search, seed=start.seed, team=team)
    scores[rung.name] = b_cubed(data.entity[known], walk.labels[known])
    return Fitted(weights, Calibration(), rung.name, dict(scores), 0)


def _taught(held_out: HeldOutRecords, score: Floats) -> TrainingData:
    """Return the training data of templates: evaluated records, their neighbors and out-of-fold scores."""
    among = held_out.among
    entity = np.where(held_out.judged, among.entity, -1).astype(np.int32)
    return replace(among, entity=entity, offset=np.asarray(score, np.float64), labelled=None)


def _shifted(links: LevelWeights, learned: LevelWeights) -> LevelWeights:
    """Add the learned shift to the link weight, and take over the unlinked pair and cluster weights."""
    values = links.values.copy()
    values[LINK_WEIGHT] += learned.link
    values[[UNLINKED_WEIGHT, CLUSTER_WEIGHT]] = learned.unlinked, learned.cluster
    return LevelWeights(links.sizes, values)


@dataclass(frozen=True, slots=True, eq=False)
class _TemplateTeacher:
    """Learns the weights of user-defined templates with SampleRank, together with scored links.

    Link scores are out-of-fold, in context if that is used: next to overconfident in-sample scores, templates
    would get too little weight. First the slope and shift of the scores and the weights of unlinked pairs and
    clusters are learned together with the templates. Then the templates are learned alone, with the links
    fixed, because they have not converged from ``first`` yet. Finally all weights are divided by the slope,
    which leaves the ranking of clusterings unchanged.

    unlinked
        The initial weight of unlinked pairs.
    mixer
        Runs SampleRank in shards; None for no shards.
    """

    learner: LinkTraining
    first: NDArray[np.float64]
    unlinked: float
    seed: int
    mixer: Mixer | None

    def fit(self, data: TrainingData, *, on_pass: Callable[[PassRecord], None] | None = None) -> Weights:
        """Fit the weights to linked records whose ``offset`` is the score of their links."""
        weights = Weights.of_scores(self.unlinked, self.first)
        for fixed in ((), (LINKS,)):
            weights = self.learner.fit(
                data, weights, fixed=fixed, seed=self.seed, mixer=self.mixer, on_pass=on_pass
            )
        return weights.in_units_of_scores()

    def out_of_fold_cases(
        self, taught: TrainingData, held_out: HeldOutRecords, search: LinkSearch, *, team: Team
    ) -> tuple[list[Case], Judgement]:
        """Cluster by weights learned without each fold, and evaluate the clusterings together.

        Each clustering is evaluated on the items of its fold.
        """
        assert taught.offset is not None
        cases, judgements = [], []
        for fold in range(FOLDS):
            part = taught.part(np.flatnonzero(held_out.fold_among != fold))
            if not (part.entity >= 0).any():
                continue
            weights = self.fit(part)
            score = taught.offset + weights.links.link
            walk = cluster_by(taught, score, weights, search, seed=self.seed, team=team)
            judged = held_out.judged & (held_out.fold_among == fold)
            cases.append(Case(walk, held_out.among.entity, judged, held_out.group))
            judgements.append(replace(held_out, judged=judged).judge(walk.labels, score))
        return cases, Judgement(*(np.concatenate(each) for each in zip(*judgements, strict=True)))


def _climb(
    held_out: HeldOutRecords,
    start: Start,
    unlinked: float,
    search: LinkSearch,
    scores: _Scores,
    *,
    team: Team,
) -> _Held:
    """Choose the rung by comparing each one with the best so far; record the score of every rung."""
    quick, among = _quick(search), replace(held_out.among, templates=())
    held: _Held | None = None
    known = _entities_judged(held_out)
    links = _with_unlinked(LevelWeights.zeros(()), unlinked)
    for rung in RUNGS:
        if known < rung.fewest:
            break
        score = held_out.out_of_fold_scores(rung.scorer(start))
        walk = cluster_by(among, score, Weights(links, np.zeros(0)), quick, seed=start.seed, team=team)
        judgement = held_out.judge(walk.labels, score)
        scores[rung.name] = judgement.score
        if held is None or is_better(judgement, held.judgement):
            held = _Held(rung.name, rung, judgement, walk, score)
    assert held is not None
    return held


def _add_context(
    held: _Held,
    held_out: HeldOutRecords,
    normal: NormalTable,
    unlinked: float,
    search: LinkSearch,
    scores: _Scores,
    *,
    seed: int,
    team: Team,
) -> _Held:
    """Add the context model to the chosen rung, if it improves B-cubed on held-out entities.

    Only B-cubed decides, because context features nearly always lower the loss of pairs.
    """
    among = replace(held_out.among, templates=())
    weights = Weights(_with_unlinked(LevelWeights.zeros(()), unlinked), np.zeros(0))
    first = cluster_by(among, held.score - STRICTNESS, weights, FIRST_PASS, seed=seed, team=team)
    records = normal if len(held_out.records) == normal.n_rows else normal.rows(held_out.records)
    training = train_context(records, held_out, held.score, first.labels, seed)
    score = training.out_of_fold_scores()
    walk = cluster_by(among, score, weights, _quick(search), seed=seed, team=team)
    judgement, method = held_out.judge(walk.labels, score), f"{held.method}{IN_CONTEXT}"
    scores[method] = judgement.score
    lead, error = judgement.lead_over(held.judgement)
    if lead <= CHANCE * error:
        return held
    return _Held(method, held.rung, judgement, walk, score, training.fit_all())


def _entities_judged(held_out: HeldOutRecords) -> int:
    return len(np.unique(held_out.among.entity[held_out.judged]))


def _quick(search: LinkSearch) -> LinkSearch:
    return replace(search, rounds=min(ROUNDS, search.rounds), extra=0)


def is_better(new: Judgement, held: Judgement) -> bool:
    """Return whether a training method is better on held-out entities by more than chance would explain.

    B-cubed is noisy with few entities, which still have many pairs. So a method is also better if its loss of
    pairs is clearly lower and its B-cubed is not.
    """
    lead, error = new.lead_over(held)
    saved, error_of_loss = new.loss_saved_over(held)
    return lead > CHANCE * error or (saved > CLEARLY * error_of_loss and lead >= 0.0)


def _with_unlinked(weights: LevelWeights, unlinked: float) -> LevelWeights:
    values = weights.values.copy()
    values[UNLINKED_WEIGHT] = unlinked
    return LevelWeights(weights.sizes, values)


def cluster_by(
    data: TrainingData, scores: Floats, weights: Weights, search: LinkSearch, *, seed: int, team: Team
) -> LinkWalk:
    """Cluster records by the scores of their links, and by the other weights of the model."""
    further = further_model(data.templates, weights.further)
    walk = LinkWalk(
        data.graph,
        scores,
        unlinked=weights.links.unlinked,
        cluster=weights.links.cluster,
        sources=data.sources,
        further=further,
    )
    if search.run(walk, seed=seed, team=team).reason == "interrupted":
        raise KeyboardInterrupt  # the result of an interrupted search is of no use here
    return walk
