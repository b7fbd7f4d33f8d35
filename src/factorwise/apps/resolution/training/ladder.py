"""The training methods as a ladder: each rung learns more from labels than the one below it.

Above the rungs stands one further step, taken on the same terms: what the clusters of two records say of the
pair (the context).

The lowest rung is safe with a handful of labelled entities: it keeps the weights that were found without
labels, and fits two numbers. The highest needs many. The next rung is taken only where it does better on
held-out entities than the one that is held, by more than chance would explain.
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

CHANCE = 1.0  # standard errors of B-cubed by which a rung must do better than the one that is held
CLEARLY = 2.0  # standard errors of the loss of pairs by which it may do better instead
FEWEST_FOR_WEIGHTS = 20  # known entities from which more is learned than slope and shift
FEWEST_FOR_CONTEXT = 100  # known entities from which the context is learned, and on which it is judged
ROUNDS = 4  # of a search that compares rungs
IN_CONTEXT = ", in context"  # what follows the name of a rung
WITH_TEMPLATES = ", with your templates"  # and of a rung, in context or not


class Start(NamedTuple):
    """What rungs start from.

    unlabelled
        Weights that were found without labels.
    directions
        For each comparison 1 where higher levels are more alike, -1 where lower ones are.
    """

    unlabelled: LevelWeights
    directions: tuple[int, ...]
    seed: int


class Rung(NamedTuple):
    """A training method: what it is called, how it learns weights from labelled pairs, and when it is tried.

    fewest
        Known entities from which it is tried: with fewer, chance decides which of two methods does better.
    """

    name: str
    fit: Callable[[PairExamples, Start], LevelWeights]
    fewest: int = 0

    def scorer(self, start: Start) -> Callable[[PairExamples], Scorer]:
        """Return what fits weights to pairs, and scores others by them."""
        return lambda examples: self.fit(examples, start).link_scores


def _scaled(examples: PairExamples, start: Start) -> LevelWeights:
    return scale_weights(examples, start.unlabelled)


def _corrected(examples: PairExamples, start: Start) -> LevelWeights:
    return regress_levels(examples, scale_weights(examples, start.unlabelled), seed=start.seed)


def _learned(examples: PairExamples, start: Start) -> LevelWeights:
    """Fit weights by regression and by boosting: their mean is surer than either."""
    zeros = LevelWeights.zeros(start.unlabelled.sizes)
    regressed = regress_levels(examples, zeros, seed=start.seed)
    boosted = boost_tables(examples, zeros.sizes, start.directions, seed=start.seed)
    return LevelWeights(zeros.sizes, 0.5 * (regressed.values + boosted.values))


#: From the one that needs the fewest labels to the one that needs most.
RUNGS = (
    Rung("unlabelled weights, scaled", _scaled),
    Rung("unlabelled weights, corrected", _corrected, FEWEST_FOR_WEIGHTS),
    Rung("labelled pairs", _learned, FEWEST_FOR_WEIGHTS),
)


class Fitted(NamedTuple):
    """Weights, and how they were learned.

    calibration
        How scores become probabilities, fitted on held-out entities; the defaults if there are none.
    method
        Name of the rung that was taken.
    scores
        B-cubed of each rung on held-out entities; without any, on the records that were learned from.
    held_out
        Number of records on which rungs were compared.
    context
        What was learned of the clusters of two records, if held-out entities are better for it.
    """

    weights: Weights
    calibration: Calibration
    method: str
    scores: dict[str, ClusterScore]
    held_out: int
    context: ContextModel | None = None


class _Scores(dict[str, ClusterScore]):
    """B-cubed of each rung, reported when it is known."""

    def __init__(self, on_message: Callable[[str], None]) -> None:
        super().__init__()
        self.on_message = on_message

    def __setitem__(self, method: str, score: ClusterScore) -> None:
        super().__setitem__(method, score)
        self.on_message(f"{method}: B-cubed F1 {score.f1:.4f}")


class _Held(NamedTuple):
    """The rung that is held while the ladder is climbed.

    score
        Out-of-fold scores of the pairs.
    method
        What is said of how it learns: the name of the rung, and of what was put on top of it.
    context
        What was learned of clusters on top of the rung, if that was worth it.
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
    """Choose a training method on held-out entities, and learn weights by it from all of them.

    template_weights
        Weights that templates of one's own start from. They are learned at the end, by walks, beside the
        out-of-fold scores of links, in context where that is used.
    normal
        The records, for what their clusters say; None to leave that out.
    mixer, on_pass
        Who takes the walks, in shards, None for one walk here; and what is called after each pass.
    on_message
        Called with how well each rung does.
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
    """Learn from entities that are too few to hold any out: by the lowest rung."""
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
    """Return the judged records and those linked with them, with out-of-fold scores of their links."""
    among = held_out.among
    entity = np.where(held_out.judged, among.entity, -1).astype(np.int32)
    return replace(among, entity=entity, offset=np.asarray(score, np.float64), labelled=None)


def _shifted(links: LevelWeights, learned: LevelWeights) -> LevelWeights:
    """Return the weights of links with the shift and the other weights that were learned for their scores."""
    values = links.values.copy()
    values[LINK_WEIGHT] += learned.link
    values[[UNLINKED_WEIGHT, CLUSTER_WEIGHT]] = learned.unlinked, learned.cluster
    return LevelWeights(links.sizes, values)


@dataclass(frozen=True, slots=True, eq=False)
class _TemplateTeacher:
    """Learns the weights of templates of one's own by walks, beside links that have a score.

    Scores are those of pairs whose entities their weights have not seen, in context where that is used: what
    templates add to surer scores than they will meet would be too little. First the slope and shift of the
    scores, the weights of unlinked pairs and of clusters are learned together with the templates; then these
    by themselves, since they began at ``first``, and are not yet where the links have come to. At last all
    weights are divided by the slope, which changes no answer.

    unlinked
        The weight of members that are not linked, to begin with.
    mixer
        Who takes the walks, in shards; None for one walk here.
    """

    learner: LinkTraining
    first: NDArray[np.float64]
    unlinked: float
    seed: int
    mixer: Mixer | None

    def fit(self, data: TrainingData, *, on_pass: Callable[[PassRecord], None] | None = None) -> Weights:
        """Learn from linked records whose ``offset`` is the score of their links."""
        weights = Weights.of_scores(self.unlinked, self.first)
        for fixed in ((), (LINKS,)):
            weights = self.learner.fit(
                data, weights, fixed=fixed, seed=self.seed, mixer=self.mixer, on_pass=on_pass
            )
        return weights.in_units_of_scores()

    def out_of_fold_cases(
        self, taught: TrainingData, held_out: HeldOutRecords, search: LinkSearch, *, team: Team
    ) -> tuple[list[Case], Judgement]:
        """Return a clustering for each fold, by weights that were learned without it, and judge them all.

        Of each, the items of the fold are judged.
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
    """Return the highest rung that each step up to it was worth; note the score of every rung."""
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
    """Return the rung that is held with what clusters say, if held-out entities are better for it.

    Only B-cubed is asked: what clusters say of their own links lowers the loss of pairs nearly always.
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
    """Return whether a training method does better on held-out entities by more than chance would explain.

    Few entities decide over B-cubed, where many pairs would tell: a method is better, too, if its loss of
    pairs is clearly lower while its B-cubed is no lower.
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
    """Cluster records by the scores of their links; weights say what else counts."""
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
        raise KeyboardInterrupt  # what a search keeps when it is stopped is no use here
    return walk
