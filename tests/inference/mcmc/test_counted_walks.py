"""Walks by counts: the same steps as by pairs, and the exact distribution."""

from itertools import combinations

import numpy as np
import pytest

from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    Split,
)
from factorwise.inference.mcmc.run import sample
from factorwise.inference.mcmc.walk import Walk
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs
from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.compile.primitives import overlap
from factorwise.kernels.walks.frames import run
from factorwise.kernels.walks.loops import STAYED, STEPS
from factorwise.model.clusterings.cluster_templates import ClusterSize
from factorwise.model.clusterings.counted_templates import CountedTemplate, Key
from factorwise.model.clusterings.partition_templates import EdgeTemplate, PairTemplate
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.rng import Stream
from factorwise.testing import check_walk
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from partition_cases import nearby, within_blocks
from tally_cases import TALLIES

KEYS = [
    Key("first", ("equal", "conflict")),
    Key("middle", ("equal",), missing=0),
    Key(("first", "middle"), ("conflict",)),
    Key("coauthors"),
]


def fields_of(n):
    rng = np.random.default_rng(5)
    return Fields(
        first=rng.integers(-1, 3, n), middle=rng.integers(0, 3, n), coauthors=rng.integers(-1, 6, (n, 3))
    )


def edges_of(n, repels=False):
    pairs = [pair for pair in combinations(range(n), 2) if sum(pair) % 4 == 0]
    features = np.random.default_rng(7).normal(size=(len(pairs), 1))
    return EdgeTemplate(f"edges {repels}", n, pairs, features, ["score"], repels=repels)


def model_of(n, *others, repels=False):
    template = CountedTemplate("counted", fields_of(n), KEYS, repels=repels)
    weights = np.random.default_rng(6).normal(scale=0.5, size=template.size + sum(t.size for t in others))
    return Model([template, *others], -weights if repels else weights)


MODELS = {
    "counts": lambda n: model_of(n),
    "counts and sizes": lambda n: model_of(n, ClusterSize()),
    "counts and edges": lambda n: model_of(n, edges_of(n), edges_of(n, repels=True)),
    "repulsion": lambda n: model_of(n, ClusterSize(), repels=True),
}
ITEMS = PartitionMixture([RelocateToItem(), RelocateToNew()], [0.7, 0.3])


@pytest.mark.parametrize("case", MODELS)
def test_walks_by_counts_leave_the_exact_distribution_invariant(case):
    model = MODELS[case](4)
    mixture = PartitionMixture([RelocateToItem(), RelocateToNew(), Merge(), Split()], [1.0, 0.5, 0.4, 0.6])
    for kernel in (Metropolis(model, mixture), PartitionGibbs(model)):
        check_walk(kernel, all_partitions(4))


