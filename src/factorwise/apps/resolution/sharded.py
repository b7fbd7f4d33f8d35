"""Resolving over shards: the search of linked records by an executor, in threads or on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np

from factorwise.apps.resolution.linking import Linked
from factorwise.apps.resolution.resolving import fingerprint
from factorwise.distributed.executors import Executor
from factorwise.distributed.search import Sharding, ShardKeeping, entities_of, search_shards
from factorwise.distributed.shard_models import shard_model
from factorwise.distributed.shard_rows import shard_walk
from factorwise.inference.mcmc.shards.open_questions import open_questions
from factorwise.inference.mcmc.shards.search import Found, LinkSearch, Progress
from factorwise.io.shard_files import ShardStore


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """Who runs the shards, and how many there are.

    executor
        `LocalExecutor`, or `factorwise.distributed.ray_executor.RayExecutor`.
    sharding
        A part of the configuration: other numbers of shards give other entities, other executors do not.
    every
        Rounds between checkpoints, if there are any.
    """

    executor: Executor
    sharding: Sharding
    every: int = 4


def searched_in_shards(
    linked: Linked,
    search: LinkSearch,
    shards: Shards,
    *,
    seed: int,
    checkpoint: str | PathLike[str] | None = None,
    run: str = "",
    watch: Callable[[Progress], None] | None = None,
) -> Found:
    """Search for the entities by rounds over shards, and bring the walk to what was found.

    checkpoint
        A folder, or an address that Arrow or fsspec knows, which every worker can reach.
    run
        What `factorwise.apps.resolution.resolving.run_mark` says of it.
    """
    sharding, questions = shards.sharding, open_questions(linked.walk)
    if questions is not None and len(questions.items) < sharding.shards:
        questions = None  # too few to share out
    walk = linked.walk if questions is None or questions.walk is None else questions.walk
    keeping = None
    if checkpoint is not None:
        mark = f"{run}{fingerprint(linked, search, seed)} {sharding.shards} {sharding.exchange}"
        keeping = ShardKeeping(ShardStore(fspath(checkpoint)), mark, shards.every)
    found = search_shards(
        shards.executor,
        shard_walk(walk, sharding.shards, seed),
        search,
        sharding,
        model=shard_model(walk),
        seed=seed,
        keeping=keeping,
        watch=watch if questions is None or watch is None else questions.counted_in(watch),
    )
    walk.place_items(np.asarray(entities_of(shards.executor, walk.n_items), np.int64))
    if questions is None:
        return found
    linked.walk.place_items(questions.all_labels())
    return found._replace(score=found.score + questions.score)
