"""Learn weights in shards, which in each pass start from the same weights, and average the results.

A shard's walk is a function of its worlds, the weights and (seed, pass, shard), and averages are computed in
the order of the shards, so the weights do not depend on where the shards ran.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from factorwise.distributed.executors import Executor
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.search import parts
from factorwise.learning.samplerank.learner import PassRecord, SampleRank
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.rng import Stream, split_mix_words
from factorwise.types import Float64s, Int64s, Ints
from factorwise.validation import check_count
from factorwise.world.links import LinkGraph


class TrainingShard(NamedTuple):
    """What one shard learns from, and how.

    worlds
        Training worlds over clusterings; each pass walks over all of them.
    learner, steps
        The learner, and the length of each of its walks. Shards are weighted by their steps.
    """

    worlds: Sequence[TrainingWorld]
    learner: SampleRank
    steps: int


def split_items(graph: LinkGraph, truth: Ints, shards: int, seed: int = 0) -> list[Int64s]:
    """Cut linked items into shards, along the parts of their graph; return the items of each.

    Items of an entity go to the same shard, and so do those of a part of the graph, unless it is larger than
    a shard should be: then its entities are spread. Shards without a known entity are left out.

    truth
        The entity of each item, a number from 0 on; -1 if it is unknown.
    """
    check_count("shards", shards)
    n = graph.n_items
    entity = np.asarray(truth, np.int32)
    known = entity >= 0
    part = parts(n, graph.first, graph.second, np.ones(len(graph.first), np.float32))
    fits = np.bincount(part, minlength=n)[part] * shards <= n
    home = np.where(fits, part, n + np.arange(n))
    of_entity = np.full(entity.max(initial=0) + 1, 2 * n)
    np.minimum.at(of_entity, entity[known], home[known])
    home[known] = of_entity[entity[known]]
    shard = split_mix_words(home.astype(np.uint64) ^ np.uint64(seed % 2**64)) % np.uint64(shards)
    each = (np.flatnonzero(shard == number) for number in range(shards))
    return [items for items in each if known[items].any()]


def mix_weights(
    executor: Executor,
    shards: Sequence[TrainingShard],
    weights: Float64s,
    *,
    passes: int,
    seed: int = 0,
    on_pass: Callable[[PassRecord], None] | None = None,
) -> Float64s:
    """Return the mixed weights after all passes, starting from the given ones.

    on_pass
        Called after each pass with the totals of the shards; its value is their mean.
    """
    if not shards:
        raise InvalidArgumentError("nothing can be learned: no shard has an item whose entity is known.")
    shared = [executor.share(shard) for shard in shards]
    steps = np.array([shard.steps for shard in shards], np.float64)
    share = steps / steps.sum()
    for number in range(1, passes + 1):
        walked = executor.map(
            walk_shard,
            [(shard, weights, number, seed, shard_number) for shard_number, shard in enumerate(shared)],
        )
        weights = np.sum([part * mean for part, (mean, _) in zip(share, walked, strict=True)], axis=0)
        if on_pass is not None:
            on_pass(_total(number, [record for _, record in walked], share))
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class Mixer:
    """An executor, and the number of shards that it learns in."""

    executor: Executor
    shards: int


def walk_shard(
    shard: TrainingShard, weights: Float64s, number: int, seed: int, place: int
) -> tuple[Float64s, PassRecord]:
    """Walk over one shard's worlds once; return the mean weights and a record of the walk."""
    own_seed = int(Stream(seed, 0x3157, number, place).state[0])
    learned = shard.learner.fit(
        shard.worlds, passes=1, steps=shard.steps, seed=own_seed, weights=weights, progress=False
    )
    if learned.interrupted:
        raise KeyboardInterrupt
    return learned.weights, learned.history[0]


def _total(number: int, records: Sequence[PassRecord], share: Float64s) -> PassRecord:
    steps = sum(record.steps for record in records)
    return PassRecord(
        number=number,
        steps=steps,
        updates=sum(record.updates for record in records),
        misranked=sum(record.misranked for record in records),
        accepted=sum(record.accepted * record.steps for record in records) / steps,
        value=float(share @ [record.value for record in records]),
    )
