"""Groups in doubt: what hangs together, what does not, and the two clusterings that came up most."""

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.apps.resolution.results.doubt import CLEAR, doubtful_groups
from factorwise.inference.mcmc.shards.link_walk import LinkGraph
from factorwise.inference.merge_trees import LinkPosterior


def groups_of(draws, pairs, most=100):
    labels = np.array(draws, np.int32)
    graph = LinkGraph.from_pairs(labels.shape[1], *np.array(pairs, int).reshape(-1, 2).T)
    together = (labels[:, graph.first] == labels[:, graph.second]).mean(axis=0)
    whole = np.ones(labels.shape[1], np.float32)
    return doubtful_groups(LinkPosterior(labels, together.astype(np.float32), whole), graph, most)


def clustering(labels):
    """A clustering, whatever its labels are."""
    return tuple(list(labels).index(label) for label in labels)


def test_a_group_has_the_records_in_doubt_and_not_the_rest_of_their_entities():
    together, alone = [0, 0, 0, 3, 4], [0, 0, 2, 3, 4]
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    (group,) = groups_of([together] * 7 + [alone] * 3, pairs)
    assert group.items.tolist() == [1, 2]  # 0 is with 1 for certain, 3 and 4 by themselves
    assert (group.best.tolist(), group.second.tolist()) == ([0, 0], [0, 1])
    assert group.shares == (0.7, 0.3)


def test_groups_that_have_nothing_to_do_with_each_other_are_apart_the_most_doubtful_first():
    rng = np.random.default_rng(1)
    draws = [[0, 0 if rng.random() < 0.9 else 1, 2, 2 if rng.random() < 0.5 else 3] for _ in range(200)]
    first, second = groups_of(draws, [(0, 1), (2, 3)])
    assert (first.items.tolist(), second.items.tolist()) == ([2, 3], [0, 1])
    assert first.shares[0] < second.shares[0]
    assert [len(groups_of(draws, [(0, 1), (2, 3)], most)) for most in (0, 1)] == [0, 1]


def test_a_long_chain_of_doubt_is_cut_where_it_is_least_doubtful():
    rng = np.random.default_rng(2)
    steps = np.tile([0.5, 0.03], 15)[:-1]  # of 30 items each second pair is torn, and the others nearly sure
    draws = np.concatenate([[[0]] * 400, np.cumsum(rng.random((400, 29)) < steps, axis=1)], axis=1)
    found = groups_of(draws, [(k, k + 1) for k in range(29)])
    assert sorted(item for group in found for item in group.items) == list(range(30))
    assert max(len(group.items) for group in found) <= 4
    assert all(group.items[0] % 2 == 0 and len(group.items) % 2 == 0 for group in found)
    assert all(sum(group.shares) >= CLEAR for group in found)


def test_what_cannot_be_cut_is_told_as_it_is():
    draws = [[0, 0, 0], [0, 0, 2], [0, 1, 0], [0, 1, 1], [0, 1, 2]] * 4 + [[0, 0, 0]]
    (group,) = groups_of(draws, [(0, 1), (0, 2), (1, 2)])
    assert group.items.tolist() == [0, 1, 2]
    assert sum(group.shares) < CLEAR


def test_where_nothing_is_in_doubt_there_are_no_groups():
    assert groups_of([[0, 0, 2]] * 50, [(0, 1), (1, 2)]) == []
    assert groups_of([[0, 1]] * 5, []) == []


@given(st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=2, max_size=40))
@settings(deadline=None)
def test_both_clusterings_are_those_that_came_up_most(draws):
    pairs = [(i, j) for i in range(5) for j in range(i)]
    for group in groups_of(draws, pairs):
        counts = Counter(clustering([draw[k] for k in group.items]) for draw in draws)
        likeliest = [count for _, count in counts.most_common(2)]
        assert [round(share * len(draws)) for share in group.shares] == likeliest
        for labels, count in zip((group.best, group.second), likeliest, strict=True):
            assert counts[clustering(labels)] == count
        assert clustering(group.best) != clustering(group.second)


def test_a_doubtful_pair_that_no_draw_tears_makes_no_group():
    """A probability of 0.985 may not show in a few draws: then there is no second clustering to tell of."""
    posterior = LinkPosterior(
        np.zeros((5, 2), np.int32), np.array([0.985], np.float32), np.ones(2, np.float32)
    )
    assert doubtful_groups(posterior, LinkGraph.from_pairs(2, [0], [1]), 10) == []
