"""Searches over groups of components: the same bits wherever groups are searched, and how they go on."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from factorwise.distributed import LocalExecutor, ShardKeeping
from factorwise.distributed import group_search as module
from factorwise.distributed.group_search import answer_group, search_groups
from factorwise.errors import DataFileError, LostItemsError
from factorwise.inference.mcmc.shards import component_search
from factorwise.inference.mcmc.shards.component_search import search_group
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.io.shard_files import ShardStore
from group_cases import planted_groups

SEARCH = LinkSearch(rounds=4, sweeps=1, extra=2)


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 40)


@pytest.fixture(scope="module")
def links():
    return planted_groups()


def searched(links, threads=1, **more):
    groups = component_search.find_groups(links)
    assert len(groups) > 4
    labels, found = search_groups(LocalExecutor(threads), groups, SEARCH, 7, **more)
    return labels.tolist(), found


def test_threads_do_not_change_what_is_found(links):
    assert searched(links, 1) == searched(links, 2) == searched(links, 3)


def test_a_group_is_searched_as_by_itself_and_what_is_settled_stays(links):
    labels, found = searched(links)
    groups = component_search.find_groups(links)
    score = groups.settled_score
    for group in groups:
        alone = search_group(group, links.weights, SEARCH, 7)
        assert np.array(labels)[group.items].tolist() == group.items[alone.labels].tolist()
        score += alone.found.score
    assert found.score == pytest.approx(score)
    walk = links.walk(labels)
    assert walk.score == pytest.approx(found.score, abs=1e-3)
    assert walk.labels.tolist() == labels


def test_the_rows_of_a_group_do_not_depend_on_other_groups(links):
    """Without one of the components all others end as they did."""
    labels, _ = searched(links)
    groups = component_search.find_groups(links)
    gone = groups.take(1).items
    kept = ~np.isin(links.first, gone)
    fewer = component_search.ScoredLinks(
        links.first[kept],
        links.second[kept],
        links.score[kept],
        links.weights,
        links.counts,
        links.sources,
    )
    others = np.setdiff1d(groups.take(0).items, gone)
    assert np.array(searched(fewer)[0])[others].tolist() == np.array(labels)[others].tolist()


def kept(folder, every=1):
    return ShardKeeping(ShardStore(str(folder)), "this run", every)


def test_what_is_told_of_each_group(links):
    told = []
    labels, found = searched(links, watch=told.append)
    assert [progress.round for progress in told] == list(range(1, len(told) + 1))
    assert all(progress.of == len(told) for progress in told)
    assert {progress.unit for progress in told} == {"group"}
    assert told[-1].score == pytest.approx(found.score)
    assert told[-1].clusters == len(set(labels))


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_that_was_stopped_goes_on_with_the_other_groups_to_the_same_bits(links, tmp_path, stop, every):
    wanted = searched(links)

    def die(progress):
        if progress.round == stop:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        searched(links, watch=die, keeping=kept(tmp_path, every))
    told = []
    again = searched(links, 2, watch=told.append, keeping=kept(tmp_path, every))
    assert again == wanted
    assert told[0].round == (stop - 1) // every * every + 1
    told.clear()
    assert searched(links, watch=told.append, keeping=kept(tmp_path, every)) == wanted
    assert told == []


def test_an_interrupt_leaves_what_was_not_searched_by_itself(links, tmp_path):
    def interrupt(progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    labels, found = searched(links, watch=interrupt, keeping=kept(tmp_path))
    assert found.reason == "interrupted"
    last = component_search.find_groups(links).take(4).items
    assert np.array(labels)[last].tolist() == last.tolist()
    assert searched(links, keeping=kept(tmp_path)) == searched(links)


def test_checkpoints_are_written_as_often_as_asked(links, tmp_path, monkeypatch):
    commits = []
    monkeypatch.setattr(ShardStore, "commit", lambda store, manifest: commits.append(len(manifest.files)))
    groups = len(component_search.find_groups(links))
    searched(links, keeping=ShardKeeping(ShardStore(str(tmp_path)), "this run", 1))
    assert commits == list(range(1, groups + 1))
    commits.clear()
    searched(links, keeping=ShardKeeping(ShardStore(str(tmp_path)), "this run", 1, 1e9))
    assert commits == [groups]


def test_what_is_told_goes_on_from_a_checkpoint(links, tmp_path):
    whole, told = [], []
    searched(links, watch=whole.append)

    def stop(progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    searched(links, watch=stop, keeping=kept(tmp_path))
    searched(links, watch=told.append, keeping=kept(tmp_path))
    assert told[0].round == 3
    assert [progress.clusters for progress in told] == [progress.clusters for progress in whole[2:]]


def test_an_interrupt_in_the_search_of_a_group_ends_all(links, monkeypatch):
    searched_groups = []

    def interrupted(group, weights, search, seed):
        searched_groups.append(group.number)
        answer = answer_group(group, weights, search, seed)
        return answer._replace(found=answer.found._replace(reason="interrupted"))

    monkeypatch.setattr(module, "answer_group", interrupted)
    assert searched(links)[1].reason == "interrupted"
    assert len(searched_groups) == 1


def test_each_group_may_take_what_is_left_of_the_time(links, monkeypatch):
    begun, left = time.monotonic(), []

    def timed(group, weights, search, seed):
        left.append(search.seconds)
        return answer_group(group, weights, search, seed)

    monkeypatch.setattr(module, "answer_group", timed)
    clock = SimpleNamespace(monotonic=lambda: begun + 10.0 * len(left), thread_time=time.thread_time)
    monkeypatch.setattr(module, "time", clock)
    groups = component_search.find_groups(links)
    search_groups(LocalExecutor(1), groups, replace(SEARCH, seconds=1000.0), 7)
    assert left == pytest.approx([1000.0 - 10.0 * k for k in range(len(groups))], abs=5.0)


def test_after_the_time_no_group_begins(links):
    groups = component_search.find_groups(links)
    labels, found = search_groups(
        LocalExecutor(1), groups, LinkSearch(rounds=4, sweeps=1, extra=2, seconds=0.0), 7
    )
    assert found.reason == "time"
    first = groups.take(0).items
    assert labels[first].tolist() == first.tolist()


def test_a_task_that_answers_for_other_items_is_found_out(links, monkeypatch):
    def losing(group, weights, search, seed):
        answer = answer_group(group, weights, search, seed)
        return answer._replace(checksum=answer.checksum._replace(items=len(group.items) - 1))

    monkeypatch.setattr(module, "answer_group", losing)
    with pytest.raises(LostItemsError, match="lost or duplicated"):
        searched(links)


def test_the_checkpoint_of_another_run_or_of_other_groups_is_refused(links, tmp_path, monkeypatch):
    searched(links, keeping=kept(tmp_path))
    other = ShardKeeping(ShardStore(str(tmp_path)), "that run", 1)
    with pytest.raises(DataFileError, match="another run"):
        searched(links, keeping=other)
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 50)
    with pytest.raises(DataFileError, match="has other items than the group"):
        searched(links, keeping=kept(tmp_path))
