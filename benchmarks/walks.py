"""Walks of two source trees side by side: Metropolis-Hastings, Gibbs, SampleRank, jumps and links.

    .venv/bin/python benchmarks/walks.py --old ../before --new . --rounds 5
    .venv/bin/python benchmarks/walks.py --old ../before --new . --only links,opaque
    make bench ARGS="walks --quick"

A tree is a checkout: its ``src`` is measured, on inputs that its own ``benchmarks`` generate. Each workload
has one process per tree; both stay alive and take turns, round by round, one thread each. Figures are of the
round with the least CPU time; CPU and wall are the new tree's time divided by the old one's. "result" is what
the walk came to (changes, a score, updates a step): "same" if it agrees in every round, so that no tree is
fast because it does less; and a factor is what the old tree counts as one. Compiling and setting up are not
timed. Compiled code is kept between runs, in a folder per state of the sources: numba does not notice an edit
of a kernel that another file calls.

Records of historical_50k are looked for in FACTORWISE_DATA; their candidate pairs are found and scored once,
by the first tree, for both. Without ``--old``, one tree is measured against the bars alone.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from clustering import (
    AUTHOR_MODELS,
    Mentions,
    author_kernel,
    mentions,
    merges_and_splits,
    points,
    relocations,
)
from peers import ONE_THREAD
from scipy.sparse import csr_array
from timing import Timed, smallest, table, verdict

from factorwise import (
    Assignment,
    Column,
    Domain,
    EntityResolver,
    Features,
    Fields,
    Model,
    Partition,
    Variables,
    learning,
    mcmc,
    templates,
)
from factorwise.errors import MissingDataError
from factorwise.rng import Stream

HERE = Path(__file__).parent
SEED = 0
TOLERANCE = 1e-6  # of results, relative
MORE, SHORT = 4, 8.0  # short rounds are noisy: up to so many times more of them, within so many seconds
F = TypeVar("F")


class Scale(NamedTuple):
    """How much is run; ``share`` is the part of the large inputs that is used, one in so many."""

    rounds: int
    steps: int
    mentions: int
    items: int
    share: int
    seconds: float


FULL = Scale(rounds=5, steps=1_000_000, mentions=1_000_000, items=10_000, share=1, seconds=2.0)
QUICK = Scale(rounds=1, steps=20_000, mentions=20_000, items=1_000, share=20, seconds=0.1)


class Done(NamedTuple):
    """What a round did.

    steps
        Units of work: times are compared per step.
    amount
        What the figure counts; None if this tree does not count it.
    result
        What the walk came to.
    """

    steps: float
    amount: float | None
    result: float


class Walk(NamedTuple):
    """A workload that is ready to run.

    run
        Takes one round, on the clock.
    inputs
        Hash of what it runs on, which two trees should agree on.
    reset
        Goes back to the start before each round, off the clock.
    overhead
        CPU and wall seconds of a round that are spent before its first step.
    """

    run: Callable[[], Done]
    inputs: str
    reset: Callable[[], object] = lambda: None
    overhead: tuple[float, float] = (0.0, 0.0)


class Unit(NamedTuple):
    """How a figure is given: ``scale`` times amount per CPU second, or CPU seconds per amount."""

    text: str
    scale: float
    time: bool = False

    def figure(self, amount: float, cpu: float) -> float:
        """Return the figure of a round."""
        return self.scale * (cpu / amount if self.time else amount / cpu)


FACTORS, PROPOSALS = Unit("M factors/s", 1e-6), Unit("M proposals/s", 1e-6)
STEPS, JUMPS = Unit("k steps/s", 1e-3), Unit("ms/jump", 1e3, time=True)
SWEPT, STEP_TIME = Unit("ns/item", 1e9, time=True), Unit("ns/step", 1e9, time=True)


class Workload(NamedTuple):
    """Something to measure.

    bar
        Of the figure: at least this, or at most where the figure is a time.
    most
        Largest ratio of CPU times, new to old.
    """

    title: str
    unit: Unit
    prepare: Callable[[Scale], Walk]
    bar: float | None = None
    most: float | None = None


WORKLOADS: dict[str, Workload] = {}


def workload(
    name: str, title: str, unit: Unit, *, bar: float | None = None, most: float | None = None
) -> Callable[[Callable[[Scale], Walk]], Callable[[Scale], Walk]]:
    """Register the function that prepares a workload."""

    def register(prepare: Callable[[Scale], Walk]) -> Callable[[Scale], Walk]:
        WORKLOADS[name] = Workload(title, unit, prepare, bar, most)
        return prepare

    return register


def hash_of(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:12]


# Internal calls: one adapter per tree, chosen by whether the tree still has the module that it uses.


def moved(module: str, earlier: str) -> Any:
    """Import a module by the name it has, or by the one that it has in earlier trees."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        return import_module(earlier)


