"""Walks that take gains from gradients: their gradients, their counts, and the exact distribution."""

import warnings
from functools import cache
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.stats import binomtest

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.inference.mcmc.acceptances import ALWAYS, GREEDY
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.best_of import BestOf
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.proposals.restricted_gibbs import RestrictedGibbs
from factorwise.inference.mcmc.run import anneal, sample
from factorwise.inference.mcmc.walk import Walk
from factorwise.inference.mcmc.world_gibbs import PartitionGibbs
from factorwise.kernels.walks.loops import walk_moves
from factorwise.learning.samplerank.contrastive import path_from_truth, path_programs
from factorwise.learning.updates import Unit
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.testing import check_walk
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from partition_cases import halves, mixtures, start_for, within_blocks
from walk_cases import EVERY, mixed_model, statistics_of, table_for

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CLOSE = 1e-4  # of scores: fields are in single precision

WALKS = tuple(
    name for name in mixtures(Mock(spec=Model), 4) if "restricted" not in name and name != "everything"
)
WALKS = (*WALKS, "all but restricted")
MODELS = {
    "everything": (
        (
            *("numbers", "rows", "vectors", "edges", "repelling edges", "repelling pairs"),
            *("clusters", "typed", "counts", "majority of pairs"),
        ),
        (33, 2),
        EVERY,
    ),
    "tables": ((), (4,), ("count", "all", "exists", "majority", "mean")),
    "links": ((), (3,), ("linked", "per member")),
    "edges": (("edges", "sizes"), (), EVERY),
}


@cache
def model_for(case, n):
    names, widths, aggregates = MODELS[case]
    tables = [table_for(n, width, seed, share_of(n)) for seed, width in enumerate(widths)]
    return mixed_model(n, names, tables, aggregates)


def share_of(n):
    """Few features in large worlds, so that some members have none in common with others."""
    return 0.6 if n < 20 else 0.15


class Followed:
    """A walk that learns nothing and adds up the gradients of what it accepts, in ``path``."""

    def __init__(self, model, proposer, world, acceptance="metropolis", *, interpreted=False):
        arrays = Unit().arrays(model.blocks.size)
        arrays.weights[:] = model.weights
        path = path_from_truth(arrays, persistent=True)
        self.path, self.model = path["path"], model
        self.walk = Walk(
            Metropolis(model, proposer, acceptance=acceptance),
            world,
            weights=arrays.weights,
            learning=True,
            interpreted=interpreted,
            kept=path_programs(path)["kept"],
        )

    def tables(self):
        parts = self.walk.parts.templates
        return next(part.program.arrays for part in parts if part.program.name == "tables of pairs")


def followed(case, n, name, world, acceptance="metropolis", **options):
    model = model_for(case, n)
    return Followed(model, mixtures(model, n)[name], world, acceptance, **options)


