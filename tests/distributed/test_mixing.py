"""Weights that are learned in shards and mixed."""

from dataclasses import replace

import numpy as np
import pytest

from factorwise.distributed import LocalExecutor, ShardLesson, mix_weights, split_lessons
from factorwise.distributed.mixing import walk_lesson
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.inference.mcmc.linkage_search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.learning.linkage import LinkLearner
from factorwise.metrics.clustering import b_cubed
from factorwise.model.linkage import LinkModel
from shard_cases import SIZES, lesson

LEARNER = LinkLearner(passes=4, steps=20, fewest=500)
BLANK = LinkModel.blank(SIZES)


def f1_of(model, given):
    graph, levels, truth = given
    walk = LinkWalk(graph, model.link_scores(levels), apart=model.apart, cluster=model.cluster)
    LinkSearch().run(walk, seed=1, team=Team(1))
    return b_cubed(truth.tolist(), walk.labels.tolist()).f1


def entities_in(lessons):
    return [int((part.truth >= 0).sum()) for part in lessons]


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_any_number_of_threads_learns_the_same_weights(shards):
    parts = split_lessons(*lesson(1), shards, seed=3)
    one, two, three = (mix_weights(LocalExecutor(n), parts, LEARNER, BLANK, seed=5) for n in (1, 2, 3))
    assert one.weights.tobytes() == two.weights.tobytes() == three.weights.tobytes()
    assert np.abs(one.weights).max() > 0.05


def test_seeds_and_shards_count():
    given = lesson(1)
    weights = [
        mix_weights(LocalExecutor(1), split_lessons(*given, shards), LEARNER, BLANK, seed=seed).weights
        for shards, seed in ((2, 0), (2, 1), (3, 0))
    ]
    assert len({one.tobytes() for one in weights}) == 3


def test_mixing_learns_nearly_as_well_as_one_walk_over_all(seed):
    given, held_out = lesson(seed), lesson(seed + 1)
    told = []
    parts = split_lessons(*given, 4)
    assert len(parts) == 4
    mixed = mix_weights(LocalExecutor(1), parts, LEARNER, BLANK, seed=seed, callback=told.append)
    whole = LEARNER.fit(*given, BLANK, seed=seed)
    assert f1_of(mixed, held_out) > f1_of(whole, held_out) - 0.02
    assert f1_of(mixed, held_out) > f1_of(BLANK, held_out) + 0.1
    assert [(one.number, one.start) for one in told] == [
        (1, "alone"),
        (2, "truth"),
        (3, "alone"),
        (4, "truth"),
    ]
    assert told[2].updates < 0.8 * told[0].updates
    assert all(0.5 < one.value <= 1.0 for one in told)


def test_one_shard_is_the_mean_over_its_walks():
    """A pass of one shard is a pass of the learner, from where the one before ended on average."""
    (part,) = split_lessons(*lesson(1), 1)
    told = []
    mixed = mix_weights(LocalExecutor(1), [part], LEARNER, BLANK, seed=5, callback=told.append)
    assert len(told) == LEARNER.passes
    assert {one.steps for one in told} == {LEARNER.steps * part.graph.n_items}
    assert f1_of(mixed, lesson(2)) > 0.9


def test_a_pass_is_the_mean_of_the_walks_by_their_items_and_the_next_begins_there():
    lessons = [ShardLesson(*lesson(1, 32)), ShardLesson(*lesson(2, 320))]
    mixed = [
        mix_weights(LocalExecutor(1), lessons, replace(LEARNER, passes=passes), BLANK, seed=5)
        for passes in (1, 2)
    ]
    model = BLANK
    for number, found in enumerate(mixed):
        small, large = (
            walk_lesson(LEARNER, own, model, number, 5, shard)[0].weights for shard, own in enumerate(lessons)
        )
        model = LinkModel(SIZES, (small + 10 * large) / 11)
        np.testing.assert_allclose(found.weights, model.weights, rtol=1e-12)
        assert np.abs(small - large).max() > 0.01


def test_walks_differ_by_shard_pass_and_seed():
    given = ShardLesson(*lesson(1, 64))
    walks = [(0, 5, 0), (2, 5, 0), (0, 6, 0), (0, 5, 1)]
    found = {walk_lesson(LEARNER, given, BLANK, *walk)[0].weights.tobytes() for walk in walks}
    assert len(found) == len(walks)


def test_parts_of_the_graph_stay_whole_unless_they_are_too_large():
    """So do the links between different entities, which teach as much as those within one."""
    graph, levels, truth = lesson(4)
    assert sum(len(part.graph.first) for part in split_lessons(graph, levels, truth, 4)) == len(graph.first)
    assert {part.graph.n_items % 16 for part in split_lessons(graph, levels, truth, 4)} == {0}
    chained = LinkGraph.from_pairs(400, np.arange(399), np.arange(1, 400))
    parts = split_lessons(chained, np.zeros((399, 2), np.uint8), truth, 4)
    assert len(parts) == 4
    assert max(part.graph.n_items for part in parts) < 200


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("shards", [1, 3, 8])
def test_entities_are_learned_from_whole(shards, across):
    """Even if they lie across parts of the graph."""
    graph, levels, truth = lesson(4)
    truth = np.random.default_rng(0).permutation(truth) if across else truth
    known = np.where(np.arange(len(truth)) % 5 == 0, -1, truth).astype(np.int32)
    parts = split_lessons(graph, levels, known, shards, seed=2)
    assert sum(part.graph.n_items for part in parts) <= graph.n_items
    assert sum(entities_in(parts)) == (known >= 0).sum()
    sizes = sorted(np.bincount(known[known >= 0])[np.unique(known[known >= 0])].tolist())
    found = [count for part in parts for count in np.bincount(part.truth[part.truth >= 0]).tolist()]
    assert sorted(found) == sizes
    for part in parts:
        assert part.levels.shape == (len(part.graph.first), len(SIZES))
        assert part.truth.dtype == np.int32


def test_links_keep_their_levels():
    graph, levels, truth = lesson(4, 240)
    total = sum(int(part.levels.sum()) for part in split_lessons(graph, levels, truth, 1))
    assert total == int(levels.sum())
    pairs = np.stack([graph.first, graph.second], axis=1).astype(np.uint8)  # as levels that name their pair
    for part in split_lessons(graph, pairs, truth % 7, 3):
        same = part.truth[part.graph.first] == part.truth[part.graph.second]
        named = (truth % 7)[part.levels[:, 0]] == (truth % 7)[part.levels[:, 1]]
        assert (same == named).all()
        assert same.any()
        assert not same.all()


def test_shards_without_a_known_entity_are_left_out():
    graph, levels, truth = lesson(4)
    one = np.where(truth == truth[0], 0, -1).astype(np.int32)
    parts = split_lessons(graph, levels, one, 5)
    assert len(parts) == 1
    assert entities_in(parts) == [int((one == 0).sum())]


def test_nothing_known_teaches_nothing():
    graph, levels, truth = lesson(4)
    parts = split_lessons(graph, levels, np.full(len(truth), -1), 3)
    assert parts == []
    with pytest.raises(InvalidArgumentError, match="nothing can be learned"):
        mix_weights(LocalExecutor(1), parts, LEARNER, BLANK)


def test_no_shards_cannot_be_learned_in():
    with pytest.raises(InvalidArgumentError, match="shards"):
        split_lessons(*lesson(4), 0)


def test_items_without_links_can_be_split():
    graph = LinkGraph.from_pairs(6, [], [])
    parts = split_lessons(graph, np.zeros((0, 2), np.uint8), np.arange(6) // 2, 2)
    assert sum(entities_in(parts)) == 6
