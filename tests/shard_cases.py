"""Problems for searches over shards, and steps that go wrong; workers of a cluster import them by name."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chain_cases import Problem, problem
from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.distributed import (
    LinkWeights,
    LocalExecutor,
    Sharding,
    ShardModel,
    search_shards,
    shard_model,
    shard_walk,
    split_items,
    step_shard,
)
from factorwise.distributed.search import entities_of
from factorwise.distributed.shard_rows import Checksum, ShardRows
from factorwise.distributed.stepping import ShardStep
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.variables.sparse_rows import SparseRows

SHORT = LinkSearch(rounds=4, sweeps=1, extra=2)
STEP = ShardStep(
    seed=3,
    round=0,
    shard=0,
    shards=4,
    temperature=0.5,
    sweeps=2,
    jumps=0.2,
    exchange="guided",
)
MODEL = ShardModel(LinkWeights(-0.25, 0.125))


class Planted(NamedTuple):
    """Linked items whose entities are known."""

    graph: LinkGraph
    scores: np.ndarray
    truth: np.ndarray
    unlinked: float = -0.25
    cluster: float = 0.125

    def walk(self):
        return LinkWalk(self.graph, self.scores, unlinked=self.unlinked, cluster=self.cluster)

    def shards(self, count, seed=1):
        return shard_walk(self.walk(), count, seed)

    def search(self, executor, shards, *, search=SHORT, exchange="guided", seed=1, **more):
        """Search from every item by itself; ``shards`` may be None to resume a run of ``more``'s keeping."""
        count = more.pop("count", shards)
        return search_shards(
            executor,
            None if shards is None else self.shards(shards),
            search,
            Sharding(count, exchange),
            model=shard_model(self.walk()),
            seed=seed,
            **more,
        )


