"""Searches by components, against all clusterings of a few items, and chances against those of a walk."""

from itertools import combinations

import numpy as np
import pytest

from factorwise.inference.mcmc.shards import component_search
from factorwise.inference.mcmc.shards.component_search import (
    LinkWeights,
    ScoredLinks,
    find_groups,
    search_group,
)
from factorwise.inference.mcmc.shards.item_ranges import chances_of_range, cut_ranges
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team

ITEMS = 6
ALONE = Team(1)


def clusterings(n):
    """Yield all clusterings, each as the number of the cluster of each item."""
    if n == 0:
        yield ()
        return
    for rest in clusterings(n - 1):
        for label in range(max(rest, default=-1) + 2):
            yield (*rest, label)


ALL = np.array(list(clusterings(ITEMS)))


def links_of(n, pairs, values, unlinked, cluster, counts=None, sources=None):
    pairs = np.asarray(pairs, np.int32).reshape(-1, 2)
    return ScoredLinks(
        np.ascontiguousarray(pairs[:, 0]),
        np.ascontiguousarray(pairs[:, 1]),
        np.asarray(values, np.float32),
        LinkWeights(unlinked, cluster),
        np.ones(n, np.int32) if counts is None else np.asarray(counts, np.int32),
        np.zeros(n, np.uint64) if sources is None else np.asarray(sources, np.uint64),
    )


def drawn(seed, linked, mean, unlinked, cluster):
    """Links of a few items, and the score of each clustering of them."""
    draws = np.random.default_rng(seed)
    pairs = np.array([pair for pair in combinations(range(ITEMS), 2) if draws.random() < linked])
    values = draws.normal(mean, 1.0, len(pairs)).astype(np.float32)
    given = {tuple(pair): value for pair, value in zip(pairs.tolist(), values.tolist(), strict=True)}
    scores = cluster * (ALL.max(axis=1) + 1.0)
    for one, two in combinations(range(ITEMS), 2):
        scores += (ALL[:, one] == ALL[:, two]) * given.get((one, two), unlinked)
    return links_of(ITEMS, pairs, values, unlinked, cluster), scores


def many(seed, n=300, linked=900, **more):
    """Links between many items, most of which belong together in fives."""
    draws = np.random.default_rng(seed)
    pairs = np.sort(draws.integers(n, size=(linked, 2)), axis=1)
    pairs = np.concatenate([pairs, [(k, k + 1) for k in range(n - 1) if k % 5 < 4]])
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
    mean = np.where(pairs[:, 0] // 5 == pairs[:, 1] // 5, 2.0, -2.0)
    return links_of(n, pairs, draws.normal(mean, 1.0), -0.3, more.pop("cluster", 0.1), **more)


def searched(links, seed=1):
    groups = find_groups(links)
    search = LinkSearch(rounds=6)
    found = ((k, search_group(group, links.weights, search, seed).labels) for k, group in enumerate(groups))
    return groups, groups.labels(found)


@pytest.mark.parametrize(
    ("linked", "mean", "unlinked", "cluster"),
    [(0.5, 0.5, 0.0, 0.0), (0.8, 0.0, -0.5, 0.4), (0.6, 0.5, -0.4, -0.4), (1.0, -1.0, 0.0, 1.5)],
)
def test_a_best_clustering_has_the_settled_components_as_clusters(linked, mean, unlinked, cluster):
    settled = 0
    for seed in range(40):
        links, scores = drawn(seed, linked, mean, unlinked, cluster)
        groups = find_groups(links)
        labels = groups.component
        closed = np.flatnonzero(groups.group[labels] < 0)
        keeps = np.ones(len(ALL), bool)
        for one, two in combinations(range(ITEMS), 2):
            if one in closed or two in closed:
                keeps &= (ALL[:, one] == ALL[:, two]) == (labels[one] == labels[two])
            elif labels[one] != labels[two]:
                keeps &= ALL[:, one] != ALL[:, two]
        assert scores[keeps].max() == pytest.approx(scores.max(), abs=1e-4)
        settled += len(closed)
        if not len(groups):
            assert groups.settled_score == pytest.approx(scores.max(), abs=1e-4)
    assert settled > 0


@pytest.mark.parametrize(("unlinked", "cluster"), [(-1.0, 0.0), (-0.2, 0.3), (-0.7, -0.4), (0.0, 0.2)])
def test_settled_components_are_best_where_items_stand_for_several_records(unlinked, cluster):
    settled = 0
    for seed in range(30):
        links, _ = drawn(seed, 0.4, 1.0, unlinked, cluster)
        links.counts[:] = np.random.default_rng(seed).integers(1, 4, ITEMS)
        groups = find_groups(links)
        labels, walk = groups.component, links.walk()
        scores = []
        for each in ALL:
            walk.place_items(each)
            scores.append(walk.score)
        kept = groups.group[labels] < 0
        together = ALL[:, :, None] == ALL[:, None]
        keeps = (together == (labels[:, None] == labels))[:, kept].all(axis=(1, 2))
        assert np.array(scores)[keeps].max() == pytest.approx(max(scores), abs=1e-4)
        settled += kept.sum()
        if not len(groups):
            assert groups.settled_score == pytest.approx(max(scores), abs=1e-4)
    assert settled > 0


def test_items_of_several_records_that_one_link_ties_are_left_open():
    groups = find_groups(links_of(3, [(0, 1)], [2.0], -1.0, 0.0, counts=[3, 3, 2]))
    assert groups.open_items == 2
    assert groups.settled_score == -1.0


def test_a_search_of_groups_finds_what_is_best():
    reached = 0
    for seed in range(20):
        links, scores = drawn(seed, 0.8, 0.0, -0.5, 0.4)
        _, labels = searched(links)
        number = np.unique(labels, return_inverse=True)[1]
        together = number[:, None] == number
        mine = next(k for k, each in enumerate(ALL) if np.array_equal(each[:, None] == each, together))
        assert scores[mine] > scores.max() - 1.0
        reached += scores[mine] == pytest.approx(scores.max(), abs=1e-5)
    assert reached >= 15


def test_what_is_found_depends_neither_on_stretches_nor_on_the_groups_before(monkeypatch):
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 20)
    links = many(1)
    groups, labels = searched(links)
    assert len(groups) > 3
    monkeypatch.setattr(component_search, "STRETCH", 7)
    assert np.array_equal(searched(links)[1], labels)
    last = groups.take(len(groups) - 1)
    own = search_group(last, links.weights, LinkSearch(rounds=6), 1).labels
    assert np.array_equal(last.items[own], labels[last.items])


