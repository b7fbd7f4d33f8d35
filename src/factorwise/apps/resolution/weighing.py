"""Learning the weights of compared pairs: several ways, and the one that does best on entities kept apart.

Pairs that are labelled one by one give weights by logistic regression; walks that are judged cluster by
cluster (SampleRank) correct them, or learn from nothing. How warm a walk should be depends on the data: in
large complete blocks a warm one teaches more, among sparse links a cold one does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.labelled import ComparedLabels
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.inference.mcmc.linkage_search import LinkSearch
from factorwise.kernels.threads import Team
from factorwise.learning.linkage import LinkLearner, LinkPass
from factorwise.learning.linkage_calibration import calibrate
from factorwise.learning.linkage_logistic import logistic_links
from factorwise.metrics.clustering import b_cubed
from factorwise.model.linkage import LinkModel
from factorwise.types import Ints

HELD_OUT = 5  # one entity in so many is kept apart
MOST_HELD_OUT = 10_000  # records, about: enough to judge by
FEWEST_HELD_OUT = 8  # entities; with fewer, nothing is kept apart
DOUBT = 0.3  # by the root of the records kept apart: how much better in F1 a way must be than those before it


class Way(NamedTuple):
    """How weights are learned: from labelled pairs or from nothing, then by walks, if any, so warm."""

    name: str
    from_pairs: bool
    temperature: float | None


WAYS = (
    Way("walks from labelled pairs", True, 0.3),
    Way("labelled pairs alone", True, None),
    Way("walks", False, 0.1),
    Way("warm walks", False, 1.0),
)


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """Compared pairs among records whose entities are known (-1 where not), and pairs labelled singly."""

    graph: LinkGraph
    levels: NDArray[np.uint8]
    entity: NDArray[np.int32]
    labelled: ComparedLabels | None = None

    def part(self, chosen: NDArray[np.bool_]) -> Lesson:
        """Return what concerns some of the records, which are numbered anew."""
        first, second = self.graph.first, self.graph.second
        number = np.cumsum(chosen) - 1
        inside = chosen[first] & chosen[second]
        graph = LinkGraph.from_pairs(int(chosen.sum()), number[first[inside]], number[second[inside]])
        known = self.entity[chosen]
        dense = np.full(len(known), -1, np.int32)
        dense[known >= 0] = np.unique(known[known >= 0], return_inverse=True)[1]
        labelled = None if self.labelled is None else self.labelled.part(chosen)
        return Lesson(graph, self.levels[inside], dense, labelled)


class Weighed(NamedTuple):
    """Weights, the temperature at which scores are probabilities, and how they were come by.

    temperature
        Found on the entities kept apart; 1 where there are none.
    scores
        B-cubed F1 on the entities kept apart, for each way that was tried; of the records that were learned
        from, where none could be kept apart.
    """

    model: LinkModel
    temperature: float
    way: str
    scores: dict[str, float]
    held_out: int


def weigh(
    lesson: Lesson,
    sizes: tuple[int, ...],
    learner: LinkLearner,
    search: LinkSearch,
    *,
    seed: int,
    team: Team,
    watch: Callable[[LinkPass], None] | None = None,
) -> Weighed:
    """Learn the weights of comparisons with so many levels."""
    apart = held_out(lesson.entity, seed)
    training = lesson.part(~apart)
    judged = lesson.part(apart) if apart.any() else lesson.part(lesson.entity >= 0)
    ways = WAYS if apart.any() else WAYS[:1]
    best: tuple[float, Way, LinkWalk] | None = None
    scores = {}
    for way in ways:
        model = learned(training, way, sizes, learner, seed=seed, watch=watch)
        walk = LinkWalk(
            judged.graph, model.link_scores(judged.levels), apart=model.apart, cluster=model.cluster
        )
        if search.run(walk, seed=seed, team=team).reason == "interrupted":
            raise KeyboardInterrupt  # what a search keeps when it is stopped is no use here
        scores[way.name] = float(b_cubed(judged.entity, walk.labels).f1)
        if best is None or scores[way.name] > best[0] + DOUBT / len(judged.entity) ** 0.5:
            best = scores[way.name], way, walk
    assert best is not None
    _, way, walk = best
    temperature = 1.0  # what was learned from looks too certain to tell
    if apart.any():
        temperature = calibrate(walk, judged.entity, seed=seed, team=team).temperature
    model = learned(lesson, way, sizes, learner, seed=seed, watch=watch)
    return Weighed(model, temperature, way.name, scores, int(apart.sum()))


def learned(
    lesson: Lesson,
    way: Way,
    sizes: tuple[int, ...],
    learner: LinkLearner,
    *,
    seed: int,
    watch: Callable[[LinkPass], None] | None = None,
) -> LinkModel:
    """Learn weights one way."""
    model = LinkModel.blank(sizes)
    graph, entity = lesson.graph, lesson.entity
    if way.from_pairs:
        known = (entity[graph.first] >= 0) & (entity[graph.second] >= 0)
        levels, same = lesson.levels[known], entity[graph.first[known]] == entity[graph.second[known]]
        size = np.bincount(entity[entity >= 0]).astype(np.float64)
        linked = float(same.sum()) / max(float((size * (size - 1.0)).sum()) / 2.0, 1.0)
        if lesson.labelled is not None:
            levels = np.concatenate([levels, lesson.labelled.levels])
            same = np.append(same, lesson.labelled.pairs.same)
        model = logistic_links(levels, same, model, linked=linked, seed=seed)
    if way.temperature is None:
        return model
    walker = learner._replace(temperature=way.temperature)
    return walker.fit(graph, lesson.levels, entity, model, seed=seed, callback=watch)


def held_out(entity: Ints, seed: int) -> NDArray[np.bool_]:
    """Return which records belong to the entities that are kept apart; none if there are few entities."""
    count = int(entity.max(initial=-1)) + 1
    if count < HELD_OUT * FEWEST_HELD_OUT:
        return np.zeros(len(entity), bool)
    share = max(HELD_OUT, -(-int((entity >= 0).sum()) // MOST_HELD_OUT))
    chosen = np.random.default_rng([seed, 2]).permutation(count) % share == 0
    return np.asarray((entity >= 0) & chosen[np.maximum(entity, 0)])
