"""Trees too large to enumerate, merged factors, and loops that are named."""

import re

import numpy as np
import pytest
from scipy.stats import chisquare

from factorwise.errors import StructureError
from factorwise.inference.exact import ChainOracle, JunctionTree, TreeOracle
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream

FALSE_ALARM = 1e-4


def random_tree(count, scale=1.0, seed=4):
    """Each variable hangs from an earlier one; domains of one to three labels; some hard zeros."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=count)
    factors = []
    for v in range(1, count):
        scope = (int(rng.integers(v)), v) if rng.random() < 0.5 else (v, int(rng.integers(v)))
        table = rng.normal(scale=scale, size=sizes[list(scope)])
        table[rng.random(table.shape) < 0.1] = -np.inf
        table[0, 0] = 0.0  # all zeros stay possible
        factors.append((scope, table))
    factors += [((v,), rng.normal(size=sizes[v])) for v in range(0, count, 3)]
    return FactorGraph.build(sizes, factors)


@pytest.mark.parametrize("scale", [1.0, 400.0])
def test_a_tree_of_two_hundred_variables_equals_its_junction_tree(scale):
    graph = random_tree(200, scale)
    found, wanted = TreeOracle().marginals(graph), JunctionTree().marginals(graph)
    for ours, other in zip(found.node + found.factor, wanted.node + wanted.factor, strict=True):
        np.testing.assert_allclose(ours, other, atol=1e-9)
    assert found.log_partition == pytest.approx(wanted.log_partition, rel=1e-12)
    assert found.entropy == pytest.approx(wanted.entropy, abs=1e-7)
    ranking = [[b.score for b in oracle.k_best(graph, 5)] for oracle in (TreeOracle(), JunctionTree())]
    np.testing.assert_allclose(ranking[0], ranking[1], rtol=1e-12)


def test_a_chain_of_twenty_thousand_variables_equals_the_chain_oracle():
    rng = np.random.default_rng(6)
    edges = [((v + 1, v), rng.normal(size=(2, 2))) for v in range(19_999)]
    graph = FactorGraph.build([2] * 20_000, edges)
    tree, chain = TreeOracle(), ChainOracle()
    assert tree.log_partition(graph) == pytest.approx(chain.log_partition(graph), rel=1e-13)
    assert tree.best(graph).score == pytest.approx(chain.best(graph).score, rel=1e-13)
    np.testing.assert_allclose(tree.marginals(graph).node, chain.marginals(graph).node, atol=1e-10)


def test_a_star_of_many_leaves_does_not_vanish_at_its_center():
    """Each leaf leans the center by a factor of 3, half of them either way: together by none."""
    lean = np.log([[3.0, 1.0], [1.0, 1.0]])
    rays = 2_000
    factors = [((0, leaf), lean if leaf % 2 else lean[::-1]) for leaf in range(1, rays + 1)]
    graph = FactorGraph.build([2] * (rays + 1), factors)
    found = TreeOracle().marginals(graph)
    np.testing.assert_allclose(found.node[0], [0.5, 0.5], atol=1e-10)
    assert found.log_partition == pytest.approx(np.log(2) + rays / 2 * np.log(8), rel=1e-12)


@pytest.mark.parametrize("lean", [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 2_000.0])
def test_opposite_leans_cancel_at_any_strength(lean):
    """Alone each weight may be a double where the product of two is none."""
    rows = np.array([[0.0, 0.0], [-lean, -lean]])
    turned = [(v, rows if v < 4 else rows[::-1]) for v in range(1, 7)]
    found = TreeOracle().marginals(FactorGraph.build([2] * 7, [((0, v), table) for v, table in turned]))
    np.testing.assert_allclose(found.node, np.full((7, 2), 0.5), atol=1e-10)


def test_evidence_that_piles_up_beyond_underflow_is_not_forgotten():
    copy = np.where(np.eye(2) > 0, 0.0, -np.inf)
    factors = [((v, v + 1), copy) for v in range(2_999)]
    factors += [((v,), [1.0, 0.0] if v < 1_000 else [0.0, 1.0]) for v in range(3_000)]
    graph = FactorGraph.build([2] * 3_000, factors)
    found = TreeOracle().marginals(graph)
    np.testing.assert_allclose(found.node, np.tile([0.0, 1.0], (3_000, 1)), atol=1e-12)
    assert found.log_partition == pytest.approx(2_000.0)
    assert (TreeOracle().sample(graph, Stream(3), 2) == 1).all()


@pytest.mark.statistical
def test_samples_of_separate_trees_are_independent_of_each_other(seed):
    graph = FactorGraph.build([2, 2], [])
    drawn = TreeOracle().sample(graph, Stream(seed), 4_000)
    assert chisquare(np.bincount(drawn @ [2, 1], minlength=4)).pvalue > FALSE_ALARM


def test_a_loop_is_named_with_the_factor_that_closes_it():
    table = np.zeros((2, 2))
    scopes = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]
    graph = FactorGraph.build([2] * 5, [(scope, table) for scope in scopes])
    with pytest.raises(StructureError) as refusal:
        TreeOracle().marginals(graph)
    message = str(refusal.value)
    assert re.search(r"factor \d over variables \(2, 3\) closes the loop 3 - 1 - 2 - 3\.", message)
    assert "Use JunctionTree(), which takes loops." in message


def test_two_large_factors_that_share_two_variables_are_named_as_a_loop():
    table = np.zeros((2, 2, 2))
    graph = FactorGraph.build([2] * 4, [((0, 1, 2), table), ((1, 2, 3), table)])
    with pytest.raises(StructureError, match=r"factor 1 .* closes the loop 2 - 1 - 2"):
        TreeOracle().best(graph)


def test_a_pair_inside_a_larger_factor_is_no_loop():
    graph = FactorGraph.build([2] * 3, [((0, 1, 2), np.zeros((2, 2, 2))), ((2, 0), [[0.0, 1.0], [2.0, 3.0]])])
    np.testing.assert_allclose(
        TreeOracle().marginals(graph).factor[1], JunctionTree().marginals(graph).factor[1], atol=1e-14
    )
