"""Judges of a walk: gains equal what the definition says of the world after minus the world before."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.errors import DiffError, InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.learning.samplerank.preferences import (
    AccuracyPreference,
    DiffPreference,
    TruthPreference,
    WorldPreference,
)
from factorwise.variables.domain import Domain
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment, Relabel
from factorwise.world.diff import NEW, Transfer
from factorwise.world.moves import merge, relocate, retype, split
from factorwise.world.partition import Partition
from reference import preferences as reference

METRICS = ["pairwise", "b-cubed", "rand"]
DIGIT = Domain("digit", ["a", "b", "c"])


def random_diff(rng, world):
    """A relocation, merge, split, transfer of some items or, rarely, a change of type."""
    ids = [*world.cluster_ids().tolist(), NEW]
    while True:
        source, target = ids[rng.integers(len(ids) - 1)], ids[rng.integers(len(ids))]
        if rng.random() < 0.1 and world.n_types > 1:
            return retype(world, source, int(rng.integers(world.n_types)))
        members = rng.permutation(world.members(source)).tolist()
        kind = rng.integers(4)
        if kind == 0 and target != source and (target != NEW or len(members) > 1):
            return relocate(world, members[0], target)
        if kind == 1 and target not in (source, NEW):
            return merge(world, source, target)
        if kind == 2 and len(members) > 1:
            return split(world, source, members[: rng.integers(1, len(members))])
        if kind == 3 and target not in (source, NEW):
            return Transfer(tuple(members[: rng.integers(1, len(members) + 1)]), source, target)


def walk(judge, world, value, rng, steps):
    """Check each gain against ``value`` of the whole world, and apply every other diff."""
    for step in range(steps):
        diff = random_diff(rng, world)
        gain, before, after = judge.gain(world, diff), value(world), value(world.after(diff))
        assert gain == pytest.approx(float(after - before), rel=1e-9, abs=1e-14)
        assert (gain > 0, gain < 0) == (after > before, after < before)
        assert judge.value == pytest.approx(float(before), rel=1e-12)
        if step % 2:
            if step % 3:
                judge.gain(world, random_diff(rng, world))  # what was judged last need not be what happens
            judge.applied(world, diff)
            world.apply(diff)


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_truth_gains_follow_the_metric_along_a_walk(metric, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    entities = [0, 0, *rng.integers(-1, 3, n - 2).tolist()]
    labels = np.unique(rng.integers(0, 3, n), return_inverse=True)[1]
    types = rng.integers(0, 2, labels.max() + 1)
    world = Partition.from_labels(labels, types=types, n_types=2)
    judge = TruthPreference(entities, metric).watch(world)
    walk(judge, world, lambda w: reference.truth_value(entities, w.labels.tolist(), metric), rng, 20)


@pytest.mark.parametrize("metric", METRICS)
def test_moves_of_several_items_that_make_nothing_better_are_ties(metric, seed):
    """Gains of their changes cancel out but for rounding: the sum is exactly zero, and only then."""
    rng = np.random.default_rng(seed)
    entities = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, -1]
    ties = 0
    for _ in range(150):
        world = Partition.from_labels(np.unique(rng.integers(0, 4, 11), return_inverse=True)[1])
        source, target = rng.choice(world.cluster_ids(), 2, replace=False).tolist()
        members = rng.permutation(world.members(source)).tolist()
        if len(members) < 2:
            continue
        diff = Transfer(tuple(members[: rng.integers(2, len(members) + 1)]), source, target)
        before, after = (
            reference.truth_value(entities, w.labels.tolist(), metric) for w in (world, world.after(diff))
        )
        gain = TruthPreference(entities, metric).watch(world).gain(world, diff)
        assert (gain > 0, gain < 0) == (after > before, after < before)
        ties += after == before
    assert ties > 0


@pytest.mark.parametrize("metric", METRICS)
def test_truth_judges_stay_in_step_over_thousands_of_diffs(metric, seed):
    rng = np.random.default_rng(seed)
    entities = rng.integers(-1, 9, 40)
    world = Partition.from_labels(np.arange(40) % 6, types=[0] * 6, n_types=2)
    preference = TruthPreference(entities, metric)
    judge = preference.watch(world)
    for _ in range(3_000):
        diff = random_diff(rng, world)
        judge.applied(world, diff)
        world.apply(diff)
    exact = float(reference.truth_value(entities.tolist(), world.labels.tolist(), metric))
    assert judge.value == pytest.approx(exact, rel=1e-12)
    assert preference.watch(world).value == pytest.approx(exact, rel=1e-14)


def test_a_diff_that_was_judged_in_another_world_is_judged_anew():
    world = Partition.from_labels([0, 0, 1, 1])
    judge = TruthPreference([0, 0, 0, 1], "rand").watch(world)
    diff = relocate(world, 2, 0)
    judge.gain(world, diff)
    judge.applied(world, diff)
    back = world.apply(diff)
    judge.applied(world, back)
    world.apply(back)
    judge.applied(world, diff)  # the same object again
    world.apply(diff)
    assert judge.value == pytest.approx(float(reference.truth_value([0, 0, 0, 1], [0, 0, 0, 1], "rand")))


@pytest.mark.parametrize(
    "truth",
    [
        ["b", "b", None, "a"],
        [7, 7, None, 3],
        [7, 7, -1, 3],
        [7, 7, np.int64(-1), "-1"],
        np.array([7, 7, -1, 3]),
        np.array([4, 4, -1, 2], np.int8),
        np.array(["y", "y", None, "x"], object),
    ],
)
def test_entities_may_be_numbers_or_strings_and_unknown(truth):
    entity = TruthPreference(truth).entity
    assert entity[0] == entity[1]
    assert entity[2] == -1
    assert sorted({int(entity[0]), int(entity[3])}) == [0, 1]


def test_a_partition_or_unsigned_labels_may_be_the_truth():
    truth = Partition.from_labels([0, 1, 0])
    truth.apply(merge(truth, 1, 0))
    truth.apply(relocate(truth, 1, NEW))
    np.testing.assert_array_equal(TruthPreference(truth).entity, [0, 1, 0])
    np.testing.assert_array_equal(TruthPreference(np.array([9, 4, 9], np.uint8)).entity, [1, 0, 1])


def test_the_truth_itself_is_worth_one_and_no_diff_improves_on_it(seed):
    rng = np.random.default_rng(seed)
    world = Partition.from_keys(rng.integers(0, 5, 20))
    for metric in METRICS:
        judge = TruthPreference(world, metric).watch(world)
        assert judge.value == pytest.approx(1.0, abs=1e-15)
        assert all(judge.gain(world, random_diff(rng, world)) < 0.0 for _ in range(100))


def test_where_nothing_is_known_everything_is_a_tie():
    world = Partition.from_labels([0, 0, 1])
    for metric in METRICS:
        judge = TruthPreference([None] * 3, metric).watch(world)
        assert math.isnan(judge.value)
        assert judge.gain(world, relocate(world, 0, 1)) == 0.0


def test_walks_get_arrays_of_their_own():
    world = Partition.from_labels([0, 0, 1])
    preference = TruthPreference([0, 1, 1], "rand")
    assert preference.watch(world).value == pytest.approx(1 / 3)
    first, second = (preference.program(Surroundings(world)).arrays for _ in range(2))
    for changing in ("counts", "sums", "after", "change", "held"):
        assert not np.shares_memory(first[changing], second[changing])


def test_a_truth_that_cannot_be_read_is_refused():
    with pytest.raises(InvalidArgumentError, match="one of 'pairwise', 'b-cubed', 'rand'"):
        TruthPreference([0, 1], "muc")
    with pytest.raises(InvalidArgumentError, match=r"item 1 is 0\.5: give whole numbers or strings"):
        TruthPreference([0, 0.5])
    with pytest.raises(InvalidArgumentError, match="item 0 is nan: give whole numbers or strings"):
        TruthPreference([math.nan, 1])
    with pytest.raises(ShapeError, match=r"one entity per item, but has shape \(2, 2\)"):
        TruthPreference(np.zeros((2, 2), int))
    with pytest.raises(ShapeError, match="3 items, but the world has 2: give one entity per item"):
        TruthPreference([0, 1, 1]).watch(Partition.singletons(2))


def test_a_diff_or_a_world_that_does_not_fit_is_refused():
    world = Partition.from_labels([0, 0, 1])
    judge = TruthPreference([0, 0, 1]).watch(world)
    for items, source, target in [((2,), 0, 1), ((3,), 0, 1), ((-1,), 1, 0), ((), 0, 1), ((0,), 0, 0)]:
        with pytest.raises(DiffError, match=r"build transfers with world\.moves"):
            judge.gain(world, Transfer(items, source, target))
    with pytest.raises(DiffError, match="cluster 2 does not exist"):
        judge.gain(world, Transfer((0,), 0, 2))
    with pytest.raises(ShapeError, match=r"start another judge with preference\.watch\(world\)"):
        judge.gain(Partition.singletons(4), Transfer((0,), 0, 1))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_accuracy_follows_the_labels_along_a_walk(seed):
    rng = np.random.default_rng(seed)
    n = 6
    codes = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), -1)
    variables = Variables([Column("digit", DIGIT, codes.astype(np.int32))])
    world = Assignment.uniform(variables, seed % 1_000)
    truth = rng.integers(-1, 3, n)
    hidden = variables.hidden.tolist()
    known = [variable for variable in hidden if truth[variable] >= 0]

    def accuracy(w):
        return sum(w.values[variable] == truth[variable] for variable in known) / max(1, len(known))

    judge = AccuracyPreference(truth).watch(world)
    assert math.isnan(judge.value) == (not known)
    for _ in range(12):
        chosen = [variable for variable in hidden if rng.random() < 0.5]
        diff = world.relabel(chosen, rng.integers(0, 3, len(chosen)).tolist())
        gain, change = judge.gain(world, diff), accuracy(world.after(diff)) - accuracy(world)
        assert gain == pytest.approx(change, abs=1e-15)
        assert (gain == 0.0) == (abs(change) < 1e-9)
        judge.applied(world, diff)
        world.apply(diff)
        assert not known or judge.value == accuracy(world)


def test_accuracy_leaves_out_what_is_unknown_or_observed():
    variables = Variables([Column("digit", DIGIT, np.array([1, -1, -1, -1], np.int32))])
    world = Assignment(variables, [1, 0, 0, 0])
    judge = AccuracyPreference([1, 0, 2, -1]).watch(world)
    assert judge.value == 0.5
    assert judge.gain(world, world.relabel([2], [2])) == 0.5
    assert judge.gain(world, world.relabel([1, 2], [1, 2])) == 0.0
    assert judge.gain(world, world.relabel([3], [2])) == 0.0
    truth = Assignment(variables, [1, 2, 2, 2])
    assert AccuracyPreference(truth).watch(world).gain(world, Relabel((1,), (0,), (2,))) == 1 / 3


def test_an_accuracy_that_cannot_be_computed_is_refused():
    variables = Variables([Column.hidden("digit", DIGIT, 2)])
    with pytest.raises(ShapeError, match=r"one code per variable, but has shape \(1, 2\)"):
        AccuracyPreference(np.zeros((1, 2), int))
    with pytest.raises(InvalidArgumentError, match=r"encode labels with Assignment\.from_labels"):
        AccuracyPreference(["a", "b"])
    with pytest.raises(ShapeError, match="3 variables, but the world has 2: give one code per variable"):
        AccuracyPreference([0, 1, 2]).watch(Assignment.initial(variables))


def test_a_function_of_two_worlds_sees_both_and_leaves_the_walk_alone():
    world = Partition.from_labels([0, 0, 1, 2])
    judge = WorldPreference(lambda before, after: before.n_clusters - after.n_clusters).watch(world)
    assert judge.gain(world, merge(world, 0, 1)) == 1.0
    assert judge.gain(world, relocate(world, 0, NEW)) == -1.0
    assert judge.gain(world, relocate(world, 0, 1)) == 0.0
    judge.applied(world, relocate(world, 0, 1))
    assert math.isnan(judge.value)
    assert world == Partition.from_labels([0, 0, 1, 2])


def test_a_function_of_a_diff_sees_the_world_before_it():
    variables = Variables([Column.hidden("digit", DIGIT, 2)])
    world = Assignment(variables, [0, 2])
    judge = DiffPreference(lambda w, diff: diff.new[0] - int(w.values[diff.variables[0]])).watch(world)
    assert judge.gain(world, world.relabel([0], [2])) == 2.0
    assert judge.gain(world, world.relabel([1], [1])) == -1.0
    judge.applied(world, world.relabel([1], [1]))
    assert math.isnan(judge.value)


@pytest.mark.parametrize("kind", [WorldPreference, DiffPreference])
def test_answers_within_the_tolerance_are_ties(kind):
    world = Partition.singletons(2)
    answers = {0.05: 0.0, -0.1: 0.0, 0.2: 0.2, -0.2: -0.2}
    for answer, gain in answers.items():
        judge = kind(lambda *_, answer=answer: answer, tolerance=0.1).watch(world)
        assert judge.gain(world, merge(world, 0, 1)) == gain
    assert kind(lambda *_: 1e-300).watch(world).gain(world, merge(world, 0, 1)) == 1e-300
    with pytest.raises(InvalidArgumentError, match="tolerance must be a finite number, zero or more"):
        kind(max, tolerance=-1.0)
    for wrong in (math.nan, math.inf):
        with pytest.raises(InvalidArgumentError, match="return a finite number, positive for better"):
            kind(lambda *_, wrong=wrong: wrong).watch(world).gain(world, merge(world, 0, 1))
