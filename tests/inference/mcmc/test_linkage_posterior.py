"""Probabilities of pairs and of whole groups, from several chains."""

import numpy as np
import pytest
from scipy.stats import binomtest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.inference.mcmc.linkage_posterior import LinkPosterior, alternatives, link_posterior
from factorwise.kernels.threads import Team
from linkage_cases import CASES, random_walk, target, walk_of

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
ALONE = Team(1)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["missing links", "heavy"])
def test_shares_of_independent_chains_are_probabilities_of_pairs(name, seed):
    """After 40 such sweeps a chain is within 2e-7 of its target, by the sweep's matrix: each draw is new."""
    case, temperature, chains = CASES[name], 1.5, 800
    worlds, chances = target(case, temperature)
    options = {"temperature": temperature, "draws": 1, "burn_in": 40, "thin": 1, "jumps": 2.0, "seed": seed}
    drawn = link_posterior(walk_of(case), chains=chains, team=ALONE, **options)
    for (one, two, _), share in zip(case["links"], drawn.together, strict=True):
        exact = sum(c for world, c in zip(worlds, chances, strict=True) if world[one] == world[two])
        count = round(float(share) * chains)
        assert share == pytest.approx(count / chains)
        assert binomtest(count, chains, exact).pvalue > FALSE_ALARM / len(case["links"])


def test_draws_do_not_depend_on_threads_and_leave_the_walk_where_it_is():
    walk = random_walk(np.random.default_rng(6), 60, shards=4, density=0.1)
    before = walk.labels.tolist()
    found = []
    for threads in (1, 2):
        with Team(threads) as team:
            found.append(link_posterior(walk, chains=3, draws=6, burn_in=2, team=team))
    assert np.array_equal(found[0].labels, found[1].labels)
    assert found[0].labels.shape == (3, 6, 60)
    assert not np.array_equal(found[0].labels[0], found[0].labels[1])
    assert walk.labels.tolist() == before
    graph = walk.graph
    traces = found[0].traces(graph.first, graph.second)
    assert traces.mean(axis=(0, 1)) == pytest.approx(found[0].together)


def test_thinning_keeps_every_so_manieth_draw():
    walk = random_walk(np.random.default_rng(6), 30, density=0.2)
    every = link_posterior(walk, chains=2, draws=12, burn_in=3, thin=1, team=ALONE)
    third = link_posterior(walk, chains=2, draws=4, burn_in=3, thin=3, team=ALONE)
    assert np.array_equal(third.labels, every.labels[:, 2::3])


def test_the_most_doubtful_pairs_come_first():
    together = np.array([0.0, 0.9, 0.5, 0.005, 0.3, 1.0, 0.995], np.float32)
    assert LinkPosterior(np.zeros((1, 1, 1), np.int32), together).doubtful().tolist() == [2, 4, 1]


def posterior_of(walk, draws):
    labels = np.array([draws], np.int32)
    first, second = walk.graph.first, walk.graph.second
    return LinkPosterior(
        labels, (labels[0][:, first] == labels[0][:, second]).mean(axis=0).astype(np.float32)
    )


def test_alternatives_are_the_groupings_that_came_up_most():
    """Items 0 to 2: together in six of ten draws; 4 and 5: in three; 3 and 6 are never in doubt."""
    links = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6)]
    walk = LinkWalk(LinkGraph.from_pairs(7, *zip(*links, strict=True)), np.ones(5), apart=0.0, cluster=0.0)
    walk.place_items(np.array([0, 0, 0, 3, 4, 5, 6]))
    draws = [[0, 0, 0, 3, 4, 4, 6]] * 3 + [[0, 0, 0, 3, 4, 5, 6]] * 3
    draws += [[0, 0, 2, 3, 4, 5, 6]] * 3 + [[0, 1, 1, 3, 4, 5, 6]]
    left, right = alternatives(posterior_of(walk, draws), walk)
    assert left.items.tolist() == [0, 1, 2]
    assert (left.best.tolist(), left.second.tolist()) == ([0, 0, 0], [0, 0, 2])
    assert left.chances == pytest.approx((0.6, 0.3))
    assert right.items.tolist() == [4, 5]
    assert (right.best.tolist(), right.second.tolist()) == ([0, 1], [0, 0])
    assert right.chances == pytest.approx((0.7, 0.3))
    assert len(alternatives(posterior_of(walk, draws), walk, most=1)) == 1


def test_where_nothing_is_in_doubt_there_are_no_alternatives():
    walk = walk_of(CASES["missing links"])
    assert alternatives(posterior_of(walk, [[0, 0, 2, 2, 2]] * 4), walk) == []


@pytest.mark.parametrize("size", [60, 70])
def test_groupings_of_large_groups_do_not_depend_on_who_else_joins_them(size):
    """Item 0 is linked to none of them, and in one draw it gives their cluster its name."""
    n = size + 1
    graph = LinkGraph.from_pairs(n, np.arange(1, n - 1), np.arange(2, n))
    walk = LinkWalk(graph, np.ones(size - 1), apart=0.0, cluster=0.0, labels=[0] + [1] * size)
    whole = [0] + [1] * size
    joined = [0] * n
    halves = [0] + [1] * (size // 2) + [size // 2 + 1] * (size - size // 2)
    (group,) = alternatives(posterior_of(walk, [whole, whole, joined, halves]), walk)
    assert group.items.tolist() == list(range(1, n))
    assert group.best.tolist() == [0] * size
    assert group.second.tolist() == [0] * (size // 2) + [size // 2] * (size - size // 2)
    assert group.chances == (0.75, 0.25)


@pytest.mark.parametrize("name", ["chains", "draws", "thin"])
def test_counts_below_one_are_refused(name):
    with pytest.raises(InvalidArgumentError, match=f"{name} must be at least 1"):
        link_posterior(walk_of(CASES["heavy"]), team=ALONE, **{name: 0})
