"""Weights that are learned in shards and mixed."""

import numpy as np
import pytest

from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.apps.resolution.training.link_learning import LinkTraining, Weights
from factorwise.distributed import LocalExecutor, Mixer, mix_weights, split_items
from factorwise.distributed.mixing import walk_shard
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.world.links import LinkGraph
from shard_cases import SIZES, training_data, training_shards

TRAINING = LinkTraining(passes=2, steps=20, fewest=500)
BLANK = LevelWeights.zeros(SIZES)
ZERO = BLANK.values


def f1_of(weights, given):
    graph, levels, truth = given
    walk = LinkWalk(graph, weights.link_scores(levels), unlinked=weights.unlinked, cluster=weights.cluster)
    LinkSearch().run(walk, seed=1, team=Team(1))
    return b_cubed(truth.tolist(), walk.labels.tolist()).f1


def mixed(shards, *, threads=1, seed=5, passes=2, on_pass=None):
    return mix_weights(LocalExecutor(threads), shards, ZERO, passes=passes, seed=seed, on_pass=on_pass)


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_any_number_of_threads_learns_the_same_weights(shards):
    parts = training_shards(1, shards, TRAINING, seed=3)
    one, two, three = (mixed(parts, threads=n) for n in (1, 2, 3))
    assert one.tobytes() == two.tobytes() == three.tobytes()
    assert np.abs(one).max() > 0.05


def test_seeds_and_shards_count():
    weights = [
        mixed(training_shards(1, shards, TRAINING), seed=seed) for shards, seed in ((2, 0), (2, 1), (3, 0))
    ]
    assert len({one.tobytes() for one in weights}) == 3


def test_mixing_learns_nearly_as_well_as_one_walk_over_all(seed):
    given, held_out, told = TrainingData(*training_data(seed)), training_data(seed + 1), []
    start = Weights(BLANK, np.zeros(0))
    whole = TRAINING.fit(given, start, seed=seed).links
    mixer = Mixer(LocalExecutor(1), 4)
    parts = TRAINING.fit(given, start, seed=seed, mixer=mixer, on_pass=told.append).links
    assert f1_of(parts, held_out) > f1_of(whole, held_out) - 0.02
    assert f1_of(parts, held_out) > f1_of(BLANK, held_out) + 0.1
    assert [one.number for one in told] == [1, 2]
    assert told[1].updates < 0.8 * told[0].updates
    assert all(0.5 < one.value <= 1.0 for one in told)


def test_one_shard_is_the_mean_over_its_walks():
    """A pass of one shard is a pass of the learner, from where the one before ended on average."""
    told = []
    (part,) = training_shards(1, 1, TRAINING)
    weights = mixed([part], on_pass=told.append)
    assert {one.steps for one in told} == {2 * TRAINING.steps * part.worlds[0].start.n_items}
    assert f1_of(LevelWeights(SIZES, weights).cumulated(), training_data(2)) > 0.9


def test_a_pass_is_the_mean_of_the_walks_by_their_steps_and_the_next_begins_there():
    shards = [
        TRAINING.shard(TrainingData(*training_data(1, 32)), SIZES),
        TRAINING.shard(TrainingData(*training_data(2, 320)), SIZES),
    ]
    share = [shard.steps / sum(each.steps for each in shards) for shard in shards]
    weights = ZERO
    for passes in (1, 2):
        small, large = (walk_shard(shard, weights, passes, 5, place)[0] for place, shard in enumerate(shards))
        weights = share[0] * small + share[1] * large
        np.testing.assert_allclose(mixed(shards, passes=passes), weights, rtol=1e-12)
        assert np.abs(small - large).max() > 0.01


def test_walks_differ_by_shard_pass_and_seed():
    shard = TRAINING.shard(TrainingData(*training_data(1, 64)), SIZES)
    walks = [(0, 5, 0), (2, 5, 0), (0, 6, 0), (0, 5, 1)]
    found = {walk_shard(shard, ZERO, *walk)[0].tobytes() for walk in walks}
    assert len(found) == len(walks)


def test_parts_of_the_graph_stay_whole_unless_they_are_too_large():
    """So do the links between different entities, which teach as much as those within one."""
    graph, levels, truth = training_data(4)
    whole = TrainingData(graph, levels, truth)
    parts = split_items(graph, truth, 4)
    assert sum(len(whole.part(items).graph.first) for items in parts) == len(graph.first)
    assert {len(items) % 16 for items in parts} == {0}
    chained = LinkGraph.from_pairs(400, np.arange(399), np.arange(1, 400))
    parts = split_items(chained, truth, 4)
    assert len(parts) == 4
    assert max(map(len, parts)) < 200


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("shards", [1, 3, 8])
def test_entities_are_learned_from_whole(shards, across):
    """Even if they lie across parts of the graph."""
    graph, _, truth = training_data(4)
    truth = np.random.default_rng(0).permutation(truth) if across else truth
    known = np.where(np.arange(len(truth)) % 5 == 0, -1, truth).astype(np.int32)
    parts = split_items(graph, known, shards, seed=2)
    items = np.concatenate(parts)
    assert len(np.unique(items)) == len(items)
    assert (known[items] >= 0).sum() == (known >= 0).sum()
    home = {entity: shard for shard, part in enumerate(parts) for entity in known[part].tolist()}
    for shard, part in enumerate(parts):
        assert {home[entity] for entity in known[part].tolist() if entity >= 0} == {shard}


def test_links_keep_their_levels():
    graph, _, truth = training_data(4, 240)
    pairs = np.stack([graph.first, graph.second], axis=1).astype(np.uint8)  # as levels that name their pair
    whole = TrainingData(graph, pairs, truth % 7)
    for items in split_items(graph, whole.entity, 3):
        part = whole.part(items)
        ends = np.stack([items[part.graph.first], items[part.graph.second]], axis=1)
        assert np.array_equal(np.sort(ends), np.sort(part.levels))
        same = part.entity[part.graph.first] == part.entity[part.graph.second]
        named = (truth % 7)[part.levels[:, 0]] == (truth % 7)[part.levels[:, 1]]
        assert (same == named).all()
        assert same.any()
        assert not same.all()


def test_shards_without_a_known_entity_are_left_out():
    graph, _, truth = training_data(4)
    one = np.where(truth == truth[0], 0, -1).astype(np.int32)
    (items,) = split_items(graph, one, 5)
    assert (one[items] == 0).sum() == (one == 0).sum()


def test_nothing_known_teaches_nothing():
    graph, _, truth = training_data(4)
    assert split_items(graph, np.full(len(truth), -1), 3) == []
    with pytest.raises(InvalidArgumentError, match="nothing can be learned"):
        mixed([])


def test_no_shards_cannot_be_learned_in():
    graph, _, truth = training_data(4)
    with pytest.raises(InvalidArgumentError, match="shards"):
        split_items(graph, truth, 0)


def test_items_without_links_can_be_split():
    parts = split_items(LinkGraph.from_pairs(6, [], []), np.arange(6) // 2, 2)
    assert sum(map(len, parts)) == 6
