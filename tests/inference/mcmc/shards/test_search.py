"""Searches for the best clustering: what they find, how they stop, and how they go on."""

import math

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards import search as linkage_search
from factorwise.inference.mcmc.shards import sharded_walk as shards_module
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch, parts, shards_by_key
from factorwise.kernels.compile.threads import Team
from linkage_cases import CASES, check, is_allowed, model_score, partitions, random_walk, walk_of

ALONE = Team(1)
SHORT = LinkSearch(rounds=6, sweeps=2, hot=1.5, cold=0.3, extra=3)


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(linkage_search, "ITEMS_PER_SHARD", 12)


def walk_and_key(seed=1, n=120):
    rng = np.random.default_rng(seed)
    walk = random_walk(rng, n, density=0.08)
    walk.place_items(np.arange(n))
    return walk, rng.integers(-1, n // 8, n)


@pytest.mark.parametrize("name", CASES)
def test_the_best_clustering_of_a_few_items_is_found(name):
    case = CASES[name]
    best = max(model_score(case, world) for world in partitions(case["n"]) if is_allowed(case, world))
    found = [LinkSearch().run(walk_of(case), seed=seed, team=ALONE) for seed in range(4)]
    assert max(f.score for f in found) == pytest.approx(best)
    assert {f.reason for f in found} == {"settled"}


@pytest.mark.usefixtures("small_shards")
def test_a_search_taken_up_after_any_round_ends_where_an_undisturbed_one_does():
    walk, key = walk_and_key()
    kept = []
    undisturbed = SHORT.run(walk, key, seed=5, team=ALONE, keep=kept.append)
    assert undisturbed.rounds == len(kept) >= SHORT.rounds
    assert len({state.label.tobytes() for state in kept}) > 3
    for state in kept:
        again, _ = walk_and_key()
        found = SHORT.run(again, key, seed=5, team=ALONE, resume=state)
        assert found == undisturbed
        assert again.labels.tolist() == walk.labels.tolist()


@pytest.mark.usefixtures("small_shards")
def test_states_that_were_kept_do_not_move_with_the_search():
    walk, key = walk_and_key()
    kept = []

    def keep(state):
        kept.append((state, state.label.copy()))

    SHORT.run(walk, key, seed=5, team=ALONE, keep=keep)
    for state, label in kept:
        assert np.array_equal(state.label, label)


@pytest.mark.usefixtures("small_shards")
def test_searches_do_not_depend_on_the_number_of_threads():
    ends = []
    for threads in (1, 2, 3):
        walk, key = walk_and_key(n=200)
        told = []
        with Team(threads) as team:
            found = SHORT.run(
                walk, key, seed=2, team=team, watch=lambda p, told=told: told.append(p._replace(seconds=0.0))
            )
        ends.append((found, walk.labels.tolist(), told))
    assert ends[0] == ends[1] == ends[2]
    assert ends[0][0].score == pytest.approx(walk.score, abs=1e-6)


@pytest.mark.usefixtures("small_shards")
def test_clusters_and_clusters_of_one_key_lie_in_one_shard():
    walk, key = walk_and_key()
    for number in range(3):
        walk.sweep(0, number, 1.0, team=ALONE)
    label = walk.shards.label.copy()
    shard = shards_by_key(walk, key)[label]
    walk.place_shards(shards_by_key(walk, key))
    check(walk)
    assert np.bincount(shard).max() <= 40
    assert set(shard.tolist()) <= set(range(10))
    assert len(set(shard.tolist())) >= 6
    strongest = np.full(200, -1)
    np.maximum.at(strongest, label, key)
    for value in set(strongest.tolist()) - {-1}:
        assert len(set(shard[strongest[label] == value].tolist())) == 1


@pytest.mark.usefixtures("small_shards")
def test_without_a_key_the_parts_of_the_graph_are_searched_one_by_one():
    one, other = walk_and_key()[0], walk_and_key()[0]
    graph = one.graph
    key = parts(one.n_items, graph.first, graph.second, one.link_scores)
    SHORT.run(one, key, seed=1, team=ALONE)
    SHORT.run(other, seed=1, team=ALONE)
    assert one.labels.tolist() == other.labels.tolist()


def test_an_interrupt_ends_a_search_with_what_it_has():
    walk, key = walk_and_key()

    def watch(progress):
        if progress.round == 3:
            raise KeyboardInterrupt

    found = SHORT.run(walk, key, seed=1, team=ALONE, watch=watch)
    assert (found.reason, found.rounds) == ("interrupted", 3)
    assert found.score == walk.score
    check(walk)


@pytest.mark.usefixtures("small_shards")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_amid_a_sweep_leaves_whole_clusters_and_their_score(threads, monkeypatch):
    walk, key = walk_and_key()
    calls = []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 25:
            raise KeyboardInterrupt
        return real(*arguments)

    real = shards_module._Worker.sweep
    monkeypatch.setattr(shards_module._Worker, "sweep", interrupted)
    with Team(threads) as team:
        found = SHORT.run(walk, key, seed=1, team=team)
    assert (found.reason, found.rounds) == ("interrupted", 1)
    assert found.score == pytest.approx(walk.score)
    check(walk)


def test_a_search_out_of_time_begins_no_further_round():
    walk, key = walk_and_key()
    found = LinkSearch(seconds=0.0).run(walk, key, seed=1, team=ALONE)
    assert (found.reason, found.rounds) == ("time", 0)
    assert walk.n_clusters == walk.n_items


def test_a_search_that_goes_on_gaining_stops_after_its_rounds():
    walk, key = walk_and_key()
    found = LinkSearch(rounds=1, extra=0).run(walk, key, seed=1, team=ALONE)
    assert (found.reason, found.rounds) == ("rounds", 1)


def test_a_start_with_forbidden_pairs_together_is_left_behind():
    case = CASES["forbidden"]
    walk = walk_of(case, [0, 0, 0, 0, 0])
    assert walk.score == -math.inf
    found = LinkSearch().run(walk, seed=1, team=ALONE)
    assert is_allowed(case, walk.labels.tolist())
    assert found.score == pytest.approx(walk.score)
    assert found.reason == "settled"


@pytest.mark.parametrize("n", [0, 1])
def test_next_to_nothing_can_be_searched(n):
    walk = LinkWalk(LinkGraph.from_pairs(n, [], []), [], unlinked=-1.0, cluster=0.5)
    found = LinkSearch().run(walk, np.arange(n), seed=0, team=ALONE)
    assert (found.reason, found.score) == ("settled", 0.5 * n)


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("rounds", 0, "at least 1"),
        ("sweeps", 0, "at least 1"),
        ("hot", 0.0, "greater than zero"),
        ("hot", math.inf, "finite"),
        ("cold", -0.1, "greater than zero"),
        ("cold", math.nan, "greater than zero"),
        ("jumps", -0.1, "zero or more"),
        ("extra", -1, "zero or more"),
        ("seconds", -1.0, "None for any time"),
        ("seconds", math.nan, "None for any time"),
    ],
)
def test_settings_out_of_range_are_refused(setting, value, wanted):
    with pytest.raises(InvalidArgumentError, match=f"{setting} must be .*{wanted}.*{value!r} was given"):
        LinkSearch(**{setting: value})


