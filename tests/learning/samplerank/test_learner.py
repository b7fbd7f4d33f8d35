"""SampleRank: by hand, compiled against plain, its mistake bound, and every way of walking it."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError, WeightError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.inference.mcmc.engine import PlainEngineWarning
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.proposals.mixtures import PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import (
    Blocks,
    Merge,
    RelocateToItem,
    RelocateToNew,
    Split,
    SplitMerge,
)
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.library import uniform
from factorwise.kernels.walks.loops import walk_moves
from factorwise.kernels.walks.rules import add_gradient, free_squares, lead_of
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.plain_walks import PlainWalk
from factorwise.learning.samplerank.preferences import (
    DiffPreference,
    ProgramPreference,
    TruthPreference,
    WorldPreference,
)
from factorwise.learning.samplerank.ranking_bounds import largest_margin, radius_of, separable_bound
from factorwise.learning.samplerank.walkers import TrainingWorld, Walker, check_walk, make_walkers
from factorwise.learning.updates import RULES, Unit, as_rule
from factorwise.model.clusterings.table_templates import PairTableTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize
from factorwise.rng import Stream
from factorwise.variables.pair_table import PairTable
from factorwise.world import moves
from factorwise.world.partition import Partition
from other_process import in_another_process
from walk_cases import MIXTURES, WHOLE, table_for, tell_tale_world, whole_world

ACCEPTANCES = ("metropolis", "barker", "unbalanced", "greedy", "always", "truth")
VALID = ("metropolis", "barker")
WAYS = [(a, tries) for a, tries in product(ACCEPTANCES, (1, 3)) if tries == 1 or a not in VALID]
QUIET = {"progress": False}


def fitted(learner, worlds, **options):
    return learner.fit(worlds, **{"passes": 1, "steps": 40, **QUIET, **options})


def walker_of(world, engine, *, update="unit", accept="metropolis", best_of=1):
    """The walker of SampleRank in one world, and the arrays of its rule."""
    rule = as_rule(update)
    arrays = rule.arrays(world.model.blocks.size)
    (walker,) = make_walkers(
        [world],
        engine,
        acceptance=check_walk(accept, 1.0, best_of),
        best_of=best_of,
        weights=arrays.weights,
        clock=arrays.clock,
        roles=lambda training: {"update": rule.program(arrays)},
        judged=True,
    )
    return walker, arrays


def assert_same_learned(first, second, *, exact=True):
    """The same weights and records.

    exact
        Whether the number of updates is the same, too. A passive-aggressive step leaves exactly the margin as
        the lead; meeting the same two worlds again, rounding decides whether another 1e-16 is missing.
    """
    np.testing.assert_allclose(first.last, second.last, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(first.mean, second.mean, rtol=1e-9, atol=1e-12)
    assert first.radius == pytest.approx(second.radius)
    for a, b in zip(first.history, second.history, strict=True):
        assert (a.number, a.steps, a.misranked, a.accepted) == (b.number, b.steps, b.misranked, b.accepted)
        assert a.updates == b.updates or not exact
        assert a.value == pytest.approx(b.value, nan_ok=True)


class Script:
    """A proposer that makes given moves in turn, whatever the stream says."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def draw(self, stream, world):
        return Proposal(self.steps.pop(0)(world), 0.0, 0.0)


def to(item, other):
    """Move an item to where another one is; where the other is None, to a cluster of its own."""

    def built(world):
        target = -1 if other is None else world.cluster_of(other)
        return moves.relocate(world, item, target)

    return built


def by_hand(update, *steps, accept="truth"):
    """Three items, of which 0 and 1 belong together; both pairs with item 0 look near."""
    table = PairTable.from_squares(
        {"same": [[0, 1, 0], [1, 0, 0], [0, 0, 0]], "near": [[0, 1, 1], [1, 0, 0], [1, 0, 0]]}
    )
    world = TrainingWorld(
        model=Model([PairTableTemplate("table", table, ("count",))]),
        proposer=Script(*steps),
        start=Partition.singletons(3),
        preference=TruthPreference([0, 0, 1], "rand"),
    )
    return fitted(SampleRank(update=update, accept=accept), [world], steps=len(steps), engine="plain")


