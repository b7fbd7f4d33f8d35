"""Learning the weights of compared pairs: several ways, and the one that does best on entities kept apart.

Pairs that are labelled one by one give weights by logistic regression; walks that are judged cluster by
cluster (SampleRank) correct them, or learn from nothing. How much a link by itself is worth, and how warm a
walk should be, depends on the data: in large complete blocks a warm one teaches more, among sparse links the
pairs do. What was found without any labels is tried too: a few labels do not always do better. Further
templates learn by walks in any case, with the links or beside links whose weights are held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from factorwise.apps.resolution.lessons import Lesson, Trial, effective_number, trials
from factorwise.apps.resolution.link_learning import LinkTraining, Weights
from factorwise.apps.resolution.pair_regression import logistic_links
from factorwise.apps.resolution.record_items import LINKS, further_model
from factorwise.apps.resolution.temperature import Calibration, Case, calibrate
from factorwise.distributed.mixing import Mixer
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.learning.samplerank.learner import PassRecord
from factorwise.metrics.calibration import Reliability
from factorwise.metrics.clustering import ClusterScore, Tally
from factorwise.model.level_weights import LevelWeights

DOUBT = 0.1  # by the root of the entities kept apart: by how much in F1 a way must beat the usual one
MANY_ENTITIES = 10_000
ROUNDS = 4  # of a search that is to tell ways apart


class Start(Enum):
    """What weights are at first: found without labels, those of labelled pairs, or zero."""

    UNLABELLED = "unlabelled"
    PAIRS = "pairs"
    NOTHING = "nothing"


class Way(NamedTuple):
    """How weights are learned: from a start, by walks, if any, so warm.

    shift
        What is added to the weight of a link at first.
    """

    name: str
    start: Start
    temperature: float | None = None
    shift: float = 0.0


PAIRS_ALONE = Way("labelled pairs alone", Start.PAIRS)
WALKS_FROM_PAIRS = Way("walks from labelled pairs", Start.PAIRS, 0.3)
WITHOUT_LABELS = Way("without labels", Start.UNLABELLED)
WAYS = (
    WITHOUT_LABELS,
    PAIRS_ALONE,
    Way("labelled pairs alone, stricter", Start.PAIRS, shift=-1.0),
    Way("labelled pairs alone, laxer", Start.PAIRS, shift=1.0),
    Way("warm walks", Start.NOTHING, 1.0),
    WALKS_FROM_PAIRS,
)


class Weighed(NamedTuple):
    """Weights, the temperature at which scores are probabilities, and how they were come by.

    temperature
        Found on entities kept apart; 1 where there are none.
    reliability
        How far the probabilities at that temperature can be trusted; None where no entities are kept apart.
    scores
        B-cubed on entities kept apart, for each way that was tried; of the records that were learned from,
        where none could be kept apart.
    held_out
        Records of entities kept apart.
    """

    weights: Weights
    temperature: float
    reliability: Reliability | None
    way: str
    scores: dict[str, ClusterScore]
    held_out: int


def weigh(
    lesson: Lesson,
    unlabelled: Weights,
    learner: LinkTraining,
    search: LinkSearch,
    *,
    seed: int,
    team: Team,
    mixer: Mixer | None = None,
    on_pass: Callable[[PassRecord], None] | None = None,
) -> Weighed:
    """Learn weights.

    mixer
        Who takes the walks, in shards; None for one walk here.
    unlabelled
        Those that are found without labels; with a few labels they are what is left to take.
    """
    quick = replace(search, rounds=min(ROUNDS, search.rounds), extra=0)
    kept_apart = trials(lesson, seed)
    judged = kept_apart or [Trial(lesson, lesson, lesson.entity >= 0)]
    ways = WAYS if kept_apart else (WITHOUT_LABELS,)
    wanted = {way.start for way in ways}
    starts = [
        {start: beginning(start, trial.training, unlabelled, seed=seed) for start in wanted}
        for trial in judged
    ]
    doubt = DOUBT / sum(effective_number(trial.among.entity[trial.judged]) for trial in judged) ** 0.5
    scores: dict[str, ClusterScore] = {}
    walks: dict[str, list[LinkWalk]] = {}
    for way in ways:
        total, walks[way.name] = Tally(0.0, 0.0, 0.0, 0.0), []
        for trial, start in zip(judged, starts, strict=True):
            first = start[way.start]
            weights = learned(trial.training, way, first, learner, seed=seed, mixer=mixer, on_pass=on_pass)
            walk = searched(trial, weights, quick, seed=seed, team=team)
            total += trial.score(walk.labels)
            walks[way.name].append(walk)
        scores[way.name] = total.score
    best = max(ways, key=lambda way: scores[way.name].f1)
    usual = usual_way(lesson)
    if usual in ways and scores[best.name].f1 <= scores[usual.name].f1 + doubt:
        best = usual
    calibration = Calibration(1.0, {})  # what was learned from looks too certain to tell
    if kept_apart:
        cases = [
            Case(walk, t.among.entity, t.judged) for walk, t in zip(walks[best.name], judged, strict=True)
        ]
        calibration = calibrate(cases, seed=seed, team=team)
    first = beginning(best.start, lesson, unlabelled, seed=seed)
    weights = learned(lesson, best, first, learner, seed=seed, mixer=mixer, on_pass=on_pass)
    number = sum(int(trial.judged.sum()) for trial in kept_apart)
    return Weighed(
        weights, calibration.temperature, calibration.reliability, best.name, scores, held_out=number
    )


def usual_way(lesson: Lesson) -> Way:
    """Return the way that others have to beat clearly.

    Walks aim at what is wanted, clusterings, but of few entities they learn by heart.
    """
    return WALKS_FROM_PAIRS if int(lesson.entity.max(initial=-1)) + 1 >= MANY_ENTITIES else PAIRS_ALONE


def searched(trial: Trial, weights: Weights, search: LinkSearch, *, seed: int, team: Team) -> LinkWalk:
    """Cluster the records of a trial by some weights."""
    among, links = trial.among, weights.links
    walk = LinkWalk(
        among.graph,
        links.link_scores(among.levels),
        unlinked=links.unlinked,
        cluster=links.cluster,
        further=further_model(among.templates, weights.further),
    )
    if search.run(walk, seed=seed, team=team).reason == "interrupted":
        raise KeyboardInterrupt  # what a search keeps when it is stopped is no use here
    return walk


def learned(
    lesson: Lesson,
    way: Way,
    start: Weights,
    learner: LinkTraining,
    *,
    seed: int,
    mixer: Mixer | None = None,
    on_pass: Callable[[PassRecord], None] | None = None,
) -> Weights:
    """Learn weights one way, from those given."""
    start = start._replace(links=start.links.shifted(way.shift))
    if way.temperature is not None:
        walker = replace(learner, temperature=way.temperature)
        return walker.fit(lesson, start, seed=seed, mixer=mixer, on_pass=on_pass)
    if lesson.templates and (lesson.entity >= 0).any():
        return learner.fit(lesson, start, fixed=(LINKS,), seed=seed, mixer=mixer)
    return start


def beginning(start: Start, lesson: Lesson, unlabelled: Weights, *, seed: int) -> Weights:
    """Return the weights that a way starts from."""
    sizes = unlabelled.links.sizes
    match start:
        case Start.UNLABELLED:
            return unlabelled
        case Start.PAIRS:
            return unlabelled._replace(links=learned_from_pairs(lesson, sizes, seed=seed))
        case Start.NOTHING:
            return unlabelled._replace(links=LevelWeights.zeros(sizes))


def learned_from_pairs(lesson: Lesson, sizes: tuple[int, ...], *, seed: int) -> LevelWeights:
    """Learn weights from linked pairs of known entities, and from those that are labelled singly.

    The pairs of a record with others of its entity count for one in all, and so do those with others: what
    is learned is neither the ways of the largest entities nor that most candidates are of two.
    """
    first, second, entity = lesson.graph.first, lesson.graph.second, lesson.entity
    known = (entity[first] >= 0) & (entity[second] >= 0)
    first, second = first[known], second[known]
    levels, same = lesson.levels[known], entity[first] == entity[second]
    share = np.empty(len(same))
    for kind in (same, ~same):
        degree = np.bincount(np.append(first[kind], second[kind]), minlength=len(entity))
        share[kind] = 1.0 / np.minimum(degree[first[kind]], degree[second[kind]])
    size = np.bincount(entity[entity >= 0]).astype(np.float64)
    linked = float(same.sum()) / max(float((size * (size - 1.0)).sum()) / 2.0, 1.0)
    if lesson.labelled is not None:
        levels = np.concatenate([levels, lesson.labelled.levels])
        same = np.append(same, lesson.labelled.pairs.same)
        share = np.append(share, np.ones(len(same) - len(share)))
    return logistic_links(levels, same, sizes, share=share, linked=linked, seed=seed)
