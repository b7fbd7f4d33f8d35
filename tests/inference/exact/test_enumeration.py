"""Brute force against a distribution small enough to write down."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, TreewidthError
from factorwise.inference.exact import Enumeration
from factorwise.model.grounding import FactorGraph

# Weights 1, 2, 3 / 0, 4, 6 over a bit and a trit: they sum to 16.
WEIGHTS = np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 6.0]])


def graph():
    with np.errstate(divide="ignore"):
        return FactorGraph.build([2, 3], [((1, 0), np.log(WEIGHTS).T), ((), np.log(2.0))])


def test_settings_run_in_c_order_with_their_scores():
    assert Enumeration().settings(graph()).tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    np.testing.assert_allclose(np.exp(Enumeration().scores(graph())), 2 * WEIGHTS.ravel())


def test_marginals_of_a_written_out_distribution():
    found = Enumeration().marginals(graph())
    np.testing.assert_allclose(found.node[0], [6 / 16, 10 / 16])
    np.testing.assert_allclose(found.node[1], [1 / 16, 6 / 16, 9 / 16])
    np.testing.assert_allclose(found.factor[0], WEIGHTS.T / 16)
    assert found.factor[1] == 1.0
    assert found.log_partition == pytest.approx(np.log(32))
    share = WEIGHTS[WEIGHTS > 0] / 16
    assert found.entropy == pytest.approx(-(share * np.log(share)).sum())
    assert found.convergence is None


def test_ranking_of_a_written_out_distribution_leaves_out_the_impossible():
    found = Enumeration().k_best(graph(), 10)
    assert [best.values.tolist() for best in found] == [[1, 2], [1, 1], [0, 2], [0, 1], [0, 0]]
    assert all(best.exact for best in found)


def test_equals_are_ranked_in_the_order_of_settings():
    flat = FactorGraph.build([2, 2], [])
    assert [b.values.tolist() for b in Enumeration().k_best(flat, 3)] == [[0, 0], [0, 1], [1, 0]]


def test_too_many_settings_are_refused_with_the_number_and_the_remedy():
    large = FactorGraph.build([2] * 70, [])
    with pytest.raises(TreewidthError, match=rf"{2**70} settings.*use JunctionTree\(\)"):
        Enumeration().marginals(large)
    assert Enumeration(limit=6).log_partition(graph()) == pytest.approx(np.log(32))
    with pytest.raises(TreewidthError, match="limit of 5"):
        Enumeration(limit=5).log_partition(graph())


def test_a_limit_below_one_is_refused():
    with pytest.raises(InvalidArgumentError, match="limit must be at least 1, but 0 was given"):
        Enumeration(limit=0)


def test_many_single_label_variables_are_one_setting():
    constants = FactorGraph.build([1] * 100 + [2], [((100,), [0.0, np.log(3.0)])])
    np.testing.assert_allclose(Enumeration().marginals(constants).node[100], [0.25, 0.75])