def test_the_first_updates_are_those_worked_out_on_paper():
    """Unit steps from (0, 0), the weights of (same, near), where a tie counts as an error.

    1. 0 to 2: worse, gradient (0, 1), lead 0: weights (0, -1). Not accepted.
    2. 0 to 1: better, gradient (1, 1), lead -1: weights (1, 0). Accepted.
    3. 2 to {0, 1}: worse, gradient (0, 1), lead 0: weights (1, -1).
    4. The same once more: lead 1, nothing to learn.
    5. 0 alone again: worse, gradient (-1, -1), lead 0: weights (2, 0).
    """
    steps = [to(0, 2), to(0, 1), to(2, 0), to(2, 0), to(0, None)]
    expected = [(0, -1), (1, 0), (1, -1), (1, -1), (2, 0)]
    for count in range(1, 6):
        found = by_hand("unit", *steps[:count])
        assert found.last.tolist() == list(expected[count - 1])
        np.testing.assert_allclose(found.mean, np.mean(expected[:count], axis=0))
    assert found.updates == found.history[0].misranked == 4
    assert found.radius == pytest.approx(np.sqrt(2.0))
    assert found.history[0].accepted == pytest.approx(0.2)
    assert found.history[0].value == 1.0


def test_the_strict_form_of_the_rule_learns_nothing_from_weights_of_zero():
    steps = [to(0, 2), to(0, 1), to(2, 0), to(2, 0), to(0, None)]
    found = by_hand(Unit(strict=True), *steps)
    assert not found.last.any()
    assert found.updates == 0
    assert found.history[0].misranked == 5


def two_items(together):
    """From singletons only a merge can be proposed and then only a split: no chance is left."""
    table = PairTable(2, ["f"], [[1]])
    return TrainingWorld(
        model=Model([PairTableTemplate("table", table, ("count",))]),
        proposer=SplitMerge(),
        start=Partition.singletons(2),
        preference=TruthPreference([0, 0] if together else [0, 1], "rand"),
    )


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_two_items_are_learned_in_one_step_either_way(engine):
    """Together: the merge is better, lead 0, weight 1. Apart: it is worse, lead 0, weight -1."""
    for together in (True, False):
        found = fitted(SampleRank(update="unit", accept="truth"), [two_items(together)], engine=engine)
        assert found.last.tolist() == [1.0 if together else -1.0]
        assert found.updates == found.history[0].misranked == 1
        assert found.history[0].accepted == pytest.approx(0.025 if together else 0.0)
        strict = SampleRank(update=Unit(strict=True), accept="truth")
        assert fitted(strict, [two_items(together)], engine=engine).last.tolist() == [0.0]


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_the_gain_that_decides_is_that_under_the_corrected_weights(engine):
    """The first merge is a tie before the correction and a gain of one after it: greedily accepted."""
    found = fitted(SampleRank(update="unit", accept="greedy"), [two_items(True)], engine=engine, steps=1)
    assert found.history[0].accepted == 1.0
    found = fitted(SampleRank(update="unit", accept="greedy"), [two_items(False)], engine=engine, steps=1)
    assert found.history[0].accepted == 0.0


@pytest.mark.parametrize("rule", [name for name in RULES if name != "pa-i"])
def test_compiled_and_plain_walks_learn_the_same_for_every_rule_and_way_of_walking(rule):
    world = whole_world(1, 7)
    updates = 0
    for accept, tries in WAYS:
        learner = SampleRank(update=rule, accept=accept, best_of=tries, temperature=1.5)
        fast, slow = (fitted(learner, [world], engine=engine, seed=4) for engine in ("compiled", "plain"))
        assert_same_learned(fast, slow, exact=rule not in ("pa", "mira"))
        updates += fast.updates
    assert updates > len(WAYS)


@pytest.mark.parametrize("metric", ["pairwise", "b-cubed", "rand"])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_compiled_and_plain_walks_learn_the_same_for_every_mixture_and_metric(mixture, metric):
    options = {"proposer": MIXTURES[mixture], "metric": metric}
    worlds = [whole_world(seed, 8, n_types=2, **options) for seed in (2, 3)]
    for restart in (True, False):
        fast, slow = (
            fitted(SampleRank(update="arow"), worlds, passes=2, steps=30, restart=restart, engine=engine)
            for engine in ("compiled", "plain")
        )
        assert_same_learned(fast, slow)
        assert fast.updates > 0


