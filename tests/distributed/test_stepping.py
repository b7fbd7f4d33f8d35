"""What a shard does in a round."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.distributed import LinkWeights, ShardModel, ShardRows, shard_walk, step_shard
from factorwise.distributed.shard_rows import walk_of
from factorwise.distributed.stepping import destinations
from linkage_cases import CASES, is_allowed, random_walk
from linkage_cases import walk_of as case_walk
from shard_cases import MODEL, STEP, checksum_of, planted, rows_of, same_rows

GIVEN = planted(300)
MANY = STEP._replace(shards=1_000)


def ran(parts, step=STEP, model=MODEL):
    sent, report = step_shard(parts, step, model)
    assert len(sent) == step.shards
    return sent, report._replace(cpu_seconds=0.0)


def cut(rows, places):
    return [rows.taken(np.flatnonzero(places == part)) for part in range(places.max() + 1)]


def test_a_run_is_a_function_of_its_rows_and_the_step_alone(seed):
    (rows,) = GIVEN.shards(1)
    sent, report = ran([rows])
    rng = np.random.default_rng(seed)
    for parts in (1, 2, 7):
        others = cut(rows, rng.integers(0, parts, rows.n_items))
        rng.shuffle(others)
        again, also = ran(others)
        assert also == report
        assert all(same_rows(one, two) for one, two in zip(sent, again, strict=True))
    assert report.gain > 10.0
    assert report.proposals > 0


def test_a_run_leaves_the_rows_it_was_given_alone():
    rows = GIVEN.shards(2)
    before = [[column.copy() for column in part] for part in rows]
    for part in rows:
        for column in part:
            column.flags.writeable = False  # as a cluster hands them out
    ran(rows)
    assert all(same_rows(one, two) for one, two in zip(rows, before, strict=True))


@pytest.mark.parametrize("change", [{"seed": 4}, {"round": 1}, {"shard": 1}, {"temperature": 0.1}])
def test_all_that_the_step_says_counts(change):
    (rows,) = GIVEN.shards(1)
    one, two = (ran([rows], step)[0] for step in (STEP, STEP._replace(**change)))
    assert ShardRows.joined(one).entity.tolist() != ShardRows.joined(two).entity.tolist()


@pytest.mark.parametrize("exchange", ["guided", "random", "none"])
@pytest.mark.parametrize("shard", [0, 3])
def test_every_item_is_sent_once_with_its_entity_whole_and_named_by_its_smallest_item(exchange, shard):
    rows = GIVEN.shards(4)[shard]
    sent, report = ran([rows], STEP._replace(exchange=exchange, shard=shard))
    after = ShardRows.joined(sent)
    unchanged = rows._replace(entity=after.entity)
    assert same_rows(after, unchanged)
    assert report.checksum == checksum_of(sent) == rows.checksum
    homes = [set(part.entity.tolist()) for part in sent]
    assert sum(map(len, homes)) == len(set().union(*homes)) == report.entities
    for entity in np.unique(after.entity).tolist():
        assert after.item[after.entity == entity].min() == entity


def test_the_report_tells_the_score_and_what_was_gained():
    (rows,) = GIVEN.shards(1)
    sent, report = ran([rows])
    before = walk_of(rows, MODEL)
    after = walk_of(ShardRows.joined(sent), MODEL)
    assert report.score == pytest.approx(after.score)
    assert report.gain == pytest.approx(after.score - before.score, abs=1e-3)
    assert report.entities == after.n_clusters < before.n_clusters
    assert step_shard([rows], STEP, MODEL)[1].cpu_seconds > 0.0


@pytest.mark.parametrize("name", ["forbidden", "one per source", "everything"])
def test_forbidden_pairs_and_sources_are_heeded(name):
    case = CASES[name]
    (rows,) = shard_walk(case_walk(case), 1, 0)
    seen = set()
    for seed in range(60):
        step = STEP._replace(seed=seed, temperature=2.0)
        model = ShardModel(LinkWeights(case["unlinked"], case["cluster"]))
        labels = ShardRows.joined(ran([rows], step, model)[0]).entity.tolist()
        assert is_allowed(case, labels)
        seen.add(tuple(labels))
    assert len(seen) > 3


def test_a_heavy_item_counts_as_its_records():
    """Two that like each other by 3 are kept apart by four pairs of records of which three cost 2 each."""
    links = [(0, 1, 3.0)]
    step, model = STEP._replace(temperature=0.01, sweeps=4), ShardModel(LinkWeights(-2.0, 0.0))
    light = ShardRows.joined(ran([rows_of([0, 1], links)], step, model)[0])
    heavy = ShardRows.joined(ran([rows_of([0, 1], links, counts=[2, 2])], step, model)[0])
    assert light.entity.tolist() == [0, 0]
    assert heavy.entity.tolist() == [0, 1]


@pytest.mark.parametrize("exchange", ["guided", "random", "none"])
@pytest.mark.parametrize("items", [[], [5]])
def test_a_shard_of_nothing_or_of_one_item_runs_too(items, exchange):
    rows = rows_of(items, [(5, 8, 1.0)])
    sent, report = ran([rows], STEP._replace(exchange=exchange))
    assert same_rows(ShardRows.joined(sent), rows)
    assert (report.entities, report.gain, report.score) == (len(items), 0.0, 0.125 * len(items))


@given(st.integers(0, 10**9), st.integers(0, 50), st.sampled_from(["guided", "random"]))
def test_all_items_of_an_entity_go_to_one_shard(seed, round_, exchange):
    walk = random_walk(np.random.default_rng(seed % 7), 30)
    (rows,) = shard_walk(walk, 1, 0)
    place = destinations(rows, STEP._replace(seed=seed, round=round_, exchange=exchange))
    assert ((place >= 0) & (place < STEP.shards)).all()
    assert len(set(zip(rows.entity.tolist(), place.tolist(), strict=True))) == walk.n_clusters


def test_two_that_are_linked_with_each_other_alone_always_meet():
    left, right = (rows_of([item], [(3, 8, 0.5)]) for item in (3, 8))
    for round_ in range(100):
        step = MANY._replace(round=round_)
        assert destinations(left, step) == destinations(right, step._replace(shard=77))


def test_entities_meet_as_often_as_what_they_are_linked_with_is_the_same():
    """Of the six items that either is, or is linked with, four are the same."""
    left = rows_of([0], [(0, 1, 1.0), (0, 2, 1.0), (0, 3, 1.0), (0, 4, 1.0)])
    right = rows_of([1], [(1, 0, 1.0), (1, 2, 1.0), (1, 3, 1.0), (1, 5, 1.0)])
    meetings = sum(
        int(destinations(left, step)[0] == destinations(right, step)[0])
        for step in (MANY._replace(round=number) for number in range(2_000))
    )
    assert abs(meetings / 2_000 - 4 / 6) < 0.05  # nearly five standard deviations


def test_links_that_speak_against_a_pair_draw_no_one():
    left = rows_of([3], [(3, 8, -0.5)])
    assert {int(destinations(left, MANY._replace(round=number))[0]) for number in range(100)} == {0}


def test_only_entities_that_a_chain_of_links_connects_with_another_shard_leave():
    """Of 1, 2, 5 and 7 the first three hang together, and 5 is linked with 9, which lies elsewhere."""
    links = [(1, 2, 1.0), (2, 5, 1.0), (5, 9, 1.0), (7, 9, -1.0)]
    rows = rows_of([1, 2, 5, 7], links, entity=[1, 1, 5, 7])
    steps = [MANY._replace(round=number) for number in range(20)]
    moved = np.array([destinations(rows, step) != MANY.shard for step in steps])
    assert (moved.mean(axis=0) > 0.8).tolist() == [True, True, True, False]
    by_entity = rows_of(
        [1, 2, 5], [(1, 2, 1.0), (2, 9, 1.0)], entity=[1, 2, 1]
    )  # 5 goes where its entity goes
    assert all(len(set(destinations(by_entity, step)[[0, 2]].tolist())) == 1 for step in steps)
    whole = rows_of([1, 2, 5], links[:2])
    assert all((destinations(whole, step) == MANY.shard).all() for step in steps)


@pytest.mark.parametrize("exchange", ["guided", "random"])
def test_places_change_from_round_to_round_and_with_the_seed_and_are_spread_evenly(exchange):
    rows = GIVEN.shards(1)[0].taken(np.arange(0, 300, 2))  # the others are elsewhere
    step = STEP._replace(exchange=exchange)
    first = destinations(rows, step)
    for other in (step._replace(round=1), step._replace(seed=4)):
        assert 0.1 < (destinations(rows, other) == first).mean() < 0.4  # of four places
    counts = sum(np.bincount(destinations(rows, step._replace(round=r)), minlength=4) for r in range(40))
    assert (abs(counts / counts.sum() - 0.25) < 0.04).all()


def test_nothing_moves_without_an_exchange():
    for shard in (0, 2):
        place = destinations(GIVEN.shards(4)[shard], STEP._replace(exchange="none", shard=shard))
        assert set(place.tolist()) == {shard}
