"""The temperature at which shares of draws are probabilities."""

import math

import numpy as np
import pytest

from factorwise.inference.mcmc.linkage import LinkGraph, LinkWalk
from factorwise.kernels.threads import Team
from factorwise.learning.linkage_calibration import TEMPERATURES, calibrate, log_loss

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
    return LinkWalk(graph, scores, apart=0.0, cluster=0.0), truth


@pytest.mark.parametrize("temperature", [TEMPERATURES[2], TEMPERATURES[5]])
def test_the_temperature_that_made_the_entities_is_found(temperature, seed):
    walk, truth = planted(temperature, seed)
    before = walk.labels.tolist()
    found = calibrate(walk, truth, seed=1, team=ALONE)
    place = TEMPERATURES.index(found.temperature)
    assert abs(place - TEMPERATURES.index(temperature)) <= 1
    assert list(found.losses) == list(TEMPERATURES)
    assert found.losses[found.temperature] == min(found.losses.values())
    assert walk.labels.tolist() == before


def test_a_loss_is_the_mean_log_of_what_was_given_to_the_truth():
    chances = np.array([1.0, 0.0, 0.5, 0.25], np.float32)
    same = np.array([True, True, False, True])
    kept = [10.5 / 11, 0.5 / 11, 5.5 / 11, 3.0 / 11]
    assert log_loss(chances, same, 10) == pytest.approx(-np.mean([math.log(c) for c in kept]))


def test_where_nothing_is_linked_the_temperature_is_one():
    empty = LinkWalk(LinkGraph.from_pairs(3, [], []), [], apart=-1.0, cluster=0.0)
    assert calibrate(empty, np.arange(3), seed=0, team=ALONE) == (1.0, {})
