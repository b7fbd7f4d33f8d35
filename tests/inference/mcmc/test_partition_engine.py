"""The compiled samplers over clusterings: same trace as the plain ones, and the exact distribution."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from scipy.stats import chisquare

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.partition_engine import PartitionEngine
from factorwise.inference.mcmc.partition_gibbs import PartitionGibbs
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.restricted_gibbs import RestrictedGibbs
from factorwise.model.cluster_templates import ClusterSize
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.partition_templates import PairTemplate
from factorwise.rng import Stream
from factorwise.testing import exact_distribution
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import KERNELS, MODELS, halves, kernels, model_of, start_for, within_blocks

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CLOSE = 1e-4  # of scores: fields are in single precision
RELOCATIONS = ("to cluster", "to item", "to candidate", "relocations", "blocks")


@cache
def program_of(names, n):
    model = model_of(names, n)
    return PartitionProgram(model, n)


def assert_same_trace(kernel, world, program, temperature, chunks, steps, seed=11):
    plain, fast = Stream(seed), Stream(seed)
    engine = PartitionEngine(kernel, world, program=program)
    world = world.copy()
    score = kernel.model.score(world)
    changed = 0
    for _ in range(chunks):
        accepted = 0
        for _ in range(steps):
            step = kernel.step(plain, world, temperature)
            if step.accepted:
                world.apply(step.diff)
                score += step.gain
                accepted += 1
        assert engine.advance(fast, temperature, steps) == accepted
        assert engine.world == world
        assert engine.score == pytest.approx(score, abs=CLOSE)
        np.testing.assert_array_equal(fast.state, plain.state)
        changed += accepted
    assert engine.score == pytest.approx(kernel.model.score(engine.world), abs=CLOSE)
    return changed


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("name", KERNELS)
def test_every_compiled_sampler_follows_the_plain_one(name, n_types):
    program = program_of(MODELS["everything"], 7)
    sampler = kernels(program.model, 7)[name]
    changed = [
        assert_same_trace(sampler, start_for(7, n_types), program, temperature, chunks=6, steps=5)
        for temperature in (0.7, 2.0)
    ]
    assert min(changed) > 0


@pytest.mark.parametrize("name", ["relocations", "all but restricted", "restricted and more", "gibbs"])
@pytest.mark.parametrize("case", MODELS)
def test_every_model_is_followed(case, name):
    """Larger clusters, that grow out of their blocks of memory."""
    program = program_of(MODELS[case], 30)
    sampler = kernels(program.model, 30)[name]
    chunks = 2 if name in ("restricted and more", "gibbs") else 8
    for temperature in (0.7, 2.0):
        assert_same_trace(sampler, start_for(30, 2), program, temperature, chunks=chunks, steps=4)


ALONE = {
    "pairs": ("numbers", "vectors"),
    "edges": ("edges", "repelling edges"),
    "clusters": ("clusters", "typed"),
}


@pytest.mark.parametrize("case", ALONE)
def test_relocations_follow_where_the_model_has_nothing_but_one_kind_of_factor(case):
    program = program_of(ALONE[case], 12)
    sampler = kernels(program.model, 12)["relocations"]
    for n_types in (1, 2):
        assert_same_trace(sampler, start_for(12, n_types), program, 0.7, chunks=10, steps=10)


@pytest.mark.slow  # compiles the large sweeps for each of them
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in RELOCATIONS])
@pytest.mark.parametrize("case", ALONE)
def test_all_samplers_follow_where_the_model_has_nothing_but_one_kind_of_factor(case, name):
    program = program_of(ALONE[case], 12)
    sampler = kernels(program.model, 12)[name]
    for n_types in (1, 2):
        assert_same_trace(sampler, start_for(12, n_types), program, 0.7, chunks=5, steps=5)


def test_blocks_of_one_item_and_one_block_of_all_are_followed():
    program = program_of(MODELS["everything"], 7)
    for keys in (list(range(7)), [0] * 7, [0, 1, 1, 2, 2, 2, 2]):
        moves = [RelocateToItem(Blocks.from_keys(keys)), RelocateToNew(), RetypeCluster()]
        sampler = Metropolis(program.model, PartitionMixture(moves))
        assert_same_trace(sampler, Partition.singletons(7, n_types=2), program, 0.7, chunks=8, steps=10)


def test_items_without_candidates_are_followed():
    program = program_of(MODELS["everything"], 7)
    for pairs in ([(0, 1), (1, 2)], []):
        moves = [RelocateToCandidate.from_pairs(7, pairs), RelocateToNew(), Merge()]
        sampler = Metropolis(program.model, PartitionMixture(moves))
        assert_same_trace(sampler, start_for(7), program, 0.7, chunks=8, steps=10)


def test_a_single_item_is_followed():
    program = program_of(MODELS["everything"], 1)
    for moves in ([RelocateToItem(), RelocateToNew()], [Merge(), Split()], [RetypeCluster(), SplitMerge()]):
        sampler = Metropolis(program.model, PartitionMixture(moves))
        for n_types in (1, 2):
            world = Partition.singletons(1, n_types=n_types)
            assert_same_trace(sampler, world, program, 0.7, chunks=2, steps=5)


@cache
def equilibrium(n_types, blocked):
    """A program, the worlds and their probabilities at the temperature of the statistical tests."""
    program = program_of(MODELS["everything"], 4)
    worlds = [w for w in all_partitions(4, n_types) if not blocked or within_blocks(w, halves(4))]
    return program, worlds, exact_distribution(program.model, worlds, 0.7)


def ends_of(sampler, n_types, blocked, seed, advance, chains=1_200):
    """Counts of the worlds in which chains end that were started in exact draws."""
    program, worlds, target = equilibrium(n_types, blocked)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    ends = np.zeros(len(worlds))
    stream = Stream(seed, 1)
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        score = program.model.score(world)
        for _ in range(count):
            engine = PartitionEngine(sampler, world, program=program, score=score)
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
    sampler = kernels(equilibrium(1, blocked)[0].model, 4)[name]
    ends, expected = ends_of(sampler, 1, blocked, seed, lambda engine, stream: engine.advance(stream, 0.7, 5))
    expected, observed = pooled(expected, ends)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["relocations", "everything", "blocks and more", "gibbs"])
def test_chains_over_typed_worlds_started_in_equilibrium_stay_there(name, seed):
    blocked = "blocks" in name
    sampler = kernels(equilibrium(2, blocked)[0].model, 4)[name]
    ends, expected = ends_of(sampler, 2, blocked, seed, lambda engine, stream: engine.advance(stream, 0.7, 5))
    expected, observed = pooled(expected, ends)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("n_types", [1, 2])
def test_visiting_the_blocks_in_order_leaves_the_distribution_invariant(n_types, seed):
    program = equilibrium(n_types, True)[0]
    sampler = kernels(program.model, 4)["blocks"]
    ends, expected = ends_of(
        sampler, n_types, True, seed, lambda engine, stream: engine.advance_blocks(stream, 0.7)
    )
    expected, observed = pooled(expected, ends)
    assert chisquare(observed, expected).pvalue > FALSE_ALARM


def test_a_visit_to_one_block_leaves_the_others_alone():
    program = program_of(MODELS["everything"], 7)
    sampler = kernels(program.model, 7)["blocks"]
    engine = PartitionEngine(sampler, Partition.singletons(7), program=program)
    assert engine.advance_blocks(Stream(1), 2.0, 0, 0) == 0
    changed = sum(engine.advance_blocks(Stream(seed), 2.0, 1, 2) for seed in range(30))
    assert changed > 0
    np.testing.assert_array_equal(np.unique(engine.world.dense_labels()[:3]), [0, 1, 2])
    assert engine.world.n_clusters < 7
    assert within_blocks(engine.world, halves(7))


def unlike(a, b):
    return abs(a.year - b.year), 1


def test_a_cluster_of_thousands_is_merged_and_split_without_overflow():
    n = 3_000
    fields = Fields(year=np.random.default_rng(0).normal(size=n))
    pairs = PairTemplate("pairs", fields, unlike, ["distance", "bias"])
    model = Model([pairs, ClusterSize("sizes")], [-1e-3, 1e-3, 2.0, 0.5])
    program = PartitionProgram(model, n)
    halved = Partition.from_labels(np.arange(n) % 2)
    moves = [Merge(), Split(), SplitMerge(), RestrictedGibbs(model, 1), RelocateToItem(), RelocateToNew()]
    sampler = Metropolis(model, PartitionMixture(moves))
    for world in (halved, Partition.from_labels(np.zeros(n, int))):
        engine = PartitionEngine(sampler, world, program=program, score=0.0)
        changed = sum(engine.advance(Stream(3), 1e5, 12) for _ in range(2))
        assert changed > 0
        assert np.isfinite(engine.score)
        assert engine.world.n_items == n
        assert sorted(len(members) for members in engine.world.clusters())[-1] > 100


def test_the_running_score_stays_the_score_over_many_steps():
    program = program_of(MODELS["everything"], 30)
    for name in ("relocations", "everything", "gibbs"):
        engine = PartitionEngine(
            kernels(program.model, 30)[name], Partition.singletons(30, n_types=2), program=program
        )
        assert engine.advance(Stream(5), 2.0, 3_000) > 100
        assert engine.score == pytest.approx(program.model.score(engine.world), abs=10 * CLOSE)
        assert engine.factors_seen > 0


def test_two_chains_can_run_at_once():
    program = program_of(MODELS["everything"], 30)
    sampler = kernels(program.model, 30)["all but restricted"]

    def end(seed):
        engine = PartitionEngine(sampler, Partition.singletons(30), program=program)
        engine.advance(Stream(seed), 1.0, 20_000)
        return engine.world

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(end, [1, 2])) == [end(1), end(2)]


def test_the_world_given_to_the_engine_stays_as_it_is():
    program = program_of(MODELS["everything"], 7)
    world = start_for(7)
    before = world.copy()
    PartitionEngine(PartitionGibbs(program.model), world, program=program).advance(Stream(0), 1.0, 50)
    assert world == before
    assert all((a == b).all() for a, b in zip(world.arrays[1:3], before.arrays[1:3], strict=True))


class OwnProposer:
    """A user's proposer."""