@pytest.mark.parametrize("rule", ["mira", "arow"])
def test_two_thousand_steps_are_the_same_compiled_and_interpreted(rule):
    """Moves of one item and of many, types, every kind of factor, B-cubed."""
    world = whole_world(7, 14, n_types=2)
    learner = SampleRank(update=rule)
    fast, slow = (fitted(learner, [world], steps=2_000, engine=engine) for engine in ("compiled", "plain"))
    assert_same_learned(fast, slow, exact=rule != "mira")
    assert fast.updates > 100


class OnlyDraws:
    """A proposer without a program."""

    def __init__(self, proposer):
        self.proposer = proposer

    def draw(self, stream, world):
        return self.proposer.draw(stream, world)


class OnlyWatches:
    """A preference without a program."""

    def __init__(self, preference):
        self.preference = preference

    def watch(self, world):
        return self.preference.watch(world)


@pytest.mark.parametrize("metric", ["pairwise", "b-cubed", "rand"])
@pytest.mark.parametrize("mixture", ["items", "clusters"])
def test_programs_learn_what_the_parts_by_their_own_methods_learn(mixture, metric):
    """One item at a time: where changes are taken back, members stand in another order."""
    world = whole_world(3, 9, n_types=2, proposer=MIXTURES[mixture], metric=metric)
    strange = replace(world, proposer=OnlyDraws(world.proposer), preference=OnlyWatches(world.preference))
    for accept, tries in WAYS:
        learner = SampleRank(update="cw", accept=accept, best_of=tries)
        fast = fitted(learner, [world], steps=60, engine="compiled")
        for part in (strange, replace(world, proposer=strange.proposer)):
            assert_same_learned(fast, fitted(learner, [part], steps=60, engine="plain"))


