"""What is settled by the scores of links, against all clusterings of a few items."""

from itertools import combinations

import numpy as np
import pytest

from factorwise.inference.mcmc.shards import open_questions as questions_module
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.open_questions import open_questions
from factorwise.world.links import LinkGraph

ITEMS = 6


@pytest.fixture(autouse=True)
def few_items(monkeypatch):
    monkeypatch.setattr(questions_module, "FEWEST_ITEMS", 0)


def clusterings(n):
    """Yield all clusterings, each as the number of the cluster of each item."""
    if n == 0:
        yield ()
        return
    for rest in clusterings(n - 1):
        for label in range(max(rest, default=-1) + 2):
            yield (*rest, label)


ALL = np.array(list(clusterings(ITEMS)))


def drawn(seed, linked, mean, unlinked, cluster):
    """A walk over a few items, and the score of each clustering of them."""
    draws = np.random.default_rng(seed)
    pairs = np.array([pair for pair in combinations(range(ITEMS), 2) if draws.random() < linked])
    values = draws.normal(mean, 1.0, len(pairs)).astype(np.float32)
    graph = LinkGraph.from_pairs(ITEMS, pairs[:, 0], pairs[:, 1])
    given = {tuple(pair): value for pair, value in zip(pairs.tolist(), values.tolist(), strict=True)}
    scores = cluster * (ALL.max(axis=1) + 1.0)
    for one, two in combinations(range(ITEMS), 2):
        scores += (ALL[:, one] == ALL[:, two]) * given.get((one, two), unlinked)
    return LinkWalk(graph, values, unlinked=unlinked, cluster=cluster), scores


@pytest.mark.parametrize(
    ("linked", "mean", "unlinked", "cluster"),
    [(0.5, 0.5, 0.0, 0.0), (0.8, 0.0, -0.5, 0.4), (1.0, -1.5, 0.0, -0.4), (1.0, -1.0, 0.0, 1.5)],
)
def test_a_best_clustering_has_the_settled_components_as_clusters(linked, mean, unlinked, cluster):
    settled = 0
    for seed in range(40):
        walk, scores = drawn(seed, linked, mean, unlinked, cluster)
        questions = open_questions(walk)
        labels = questions.component
        closed = np.setdiff1d(np.arange(ITEMS), questions.items)
        keeps = np.ones(len(ALL), bool)
        for item in closed.tolist():
            for other in set(range(ITEMS)) - {item}:
                keeps &= (ALL[:, item] == ALL[:, other]) == (labels[item] == labels[other])
        assert scores[keeps].max() == pytest.approx(scores.max(), abs=1e-4)
        settled += len(closed)
        if not len(questions.items):
            assert questions.score == pytest.approx(scores.max(), abs=1e-4)
    assert settled > 0


def test_labels_of_what_is_open_come_from_its_own_walk():
    graph = LinkGraph.from_pairs(5, [0, 1, 3], [1, 2, 4])
    walk = LinkWalk(graph, [1.0, 1.0, 2.0], unlinked=-1.0, cluster=0.0)
    questions = open_questions(walk)
    assert questions.items.tolist() == [0, 1, 2]
    assert questions.clusters == 1
    assert questions.score == pytest.approx(2.0)
    questions.walk.place_items(np.array([7, 7, 9]))
    labels = questions.all_labels()
    assert labels[0] == labels[1]
    assert labels[3] == labels[4]
    assert len(set(labels.tolist())) == 3


def test_all_is_open_where_other_things_than_links_count():
    graph = LinkGraph.from_pairs(3, [0], [1])
    assert open_questions(LinkWalk(graph, [1.0], unlinked=0.5, cluster=0.0)) is None
    sources = np.array([1, 1, 2], np.uint64)
    assert open_questions(LinkWalk(graph, [1.0], unlinked=0.0, cluster=0.0, sources=sources)) is None
    begun = LinkWalk(graph, [1.0], unlinked=0.0, cluster=0.0, labels=[0, 0, 1])
    assert open_questions(begun) is None
