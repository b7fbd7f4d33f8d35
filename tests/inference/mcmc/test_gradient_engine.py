"""The compiled walk that takes gradients: its steps, its sums, its counts, and the exact distribution."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError
from factorwise.inference.exact.clusterings import PartitionEnumeration, all_partitions
from factorwise.inference.mcmc.engine import PlainEngine, PlainEngineWarning, make_engine
from factorwise.inference.mcmc.gradient_engine import GradientEngine, Manner
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.partition_engine import PartitionEngine
from factorwise.inference.mcmc.partition_gibbs import PartitionGibbs
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import (
    Blocks,
    Merge,
    RelocateToItem,
    RelocateToNew,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.restricted_gibbs import RestrictedGibbs
from factorwise.inference.mcmc.run import anneal, sample
from factorwise.kernels.clusterings.gradient_walks import samplerank_walk
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.table_templates import PairTableTemplate
from factorwise.rng import Stream
from factorwise.testing import exact_distribution
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from partition_cases import halves, mixtures, model_of, start_for, within_blocks
from thinning import thinned
from walk_cases import EVERY, mixed_model, statistics_of, table_for

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
CLOSE = 1e-4  # of scores: fields are in single precision

WALKS = tuple(name for name in mixtures(None, 4) if "restricted" not in name and name != "everything")
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
def program_of(case, n):
    names, widths, aggregates = MODELS[case]
    tables = [table_for(n, width, seed, share_of(n)) for seed, width in enumerate(widths)]
    return PartitionProgram(mixed_model(n, names, tables, aggregates), n)


def share_of(n):
    """Few features in large worlds, so that some members have none in common with others."""
    return 0.6 if n < 20 else 0.15


def engine_for(case, n, walk, world):
    program = program_of(case, n)
    return GradientEngine(Metropolis(program.model, mixtures(program.model, n)[walk]), world, program=program)


def assert_counts_are_kept(engine, case):
    """Counts and links are those of a look at all pairs of each cluster, and the row of zeros is one."""
    tables, n = engine._tables, engine.view.n_items
    widths, aggregates = MODELS[case][1:]
    place = 0
    for seed, width in enumerate(widths):
        table = table_for(n, width, seed, share_of(n))
        columns = slice(place, place + width)
        for cluster in engine.view.cluster_ids().tolist():
            members = engine.view.members(cluster)
            links = np.zeros((len(members), width), int)
            for row, item in enumerate(members):
                links[row] = table.rows(item, members[members != item]).sum(axis=0)
            np.testing.assert_array_equal(2 * tables.counts[cluster, columns], links.sum(axis=0))
            if "linked" in aggregates:
                np.testing.assert_array_equal(tables.links[members, columns], links)
        place += -(-width // 32) * 32
    assert not tables.counts[-1:].any()
    assert not engine.view.arrays.items["mark"].any()


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("walk", WALKS)
def test_every_walk_follows_the_plain_one(walk, n_types):
    engine = engine_for("everything", 9, walk, start_for(9, n_types))
    plain = PlainEngine(engine.kernel, start_for(9, n_types), engine.kernel.model)
    fast, slow = Stream(3), Stream(3)
    changed = 0
    for temperature in (0.7, 3.0) * 3:
        accepted = plain.advance(slow, temperature, 8)
        assert engine.advance(fast, temperature, 8) == accepted
        assert engine.world == plain.world
        assert engine.score == pytest.approx(plain.score, abs=CLOSE)
        np.testing.assert_array_equal(fast.state, slow.state)
        changed += accepted
    assert changed > 0
    assert_counts_are_kept(engine, "everything")


@pytest.mark.parametrize("n_types", [1, 2])
@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("case", MODELS)
def test_the_gradients_of_a_long_walk_add_up_to_the_difference_of_its_ends(case, walk, n_types):
    """Clusters grow out of their blocks of memory, which are laid out anew now and then."""
    start = start_for(40, n_types)
    engine = engine_for(case, 40, walk, start)
    model = engine.kernel.model
    before = statistics_of(model, start)
    assert engine.score == pytest.approx(model.score(start))
    changed = engine.advance(Stream(5), 500.0, 3_000)
    assert changed > 300
    changed += engine.advance(Stream(6), 1.0, 1_000)
    expected = statistics_of(model, engine.world) - before
    np.testing.assert_allclose(engine.path, expected, rtol=1e-5, atol=1e-5 * changed)
    assert engine.score == pytest.approx(model.score(engine.world), rel=1e-5, abs=1e-5 * changed)
    assert engine.factors_seen > changed
    assert_counts_are_kept(engine, case)


def test_clusters_of_more_members_than_eight_bits_can_count_are_followed():
    n = 620
    table = PairTable(n, ["always", "odd"], np.tile([1, 0], (n * (n - 1) // 2, 1)))
    table.padded[::2, 1] = 1
    model = Model([PairTableTemplate("table", table, EVERY)])
    moves = [Merge(), Split(), SplitMerge(), RelocateToItem(), RelocateToNew()]
    start = Partition.from_labels([0] * 530 + [1] * 90)
    engine = GradientEngine(Metropolis(model, PartitionMixture(moves)), start)
    before = statistics_of(model, start)
    for seed in range(16):
        engine.reset(start)
        engine.path[:] = 0.0
        engine.advance(Stream(seed), 1.0, 1 + seed // 4)
        expected = statistics_of(model, engine.world) - before
        np.testing.assert_allclose(engine.path, expected, rtol=1e-9, atol=1e-9)


TYPED = ("typed relocations", "typed all but restricted", "typed blocks and more")


@cache
def equilibrium(n_types, blocked, temperature):
    """A program, the worlds of five items (four with types) and their probabilities."""
    n = 5 if n_types == 1 else 4
    program = program_of("tables", n)
    worlds = [w for w in all_partitions(n, n_types) if not blocked or within_blocks(w, halves(n))]
    return program, worlds, exact_distribution(program.model, worlds, temperature)


@pytest.mark.statistical
@pytest.mark.parametrize(("walk", "temperature"), thinned((*WALKS, *TYPED), [1.0, 2.5]))
def test_chains_started_in_equilibrium_stay_there(walk, temperature, seed):
    """Starts drawn exactly make the ends independent exact draws, so that the level is honest."""
    chains = 1_000
    n_types = 2 if walk in TYPED else 1
    program, worlds, target = equilibrium(n_types, "blocks" in walk, temperature)
    kernel = Metropolis(program.model, mixtures(program.model, program.n_items)[walk.removeprefix("typed ")])
    engine = GradientEngine(kernel, worlds[0], program=program)
    position = {world.canonical(): row for row, world in enumerate(worlds)}
    observed = np.zeros(len(worlds))
    stream = Stream(seed, 1)
    drawn = np.random.default_rng(seed).multinomial(chains, target)
    changed = 0
    for world, count in zip(worlds, drawn.tolist(), strict=True):
        for _ in range(count):
            engine.reset(world)
            changed += engine.advance(stream, temperature, 5)
            observed[position[engine.view.canonical()]] += 1
    assert changed > chains
    rare = chains * target < 5.0
    expected = np.append(chains * target[~rare], chains * target[rare].sum())
    observed = np.append(observed[~rare], observed[rare].sum())
    kept = expected > 0.0
    assert chisquare(observed[kept], expected[kept]).pvalue > FALSE_ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_sampling_a_model_with_a_table_gives_the_exact_chances_of_being_together(temperature, seed):
    """Four hundred chains of one draw each: the draws are independent, so that counts are binomial."""
    chains = 400
    program = program_of("tables", 5)
    kernel = Metropolis(program.model, mixtures(program.model, 5)["all but restricted"])
    pairs = [(i, j) for i in range(5) for j in range(i)]
    options = {"draws": 1, "burn_in": 400, "chains": chains, "pairs": pairs, "progress": False}
    found = sample(kernel, Partition.singletons(5), seed=seed, temperature=temperature, **options)
    together = PartitionEnumeration(program.model, 5, temperature=temperature).together()
    counts = (found.co_clustering() * chains).round().astype(int).tolist()
    for (i, j), count in zip(pairs, counts, strict=True):
        assert binomtest(count, chains, float(together[i, j])).pvalue > FALSE_ALARM / len(pairs)


def test_draws_do_not_depend_on_the_number_of_threads():
    program = program_of("tables", 40)
    kernel = Metropolis(program.model, mixtures(program.model, 40)["all but restricted"])
    runs = [
        sample(kernel, start_for(40), draws=30, thin=20, chains=3, threads=threads, progress=False)
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].scores, runs[1].scores)
    assert runs[0].last == runs[1].last
    for world, score in zip(runs[0].last, runs[0].scores[:, -1], strict=True):
        assert score == pytest.approx(program.model.score(world))


def test_annealing_a_model_with_a_table_finds_the_best_world():
    program = program_of("tables", 5)
    kernel = Metropolis(program.model, mixtures(program.model, 5)["all but restricted"])
    found = anneal(kernel, Partition.singletons(5), steps=4_000, progress=False, engine="compiled")
    best = PartitionEnumeration(program.model, 5).best
    assert found.best == best
    assert found.best_score == pytest.approx(program.model.score(best))


def test_models_with_tables_walk_by_gradients_and_others_do_not():
    table, other = program_of("tables", 5).model, model_of(("numbers", "sizes"), 5)
    world = Partition.singletons(5)
    first = make_engine(Metropolis(table, mixtures(table, 5)["relocations"]), world, "compiled")
    assert isinstance(first, GradientEngine)
    second = make_engine(first.kernel, world, "compiled", like=first)
    assert isinstance(second, GradientEngine)
    assert second.program is first.program
    assert isinstance(
        make_engine(Metropolis(other, mixtures(other, 5)["relocations"]), world, "compiled"), PartitionEngine
    )


REFUSED = {
    "restricted Gibbs": (
        lambda model: Metropolis(model, PartitionMixture([RestrictedGibbs(model, 1)])),
        "leave it out of the mixture, or run with engine='plain'",
    ),
    "Gibbs": (PartitionGibbs, "use Metropolis, or run with engine='plain'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_compiled_form_with_tables_is_refused_or_walks_plainly(name):
    build, remedy = REFUSED[name]
    model = program_of("tables", 5).model
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


def test_a_world_across_blocks_and_a_proposer_of_ones_own_are_refused():
    model = program_of("tables", 5).model
    blocked = PartitionMixture([RelocateToItem(Blocks.from_keys(range(5))), RelocateToNew()])
    with pytest.raises(InvalidArgumentError, match="clusters lie within blocks"):
        GradientEngine(Metropolis(model, blocked), Partition.from_labels([0] * 5))
    with pytest.raises(NoCompiledFormError, match="give a PartitionMixture"):
        GradientEngine(Metropolis(model, object()), Partition.singletons(5))


def test_a_program_for_another_model_or_other_items_is_refused():
    program = program_of("tables", 5)
    proposer = mixtures(program.model, 5)["to item"]
    with pytest.raises(InvalidArgumentError, match="build PartitionProgram"):
        GradientEngine(Metropolis(program.model, proposer), Partition.singletons(9), program=program)
    with pytest.raises(InvalidArgumentError, match="build PartitionProgram"):
        GradientEngine(
            Metropolis(program_of("tables", 9).model, proposer), Partition.singletons(5), program=program
        )


def test_standing_in_a_world_of_other_items_or_types_is_refused():
    engine = engine_for("tables", 5, "to item", Partition.singletons(5))
    with pytest.raises(ShapeError, match="give a world of the same items and types"):
        engine.reset(Partition.singletons(4))
    with pytest.raises(ShapeError, match="give a world of the same items and types"):
        engine.reset(Partition.singletons(5, n_types=2))


def test_after_a_reset_everything_is_that_of_the_new_world():
    engine = engine_for("everything", 9, "all but restricted", start_for(9, 2))
    engine.advance(Stream(1), 2.0, 100)
    there = Partition.from_labels([0, 0, 0, 0, 1, 1, 1, 2, 2], types=[1, 0, 1], n_types=2)
    engine.reset(there)
    assert engine.world == there
    assert engine.score == pytest.approx(engine.kernel.model.score(there))
    assert_counts_are_kept(engine, "everything")
    fresh = engine_for("everything", 9, "all but restricted", there)
    for each in (engine, fresh):
        each.path[:] = 0.0
        each.advance(Stream(2), 2.0, 100)
    assert engine.world == fresh.world
    assert engine.score == pytest.approx(fresh.score, abs=CLOSE)
    np.testing.assert_array_equal(engine.path, fresh.path)


def test_the_world_given_to_the_engine_stays_as_it_is():
    world = start_for(9)
    before = world.copy()
    engine = engine_for("everything", 9, "relocations", world)
    assert engine.advance(Stream(0), 2.0, 50) > 0
    assert world == before


@pytest.mark.parametrize("walk", WALKS)
def test_a_single_item_never_moves(walk):
    program = program_of("tables", 1)
    if walk in ("to candidate", "candidates and merge") or "blocks" in walk:
        return
    kernel = Metropolis(program.model, mixtures(program.model, 1)[walk])
    engine = GradientEngine(kernel, Partition.singletons(1), program=program)
    assert engine.advance(Stream(0), 1.0, 20) == 0
    assert engine.score == 0.0


BAD = {
    "temperature": (Manner(temperature=0.0), "temperature must be greater than zero"),
    "tries": (Manner("greedy", best_of=0), "best_of must be at least 1"),
    "acceptance": (Manner("sometimes"), "accept must be one of .'metropolis', 'unbalanced'"),
    "balance": (Manner("metropolis", best_of=2), "another than 'metropolis'.*use 'unbalanced'"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_no_walk_can_do_is_refused(name):
    manner, remedy = BAD[name]
    with pytest.raises(InvalidArgumentError, match=remedy):
        manner.check()


def test_a_negative_number_of_steps_and_a_temperature_of_zero_are_refused():
    engine = engine_for("tables", 5, "to item", Partition.singletons(5))
    with pytest.raises(InvalidArgumentError, match="steps must be zero or more"):
        engine.advance(Stream(0), 1.0, -1)
    with pytest.raises(InvalidArgumentError, match="temperature must be greater than zero"):
        engine.advance(Stream(0), 0.0, 1)


def test_one_compiled_walk_serves_all_models_and_all_moves():
    """It takes half a minute to compile, so that a second form would be a fault."""
    for case in MODELS:
        for walk in ("relocations", "all but restricted", "blocks"):
            engine_for(case, 9, walk, start_for(9)).advance(Stream(0), 1.0, 2)
    assert len(samplerank_walk.signatures) == 1
