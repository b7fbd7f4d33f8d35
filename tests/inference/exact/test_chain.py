"""Dense chains at lengths and magnitudes where careless scaling fails, and graphs laid out as chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError, StructureError
from factorwise.inference.exact import (
    ChainOracle,
    Enumeration,
    chain_best,
    chain_k_best,
    chain_log_partition,
    chain_marginals,
    chain_sample,
)
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream

FALSE_ALARM = 1e-4
COPY = np.where(np.eye(2) > 0, 0.0, -np.inf)


def as_graph(node, edge):
    """The same chain as a factor graph."""
    length, labels = node.shape
    tables = np.broadcast_to(edge, (length - 1, labels, labels))
    factors = [((t,), node[t]) for t in range(length)]
    factors += [((t, t + 1), tables[t]) for t in range(length - 1)]
    return FactorGraph.build([labels] * length, factors)


@st.composite
def chains(draw):
    length, labels = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    shape = (labels, labels) if draw(st.booleans()) else (length - 1, labels, labels)
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    scale = draw(st.sampled_from([1.0, 60.0, 800.0]))
    node, edge = rng.normal(scale=scale, size=(length, labels)), rng.normal(scale=scale, size=shape)
    edge[rng.random(shape) < draw(st.sampled_from([0.0, 0.2]))] = -np.inf
    return node, edge


@given(chains())
def test_all_functions_agree_with_enumeration_at_any_magnitude(case):
    node, edge = case
    graph = as_graph(node, edge)
    if Enumeration().scores(graph).max() == -np.inf:
        for ask in (chain_marginals, chain_log_partition, chain_best):
            with pytest.raises(ImpossibleError):
                ask(node, edge)
        return
    wanted, found = Enumeration().marginals(graph), chain_marginals(node, edge)
    np.testing.assert_allclose(found.node, wanted.node, atol=1e-9)
    np.testing.assert_allclose(found.edge.ravel(), np.ravel(wanted.factor[len(node) :]), atol=1e-9)
    assert found.log_partition == pytest.approx(wanted.log_partition, rel=1e-12, abs=1e-10)
    assert chain_log_partition(node, edge) == pytest.approx(wanted.log_partition, rel=1e-12, abs=1e-10)
    ranking = Enumeration().k_best(graph, 5)
    scores = [best.score for best in chain_k_best(node, edge, 5)]
    np.testing.assert_allclose(scores, [best.score for best in ranking], rtol=1e-12, atol=1e-10)
    assert chain_best(node, edge).score == pytest.approx(ranking[0].score, rel=1e-12, abs=1e-10)


def test_evidence_that_piles_up_beyond_underflow_is_not_forgotten():
    """A copied bit: 1,000 votes for 0 come first, whose weight exp(-1000) is no double, then 2,000 for 1."""
    node = np.zeros((3_000, 2))
    node[:1_000, 0] = 1.0
    node[1_000:, 1] = 1.0
    found = chain_marginals(node, COPY)
    np.testing.assert_allclose(found.node, np.tile([0.0, 1.0], (3_000, 1)), atol=1e-12)
    assert found.log_partition == pytest.approx(2_000.0)
    assert chain_log_partition(node, COPY) == pytest.approx(2_000.0)
    assert chain_best(node, COPY).values.tolist() == [1] * 3_000
    assert (chain_sample(node, COPY, Stream(1), 3) == 1).all()


def test_balanced_evidence_beyond_underflow_leaves_both_labels_likely():
    node = np.zeros((2_000, 2))
    node[:1_000, 0] = 1.0
    node[1_000:, 1] = 1.0
    node[0, 1] = np.log(3.0)
    found = chain_marginals(node, COPY)
    np.testing.assert_allclose(found.node, np.tile([0.25, 0.75], (2_000, 1)), rtol=1e-9)
    np.testing.assert_allclose(found.edge[700], [[0.25, 0.0], [0.0, 0.75]], rtol=1e-9)


@pytest.mark.parametrize("lean", [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 2_000.0])
def test_opposite_leans_cancel_at_any_strength(lean):
    """Alone each weight may be a double where the product of two is none."""
    node = np.repeat([[0.0, -lean], [-lean, 0.0]], 3, axis=0)
    found = chain_marginals(node, COPY)
    np.testing.assert_allclose(found.node, np.full((6, 2), 0.5), atol=1e-10)
    np.testing.assert_allclose(found.edge, np.tile(np.eye(2) / 2, (5, 1, 1)), atol=1e-10)
    assert found.log_partition == pytest.approx(np.log(2) - 3 * lean)


def test_a_long_chain_of_independent_places_has_the_marginals_of_each():
    node = np.random.default_rng(0).normal(size=(5_000, 4))
    found = chain_marginals(node, np.zeros((4, 4)))
    alone = np.exp(node) / np.exp(node).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.node, alone, rtol=1e-11)
    np.testing.assert_allclose(found.edge, alone[:-1, :, None] * alone[1:, None, :], rtol=1e-11)
    assert found.log_partition == pytest.approx(np.log(np.exp(node).sum(axis=1)).sum(), rel=1e-13)
    assert chain_best(node, np.zeros((4, 4))).values.tolist() == node.argmax(axis=1).tolist()


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_one_table_for_all_places_equals_the_same_table_for_each(scale):
    rng = np.random.default_rng(5)
    node, table = rng.normal(scale=scale, size=(30, 3)), rng.normal(size=(3, 3))
    each = np.broadcast_to(table, (29, 3, 3))
    shared, separate = chain_marginals(node, table), chain_marginals(node, each)
    np.testing.assert_array_equal(shared.node, separate.node)
    np.testing.assert_array_equal(shared.edge, separate.edge)
    assert shared.log_partition == pytest.approx(separate.log_partition, rel=1e-14)
    np.testing.assert_array_equal(
        [best.values for best in chain_k_best(node, table, 4)],
        [best.values for best in chain_k_best(node, each, 4)],
    )
    np.testing.assert_array_equal(
        chain_sample(node, table, Stream(2), 5), chain_sample(node, each, Stream(2), 5)
    )


def test_a_single_place_ignores_the_transitions():
    node = np.log([[1.0, 3.0]])
    for edge in (np.full((2, 2), -np.inf), np.zeros((0, 2, 2))):
        found = chain_marginals(node, edge)
        np.testing.assert_allclose(found.node, [[0.25, 0.75]])
        assert found.edge.shape == (0, 2, 2)
        assert chain_best(node, edge).values.tolist() == [1]
        assert [best.values.tolist() for best in chain_k_best(node, edge, 5)] == [[1], [0]]


def test_inputs_are_left_alone():
    node, edge = np.zeros((3, 2)), np.ones((2, 2))
    chain_marginals(node, edge)
    chain_k_best(node, edge, 2)
    chain_sample(node, edge, Stream(1), 2)
    assert (node == 0).all()
    assert (edge == 1).all()


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_sampled_paths_follow_the_distribution_in_both_domains(scale, seed):
    """At 300 the scores cancel between neighbors, so the log domain must draw the same paths as at 1."""
    rng = np.random.default_rng(8)
    lean = np.array([scale, -scale])
    node, edge = rng.normal(size=(4, 2)), rng.normal(size=(3, 2, 2))
    node[0] += lean
    edge[0] -= lean[:, None]
    drawn = chain_sample(node, edge, Stream(seed), 12_000)
    probability = Enumeration().distribution(as_graph(node, edge))
    observed = np.bincount(drawn @ [8, 4, 2, 1], minlength=16)
    assert (probability * 12_000 > 5).all()
    assert chisquare(observed, probability * 12_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("node", "edge", "error", "remedy"),
    [
        (np.zeros(3), np.zeros((3, 3)), ShapeError, r"shape \(places, labels\)"),
        (np.zeros((0, 3)), np.zeros((3, 3)), ShapeError, "at least one of each"),
        (np.zeros((4, 3)), np.zeros((2, 2)), ShapeError, r"shape \(3, 3\).*or \(3, 3, 3\).*but \(2, 2\)"),
        (np.zeros((4, 3)), np.zeros((4, 3, 3)), ShapeError, "one table for each pair of neighbors"),
        (np.full((4, 3), np.nan), np.zeros((3, 3)), InvalidArgumentError, "node_scores holds .inf or NaN"),
        (np.zeros((4, 3)), np.full((3, 3), np.inf), InvalidArgumentError, "transition_scores holds"),
    ],
)
def test_bad_arrays_are_refused_by_every_function(node, edge, error, remedy):
    for ask in (
        chain_marginals,
        chain_log_partition,
        chain_best,
        lambda n, e: chain_k_best(n, e, 2),
        lambda n, e: chain_sample(n, e, Stream(1), 2),
    ):
        with pytest.raises(error, match=remedy):
            ask(node, edge)


def test_a_large_factor_is_named_with_the_remedy():
    graph = FactorGraph.build([2] * 4, [((0, 1), np.zeros((2, 2))), ((3, 1, 2), np.zeros((2, 2, 2)))])
    with pytest.raises(StructureError, match=r"factor 1 connects the 3 variables \(3, 1, 2\).*TreeOracle"):
        ChainOracle().marginals(graph)


def test_a_branching_variable_is_named_with_its_neighbors_and_the_remedy():
    graph = FactorGraph.build([2] * 4, [((1, v), np.zeros((2, 2))) for v in (0, 2, 3)])
    with pytest.raises(
        StructureError, match=r"variable 1 has 3 neighbors, 0, 2, 3.*TreeOracle\(\) for trees"
    ):
        ChainOracle().best(graph)


def test_a_loop_is_named_with_the_factor_that_closes_it():
    table = np.zeros((2, 2))
    graph = FactorGraph.build([2] * 5, [((0, 4), table), ((1, 3), table), ((3, 2), table), ((2, 1), table)])
    with pytest.raises(StructureError, match=r"factor 3 over variables \(2, 1\).* loop 1 - 3 - 2 - 1\."):
        ChainOracle().marginals(graph)