BAD = {
    "a proposer of one's own": (lambda m: Metropolis(m, OwnProposer()), "OwnProposer has no compiled form"),
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
    program = program_of(MODELS["everything"], 7)
    with pytest.raises(InvalidArgumentError, match=message):
        PartitionEngine(build(program.model), Partition.from_labels([0] * 7), program=program)


def test_candidates_for_other_items_are_refused():
    program = program_of(MODELS["everything"], 7)
    sampler = Metropolis(program.model, PartitionMixture([RelocateToCandidate.from_pairs(5, [(0, 1)])]))
    with pytest.raises(ShapeError, match="for 5 items, but the world has 7"):
        PartitionEngine(sampler, start_for(7), program=program)


def test_a_program_for_another_model_or_another_number_of_items_is_refused():
    program = program_of(MODELS["everything"], 7)
    with pytest.raises(InvalidArgumentError, match="build PartitionProgram"):
        PartitionEngine(PartitionGibbs(program.model), start_for(12), program=program)
    with pytest.raises(InvalidArgumentError, match="build PartitionProgram"):
        PartitionEngine(PartitionGibbs(model_of(MODELS["everything"], 7)), start_for(7), program=program)


def test_blocks_cannot_be_visited_where_there_are_none_or_where_splits_reach_beyond_them():
    program = program_of(MODELS["everything"], 7)
    all_samplers = kernels(program.model, 7)
    for name, message in (("to item", "no blocks to visit"), ("blocks and more", "leave Split out")):
        engine = PartitionEngine(all_samplers[name], start_for(7), program=program)
        with pytest.raises(InvalidArgumentError, match=message):
            engine.advance_blocks(Stream(0), 1.0)
