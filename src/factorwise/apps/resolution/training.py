"""Learning to resolve: blocking rules, levels of comparisons, weights and the temperature, from a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import (
    Candidates,
    Rule,
    default_rules,
    find_candidates,
    learned_rules,
)
from factorwise.apps.resolution.comparisons import Comparer, Comparison, planned
from factorwise.apps.resolution.fields import FieldSpec
from factorwise.apps.resolution.forms import NormalTable
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.normal_forms import normalize
from factorwise.apps.resolution.unsupervised import fit_mixture, model_of
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.inference.mcmc.linkage_search import LinkSearch
from factorwise.kernels.threads import Team
from factorwise.learning.linkage import LinkLearner, LinkPass
from factorwise.learning.linkage_calibration import calibrate
from factorwise.metrics.clustering import b_cubed
from factorwise.model.linkage import LinkModel
from factorwise.types import Ints

SAMPLE = 200_000  # pairs that say where levels are cut, and what pairs without labels are like
HELD_OUT = 5  # one entity in so many is kept apart to find the temperature
FEWEST_HELD_OUT = 20  # entities; with fewer, the temperature is found on what was learned from

Tell = Callable[[str], None]


def learn(
    table: pa.Table,
    fields: Sequence[FieldSpec],
    entity: NDArray[np.int32],
    *,
    rules: Sequence[Rule] | None = None,
    learner: LinkLearner,
    search: LinkSearch,
    seed: int,
    team: Team,
    tell: Tell,
    watch: Callable[[LinkPass], None] | None = None,
) -> Knowledge:
    """Learn from records whose entities are known: numbers from 0 on, -1 for records of unknown ones."""
    begun = time.monotonic()
    if int((np.bincount(entity[entity >= 0]) > 1).sum()) == 0:
        raise InvalidArgumentError(
            "no two labelled records are of one entity: there is nothing to learn from. Check the column of"
            " entities, or resolve without a model."
        )
    normal = normalize(table, fields)
    chosen = list(rules) if rules is not None else learned_rules(fields, normal, entity)
    candidates = find_candidates(normal, chosen, threads=team.threads)
    tell(f"{len(candidates.first):,} candidate pairs by {len(chosen)} rules")
    if not len(candidates.first):
        raise InvalidArgumentError("no two records have anything in common that the blocking rules look at.")
    comparisons = planned(normal, *sampled(candidates, seed))
    levels = Comparer(normal, comparisons).all_levels(candidates.first, candidates.second, team)
    tell(f"{len(comparisons)} comparisons of each pair")
    blank = LinkModel.blank([one.cuts.size for one in comparisons])
    kept_apart = held_out(entity, seed)
    first, second = candidates.first, candidates.second
    part = _part(first, second, levels, entity, ~kept_apart)
    model = learner.fit(part.graph, part.levels, part.entity, blank, seed=seed, callback=watch)
    training: dict[str, Any] = {"labelled": int((entity >= 0).sum()), "records": len(entity)}
    part = _part(first, second, levels, entity, kept_apart & (entity >= 0))
    if kept_apart.any():
        training["held_out"] = int(kept_apart.sum())
    walk = LinkWalk(part.graph, model.link_scores(part.levels), apart=model.apart, cluster=model.cluster)
    search.run(walk, seed=seed, team=team)
    training["b_cubed"] = b_cubed(part.entity, walk.labels).f1
    temperature = calibrate(walk, part.entity, seed=seed, team=team).temperature
    if kept_apart.any():
        part = _part(first, second, levels, entity, np.ones(len(entity), bool))
        model = learner.fit(part.graph, part.levels, part.entity, blank, seed=seed, callback=watch)
    training["seconds"] = round(time.monotonic() - begun, 2)
    return Knowledge(tuple(fields), tuple(chosen), tuple(comparisons), model, temperature, training)


def learn_without_labels(
    table: pa.Table,
    fields: Sequence[FieldSpec],
    *,
    rules: Sequence[Rule] | None = None,
    seed: int,
    team: Team,
    tell: Tell,
) -> Knowledge:
    """Find weights from what candidates look like, without any labels."""
    begun = time.monotonic()
    normal = normalize(table, fields)
    chosen = list(rules) if rules is not None else default_rules(fields, normal)
    candidates = find_candidates(normal, chosen, threads=team.threads)
    tell(f"{len(candidates.first):,} candidate pairs by {len(chosen)} rules")
    first, second = sampled(candidates, seed)
    comparisons = planned(normal, first, second) if len(first) else []
    comparer = Comparer(normal, comparisons)
    random = _random_pairs(normal.n_rows, seed)
    mixture = fit_mixture(
        comparer.all_levels(first, second, team), comparer.all_levels(*random, team), comparisons
    )
    training = {"labelled": 0, "records": normal.n_rows, "share": mixture.share, "rounds": mixture.rounds}
    training["seconds"] = round(time.monotonic() - begun, 2)
    return Knowledge(
        tuple(fields), tuple(chosen), tuple(comparisons), model_of(mixture, comparisons), 1.0, training
    )


def sampled(candidates: Candidates, seed: int) -> tuple[Ints, Ints]:
    """Return some of the candidate pairs, chosen at random if there are very many."""
    count = len(candidates.first)
    if count <= SAMPLE:
        return candidates.first, candidates.second
    rows = np.sort(np.random.default_rng([seed, 1]).choice(count, SAMPLE, replace=False))
    return candidates.first[rows], candidates.second[rows]


def held_out(entity: Ints, seed: int) -> NDArray[np.bool_]:
    """Return which records belong to the entities that are kept apart; none if there are few entities."""
    count = int(entity.max(initial=-1)) + 1
    if count < HELD_OUT * FEWEST_HELD_OUT:
        return np.zeros(len(entity), bool)
    apart = np.random.default_rng([seed, 2]).permutation(count) % HELD_OUT == 0
    return np.asarray((entity >= 0) & apart[np.maximum(entity, 0)])


class _Part:
    """The links among some of the records, which are numbered anew."""

    def __init__(self, graph: LinkGraph, levels: NDArray[np.uint8], entity: NDArray[np.int32]) -> None:
        self.graph, self.levels, self.entity = graph, levels, entity


def _part(
    first: Ints, second: Ints, levels: NDArray[np.uint8], entity: NDArray[np.int32], chosen: NDArray[np.bool_]
) -> _Part:
    if not chosen.any():
        chosen = np.ones(len(entity), bool)
    number = np.cumsum(chosen) - 1
    inside = chosen[first] & chosen[second]
    graph = LinkGraph.from_pairs(int(chosen.sum()), number[first[inside]], number[second[inside]])
    known = entity[chosen]
    dense = np.full(len(known), -1, np.int32)
    dense[known >= 0] = np.unique(known[known >= 0], return_inverse=True)[1]
    return _Part(graph, levels[inside], dense)


def _random_pairs(n: int, seed: int) -> tuple[Ints, Ints]:
    if n < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    draws = np.random.default_rng([seed, 3])
    first = draws.integers(0, n, SAMPLE)
    second = (first + draws.integers(1, n, SAMPLE)) % n
    return first, second
