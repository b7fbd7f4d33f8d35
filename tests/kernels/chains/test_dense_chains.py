import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.kernels.chains import dense_chains
from reference import dense_chains as reference


@st.composite
def weights(draw, tied=None):
    """Weights of a short chain with some zeros, never all of a row or table."""
    length, size = draw(st.integers(1, 6)), draw(st.integers(1, 6 if draw(st.booleans()) else 3))
    length = min(length, 4) if size > 3 else length
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = 1 if tied or draw(st.booleans()) else length - 1
    node = random.random((length, size)) * (random.random((length, size)) < 0.9)
    edge = random.random((tables, size, size))
    node[:, 0] = 1.0
    return node, edge


def buffers(node):
    alpha, marginal = np.zeros((2, *node.shape))
    beta, onward = np.zeros((2, node.shape[1]))
    return alpha, np.zeros(len(node)), beta, onward, marginal


def passed(module, node, edge):
    alpha, peak, beta, onward, marginal = buffers(node)
    log_partition = module.forward_pass(node, edge, alpha, peak)
    assert module.backward_pass(node, edge, alpha, beta, onward, marginal)
    joint = np.zeros((len(node) - 1, *edge.shape[1:]))
    again = np.zeros_like(marginal)
    assert module.backward_with_edges(node, edge, alpha, peak, beta, onward, again, joint)
    np.testing.assert_allclose(again, marginal, atol=1e-14)
    return log_partition, alpha, peak, marginal, joint


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(1, 40))
def test_weights_equal_exp_of_scores_less_their_largest(seed, rows, size):
    random = np.random.default_rng(seed)
    scores = random.normal(0.0, 10.0, (rows, size))
    scores[:, 1:][random.random((rows, size - 1)) < 0.2] = -np.inf
    found, expected = ((np.empty_like(scores), np.empty(rows)) for _ in range(2))
    dense_chains.exponentiated_rows(scores, *found)
    reference.exponentiated_rows(scores, *expected)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)


def test_a_row_without_any_label_has_no_weight():
    weight, peak = np.ones((1, 9)), np.zeros(1)
    dense_chains.exponentiated_rows(np.full((1, 9), -np.inf), weight, peak)
    assert peak[0] == -np.inf
    assert not weight.any()


@settings(deadline=None, max_examples=60)
@given(weights())
def test_passes_equal_sums_over_all_paths(case):
    for found, expected in zip(passed(dense_chains, *case), passed(reference, *case), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@settings(deadline=None, max_examples=60)
@given(weights(tied=True))
def test_summed_pairs_equal_sums_over_all_paths(case):
    node, edge = case
    sums = []
    for module in (dense_chains, reference):
        alpha, peak, beta, _, marginal = buffers(node)
        onward, pairs = np.zeros_like(node), np.zeros(edge.shape[1:])
        module.forward_pass(node, edge, alpha, peak)
        assert module.backward_with_sums(node, edge, alpha, peak, beta, onward, marginal, pairs)
        sums.append((marginal, pairs))
    np.testing.assert_allclose(sums[0][0], sums[1][0], atol=1e-14)
    np.testing.assert_allclose(sums[0][1], sums[1][1], atol=1e-13)


def test_a_chain_without_a_path_has_log_partition_of_minus_infinity():
    node = np.array([[1.0, 0.0], [0.0, 1.0]])
    edge = np.array([[[1.0, 0.0], [1.0, 1.0]]])
    alpha, peak, *_ = buffers(node)
    assert dense_chains.forward_pass(node, edge, alpha, peak) == -np.inf
    assert reference.forward_pass(node, edge, alpha, peak) == -np.inf


@pytest.mark.parametrize("with_edges", [False, True])
def test_passes_that_do_not_meet_are_noticed(with_edges):
    # what is likely going forward is all but impossible going backward
    node = np.array([[1.0, 1e-160], [1.0, 1e-160], [1.0, 1.0]])
    edge = np.array([np.eye(2), [[0.0, 0.0], [1.0, 1.0]]])
    edge[1, 0] = 1e-170
    alpha, peak, beta, onward, marginal = buffers(node)
    assert dense_chains.forward_pass(node, edge, alpha, peak) > -np.inf
    if with_edges:
        joint = np.zeros((2, 2, 2))
        met = dense_chains.backward_with_edges(node, edge, alpha, peak, beta, onward, marginal, joint)
    else:
        met = dense_chains.backward_pass(node, edge, alpha, beta, onward, marginal)
    assert not met


def test_many_chains_equal_sums_over_all_paths():
    random = np.random.default_rng(4)
    start = np.cumsum([0, 3, 1, 4, 2])
    node, edge = random.normal(size=(10, 3)), random.random((1, 3, 3))
    found = []
    for module in (dense_chains, reference):
        marginal, log_partition = np.zeros_like(node), np.full(4, 7.0)
        scratch = np.zeros(4 + 2 * 3)
        module.chains_range(
            node, start, edge, node.copy(), node.copy(), scratch, marginal, log_partition, 1, 4
        )
        found.append((marginal, log_partition))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-13)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-13)
    assert found[0][1][0] == 7.0
