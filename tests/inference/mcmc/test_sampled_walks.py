"""Walks on sampled factors: the same factors examined and the same steps as the plain kernel, and exact
matrices.
"""

from functools import cache

import numpy as np
import pytest

import plain_transitions as reference
from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.evaluators.delayed import DelayedAcceptance
from factorwise.inference.mcmc.evaluators.minibatch import PoissonMinibatch
from factorwise.inference.mcmc.evaluators.sampled import ConfidenceSample, UniformSample
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
)
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.primitives import overlap
from factorwise.model.model import Model
from factorwise.model.templates import (
    ClusterSize,
    ClusterTemplate,
    CountedTemplate,
    EdgeTemplate,
    Key,
    PairTemplate,
    VectorPairTemplate,
)
from factorwise.rng import Stream
from factorwise.testing import check_walk, exact_distribution, transition_matrix
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import halves, mixtures, model_of
from tally_cases import TALLIES

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


EVALUATORS = {
    "share": UniformSample(0.3),
    "sum of a share": UniformSample(0.5, estimate="sum"),
    "everything as a share": UniformSample(1.0),
    "hardly any": UniformSample(0.01),
    "confidence": ConfidenceSample(1.0),
    "sum by confidence": ConfidenceSample(1.5, minimum=3, growth=1.7, estimate="sum"),
    "certainty": ConfidenceSample(0.0, z=1.0),
    "anything goes": ConfidenceSample(100.0, minimum=2),
    "two strata": ConfidenceSample(1.0, minimum=3, pooled=False),
    "sums of two strata": ConfidenceSample(1.5, minimum=3, growth=1.7, estimate="sum", pooled=False),
    "delayed": DelayedAcceptance(UniformSample(0.3)),
    "delayed by confidence": DelayedAcceptance(ConfidenceSample(1.0, pooled=False)),
}
RELOCATIONS = ("to cluster", "to item", "to candidate", "relocations", "blocks")


@pytest.mark.parametrize("hastings", [True, False])
@pytest.mark.parametrize("name", EVALUATORS)
def test_every_evaluator_examines_the_same_factors_as_the_plain_kernel(name, hastings):
    evaluator, changed = EVALUATORS[name], 0
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()], [0.7, 0.3])
    kernel = Metropolis(model(), mixture, evaluator, hastings)
    world = Partition.from_keys(np.arange(N) % 2)
    walks = Walk(kernel, world), Walk(kernel, world, interpreted=True)
    plain = PlainEngine(kernel, world, model())
    streams = Stream(3), Stream(3), Stream(3)
    for temperature in (0.8, 2.0, 0.8):
        accepted = plain.advance(streams[2], temperature, 25)
        for walk, stream in zip(walks, streams[:2], strict=True):
            assert walk.advance(stream, temperature, 25) == accepted
            assert walk.world == plain.world
            assert walk.score == pytest.approx(plain.score, abs=CLOSE)
            np.testing.assert_array_equal(stream.state, streams[2].state)
        changed += accepted
    assert changed > 0
    assert walks[0].factors_seen == walks[1].factors_seen == plain.factors_seen > 0


@pytest.mark.parametrize("name", RELOCATIONS)
def test_every_relocation_follows_the_plain_kernel(name):
    kernel = Metropolis(model(), mixtures(model(), N)[name], ConfidenceSample(0.8))
    world = Partition.from_keys(halves(N).of)
    walk, plain = Walk(kernel, world), PlainEngine(kernel, world, model())
    streams = Stream(4), Stream(4)
    changed = [(walk.advance(streams[0], 1.2, 20), plain.advance(streams[1], 1.2, 20)) for _ in range(4)]
    assert all(fast == slow for fast, slow in changed)
    assert sum(fast for fast, _ in changed) > 0
    assert walk.world == plain.world
    assert walk.factors_seen == plain.factors_seen


def test_examining_all_factors_in_rows_is_the_exact_walk():
    for name in (*RELOCATIONS, "in turn"):
        moves = mixtures(model(), N)["blocks" if name == "in turn" else name]
        if name == "in turn":
            moves = PartitionMixture([RelocateToItem(halves(N), in_turn=True), RelocateToNew()], [0.7, 0.3])
        world = Partition.from_keys(halves(N).of)
        rows = Walk(Metropolis(model(), moves, UniformSample(1.0)), world)
        columns = Walk(Metropolis(model(), moves), world)
        assert rows.advance(Stream(5), 1.0, 2_000) == columns.advance(Stream(5), 1.0, 2_000) > 0
        assert rows.world == columns.world
        assert 2 * rows.factors_seen == columns.factors_seen  # by two programs


def test_a_small_share_examines_few_factors():
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()])
    world = Partition.from_labels(np.zeros(N, int))
    seen = {}
    for share in (1.0, 0.1):
        walk = Walk(Metropolis(model(), mixture, UniformSample(share)), world)
        walk.advance(Stream(8), 0.01, 200)  # cold: the world stays as it is
        seen[share] = walk.factors_seen
    assert seen[0.1] < 0.2 * seen[1.0]


def test_the_library_samples_where_the_kernel_asks_for_it():
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew()])
    for evaluator in EVALUATORS.values():
        walk = make_engine(Metropolis(model(), mixture, evaluator), Partition.singletons(N), "compiled")
        assert isinstance(walk, Walk)
        walk.advance(Stream(2), 1.0, 200)
        assert walk.score == pytest.approx(model().score(walk.world), abs=CLOSE)


def spread(cluster):
    return (cluster.year.max() - cluster.year.min(), cluster.size == 1)


