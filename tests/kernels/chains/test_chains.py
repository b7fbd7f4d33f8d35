"""Chain kernels against sums over all paths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.chains import chains
from factorwise.rng import Stream
from reference import chains as reference

SOFT = [-1.5, -0.5, 0.0, 0.3, 1.0, 2.5]
HARD = [*SOFT, -np.inf]
HUGE = [*HARD, -800.0, 800.0]


@st.composite
def arrays(draw, scores):
    """Node scores and transitions of a possible chain of one to four places, shared or one table per pair."""
    length, labels = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    shared = draw(st.booleans()) and length > 1
    shapes = (length, labels), (1 if shared else length - 1, labels, labels)
    node, edge = (
        np.reshape(draw(st.lists(st.sampled_from(scores), min_size=n, max_size=n)), shape)
        for shape in shapes
        for n in [int(np.prod(shape))]
    )
    return node, edge


def spelled_out(node, edge):
    """The same chain as lists with one table per pair."""
    return node.tolist(), np.broadcast_to(edge, (len(node) - 1, *edge.shape[1:])).tolist()


def is_possible(node, edge):
    return reference.log_partition(*spelled_out(node, edge)) > -np.inf


def weights(node, edge):
    """Exp with a largest of 1 in each row and table."""
    return (
        np.exp(node - node.max(axis=1, keepdims=True)),
        np.exp(edge - edge.max(axis=(1, 2), keepdims=True)),
    )


def passes(node, edge):
    """Both scaled passes."""
    node_weight, edge_weight = weights(node, edge)
    alpha, beta, onward = np.empty((3, *node.shape))
    scale = np.empty(len(node))
    assert chains.forward(node_weight, edge_weight, alpha, scale) == chains.DONE
    assert chains.backward(node_weight, edge_weight, beta, onward) == chains.DONE
    return edge_weight, alpha, beta, onward, scale


@given(arrays(HARD))
def test_forward_equals_the_sum_over_all_beginnings(case):
    node, edge = case
    if not is_possible(node, edge):
        return
    _, alpha, _, _, scale = passes(node, edge)
    np.testing.assert_allclose(alpha, reference.forward(*spelled_out(node, edge)), rtol=1e-12)
    peaks = (
        node.max(axis=1).sum() + np.broadcast_to(edge.max(axis=(1, 2), initial=-np.inf), len(node) - 1).sum()
    )
    log_partition = peaks + np.log(scale).sum() + np.log(alpha[-1].sum())
    assert log_partition == pytest.approx(reference.log_partition(*spelled_out(node, edge)), abs=1e-12)


@given(arrays(HARD))
def test_backward_equals_the_sum_over_all_endings(case):
    node, edge = case
    if not is_possible(node, edge):
        return
    _, _, beta, onward, _ = passes(node, edge)
    wanted = np.array(reference.backward_log(*spelled_out(node, edge)))
    np.testing.assert_allclose(beta, reference.backward(*spelled_out(node, edge)), rtol=1e-12)
    np.testing.assert_allclose(onward, [reference.scaled(row) for row in node + wanted], rtol=1e-12)


@given(arrays(HARD))
def test_join_equals_the_sum_of_path_probabilities(case):
    node, edge = case
    if not is_possible(node, edge):
        return
    edge_weight, alpha, beta, onward, _ = passes(node, edge)
    single, double = np.empty_like(node), np.empty((len(node) - 1, *edge.shape[1:]))
    chains.join(edge_weight, alpha, beta, onward, single, double)
    wanted_single, wanted_double = reference.join(*spelled_out(node, edge))
    np.testing.assert_allclose(single, wanted_single, atol=1e-13)
    np.testing.assert_allclose(double, np.reshape(wanted_double, double.shape), atol=1e-13)


@given(arrays(HUGE))
def test_the_log_domain_holds_at_any_magnitude(case):
    node, edge = case
    terms, shift = np.empty(node.shape[1]), np.empty(len(node))
    alpha, beta = np.empty((2, *node.shape))
    status = chains.forward_log(node, edge, terms, alpha, shift)
    if not is_possible(node, edge):
        assert status == chains.IMPOSSIBLE
        return
    assert status == chains.DONE
    chains.backward_log(node, edge, terms, beta)
    wanted_alpha = np.array(reference.forward_log(*spelled_out(node, edge)))
    wanted_beta = np.array(reference.backward_log(*spelled_out(node, edge)))
    np.testing.assert_allclose(alpha + np.cumsum(shift)[:, None], wanted_alpha, rtol=1e-12, atol=1e-11)
    wanted_beta -= wanted_beta.max(axis=1, keepdims=True)
    np.testing.assert_allclose(beta, wanted_beta, rtol=1e-12, atol=1e-11)


def test_the_scaled_passes_say_when_a_number_becomes_too_small():
    lean = np.exp([[0.0, -200.0]] * 3)  # each row is fine, but copying transitions add them up
    copy = np.eye(2)[None]
    alpha, beta, onward = np.empty((3, *lean.shape))
    assert chains.forward(lean, copy, alpha, np.empty(3)) == chains.UNDERFLOW
    assert chains.backward(lean, copy, beta, onward) == chains.UNDERFLOW


def test_the_forward_pass_says_when_no_path_is_left():
    node = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert chains.forward(node, np.eye(2)[None], np.empty((2, 2)), np.empty(2)) == chains.IMPOSSIBLE


@given(arrays(HUGE))
def test_viterbi_equals_the_best_of_all_paths(case):
    node, edge = case
    path, back = np.zeros(len(node), dtype=np.int64), np.empty(node.shape, dtype=np.int64)
    score = chains.viterbi(node, edge, np.empty((2, node.shape[1])), back, path)
    wanted, _ = reference.viterbi(*spelled_out(node, edge))
    assert score == pytest.approx(wanted, abs=1e-10)
    if wanted > -np.inf:
        assert reference.score(*spelled_out(node, edge), tuple(path)) == pytest.approx(wanted, abs=1e-10)


def test_viterbi_takes_the_lowest_labels_among_equals():
    node, edge = np.zeros((3, 2)), np.array([[[-1.0, 0.0], [0.0, -1.0]]])
    path, back = np.zeros(3, dtype=np.int64), np.empty((3, 2), dtype=np.int64)
    chains.viterbi(node, edge, np.empty((2, 2)), back, path)
    assert tuple(path) == reference.viterbi(*spelled_out(node, edge))[1] == (0, 1, 0)


@given(arrays(HARD), st.integers(1, 12))
def test_k_best_equals_ranking_all_paths(case, k):
    node, edge = case
    length, labels = node.shape
    paths = np.zeros((k, length), dtype=np.int64)
    lists, back = np.zeros((2, labels, k)), np.zeros((length, labels, k), dtype=np.int64)
    head, end = np.zeros(labels, dtype=np.int64), np.zeros((labels, 1))
    count = chains.k_best(node, edge, lists, back, head, end, paths)
    wanted = reference.k_best(*spelled_out(node, edge), k)
    assert count == len(wanted)
    found = [reference.score(*spelled_out(node, edge), tuple(path)) for path in paths[:count]]
    np.testing.assert_allclose(found, [score for score, _ in wanted], atol=1e-12)
    assert len({tuple(path) for path in paths[:count]}) == count


@given(arrays(HARD), st.integers(0, 1_000))
def test_sampling_draws_what_the_plain_twin_draws(case, seed):
    node, edge = case
    if not is_possible(node, edge):
        return
    alpha, shift = np.empty_like(node), np.empty(len(node))
    chains.forward_log(node, edge, np.empty(node.shape[1]), alpha, shift)
    paths = np.zeros((5, len(node)), dtype=np.int64)
    fast, slow = Stream(seed), Stream(seed)
    chains.sample(edge, alpha, fast.state, np.empty(node.shape[1]), paths)
    assert [tuple(path) for path in paths] == reference.sample(*spelled_out(node, edge), slow, 5)
    np.testing.assert_array_equal(fast.state, slow.state)
