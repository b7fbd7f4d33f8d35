"""Searches over shards in threads: what they find, what they find out, and how they go on."""

from itertools import pairwise

import numpy as np
import pytest

from factorwise.distributed import (
    LinkWeights,
    LocalExecutor,
    Sharding,
    ShardKeeping,
    ShardModel,
    search_shards,
    step_shard,
)
from factorwise.distributed.search import entities_of
from factorwise.errors import DataFileError, InvalidArgumentError, LostItemsError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.io.shard_files import ShardStore
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from linkage_cases import CASES, is_allowed, model_score, partitions
from linkage_cases import walk_of as case_walk
from shard_cases import SHORT, digest, doubling, local_digest, losing, planted, rows_of, scattered

GIVEN = planted()
N = GIVEN.graph.n_items


def kept(folder, fingerprint="this run", every=2):
    return ShardKeeping(ShardStore(str(folder)), fingerprint, every)


def dying(at_round, *, shard=2):
    """A step during which the program ends, in the middle of a round."""

    def step(parts, given, model):
        if (given.round, given.shard) == (at_round, shard):
            raise SystemExit(137)
        return step_shard(parts, given, model)

    return step


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("exchange", ["guided", "random", "none"])
def test_any_number_of_threads_gives_the_same_bits(threads, exchange):
    alone, found = local_digest(GIVEN, 5, exchange=exchange)
    executor = LocalExecutor(threads)
    assert GIVEN.search(executor, 5, exchange=exchange) == found
    assert digest(executor, N) == alone


def test_seeds_shards_and_exchanges_are_searches_of_their_own():
    runs = [{"shards": 5}, {"shards": 4}, {"shards": 5, "seed": 2}, {"shards": 5, "exchange": "random"}]
    assert len({local_digest(GIVEN, **run)[0] for run in runs}) == 4


@pytest.mark.parametrize("name", CASES)
def test_one_shard_finds_the_best_clustering_of_a_few_items_as_a_walk_in_memory_does(name):
    case = CASES[name]
    best = max(model_score(case, world) for world in partitions(case["n"]) if is_allowed(case, world))
    scores = []
    for seed in range(4):
        executor, walk = LocalExecutor(1), case_walk(case)
        rows = rows_of(
            range(case["n"]), case["links"], counts=case.get("counts"), sources=case.get("sources")
        )
        settings = {"model": ShardModel(LinkWeights(case["unlinked"], case["cluster"])), "seed": seed}
        found = search_shards(executor, [rows], LinkSearch(), Sharding(1), **settings)
        labels = entities_of(executor, case["n"]).tolist()
        assert found.score == pytest.approx(model_score(case, labels))
        assert is_allowed(case, labels)
        scores.append(found.score)
        LinkSearch().run(walk, seed=seed, team=Team(1))
        assert walk.score <= best + 1e-6
    assert max(scores) == pytest.approx(best)


def test_guided_shards_find_about_what_a_walk_in_memory_does_and_frozen_ones_do_not():
    search = LinkSearch(rounds=16, sweeps=2, extra=0)
    walk = GIVEN.walk()
    whole = search.run(walk, seed=1, team=Team(1)).score
    scores, f1 = {}, {}
    for exchange in ("guided", "random", "none"):
        executor = LocalExecutor(1)
        scores[exchange] = GIVEN.search(executor, 6, search=search, exchange=exchange).score
        f1[exchange] = b_cubed(GIVEN.truth.tolist(), entities_of(executor, N).tolist()).f1
    assert scores["guided"] > 0.98 * whole
    assert scores["none"] < 0.5 * whole
    assert scores["guided"] > scores["random"] > scores["none"]
    assert f1["guided"] > f1["none"] + 0.2


def test_the_score_that_is_told_is_that_of_the_clustering():
    executor, told = LocalExecutor(1), []
    found = GIVEN.search(executor, 5, watch=told.append)
    walk = GIVEN.walk()
    walk.place_items(entities_of(executor, N))
    assert found.score == pytest.approx(walk.score, rel=1e-5)
    assert told[-1].clusters == walk.n_clusters
    assert [one.round for one in told] == list(range(1, found.rounds + 1))
    assert all(one.proposals < two.proposals for one, two in pairwise(told))


@pytest.mark.parametrize("n", [1, 3])
def test_there_may_be_more_shards_than_items(n):
    given = planted(n)
    executor = LocalExecutor(2)
    given.search(executor, 8)
    assert len(entities_of(executor, n)) == n


@pytest.mark.parametrize("step", [losing, doubling])
def test_a_step_that_loses_or_doubles_an_item_is_found_out_in_its_round(step):
    seen = []
    with pytest.raises(LostItemsError, match=r"lost or duplicated.*last checkpoint"):
        GIVEN.search(LocalExecutor(1), 4, function=step, watch=seen.append)
    assert len(seen) == 1


def test_a_loss_after_the_last_round_is_found_out_when_entities_are_asked_for():
    executor = LocalExecutor(1)
    GIVEN.search(executor, 4)
    rows = list(executor.rows())
    executor.load([rows[0].taken(np.arange(1, rows[0].n_items)), *rows[1:]])
    with pytest.raises(LostItemsError, match="599 items are in the shards, 1 of 600 in none"):
        entities_of(executor, N)
    executor.load([*rows, rows[1].taken(np.array([0]))])
    with pytest.raises(LostItemsError, match="601 items"):
        entities_of(executor, N)


def test_a_step_that_is_no_function_passes_as_long_as_nothing_is_computed_twice():
    """The checksum cannot see it; the cluster tests show that it does once a machine is lost."""
    executor = LocalExecutor(1)
    GIVEN.search(executor, 4, function=scattered)
    one = digest(executor, N)
    GIVEN.search(executor, 4, function=scattered)
    assert digest(executor, N) != one