def difference(p, q):
    return abs(p - q)


def test_what_is_said_of_whole_clusters_is_always_examined():
    rng = np.random.default_rng(2)
    fields = Fields(year=rng.normal(size=N), vector=rng.normal(size=(N, 5)))
    templates = [
        *model().templates,
        ClusterSize(),
        ClusterTemplate("spread", fields, spread, ["years", "alone"]),
        VectorPairTemplate("vectors", fields, "vector", difference, repels=True),
        TALLIES["cosine"](N),
    ]
    mixed = Model(templates, rng.normal(scale=0.3, size=sum(t.size for t in templates)))
    moves = PartitionMixture([RelocateToItem(), RelocateToNew(), RetypeCluster()], [0.7, 0.3, 0.2])
    for evaluator in (UniformSample(0.4), DelayedAcceptance(UniformSample(0.4))):
        kernel = Metropolis(mixed, moves, evaluator)
        world = Partition.from_labels(np.arange(N) % 3, n_types=2)
        walk, plain = Walk(kernel, world), PlainEngine(kernel, world, mixed)
        streams = Stream(5), Stream(5)
        assert walk.advance(streams[0], 1.0, 150) == plain.advance(streams[1], 1.0, 150) > 0
        assert walk.world == plain.world
        assert walk.score == pytest.approx(plain.score, abs=1e-3)


# exactness, by every path of a step


SMALL = {
    "share": UniformSample(0.5),
    "sum": UniformSample(0.4, "sum"),
    "confidence": ConfidenceSample(0.6, minimum=2),
    "confidence by leaps": ConfidenceSample(0.4, minimum=2, growth=1.6, estimate="sum"),
    "two strata": ConfidenceSample(0.8, minimum=2, pooled=False),
}


def relocations(weights=(1.0, 0.4)):
    return PartitionMixture([RelocateToItem(), RelocateToNew()], weights)


def strong(model):
    """The same with weights so large that samples differ from the whole."""
    return Model(model.templates, 3.0 * model.weights)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
@pytest.mark.parametrize("name", SMALL)
def test_steps_lead_where_the_enumerated_samples_say(name, temperature):
    kernel = Metropolis(strong(model_of(["reals", "sizes"], 5)), relocations(), SMALL[name])
    worlds = all_partitions(5)
    found = transition_matrix(kernel, worlds, temperature)
    np.testing.assert_allclose(
        found, reference.transition_matrix(kernel, worlds, temperature), rtol=0, atol=1e-12
    )
    exact = exact_distribution(kernel.model, worlds, temperature)
    assert np.abs(exact @ found - exact).max() > 1e-5  # samples change what a chain samples


@pytest.mark.parametrize("first", [UniformSample(0.5), ConfidenceSample(0.6, minimum=2, pooled=False)])
def test_delayed_acceptance_leaves_the_exact_distribution_invariant(first):
    kernel = Metropolis(strong(model_of(["reals", "sizes"], 5)), relocations(), DelayedAcceptance(first))
    check_walk(kernel, all_partitions(5))


def test_delayed_acceptance_is_exact_beside_changes_of_type():
    moves = PartitionMixture([RelocateToItem(), RelocateToNew(), RetypeCluster()], [1.0, 0.4, 0.5])
    model = strong(model_of(["reals", "typed"], 3))
    check_walk(Metropolis(model, moves, DelayedAcceptance(UniformSample(0.5))), all_partitions(3, 2))


# what is refused


def edges():
    return EdgeTemplate("given", N, [(0, 1)], [[1.0]], ["score"])


BAD = {
    "given pairs": (lambda: Metropolis(Model([edges()]), relocations(), UniformSample(0.5)), "'given'"),
    "merges": (
        lambda: Metropolis(model(), PartitionMixture([Merge()]), UniformSample(0.5)),
        "moves of one item",
    ),
    "a minibatch": (
        lambda: Metropolis(model(), relocations(), PoissonMinibatch(bound=9.0)),
        "PoissonMinibatch",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_sampled_in_compiled_code_is_walked_plainly(name):
    build, message = BAD[name]
    with pytest.raises(NoCompiledFormError, match=message):
        Walk(build(), Partition.singletons(N))
    with pytest.warns(PlainEngineWarning, match=message):
        assert isinstance(make_engine(build(), Partition.singletons(N)), PlainEngine)


def test_learning_from_samples_is_not_compiled():
    kernel = Metropolis(model(), relocations(), UniformSample(0.5))
    with pytest.raises(NoCompiledFormError, match="learning from UniformSample"):
        Walk(kernel, Partition.singletons(N), learning=True)


def test_worlds_across_blocks_and_other_acceptances_are_refused():
    across = PartitionMixture([RelocateToItem(Blocks.from_keys(range(N)))])
    with pytest.raises(InvalidArgumentError, match="clusters lie within blocks"):
        Walk(Metropolis(model(), across, UniformSample(0.5)), Partition.from_labels(np.zeros(N, int)))
    with pytest.raises(InvalidArgumentError, match="two stages"):
        Metropolis(model(), relocations(), DelayedAcceptance(UniformSample(0.5)), acceptance="barker")


def test_any_acceptance_may_weigh_an_estimate():
    kernel = Metropolis(model(), relocations(), UniformSample(0.5), acceptance="barker")
    world = Partition.from_keys(np.arange(N) % 2)
    walk, plain = Walk(kernel, world), PlainEngine(kernel, world, model())
    streams = Stream(3), Stream(3)
    assert walk.advance(streams[0], 1.0, 80) == plain.advance(streams[1], 1.0, 80) > 0
    assert walk.world == plain.world