find_data = moved("factorwise.datasets.local", "factorwise.io.data").find_data
read_table = moved("factorwise.io.tables.reading", "factorwise.io.tables").read_table


def adapter(module: str, old: F, new: F) -> F:
    """Choose ``old`` if this tree has ``module``, else ``new``."""
    try:
        return old if find_spec(module) is not None else new
    except ModuleNotFoundError:
        return new


def old_one_thread() -> Any:
    return import_module("factorwise.kernels.threads").Team(1)


def new_one_thread() -> Any:
    return import_module("factorwise.kernels.compile.threads").Team(1)


one_thread = adapter("factorwise.kernels.threads", old_one_thread, new_one_thread)


def old_unscored_chain(kernel: mcmc.Metropolis, world: Partition) -> Any:
    """Begin a chain whose start is not scored: in plain Python that would take an hour here."""
    return mcmc.PartitionEngine(kernel, world, score=0.0)


def new_unscored_chain(kernel: mcmc.Metropolis, world: Partition) -> Any:
    """Begin a chain that scores its start when it is asked for the score, not before."""
    return mcmc.make_engine(kernel, world, "compiled")


unscored_chain = old_unscored_chain if hasattr(mcmc, "PartitionEngine") else new_unscored_chain


class Links(NamedTuple):
    """Linked pairs of items with their levels, entities and weights.

    weights
        Of an unlinked pair, of a cluster and of a link, then of the ``sizes`` levels of each comparison.
    """

    first: np.ndarray
    second: np.ndarray
    levels: np.ndarray
    entity: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray


MODEL = "factorwise.model.linkage"


class OldLinkWalks:
    """Search, sampling and learning over links, by `LinkSearch`, `LinkWalk` and `LinkLearner`."""

    searches = "factorwise.inference.mcmc.linkage_search"

    def __init__(self, links: Links) -> None:
        walks, model = import_module("factorwise.inference.mcmc.linkage"), import_module(MODEL)
        self.links, self.team, self.begin_walk = links, one_thread(), walks.LinkWalk
        self.graph = walks.LinkGraph.from_pairs(len(links.entity), links.first, links.second)
        self.model = model.LinkModel(tuple(links.sizes.tolist()), links.weights)
        self.blank = model.LinkModel.blank(self.model.sizes)
        self.scores = self.model.link_scores(links.levels)

    def begin(self, labels: np.ndarray | None, *, strict: bool = False) -> None:
        """Stand in a clustering, with all items in one shard; None for every item by itself."""
        settings = {"apart": self.model.apart, "cluster": self.model.cluster, "labels": labels}
        self.walk = self.begin_walk(self.graph, self.scores, **settings)
        self.how = {"team": self.team, "strict": strict}

    def search(self, rounds: int, sweeps: int) -> float:
        """Search with falling temperature; return the score of the clustering."""
        searches = import_module(self.searches)
        search = searches.LinkSearch(rounds=rounds, sweeps=sweeps, extra=0)
        return float(search.run(self.walk, seed=SEED, team=self.team).score)

    def sample(self, sweeps: int, jumps: float) -> int:
        """Sweep as a sampler may, with so many splits or merges per item; return how many changes."""
        for number in range(sweeps):
            self.walk.sweep(SEED, number, 1.0, jumps=jumps, **self.how)
        return int(self.walk.changes)

    def learn(self, passes: int, each: int) -> tuple[int, float]:
        """Learn from zero, by about ``each`` steps per item and pass; return steps, and updates per step."""
        learner = import_module("factorwise.learning.linkage").LinkLearner(passes=passes, steps=each)
        made: list[Any] = []
        data = self.graph, self.links.levels, self.links.entity, self.blank
        learner.fit(*data, seed=SEED, callback=made.append)
        steps = sum(record.steps for record in made)
        return steps, sum(record.updates for record in made) / steps


