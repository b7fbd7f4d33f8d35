"""Gains of a metric against the truth: compiled and incremental, against exact fractions by definition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factorwise.kernels.clusterings.truth_gains import (
    B_CUBED_F1,
    BASE,
    PAIRWISE_F1,
    RAND,
    begin_truth,
    keep_truth_gain,
    transfer_truth_gain,
    truth_arrays,
    truth_gain,
    truth_value,
)
from factorwise.kernels.compile.compiler import exposed
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.moves import merge, relocate
from factorwise.world.partition import Partition
from reference import truth_gains as reference

METRICS = {"pairwise": PAIRWISE_F1, "b-cubed": B_CUBED_F1, "rand": RAND}


def begun(entities, world, metric):
    t = truth_arrays(np.array(entities, np.int32), METRICS[metric])
    begin_truth(t, world.arrays)
    return t


def judged(t, world, diff):
    """Compiled gain of a diff."""
    items = np.array(diff.items, np.int32)
    return transfer_truth_gain(t, world.arrays, items, diff.source, diff.target)


def exact_gain(entities, world, diff, metric):
    """Gain of a diff by the definition."""
    target = None if diff.target == NEW else diff.target
    return reference.transfer_truth_gain(entities, world.labels.tolist(), diff.items, target, metric)


def all_transfers(world):
    """Relocations of every item to every place, merges of every two clusters, one split of each."""
    ids = world.cluster_ids().tolist()
    for cluster in ids:
        members = world.members(cluster).tolist()
        others = [other for other in ids if other != cluster] + [NEW] * (len(members) > 1)
        for target in others:
            yield from (Transfer((item,), cluster, target) for item in members)
            half = members[: max(1, len(members) // 2)]
            yield Transfer(tuple(half[::-1]), cluster, target)
            if target != NEW:
                yield Transfer(tuple(members), cluster, target)


def random_transfer(rng, world):
    """Relocation, merge, split or a transfer of some items, about as often as each other."""
    ids = [*world.cluster_ids().tolist(), NEW]
    while True:
        source, target = ids[rng.integers(len(ids) - 1)], ids[rng.integers(len(ids))]
        members = world.members(source)
        most = len(members) - (target == NEW)
        if source == target or most == 0:
            continue
        count = (1, most, rng.integers(1, most + 1))[rng.integers(3)]
        items = rng.permutation(members)[:count]
        return Transfer(tuple(items.tolist()), source, target, int(rng.integers(world.n_types)))


@st.composite
def worlds(draw, most=9):
    """A clustering with types and true entities, numbered without gaps, some unknown."""
    n = draw(st.integers(1, most))
    keys = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    labels = np.unique(keys, return_inverse=True)[1]
    clusters = int(labels.max()) + 1
    types = draw(st.lists(st.integers(0, 2), min_size=clusters, max_size=clusters))
    truth = draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    known = sorted(set(truth) - {-1})
    entities = [known.index(entity) if entity >= 0 else -1 for entity in truth]
    return Partition.from_labels(labels, types=types, n_types=3), entities


def assert_is(gain, exact):
    """Equal up to rounding, with the sign exact and ties exactly zero."""
    assert gain == pytest.approx(float(exact), rel=1e-9, abs=1e-15)
    assert (gain > 0, gain < 0) == (exact > 0, exact < 0)


@pytest.mark.parametrize("metric", METRICS)
@given(case=worlds())
@settings(max_examples=60)
@example(case=(Partition.singletons(1), [-1]))
@example(case=(Partition.singletons(4), [0, 0, 1, 1]))
@example(case=(Partition.from_labels([0, 0, 0, 0]), [0, 1, 2, 3]))
@example(case=(Partition.from_labels([0, 0, 1]), [-1, 0, -1]))
def test_gains_equal_the_metric_after_minus_the_metric_before(metric, case):
    world, entities = case
    t = begun(entities, world, metric)
    for diff in all_transfers(world):
        gain = judged(t, world, diff)
        assert_is(gain, exact_gain(entities, world, diff, metric))
        after = reference.begin_truth(entities, world.after(diff).labels.tolist(), metric)
        np.testing.assert_allclose(t.after, [float(total) for total in after], rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("metric", METRICS)
@given(case=worlds())
@settings(max_examples=60)
def test_sums_and_values_are_those_of_the_definition(metric, case):
    world, entities = case
    t = begun(entities, world, metric)
    sums = reference.begin_truth(entities, world.labels.tolist(), metric)
    np.testing.assert_allclose(t.sums, [float(total) for total in sums], rtol=1e-14)
    known = len(reference.known_items(entities))
    if known > (metric == "rand"):
        value = reference.truth_value(entities, world.labels.tolist(), metric)
        assert truth_value(t) == pytest.approx(float(value), rel=1e-14)
    else:
        assert math.isnan(truth_value(t))


def test_judging_a_transfer_changes_nothing_but_the_sums_after_it_and_scratch():
    world, entities = Partition.from_labels([0, 0, 1, 1, 2]), [0, 1, 0, -1, 1]
    for metric in METRICS:
        t = begun(entities, world, metric)
        watched = [*world.arrays, t.entity, t.size, t.sums, t.settings[:BASE]]
        before = [array.copy() for array in watched]
        for diff in all_transfers(world):
            judged(t, world, diff)
        for array, old in zip(watched, before, strict=True):
            np.testing.assert_array_equal(array, old)


def test_sums_stay_in_step_over_a_long_walk(seed):
    rng = np.random.default_rng(seed)
    n = 60
    entities = rng.integers(-1, 12, n).astype(np.int32)
    assert set(range(12)) <= set(entities.tolist())
    world = Partition.from_labels(np.arange(n) % 7, types=[0] * 7, n_types=2)
    walks = {metric: begun(entities, world, metric) for metric in METRICS}
    expected = {metric: truth_value(t) for metric, t in walks.items()}
    for step in range(10_000):
        if step % 10 == 0:
            cluster = int(rng.choice(world.cluster_ids()))
            world.apply(Retype(cluster, world.type_of(cluster), 1 - world.type_of(cluster)))
        diff = random_transfer(rng, world)
        for metric, t in walks.items():
            expected[metric] += judged(t, world, diff)
            t.sums[:] = t.after
        world.apply(diff)
        if step % 1_000 == 999:
            for metric, t in walks.items():
                again = begun(entities, world, metric)
                np.testing.assert_allclose(t.sums, again.sums, rtol=0 if metric != "b-cubed" else 1e-12)
                assert expected[metric] == pytest.approx(truth_value(again), abs=1e-12)
    for metric, t in walks.items():
        value = reference.truth_value(entities.tolist(), world.labels.tolist(), metric)
        assert truth_value(t) == pytest.approx(float(value), rel=1e-12)


def test_ties_are_exactly_zero_after_many_rounded_steps(seed):
    """The sums have been rounded thousands of times, yet a tie by the definition is a tie."""
    rng = np.random.default_rng(seed)
    entities = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, -1]
    world = Partition.singletons(len(entities))
    walks = {metric: begun(entities, world, metric) for metric in METRICS}
    ties = dict.fromkeys(METRICS, 0)
    for step in range(4_000):
        diff = random_transfer(rng, world)
        for metric, t in walks.items():
            gain = judged(t, world, diff)
            if step >= 3_000:
                exact = exact_gain(entities, world, diff, metric)
                assert_is(gain, exact)
                ties[metric] += exact == 0
            t.sums[:] = t.after
        world.apply(diff)
    assert min(ties.values()) > 20


@pytest.mark.parametrize("metric", METRICS)
def test_an_item_between_two_like_clusters_is_a_tie(metric):
    """The item leaves two of its entity and four strangers for two of its entity and four strangers."""
    entities = [0, 0, 0, 1, 1, 1, 2, 0, 0, 1, 1, 1, 2]
    world = Partition.from_labels([0] * 7 + [1] * 6)
    t = begun(entities, world, metric)
    assert judged(t, world, relocate(world, 0, world.cluster_of(7))) == 0.0
    np.testing.assert_allclose(t.after, t.sums, rtol=1e-15)


@pytest.mark.parametrize("metric", METRICS)
def test_unknown_items_move_without_gain(metric):
    entities = [0, 0, -1, -1, 1]
    world = Partition.from_labels([0, 0, 0, 0, 1])
    t = begun(entities, world, metric)
    for items in ((2,), (3, 2)):
        for target in (1, NEW):
            t.after[:] = np.nan
            assert judged(t, world, Transfer(items, 0, target)) == 0.0
            np.testing.assert_array_equal(t.after, t.sums)


def test_from_no_right_pairs_a_right_merge_is_a_gain_of_pairwise_f1_and_a_wrong_one_a_tie():
    world, entities = Partition.singletons(4), [0, 0, 1, 1]
    t = begun(entities, world, "pairwise")
    assert truth_value(t) == 0.0
    assert judged(t, world, merge(world, 1, 0)) == pytest.approx(2 / 3)
    assert judged(t, world, merge(world, 2, 0)) == 0.0
    for metric in ("rand", "b-cubed"):
        t = begun(entities, world, metric)
        assert judged(t, world, merge(world, 1, 0)) > 0.0
        assert judged(t, world, merge(world, 2, 0)) < 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_from_one_cluster_a_right_split_is_a_gain_and_a_wrong_one_is_not(metric):
    world, entities = Partition.from_labels([0, 0, 0, 0, 0]), [0, 0, 0, 0, 1]
    t = begun(entities, world, metric)
    assert judged(t, world, relocate(world, 4, NEW)) > 0.0
    assert judged(t, world, relocate(world, 0, NEW)) < 0.0


def test_without_true_pairs_pairwise_f1_is_zero_everywhere_and_the_others_still_judge():
    world, entities = Partition.from_labels([0, 0, 1]), [0, 1, 2]
    diff = relocate(world, 0, NEW)
    t = begun(entities, world, "pairwise")
    assert truth_value(t) == 0.0
    assert judged(t, world, diff) == 0.0
    assert all(judged(begun(entities, world, metric), world, diff) > 0.0 for metric in ("rand", "b-cubed"))


def test_pair_counts_beyond_what_products_hold_exactly_never_turn_a_preference_round():
    """Products of the counts round here: gains near 1e-16 keep size and sign, and ties stay ties."""
    t = begun([0, 0, 0, 1, 1, 1], Partition.from_labels([0, 0, 1, 1, 1, 1]), "pairwise")
    world = Partition.from_labels([0, 0, 1, 1, 1, 1])
    right, predicted, true = 3_000_000_000_000_001, 6_000_000_000_000_001, 3_000_000_000_000_001
    signs = set()
    for shift in (-3, -1, 0, 1, 3):
        t.sums[:] = right, predicted + shift
        t.settings[2] = true
        for diff in all_transfers(world):
            gain = judged(t, world, diff)
            won, made = int(t.after[0]) - right, int(t.after[1]) - predicted - shift
            whole = predicted + shift + true
            exact = Fraction(2 * (right + won), whole + made) - Fraction(2 * right, whole)
            assert (gain > 0) <= (exact > 0)
            assert (gain < 0) <= (exact < 0)
            assert gain == pytest.approx(float(exact), rel=1e-9, abs=1e-30)
            signs.add(int(np.sign(gain)))
    assert signs == {-1, 0, 1}


def test_the_parts_that_sweeps_call_do_what_the_entrance_from_python_does():
    gain_of, keep = exposed(truth_gain), exposed(keep_truth_gain)
    world, entities = Partition.from_labels([0, 0, 0, 1, 1]), [0, 1, 0, 0, 1]
    buffer = np.full(5, 99, np.int32)  # longer than what moves
    for metric in METRICS:
        t = begun(entities, world, metric)
        for diff in all_transfers(world):
            buffer[: len(diff.items)] = diff.items
            gain = gain_of(t, world.arrays, buffer, len(diff.items), diff.source, diff.target)
            after = t.after.copy()
            assert gain == judged(t, world, diff)
            np.testing.assert_array_equal(after, t.after)
        keep(t)
        np.testing.assert_array_equal(t.sums, after)
