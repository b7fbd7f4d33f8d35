"""The compiled samplers over clusterings: same trace as the plain ones, and the exact distribution."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from scipy.stats import chisquare

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.proposals.restricted_gibbs import RestrictedGibbs
from factorwise.inference.mcmc.walk import Walk
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs
from factorwise.model.clusterings.cluster_templates import ClusterSize
from factorwise.model.clusterings.partition_templates import PairTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.testing import exact_distribution
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import KERNELS, MODELS, halves, kernels, model_of, start_for, within_blocks

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CLOSE = 1e-4  # of scores: fields are in single precision
RELOCATIONS = ("to cluster", "to item", "to candidate", "relocations", "blocks")


@cache
def known_model(names, n):
    return model_of(names, n)


def assert_same_trace(kernel, world, temperature, chunks, steps, seed=11):
    """The compiled walk against the same functions, interpreted."""
    plain, fast = Stream(seed), Stream(seed)
    interpreted, compiled = Walk(kernel, world, interpreted=True), Walk(kernel, world)
    changed = 0
    for _ in range(chunks):
        accepted = interpreted.advance(plain, temperature, steps)
        assert compiled.advance(fast, temperature, steps) == accepted
        assert compiled.world == interpreted.world
        assert compiled.score == pytest.approx(interpreted.score, abs=CLOSE)
        np.testing.assert_array_equal(fast.state, plain.state)
        changed += accepted
    assert compiled.score == pytest.approx(kernel.model.score(compiled.world), abs=CLOSE)
    return changed


@pytest.mark.parametrize("name", [name for name in KERNELS if "restricted" not in name])
def test_moves_of_one_item_follow_the_definitions_of_kernel_and_model(name):
    """Proposals from the same functions, gains from the definitions of the templates."""
    model, stream, twin = known_model(MODELS["everything"], 7), Stream(3), Stream(3)
    kernel = kernels(model, 7)[name]
    world = start_for(7, 2)
    walk = Walk(kernel, world)
    for _ in range(40):
        step = kernel.step(stream, world, 0.7)
        assert walk.advance(twin, 0.7, 1) == step.accepted
        if step.accepted:
            world.apply(step.diff)
        elif step.diff is not None and kernel.changes == "many":
            world = walk.world  # where changes were taken back, members stand in another order
        assert walk.world == world
        np.testing.assert_array_equal(stream.state, twin.state)


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("name", KERNELS)
def test_every_compiled_sampler_follows_the_plain_one(name, n_types):
    model = known_model(MODELS["everything"], 7)
    sampler = kernels(model, 7)[name]
    changed = [
        assert_same_trace(sampler, start_for(7, n_types), temperature, chunks=6, steps=5)
        for temperature in (0.7, 2.0)
    ]
    assert min(changed) > 0


@pytest.mark.parametrize("name", ["relocations", "all but restricted", "restricted and more", "gibbs"])
@pytest.mark.parametrize("case", MODELS)
def test_every_model_is_followed(case, name):
    """Larger clusters, that grow out of their blocks of memory."""
    model = known_model(MODELS[case], 30)
    sampler = kernels(model, 30)[name]
    chunks = 2 if name in ("restricted and more", "gibbs") else 8
    for temperature in (0.7, 2.0):
        assert_same_trace(sampler, start_for(30, 2), temperature, chunks=chunks, steps=4)


ALONE = {
    "pairs": ("numbers", "vectors"),
    "edges": ("edges", "repelling edges"),
    "clusters": ("clusters", "typed"),
}


@pytest.mark.parametrize("case", ALONE)
def test_relocations_follow_where_the_model_has_nothing_but_one_kind_of_factor(case):
    model = known_model(ALONE[case], 12)
    sampler = kernels(model, 12)["relocations"]
    for n_types in (1, 2):
        assert_same_trace(sampler, start_for(12, n_types), 0.7, chunks=10, steps=10)


@pytest.mark.slow  # compiles the large sweeps for each of them
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in RELOCATIONS])
@pytest.mark.parametrize("case", ALONE)
def test_all_samplers_follow_where_the_model_has_nothing_but_one_kind_of_factor(case, name):
    model = known_model(ALONE[case], 12)
    sampler = kernels(model, 12)[name]
    for n_types in (1, 2):
        assert_same_trace(sampler, start_for(12, n_types), 0.7, chunks=5, steps=5)


def test_blocks_of_one_item_and_one_block_of_all_are_followed():
    model = known_model(MODELS["everything"], 7)
    for keys in (list(range(7)), [0] * 7, [0, 1, 1, 2, 2, 2, 2]):
        moves = [RelocateToItem(Blocks.from_keys(keys)), RelocateToNew(), RetypeCluster()]
        sampler = Metropolis(model, PartitionMixture(moves))
        assert_same_trace(sampler, Partition.singletons(7, n_types=2), 0.7, chunks=8, steps=10)


def test_items_without_candidates_are_followed():
    model = known_model(MODELS["everything"], 7)
    for pairs in ([(0, 1), (1, 2)], []):
        moves = [RelocateToCandidate.from_pairs(7, pairs), RelocateToNew(), Merge()]
        sampler = Metropolis(model, PartitionMixture(moves))
        assert_same_trace(sampler, start_for(7), 0.7, chunks=8, steps=10)


def test_a_single_item_is_followed():
    model = known_model(MODELS["everything"], 1)
    for moves in ([RelocateToItem(), RelocateToNew()], [Merge(), Split()], [RetypeCluster(), SplitMerge()]):
        sampler = Metropolis(model, PartitionMixture(moves))
        for n_types in (1, 2):
            world = Partition.singletons(1, n_types=n_types)
            assert_same_trace(sampler, world, 0.7, chunks=2, steps=5)


@cache
def equilibrium(n_types, blocked):
    """A model, the worlds and their probabilities at the temperature of the statistical tests."""
    model = known_model(MODELS["everything"], 4)
    worlds = [w for w in all_partitions(4, n_types) if not blocked or within_blocks(w, halves(4))]
    return model, worlds, exact_distribution(model, worlds, 0.7)


def ends_of(sampler, n_types, blocked, seed, advance, chains=1_200):
    """Counts of the worlds in which chains end that were started in exact draws."""
    _, worlds, target = equilibrium(n_types, blocked)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    ends = np.zeros(len(worlds))
    stream = Stream(seed, 1)
    engine = Walk(sampler, worlds[0])
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        for _ in range(count):
            engine.reset(world)
            advance(engine, stream)
            ends[position[engine.world.canonical()]] += 1
    return ends, chains * target


def pooled(expected, observed, least=5.0):
    """Put the rarest worlds together, so that the chi-square approximation holds."""
    order = np.argsort(expected)[::-1]
    expected, observed = expected[order], observed[order]
    kept = max(int((expected >= least).sum()), 1)
    while kept > 1 and 0 < expected[kept:].sum() < least:
        kept -= 1
    if kept == len(expected):
        return expected, observed
    return (np.append(a[:kept], a[kept:].sum()) for a in (expected, observed))


@pytest.mark.statistical
@pytest.mark.parametrize("name", KERNELS)
def test_chains_started_in_equilibrium_stay_there(name, seed):
    """Starts drawn exactly make the ends independent exact draws, so that the level is honest."""
    blocked = "blocks" in name
    sampler = kernels(equilibrium(1, blocked)[0], 4)[name]
    ends, expected = ends_of(sampler, 1, blocked, seed, lambda engine, stream: engine.advance(stream, 0.7, 5))
    expected, observed = pooled(expected, ends)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["relocations", "everything", "blocks and more", "gibbs"])
def test_chains_over_typed_worlds_started_in_equilibrium_stay_there(name, seed):
    blocked = "blocks" in name
    sampler = kernels(equilibrium(2, blocked)[0], 4)[name]
    ends, expected = ends_of(sampler, 2, blocked, seed, lambda engine, stream: engine.advance(stream, 0.7, 5))
    expected, observed = pooled(expected, ends)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("n_types", [1, 2])
def test_visiting_the_blocks_in_order_leaves_the_distribution_invariant(n_types, seed):
    model = equilibrium(n_types, True)[0]
    mixture = PartitionMixture([RelocateToItem(halves(4), in_turn=True), RelocateToNew()], [1.0, 0.6])
    ends, expected = ends_of(
        Metropolis(model, mixture), n_types, True, seed, lambda engine, stream: engine.advance(stream, 0.7, 4)
    )
    expected, observed = pooled(expected, ends)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


def test_blocks_in_turn_are_visited_one_after_the_other():
    mixture = PartitionMixture([RelocateToItem(halves(7), in_turn=True), RelocateToNew()])
    engine = Walk(Metropolis(known_model(MODELS["everything"], 7), mixture), Partition.singletons(7))
    first = engine.advance(Stream(1), 1e6, 3)  # as many steps as the first block has items
    labels = engine.world.dense_labels()
    assert first > 0
    assert len(np.unique(labels[3:])) == 4
    engine.advance(Stream(2), 1e6, 4)
    np.testing.assert_array_equal(engine.world.dense_labels()[:3], labels[:3])
    assert within_blocks(engine.world, halves(7))


def unlike(a, b):
    return abs(a.year - b.year), 1


def test_a_cluster_of_thousands_is_merged_and_split_without_overflow():
    n = 3_000
    fields = Fields(year=np.random.default_rng(0).normal(size=n))
    pairs = PairTemplate("pairs", fields, unlike, ["distance", "bias"])
    model = Model([pairs, ClusterSize("sizes")], [-1e-3, 1e-3, 2.0, 0.5])
    halved = Partition.from_labels(np.arange(n) % 2)
    moves = [Merge(), Split(), SplitMerge(), RestrictedGibbs(model, 1), RelocateToItem(), RelocateToNew()]
    sampler = Metropolis(model, PartitionMixture(moves))
    for world in (halved, Partition.from_labels(np.zeros(n, int))):
        engine = Walk(sampler, world)
        changed = sum(engine.advance(Stream(3), 1e5, 12) for _ in range(2))
        assert changed > 0
        assert np.isfinite(engine.score)
        assert engine.world.n_items == n
        assert sorted(len(members) for members in engine.world.clusters())[-1] > 100


def test_the_running_score_stays_the_score_over_many_steps():
    model = known_model(MODELS["everything"], 30)
    for name in ("relocations", "everything", "gibbs"):
        engine = Walk(kernels(model, 30)[name], Partition.singletons(30, n_types=2))
        assert engine.score == pytest.approx(model.score(engine.world), abs=CLOSE)
        assert engine.advance(Stream(5), 2.0, 3_000) > 100
        assert engine.score == pytest.approx(model.score(engine.world), abs=10 * CLOSE)
        assert engine.factors_seen > 0


def test_two_chains_can_run_at_once():
    model = known_model(MODELS["everything"], 30)
    sampler = kernels(model, 30)["all but restricted"]

    def end(seed):
        engine = Walk(sampler, Partition.singletons(30))
        engine.advance(Stream(seed), 1.0, 20_000)
        return engine.world

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(end, [1, 2])) == [end(1), end(2)]


def test_the_world_given_to_the_engine_stays_as_it_is():
    model = known_model(MODELS["everything"], 7)
    world = start_for(7)
    before = world.copy()
    Walk(PartitionGibbs(model), world).advance(Stream(0), 1.0, 50)
    assert world == before
    assert all((a == b).all() for a, b in zip(world.arrays[1:3], before.arrays[1:3], strict=True))


class OwnProposer:
    """A user's proposer."""


BAD = {
    "a proposer of one's own": (lambda m: Metropolis(m, OwnProposer()), "OwnProposer has no program"),
    "scans guided by another model": (
        lambda m: Metropolis(m, PartitionMixture([RestrictedGibbs(Model(m.templates))])),
        "build it with the kernel's model",
    ),
    "a world across blocks": (
        lambda m: Metropolis(m, PartitionMixture([RelocateToItem(Blocks.from_keys(range(7)))])),
        "clusters lie within blocks",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_compiled_is_refused(name):
    build, message = BAD[name]
    model = known_model(MODELS["everything"], 7)
    with pytest.raises(InvalidArgumentError, match=message):
        Walk(build(model), Partition.from_labels([0] * 7))


def test_candidates_for_other_items_are_refused():
    model = known_model(MODELS["everything"], 7)
    sampler = Metropolis(model, PartitionMixture([RelocateToCandidate.from_pairs(5, [(0, 1)])]))
    with pytest.raises(ShapeError, match="for 5 items, but the world has 7"):
        Walk(sampler, start_for(7))
