"""Weights of links from labelled pairs alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from factorwise.apps.resolution import pair_regression
from factorwise.apps.resolution.pair_regression import logistic_links, up_to_level
from factorwise.model.level_weights import LevelWeights

SIZES = (4, 2)


def planted(n, seed=1):
    """Pairs whose odds of being the same rise with the first level; the second says nothing."""
    rng = np.random.default_rng(seed)
    levels = np.stack([rng.integers(0, 5, n), rng.integers(0, 3, n)], axis=1).astype(np.uint8)
    odds = np.array([-0.5, -3.0, -1.0, 1.0, 3.0])[levels[:, 0]]
    return levels, rng.random(n) < 1.0 / (1.0 + np.exp(-odds))


@given(hnp.arrays(np.uint8, st.tuples(st.integers(0, 8), st.just(2)), elements=st.integers(0, 2)))
def test_a_level_counts_as_all_levels_up_to_it(levels):
    expected = np.zeros((len(levels), sum(SIZES)))
    for row, (one, two) in enumerate(levels.tolist()):
        expected[row, :one] = 1.0
        expected[row, 4 : 4 + two] = 1.0
    assert up_to_level(levels, LevelWeights.zeros(SIZES)).toarray().tolist() == expected.tolist()


def test_a_planted_rule_is_found():
    model = logistic_links(*planted(60_000), SIZES, seed=0)
    telling, nothing = model.tables()
    np.testing.assert_allclose(model.link + telling, [-0.5, -3.0, -1.0, 1.0, 3.0], atol=0.15)
    assert abs(nothing).max() < 0.1
    assert model.cluster == 0.0


@pytest.mark.parametrize(("linked", "apart"), [(1.0, -1.0), (0.75, -0.5), (0.5, 0.0), (0.1, 0.0)])
def test_not_being_linked_speaks_against_a_pair_as_far_as_pairs_of_one_entity_are(linked, apart):
    assert logistic_links(*planted(500), SIZES, linked=linked, seed=0).unlinked == pytest.approx(apart)


def test_pairs_where_something_is_missing_have_no_weight_for_it():
    for table in logistic_links(*planted(2_000), SIZES, seed=0).tables():
        assert table[0] == 0.0


def test_a_level_that_was_never_seen_has_the_weight_of_the_one_below():
    levels, same = planted(5_000)
    seen = levels[:, 0] < 4
    weights = logistic_links(levels[seen], same[seen], SIZES, seed=0).tables()[0]
    assert weights[4] == pytest.approx(weights[3], abs=1e-6)
    assert weights[3] > weights[2] + 1.0


@pytest.mark.parametrize("same", [np.ones(3, bool), np.zeros(3, bool), np.zeros(0, bool)])
def test_where_nothing_is_to_be_told_apart_nothing_is_learned(same):
    assert not logistic_links(np.ones((len(same), 2), np.uint8), same, SIZES, seed=0).values.any()


def test_without_comparisons_nothing_is_learned():
    same = np.array([True, False])
    assert not logistic_links(np.zeros((2, 0), np.uint8), same, (), seed=0).values.any()


def test_of_very_many_pairs_a_sample_is_taken_by_the_seed(monkeypatch):
    monkeypatch.setattr(pair_regression, "MOST_PAIRS", 500)
    one, again, other = (logistic_links(*planted(5_000), SIZES, seed=s).values.tolist() for s in (1, 1, 2))
    assert one == again != other