@pytest.mark.usefixtures("small_shards")
def test_in_the_end_no_item_would_rather_be_elsewhere():
    """Items whose only good links lead into other shards are moved there when the rounds are done."""
    rng = np.random.default_rng(3)
    groups, size = 20, 6
    first, second = np.nonzero(np.triu(np.kron(np.eye(groups), np.ones((size, size))), 1))
    scores = np.full(len(first), 2.0)
    n = groups * size
    wanderers = np.arange(0, n, size)  # each held by one link in its group, drawn by five into the next
    weaker = np.isin(first, wanderers)
    scores[weaker] = 0.1
    others = (wanderers[:, None] + size + np.arange(1, size)) % n
    graph = LinkGraph.from_pairs(
        n, np.append(first, np.repeat(wanderers, 5)), np.append(second, others.ravel())
    )
    walk = LinkWalk(graph, np.append(scores, np.full(others.size, 0.5)), unlinked=-0.01, cluster=0.0)
    key = np.repeat(np.arange(groups), size)
    told = []
    search = LinkSearch(rounds=4, sweeps=2, hot=0.05, cold=0.02, extra=2)
    found = search.run(walk, key, seed=int(rng.integers(100)), team=ALONE, watch=told.append)
    assert found.score > told[-1].score + groups / 2
    assert found.score == pytest.approx(walk.score, abs=1e-3)
    assert walk.home_chances(0.02, team=ALONE).min() >= 0.5
    check(walk)
