"""Gains of a metric against the truth, one change at a time: against exact fractions by definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.clusterings.arrays import spare_id
from factorwise.kernels.clusterings.preferences import RIGHT, TRUE_PAIRS
from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.walks.frames import run
from factorwise.learning.samplerank.preferences import METRICS, TruthPreference
from factorwise.world.diff import NEW
from factorwise.world.partition import Partition
from reference import preferences as reference

ENGINES = ("compiled", "interpreted")


class Watched:
    """A world of its own that a program judges, one change at a time."""

    def __init__(self, entities, world, metric, engine="interpreted"):
        self.entities, self.metric = list(entities), metric
        self.world = world.copy()
        frame = self.world.frame(np.zeros(2, np.uint64))
        self.step = frame.step
        program = TruthPreference(entities, metric).program(Surroundings(world))
        compiled = engine == "compiled"
        self.bound = Bound(program, frame) if compiled else Interpreted(program, frame, None)
        self.arrays = program.arrays
        run(self.bound, "begin")

    def at_hand(self, item, target):
        """Let one item go to a cluster, or to a new one: that is the change at hand."""
        real = spare_id(self.world.arrays, 0) if target == NEW else target
        self.step["world"] = 0
        self.step["item"], self.step["source"], self.step["target"] = item, self.world.cluster_of(item), real
        return int(self.step["source"][0]), real

    def judge(self, item, target):
        self.at_hand(item, target)
        return run(self.bound, "judge")

    def make(self, item, target):
        """Make a change, judged before or not; return where the item was, or NEW if it was alone there."""
        source, _ = self.at_hand(item, target)
        alone = self.world.size_of(source) == 1
        run(self.world_changer(), "apply")
        run(self.bound, "applied")
        return NEW if alone else source

    def world_changer(self):
        return Interpreted(self.world.program(), self.bound_frame(), None)

    def bound_frame(self):
        return self.world.frame(np.zeros(2, np.uint64))._replace(step=self.step)

    def value(self):
        return run(self.bound, "value")

    def labels(self):
        return self.world.labels.tolist()

    def exact_gain(self, item, target):
        place = None if target == NEW else target
        return reference.transfer_truth_gain(self.entities, self.labels(), [item], place, self.metric)

    def assert_sums_are_exact(self, rtol=1e-13):
        sums = reference.begin_truth(self.entities, self.labels(), self.metric)
        exact = [float(total) for total in sums]
        np.testing.assert_allclose(self.arrays["sums"], exact, rtol=rtol, atol=rtol)


def all_changes(world):
    """Every item to every other cluster, and to a new one where that is another world."""
    for item in range(world.n_items):
        source = world.cluster_of(item)
        yield from ((item, target) for target in world.cluster_ids().tolist() if target != source)
        if world.size_of(source) > 1:
            yield item, NEW


def random_change(rng, world):
    while True:
        item = int(rng.integers(world.n_items))
        target = int(rng.choice([*world.cluster_ids().tolist(), NEW]))
        source = world.cluster_of(item)
        if target != source and (target != NEW or world.size_of(source) > 1):
            return item, target


@st.composite
def worlds(draw, most=9):
    """A clustering and true entities, numbered without gaps, some unknown."""
    n = draw(st.integers(1, most))
    keys = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    labels = np.unique(keys, return_inverse=True)[1]
    truth = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    known = sorted(set(truth) - {-1})
    entities = [known.index(entity) if entity >= 0 else -1 for entity in truth]
    return Partition.from_labels(labels), entities


def assert_is(gain, exact):
    """Equal up to rounding, with the sign exact and ties exactly zero."""
    assert gain == pytest.approx(float(exact), rel=1e-9, abs=1e-15)
    assert (gain > 0, gain < 0) == (exact > 0, exact < 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
@given(case=worlds())
@settings(max_examples=40)
@example(case=(Partition.singletons(1), [-1]))
@example(case=(Partition.singletons(4), [0, 0, 1, 1]))
@example(case=(Partition.from_labels([0, 0, 0, 0]), [0, 1, 2, 3]))
@example(case=(Partition.from_labels([0, 0, 1]), [-1, 0, -1]))
def test_gains_equal_the_metric_after_minus_the_metric_before(metric, engine, case):
    world, entities = case
    watched = Watched(entities, world, metric, engine)
    for item, target in all_changes(world):
        assert_is(watched.judge(item, target), watched.exact_gain(item, target))


@pytest.mark.parametrize("metric", METRICS)
@given(case=worlds())
@settings(max_examples=60)
def test_sums_and_values_are_those_of_the_definition(metric, case):
    world, entities = case
    watched = Watched(entities, world, metric)
    watched.assert_sums_are_exact(1e-14)
    known = len(reference.known_items(entities))
    if known > (metric == "rand"):
        value = reference.truth_value(entities, world.labels.tolist(), metric)
        assert watched.value() == pytest.approx(float(value), rel=1e-14)
    else:
        assert math.isnan(watched.value())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS)
@given(case=worlds(), judged=st.sampled_from(["that", "another", "none"]))
@settings(max_examples=40)
def test_changes_and_their_reverses_keep_the_sums_whether_they_were_judged_or_not(
    metric, engine, judged, case
):
    world, entities = case
    watched = Watched(entities, world, metric, engine)
    changes = list(all_changes(world))
    for number, (item, target) in enumerate(changes):
        if judged == "that":
            watched.judge(item, target)
        elif judged == "another":
            watched.judge(*changes[number - 1])
        back = watched.make(item, target)
        watched.assert_sums_are_exact()
        watched.make(item, back)
        watched.assert_sums_are_exact()
        assert watched.world == world


def test_judging_changes_nothing_but_the_sums_after_it_and_scratch():
    world, entities = Partition.from_labels([0, 0, 1, 1, 2]), [0, 1, 0, -1, 1]
    for metric in METRICS:
        watched = Watched(entities, world, metric)
        kept = [
            watched.arrays[name]
            for name in ("entity", "entity_start", "entity_item", "truth", "held", "sums")
        ]
        used = watched.world.arrays._replace(type=np.zeros(0))  # the type of an unused id is scratch
        before = [array.copy() for array in (*used, *kept)]
        for change in all_changes(world):
            watched.judge(*change)
        for array, old in zip((*used, *kept), before, strict=True):
            np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("metric", METRICS)
def test_sums_stay_in_step_over_a_long_walk_of_changes_made_and_taken_back(metric, seed):
    rng = np.random.default_rng(seed)
    n = 60
    entities = rng.integers(-1, 12, n).tolist()
    watched = Watched(entities, Partition.from_labels(np.arange(n) % 7), metric, "compiled")
    expected = watched.value()
    for step in range(6_000):
        change = random_change(rng, watched.world)
        gain = watched.judge(*change) if step % 3 else None
        back = watched.make(*change)
        if step % 2:
            watched.make(change[0], back)
        elif gain is None:
            expected = watched.value()
        else:
            expected += gain
        if step % 1_000 == 999:
            watched.assert_sums_are_exact(0.0 if metric != "b-cubed" else 1e-12)
            assert expected == pytest.approx(watched.value(), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_ties_are_exactly_zero_after_many_rounded_steps(metric, seed):
    """The sums have been rounded thousands of times, yet a tie by the definition is a tie."""
    rng = np.random.default_rng(seed)
    entities = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, -1]
    watched = Watched(entities, Partition.singletons(len(entities)), metric, "compiled")
    ties = 0
    for step in range(4_000):
        change = random_change(rng, watched.world)
        if step >= 3_000:
            exact = watched.exact_gain(*change)
            assert_is(watched.judge(*change), exact)
            ties += exact == 0
        watched.make(*change)
    assert ties > 20


@pytest.mark.parametrize("metric", METRICS)
def test_an_item_between_two_like_clusters_is_a_tie(metric):
    """The item leaves two of its entity and four strangers for two of its entity and four strangers."""
    entities = [0, 0, 0, 1, 1, 1, 2, 0, 0, 1, 1, 1, 2]
    watched = Watched(entities, Partition.from_labels([0] * 7 + [1] * 6), metric)
    assert watched.judge(0, watched.world.cluster_of(7)) == 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_unknown_items_move_without_gain(metric):
    watched = Watched([0, 0, -1, -1, 1], Partition.from_labels([0, 0, 0, 0, 1]), metric)
    before = watched.arrays["sums"].copy()
    for item in (2, 3):
        for target in (1, NEW):
            assert watched.judge(item, target) == 0.0
        watched.make(item, 1)
        np.testing.assert_array_equal(watched.arrays["sums"], before)


@pytest.mark.parametrize("metric", METRICS)
def test_another_type_of_a_cluster_makes_nothing_better(metric):
    watched = Watched([0, 0, 1], Partition.from_labels([0, 0, 1], n_types=2), metric)
    watched.step["world"], watched.step["item"], watched.step["source"], watched.step["target"] = 1, 0, 0, 1
    assert run(watched.bound, "judge") == 0.0


def test_from_no_right_pairs_a_right_merge_is_a_gain_of_pairwise_f1_and_a_wrong_one_a_tie():
    world, entities = Partition.singletons(4), [0, 0, 1, 1]
    watched = Watched(entities, world, "pairwise")
    assert watched.value() == 0.0
    assert watched.judge(1, 0) == pytest.approx(2 / 3)
    assert watched.judge(2, 0) == 0.0
    for metric in ("rand", "b-cubed"):
        watched = Watched(entities, world, metric)
        assert watched.judge(1, 0) > 0.0
        assert watched.judge(2, 0) < 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_from_one_cluster_a_right_split_is_a_gain_and_a_wrong_one_is_not(metric):
    watched = Watched([0, 0, 0, 0, 1], Partition.from_labels([0, 0, 0, 0, 0]), metric)
    assert watched.judge(4, NEW) > 0.0
    assert watched.judge(0, NEW) < 0.0


def test_without_true_pairs_pairwise_f1_is_zero_everywhere_and_the_others_still_judge():
    world, entities = Partition.from_labels([0, 0, 1]), [0, 1, 2]
    watched = Watched(entities, world, "pairwise")
    assert watched.value() == 0.0
    assert watched.judge(0, NEW) == 0.0
    assert all(Watched(entities, world, metric).judge(0, NEW) > 0.0 for metric in ("rand", "b-cubed"))


@pytest.mark.parametrize("engine", ENGINES)
def test_pair_counts_beyond_what_products_hold_exactly_never_turn_a_preference_round(engine):
    """Products of the counts round here: gains near 1e-16 keep size and sign, and ties stay ties."""
    world = Partition.from_labels([0, 1, 1, 1, 2, 2])
    watched = Watched([0, 0, 1, 1, 1, 1], world, "pairwise", engine)
    right, predicted, true = 3_000_000_000_000_001, 6_000_000_000_000_001, 3_000_000_000_000_001
    watched.arrays["truth"][TRUE_PAIRS] = true
    signs = set()
    for shift in (-3, -1, 0, 1, 3):
        watched.arrays["sums"][:] = right, predicted + shift
        for change in all_changes(world):
            gain = watched.judge(*change)
            after = watched.arrays["after"]
            won, made = int(after[RIGHT]) - right, int(after[1]) - predicted - shift
            whole = predicted + shift + true
            exact = Fraction(2 * (right + won), whole + made) - Fraction(2 * right, whole)
            assert (gain > 0) <= (exact > 0)
            assert (gain < 0) <= (exact < 0)
            assert gain == pytest.approx(float(exact), rel=1e-9, abs=1e-30)
            signs.add(int(np.sign(gain)))
    assert signs == {-1, 0, 1}
