"""Compiled walks on sampled factors: the same factors examined and the same steps as the plain walk."""

from functools import cache

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.engine import PlainEngine, make_engine
from factorwise.inference.mcmc.evaluators.exact import Exact
from factorwise.inference.mcmc.evaluators.sampled import ConfidenceSample, UniformSample
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.partition_engine import PartitionEngine
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import Blocks, Merge, RelocateToItem, RelocateToNew
from factorwise.inference.mcmc.sampled_engine import SampledEngine
from factorwise.kernels.clusterings import sampled_walks
from factorwise.kernels.compile.primitives import overlap
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.templates import ClusterSize, CountedTemplate, Key, PairTemplate
from factorwise.rng import Stream
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import halves, mixtures

N = 24
CLOSE = 1e-4  # of scores: fields are in single precision


def alike(a, b):
    return a.first == b.first, abs(a.year - b.year), overlap(a.coauthors, b.coauthors), 1


@cache
def model():
    rng = np.random.default_rng(1)
    fields = Fields(
        first=rng.integers(0, 4, N), year=rng.normal(size=N), coauthors=rng.integers(-1, 9, (N, 3))
    )
    pairs = PairTemplate("pairs", fields, alike, ["first", "year", "shared", "bias"])
    keys = [Key("first", ("equal", "conflict")), Key("coauthors")]
    repelling = CountedTemplate("apart", fields, keys, repels=True)
    return Model([pairs, repelling], [0.6, -0.5, 0.4, -0.1, 0.2, -0.3, 0.1, 0.05])


@cache
def program():
    return PartitionProgram(model(), N)


EVALUATORS = {
    "all": Exact(),
    "share": UniformSample(0.3),
    "sum of a share": UniformSample(0.5, estimate="sum"),
    "everything as a share": UniformSample(1.0),
    "hardly any": UniformSample(0.01),
    "confidence": ConfidenceSample(1.0),
    "sum by confidence": ConfidenceSample(1.5, minimum=3, growth=1.7, estimate="sum"),
    "certainty": ConfidenceSample(0.0, z=1.0),
    "anything goes": ConfidenceSample(100.0, minimum=2),
}
RELOCATIONS = ("to cluster", "to item", "to candidate", "relocations", "blocks")


@pytest.mark.parametrize("hastings", [True, False])
@pytest.mark.parametrize("name", EVALUATORS)
def test_every_evaluator_examines_the_same_factors_as_the_plain_walk(name, hastings):
    evaluator, changed = EVALUATORS[name], 0
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()], [0.7, 0.3])
    kernel = Metropolis(model(), mixture, evaluator, hastings)
    world = Partition.from_keys(np.arange(N) % 2)
    engine, plain = SampledEngine(kernel, world, program=program()), PlainEngine(kernel, world, model())
    streams = Stream(3), Stream(3)
    for temperature in (0.8, 2.0, 0.8):
        accepted = plain.advance(streams[1], temperature, 25)
        assert engine.advance(streams[0], temperature, 25) == accepted
        assert engine.world == plain.world
        assert engine.score == pytest.approx(plain.score, abs=CLOSE)
        np.testing.assert_array_equal(streams[0].state, streams[1].state)
        changed += accepted
    assert changed > 0
    if name != "all":
        assert engine.factors_seen == plain.factors_seen > 0


@pytest.mark.parametrize("name", RELOCATIONS)
def test_every_relocation_follows_the_plain_walk(name):
    kernel = Metropolis(model(), mixtures(model(), N)[name], ConfidenceSample(0.8))
    world = Partition.from_keys(halves(N).of)
    engine, plain = SampledEngine(kernel, world, program=program()), PlainEngine(kernel, world, model())
    streams = Stream(4), Stream(4)
    changed = [(engine.advance(streams[0], 1.2, 20), plain.advance(streams[1], 1.2, 20)) for _ in range(4)]
    assert all(fast == slow for fast, slow in changed)
    assert sum(fast for fast, _ in changed) > 0
    assert engine.world == plain.world
    assert engine.factors_seen == plain.factors_seen