class NewLinkWalks(OldLinkWalks):
    """The same by calls of the new tree, in which a walk is strict or not from its beginning."""

    searches = "factorwise.inference.mcmc.shards.search"

    def __init__(self, links: Links) -> None:
        walks = import_module("factorwise.inference.mcmc.shards.link_walk")
        weights = moved("factorwise.model.clusterings.level_weights", "factorwise.model.level_weights")
        levels = weights.LevelWeights
        self.links, self.team, self.begin_walk = links, one_thread(), walks.LinkWalk
        self.graph = walks.LinkGraph.from_pairs(len(links.entity), links.first, links.second)
        self.model = levels(tuple(links.sizes.tolist()), links.weights)
        self.blank = levels.zeros(self.model.sizes)
        self.scores = self.model.link_scores(links.levels)

    def begin(self, labels: np.ndarray | None, *, strict: bool = False) -> None:
        """Stand in a clustering, with all items in one shard; None for every item by itself."""
        settings = {"unlinked": self.model.unlinked, "cluster": self.model.cluster, "labels": labels}
        self.walk = self.begin_walk(self.graph, self.scores, strict=strict, **settings)
        self.how = {"team": self.team}

    def learn(self, passes: int, each: int) -> tuple[int, float]:
        """Learn from zero, by about ``each`` steps per item and walk; return steps, and updates per step."""
        learning = import_module("factorwise.apps.resolution.training.link_learning")
        data = import_module("factorwise.apps.resolution.training.examples").TrainingData
        made: list[Any] = []
        learning.LinkTraining(passes=passes // 2, steps=each).fit(
            data(self.graph, self.links.levels, self.links.entity),
            learning.Weights(self.blank, np.zeros(0)),
            seed=SEED,
            on_pass=made.append,
        )
        steps = sum(record.steps for record in made)
        return steps, sum(record.updates for record in made) / steps


link_walks = adapter("factorwise.kernels.linkage", OldLinkWalks, NewLinkWalks)


def old_levels(known: Any, normal: Any, found: Any) -> tuple[Any, np.ndarray, tuple[int, ...]]:
    """Return what compares pairs, and the weights of the levels of each comparison."""
    comparer = import_module("factorwise.apps.resolution.comparisons").Comparer
    return comparer(normal, known.comparisons), known.model.weights, known.model.sizes


def new_levels(known: Any, normal: Any, found: Any) -> tuple[Any, np.ndarray, tuple[int, ...]]:
    """Return the same in the new tree, where some comparisons are among all candidates."""
    comparer = import_module("factorwise.apps.resolution.comparisons").Comparer
    return comparer(normal, known.comparisons, found), known.weights.values, known.weights.sizes


levels_of = adapter(MODEL, old_levels, new_levels)


def record_links(records: Any, entity: np.ndarray, resolver: EntityResolver) -> Links:
    """Find the candidate pairs of records and their levels, by what a resolver has learned."""
    known = resolver.knowledge_
    forms = moved(
        "factorwise.apps.resolution.normalize.normal_forms", "factorwise.apps.resolution.normal_forms"
    )
    normal = forms.normalize(records, known.fields)
    found = known.candidates(normal, threads=1)
    comparer, weights, sizes = levels_of(known, normal, found)
    levels = comparer.all_levels(found.first, found.second, one_thread())
    return Links(found.first, found.second, levels, entity, weights, np.array(sizes))


# Clusterings by Metropolis-Hastings and Gibbs.


def chain_walk(
    kernel: Any, labels: np.ndarray, steps: int, temperature: float = 1.0, *, count_steps: bool = False
) -> Walk:
    """Walk the same steps from the truth in every round; the figure counts factors, or steps."""
    truth = Partition.from_labels(labels)
    engine: Any = mcmc.make_engine(kernel, truth, "compiled")
    engine.advance(Stream(SEED, 1), temperature, 10)

    def reset() -> None:
        nonlocal engine
        engine = mcmc.make_engine(kernel, truth, "compiled", like=engine)
        engine.advance(Stream(SEED, 1), temperature, 0)  # what is done at the first step, such as scoring

    def run() -> Done:
        changed = engine.advance(Stream(SEED, 2), temperature, steps)
        return Done(steps, steps if count_steps else getattr(engine, "factors_seen", None), changed)

    return Walk(run, hash_of(labels, kernel.model.weights), reset)


@workload("factorie", "FACTORIE's points, clusters of 10", FACTORS, bar=150.0)
def factorie(scale: Scale) -> Walk:
    model, labels = points(10)
    return chain_walk(relocations(model), labels, scale.steps)


