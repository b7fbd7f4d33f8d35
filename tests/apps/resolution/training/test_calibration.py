"""From scores to probabilities: the temperature of records, and how far probabilities can be trusted."""

import numpy as np
import pytest

from factorwise.apps.resolution.training.calibration import (
    TEMPERATURES,
    Calibration,
    Case,
    calibrate,
    fit_temperature,
    is_right,
)
from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.kernels.compile.threads import Team

ALONE = Team(1)


def planted(temperature, seed, n=1_500):
    """Pairs of items by themselves, together or not by chance: exp(score / temperature) to 1 are the odds.

    The search has taken the likelier of both.
    """
    rng = np.random.default_rng(seed)
    first = np.arange(0, 2 * n, 2)
    scores = rng.normal(0.0, 2.0, n)
    same = rng.random(n) < 1.0 / (1.0 + np.exp(-scores / temperature))
    truth, labels = np.arange(2 * n), np.arange(2 * n)
    truth[1::2] = np.where(same, first, first + 1)
    labels[1::2] = np.where(scores > 0.0, first, first + 1)
    graph = LinkGraph.from_pairs(2 * n, first, first + 1)
    return LinkWalk(graph, scores, unlinked=0.0, cluster=0.0, labels=labels), truth


@pytest.mark.parametrize("temperature", [TEMPERATURES[2], TEMPERATURES[8]])
def test_the_temperature_that_made_the_entities_is_found(temperature, seed):
    walk, truth = planted(temperature, seed)
    before = walk.labels.tolist()
    found = calibrate([Case(walk, truth)], seed=1, team=ALONE)
    assert abs(TEMPERATURES.index(found.temperature) - TEMPERATURES.index(temperature)) <= 1
    assert walk.labels.tolist() == before


def test_only_judged_items_of_known_entities_count(seed):
    (one, one_truth), (two, two_truth) = planted(TEMPERATURES[2], seed), planted(TEMPERATURES[9], seed + 1)
    n = one.n_items
    graph = LinkGraph.from_pairs(
        2 * n,
        np.append(one.graph.first, two.graph.first + n),
        np.append(one.graph.second, two.graph.second + n),
    )
    scores, labels = np.append(one.link_scores, two.link_scores), np.append(one.labels, two.labels + n)
    walk = LinkWalk(graph, scores, unlinked=0.0, cluster=0.0, labels=labels)
    truth, judged = np.append(one_truth, two_truth + n), np.arange(2 * n) < n
    assert abs(TEMPERATURES.index(fit_temperature([Case(walk, truth, judged)], team=ALONE)) - 2) <= 1
    found = calibrate([Case(walk, np.where(judged, -1, truth))], seed=1, team=ALONE)
    assert abs(TEMPERATURES.index(found.temperature) - 9) <= 1
    nothing = Case(walk, np.where(judged, -1, truth), judged)
    assert calibrate([nothing], seed=1, team=ALONE) == Calibration()


def test_where_nothing_is_linked_nothing_is_learned():
    empty = LinkWalk(LinkGraph.from_pairs(3, [], []), [], unlinked=-1.0, cluster=0.0)
    assert calibrate([Case(empty, np.arange(3))], seed=0, team=ALONE) == Calibration()


def test_probabilities_of_what_the_odds_describe_are_calibrated(seed):
    walk, truth = planted(1.0, seed, n=4_000)
    found = calibrate([Case(walk, truth)], seed=1, team=ALONE)
    assert found.reliability.cases.sum() == 8_000  # both items of a pair are judged
    assert found.uncertain_error < 0.05
    assert 0.0 < found.chance_error < 0.05
    assert found.chance_error <= found.chance_limit
    assert found.merges.within.mean + found.merges.within.best == pytest.approx(1.4, abs=0.35)
    values = found.as_dict()
    assert (values["uncertain_error"], values["chance_error"], values["chance_limit"]) == found[3:]
    assert values["reliability"]["error"] == found.reliability.error


def test_several_clusterings_are_judged_each_by_its_own_items(seed):
    """Two clusterings of the same items, of each the half that the other one does not judge."""
    walk, truth = planted(1.0, seed, n=2_000)
    early = np.arange(4_000) < 2_000
    whole = calibrate([Case(walk, truth)], seed=1, team=ALONE)
    halves = calibrate([Case(walk, truth, early), Case(walk, truth, ~early)], seed=1, team=ALONE)
    np.testing.assert_allclose(halves.merges.values(), whole.merges.values(), atol=1e-9)
    assert halves.temperature == whole.temperature
    assert halves.reliability.cases.sum() == whole.reliability.cases.sum()


def test_a_record_is_right_where_most_of_its_entity_is():
    truth, labels = np.array([0, 0, 0, 1, 1, 2, 3, -1]), np.array([0, 0, 1, 1, 1, 2, 0, 0])
    assert is_right(truth, labels).tolist() == [True, True, False, True, True, True, False, False]


def test_being_right_is_as_defined(seed):
    rng = np.random.default_rng(seed)
    truth, labels = rng.integers(-1, 4, 30), rng.integers(0, 5, 30)
    for item, right in enumerate(is_right(truth, labels).tolist()):
        others = [k for k in range(30) if k != item and truth[k] >= 0]
        counts = [sum(labels[k] == c and truth[k] == truth[item] for k in others) for c in range(5)]
        mine = counts[labels[item]]
        mates = sum(labels[k] == labels[item] for k in others)
        assert right == (truth[item] >= 0 and mine == max(counts) and 2 * mine >= mates)