def test_examining_all_factors_in_rows_is_the_exact_walk():
    for name in RELOCATIONS:
        kernel = Metropolis(model(), mixtures(model(), N)[name])
        world = Partition.from_keys(halves(N).of)
        rows = SampledEngine(kernel, world, program=program())
        columns = PartitionEngine(kernel, world, program=program())
        assert rows.advance(Stream(5), 1.0, 2_000) == columns.advance(Stream(5), 1.0, 2_000)
        assert rows.world == columns.world
        assert rows.factors_seen == columns.factors_seen


def test_visits_to_blocks_are_those_of_the_exact_engine_where_all_is_examined():
    kernel = Metropolis(model(), mixtures(model(), N)["blocks"])
    world = Partition.singletons(N)
    rows, columns = SampledEngine(kernel, world, program=program()), PartitionEngine(kernel, world)
    streams = Stream(6), Stream(6)
    for _ in range(5):
        assert rows.advance_blocks(streams[0], 1.0) == columns.advance_blocks(streams[1], 1.0)
    assert rows.world == columns.world
    assert rows.advance_blocks(Stream(7), 1.0, 0, 0) == 0
    assert sampled_walks.sampled_sweep.signatures


def test_a_small_share_examines_few_factors():
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()])
    world = Partition.from_labels(np.zeros(N, int))
    seen = {}
    for share in (1.0, 0.1):
        engine = SampledEngine(Metropolis(model(), mixture, UniformSample(share)), world, program=program())
        engine.advance(Stream(8), 0.01, 200)  # cold: the world stays as it is
        seen[share] = engine.factors_seen
    assert seen[0.1] < 0.2 * seen[1.0]


def test_the_library_samples_where_the_kernel_asks_for_it():
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()])
    kernel = Metropolis(model(), mixture, UniformSample(0.5))
    first = make_engine(kernel, Partition.singletons(N))
    second = make_engine(kernel, Partition.singletons(N), like=first)
    assert isinstance(first, SampledEngine)
    assert second.program is first.program
    assert first.world == first.view
    assert first.world is not first.view


BAD = {
    "two populations": (
        lambda: Metropolis(
            model(), PartitionMixture([RelocateToItem()]), ConfidenceSample(1.0, pooled=False)
        ),
        "pooled=True",
    ),
    "a cluster function": (
        lambda: Metropolis(
            Model([*model().templates, ClusterSize()]),
            PartitionMixture([RelocateToItem()]),
            UniformSample(0.5),
        ),
        "PairTemplate or CountedTemplate",
    ),
    "merges": (
        lambda: Metropolis(model(), PartitionMixture([Merge()]), UniformSample(0.5)),
        "moves of one item",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_sampled_in_compiled_code_is_refused(name):
    build, message = BAD[name]
    with pytest.raises(NoCompiledFormError, match=message):
        SampledEngine(build(), Partition.singletons(N))


def test_other_programs_and_worlds_without_blocks_are_refused():
    kernel = Metropolis(Model(model().templates), PartitionMixture([RelocateToItem()]), UniformSample(0.5))
    with pytest.raises(InvalidArgumentError, match="build PartitionProgram"):
        SampledEngine(kernel, Partition.singletons(N), program=program())
    with pytest.raises(InvalidArgumentError, match="no blocks to visit"):
        SampledEngine(kernel, Partition.singletons(N)).advance_blocks(Stream(0), 1.0)
    across = PartitionMixture([RelocateToItem(Blocks.from_keys(range(N)))])
    with pytest.raises(InvalidArgumentError, match="clusters lie within blocks"):
        SampledEngine(
            Metropolis(model(), across, UniformSample(0.5)), Partition.from_labels(np.zeros(N, int))
        )