def assert_counts_are_kept(followed, case):
    """Counts and links are those of a look at all pairs of each cluster."""
    widths, aggregates = MODELS[case][1:]
    if not widths:
        return
    tables, world = followed.tables(), followed.walk.view
    place = 0
    for seed, width in enumerate(widths):
        table = table_for(world.n_items, width, seed, share_of(world.n_items))
        columns = slice(place, place + width)
        for cluster in world.cluster_ids().tolist():
            members = world.members(cluster)
            links = np.zeros((len(members), width), int)
            for row, item in enumerate(members):
                links[row] = table.rows(item, members[members != item]).sum(axis=0)
            np.testing.assert_array_equal(2 * tables["counts"][cluster, columns], links.sum(axis=0))
            if "linked" in aggregates:
                np.testing.assert_array_equal(tables["links"][members, columns], links)
        place += -(-width // 32) * 32


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("case", MODELS)
def test_the_gradient_of_every_step_is_the_difference_of_two_worlds(case, name, n_types):
    """By the statistics of the whole worlds before and after.

    Moves of one change and of many, and of types.
    """
    found = followed(case, 9, name, start_for(9, n_types), ALWAYS)
    stream = Stream(3)
    before, moved = statistics_of(found.model, found.walk.view), 0
    for _ in range(60):
        found.path[:] = 0.0
        moved += found.walk.advance(stream, 1.0, 1)
        after = statistics_of(found.model, found.walk.view)
        np.testing.assert_allclose(found.path, after - before, rtol=1e-5, atol=1e-5)
        before = after
    assert moved > 15
    assert_counts_are_kept(found, case)


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("name", WALKS)
def test_every_walk_is_the_same_interpreted(name, n_types):
    fast, slow = (
        followed("everything", 9, name, start_for(9, n_types), interpreted=interpreted)
        for interpreted in (False, True)
    )
    streams = Stream(3), Stream(3)
    changed = 0
    for temperature in (0.7, 3.0) * 3:
        accepted = slow.walk.advance(streams[1], temperature, 8)
        assert fast.walk.advance(streams[0], temperature, 8) == accepted
        assert fast.walk.world == slow.walk.world
        assert fast.walk.score == pytest.approx(slow.walk.score, abs=CLOSE)
        np.testing.assert_allclose(fast.path, slow.path, atol=CLOSE)
        np.testing.assert_array_equal(streams[0].state, streams[1].state)
        changed += accepted
    assert changed > 0


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("case", MODELS)
def test_the_gradients_of_a_long_walk_add_up_to_the_difference_of_its_ends(case, name, n_types):
    """Clusters grow out of their blocks of memory, which are laid out anew now and then."""
    start = start_for(40, n_types)
    found = followed(case, 40, name, start)
    model, walk = found.model, found.walk
    before = statistics_of(model, start)
    assert walk.score == pytest.approx(model.score(start))
    changed = walk.advance(Stream(5), 500.0, 3_000)
    assert changed > 300
    changed += walk.advance(Stream(6), 1.0, 1_000)
    expected = statistics_of(model, walk.view) - before
    np.testing.assert_allclose(found.path, expected, rtol=1e-5, atol=1e-5 * changed)
    assert walk.score == pytest.approx(model.score(walk.view), rel=1e-5, abs=1e-5 * changed)
    assert case == "edges" or walk.factors_seen > changed
    assert_counts_are_kept(found, case)


def test_clusters_of_more_members_than_eight_bits_can_count_are_followed():
    n = 620
    table = PairTable(n, ["always", "odd"], np.tile([1, 0], (n * (n - 1) // 2, 1)))
    table.padded[::2, 1] = 1
    model = Model([PairTableTemplate("table", table, EVERY)])
    moves = [Merge(), Split(), SplitMerge(), RelocateToItem(), RelocateToNew()]
    start = Partition.from_labels([0] * 530 + [1] * 90)
    found = Followed(model, PartitionMixture(moves), start)
    before = statistics_of(model, start)
    for seed in range(16):
        found.walk.reset(start)
        found.path[:] = 0.0
        found.walk.advance(Stream(seed), 1.0, 1 + seed // 4)
        expected = statistics_of(model, found.walk.view) - before
        np.testing.assert_allclose(found.path, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("name", WALKS)
def test_models_with_tables_are_sampled_exactly(name, n_types):
    """By all paths of one step from every world, at three temperatures."""
    n = 4 if n_types == 1 else 3
    model = model_for("tables", n)
    worlds = [w for w in all_partitions(n, n_types) if "blocks" not in name or within_blocks(w, halves(n))]
    kernel = Metropolis(model, mixtures(model, n)[name])
    reaches = name in ("to cluster", "to item", "relocations", "all but restricted")
    check_walk(kernel, worlds, irreducible=n_types == 1 and reaches)


@pytest.mark.statistical
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_sampling_a_model_with_a_table_gives_the_exact_chances_of_being_together(temperature, seed):
    """Four hundred chains of one draw each: the draws are independent, so that counts are binomial."""
    chains = 400
    model = model_for("tables", 5)
    kernel = Metropolis(model, mixtures(model, 5)["all but restricted"])
    pairs = [(i, j) for i in range(5) for j in range(i)]
    options = {"draws": 1, "burn_in": 400, "chains": chains, "pairs": pairs, "progress": False}
    found = sample(kernel, Partition.singletons(5), seed=seed, temperature=temperature, **options)
    together = PartitionEnumeration(model, 5, temperature=temperature).together()
    counts = (found.co_clustering() * chains).round().astype(int).tolist()
    for (i, j), count in zip(pairs, counts, strict=True):
        assert binomtest(count, chains, float(together[i, j])).pvalue > FALSE_ALARM / len(pairs)


def test_draws_do_not_depend_on_the_number_of_threads():
    model = model_for("tables", 40)
    kernel = Metropolis(model, mixtures(model, 40)["all but restricted"])
    runs = [
        sample(kernel, start_for(40), draws=30, thin=20, chains=3, threads=threads, progress=False)
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].scores, runs[1].scores)
    assert runs[0].last == runs[1].last
    for world, score in zip(runs[0].last, runs[0].scores[:, -1], strict=True):
        assert score == pytest.approx(model.score(world))


def test_annealing_a_model_with_a_table_finds_the_best_world():
    model = model_for("tables", 5)
    kernel = Metropolis(model, mixtures(model, 5)["all but restricted"])
    found = anneal(kernel, Partition.singletons(5), steps=4_000, progress=False, engine="compiled")
    best = PartitionEnumeration(model, 5).best
    assert found.best == best
    assert found.best_score == pytest.approx(model.score(best))


REFUSED = {
    "restricted Gibbs": (
        lambda model: Metropolis(model, PartitionMixture([RestrictedGibbs(model, 1)])),
        "leave it out of the mixture, or use engine='plain'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_compiled_form_with_tables_is_refused_or_walks_plainly(name):
    build, remedy = REFUSED[name]
    model = model_for("tables", 5)
    kernel, world = build(model), Partition.singletons(5)
    with pytest.raises(NoCompiledFormError, match=remedy):
        make_engine(kernel, world, "compiled")
    with pytest.warns(PlainEngineWarning, match="walking in plain Python"):
        engine = make_engine(kernel, world, "auto")
    assert isinstance(engine, PlainEngine)
    engine.advance(Stream(0), 1.0, 20)
    assert engine.score == pytest.approx(model.score(engine.world))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(make_engine(kernel, world, "plain"), PlainEngine)


def test_gibbs_steps_under_tables_are_exact_and_compiled_as_they_are_written():
    check_walk(PartitionGibbs(model_for("tables", 4)), all_partitions(4))
    kernel, world = PartitionGibbs(model_for("tables", 12)), Partition.singletons(12)
    compiled, interpreted = Walk(kernel, world), Walk(kernel, world, interpreted=True)
    for walk in (compiled, interpreted):
        walk.advance(Stream(3), 1.0, 60)
    assert compiled.view == interpreted.view
    assert compiled.score == pytest.approx(kernel.model.score(compiled.view))


def test_a_world_across_blocks_and_a_proposer_of_ones_own_are_refused():
    model = model_for("tables", 5)
    blocked = PartitionMixture([RelocateToItem(Blocks.from_keys(range(5))), RelocateToNew()])
    for proposer in (blocked, BestOf(blocked, 2)):
        with pytest.raises(InvalidArgumentError, match="clusters lie within blocks"):
            Walk(Metropolis(model, proposer, acceptance=GREEDY), Partition.from_labels([0] * 5))
    for proposer in (object(), BestOf(object(), 2)):
        with pytest.raises(
            NoCompiledFormError, match=r"object has no program: give it a method program\(parts\)"
        ):
            Walk(Metropolis(model, proposer, acceptance=GREEDY), Partition.singletons(5))


def test_standing_in_a_world_of_other_items_or_types_is_refused():
    walk = followed("tables", 5, "to item", Partition.singletons(5)).walk
    with pytest.raises(ShapeError, match="give a world of the same items and types"):
        walk.reset(Partition.singletons(4))
    with pytest.raises(ShapeError, match="give a world of the same items and types"):
        walk.reset(Partition.singletons(5, n_types=2))


def test_after_a_reset_everything_is_that_of_the_new_world():
    found = followed("everything", 9, "all but restricted", start_for(9, 2))
    found.walk.advance(Stream(1), 2.0, 100)
    there = Partition.from_labels([0, 0, 0, 0, 1, 1, 1, 2, 2], types=[1, 0, 1], n_types=2)
    found.walk.reset(there)
    assert found.walk.world == there
    assert found.walk.score == pytest.approx(found.model.score(there))
    assert_counts_are_kept(found, "everything")
    fresh = followed("everything", 9, "all but restricted", there)
    for each in (found, fresh):
        each.path[:] = 0.0
        each.walk.advance(Stream(2), 2.0, 100)
    assert found.walk.world == fresh.walk.world
    assert found.walk.score == pytest.approx(fresh.walk.score, abs=CLOSE)
    np.testing.assert_array_equal(found.path, fresh.path)


def test_the_world_given_to_the_walk_stays_as_it_is():
    world = start_for(9)
    before = world.copy()
    assert followed("everything", 9, "relocations", world).walk.advance(Stream(0), 2.0, 50) > 0
    assert world == before


@pytest.mark.parametrize("name", WALKS)
def test_a_single_item_never_moves(name):
    if name in ("to candidate", "candidates and merge") or "blocks" in name:
        return
    walk = followed("tables", 1, name, Partition.singletons(1)).walk
    assert walk.advance(Stream(0), 1.0, 20) == 0
    assert walk.score == 0.0


def test_a_negative_number_of_steps_and_a_temperature_of_zero_are_refused():
    walk = followed("tables", 5, "to item", Partition.singletons(5)).walk
    with pytest.raises(InvalidArgumentError, match="steps must be zero or more"):
        walk.advance(Stream(0), 1.0, -1)
    with pytest.raises(InvalidArgumentError, match="temperature must be greater than zero"):
        walk.advance(Stream(0), 0.0, 1)


def small_model(learning):
    """Whole numbers while learning, so that gains of compiled code and of the definition tie alike."""
    if learning:
        return Model([PairTableTemplate("table", table_for(9, 3), ("count", "all"))], np.arange(6.0) - 3.0)
    return mixed_model(9, ("numbers", "clusters", "typed", "sizes"), [])


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("n_types", [1, 2])
def test_the_best_of_several_moves_is_the_one_that_the_model_says(n_types, learning):
    """Compiled against the definition: draw by the proposer, compare gains of whole diffs."""
    moves = [RelocateToCluster(), RelocateToItem(), RelocateToNew(), RetypeCluster()]
    model, proposer, world = small_model(learning), PartitionMixture(moves), start_for(9, n_types)
    walk = Walk(Metropolis(model, BestOf(proposer, 4), acceptance=ALWAYS), world, learning=learning)
    best, stream, twin = BestOf(proposer, 4, model), Stream(8), Stream(8)
    moved = 0
    for _ in range(60):
        here = walk.world  # in the same order of storage
        expected = best.draw(twin, here).diff
        before, gain = model.score(here), 0.0 if expected is None else model.gain(here, expected)
        moved += walk.advance(stream, 1.0, 1)
        if expected is not None:
            here.apply(expected)
        tied = gain == pytest.approx(model.score(walk.view) - before, abs=1e-9)  # two may be best
        assert walk.world == here or tied
        np.testing.assert_array_equal(stream.state, twin.state)
    assert moved > 40


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("n_types", [1, 2])
def test_the_best_of_several_large_moves_is_the_same_interpreted_and_leaves_no_trace_of_the_others(
    n_types, learning
):
    """The moves that are not taken were made and taken back: scores and counts are those of the world."""
    model, world = small_model(learning), start_for(9, n_types)
    kernel = Metropolis(model, BestOf(mixtures(model, 9)["all but restricted"], 4), acceptance="unbalanced")
    fast, slow = (Walk(kernel, world, learning=learning, interpreted=plain) for plain in (False, True))
    streams = Stream(8), Stream(8)
    for _ in range(12):
        assert fast.advance(streams[0], 2.0, 5) == slow.advance(streams[1], 2.0, 5)
        assert fast.world == slow.world
        assert fast.score == pytest.approx(model.score(fast.view), abs=CLOSE)
        np.testing.assert_array_equal(streams[0].state, streams[1].state)


def test_the_best_of_no_moves_is_to_stay():
    model = model_for("tables", 1)
    kernel = Metropolis(model, BestOf(mixtures(model, 1)["to item"], 3), acceptance=ALWAYS)
    assert Walk(kernel, Partition.singletons(1)).advance(Stream(0), 1.0, 10) == 0


def test_one_compiled_loop_serves_all_models_and_all_moves():
    for case in MODELS:
        for name in ("relocations", "all but restricted", "blocks"):
            followed(case, 9, name, start_for(9)).walk.advance(Stream(0), 1.0, 2)
    assert len(walk_moves.signatures) == 1
