"""Probabilities of pairs and of whole groups, from several chains."""

import numpy as np
import pytest
from scipy.stats import binomtest

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.inference.mcmc.shards.posterior import (
    MERGING,
    LinkPosterior,
    items_in_doubt,
    link_posterior,
)
from factorwise.kernels.compile.threads import Team
from linkage_cases import CASES, random_walk, target, walk_of

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
ALONE = Team(1)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["missing links", "heavy"])
def test_shares_of_independent_chains_are_probabilities_of_pairs(name, seed):
    """After 40 such sweeps a chain is within 2e-7 of its target, by the sweep's matrix: each draw is new."""
    case, temperature, chains = CASES[name], 1.5, 800
    worlds, chances = target(case, temperature)
    options = {"temperature": temperature, "draws": 1, "burn_in": 40, "thin": 1, "jumps": 2.0, "least": 0.0}
    drawn = link_posterior(walk_of(case), chains=chains, seed=seed, team=ALONE, **options)
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


def chain_of(scores, labels=None, unlinked=0.0, cluster=0.0):
    """Items in a row, each linked to the next."""
    n = len(scores) + 1
    graph = LinkGraph.from_pairs(n, np.arange(n - 1), np.arange(1, n))
    return LinkWalk(graph, scores, unlinked=unlinked, cluster=cluster, labels=labels)


def test_items_are_in_doubt_if_a_step_would_move_them():
    """Little holds item 3, and 5 and 6 would rather be one."""
    walk = chain_of([9.0, 9.0, 2.0, -9.0, -9.0, 1.0, -9.0, -9.0], labels=[0, 0, 0, 0, 4, 5, 6, 7, 8])
    assert np.flatnonzero(items_in_doubt(walk, 1.0, 0.01, team=ALONE)).tolist() == [3, 5, 6]
    assert items_in_doubt(walk, 1.0, 0.0, team=ALONE).all()


def test_clusters_that_could_be_one_are_in_doubt_though_no_single_item_would_move():
    def doubt(between):
        walk = chain_of([30.0, between, 30.0, -30.0], labels=[0, 0, 2, 2, 4], unlinked=-0.25, cluster=0.25)
        return items_in_doubt(walk, 2.0, 0.01, team=ALONE).tolist()

    even = 2.0 * np.log(MERGING) + 3 * 0.25 + 0.25  # three pairs without a link, and a cluster less
    assert doubt(even + 0.01) == [True] * 4 + [False]
    assert doubt(even - 0.01) == [False] * 5


def test_what_is_not_in_doubt_stays_and_counts_as_certain():
    walk = chain_of([30.0, 0.0, -30.0], labels=[0, 0, 2, 3])
    drawn = link_posterior(walk, draws=30, team=ALONE)
    assert drawn.together[[0, 2]].tolist() == [1.0, 0.0]
    assert 0.2 < drawn.together[1] < 0.8
    assert (drawn.labels[:, :, 1] == 0).all()
    assert (drawn.labels[:, :, 3] == 3).all()


def test_only_what_is_near_moves_if_that_is_all_that_is_asked_for():
    """Pairs of items in doubt: one asked for, one linked to it by a good score, one by a bad one."""
    first, second = [0, 2, 4, 1, 1], [1, 3, 5, 2, 4]
    graph = LinkGraph.from_pairs(6, first, second)
    walk = LinkWalk(graph, [0.0, 0.0, 0.0, 1.0, -1.0], unlinked=0.0, cluster=0.0)
    near = np.array([True, True, False, False, False, False])
    drawn = link_posterior(walk, draws=30, near=near, team=ALONE)
    moved = (drawn.labels != np.arange(6)).any(axis=(0, 1))
    assert moved[1:3].all()
    assert drawn.together[2] == 0.0
    assert link_posterior(walk, draws=30, team=ALONE).together[2] > 0.0


@pytest.mark.parametrize("name", ["chains", "draws", "thin"])
def test_counts_below_one_are_refused(name):
    with pytest.raises(InvalidArgumentError, match=f"{name} must be at least 1"):
        link_posterior(walk_of(CASES["heavy"]), team=ALONE, **{name: 0})
