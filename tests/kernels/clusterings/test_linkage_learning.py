"""SampleRank's walk over linked items against a plain one, and what it keeps on the way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.kernels.clusterings.linkage import ALONE
from factorwise.kernels.clusterings.linkage_learning import (
    ACCEPTED,
    MISRANKED,
    PRECISION,
    RECALL,
    STEPS,
    UPDATES,
    learning_walk,
    truth_gain,
)
from factorwise.kernels.compile.compiler import exposed
from factorwise.learning.linkage import LinkLearner
from factorwise.learning.linkage import _tally_truth as tally_truth
from factorwise.metrics.clustering import b_cubed
from factorwise.model.linkage import LinkModel
from factorwise.rng import Stream
from linkage_cases import RingWalk, check_rings, random_walk, rings, same_clusters
from reference import linkage_learning as reference

SIZES = (2, 3)


def case(seed, n, unknown=0.2, **settings):
    """A walk, what it learns from, and plain copies of both."""
    rng = np.random.default_rng(seed)
    started = random_walk(rng, n, heavy=False, constrained=False)
    walk = RingWalk(started.graph, started.labels)
    graph = walk.graph
    levels = rng.integers(0, [size + 1 for size in SIZES], (len(graph.first), len(SIZES))).astype(np.uint8)
    entity = np.where(rng.random(n) < unknown, -1, rng.integers(0, max(1, n // 2), n)).astype(np.int32)
    entity[0] = 0
    model = LinkModel(SIZES, rng.integers(-2, 3, 3 + sum(SIZES)) / 4.0)
    learner = LinkLearner(**{"cap": 0.25, "temperature": 0.7, "own": 0.3, **settings})
    lesson = learner._lesson(graph, levels, entity, model)
    tally_truth(lesson, walk.arrays.label)
    pairs = zip(graph.first.tolist(), graph.second.tolist(), strict=True)
    slow = reference.Lesson(
        levels={(min(p), max(p)): row for p, row in zip(pairs, levels.tolist(), strict=True)},
        offset=model.offsets.tolist(),
        entity=entity.tolist(),
        cap=learner.cap,
        margin=learner.margin,
        temperature=learner.temperature,
        own=learner.own,
        weights=model.weights.tolist(),
    )
    return walk, lesson, walk.plain(), slow


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 10))
def test_compiled_walks_learn_what_plain_ones_do(seed, n):
    walk, lesson, world, slow = case(seed, n)
    one, two = Stream(seed), Stream(seed)
    for _ in range(30):
        proposed = len(slow.gradient)
        learning_walk(walk.arrays, lesson, one.state, 1, np.zeros(2))
        reference.learning_walk(world, slow, two, 1)
        assert same_clusters(walk, world)
        assert one.state.tolist() == two.state.tolist()
        if proposed:
            assert lesson.gradient.tolist() == slow.gradient
    done = [lesson.tally[k] for k in (STEPS, UPDATES, MISRANKED, ACCEPTED)]
    assert done == [30, slow.updates, slow.misranked, slow.accepted]
    assert lesson.weights == pytest.approx(slow.weights, abs=1e-9)
    mean = lesson.weights - lesson.drift / lesson.tally[STEPS]
    assert mean == pytest.approx(np.mean(slow.visited, axis=0), abs=1e-9)
    check_rings(walk)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_gradients_are_differences_of_the_models_score(seed, n):
    walk, lesson, world, slow = case(seed, n)
    first, second = walk.graph.first, walk.graph.second
    labels = walk.labels
    score = LinkModel(SIZES, lesson.weights).score(labels, first, second, lesson.level)
    slopes = []
    for k in range(len(lesson.weights)):
        moved = LinkModel(SIZES, lesson.weights + (np.arange(len(lesson.weights)) == k))
        slopes.append(moved.score(labels, first, second, lesson.level) - score)
    assert slopes == pytest.approx(reference.statistics(slow, world.clusters), abs=1e-9)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(2, 9), st.data())
def test_truth_gains_are_those_of_b_cubed_to_first_order(seed, n, data):
    walk, lesson, world, slow = case(seed, n)
    item = data.draw(st.integers(0, n - 1))
    target = data.draw(st.sampled_from([ALONE, *(c[0] for c in rings(walk) if item not in c)]))
    change = np.full(2, 9.0)
    found = exposed_gain(walk.arrays, lesson, item, target, change)
    after = world.relocated(item, [] if target == ALONE else world.home(target))
    assert found == pytest.approx(reference.truth_gain(slow.entity, world.clusters, after), abs=1e-9)
    old, new = (reference.b_cubed(slow.entity, clusters) for clusters in (world.clusters, after))
    assert change == pytest.approx(np.subtract(new, old), abs=1e-9)


exposed_gain = exposed(truth_gain)


def test_many_small_gains_add_up_to_the_change_of_f1():
    """To first order means: the error of one move falls with the square of its share of all items."""
    errors = []
    for n in (40, 160):
        walk, lesson, *_ = case(3, n, unknown=0.0)
        before = f1(walk, lesson)
        item = int(np.flatnonzero(walk.arrays.after != np.arange(n))[0])
        gain = exposed_gain(walk.arrays, lesson, item, ALONE, np.zeros(2))
        labels = walk.labels.copy()
        labels[item] = n
        walk.place_items(labels)
        errors.append(abs(f1(walk, lesson) - before - gain / n))
    assert errors[1] < errors[0] / 4
    assert errors[0] < 0.01


def f1(walk, lesson):
    return b_cubed(lesson.entity.tolist(), walk.labels.tolist()).f1


def test_what_is_known_of_clusters_stays_right_over_thousands_of_steps():
    walk, lesson, *_ = case(7, 80)
    learning_walk(walk.arrays, lesson, Stream(1).state, 20_000, np.zeros(2))
    assert lesson.tally[ACCEPTED] > 2_000
    check_rings(walk)
    kept = lesson.known.copy(), lesson.squares.copy(), lesson.sums.copy()
    tally_truth(lesson, walk.arrays.label)
    names = np.unique(walk.arrays.label)
    assert np.array_equal(kept[0][names], lesson.known[names])
    assert np.array_equal(kept[1][names], lesson.squares[names])
    assert kept[2] == pytest.approx(lesson.sums, abs=1e-8)
    precision, recall = reference.b_cubed(lesson.entity.tolist(), rings(walk))
    assert lesson.sums[[PRECISION, RECALL]] == pytest.approx([precision, recall])


def test_items_whose_entity_is_unknown_teach_nothing():
    walk, lesson, *_ = case(9, 30, unknown=1.0)
    weights = lesson.weights.copy()
    lesson.entity[:] = -1
    learning_walk(walk.arrays, lesson, Stream(1).state, 2_000, np.zeros(2))
    assert lesson.tally[UPDATES] == 0
    assert lesson.tally[ACCEPTED] > 0
    assert np.array_equal(lesson.weights, weights)
