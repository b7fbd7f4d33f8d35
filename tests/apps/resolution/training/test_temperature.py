"""The temperature at which shares of draws are probabilities."""

import numpy as np
import pytest

from factorwise.apps.resolution.training.temperature import TEMPERATURES, Case, JudgedPairs, calibrate
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.calibration import reliability

ALONE = Team(1)


def planted(temperature, seed, n=1_000):
    """Pairs of items by themselves, together or not by chance: exp(score / temperature) to 1 are the odds."""
    rng = np.random.default_rng(seed)
    first = np.arange(0, 2 * n, 2)
    scores = rng.normal(0.0, 2.0, n)
    same = rng.random(n) < 1.0 / (1.0 + np.exp(-scores / temperature))
    truth = np.arange(2 * n)
    truth[1::2] = np.where(same, first, first + 1)
    graph = LinkGraph.from_pairs(2 * n, first, first + 1)
    return LinkWalk(graph, scores, unlinked=0.0, cluster=0.0), truth


@pytest.mark.parametrize("temperature", [TEMPERATURES[2], TEMPERATURES[8]])
def test_the_temperature_that_made_the_entities_is_found(temperature, seed):
    walk, truth = planted(temperature, seed)
    before = walk.labels.tolist()
    found = calibrate([Case(walk, truth)], seed=1, team=ALONE)
    place = TEMPERATURES.index(found.temperature)
    assert abs(place - TEMPERATURES.index(temperature)) <= 1
    assert set(found.losses) <= set(TEMPERATURES)
    assert found.losses[found.temperature] == min(found.losses.values())
    assert walk.labels.tolist() == before


def test_a_loss_is_the_squared_distance_from_the_truth_by_weight():
    chances, same = np.array([1.0, 0.25, 0.5], np.float32), np.array([True, True, False])
    assert JudgedPairs(chances, same, np.array([1.0, 1.0, 2.0])).loss() == pytest.approx(0.75**2 + 2 * 0.25)


def test_pairs_that_no_temperature_brings_together_do_not_heat_the_others(seed):
    """A hundred more are of one entity but far apart: by a logarithmic loss the temperature would be nine."""
    walk, truth = planted(1.131, seed)
    n = walk.n_items
    far = np.arange(n, n + 200, 2)
    first, second = np.append(walk.graph.first, far), np.append(walk.graph.second, far + 1)
    scores = np.append(walk.link_scores, np.full(len(far), -6.0))
    both = LinkWalk(LinkGraph.from_pairs(n + 200, first, second), scores, unlinked=0.0, cluster=0.0)
    found = calibrate([Case(both, np.append(truth, np.repeat(far, 2)))], seed=1, team=ALONE)
    assert found.temperature < 5.0


def test_where_nothing_is_linked_the_temperature_is_one():
    empty = LinkWalk(LinkGraph.from_pairs(3, [], []), [], unlinked=-1.0, cluster=0.0)
    assert calibrate([Case(empty, np.arange(3))], seed=0, team=ALONE) == (1.0, {}, None)


def both(judged_temperature, other_temperature, seed):
    """Two planted halves in one walk, the first of which is judged."""
    (one, one_truth), (two, two_truth) = (
        planted(judged_temperature, seed),
        planted(other_temperature, seed + 1),
    )
    n = one.n_items
    graph = LinkGraph.from_pairs(
        2 * n,
        np.append(one.graph.first, two.graph.first + n),
        np.append(one.graph.second, two.graph.second + n),
    )
    scores = np.append(one.link_scores, two.link_scores)
    walk = LinkWalk(graph, scores, unlinked=0.0, cluster=0.0)
    return walk, np.append(one_truth, two_truth + n), np.arange(2 * n) < n


def test_only_judged_items_and_known_entities_count(seed):
    walk, truth, judged = both(TEMPERATURES[2], TEMPERATURES[9], seed)
    found = calibrate([Case(walk, truth, judged)], seed=1, team=ALONE)
    assert abs(TEMPERATURES.index(found.temperature) - 2) <= 1
    known = np.where(judged, -1, truth)
    found = calibrate([Case(walk, known)], seed=1, team=ALONE)
    assert abs(TEMPERATURES.index(found.temperature) - 9) <= 1
    assert calibrate([Case(walk, known, judged)], seed=1, team=ALONE) == (1.0, {}, None)


def test_several_clusterings_have_one_temperature_between_their_own(seed):
    cold, warm = planted(TEMPERATURES[2], seed), planted(TEMPERATURES[10], seed + 1, n=3_000)
    apart = [calibrate([Case(*one)], seed=1, team=ALONE) for one in (cold, warm)]
    found = calibrate([Case(*cold), Case(*warm)], seed=1, team=ALONE)
    assert apart[0].temperature < found.temperature <= apart[1].temperature
    for temperature in set(found.losses) & set(apart[0].losses) & set(apart[1].losses):
        mean = (apart[0].losses[temperature] + 3.0 * apart[1].losses[temperature]) / 4.0
        assert found.losses[temperature] == pytest.approx(mean)


def test_the_reliability_is_that_of_the_pairs_at_the_temperature_chosen(seed):
    walk, truth = planted(TEMPERATURES[6], seed, n=4_000)
    case = Case(walk, truth)
    found = calibrate([case], seed=1, team=ALONE)
    chances, same, weight = case.judge(found.temperature, case.weights(), seed=1, team=ALONE)
    assert found.reliability.as_dict() == reliability(chances, same, weight=weight).as_dict()
    assert found.reliability.cases.sum() == 8_000  # both items of a pair are judged
    assert found.reliability.error < 0.06
