"""The model of a discourse: its world to learn from, and the search for its best clustering."""

import threading

import numpy as np
import pytest

from coreference_cases import discourse
from factorwise.apps.coreference.resolution import (
    AGGREGATES,
    discourse_model,
    in_threads,
    mention_mover,
    search,
    training_world,
    typical_gain,
)
from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.inference.exact.clusterings import all_partitions
from factorwise.rng import Stream
from factorwise.world.partition import Partition

FIVE = (
    "< Ann Lee >PER/NAM/0 met < Bob >PER/NAM/1 . < She >PER/PRO/0 saw < Lee >PER/NAM/0 in < Rome >LOC/NAM/2 ."
)


def model_of(given, seed=0, scale=1.0):
    model = discourse_model(given)
    model.weights = scale * np.random.default_rng(seed).normal(size=model.blocks.size)
    return model


def names_of(model):
    return [model.weight_name(k) for k in range(model.blocks.size)]


def test_every_weight_has_a_name_of_its_own():
    names = names_of(discourse_model(discourse(FIVE)))
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scope", ["document", "topic"])
def test_all_discourses_of_a_scope_have_the_same_weights(scope):
    one = discourse_model(discourse(FIVE, scope=scope))
    other = discourse_model(discourse("< it >/PRO rains .", scope=scope))
    assert names_of(one) == names_of(other)
    assert one.blocks == other.blocks


def test_each_aggregate_adds_its_weights_of_pairs():
    given = discourse(FIVE)
    sizes = [discourse_model(given, AGGREGATES[:k]).blocks.sizes for k in (1, 2, 5)]
    assert sizes[1][0] == 2 * sizes[0][0]
    assert sizes[2][0] == 5 * sizes[0][0]
    assert sizes[0][1:] == sizes[1][1:] == sizes[2][1:]


def test_a_training_world_starts_with_every_mention_by_itself_and_knows_the_truth():
    world = training_world(discourse(FIVE), metric="rand")
    assert world.start.n_clusters == world.start.n_items == 5
    assert world.truth.dense_labels().tolist() == [0, 1, 0, 0, 2]
    assert world.name == "d0"
    assert world.preference.watch(world.truth).value == 1.0
    assert world.preference.watch(world.start).value == pytest.approx(0.7)  # 3 of 10 pairs are together
    assert not world.model.weights.any()


def test_a_world_to_learn_from_needs_entities_and_a_known_metric():
    with pytest.raises(DataFileError, match=r"mention 0 has no 'entity'.*or only predict"):
        training_world(discourse("< Ann >PER/NAM sat ."))
    with pytest.raises(InvalidArgumentError, match="metric must be one of"):
        training_world(discourse(FIVE), metric="muc")


def test_moves_of_mentions_lead_from_everywhere_to_everywhere():
    """In one move a mention joins any other cluster or leaves its own."""
    for world in all_partitions(4):
        reached = set()
        for proposal in mention_mover().support(world):
            if proposal.diff is not None:
                there = world.copy()
                there.apply(proposal.diff)
                reached.add(tuple(there.dense_labels()))
        labels = world.dense_labels()
        neighbours = set()
        for item in range(4):
            for target in range(5):
                moved = labels.copy()
                moved[item] = target
                neighbours.add(tuple(Partition.from_keys(moved).dense_labels()))
        assert reached == neighbours - {tuple(labels)}


@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_the_best_of_all_clusterings(seed):
    model = model_of(discourse(FIVE), seed)
    found = search(model, 5, steps=3_000, seed=seed)
    best = max(all_partitions(5), key=model.score)
    assert found.tolist() == best.dense_labels().tolist()
    assert found.dtype == np.int64


def test_clusters_are_numbered_in_the_order_of_the_text():
    for seed in range(3):
        found = search(model_of(discourse(FIVE), seed), 5, steps=10, seed=seed).tolist()
        first = [found.index(label) for label in range(max(found) + 1)]
        assert first == sorted(first)


def test_two_mentions_are_joined_or_not_as_the_weights_say():
    model = discourse_model(discourse("< Ann >PER/NAM saw < Ann >PER/NAM ."))
    (size,) = [k for k, name in enumerate(names_of(model)) if name == "pairs: count of any two"]
    for weight, expected in ((1.0, [0, 0]), (-1.0, [0, 1])):
        weights = np.zeros(model.blocks.size)
        weights[size] = weight
        model.weights = weights
        assert search(model, 2, steps=100, seed=0).tolist() == expected


def test_one_mention_is_an_entity_and_no_model_is_asked():
    found = search(None, 1, steps=1, seed=0)
    assert (found.tolist(), found.dtype) == ([0], np.int64)


def test_larger_weights_are_searched_with_larger_temperatures():
    """A power of two changes no bit but the exponent: the walk is the same, step by step."""
    given = discourse(FIVE)
    for steps in (3, 30, 300):
        for seed in range(3):
            small, large = (search(model_of(given, 1, s), 5, steps=steps, seed=seed) for s in (1.0, 2.0**20))
            assert small.tolist() == large.tolist()


def test_a_seed_gives_the_same_clusters_again():
    text = " ".join(f"< Ann {n} >PER/NAM sat ." for n in range(12))
    model = model_of(discourse(text), 3)
    first, again, *others = (search(model, 12, steps=15, seed=seed).tolist() for seed in (5, 5, 6, 7, 8))
    assert first == again
    assert any(other != first for other in others)


def test_the_typical_gain_grows_with_the_weights_and_is_one_without_any():
    given = discourse(FIVE)
    start = Partition.singletons(5)
    one, ten = (typical_gain(model_of(given, scale=scale), start, Stream(0)) for scale in (1.0, 10.0))
    assert ten == pytest.approx(10.0 * one)
    assert one > 0.0
    assert typical_gain(discourse_model(given), start, Stream(0)) == 1.0


def test_the_typical_gain_is_a_median_of_gains():
    """From two mentions by themselves every move joins them: all gains are the same."""
    model = model_of(discourse("< Ann >PER/NAM saw < Bob >PER/NAM ."))
    together = Partition.from_labels([0, 0])
    gain = model.score(together) - model.score(Partition.singletons(2))
    assert typical_gain(model, Partition.singletons(2), Stream(0)) == pytest.approx(abs(gain))


def test_a_world_without_moves_has_a_typical_gain_of_one():
    model = model_of(discourse("< Ann >PER/NAM sat ."))
    assert typical_gain(model, Partition.singletons(1), Stream(0)) == 1.0


def test_work_is_shared_by_threads_and_answers_keep_their_order():
    assert in_threads(str, range(20), 1) == in_threads(str, range(20), 2) == [str(k) for k in range(20)]
    meeting = threading.Barrier(2, timeout=30)
    assert sorted(in_threads(lambda _: meeting.wait(), range(2), 2)) == [0, 1]  # both are at work at once


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fault_in_one_of_the_threads_is_raised(threads):
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda k: 1 / k, [1, 0, 2], threads)
