"""Distributed coreference: an executor searches shards of mentions, in threads or on a cluster.

An entity is always in one shard. A mention can be moved to entities of mentions that share words with it or
are near it in the text, and entities with such mentions are put into the same shard.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.coreference.resolution import COLD, HOT, typical_gain
from factorwise.distributed.executors import Executor
from factorwise.distributed.search import Sharding, ShardKeeping, entities_of, search_shards
from factorwise.distributed.shard_models import shard_model
from factorwise.distributed.shard_rows import shard_walk
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk, walk_along
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition

#: A pair of mentions with one of these features is linked: each can be moved to the entity of the other.
FOLLOWED = (
    "names: same text",
    "names: one holds the other",
    "names: same last word",
    "names: share a word",
    "names: acronym",
    "nominals: same text",
    "nominals: same head",
    "nominals: singular and plural of one word",
    "nominals: another head, share a word",
    "name and nominal: same head",
    "name and nominal: share a word",
    "times: same head",
    "times: another head, share a word",
    "antecedent 1",
    "antecedent 2",
    "same pronoun 1",
    "no pronoun 1",
    "pronoun and its last name",
    "apposition with a name",
    "apposition without a name",
    "copula",
    "documents alike, same lemma",
    "documents unlike, same lemma",
    "sentences much alike, same lemma",
    "sentences a little alike, same lemma",
)


def link_mentions(table: PairTable) -> LinkGraph:
    """Return the graph of pairs of mentions that have any of the features in ``FOLLOWED``."""
    columns = [number for number, name in enumerate(table.names) if name in FOLLOWED]
    first, second = np.tril_indices(table.n_items, -1)
    linked = table.values[:, columns].any(axis=1)
    return LinkGraph.from_pairs(table.n_items, second[linked], first[linked])


def walk_mentions(model: Model) -> ShardedWalk:
    """Return a walk over clusterings of the mentions under a model, which starts with singleton clusters."""
    for template in model.templates:
        if isinstance(template, PairTableTemplate):
            return walk_along(link_mentions(template.table), model)
    raise InvalidArgumentError("the model has no table of pairs: give what discourse_model returns.")


def search_in_shards(
    model: Model,
    executor: Executor,
    sharding: Sharding,
    *,
    rounds: int = 12,
    seed: int = 0,
    keeping: ShardKeeping | None = None,
) -> NDArray[np.int64]:
    """Return the best clustering found by rounds of search over shards, numbered in the order of the text.

    model
        The weighted model of a discourse: see `factorwise.apps.coreference.resolution.discourse_model`.
    keeping
        Where checkpoints are saved; an interrupted search resumes from the last checkpoint.
    """
    walk = walk_mentions(model)
    scale = typical_gain(model, Partition.singletons(walk.n_items), Stream(seed))
    search_shards(
        executor,
        shard_walk(walk, sharding.shards, seed),
        LinkSearch(rounds=rounds, hot=HOT * scale, cold=COLD * scale),
        sharding,
        model=shard_model(walk),
        seed=seed,
        keeping=keeping,
    )
    return Partition.from_keys(entities_of(executor, walk.n_items)).dense_labels()
