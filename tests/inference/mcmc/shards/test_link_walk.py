"""Walks over clusterings of linked items: what is laid out, and what sweeps over shards do."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.kernels.compile.threads import Team
from linkage_cases import (
    CASES,
    check,
    is_allowed,
    model_score,
    partitions,
    plain,
    pooled,
    random_walk,
    target,
    walk_of,
)
from plain_links import home_chances

FALSE_ALARM = 1e-4  # chance that a correct sampler fails one statistical test
ALONE = Team(1)


@pytest.mark.parametrize("name", CASES)
def test_the_score_is_that_of_the_model_for_every_clustering(name):
    case = CASES[name]
    for labels in partitions(case["n"]):
        if is_allowed(case, labels):
            walk = walk_of(case, labels)
            assert walk.score == pytest.approx(model_score(case, labels), abs=1e-12)
            assert walk.labels.tolist() == list(labels)
            assert walk.n_clusters == len(set(labels))
            check(walk)


def test_a_forbidden_pair_together_has_no_score():
    case = CASES["forbidden"]
    assert walk_of(case, [0, 1, 2, 3, 1]).score == -math.inf == model_score(case, [0, 1, 2, 3, 1])


def test_items_of_one_source_do_not_start_together():
    walk = walk_of(CASES["one per source"], ["a"] * 5)
    assert walk.labels.tolist() == [0, 0, 0, 3, 4]
    check(walk)
    walk.place_items(np.array([1, 1, 2, 2, 1]))
    assert walk.labels.tolist() == [0, 0, 2, 2, 4]
    check(walk)


@pytest.mark.parametrize("strict", [True, False])
def test_gains_of_sweeps_add_up_and_the_clusters_stay_in_order(strict, seed):
    walk = random_walk(np.random.default_rng(seed), 200, shards=5, density=0.05, strict=strict)
    score = walk.score
    for number, temperature in enumerate(np.geomspace(2.0, 0.05, 25)):
        score += walk.sweep(seed, number, float(temperature), team=ALONE)
        assert walk.score == pytest.approx(score, abs=1e-6)
        check(walk)
    assert walk.changes > 200
    assert walk.proposals > walk.changes


@pytest.mark.parametrize("strict", [True, False])
def test_the_number_of_threads_does_not_matter(strict):
    ends = []
    for threads in (1, 2, 3):
        walk = random_walk(np.random.default_rng(4), 240, shards=12, density=0.1, strict=strict)
        with Team(threads) as team:
            gains = [walk.sweep(7, number, 0.6, team=team) for number in range(8)]
            chances = walk.home_chances(0.6, team=team)
        ends.append(
            (gains, walk.labels.tolist(), walk.shards.world.arrays.members.tolist(), chances.tolist())
        )
    assert ends[0] == ends[1] == ends[2]


def test_seeds_sweeps_and_chains_have_random_numbers_of_their_own():
    def end(*, seed=1, number=1, stream=0):
        walk = random_walk(np.random.default_rng(4), 60, density=0.2)
        walk.sweep(seed, number, 2.0, team=ALONE, stream=stream)
        return walk.labels.tolist()

    assert end() == end()
    assert end() not in (end(seed=2), end(number=2), end(stream=1))


@pytest.mark.statistical
@pytest.mark.parametrize("temperature", [1.0, 0.7, 2.0])
def test_strict_sweeps_from_exact_draws_give_exact_draws(temperature, seed):
    case = CASES["everything"]
    worlds, chances = target(case, temperature)
    starts = np.random.default_rng(seed).choice(len(worlds), 3_000, p=chances)
    number = {world: k for k, world in enumerate(worlds)}
    walk, ends = walk_of(case, strict=True), np.zeros(len(worlds))
    for k, start in enumerate(starts):
        walk.place_items(np.array(worlds[start]))
        for sweep in range(2):
            walk.sweep(seed, 2 * k + sweep, temperature, team=ALONE)
        ends[number[tuple(walk.labels.tolist())]] += 1
    assert chisquare(*pooled(ends, len(starts) * chances)).pvalue > FALSE_ALARM


def test_chances_to_stay_count_links_into_all_shards():
    walk = random_walk(np.random.default_rng(2), 12, shards=3, density=0.5)
    with Team(2) as team:
        found = walk.home_chances(0.8, team=team)
    assert found == pytest.approx(home_chances(plain(walk), 0.8), rel=1e-5)
    check(walk)


def test_a_copy_goes_its_own_way():
    walk = random_walk(np.random.default_rng(3), 40, shards=2, density=0.2)
    before = walk.labels.tolist(), walk.shards.world.arrays.items.tolist(), walk.changes
    twin = walk.copy()
    for number in range(5):
        twin.sweep(0, number, 3.0, team=ALONE)
    assert twin.labels.tolist() != before[0]
    assert (walk.labels.tolist(), walk.shards.world.arrays.items.tolist(), walk.changes) == before
    check(walk)


@pytest.mark.parametrize("n", [0, 1])
def test_next_to_nothing_can_be_walked_over(n):
    walk = LinkWalk(LinkGraph.from_pairs(n, [], []), [], unlinked=-1.0, cluster=0.5)
    assert walk.sweep(0, 0, 1.0, team=ALONE) == 0.0
    assert walk.score == 0.5 * n
    assert walk.labels.tolist() == list(range(n))
    assert walk.home_chances(1.0, team=ALONE).tolist() == [1.0] * n


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0], [1, 2], "second must have 1 entries, but has 2"),
        ([0], [3], "second must be numbers from 0 to 2, but entry 0 is 3"),
        ([-1], [1], "first must be numbers from 0 to 2, but entry 0 is -1"),
        ([0, 2], [1, 2], "item 2 cannot be linked with itself"),
    ],
)
def test_pairs_that_are_none_are_refused(first, second, message):
    with pytest.raises((ShapeError, InvalidArgumentError), match=message):
        LinkGraph.from_pairs(3, first, second)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"link_scores": [1.0]}, "2 pairs need a score each"),
        ({"link_scores": [1.0, math.nan]}, "numbers or -inf"),
        ({"link_scores": [1.0, math.inf]}, "numbers or -inf"),
        ({"unlinked": -math.inf}, "unlinked and cluster must be finite"),
        ({"counts": [1, 1]}, "counts must have 3 values"),
        ({"link_pairs": [1]}, "link_pairs must have 2 values"),
        ({"sources": [1, 1, 1, 1]}, "sources must have 3 values"),
        ({"labels": [0, 0]}, "3 items need a label each"),
    ],
)
def test_what_does_not_fit_the_links_is_refused(changes, message):
    graph = LinkGraph.from_pairs(3, [0, 1], [1, 2])
    given = {"link_scores": [1.0, 2.0], "unlinked": 0.0, "cluster": 0.0, **changes}
    with pytest.raises((ShapeError, InvalidArgumentError), match=message):
        LinkWalk(graph, **given)