@pytest.mark.parametrize("case", MODELS)
def test_compiled_walks_follow_the_definitions(case):
    n = 17
    model = MODELS[case](n)
    blocks = Blocks.from_keys((np.arange(n) * 7 % n > n // 3).astype(int))
    mixtures = {
        "items": ITEMS,
        "blocks": PartitionMixture([RelocateToNew(), RelocateToItem(blocks)], [0.4, 0.6]),
    }
    for mixture in mixtures.values():
        kernel, world = Metropolis(model, mixture), Partition.singletons(n)
        walk, stream, twin = Walk(kernel, world), Stream(3), Stream(3)
        changed = 0
        for _ in range(120):
            step = kernel.step(stream, world, 0.7)
            assert walk.advance(twin, 0.7, 1) == step.accepted
            if step.accepted:
                world.apply(step.diff)
                changed += 1
        assert walk.world == world
        assert walk.score == pytest.approx(model.score(world))
        assert changed > 10


def test_counts_stay_right_over_many_steps():
    n = 200
    model = MODELS["counts and sizes"](n)
    walk = Walk(Metropolis(model, ITEMS), Partition.singletons(n))
    assert walk.score == pytest.approx(model.score(walk.world))
    assert walk.advance(Stream(1), 20.0, 50_000) > 1_000
    assert walk.score == pytest.approx(model.score(walk.world), abs=1e-6)


def thirds(n):
    """Blocks of different sizes, the last of one item."""
    return Blocks.from_keys((np.arange(n) * 7 % n > n // 3).astype(int) + (np.arange(n) == n - 1) * 2)


def mixtures(n):
    pairs = [(i, i + 2) for i in range(0, n - 2, 2)] + [(1, 3), (3, 5)]
    return {
        "blocks in turn": PartitionMixture(
            [RelocateToNew(), RelocateToItem(thirds(n), in_turn=True)], [0.4, 0.6]
        ),
        "candidates": PartitionMixture([RelocateToCandidate.from_pairs(n, pairs), RelocateToNew()]),
        "all": PartitionMixture([nearby(n), RelocateToItem(), RelocateToNew()], [1.0, 0.4, 0.7]),
        "no way back": PartitionMixture([RelocateToItem()]),
        "only apart": PartitionMixture([RelocateToNew()]),
        "nothing to propose": PartitionMixture([RelocateToCandidate.from_pairs(n, [])]),
        "with splits": PartitionMixture([RelocateToItem(), RelocateToNew(), Merge(), Split()]),
    }


def by_hand(a, b):
    """The features of `KEYS` as a function that nothing is known of."""
    first, middle = a.first >= 0 and b.first >= 0, a.middle > 0 and b.middle > 0
    both = first and a.middle >= 0 and b.middle >= 0
    return (
        first and a.first == b.first,
        first and a.first != b.first,
        middle and a.middle == b.middle,
        both and not (a.first == b.first and a.middle == b.middle),
        overlap(a.shifted, b.shifted),
        1,
    )


@pytest.mark.parametrize("hastings", [True, False])
@pytest.mark.parametrize("name", mixtures(17))
def test_counts_and_scans_of_all_pairs_take_the_same_steps(name, hastings):
    n = 17
    fields = fields_of(n)
    columns = {key: field.values for key, field in fields.columns.items()}
    shifted = Fields(**columns, shifted=columns["coauthors"] + 1)
    counted = MODELS["counts and edges"](n)
    scanned = Model(
        [
            PairTemplate("counted", shifted, by_hand, counted.templates[0].statistic_names),
            *counted.templates[1:],
        ],
        counted.weights,
    )
    world = Partition.singletons(n) if "candidates" in name else Partition.from_keys(thirds(n).of)
    kernels = [Metropolis(model, mixtures(n)[name], hastings=hastings) for model in (counted, scanned)]
    walks = [Walk(kernels[0], world), Walk(kernels[1], world), Walk(kernels[0], world, interpreted=True)]
    streams = [Stream(11) for _ in walks]
    total = 0
    for temperature in (0.7, 2.0, 0.3):
        changed = [w.advance(s, temperature, 60) for w, s in zip(walks, streams, strict=True)]
        assert changed[0] == changed[1] == changed[2]
        assert walks[0].world == walks[1].world == walks[2].world
        assert walks[0].score == pytest.approx(counted.score(walks[0].world), abs=1e-9)
        total += changed[0]
    assert walks[0].factors_seen == walks[1].factors_seen
    np.testing.assert_array_equal(streams[0].state, streams[1].state)
    np.testing.assert_array_equal(streams[0].state, streams[2].state)
    stuck = name == "nothing to propose" or (name == "only apart" and hastings)
    assert (total == 0) == stuck


def bound_counts(model, world, groups=None, interpreted=False):
    """The programs of a model, ready to be called by role."""
    programs = model_programs(model, world, groups=groups)
    frame = world.frame(np.zeros(2, np.uint64), weights=model.blocks.size)._replace(world=programs.arrays)
    found = [Interpreted(p, frame, None) if interpreted else Bound(p, frame) for p in programs.templates]
    for one in found:
        run(one, "begin")
    return found, frame


@pytest.mark.parametrize("interpreted", [True, False])
@pytest.mark.parametrize("repels", [False, True])
def test_gains_gradients_and_pairs_are_those_of_the_definition(repels, interpreted):
    n = 11
    model = model_of(n, repels=repels)
    world = Partition.from_labels([0, 0, 1, 2, 0, 3, 1, 0, 2, 1, 1])
    (one,), frame = bound_counts(model, world, interpreted=interpreted)
    step, choice, template = frame.step, frame.choice, model.templates[0]
    spare = int(world.arrays.live[world.n_clusters])
    for item in range(n):
        source = world.cluster_of(item)
        for target in [*world.cluster_ids().tolist(), spare]:
            if target == source or (target == spare and world.size_of(source) == 1):
                continue
            change = model.difference(world, world.diff_to(item, source, target)).to_dense(model.blocks.size)
            step["item"], step["source"], step["target"] = item, source, target
            frame.gradient.value[:] = 0.0
            run(one, "gradient")
            np.testing.assert_allclose(frame.gradient.value, change, atol=1e-12)
            assert run(one, "gain") == pytest.approx(change @ model.weights, abs=1e-12)
            step["choices"], choice.targets[:2], choice.out[:2] = 2, (target, source), 0.0
            run(one, "gains")
            assert choice.out[0] - choice.out[1] == pytest.approx(change @ model.weights, abs=1e-12)
        others = [other for other in range(n) if other != item]
        step["item"], step["choices"] = item, len(others)
        choice.targets[: n - 1], choice.out[: n - 1] = others, 0.0
        run(one, "pairs")
        sign = -1.0 if repels else 1.0
        expected = [
            sign * np.dot(template.between(np.array([item]), np.array([other])), model.weights)
            for other in others
        ]
        np.testing.assert_allclose(choice.out[: n - 1], expected, atol=1e-12)


def test_changes_that_are_taken_back_leave_the_counts_as_they_were():
    n = 17
    world = Partition.from_keys(thirds(n).of)
    (one,), frame = bound_counts(model_of(n), world)
    arrays = one.program.arrays
    kept = np.sort(arrays["slots"]), arrays["having"].copy()
    spare = int(world.arrays.live[world.n_clusters])
    for item in range(n):
        source = world.cluster_of(item)
        for here, there in ((source, spare), (spare, source)):
            frame.step["item"], frame.step["source"], frame.step["target"] = item, here, there
            run(one, "applied")
        np.testing.assert_array_equal(np.sort(arrays["slots"]), kept[0])
        np.testing.assert_array_equal(arrays["having"], kept[1])


def test_a_walk_within_blocks_leaves_the_distribution_within_them_invariant():
    blocks = Blocks.from_keys([0, 0, 0, 1, 1])
    worlds = [world for world in all_partitions(5) if within_blocks(world, blocks)]
    mixture = PartitionMixture([RelocateToItem(blocks), RelocateToNew()], [0.6, 0.4])
    check_walk(Metropolis(MODELS["counts and sizes"](5), mixture), worlds)


@pytest.mark.parametrize("name", ["blocks in turn", "candidates"])
def test_tables_of_groups_are_small_and_count_the_same(name):
    n = 60
    mixture = mixtures(n)[name]
    groups = mixture.groups(Partition.singletons(n))
    assert len(np.unique(groups)) > 1
    model = MODELS["counts and edges"](n)
    walk = Walk(Metropolis(model, mixture), Partition.singletons(n))
    apart = walk.parts.templates[0].program.arrays["slots"]
    together = bound_counts(model, Partition.singletons(n))[0][0].program.arrays["slots"]
    assert len(apart) < len(together)
    assert walk.advance(Stream(2), 20.0, 20_000) > 1_000
    assert walk.score == pytest.approx(model.score(walk.world), abs=1e-7)


def test_only_what_keeps_items_apart_makes_groups():
    n, world = 12, Partition.from_keys(np.arange(12) // 4)
    blocks = thirds(n)
    by_candidates = RelocateToCandidate.from_pairs(n, [(0, 1)])
    assert PartitionMixture([RelocateToItem(), RelocateToNew()]).groups(world) is None
    assert PartitionMixture([by_candidates, Merge()]).groups(world) is None
    assert PartitionMixture([by_candidates, RelocateToCluster()]).groups(world) is None
    np.testing.assert_array_equal(
        PartitionMixture([RelocateToItem(blocks), Split()]).groups(world), blocks.of
    )
    found = PartitionMixture([by_candidates, RelocateToNew()]).groups(world)
    np.testing.assert_array_equal(
        found, world.labels
    )  # clusters that candidates do not connect are one group
    np.testing.assert_array_equal(by_candidates.groups(world), world.labels)


def test_gains_cost_look_ups_instead_of_factors():
    n = 60
    walk = Walk(Metropolis(MODELS["counts"](n), ITEMS), Partition.from_labels(np.zeros(n, int)))
    walk.advance(Stream(3), 1.0, 30)
    look_ups = int(walk.parts.templates[0].program.arrays["look_ups"][0])
    assert 0 < look_ups < walk.factors_seen / 2


def test_an_item_alone_is_looked_up_only_where_it_goes():
    fields = Fields(first=np.array([7, 7]), middle=np.array([3, 3]))
    template = CountedTemplate("counted", fields, [Key("first"), Key("middle")])
    walk = Walk(Metropolis(Model([template], np.ones(template.size)), ITEMS), Partition.singletons(2))
    while walk.parts.walk.tally[STEPS] == walk.parts.walk.tally[STAYED]:
        walk.advance(Stream(int(walk.parts.walk.tally[STEPS])), 1.0, 1)
    assert walk.parts.templates[0].program.arrays["look_ups"][0] == 2
    assert walk.score == template.size


def test_blocks_are_visited_in_turn_and_stay_apart():
    n = 30
    blocks = thirds(n)
    walk = Walk(Metropolis(MODELS["counts"](n), mixtures(n)["blocks in turn"]), Partition.singletons(n))
    for block, size in enumerate(np.diff(blocks.start).tolist()):
        walk.advance(Stream(block), 2.0, size)
        labels = walk.world.dense_labels()
        np.testing.assert_array_equal(np.bincount(labels)[labels[blocks.of > block]], 1)
    assert walk.world.n_clusters < n
    assert within_blocks(walk.world, blocks)


def test_any_templates_may_stand_beside_counts():
    n = 17
    model = model_of(n, TALLIES["cosine"](n), ClusterSize())
    walk = Walk(Metropolis(model, mixtures(n)["blocks in turn"]), Partition.singletons(n, n_types=2))
    assert walk.advance(Stream(4), 1.0, 2_000) > 0
    assert walk.score == pytest.approx(model.score(walk.world), abs=1e-9)


def test_chains_of_one_kernel_share_the_layout():
    n = 17
    kernel = Metropolis(MODELS["counts"](n), mixtures(n)["blocks in turn"])
    first, second = (
        Walk(kernel, Partition.singletons(n)).parts.templates[0].program.arrays for _ in range(2)
    )
    assert first["entries"] is second["entries"]
    assert first["slots"] is not second["slots"]
    drawn = sample(kernel, Partition.singletons(n), draws=20, thin=5, chains=2, seed=1, progress=False)
    assert drawn.scores.shape == (2, 20)
    assert drawn.best_score == pytest.approx(kernel.model.score(drawn.best))
