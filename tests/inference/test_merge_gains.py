"""What templates gain along a merge tree: exactly what the model says, and what follows for draws."""

import numpy as np
import pytest

from factorwise.inference.merge_gains import add_gains
from factorwise.inference.merge_trees import grow_merge_tree
from factorwise.model.clusterings.link_templates import CannotLinkTemplate, OnePerSourceTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterSize, EdgeTemplate, PairTemplate, TallyTemplate
from factorwise.variables.bags import Bags
from factorwise.variables.fields import Fields
from factorwise.world.links import LinkGraph
from factorwise.world.moves import merge
from factorwise.world.partition import Partition
from reference.merge_trees import items_below

N = 9


def tree_of(seed, labels=None):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(N, 1)
    kept = rng.random(len(first)) < 0.7
    graph = LinkGraph.from_pairs(N, first[kept], second[kept])
    return graph, grow_merge_tree(
        graph,
        rng.normal(1.0, 2.0, len(graph.first)).astype(np.float32),
        rng.integers(0, 3, N) if labels is None else labels,
        counts=np.ones(N, int),
        sources=np.zeros(N, np.uint64),
        pairs=np.ones(len(graph.first), int),
        unlinked=-1.0,
    )


def differ(a, b):
    return (a.group != b.group,)


def present(count):
    return count > 0


def beyond_one(total, size):
    return max(0.0, total - 1.0)


def templates(rng):
    groups = rng.integers(0, 3, N)
    edges = np.array([[0, 1], [2, 5], [3, 8]])
    bags = Bags(np.arange(N + 1), groups, np.ones(N, int))
    return [
        PairTemplate("pairs", Fields(group=groups), differ, ["different"]),
        ClusterSize(),
        EdgeTemplate("edges", N, edges, rng.normal(size=(3, 1)), ["given"]),
        TallyTemplate("tally", bags, present, beyond_one, ["further"]),
    ]


def parts(tree, node):
    return (sorted(items_below(part, tree.left, tree.right)) for part in (tree.left[node], tree.right[node]))


@pytest.mark.parametrize("number", range(4))
def test_gains_are_the_exact_changes_of_the_score(number):
    rng = np.random.default_rng([number, 1])
    _, tree = tree_of(number)
    model = Model(templates(rng), rng.normal(size=5))
    found = add_gains(tree, model)
    assert set(found.gains) == {"pairs", "cluster size", "edges", "tally"}
    assert found.possible.all()
    for node in range(N, len(tree.mean)):
        one, two = parts(tree, node)
        labels = N + np.arange(N)
        labels[one], labels[two] = 0, 1
        world = Partition.from_keys(labels)
        change = merge(world, world.cluster_of(one[0]), world.cluster_of(two[0]))
        for template, offset in model.parts():
            alone = Model([template], model.weights[offset : offset + template.size])
            assert found.gains[template.name][node] == pytest.approx(alone.gain(world, change), abs=1e-9)
    assert all((gain[:N] == 0.0).all() for gain in found.gains.values())


def test_what_a_template_forbids_is_possible_at_no_node_above_it():
    graph, tree = tree_of(3, np.zeros(N, int))
    one, two = (next(iter(part)) for part in parts(tree, N))
    forbids = [CannotLinkTemplate("never", N, [[one, two]]), OnePerSourceTemplate("once", np.full(N, 1))]
    found = add_gains(tree, Model([forbids[0], ClusterSize()], [1.0, 0.5]))
    for node in range(N, len(tree.mean)):
        assert found.possible[node] == (not {one, two} <= items_below(node, tree.left, tree.right))
        assert found.possible[node] or found.gains["cluster size"][node] == 0.0
    assert not add_gains(tree, Model([forbids[1]])).possible[N:].any()
    whole = np.where(found.possible, 0.7, 0.0)
    whole[:N] = 1.0
    drawn = found.posterior(whole, graph, draws=200, seed=1).labels
    assert (drawn[:, one] != drawn[:, two]).all()


def test_trees_without_items_or_merges_gain_nothing():
    for n in (0, 2):
        graph = LinkGraph.from_pairs(n, [], [])
        tree = grow_merge_tree(
            graph,
            np.zeros(0, np.float32),
            np.arange(n),
            counts=np.ones(n, int),
            sources=np.zeros(n, np.uint64),
            pairs=np.zeros(0, int),
            unlinked=0.0,
        )
        assert add_gains(tree, Model([ClusterSize()], [1.0, 1.0])).gains["cluster size"].tolist() == [0.0] * n