def test_groups_hold_whole_components_and_all_links_inside_them(monkeypatch):
    monkeypatch.setattr(component_search, "ITEMS_PER_GROUP", 20)
    links = many(2)
    groups = find_groups(links)
    items = np.concatenate([group.items for group in groups])
    assert len(np.unique(items)) == len(items) == groups.open_items
    inside = groups.component[links.first] == groups.component[links.second]
    inside &= groups.group[groups.component[links.first]] >= 0
    expected = {*zip(links.first[inside].tolist(), links.second[inside].tolist(), strict=True)}
    found = [
        pair
        for group in groups
        for pair in zip(group.items[group.first].tolist(), group.items[group.second].tolist(), strict=True)
    ]
    assert len(found) == len(expected)
    assert set(found) == expected


def test_all_items_are_one_group_where_links_do_not_tell_components():
    links = links_of(3, [(0, 1)], [1.0], 0.5, 0.0)
    groups = find_groups(links)
    assert [group.items.tolist() for group in groups] == [[0, 1, 2]]


def test_all_items_are_one_group_where_a_cluster_costs_more_than_an_unlinked_pair():
    assert find_groups(links_of(3, [(0, 1)], [1.0], -0.2, -0.5)).open_items == 3
    assert find_groups(links_of(3, [(0, 1)], [1.0], -0.5, -0.5)).open_items == 0


def test_a_pair_of_one_source_stays_open_and_apart():
    links = links_of(3, [(0, 1)], [1.0], 0.0, 0.0, sources=[1, 1, 2])
    groups, labels = searched(links)
    assert groups.open_items == 2
    assert labels.tolist() == [0, 1, 2]


def test_groups_that_were_not_searched_stay_apart():
    groups = find_groups(many(3))
    labels = groups.labels(iter(()))
    settled = groups.group[groups.component] < 0
    assert np.array_equal(labels[~settled], np.flatnonzero(~settled))


@pytest.mark.parametrize("given", ["plain", "counts", "sources", "forbidden"])
def test_chances_are_those_of_a_walk_over_all(given):
    more = {}
    if given == "counts":
        more["counts"] = np.random.default_rng(5).integers(1, 4, 300)
    if given == "sources":
        more["sources"] = np.uint64(1) << np.arange(300).astype(np.uint64) % np.uint64(5)
    links = many(4, **more)
    if given == "forbidden":
        links.score[::9] = -np.inf
    _, labels = searched(links)
    walk = links.walk(labels)
    expected = walk.home_chances(0.7, team=ALONE)
    assert 0.05 < np.mean(expected < 0.99) < 0.95
    parts = [chances_of_range(part, links.weights, 0.7) for part in cut_ranges(links, labels, 110)]
    assert len(parts) == 3
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-5, atol=1e-6)
