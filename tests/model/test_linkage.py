"""The model of clusterings with levels on links, against sums over pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.model.linkage import FIXED_NAMES, LinkModel


def model_for(sizes, seed):
    model = LinkModel.blank(sizes)
    return LinkModel(model.sizes, np.random.default_rng(seed).normal(size=len(model.weights)))


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_the_score_is_a_sum_over_clusters_and_pairs(seed, n):
    rng = np.random.default_rng(seed)
    model = model_for((2, 1, 3), seed)
    linked = {pair: rng.integers(0, [3, 2, 4]) for pair in combinations(range(n), 2) if rng.random() < 0.5}
    labels = rng.integers(0, 3, n)
    expected = model.cluster * len(set(labels.tolist()))
    for one, two in combinations(range(n), 2):
        if labels[one] != labels[two]:
            continue
        if (one, two) not in linked:
            expected += model.apart
            continue
        expected += model.link
        for comparison, level in enumerate(linked[one, two]):
            if level > 0:
                expected += model.weights[3 + [0, 2, 3][comparison] + level - 1]
    first, second = np.array(list(linked), np.int32).reshape(-1, 2).T
    levels = np.array(list(linked.values()), np.uint8).reshape(-1, 3)
    assert model.score(labels, first, second, levels) == pytest.approx(expected, abs=1e-9)


def test_tables_and_link_scores_give_level_zero_no_weight():
    model = LinkModel((2, 1), np.array([9.0, 8.0, 0.5, 1.0, 2.0, 4.0]))
    assert (model.apart, model.cluster, model.link) == (9.0, 8.0, 0.5)
    assert [table.tolist() for table in model.tables()] == [[0.0, 1.0, 2.0], [0.0, 4.0]]
    levels = np.array([[0, 0], [1, 0], [2, 1]], np.uint8)
    assert model.link_scores(levels).tolist() == [0.5, 1.5, 6.5]


def test_a_model_without_comparisons_has_the_fixed_weights_alone():
    model = LinkModel.blank(())
    assert len(model.weights) == len(FIXED_NAMES)
    assert model.link_scores(np.zeros((2, 0), np.uint8)).tolist() == [0.0, 0.0]


def test_weights_that_do_not_fit_the_levels_are_refused():
    with pytest.raises(ShapeError, match="need 6 weights"):
        LinkModel((2, 1), np.zeros(5))
    with pytest.raises(InvalidArgumentError, match="1 or more levels"):
        LinkModel.blank((2, 0))
