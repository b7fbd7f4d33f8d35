"""Weights of links from labelled pairs, by logistic regression."""

import numpy as np
import pytest

from factorwise.apps.resolution.training import pair_regression
from factorwise.apps.resolution.training.examples import PairExamples
from factorwise.apps.resolution.training.pair_regression import regress_levels, scale_weights
from factorwise.model.clusterings.level_weights import LevelWeights

SIZES = (4, 2)
ZEROS = LevelWeights.zeros(SIZES)
ODDS = np.array([-0.5, -3.0, -1.0, 1.0, 3.0])


def planted(n, seed=1):
    """Pairs whose odds of being the same rise with the first level; the second says nothing."""
    rng = np.random.default_rng(seed)
    levels = np.stack([rng.integers(0, 5, n), rng.integers(0, 3, n)], axis=1).astype(np.uint8)
    return PairExamples(levels, rng.random(n) < 1.0 / (1.0 + np.exp(-ODDS[levels[:, 0]])), np.ones(n))


def test_a_planted_rule_is_found():
    model = regress_levels(planted(60_000), ZEROS, seed=0)
    telling, nothing = model.tables()
    np.testing.assert_allclose(model.link + telling, ODDS, atol=0.15)
    assert abs(nothing).max() < 0.1
    assert telling[0] == nothing[0] == 0.0


def test_a_level_that_was_never_seen_has_the_weight_of_the_one_below():
    levels, same, share, _ = planted(5_000)
    seen = levels[:, 0] < 4
    weights = regress_levels(PairExamples(levels[seen], same[seen], share[seen]), ZEROS, seed=0).tables()[0]
    assert weights[4] == pytest.approx(weights[3], abs=1e-6)
    assert weights[3] > weights[2] + 1.0


def test_with_few_pairs_weights_stay_near_those_they_start_from():
    start = LevelWeights(SIZES, np.array([0.0, 0.0, -0.5, -2.5, -0.5, 1.5, 3.5, 0.0, 0.0]))
    few, many = (regress_levels(planted(n), start, seed=0) for n in (40, 60_000))
    assert np.abs(few.values - start.values).max() < 0.6
    np.testing.assert_allclose(many.link + many.tables()[0], ODDS, atol=0.15)


def test_slope_and_shift_bring_weights_to_the_scale_of_the_labels():
    right = LevelWeights(SIZES, np.array([0.0, 0.0, -0.5, -2.5, -0.5, 1.5, 3.5, 0.0, 0.0]))
    doubled = LevelWeights(SIZES, 2.0 * right.values + np.array([0, 0, 1.0, 0, 0, 0, 0, 0, 0]))
    found = scale_weights(planted(20_000), doubled)
    np.testing.assert_allclose(found.values, right.values, atol=0.15)
    hardly = scale_weights(PairExamples(*(part[:2] for part in planted(20_000)[:3])), doubled)
    assert np.abs(hardly.values - doubled.values).max() < 1.0


@pytest.mark.parametrize("same", [np.ones(3, bool), np.zeros(3, bool), np.zeros(0, bool)])
def test_where_nothing_is_to_be_told_apart_nothing_is_learned(same):
    examples = PairExamples(np.ones((len(same), 2), np.uint8), same, np.ones(len(same)))
    assert regress_levels(examples, ZEROS, seed=0) is ZEROS
    assert scale_weights(examples, ZEROS) is ZEROS


def test_of_very_many_pairs_a_sample_is_taken_by_the_seed(monkeypatch):
    monkeypatch.setattr(pair_regression, "MOST_PAIRS", 500)
    one, again, other = (regress_levels(planted(5_000), ZEROS, seed=s).values.tolist() for s in (1, 1, 2))
    assert one == again != other
