"""Walks that read gains off counts: the same steps as the plain ones, and the exact distribution."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.counted_engine import CountedEngine, CountedLayout
from factorwise.inference.mcmc.engine import make_engine
from factorwise.inference.mcmc.evaluators.sampled import UniformSample
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.partition_engine import PartitionEngine
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
)
from factorwise.inference.mcmc.run import sample
from factorwise.kernels.clusterings import counted_walks
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize, CountedTemplate, EdgeTemplate, Key, PairTemplate
from factorwise.rng import Stream
from factorwise.testing import exact_distribution
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import nearby, within_blocks

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CLOSE = 1e-9
KEYS = [
    Key("first", ("equal", "conflict")),
    Key("middle", ("equal",), missing=0),
    Key(("first", "middle"), ("conflict",)),
    Key("coauthors"),
]


@cache
def fields_of(n):
    rng = np.random.default_rng(5)
    return Fields(
        first=rng.integers(-1, 3, n), middle=rng.integers(0, 3, n), coauthors=rng.integers(-1, 6, (n, 3))
    )


def model_of(n, *others, repels=False):
    template = CountedTemplate("counted", fields_of(n), KEYS, repels=repels)
    weights = np.random.default_rng(6).normal(scale=0.5, size=template.size + sum(t.size for t in others))
    return Model([template, *others], -weights if repels else weights)


def edges_of(n, repels=False):
    pairs = [pair for pair in combinations(range(n), 2) if sum(pair) % 4 == 0]
    features = np.random.default_rng(7).normal(size=(len(pairs), 1))
    return EdgeTemplate(f"edges {repels}", n, pairs, features, ["score"], repels=repels)


@cache
def models(n):
    return {
        "counts": model_of(n),
        "counts and sizes": model_of(n, ClusterSize()),
        "counts and edges": model_of(n, edges_of(n), edges_of(n, repels=True)),
        "repulsion": model_of(n, ClusterSize(), repels=True),
    }


def thirds(n):
    """Blocks of different sizes, the last of one item."""
    return Blocks.from_keys((np.arange(n) * 7 % n > n // 3).astype(int) + (np.arange(n) == n - 1) * 2)


def mixtures(n):
    pairs = [(i, i + 2) for i in range(0, n - 2, 2)] + [(1, 3), (3, 5)]
    return {
        "to item": PartitionMixture([RelocateToItem(), RelocateToNew()], [0.7, 0.3]),
        "blocks": PartitionMixture([RelocateToNew(), RelocateToItem(thirds(n))], [0.4, 0.6]),
        "candidates": PartitionMixture([RelocateToCandidate.from_pairs(n, pairs), RelocateToNew()]),
        "all": PartitionMixture([nearby(n), RelocateToItem(), RelocateToNew()], [1.0, 0.4, 0.7]),
        "no way back": PartitionMixture([RelocateToItem()]),
        "only apart": PartitionMixture([RelocateToNew()]),
        "nothing to propose": PartitionMixture([RelocateToCandidate.from_pairs(n, [])]),
    }


def plain_walk(kernel, world, stream, temperature, steps):
    """Step a copy of the world; return it with its score and how many steps changed it."""
    world, score, changed = world.copy(), kernel.model.score(world), 0
    for _ in range(steps):
        step = kernel.step(stream, world, temperature)
        if step.accepted:
            world.apply(step.diff)
            score += step.gain
            changed += 1
    return world, score, changed


@pytest.mark.parametrize("hastings", [True, False])
@pytest.mark.parametrize("name", mixtures(10))
@pytest.mark.parametrize("case", models(17))
def test_every_mixture_and_model_follows_the_plain_walk(case, name, hastings):
    n = 17
    kernel = Metropolis(models(n)[case], mixtures(n)[name], hastings=hastings)
    world = Partition.from_keys(thirds(n).of) if name != "candidates" else Partition.singletons(n)
    engine = CountedEngine(kernel, world)
    assert engine.score == pytest.approx(kernel.model.score(world), abs=CLOSE)
    plain, fast, total = Stream(11), Stream(11), 0
    for temperature in (0.7, 2.0, 0.3):
        world, score, changed = plain_walk(kernel, world, plain, temperature, 60)
        total += changed
        assert engine.advance(fast, temperature, 60) == changed
        assert engine.world == world
        assert engine.score == pytest.approx(score, abs=CLOSE)
        np.testing.assert_array_equal(plain.state, fast.state)
    stuck = name == "nothing to propose" or (name == "only apart" and hastings)
    assert (total == 0) == stuck


@pytest.mark.parametrize("name", ["to item", "blocks", "candidates", "all"])
def test_a_long_walk_keeps_its_counts_and_its_score(name):
    n = 60
    kernel = Metropolis(models(n)["counts and edges"], mixtures(n)[name])
    engine = CountedEngine(kernel, Partition.singletons(n))
    assert engine.advance(Stream(2), 20.0, 20_000) > 1_000
    fresh = CountedEngine(kernel, engine.world)
    assert engine.score == pytest.approx(fresh.score, abs=1e-7)
    assert engine.score == pytest.approx(kernel.model.score(engine.world), abs=1e-7)
    assert engine.look_ups > 0


def test_gains_cost_look_ups_instead_of_factors():
    n = 60
    kernel = Metropolis(models(n)["counts"], mixtures(n)["to item"])
    engine = CountedEngine(kernel, Partition.from_labels(np.zeros(n, int)))
    exact = PartitionEngine(kernel, Partition.from_labels(np.zeros(n, int)))
    engine.advance(Stream(3), 1.0, 30)
    exact.advance(Stream(3), 1.0, 30)
    assert engine.factors_seen == exact.factors_seen
    assert engine.look_ups < exact.factors_seen / 2


def test_an_item_alone_is_looked_up_only_where_it_goes():
    fields = Fields(first=np.array([7, 7]), middle=np.array([3, 3]))
    template = CountedTemplate("counted", fields, [Key("first"), Key("middle")])
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()])
    kernel = Metropolis(Model([template], np.ones(template.size)), mixture)
    engine = CountedEngine(kernel, Partition.singletons(2))
    assert engine.advance(Stream(4), 1.0, 1) == 1
    assert engine.look_ups == 2
    assert engine.score == kernel.model.score(engine.world)


def block_alone(kernel, world, blocks, block):
    """The items of one block as a world of their own, with the model and the moves for it."""
    items = blocks.item[blocks.start[block] : blocks.start[block + 1]]
    template = kernel.model.templates[0]
    fields = Fields(**{name: f.values[items] for name, f in fields_of(world.n_items).columns.items()})
    model = Model([CountedTemplate("counted", fields, template.keys)], kernel.model.weights)
    moves = [RelocateToNew(), RelocateToItem()]
    alone = Metropolis(model, PartitionMixture(moves, kernel.proposer.weights))
    return items, alone, Partition.from_keys(world.labels[items])


def test_visiting_blocks_is_walking_over_each_of_them_alone():
    n = 30
    blocks = thirds(n)
    kernel = Metropolis(model_of(n), PartitionMixture([RelocateToNew(), RelocateToItem(blocks)], [0.4, 0.6]))
    start = Partition.singletons(n)
    engine = CountedEngine(kernel, start)
    changed = engine.advance_blocks(Stream(4), 0.8, sweeps=3)
    root, found, accepted = Stream(4).bits(), engine.world, 0
    for block in range(engine.n_blocks):
        items, alone, world = block_alone(kernel, start, blocks, block)
        stream = Stream(root, block)
        world, _, moved = plain_walk(alone, world, stream, 0.8, 3 * len(items) if len(items) > 1 else 0)
        accepted += moved
        assert Partition.from_keys(found.labels[items]) == world
    assert changed == accepted > 10
    assert engine.score == pytest.approx(kernel.model.score(found), abs=CLOSE)


@pytest.mark.parametrize("name", ["blocks", "candidates"])
def test_any_number_of_threads_gives_the_same_walk(name):
    n = 90
    kernel = Metropolis(models(n)["counts and edges"], mixtures(n)[name])
    if name == "blocks":
        moves = [RelocateToItem(Blocks.from_keys(np.arange(n) * 31 % 17)), RelocateToNew()]
        kernel = Metropolis(kernel.model, PartitionMixture(moves))
    ends = []
    for threads in (1, 2, 3):
        engine = CountedEngine(kernel, Partition.singletons(n))
        stream = Stream(8)
        changed = [engine.advance_blocks(stream, 1.0, sweeps=2, threads=threads) for _ in range(3)]
        ends.append((engine.world.canonical(), engine.score, changed, engine.look_ups, stream.bits()))
    assert ends[0] == ends[1] == ends[2]
    assert sum(ends[0][2]) > 50


def test_a_visit_to_some_blocks_leaves_the_others_alone():
    n = 30
    blocks = thirds(n)
    kernel = Metropolis(models(n)["counts"], PartitionMixture([RelocateToItem(blocks), RelocateToNew()]))
    engine = CountedEngine(kernel, Partition.singletons(n))
    assert engine.advance_blocks(Stream(1), 2.0, 1, 1) == 0
    assert engine.advance_blocks(Stream(1), 2.0, 1, 2, sweeps=20) > 0
    sizes = np.bincount(engine.labels, minlength=n)[engine.labels]
    assert (sizes[blocks.of != 1] == 1).all()
    assert engine.world.n_clusters < n
    assert within_blocks(engine.world, blocks)


def test_whole_walks_and_visits_may_alternate():
    n = 30
    kernel = Metropolis(models(n)["counts and sizes"], mixtures(n)["blocks"])
    engine = CountedEngine(kernel, Partition.singletons(n))
    for turn in range(4):
        engine.advance_blocks(Stream(turn), 1.0, sweeps=2)
        world, score, changed = plain_walk(kernel, engine.world, Stream(turn, 1), 1.0, 40)
        assert engine.advance(Stream(turn, 1), 1.0, 40) == changed
        assert engine.world == world
        assert engine.score == pytest.approx(score, abs=CLOSE)


def test_clusters_that_candidates_do_not_connect_are_kept_in_one_block():
    n = 12
    kernel = Metropolis(
        models(n)["counts"], PartitionMixture([RelocateToCandidate.from_pairs(n, [(0, 1)]), RelocateToNew()])
    )
    world = Partition.from_keys(np.arange(n) // 4)
    engine = CountedEngine(kernel, world)
    assert engine.n_blocks == 3
    expected, _, changed = plain_walk(kernel, world, Stream(5), 20.0, 200)
    assert engine.advance(Stream(5), 20.0, 200) == changed > 0
    assert engine.world == expected


def test_scores_of_all_clusterings_of_six_are_those_of_the_definition():
    for model in models(6).values():
        kernel = Metropolis(model, PartitionMixture([RelocateToItem(), RelocateToNew()], [1.0, 1.0]))
        layout = CountedLayout(kernel, Partition.singletons(6))
        worlds = all_partitions(6)
        assert len(worlds) == 203
        for world in worlds:
            assert CountedEngine(kernel, world, layout=layout).score == pytest.approx(model.score(world))


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "n"), [("all", 4), ("blocks", 4), ("visits", 4), ("all", 6)])
def test_chains_started_in_equilibrium_stay_there(name, n, seed):
    """Starts drawn exactly make the ends independent exact draws, so that the level is honest."""
    chains = 3_000 if n == 4 else 10_000
    model = models(n)["counts and sizes"]
    blocks = Blocks.from_keys([0, 0, 0, 1])
    moves = [nearby(n), RelocateToItem(), RelocateToNew()]
    if name != "all":
        moves = [RelocateToItem(blocks), RelocateToNew()]
    kernel = Metropolis(model, PartitionMixture(moves, [1.0, 0.5, 0.8][: len(moves)]))
    worlds = [w for w in all_partitions(n) if name == "all" or within_blocks(w, blocks)]
    target = exact_distribution(model, worlds, 0.7)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    ends, stream = np.zeros(len(worlds)), Stream(seed, 1)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    layout = CountedLayout(kernel, worlds[0])
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        for _ in range(count):
            engine = CountedEngine(kernel, world, layout=layout)
            if name == "visits":
                engine.advance_blocks(stream, 0.7)
            else:
                engine.advance(stream, 0.7, 4)
            ends[position[engine.world.canonical()]] += 1
    rare = chains * target < 5.0
    observed = np.append(ends[~rare], ends[rare].sum()) if rare.any() else ends
    expected = np.append(target[~rare], target[rare].sum()) if rare.any() else target
    assert chisquare(observed, chains * expected).pvalue > FALSE_ALARM


def test_the_library_chooses_counts_where_the_model_declares_them():
    n = 17
    kernel = Metropolis(models(n)["counts and sizes"], mixtures(n)["to item"])
    world = Partition.singletons(n)
    first = make_engine(kernel, world)
    second = make_engine(kernel, world, like=first)
    assert isinstance(first, CountedEngine)
    assert second.layout is first.layout
    to_cluster = Metropolis(kernel.model, PartitionMixture([RelocateToCluster(), Merge()]))
    assert isinstance(make_engine(to_cluster, world), PartitionEngine)
    assert isinstance(make_engine(kernel, Partition.singletons(n, n_types=2)), PartitionEngine)
    drawn = sample(kernel, world, draws=20, thin=5, chains=2, seed=1, progress=False)
    plain = sample(kernel, world, draws=20, thin=5, chains=2, seed=1, progress=False, engine="plain")
    np.testing.assert_allclose(drawn.scores, plain.scores)
    np.testing.assert_array_equal(drawn.n_clusters, plain.n_clusters)


def test_compiled_pair_scans_of_a_counted_model_take_the_same_steps():
    n = 40
    kernel = Metropolis(models(n)["counts and edges"], mixtures(n)["all"])
    counted = CountedEngine(kernel, Partition.singletons(n))
    scanned = PartitionEngine(kernel, Partition.singletons(n))
    assert counted.advance(Stream(9), 1.0, 3_000) == scanned.advance(Stream(9), 1.0, 3_000)
    assert counted.world == scanned.world
    assert counted_walks.counted_sweep.signatures


def test_the_world_given_to_the_engine_stays_as_it_is():
    kernel = Metropolis(models(17)["counts"], mixtures(17)["to item"])
    world = Partition.singletons(17)
    engine = CountedEngine(kernel, world)
    engine.advance(Stream(0), 2.0, 100)
    assert world == Partition.singletons(17)
    assert engine.world is not engine.view


def same_first(a, b):
    return (a.first == b.first,)


BAD = {
    "another template": (
        lambda m: Metropolis(
            Model([*m.templates, PairTemplate("p", fields_of(17), same_first, ["same"])]),
            mixtures(17)["to item"],
        ),
        NoCompiledFormError,
        "EdgeTemplate and ClusterSize",
    ),
    "another move": (
        lambda m: Metropolis(m, PartitionMixture([Merge()])),
        NoCompiledFormError,
        "RelocateToItem, RelocateToCandidate and RelocateToNew",
    ),
    "another evaluator": (
        lambda m: Metropolis(m, mixtures(17)["to item"], UniformSample(0.5)),
        NoCompiledFormError,
        "leave the evaluator out",
    ),
    "blocks of other items": (
        lambda m: Metropolis(m, PartitionMixture([RelocateToItem(thirds(9))])),
        ShapeError,
        "cover 9 items",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_walked_by_counts_is_refused(name):
    build, error, message = BAD[name]
    with pytest.raises(error, match=message):
        CountedEngine(build(models(17)["counts"]), Partition.singletons(17))


def test_types_and_foreign_layouts_and_bad_numbers_are_refused():
    kernel = Metropolis(models(17)["counts"], mixtures(17)["blocks"])
    with pytest.raises(NoCompiledFormError, match="use PartitionEngine"):
        CountedEngine(kernel, Partition.singletons(17, n_types=2))
    other = Metropolis(models(17)["counts and sizes"], mixtures(17)["blocks"])
    layout = CountedLayout(other, Partition.singletons(17))
    with pytest.raises(InvalidArgumentError, match="build CountedLayout"):
        CountedEngine(kernel, Partition.singletons(17), layout=layout)
    engine = CountedEngine(kernel, Partition.singletons(17))
    for call, message in (
        (lambda: engine.advance(Stream(0), 0.0, 1), "greater than zero"),
        (lambda: engine.advance(Stream(0), 1.0, -1), "zero or more"),
        (lambda: engine.advance_blocks(Stream(0), 1.0, 0, 9), "within 0 to 3"),
        (lambda: engine.advance_blocks(Stream(0), 1.0, sweeps=0), "at least 1"),
        (lambda: engine.advance_blocks(Stream(0), 1.0, threads=0), "at least 1"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
