"""Rows of shards: cutting and joining them, what the checksum finds, and the clustering that they are."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.distributed import LinkWeights, ShardModel, ShardRows, shard_model, shard_walk
from factorwise.distributed.shard_rows import Checksum, check_shards, walk_of
from factorwise.errors import InvalidArgumentError
from factorwise.rng import split_mix, split_mix_words
from linkage_cases import CASES, random_walk
from linkage_cases import walk_of as case_walk
from shard_cases import checksum_of, planted, rows_of, same_rows

NOTHING = rows_of([])
MODEL = ShardModel(LinkWeights(-1.0, 0.5))


def whole(seed=0, n=40):
    walk = random_walk(np.random.default_rng(seed), n)
    return walk, shard_walk(walk, 1, 0)[0]


@given(st.integers(0, 5), st.lists(st.integers(0, 3), min_size=40, max_size=40), st.permutations(range(4)))
def test_rows_that_are_cut_in_any_way_and_joined_in_any_order_are_the_same_bits(seed, place, order):
    _, rows = whole(seed)
    parts = [rows.taken(np.flatnonzero(np.array(place) == part)) for part in order]
    assert same_rows(ShardRows.joined(parts), rows)
    assert checksum_of(parts) == rows.checksum


def test_a_part_has_the_links_of_its_items_and_no_others():
    rows = rows_of([2, 5, 9], [(2, 5, 0.5), (5, 9, -1.5), (5, 7, 2.0)])
    part = rows.taken(np.array([1, 2]))
    assert part.item.tolist() == [5, 9]
    assert part.start.tolist() == [0, 3, 4]
    assert part.neighbor.tolist() == [2, 9, 7, 5]
    assert part.score.tolist() == [0.5, -1.5, 2.0, -1.5]


def test_hashes_are_those_of_the_random_streams():
    values = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    assert split_mix_words(values).tolist() == [split_mix(value) for value in values.tolist()]


def test_the_checksum_finds_a_loss_a_doubling_and_an_exchange():
    before = rows_of(range(10, 60)).checksum
    lost = rows_of([item for item in range(10, 60) if item != 23])
    assert checksum_of([lost]) != before
    assert checksum_of([lost, rows_of([23])]) == before
    assert checksum_of([lost, rows_of([24])]) != before  # as many items as before
    assert checksum_of([rows_of(range(10, 60)), rows_of([23])]) != before
    for other in range(200):
        assert other == 23 or checksum_of([lost, rows_of([other])]) != before


def test_checksums_wrap_around_instead_of_growing():
    total = sum([Checksum(1, 2**64 - 1), Checksum(2, 3)], Checksum(0, 0))
    assert total == Checksum(3, 2)


@pytest.mark.parametrize("shards", [1, 3, 16, 200])
def test_every_entity_is_cut_out_whole_and_named_by_its_smallest_item(shards):
    walk, _ = whole(3, 60)
    cut = shard_walk(walk, shards, 7)
    assert len(cut) == shards
    assert sorted(item for rows in cut for item in rows.item.tolist()) == list(range(60))
    labels = walk.labels
    for rows in cut:
        assert rows.entity.tolist() == labels[rows.item].tolist()
        assert set(rows.entity.tolist()) <= set(rows.item.tolist())
        assert (np.diff(rows.item) > 0).all()
    check_shards(cut)


def test_other_seeds_put_entities_elsewhere():
    walk, _ = whole(3, 60)
    places = [tuple(tuple(rows.item.tolist()) for rows in shard_walk(walk, 4, seed)) for seed in (0, 1, 2)]
    assert len(set(places)) == 3


@pytest.mark.parametrize("name", CASES)
def test_one_shard_is_the_clustering_itself(name):
    case = CASES[name]
    walk = case_walk(case)
    twin = walk_of(shard_walk(walk, 1, 0)[0], ShardModel(LinkWeights(case["unlinked"], case["cluster"])))
    assert twin.labels.tolist() == walk.labels.tolist()
    assert twin.score == walk.score
    assert np.array_equal(twin.graph.start, walk.graph.start)
    for column in ("counts", "sources"):
        assert np.array_equal(getattr(twin, column), getattr(walk, column))
    rows, twins = (
        zip(one.graph.neighbor.tolist(), one.link_scores[one.graph.pair].tolist(), strict=True)
        for one in (walk, twin)
    )
    ends = walk.graph.start.tolist()
    listed, also = list(rows), list(twins)
    for a, b in pairwise(ends):
        assert sorted(listed[a:b]) == sorted(also[a:b])


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_scores_of_the_shards_add_up_to_that_of_the_clustering(seed, shards):
    walk, _ = whole(seed, 30)
    model = shard_model(walk)
    assert model == ShardModel(LinkWeights(*walk.settings.tolist()))
    cut = shard_walk(walk, shards, seed)
    walks = [walk_of(rows, model) for rows in cut]
    assert sum(part.score for part in walks) == pytest.approx(walk.score, abs=1e-5)
    assert sum(part.n_clusters for part in walks) == walk.n_clusters


def test_shards_without_rows_without_links_and_with_one_item_are_clusterings_too():
    assert walk_of(NOTHING, MODEL).score == 0.0
    assert walk_of(NOTHING, MODEL).n_clusters == 0
    assert walk_of(rows_of([7], [(7, 3, 2.0)]), MODEL).score == 0.5
    loose = walk_of(rows_of([7, 8, 12], entity=[7, 7, 12]), MODEL)
    assert loose.labels.tolist() == [0, 0, 2]
    assert loose.score == 0.0
    assert NOTHING.checksum == Checksum(0, 0)
    assert same_rows(ShardRows.joined([NOTHING, NOTHING]), NOTHING)
    assert same_rows(NOTHING.taken(np.zeros(0, np.int64)), NOTHING)


def test_links_to_items_of_other_shards_are_left_out():
    links = [(1, 4, 1.0), (4, 6, 2.0), (1, 9, 8.0), (6, 0, 8.0)]
    walk = walk_of(rows_of([1, 4, 6], links, entity=[1, 1, 1]), ShardModel(LinkWeights(-0.5, 0.0)))
    assert sorted(zip(walk.graph.first.tolist(), walk.graph.second.tolist(), strict=True)) == [(0, 1), (1, 2)]
    assert walk.score == pytest.approx(1.0 + 2.0 - 0.5)


def test_an_item_in_two_shards_and_an_entity_that_is_cut_are_complained_of():
    with pytest.raises(InvalidArgumentError, match="an item lies in two shards"):
        check_shards([rows_of([1, 2]), rows_of([2, 3])])
    with pytest.raises(InvalidArgumentError, match="an entity lies in two shards"):
        check_shards([rows_of([1, 2]), rows_of([3], entity=[1])])
    assert check_shards([rows_of([1, 2]), NOTHING, rows_of([3])]) == rows_of([1, 2, 3]).checksum


def test_there_is_at_least_one_shard():
    with pytest.raises(InvalidArgumentError, match=r"shards.*at least 1"):
        shard_walk(whole()[0], 0, 0)


def test_a_generated_problem_is_worth_sharding():
    """The other tests would prove little if its best clustering were every item by itself, or in parts."""
    given = planted()
    counts = np.bincount(given.truth)
    assert counts.max() >= 5
    together = given.truth[given.graph.first] == given.truth[given.graph.second]
    assert 0.2 < together.mean() < 0.6
    assert (np.diff(given.graph.start) > 3).mean() > 0.9
