"""Merge trees: average linkage, and the posterior over cuts against an enumeration of all cuts."""

import numpy as np
import pytest
from scipy.stats import norm

from factorwise.errors import ShapeError
from factorwise.inference import merge_trees
from factorwise.inference.merge_trees import UNLINKED, LinkPosterior, grow_merge_tree
from factorwise.world.links import LinkGraph
from reference.merge_trees import cuts, items_below, join_groups

FALSE_ALARM = 1e-5
N = 8


def case(seed, n=N):
    """Random links between items, and labels that put them into three clusters."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, 1)
    kept = rng.random(len(first)) < 0.7
    first, second = first[kept], second[kept]
    scores = rng.normal(0.0, 2.0, len(first)).astype(np.float32)
    return LinkGraph.from_pairs(n, first, second), scores, rng.integers(0, 3, n)


def grown(graph, scores, labels, counts=None, sources=None, pairs=None, unlinked=UNLINKED):
    n = graph.n_items
    return grow_merge_tree(
        graph,
        np.asarray(scores, np.float32),
        np.asarray(labels),
        counts=np.ones(n, int) if counts is None else np.asarray(counts),
        sources=np.zeros(n, np.uint64) if sources is None else np.asarray(sources, np.uint64),
        pairs=np.ones(len(graph.first), int) if pairs is None else np.asarray(pairs),
        unlinked=unlinked,
    )


@pytest.fixture(autouse=True)
def joins_whatever_the_mean(monkeypatch):
    monkeypatch.setattr(merge_trees, "LOWEST_MEAN", -100.0)


@pytest.mark.parametrize("number", range(6))
def test_clusters_and_then_unions_of_clusters_are_joined_by_join_groups(number):
    graph, scores, labels = case(number)
    tree = grown(graph, scores, labels)
    linked = {(int(a), int(b)): float(s) for a, b, s in zip(graph.first, graph.second, scores, strict=True)}

    def score(a, b):
        return linked.get((a, b), linked.get((b, a), UNLINKED))

    expected = set()
    for label in set(labels.tolist()):
        expected |= join_groups(np.flatnonzero(labels == label).tolist(), score)
    sets = {node: frozenset(items_below(node, tree.left, tree.right)) for node in range(len(tree.mean))}
    assert {sets[node] for node in range(N, tree.n_inner)} == expected
    members = [frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())]

    def across(a, b):
        return sum(score(x, y) for x in members[a] for y in members[b])

    for node in range(N, len(tree.mean)):
        one, two = sets[tree.left[node]], sets[tree.right[node]]
        total = sum(score(a, b) for a in one for b in two)
        assert tree.mean[node] == pytest.approx(total / (len(one) * len(two)), abs=1e-5)
        assert tree.count[node] == len(sets[node])
    assert {sets[node] for node in set(tree.found.tolist())} == set(members)
    if len(members) == 3:  # the first union is that of the two with the highest mean
        pairs = [(0, 1), (0, 2), (1, 2)]
        means = {pair: across(*pair) / (len(members[pair[0]]) * len(members[pair[1]])) for pair in pairs}
        a, b = max(means, key=means.get)
        assert sets[tree.n_inner] == members[a] | members[b]


@pytest.mark.parametrize("number", range(4))
def test_probabilities_and_draws_are_those_of_all_cuts(number):
    graph, scores, labels = case(10 + number)
    tree = grown(graph, scores, labels)
    whole = np.random.default_rng(number).random(len(tree.mean))
    whole[:N] = 1.0
    whole[-1] = 0.0 if number == 0 else whole[-1]  # a top that is no cluster for certain
    draws = 3_000
    found = tree.posterior(whole, graph, draws=draws, seed=number)
    (root,) = np.flatnonzero(tree.parent < 0)
    worlds = [
        ([items_below(node, tree.left, tree.right) for node in nodes], chance)
        for nodes, chance in cuts(root, tree.left, tree.right, whole)
    ]
    assert sum(chance for _, chance in worlds) == pytest.approx(1.0)
    for pair, (a, b) in enumerate(zip(graph.first.tolist(), graph.second.tolist(), strict=True)):
        exact = sum(chance for sets, chance in worlds if any({a, b} <= one for one in sets))
        assert found.together[pair] == pytest.approx(exact, abs=1e-6)
        share = np.mean(found.labels[:, a] == found.labels[:, b])
        error = np.sqrt(exact * (1.0 - exact) / draws)
        assert abs(share - exact) <= norm.isf(FALSE_ALARM / 200) * error + 1e-9
    for item in range(N):
        own = set(np.flatnonzero(labels == labels[item]).tolist())
        exact = sum(chance for sets, chance in worlds if own in sets)
        assert found.whole[item] == pytest.approx(exact, abs=1e-6)
    for drawn in found.labels[:50]:  # named by the smallest member
        assert all(drawn[label] == label <= item for item, label in enumerate(drawn.tolist()))


def test_rows_of_probabilities_are_taken_in_turn_and_averaged():
    graph, scores, labels = case(20)
    tree = grown(graph, scores, labels)
    rows = np.random.default_rng(1).random((3, len(tree.mean)))
    rows[:, :N] = 1.0
    found = tree.posterior(rows, graph, draws=30, seed=4)
    each = [tree.posterior(row, graph, draws=30, seed=4) for row in rows]
    np.testing.assert_allclose(found.together, np.mean([one.together for one in each], axis=0), atol=1e-6)
    np.testing.assert_allclose(found.whole, np.mean([one.whole for one in each], axis=0), atol=1e-6)
    for draw in range(30):
        assert found.labels[draw].tolist() == each[draw % 3].labels[draw].tolist()


def test_the_same_seed_draws_the_same_clusterings():
    graph, scores, labels = case(3)
    tree = grown(graph, scores, labels)
    whole = np.full(len(tree.mean), 0.5)
    whole[:N] = 1.0
    one, two, other = (tree.posterior(whole, graph, draws=20, seed=seed).labels for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_what_is_forbidden_is_possible_at_no_node_above_it():
    pairs, scores = [(0, 1), (1, 2), (2, 3)], [3.0, -np.inf, 3.0]
    graph = LinkGraph.from_pairs(4, *np.array(pairs).T)
    tree = grown(graph, scores, [0, 0, 1, 1])
    both = [tree.possible[node] for node in range(4, tree.n_inner)]
    assert both == [True, True]
    assert not tree.possible[tree.n_inner :].any()
    assert len(tree.mean) == 6  # nothing but a link below all bounds lies between them


def test_records_of_one_source_are_possible_together_at_no_node():
    graph = LinkGraph.from_pairs(3, [0, 0, 1], [1, 2, 2])
    tree = grown(graph, [2.0, 1.0, 0.5], [0, 1, 2], sources=[1, 2, 1])
    assert tree.possible.tolist() == [True, True, True, True, False]


def test_items_that_stand_for_several_records_count_as_often():
    graph = LinkGraph.from_pairs(2, [0], [1])
    tree = grown(graph, [4.0], [0, 0], counts=[3, 2])
    assert tree.mean[2] == pytest.approx((4.0 + 5 * UNLINKED) / 6)
    assert tree.count[2] == 5


def test_links_that_stand_for_several_pairs_of_records_count_all_of_them():
    """Items of three and two records: four of the six pairs are linked, whatever the weight of others."""
    scores = [2.0, 1.0, 0.5, 0.25]
    for unlinked in (-0.5, 0.0, UNLINKED):
        total = sum(scores) - 3 * unlinked  # as linking adds them up
        graph = LinkGraph.from_pairs(2, [0], [1])
        tree = grown(graph, [total], [0, 0], counts=[3, 2], pairs=[4], unlinked=unlinked)
        assert tree.mean[2] == pytest.approx((sum(scores) + 2 * UNLINKED) / 6)
        assert tree.best[2] == pytest.approx(sum(scores) / 4)


def test_very_large_clusters_stay_whole_and_large_parts_are_cut(monkeypatch):
    monkeypatch.setattr(merge_trees, "LARGEST_GROUP", 3)
    graph = LinkGraph.from_pairs(6, [0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    tree = grown(graph, np.arange(5.0), [0, 0, 0, 0, 1, 2])
    assert np.isinf(tree.mean[6 : tree.n_inner]).all()
    assert tree.parent[tree.parent[:4]].tolist() == [tree.found[0]] * 4  # by twos
    assert len(tree.mean) - tree.n_inner == 2  # three clusters are within the bound
    tree = grown(graph, np.arange(5.0), np.arange(6))
    sets = [items_below(node, tree.left, tree.right) for node in range(6, len(tree.mean))]
    assert max(len(one) for one in sets) <= 3


def test_nothing_and_a_single_item_have_trees_too():
    for n in (0, 1):
        graph = LinkGraph.from_pairs(n, [], [])
        tree = grown(graph, [], np.zeros(n))
        found = tree.posterior(np.ones(n), graph, draws=2, seed=0)
        assert found.labels.shape == (2, n)
        assert found.whole.tolist() == [1.0] * n


def test_a_probability_for_each_node_is_needed():
    graph, scores, labels = case(1)
    with pytest.raises(ShapeError, match="nodes need a probability each"):
        grown(graph, scores, labels).posterior(np.ones(3), graph, draws=1, seed=0)


def test_uncertain_pairs_are_those_not_near_certainty_the_most_uncertain_first():
    together = np.array([0.0, 0.3, 0.5, 1.0, 0.6, 0.995, 0.009], np.float32)
    found = LinkPosterior(np.zeros((1, 1), np.int32), together, np.ones(1, np.float32))
    assert found.uncertain_pairs().tolist() == [2, 4, 1]