@pytest.mark.parametrize("mixture", MIXTURES)
def test_each_step_of_a_program_is_that_of_the_parts_by_their_own_methods(mixture):
    """Moves of many items: the plain walk is set to where the compiled one is after every step."""
    world = whole_world(3, 9, n_types=2, proposer=MIXTURES[mixture])
    strange = replace(world, proposer=OnlyDraws(world.proposer), preference=OnlyWatches(world.preference))
    (fast, taught), (slow, learned) = (
        walker_of(each, engine, update="arow") for each, engine in ((world, "compiled"), (strange, "plain"))
    )
    assert isinstance(slow.walk, PlainWalk)
    streams = Stream(9), Stream(9)
    accepted = 0
    for _ in range(150):
        slow.reset(fast.world)
        moved = fast.advance(streams[0], 1.0, 1)
        assert slow.advance(streams[1], 1.0, 1) == moved
        assert fast.world == slow.world
        np.testing.assert_allclose(taught.weights, learned.weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(streams[0].state, streams[1].state)
        accepted += moved
    assert accepted > 20
    assert taught.clock.tolist() == learned.clock.tolist()


def right_pairs(world, mine, move):
    """Pairs of one entity that are joined minus others: a preference of one's own, without sums to keep."""
    gain = 0.0
    if move.world == 0:
        for item in range(len(world.label)):
            if item != move.item:
                sign = 1.0 if mine.entity[item] == mine.entity[move.item] else -1.0
                gain += sign * (world.label[item] == move.target)
                gain -= sign * (world.label[item] == move.source)
    return gain


class RightPairs(ProgramPreference):
    def __init__(self, entity):
        self.entity = np.asarray(entity, np.int32)

    def program(self, parts):
        return Program(judge=right_pairs, arrays={"entity": self.entity})


def capped(mine, move, gradient):
    """Half of what the margin lacks, at most half: a rule of one's own."""
    missing = 1.0 - lead_of(move)
    squares = free_squares(mine, move, gradient)
    if missing <= 0.0 or squares == 0.0:
        return 0.0
    return add_gradient(mine, move, gradient, min(0.5, missing / squares), squares)


def near_truth(random, move):
    """What is better always, and some of what is not: an acceptance of one's own."""
    return move.better > 0.0 or uniform(random) < 0.1


def test_a_preference_a_rule_and_an_acceptance_of_ones_own_learn_compiled_and_plain():
    truth = [0, 0, 0, 1, 1, 2, 2, 2]
    world = replace(tell_tale_world(truth, MIXTURES["many"]), preference=RightPairs(truth))
    learner = SampleRank(update=capped, accept=near_truth)
    fast, slow = (fitted(learner, [world], steps=300, engine=engine) for engine in ("compiled", "plain"))
    assert_same_learned(fast, slow, exact=False)
    assert np.isnan(fast.history[0].value)
    model = Model(world.model.templates, fast.weights)
    others = world.start, Partition.from_labels([0] * 8)
    assert model.score(world.truth) > max(map(model.score, others))


def test_of_several_parts_without_a_program_each_is_named_once_for_all_worlds():
    worlds = [replace(whole_world(seed, 5), proposer=OnlyDraws(MIXTURES["items"])) for seed in (2, 3)]
    with pytest.warns(PlainEngineWarning, match="OnlyDraws has no program: give it a method program") as told:
        fitted(SampleRank(), worlds, steps=5)
    assert len(told) == 1
    with pytest.raises(NoCompiledFormError, match="OnlyDraws"):
        fitted(SampleRank(), worlds, steps=5, engine="compiled")


def test_blocks_of_items_and_unknown_entities_are_learned_the_same():
    blocks = Blocks.from_keys([0, 0, 0, 0, 1, 1, 1, 1])
    proposer = PartitionMixture([RelocateToItem(blocks), RelocateToNew(), Split()])
    world = whole_world(5, 8, proposer=proposer)
    truth = [0, 0, None, 1, 2, 2, None, 2]
    world = TrainingWorld(
        model=world.model,
        proposer=proposer,
        start=world.start,
        preference=TruthPreference(truth, "b-cubed"),
    )
    fast, slow = (
        fitted(SampleRank(update="unit"), [world], steps=120, engine=e) for e in ("compiled", "plain")
    )
    assert_same_learned(fast, slow)
    assert fast.updates > 0


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("rule", ["unit", "mira", "cw", "arow", "adagrad"])
def test_weights_of_fixed_blocks_stay_as_they_are_given_and_the_others_are_learned(rule, engine):
    worlds = [whole_world(seed, 8) for seed in (2, 3)]
    model = worlds[0].model
    start = np.random.default_rng(0).integers(-3, 4, model.blocks.size) / 4.0
    learner = SampleRank(update=rule, fixed=("pairs", "edges"))
    found = fitted(learner, worlds, steps=40, weights=start, engine=engine)
    for name in model.blocks.names:
        part = model.blocks.slice_of(name)
        kept = (found.last[part] == start[part]).all() and (found.mean[part] == start[part]).all()
        assert kept == (name in ("pairs", "edges"))


def test_fixed_weights_take_part_in_the_scores():
    """A fixed weight that says the right thing leaves nothing to correct."""
    world = whole_world(2, 8)
    table = PairTable.from_squares({"same": np.equal.outer(*[world.truth.dense_labels()] * 2)})
    teacher = PairTableTemplate("teacher", table, ("count",))
    everyone = PairTableTemplate("everyone", PairTable(8, ["always"], np.ones((28, 1))), ("count",))
    taught = TrainingWorld(
        model=Model([teacher, everyone, ClusterSize()]),
        proposer=world.proposer,
        start=world.start,
        preference=TruthPreference(world.truth, "rand"),
    )
    learner = SampleRank(update="unit", fixed=("teacher", "everyone"))
    right = fitted(learner, [taught], steps=500, weights={"teacher": [2.0], "everyone": [-1.0]})
    assert right.updates == 0
    wrong = fitted(learner, [taught], steps=500, weights={"teacher": [-2.0], "everyone": [1.0]})
    assert wrong.updates > 0


def test_all_blocks_fixed_teach_nothing():
    world = whole_world(2, 8)
    found = fitted(SampleRank(fixed=world.model.blocks.names), [world], steps=200)
    assert not found.last.any()
    assert found.updates == 0


def test_weights_to_begin_with_are_where_the_learning_begins():
    world = whole_world(2, 8)
    start = np.arange(world.model.blocks.size) / 8.0
    found = fitted(SampleRank(update="unit"), [world], steps=1, weights=start)
    step = found.last - start
    assert (step == np.round(step)).all()
    by_block = fitted(SampleRank(update="unit"), [world], steps=1, weights={"cluster size": start[12:14]})
    assert by_block.last.shape == start.shape


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    worlds = [whole_world(seed, 9) for seed in range(3)]
    first, again, other = (fitted(SampleRank(), worlds, passes=2, seed=seed) for seed in (7, 7, 8))
    assert first.last.tobytes() == again.last.tobytes()
    assert first.mean.tobytes() == again.mean.tobytes()
    assert first.history == again.history
    assert first.last.tobytes() != other.last.tobytes()


IN_ANOTHER_PROCESS = """
from factorwise.learning.samplerank.learner import SampleRank
from walk_cases import whole_world

worlds = [whole_world(seed, 9) for seed in range(3)]
found = SampleRank().fit(worlds, passes=2, steps=40, seed=7, progress=False)
print(found.last.tobytes().hex())
"""


def test_a_process_with_another_number_of_threads_learns_the_same_bits():
    here = fitted(SampleRank(), [whole_world(seed, 9) for seed in range(3)], passes=2, seed=7)
    there = in_another_process(IN_ANOTHER_PROCESS, Path(__file__).parents[2])
    assert there == here.last.tobytes().hex()


def test_restarting_begins_every_pass_at_the_start_and_going_on_does_not():
    """With a walk that accepts everything, one step from singletons can only merge two of them."""
    world = whole_world(2, 9, proposer=PartitionMixture([Merge()]), metric="rand")
    starts = {}
    for restart in (True, False):
        learner = SampleRank(accept="always")
        found = fitted(learner, [world], passes=6, steps=1, restart=restart)
        starts[restart] = [record.accepted for record in found.history]
        assert len(found.history) == 6
    assert starts[True] == [1.0] * 6
    for engine in ("compiled", "plain"):
        walker, _ = walker_of(world, engine, accept="always")
        for expected in (8, 7, 6):
            walker.advance(Stream(expected), 1.0, 1)
            assert walker.world.n_clusters == expected
        walker.reset(world.start)
        assert walker.world.n_clusters == 9
        assert walker.value == pytest.approx(judged(world, world.start))


def judged(world, at):
    return world.preference.watch(at).value


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_the_value_is_the_metric_of_the_world_where_the_walk_stands(engine):
    for metric in ("pairwise", "b-cubed", "rand"):
        world = whole_world(4, 9, metric=metric)
        walker, _ = walker_of(world, engine, accept="always")
        for seed in range(4):
            walker.advance(Stream(seed), 1.0, 20)
            assert walker.value == pytest.approx(judged(world, walker.world), abs=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_ties_teach_nothing(engine):
    """Pairwise F1 is zero in every world where no two items belong together."""
    world = whole_world(2, 8)
    tied = TrainingWorld(
        model=world.model,
        proposer=world.proposer,
        start=world.start,
        preference=TruthPreference(list(range(8)), "pairwise"),
    )
    for accept in ACCEPTANCES:
        found = fitted(SampleRank(update="mira", accept=accept), [tied], steps=100, engine=engine)
        assert found.updates == found.history[0].misranked == 0
        assert not found.last.any()


def test_ties_are_told_from_preferences_one_by_one():
    world = whole_world(2, 8)
    said = []

    def answer(world, diff):
        said.append(float(len(said) % 3 - 1))
        return said[-1]

    asked = TrainingWorld(
        model=Model([ClusterSize()]),
        proposer=world.proposer,
        start=world.start,
        preference=DiffPreference(answer),
    )
    found = fitted(SampleRank(update="unit", accept="always"), [asked], steps=60, engine="plain")
    assert 0 < found.history[0].misranked <= sum(value != 0.0 for value in said)


def test_any_preference_teaches_in_plain_python():
    """Fewer clusters are better: no truth is known at all."""
    world = TrainingWorld(
        model=Model([ClusterSize(), PairTableTemplate("table", table_for(6, 2), WHOLE)]),
        proposer=MIXTURES["many"],
        start=Partition.singletons(6),
        preference=WorldPreference(lambda before, after: before.n_clusters - after.n_clusters),
    )
    with pytest.warns(PlainEngineWarning, match="WorldPreference has no program: give it a method program"):
        found = fitted(SampleRank(accept="truth"), [world], steps=150)
    assert np.isnan(found.history[0].value)
    model = Model(world.model.templates, found.weights)
    whole = Partition.from_labels([0] * 6)
    assert model.score(whole) > model.score(Partition.singletons(6))
    with pytest.raises(NoCompiledFormError, match=r"returns Program\(judge=...\).*use engine='plain'"):
        fitted(SampleRank(), [world], engine="compiled")


def test_averages_are_returned_where_asked_for_and_both_are_kept():
    worlds = [whole_world(2, 8)]
    mean, last = (fitted(SampleRank(average=average), worlds) for average in (True, False))
    np.testing.assert_array_equal(mean.weights, mean.mean)
    np.testing.assert_array_equal(last.weights, last.last)
    np.testing.assert_array_equal(mean.last, last.last)
    assert (mean.mean != mean.last).any()


def test_the_callback_sees_every_pass_and_can_end_the_learning():
    worlds = [whole_world(2, 8)]
    for average in (True, False):
        seen = []

        def watch(record, weights, seen=seen):
            seen.append((record, weights.copy()))
            weights[:] = 1e6  # a copy: what is learned stays as it is
            return record.number == 3

        found = fitted(SampleRank(average=average), worlds, passes=9, callback=watch)
        assert [record for record, _ in seen] == found.history
        assert [record.number for record in found.history] == [1, 2, 3]
        assert not found.interrupted
        np.testing.assert_array_equal(seen[-1][1], found.weights)
        assert found.history[0].steps == 40
        assert found.updates == sum(record.updates for record in found.history)


def test_a_callback_that_returns_something_else_does_not_end_the_learning():
    found = fitted(SampleRank(), [whole_world(2, 8)], passes=3, callback=lambda record, weights: 1)
    assert len(found.history) == 3


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_ctrl_c_returns_what_there_is(engine, monkeypatch):
    """At the third visit of four, in the second pass: what the first three taught is kept."""
    worlds = [whole_world(seed, 8) for seed in (2, 3)]
    visits = []
    walk = Walker.advance

    def interrupted(self, *arguments, **options):
        if len(visits) == 3:
            raise KeyboardInterrupt
        visits.append(walk(self, *arguments, **options))
        return visits[-1]

    whole = fitted(SampleRank(), worlds, passes=2, engine=engine)
    monkeypatch.setattr(Walker, "advance", interrupted)
    found = fitted(SampleRank(), worlds, passes=2, engine=engine)
    assert found.interrupted
    assert not whole.interrupted
    assert found.history == whole.history[:1]
    assert found.last.any()
    assert np.isfinite(found.weights).all()


def test_ctrl_c_before_the_first_step_returns_the_weights_to_begin_with(monkeypatch):
    world = whole_world(2, 8)
    start = np.arange(world.model.blocks.size) / 8.0

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Walker, "advance", interrupted)
    found = fitted(SampleRank(), [world], engine="plain", weights=start)
    assert found.interrupted
    assert found.history == []
    assert found.updates == 0
    np.testing.assert_array_equal(found.weights, start)


NO_PREFERENCE = TrainingWorld(
    model=Model([ClusterSize()]), proposer=MIXTURES["items"], start=Partition.singletons(3), name="dev 7"
)
OTHER_BLOCKS = tell_tale_world([0, 0, 1], MIXTURES["items"])
REFUSED = {
    "no worlds": (lambda: fitted(SampleRank(), []), "give a list of one or more training worlds"),
    "a world alone": (lambda: fitted(SampleRank(), whole_world(1, 4)), r"\[TrainingWorld\(...\), ...\]"),
    "no preference": (
        lambda: fitted(SampleRank(), [NO_PREFERENCE]),
        r"dev 7 has no preference: give TrainingWorld\(preference=...\)",
    ),
    "other blocks": (
        lambda: fitted(SampleRank(), [whole_world(1, 4), OTHER_BLOCKS]),
        "world 1 has blocks .'table'. of sizes .4., but .*templates of the same names and sizes",
    ),
    "no such block": (
        lambda: fitted(SampleRank(fixed=("nothing",)), [whole_world(1, 4)]),
        "no template is called 'nothing': the model has",
    ),
    "no such rule": (lambda: SampleRank(update="mirra"), "Did you mean 'mira'"),
    "no such acceptance": (lambda: SampleRank(accept="never"), "accept must be one of"),
    "the best of several": (lambda: SampleRank(best_of=2), "use 'unbalanced'"),
    "no tries": (lambda: SampleRank(accept="greedy", best_of=0), "best_of must be at least 1"),
    "temperature": (lambda: SampleRank(temperature=-1.0), "temperature must be greater than zero"),
    "no passes": (lambda: fitted(SampleRank(), [whole_world(1, 4)], passes=0), "passes must be at least 1"),
    "no steps": (lambda: fitted(SampleRank(), [whole_world(1, 4)], steps=0), "steps must be at least 1"),
    "engine": (
        lambda: fitted(SampleRank(), [whole_world(1, 4)], engine="fast"),
        "engine must be 'auto', 'compiled' or 'plain'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_learned_from_is_refused_with_a_remedy(name):
    call, remedy = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=remedy):
        call()


def test_weights_of_another_number_and_truths_of_other_items_are_refused():
    world = whole_world(1, 4)
    with pytest.raises(WeightError, match="weights"):
        fitted(SampleRank(), [world], weights=[1.0])
    stranger = TrainingWorld(
        model=world.model,
        proposer=world.proposer,
        start=world.start,
        preference=TruthPreference([0, 0, 1]),
    )
    for engine in ("compiled", "plain"):
        with pytest.raises(ShapeError, match="give one entity per item"):
            fitted(SampleRank(), [stranger], engine=engine)


TRUTH = [0, 0, 1, 1, 2]
NOT_ERGODIC = {
    "merges alone": (PartitionMixture([Merge()]), Partition.singletons(5)),
    "splits alone": (PartitionMixture([Split()]), Partition.from_labels([0] * 5)),
    "within blocks": (
        PartitionMixture([RelocateToItem(Blocks.from_keys([0, 0, 0, 1, 1])), RelocateToNew()]),
        Partition.singletons(5),
    ),
    "joining alone": (PartitionMixture([RelocateToItem()]), Partition.singletons(5)),
}
PROPOSERS = {name: (mixture, Partition.singletons(5)) for name, mixture in MIXTURES.items()}


def constraints_of(world, proposer):
    """Better minus worse statistics of all pairs of neighbors that the proposer may ever show."""
    rows, size = [], world.model.blocks.size
    for here in all_partitions(5):
        try:
            proposer.check(here)
        except InvalidArgumentError:
            continue
        judge = world.preference.watch(here)
        for proposal in proposer.support(here):
            better = 0.0 if proposal.diff is None else judge.gain(here, proposal.diff)
            if better != 0.0:
                row = world.model.difference(here, proposal.diff).to_dense(size)
                rows.append(np.sign(better) * row)
    return np.unique(rows, axis=0)


@pytest.mark.parametrize("name", {**PROPOSERS, **NOT_ERGODIC})
def test_unit_steps_make_no_more_mistakes_than_the_theorem_allows_and_then_none(name, seed):
    """Also where the proposer cannot reach every world."""
    proposer, start = {**PROPOSERS, **NOT_ERGODIC}[name]
    world = tell_tale_world(TRUTH, proposer, noise=3, seed=seed, start=start)
    rows = constraints_of(world, proposer)
    separation = largest_margin(rows)
    bound = separable_bound(radius_of(rows), separation.margin)
    for accept in ("metropolis", "always", "truth", "greedy"):
        learner = SampleRank(update="unit", accept=accept, average=False)
        found = fitted(learner, [world], passes=120, seed=seed)
        assert 0 < found.updates <= bound
        assert found.radius <= radius_of(rows) * (1.0 + 1e-12)
        assert sum(record.updates for record in found.history[-20:]) == 0


def test_a_second_start_of_the_learned_weights_makes_no_mistake():
    world = tell_tale_world(TRUTH, MIXTURES["many"], noise=3)
    learner = SampleRank(update="unit", average=False, accept="always")
    found = fitted(learner, [world], passes=20, steps=2_000)
    again = fitted(learner, [world], passes=20, steps=2_000, weights=found.weights, seed=99)
    assert again.updates == 0


def test_one_compiled_walk_serves_all_rules_and_ways_of_walking():
    """The loop knows no part: a combination of parts that were used before compiles nothing."""
    for rule, (accept, tries) in product(("unit", "cw"), WAYS):
        learner = SampleRank(update=rule, accept=accept, best_of=tries, fixed=("edges",))
        fitted(learner, [whole_world(1, 6)], steps=2)
    assert len(walk_moves.signatures) == 1