@workload("factorie-jumps", "the same, merge or split", FACTORS)
def factorie_jumps(scale: Scale) -> Walk:
    model, labels = points(10)
    return chain_walk(merges_and_splits(model), labels, scale.steps // 20)


@workload("cluster-gibbs", "the same, Gibbs over all clusters", FACTORS)
def cluster_gibbs(scale: Scale) -> Walk:
    model, labels = points(10)
    return chain_walk(mcmc.PartitionGibbs(model), labels, scale.steps // 20)


def compare(a: Any, b: Any) -> tuple[Any, ...]:
    return a.last == b.last, a.last != b.last, a.first * b.first > 0 and a.first != b.first


def records_walk(temperature: float, scale: Scale) -> Walk:
    """Walk with the README's pair function on integers: 1,000 items in clusters of 10."""
    rng = np.random.default_rng(SEED)
    labels = np.repeat(np.arange(100), 10)
    first, last = (1 + (labels + rng.integers(0, 50)) % 60 for _ in range(2))
    fields = Fields(first=np.where(rng.random(1_000) < 0.2, 0, first), last=last)
    names = templates.PairTemplate("names", fields, compare, ["same last", "other last", "other first"])
    model = Model([names], [1.0, -2.0, -3.0])
    return chain_walk(relocations(model), labels, 2 * scale.steps, temperature, count_steps=True)


workload("pairs", "README's pair function", STEP_TIME)(partial(records_walk, 1.0))
workload("pairs-hot", "the same at temperature 20", STEP_TIME)(partial(records_walk, 20.0))


def blocks_walk(engine: Any, data: Mentions, *, count_steps: bool = False) -> Walk:
    """Visit all blocks in turn, going on from where the last round ended; count factors, or proposals."""
    stream, steps = Stream(SEED, 3), len(data.authors)
    old = hasattr(engine, "advance_blocks")
    if old:
        engine.advance_blocks(stream, 1.0, 0, 2)
    else:
        engine.advance(stream, 1.0, 100)

    def run() -> Done:
        before = getattr(engine, "factors_seen", None)
        changed = engine.advance_blocks(stream, 1.0) if old else engine.advance(stream, 1.0, steps)
        factors = None if before is None else engine.factors_seen - before
        return Done(steps, steps if count_steps else factors, changed)

    columns = (column.values for column in data.fields.columns.values())
    return Walk(run, hash_of(data.authors, data.last_names, *columns))


@workload("opaque", "opaque pair function, block mode, a million mentions", FACTORS, bar=800.0)
def opaque(scale: Scale) -> Walk:
    data = mentions(scale.mentions)
    _, function, weights = AUTHOR_MODELS[0]
    engine = unscored_chain(author_kernel(data, function, weights), Partition.from_labels(data.authors))
    return blocks_walk(engine, data)


@workload("counted", "counted, block mode, a million mentions", PROPOSALS, bar=5.0)
def counted(scale: Scale) -> Walk:
    from factor_sampling import counted_kernel

    data = mentions(scale.mentions)
    engine = mcmc.make_engine(counted_kernel(data), Partition.from_labels(data.authors), "compiled")
    return blocks_walk(engine, data, count_steps=True)


@workload("jumps", "adaptive jump, best of 10, 1,000 mentions", JUMPS, bar=0.6)
def jumps(scale: Scale) -> Walk:
    from adaptive import CLUSTERS, ITEMS, SPLITS_AND_MERGES, engine_of, even, model_of, walk

    labels = even(ITEMS, CLUSTERS)
    model = model_of(labels)
    engine, start, steps = engine_of(model, labels, SPLITS_AND_MERGES), Partition.from_labels(labels), 200
    walk(engine, 10, 2)

    def run() -> Done:
        return Done(steps, steps, walk(engine, 10, steps))

    return Walk(run, hash_of(labels, model.weights), partial(getattr(engine, "walk", engine).reset, start))


# SampleRank.


def learning_walk(
    learner: learning.SampleRank, world: learning.TrainingWorld, steps: int, inputs: str
) -> Walk:
    """Learn from weights of zero in every round; building the walk is not counted."""

    def learn(steps: int) -> learning.Learned:
        return learner.fit([world], passes=1, steps=steps, seed=SEED, progress=False)

    def run() -> Done:
        return Done(steps, steps, learn(steps).updates / steps)

    learn(100)
    return Walk(run, inputs, overhead=smallest(partial(learn, 1), 3)[:2])


@workload("samplerank", "SampleRank, 10 pair + 10 cluster statistics, 10,000 items", STEPS, bar=500.0)
def samplerank(scale: Scale) -> Walk:
    from samplerank import functions_world, labels_of

    labels = labels_of(scale.items, 10)
    preference = learning.TruthPreference(labels, "b-cubed")
    world = replace(functions_world(scale.items), preference=preference)
    learner = learning.SampleRank(update="mira", accept="greedy")
    return learning_walk(learner, world, scale.steps, hash_of(labels))


class SkipChain(NamedTuple):
    """Sentences of 20 tokens with 9 labels, 25,000 features, transitions and skip edges: 225,162 weights."""

    model: Model
    truth: np.ndarray
    start: Assignment
    inputs: str


def skip_chain(scale: Scale) -> SkipChain:
    """Generate a chain whose features and transitions speak for the true labels; weights are log-odds."""
    rng, tokens, width, count = np.random.default_rng(SEED), 50_000 // scale.share, 25_000, 9
    begins = (rng.random(tokens) < 0.4) | (np.arange(tokens) % 20 == 0)
    truth = rng.integers(0, count, tokens)[np.cumsum(begins) - 1]
    told = rng.random((tokens, 25)) < 0.3
    feature = (width // count * rng.random((tokens, 25)) ** 3).astype(np.int64) * count
    feature += np.where(told, truth[:, None], rng.integers(0, count, (tokens, 25)))
    token, column = np.divmod(np.unique(np.arange(tokens)[:, None] * width + feature), width)
    rows = csr_array((np.ones(len(token)), (token, column)), shape=(tokens, width))
    seen = np.bincount(column * count + truth[token], minlength=width * count).reshape(width, count)
    odds = 0.3 * np.log((seen + 1.0) / (seen.mean(axis=1, keepdims=True) + 1.0))
    first = rng.integers(0, tokens - 500, tokens // 5)
    pairs = np.stack([first, first + rng.integers(2, 500, len(first))], axis=1)
    tag = Column.hidden("tag", Domain("tag", range(count)), tokens)
    model = Model(
        [
            templates.UnaryFeatures(tag, Features.from_csr(rows)),
            templates.Transitions(tag, chains=np.arange(0, tokens + 1, 20)),
            templates.SkipEdges(tag, pairs),
        ],
        np.concatenate([odds.ravel(), 0.5 * np.eye(count).ravel(), 0.1 * np.eye(count).ravel()]),
    )
    inputs = hash_of(truth, column, pairs, model.weights)
    return SkipChain(model, truth, Assignment.initial(Variables([tag])), inputs)


@workload("label-samplerank", "SampleRank over labels, 225,162 weights, skip-chain", STEPS, bar=800.0)
def label_samplerank(scale: Scale) -> Walk:
    chain = skip_chain(scale)
    world = learning.TrainingWorld(
        model=chain.model,
        proposer=mcmc.UniformRelabel(),
        start=chain.start,
        preference=learning.AccuracyPreference(chain.truth),
    )
    make = partial(learning_walk, learning.SampleRank(update="mira"), world, inputs=chain.inputs)
    walk, steps = make(1_000), 1_000
    pace = smallest(walk.run, 1).cpu - walk.overhead[0]
    while steps < scale.steps and 2 * pace < scale.seconds:  # trees differ by a factor of hundreds
        steps, pace = 2 * steps, 2 * pace
    return make(steps)


def labels_walk(kernel_of: Callable[[Model], Any], steps: int, scale: Scale) -> Walk:
    """Sample labels, going on from where the last round ended, after a burn-in of 20 sweeps."""
    chain = skip_chain(scale)
    burn_in = mcmc.make_engine(mcmc.Gibbs(chain.model, scan="systematic"), chain.start, "compiled")
    burn_in.advance(Stream(SEED, 4), 1.0, 20)
    kernel, start, stream = kernel_of(chain.model), burn_in.world, Stream(SEED, 5)
    engine = mcmc.make_engine(kernel, start, "compiled")
    engine.advance(stream, 1.0, 1)
    visits = steps * (len(start.values) if getattr(kernel, "scan", "random") == "systematic" else 1)

    def run() -> Done:
        engine.advance(stream, 1.0, steps)
        return Done(visits, visits, float(np.mean(engine.view.values == chain.truth)))

    return Walk(run, chain.inputs)


@workload("label-gibbs", "Gibbs sweeps over labels", STEP_TIME, most=1.1)
def label_gibbs(scale: Scale) -> Walk:
    return labels_walk(partial(mcmc.Gibbs, scan="systematic"), 100, scale)


@workload("label-gibbs-random", "Gibbs over labels, random scan", STEP_TIME, most=1.1)
def label_gibbs_random(scale: Scale) -> Walk:
    return labels_walk(mcmc.Gibbs, 2 * scale.steps, scale)


@workload("label-metropolis", "uniform relabelling", STEP_TIME)
def label_metropolis(scale: Scale) -> Walk:
    return labels_walk(lambda model: mcmc.Metropolis(model, mcmc.UniformRelabel()), 4 * scale.steps, scale)


# Links between records.


def historical(scale: Scale) -> Links:
    """Link the records of historical_50k, by what is learned from one entity in five; for both trees."""
    file = Path(os.environ["FACTORWISE_WALKS"]) / f"historical_{scale.share}.npz"
    if not file.exists():
        records = read_table(find_data("er/historical_50k/mentions.csv.gz"))
        _, entity = np.unique(records.column("entity").to_numpy(), return_inverse=True)
        chosen = np.flatnonzero(entity % scale.share == 0)
        records, entity = records.take(chosen), (entity[chosen] // scale.share).astype(np.int32)
        resolver = EntityResolver(random_state=SEED, n_jobs=1)
        resolver.fit(records.take(np.flatnonzero(entity % 5 == 0)), "entity", id="id")
        np.savez(file, **record_links(records, entity, resolver)._asdict())
    with np.load(file) as saved:
        return Links(**saved)


def million(scale: Scale) -> Links:
    """Link a million items in clusters of 5, twelve links each, by six comparisons of four levels."""
    rng, size, n = np.random.default_rng(SEED), 5, 1_000_000 // scale.share
    entity = np.repeat(np.arange(n // size, dtype=np.int32), size)
    high, low = (rank + size * np.arange(n // size)[:, None] for rank in np.tril_indices(size, -1))
    found = rng.random(high.size) < 0.9
    one = rng.integers(0, n, 6 * n - np.count_nonzero(found))
    two = (one + rng.integers(size, n - size, len(one))) % n
    first, second = np.append(high.ravel()[found], one), np.append(low.ravel()[found], two)
    same = entity[first] == entity[second]
    levels = rng.integers(1, 4, (len(first), 6), np.uint8)
    for comparison in levels.T:
        comparison[rng.random(len(first)) < np.where(same, 0.6, 0.1)] = 4
    log_odds = [math.log(0.4 / 0.9)] * 3 + [math.log(6.0)]
    weights = np.concatenate([[-1.0, 0.0, -1.0], np.tile(log_odds, 6)])
    return Links(first, second, levels, entity, weights, np.full(6, 4))


def search_walk(read: Callable[[Scale], Links], rounds: int, sweeps: int, scale: Scale) -> Walk:
    """Search for the best clustering, every item by itself at first."""
    links = read(scale)
    walks = link_walks(links)
    steps = rounds * sweeps * len(links.entity)

    def run() -> Done:
        return Done(steps, steps, walks.search(rounds, sweeps))

    return ready(Walk(run, hash_of(*links), partial(walks.begin, None)))


def sample_walk(read: Callable[[Scale], Links], sweeps: int, scale: Scale) -> Walk:
    """Sample clusterings from the truth, with half a split or merge per item."""
    links = read(scale)
    walks = link_walks(links)
    steps = sweeps * len(links.entity)

    def run() -> Done:
        return Done(steps, steps, walks.sample(sweeps, 0.5))

    return ready(Walk(run, hash_of(*links), partial(walks.begin, links.entity, strict=True)))


def learn_walk(read: Callable[[Scale], Links], each: int, scale: Scale) -> Walk:
    """Learn in two passes, from every item by itself and from the truth."""
    links = read(scale)
    walks = link_walks(links)

    def run() -> Done:
        steps, updates = walks.learn(2, each)
        return Done(steps, steps, updates)

    return ready(Walk(run, hash_of(*links)))


def ready(walk: Walk) -> Walk:
    """Take a first round, which compiles."""
    walk.reset()
    walk.run()
    return walk


def register_links(
    name: str, title: str, read: Callable[[Scale], Links], search: tuple[int, int], sweeps: int, each: int
) -> None:
    """Register the three walks over a graph: by rounds and sweeps, by sweeps, by steps per item."""
    title = f"links of {title}"
    strict = f"{title}, strict sweeps with jumps"
    workload(f"links-search-{name}", f"{title}, search", SWEPT, most=1.05)(
        partial(search_walk, read, *search)
    )
    workload(f"links-sample-{name}", strict, SWEPT, most=1.05)(partial(sample_walk, read, sweeps))
    workload(f"links-learn-{name}", f"{title}, SampleRank", STEP_TIME, most=1.05)(
        partial(learn_walk, read, each)
    )


register_links("50k", "historical_50k", historical, (12, 2), 4, 5)
register_links("1m", "a generated million", million, (3, 1), 1, 1)


# One process per tree and workload; they take turns by lines of JSON.


def serve(name: str, scale: Scale) -> None:
    """Prepare a workload and run a round for every line that comes in."""
    answers, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")

    def answer(**values: object) -> None:
        print(json.dumps(values), file=answers, flush=True)

    try:
        walk = WORKLOADS[name].prepare(scale)
        answer(inputs=walk.inputs)
        for _ in sys.stdin:
            walk.reset()
            gc.collect()
            timed: Timed[Done] = smallest(walk.run, 1)
            cpu, wall = timed.cpu - walk.overhead[0], timed.wall - walk.overhead[1]
            answer(cpu=cpu, wall=wall, **timed.result._asdict())
    except MissingDataError as fault:
        answer(missing=str(fault))
    except Exception as fault:  # reported by the other side, which goes on with other workloads
        answer(error=f"{type(fault).__name__}: {fault}")


class WalkFailedError(RuntimeError):
    """A workload that a tree could not run."""


class Worker:
    """A process that runs one workload with one tree."""

    def __init__(self, tree: Path, name: str, options: argparse.Namespace, scratch: Path) -> None:
        cache = str(options.cache / state_of(tree))
        paths = [str(tree / "benchmarks"), str(tree / "src")]
        variables = {
            **os.environ,
            **ONE_THREAD,
            "PYTHONPATH": os.pathsep.join(paths),
            "NUMBA_CACHE_DIR": cache,
            "FACTORWISE_CACHE": cache,
            "FACTORWISE_WALKS": str(scratch),
        }
        command = [sys.executable, "-P", __file__, "--worker", name, *(["--quick"] if options.quick else [])]
        self.tree = tree
        self.process = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def answer(self) -> dict[str, Any]:
        """Wait for the next line."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        values = json.loads(line) if line else {"error": "the process ended"}
        if "missing" in values:
            raise MissingDataError(values["missing"])
        if "error" in values:
            raise WalkFailedError(f"{self.tree}: {values['error']}")
        return dict(values)

    def run(self) -> dict[str, Any]:
        """Run a round."""
        if self.process.stdin:
            self.process.stdin.write("run\n")
            self.process.stdin.flush()
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def state_of(tree: Path) -> str:
    """Hash the sources of a tree."""
    digest = hashlib.sha256()
    for path in sorted((tree / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Figures(NamedTuple):
    """What was measured of one tree.

    cpu, wall
        Seconds of the best round by each.
    pace, wall_pace
        CPU and wall seconds of a step. Where rounds look at different numbers of factors, the best round is
        the one with the least time per factor, and steps are taken to have the mean number.
    count
        Mean of what the figure counts in a step; None if this tree does not count it.
    """

    cpu: float
    wall: float
    pace: float
    wall_pace: float
    count: float | None
    results: list[float]
    inputs: str

    @classmethod
    def of_rounds(cls, rounds: Sequence[dict[str, Any]], inputs: str) -> Figures:
        """Keep the best round."""
        counts = [one["amount"] and one["amount"] / one["steps"] for one in rounds]
        count = None if None in counts else float(np.mean(counts))
        share = [1.0 if count is None else mine / count for mine in counts]
        paces = {
            clock: min(one[clock] / one["steps"] / part for one, part in zip(rounds, share, strict=True))
            for clock in ("cpu", "wall")
        }
        best = [min(one[clock] for one in rounds) for clock in ("cpu", "wall")]
        return cls(*best, paces["cpu"], paces["wall"], count, [one["result"] for one in rounds], inputs)


def measure(name: str, trees: Sequence[Path], options: argparse.Namespace, scratch: Path) -> list[Figures]:
    """Let the trees take turns, each round beginning with another one; short rounds are taken more often."""
    workers: list[Worker] = []
    try:
        inputs = []
        for tree in trees:  # one after the other: both would compile
            workers.append(Worker(tree, name, options, scratch))
            inputs.append(workers[-1].answer()["inputs"])
        rounds: list[list[dict[str, Any]]] = [[] for _ in trees]
        number, begun = 0, time.perf_counter()
        while number < options.rounds or (
            number < MORE * options.rounds and time.perf_counter() - begun < SHORT
        ):
            for turn in range(len(trees)):
                which = (number + turn) % len(trees)
                rounds[which].append(workers[which].run())
            number += 1
        return [Figures.of_rounds(*found) for found in zip(rounds, inputs, strict=True)]
    finally:
        for worker in workers:
            worker.close()


HEAD = ("workload", "unit", "old", "new", "CPU", "wall", "CPU s", "wall s", "result", "bar", "took s")


def row_of(name: str, found: Sequence[Figures], took: float) -> list[str]:
    """Format a row; with one tree there is no old one and no ratio.

    A factor is what the first tree counts as one: no figure rises because more is counted.
    """
    measured, old, new = WORKLOADS[name], found[0], found[-1]
    count = next((one.count for one in found if one.count is not None), math.nan)
    figures = [measured.unit.figure(count, one.pace) for one in found]
    ratios, bars = ["", ""], []
    if len(found) > 1:
        ratios = [f"{new.pace / old.pace:.2f}", f"{new.wall_pace / old.wall_pace:.2f}"]
        if measured.most is not None:
            met = verdict(new.pace / old.pace, measured.most, at_most=True)
            bars.append(f"{measured.most:.2f}x: {met}")
    if measured.bar is not None:
        met = verdict(figures[-1], measured.bar, at_most=measured.unit.time)
        bars.append(f"{measured.bar:g}: {met}")
    return [
        f"{name}: {measured.title}",
        measured.unit.text,
        shown(figures[0]) if len(found) > 1 else "",
        shown(figures[-1]),
        *ratios,
        " ".join(f"{one.cpu:.2f}" for one in found),
        " ".join(f"{one.wall:.2f}" for one in found),
        compared(found),
        ", ".join(bars),
        f"{took:.0f}",
    ]


def shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def compared(found: Sequence[Figures]) -> str:
    """Say what the walks came to, and whether trees agree on that and on their inputs."""
    first, last = found[0], found[-1]
    if first.inputs != last.inputs:
        return "OTHER INPUTS"
    if len(found) > 1 and np.allclose(first.results, last.results, rtol=TOLERANCE, atol=0.0):
        text = f"same {first.results[-1]:.6g}"
    else:
        text = " -> ".join(f"{one.results[-1]:.6g}" for one in found)
    if first.count and last.count and not math.isclose(first.count, last.count, rel_tol=0.01):
        text += f" (counts {last.count / first.count:.2f} times the factors)"
    return text


def chosen(text: str) -> list[str]:
    """Return the workloads whose names begin with one of those between the commas."""
    names = [name for name in WORKLOADS if name.startswith(tuple(text.split(",")))]
    unknown = [part for part in text.split(",") if not any(name.startswith(part) for name in WORKLOADS)]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(WORKLOADS)}")
    return names


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--old", type=Path, help="the tree to compare with; none by default")
    parser.add_argument("--new", type=Path, default=HERE.parent, help="the tree to measure, by default this")
    parser.add_argument("--only", type=chosen, default=[*WORKLOADS], help="names of workloads, or beginnings")
    parser.add_argument("--rounds", type=int, help=f"turns of each tree at least, {FULL.rounds} by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "factorwise-walks", help="compiled code"
    )
    parser.add_argument("--worker", choices=WORKLOADS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    scale = QUICK if options.quick else FULL
    if options.worker:
        serve(options.worker, scale)
        return
    options.rounds = options.rounds or scale.rounds
    trees = [tree.resolve() for tree in (options.old, options.new) if tree is not None]
    rows, failed = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.only:
            began = time.perf_counter()
            try:
                found = measure(name, trees, options, Path(scratch))
            except MissingDataError as absent:
                print(f"{name} is left out: {absent}", flush=True)
                continue
            except WalkFailedError as fault:
                failed.append(f"{name}: {fault}")
                print(f"{name} failed: {fault}", file=sys.stderr, flush=True)
                continue
            rows.append(row_of(name, found, time.perf_counter() - began))
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    print(
        f"{options.rounds} or more rounds in turns; CPU and wall: new over old; load {os.getloadavg()[0]:.1f}"
    )
    print(table(HEAD, rows))
    if failed:
        sys.exit("failed: " + "; ".join(failed))


if __name__ == "__main__":
    main()
