"""Kernels of merge trees against their plain definitions; `join_groups` in tests/inference."""

import numpy as np
import pytest

from factorwise.kernels.clusterings import merge_trees as compiled
from factorwise.world.links import LinkGraph
from reference import merge_trees as plain

N = 6


def random_tree(rng):
    """A tree over six items, as left, right and parent."""
    left, right, parent = (np.full(2 * N - 1, -1, np.int64) for _ in range(3))
    tops = list(range(N))
    for node in range(N, 2 * N - 1):
        rng.shuffle(tops)
        left[node], right[node] = tops.pop(), tops.pop()
        parent[left[node]] = parent[right[node]] = node
        tops.append(node)
    return left, right, parent


@pytest.mark.parametrize("number", range(5))
def test_chances_and_cuts_are_those_of_the_plain_definitions(number):
    rng = np.random.default_rng(number)
    left, right, parent = random_tree(rng)
    root, whole = 2 * N - 2, rng.random(2 * N - 1)
    whole[:N] = 1.0
    counts = np.append(rng.integers(1, 9, N).astype(float), np.zeros(N - 1))
    sums = counts.copy()
    compiled.add_parts(left, right, N, sums)
    assert sums.tolist() == [plain.add_parts(node, left, right, counts) for node in range(2 * N - 1)]
    split = np.empty(2 * N - 1)
    compiled.split_chances(parent, whole, split)
    expected = [plain.split_chances(node, root, left, right, whole) for node in range(2 * N - 1)]
    np.testing.assert_allclose(split, expected, atol=1e-12)
    first, second = (ends.astype(np.int32) for ends in np.triu_indices(N, 1))
    chance = np.empty(len(first), np.float32)
    compiled.pair_chances(first, second, parent, np.full(N, root), split, chance)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    np.testing.assert_allclose(
        chance, [plain.pair_chances(pair, root, left, right, whole) for pair in pairs], atol=1e-6
    )
    is_whole, top = rng.random(2 * N - 1) < 0.4, np.empty(2 * N - 1, np.int64)
    compiled.cut_trees(parent, is_whole, top)
    assert top.tolist() == [plain.cut_trees(node, parent, is_whole) for node in range(2 * N - 1)]


@pytest.mark.parametrize("number", range(5))
def test_best_links_are_those_of_the_plain_definition(number):
    rng = np.random.default_rng(number)
    left, right, parent = random_tree(rng)
    parent[[left[-1], right[-1]]] = -1  # two trees
    first, second = np.triu_indices(N, 1)
    kept = rng.random(len(first)) < 0.5
    graph = LinkGraph.from_pairs(N, first[kept], second[kept])
    scores = rng.normal(size=kept.sum())
    count = np.append(rng.integers(1, 4, N), np.zeros(N - 1)).astype(float)
    for node in range(N, 2 * N - 1):
        count[node] = count[left[node]] + count[right[node]]
    best, nodes = np.zeros(2 * N - 2), slice(0, 2 * N - 2)
    arrays = (left[nodes], right[nodes], parent[nodes], count[nodes])
    compiled.best_links(graph.start, graph.neighbor, graph.pair, scores, -2.0, *arrays, best)
    pairs = zip(graph.first.tolist(), graph.second.tolist(), strict=True)
    links = dict(zip(pairs, scores.tolist(), strict=True))
    expected = [plain.best_links(k, left, right, count, links, -2.0) for k in range(N, 2 * N - 2)]
    np.testing.assert_allclose(best[N:], expected, atol=1e-12)


@pytest.mark.parametrize("number", range(5))
def test_forbidden_nodes_are_those_of_the_plain_definition(number):
    rng = np.random.default_rng(number)
    left, right, _ = random_tree(rng)
    bits = rng.choice([0, 1, 2, 4], 2 * N - 1).astype(np.uint64)
    forbidden = {int(item) for item in rng.choice(N, 2, replace=False)}
    nodes = range(N, 2 * N - 1)
    impossible = np.zeros(2 * N - 1, np.bool_)
    for node in nodes:  # those that join the pair
        parts = (plain.items_below(part, left, right) for part in (left[node], right[node]))
        impossible[node] = all(len(forbidden & part) == 1 for part in parts)
    expected = [plain.mark_forbidden(node, left, right, [forbidden], bits.tolist()) for node in nodes]
    compiled.mark_forbidden(left, right, impossible, bits)
    assert impossible[N:].tolist() == expected