def planted(n=600, seed=0, size=4, others=6):
    """Entities of about ``size`` items; pairs of one are mostly liked, and pairs of neighbours mostly not."""
    rng = np.random.default_rng(seed)
    truth = np.sort(rng.integers(0, max(1, n // size), n))
    pairs = {(i, j) for i in range(n) for j in range(max(0, i - size), i) if truth[i] == truth[j]}
    ends = np.arange(n).repeat(others), np.arange(n).repeat(others) + rng.integers(-25, 26, n * others)
    pairs |= {(max(i, j), min(i, j)) for i, j in zip(*ends, strict=True) if i != j and 0 <= j < n}
    first, second = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    shuffled = rng.permutation(n)  # or neighbours in number would be neighbours in links
    same = truth[first] == truth[second]
    scores = np.where(same, rng.normal(1.0, 1.5, len(same)), rng.normal(-1.0, 1.5, len(same)))
    entity = np.empty(n, np.int64)
    entity[shuffled] = truth
    graph = LinkGraph.from_pairs(n, shuffled[first], shuffled[second])
    return Planted(graph, scores.astype(np.float32), entity)


def rows_of(items, links=(), entity=None, counts=None, sources=None):
    """Rows of some items; links are (item, item, score), those to items elsewhere stand in one row only."""
    items = np.array(sorted(items), np.int64)
    of_item = {int(item): [] for item in items}
    for one, two, score in links:
        for mine, other in ((one, two), (two, one)):
            if mine in of_item:
                of_item[mine].append((other, score))
    flat = [link for item in items.tolist() for link in of_item[item]]
    return ShardRows(
        items,
        items.copy() if entity is None else np.array(entity, np.int64),
        np.ones(len(items), np.int32) if counts is None else np.array(counts, np.int32),
        np.zeros(len(items), np.uint64) if sources is None else np.array(sources, np.uint64),
        np.cumsum([0, *(len(of_item[item]) for item in items.tolist())], dtype=np.int64),
        np.array([other for other, _ in flat], np.int64),
        np.array([score for _, score in flat], np.float32),
    )


def same_rows(one, two):
    """Whether two shards hold the same bits."""
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes() and a.shape == b.shape
        for a, b in zip(one, two, strict=True)
    )


def digest(executor, n_items):
    """A digest of the entities that an executor holds; complains unless every item is there once."""
    return hashlib.sha256(entities_of(executor, n_items).tobytes()).hexdigest()


def local_digest(given, shards, **more):
    """What a search in one thread finds: the digest and the score."""
    executor = LocalExecutor(1)
    found = given.search(executor, shards, **more)
    return digest(executor, given.graph.n_items), found


class Watched:
    """A step of which every attempt leaves a file, and one of which waits to be killed.

    folder
        Where the files go: their names say which run it was, in which process, and on which node.
    waiting
        The round of which one run waits, in its first attempt; None for no wait.
    spare
        A node on which no run waits.
    step
        What is done then.
    """

    def __init__(self, folder, waiting=None, *, spare="", step=step_shard):
        self.folder, self.waiting, self.spare, self.step = Path(folder), waiting, spare, step

    def __call__(self, parts, given, model):
        run = Attempt(given.round, given.shard, os.getpid(), _node())
        (self.folder / f"attempt-{time.time_ns()}-{'-'.join(map(str, run))}").touch()
        if self.waiting is not None and run.round in (self.waiting - 1, self.waiting):
            time.sleep(0.4)  # so that all nodes take part, and hold rows, before one of them is lost
        if run.round == self.waiting and run.node != self.spare:
            try:
                (self.folder / "waiting").open("x").close()
            except FileExistsError:
                return self.step(parts, given, model)
            partial = self.folder / "victim.part"
            partial.write_text("-".join(map(str, run)))
            partial.rename(self.folder / "victim")
            time.sleep(60.0)
        return self.step(parts, given, model)


class Attempt(NamedTuple):
    """A run of a shard in a round, the process that attempted it, and its node."""

    round: int
    shard: int
    pid: int
    node: str

    @classmethod
    def parsed(cls, text):
        round_, shard, pid, node = text.split("-")
        return cls(int(round_), int(shard), int(pid), node)


def _node():
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else "here"


def attempts(folder):
    """All attempts so far, in order."""
    names = sorted(path.name for path in Path(folder).glob("attempt-*"))
    return [Attempt.parsed(name.split("-", 2)[2]) for name in names]


def victim(folder, seconds=60.0):
    """Wait for a run that waits to be killed, and return it."""
    end = time.monotonic() + seconds
    while not (Path(folder) / "victim").exists():
        if time.monotonic() > end:
            raise TimeoutError("no run of a shard came to wait")
        time.sleep(0.02)
    return Attempt.parsed((Path(folder) / "victim").read_text())


def scattered(parts, step, model):
    """A step that is no function of its arguments: entities go to places that no seed decides."""
    sent, report = step_shard(parts, step, model)
    rows = ShardRows.joined(sent)
    entities, member = np.unique(rows.entity, return_inverse=True)
    place = np.frombuffer(os.urandom(len(entities)), np.uint8)[member] % step.shards
    return [rows.taken(np.flatnonzero(place == shard)) for shard in range(step.shards)], report


def losing(parts, step, model):
    """A step that drops an item in its second round."""
    sent, report = step_shard(parts, step, model)
    if step.round == 1 and step.shard == 0:
        largest = max(range(step.shards), key=lambda shard: sent[shard].n_items)
        sent[largest] = sent[largest].taken(np.arange(1, sent[largest].n_items))
    return sent, report._replace(checksum=checksum_of(sent))


def doubling(parts, step, model):
    """A step that sends an item to two shards in its second round, and one item fewer than it should."""
    sent, report = step_shard(parts, step, model)
    if step.round == 1 and step.shard == 0:
        large, other = sorted(range(step.shards), key=lambda shard: -sent[shard].n_items)[:2]
        twin = sent[large].taken(np.array([0]))
        sent[other] = ShardRows.joined([sent[other].taken(np.arange(1, sent[other].n_items)), twin])
    return sent, report._replace(checksum=checksum_of(sent))


def checksum_of(shards):
    return sum((rows.checksum for rows in shards), Checksum(0, 0))


SIZES = (3, 2)  # levels of the two comparisons of `training_data`


def training_data(seed, n=400):
    """Items in blocks of 16 with three entities each; the first comparison tells them apart, mostly.

    Graph, levels and entities as a learner takes them; level 1 speaks for one entity, level 3 against.
    """
    rng = np.random.default_rng(seed)
    entity = np.arange(n) // 16 * 3 + rng.integers(0, 3, n)
    entity = np.unique(entity, return_inverse=True)[1]
    pairs = [(i, j) for i in range(n) for j in range(i // 16 * 16, i) if rng.random() < 0.8]
    first, second = np.array(pairs, np.int32).T.copy()
    same = entity[first] == entity[second]
    chances = [[0.1, 0.74, 0.11, 0.05], [0.1, 0.05, 0.11, 0.74]]
    telling = np.where(same, *(rng.choice(4, len(same), p=row) for row in chances))
    levels = np.stack([telling, rng.integers(0, 3, len(same))], axis=1).astype(np.uint8)
    return LinkGraph.from_pairs(n, first, second), levels, entity.astype(np.int32)


def training_shards(task, shards, training, seed=0):
    """The shards of training data, as `mix_weights` takes them."""
    whole = TrainingData(*training_data(task))
    parts = split_items(whole.graph, whole.entity, shards, seed)
    return [training.shard(whole.part(items), SIZES) for items in parts]


def sentences_in_parts(kind, seed, count):
    """A small chain CRF, whole and with its sentences cut into ``count`` parts."""
    whole = problem(kind, seed, lengths=(3, 1, 2, 4, 2, 3, 1, 2, 3))
    n = len(whole.start) - 1
    edges = np.linspace(0, n, count + 1).astype(int)
    return whole, [_sentences(whole, a, b) for a, b in pairwise(edges.tolist())]


def _sentences(whole, first, last):
    begin, end = (int(whole.start[edge]) for edge in (first, last))
    rows, known = whole.rows, whole.supervision
    low, high = (int(rows.indptr[edge]) for edge in (begin, end))
    own = SparseRows(
        rows.indptr[begin : end + 1] - low,
        rows.indices[low:high],
        None if rows.values is None else rows.values[low:high],
        rows.width,
    )
    supervision = replace(
        known,
        truth=known.truth[begin:end],
        allowed_row=known.allowed_row[begin:end],
        emphasis=known.emphasis[first:last],
    )
    start = whole.start[first : last + 1] - begin
    return Problem(own, start, supervision, whole.features, whole.structure, whole.slot)


def likelihood_of(part, weights):
    """Loss and gradient of some sentences, laid out afresh: nothing is kept between calls."""
    value, gradient = part.likelihood()(np.array(weights))
    return value, gradient.copy()
