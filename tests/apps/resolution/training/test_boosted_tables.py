"""Weights of comparison levels by boosting."""

import numpy as np

from factorwise.apps.resolution.training.boosted_tables import boost_tables
from factorwise.apps.resolution.training.examples import PairExamples

SIZES = (6, 2, 3)
ODDS = np.array([0.0, -3.0, -2.0, -2.0, 1.0, 1.5, 3.0])


def planted(n=6_000, falling=False):
    """Pairs whose odds of being the same rise, or fall, with the first level; the third is always missing."""
    rng = np.random.default_rng(1)
    levels = np.stack([rng.integers(0, 7, n), rng.integers(0, 3, n), np.zeros(n)], axis=1).astype(np.uint8)
    odds = (ODDS[::-1] if falling else ODDS)[levels[:, 0]]
    return PairExamples(levels, rng.random(n) < 1.0 / (1.0 + np.exp(-odds)), np.ones(n))


def test_tables_are_what_the_ensemble_says_and_follow_the_planted_rule():
    weights = boost_tables(planted(), SIZES, (1, 1, 1), seed=0)
    telling, little, nothing = weights.tables()
    np.testing.assert_allclose(weights.link + telling, ODDS, atol=0.5)
    assert np.ptp(little) < 0.6
    assert not nothing.any()
    assert weights.used() == [0, 1]


def test_weights_never_fall_where_pairs_become_more_alike():
    rising = boost_tables(planted(), SIZES, (1, 1, 1), seed=0).tables()[0][1:]
    falling = boost_tables(planted(falling=True), SIZES, (-1, 1, 1), seed=0).tables()[0][1:]
    assert (np.diff(rising) >= 0.0).all()
    assert (np.diff(falling) <= 0.0).all()
    against = boost_tables(planted(falling=True), SIZES, (1, 1, 1), seed=0).tables()[0][1:]
    assert (np.diff(against) >= 0.0).all()


def test_where_nothing_is_to_be_told_apart_nothing_is_learned():
    examples = PairExamples(np.ones((4, 3), np.uint8), np.ones(4, bool), np.ones(4))
    assert not boost_tables(examples, SIZES, (1, 1, 1), seed=0).values.any()
