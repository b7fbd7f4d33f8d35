"""Weights learned in shards and mixed: in a pass each shard walks from the same weights, then all average.

A shard's walk is a function of its lesson, the weights and (seed, pass, shard), and averages are taken in the
order of the shards: weights are the same wherever the shards were. The walks are those of
`factorwise.learning.linkage`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.distributed.executors import Executor
from factorwise.errors import InvalidArgumentError, require
from factorwise.inference.mcmc.linkage import LinkGraph
from factorwise.inference.mcmc.linkage_search import parts
from factorwise.learning.linkage import LinkLearner, LinkPass
from factorwise.model.linkage import LinkModel
from factorwise.rng import Stream, split_mix_words
from factorwise.types import Ints


class ShardLesson(NamedTuple):
    """Linked items of a shard with what their pairs look like and which entities they are.

    levels : uint8[pairs, comparisons], truth : int32[items]
        As `LinkLearner.fit` takes them.
    """

    graph: LinkGraph
    levels: NDArray[np.uint8]
    truth: NDArray[np.int32]


def split_lessons(
    graph: LinkGraph, levels: NDArray[np.uint8], truth: Ints, shards: int, seed: int = 0
) -> list[ShardLesson]:
    """Cut a lesson into shards, along the parts of its graph; shards without a known entity are left out.

    Items of an entity go to the same shard, and so do those of a part of the graph unless it is larger than a
    shard should be: then its entities are spread. Links between shards are left out.
    """
    require(shards >= 1, "shards", shards, "at least 1")
    n = graph.n_items
    entity = np.asarray(truth, np.int32)
    known = entity >= 0
    part = parts(n, graph.first, graph.second, np.ones(len(graph.first), np.float32))
    fits = np.bincount(part, minlength=n)[part] * shards <= n
    home = np.where(fits, part, n + np.arange(n))
    of_entity = np.full(entity.max(initial=0) + 1, 2 * n)
    np.minimum.at(of_entity, entity[known], home[known])
    home[known] = of_entity[entity[known]]
    place = (split_mix_words(home.astype(np.uint64) ^ np.uint64(seed % 2**64)) % np.uint64(shards)).astype(
        np.int64
    )
    lessons = []
    for shard in range(shards):
        mine = np.flatnonzero(place == shard)
        if not known[mine].any():
            continue
        number = np.full(n, -1, np.int32)
        number[mine] = np.arange(len(mine))
        inside = (number[graph.first] >= 0) & (number[graph.second] >= 0)
        own = LinkGraph.from_pairs(len(mine), number[graph.first[inside]], number[graph.second[inside]])
        lessons.append(ShardLesson(own, levels[inside], _renumbered(entity[mine])))
    return lessons


def _renumbered(entity: NDArray[np.int32]) -> NDArray[np.int32]:
    found = entity.copy()
    known = entity >= 0
    found[known] = np.unique(entity[known], return_inverse=True)[1]
    return found


def mix_weights(
    executor: Executor,
    lessons: Sequence[ShardLesson],
    learner: LinkLearner,
    model: LinkModel,
    *,
    seed: int = 0,
    callback: Callable[[LinkPass], None] | None = None,
) -> LinkModel:
    """Return a model with the mixed weights after all passes of the learner, from those of ``model``.

    callback
        Called after each pass with the totals of the shards; its value is their mean by items.
    """
    if not lessons:
        raise InvalidArgumentError("nothing can be learned: no shard has an item whose entity is known.")
    shared = [executor.share(lesson) for lesson in lessons]
    items = np.array([lesson.graph.n_items for lesson in lessons], np.float64)
    share = items / items.sum()
    for number in range(learner.passes):
        work = [(learner, lesson, model, number, seed, shard) for shard, lesson in enumerate(shared)]
        found = executor.map(walk_lesson, work)
        model = LinkModel(
            model.sizes, np.sum([s * m.weights for s, (m, _) in zip(share, found, strict=True)], 0)
        )
        if callback is not None:
            callback(_total([one for _, one in found], share.tolist()))
    return model


@dataclass(frozen=True, slots=True, eq=False)
class Mixer:
    """Learns like a `LinkLearner`, in shards that an executor runs."""

    executor: Executor
    shards: int

    def fit(
        self,
        learner: LinkLearner,
        lesson: ShardLesson,
        model: LinkModel,
        *,
        seed: int = 0,
        callback: Callable[[LinkPass], None] | None = None,
    ) -> LinkModel:
        """Cut the lesson into shards, and mix what they learn."""
        lessons = split_lessons(*lesson, self.shards, seed)
        return mix_weights(self.executor, lessons, learner, model, seed=seed, callback=callback)


def walk_lesson(
    learner: LinkLearner, lesson: ShardLesson, model: LinkModel, number: int, seed: int, shard: int
) -> tuple[LinkModel, LinkPass]:
    """Walk over one shard's lesson once; return the mean of the weights on the way, and how it went."""
    told: list[LinkPass] = []
    own_seed = int(Stream(seed, 0x3157, number, shard).state[0])
    once = replace(learner, passes=1)
    learned = once.fit(*lesson, model, seed=own_seed, first=number, callback=told.append)
    return learned, told[0]


def _total(passes: Sequence[LinkPass], share: Sequence[float]) -> LinkPass:
    steps = sum(one.steps for one in passes)
    return LinkPass(
        number=passes[0].number,
        steps=steps,
        updates=sum(one.updates for one in passes),
        misranked=sum(one.misranked for one in passes),
        accepted=sum(one.accepted * one.steps for one in passes) / steps,
        value=sum(one.value * part for one, part in zip(passes, share, strict=True)),
        start=passes[0].start,
    )
