"""The initial model of a store: weights of comparison levels, which can be learned further from answers.

A model fitted without labels (see `factorwise.apps.resolution.unlabelled`) scores pairs by the whole table
and has no weights that answers could change. So weights are trained on its confident pairs as if these were
labelled; for uncertain pairs, the weights then generalise from the confident ones. If there are too few
confident pairs, weights are estimated with a mixture instead.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.comparisons import Comparer, planned
from factorwise.apps.resolution.comparisons.measures import FALLING
from factorwise.apps.resolution.comparisons.overlaps import LEADS
from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.knowledge import Knowledge, unlinked_pair_weight
from factorwise.apps.resolution.labelled import LabelledPairs
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.training.boosted_tables import boost_tables
from factorwise.apps.resolution.training.examples import PairExamples, TrainingData
from factorwise.apps.resolution.training.fitting import sampled
from factorwise.apps.resolution.training.pair_regression import regress_levels
from factorwise.apps.resolution.unlabelled.sources import number_sources
from factorwise.kernels.clusterings.links import UNLINKED_WEIGHT
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.world.links import LinkGraph

SURE = 3.0  # absolute log odds of a confident pair
FEWEST = 20  # confident pairs of either class that are needed


def learn_pair_weights(table: pa.Table, resolver: EntityResolver, *, seed: int, team: Team) -> Knowledge:
    """Return a model with weights of comparison levels that approximates a model fitted without labels.

    resolver
        A resolver that was fitted to the table without labels.
    """
    knowledge = resolver.knowledge_
    model = knowledge.unlabelled
    assert model is not None
    labels = resolver.resolve(table).labels
    normal = normalize(table, knowledge.fields)
    candidates = knowledge.candidates(normal, threads=team.threads)
    comparisons = [
        one
        for one in planned(normal, *sampled(candidates, seed), candidates, labels=True)
        if one.measure not in LEADS  # leads change when records are added
    ]
    levels = Comparer(normal, comparisons, candidates).all_levels(candidates.first, candidates.second, team)
    graph = LinkGraph.from_pairs(normal.n_rows, candidates.first, candidates.second)
    data = TrainingData(graph, levels, labels)
    pairs, same, share = data.known_pairs(np.ones(normal.n_rows, np.bool_))
    sources = None if model.source is None else number_sources(table, model.source)
    odds = model.prepare(normal, sources).log_odds(graph.first[pairs], graph.second[pairs])
    sure = np.abs(odds) >= SURE
    if model.is_safe or min(np.count_nonzero(same[sure]), np.count_nonzero(~same[sure])) < FEWEST:
        resolver = EntityResolver(fields=list(knowledge.fields), n_jobs=team.threads, random_state=seed)
        return resolver.fit(table, pairs=LabelledPairs.none()).knowledge_
    examples = PairExamples(levels[pairs[sure]], same[sure], share[sure])
    sizes = tuple(one.cuts.size for one in comparisons)
    directions = tuple(-1 if one.measure in FALLING else 1 for one in comparisons)
    by_levels = regress_levels(examples, LevelWeights.zeros(sizes), seed=seed)
    by_tables = boost_tables(examples, sizes, directions, seed=seed)
    values = 0.5 * (by_levels.values + by_tables.values)
    values[UNLINKED_WEIGHT] = unlinked_pair_weight(data.linked_share())
    weights = LevelWeights(sizes, values)
    used = weights.used()
    return replace(
        knowledge,
        comparisons=tuple(comparisons[k] for k in used),
        weights=weights.only(used),
        training={**knowledge.training, "linked_share": data.linked_share()},
        unlabelled=None,
    )