@pytest.mark.parametrize("at_round", [2, 3, 5])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_whose_driver_died_in_a_round_goes_on_to_the_same_bits(at_round, threads, tmp_path):
    wanted, undisturbed = local_digest(GIVEN, 5)
    assert undisturbed.rounds == 6
    keeping = kept(tmp_path)
    with pytest.raises(SystemExit):
        GIVEN.search(LocalExecutor(threads), 5, keeping=keeping, function=dying(at_round))
    executor, told = LocalExecutor(threads), []
    found = GIVEN.search(executor, None, count=5, keeping=keeping, watch=told.append)
    assert told[0].round == at_round // 2 * 2 + 1
    assert digest(executor, N) == wanted
    assert found.rounds == undisturbed.rounds
    assert found.score == pytest.approx(undisturbed.score)


def test_what_is_told_goes_on_where_it_stopped(tmp_path):
    whole, told = [], []
    GIVEN.search(LocalExecutor(1), 5, watch=whole.append)
    with pytest.raises(SystemExit):
        GIVEN.search(LocalExecutor(1), 5, keeping=kept(tmp_path), function=dying(3))
    GIVEN.search(LocalExecutor(1), None, count=5, keeping=kept(tmp_path), watch=told.append)
    for one, two in zip(told, whole[2:], strict=True):
        assert (one.round, one.clusters, one.proposals) == (two.round, two.clusters, two.proposals)


def test_a_run_that_had_ended_is_not_run_again(tmp_path):
    keeping = kept(tmp_path, every=1)
    first = LocalExecutor(1)
    found = GIVEN.search(first, 5, keeping=keeping)
    again, told = LocalExecutor(1), []
    assert GIVEN.search(again, None, count=5, keeping=keeping, watch=told.append) == found
    assert told == []
    assert digest(again, N) == digest(first, N)


def test_a_checkpoint_counts_more_than_the_rows_that_are_given(tmp_path):
    wanted, _ = local_digest(GIVEN, 5)
    with pytest.raises(SystemExit):
        GIVEN.search(LocalExecutor(1), 5, keeping=kept(tmp_path), function=dying(3))
    executor, told = LocalExecutor(1), []
    GIVEN.search(executor, 5, keeping=kept(tmp_path), watch=told.append)
    assert told[0].round == 3
    assert digest(executor, N) == wanted


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    GIVEN.search(LocalExecutor(1), 5, keeping=kept(tmp_path))
    with pytest.raises(DataFileError, match=r"another run.*Give another folder"):
        GIVEN.search(LocalExecutor(1), 5, keeping=kept(tmp_path, "another run"))


class Forgetful(LocalExecutor):
    """An executor that loses an item after the fourth round, as if it had been computed again, otherwise."""

    def checkpoint(self, store):
        files = super().checkpoint(store)
        if store.latest("this run") is None:
            return files
        rows = list(self.rows())
        self.load([rows[0].taken(np.arange(1, rows[0].n_items)), *rows[1:]])
        return super().checkpoint(store)


def test_a_checkpoint_that_lost_an_item_is_never_committed(tmp_path):
    told = []
    with pytest.raises(LostItemsError, match="lost or duplicated"):
        GIVEN.search(Forgetful(1), 5, keeping=kept(tmp_path), watch=told.append)
    assert len(told) == 4
    latest = ShardStore(str(tmp_path)).latest("this run")
    assert latest.state["round"] == 2
    assert sum(file.items for file in latest.files) == N


def test_an_interrupt_ends_a_search_with_what_was_found():
    executor, told = LocalExecutor(1), []

    def interrupt(progress):
        told.append(progress)
        if progress.round == 3:
            raise KeyboardInterrupt

    found = GIVEN.search(executor, 5, watch=interrupt)
    assert (found.rounds, found.reason) == (3, "interrupted")
    assert found.score == pytest.approx(told[-1].score, rel=1e-5)
    assert len(entities_of(executor, N)) == N


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "shards.*from 1 to 10,000"),
        ((-3,), "shards"),
        ((10_001,), "shards"),
        ((4, "eager"), "exchange.*'guided', 'random' or 'none'"),
    ],
)
def test_shardings_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Sharding(*arguments)


def test_checkpoints_are_some_rounds_apart():
    with pytest.raises(InvalidArgumentError, match=r"every.*at least 1"):
        kept("anywhere", every=0)


def test_rows_must_be_those_of_all_shards():
    settings = {"model": ShardModel(LinkWeights(0.0, 0.0)), "seed": 0}
    with pytest.raises(InvalidArgumentError, match="3 shards were given, but the sharding has 4"):
        search_shards(LocalExecutor(1), GIVEN.shards(3), SHORT, Sharding(4), **settings)
    with pytest.raises(InvalidArgumentError, match="an item lies in two shards"):
        search_shards(LocalExecutor(1), [rows_of([1]), rows_of([1])], SHORT, Sharding(2), **settings)
    with pytest.raises(InvalidArgumentError, match="an entity lies in two shards"):
        search_shards(
            LocalExecutor(1), [rows_of([1]), rows_of([2], entity=[1])], SHORT, Sharding(2), **settings
        )


def test_without_rows_there_must_be_a_checkpoint(tmp_path):
    with pytest.raises(InvalidArgumentError, match="no checkpoint to resume from: give the rows"):
        GIVEN.search(LocalExecutor(1), None, count=4)
    with pytest.raises(InvalidArgumentError, match="no checkpoint to resume from: give the rows"):
        GIVEN.search(LocalExecutor(1), None, count=4, keeping=kept(tmp_path))
