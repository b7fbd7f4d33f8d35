"""What a first-order chain allows and weighs, against tables written out by hand and sums over all paths."""

from dataclasses import replace

import numpy as np
import pytest

from chain_cases import constrained, partly_known, possible_labels
from factorwise.errors import ImpossibleError, ShapeError
from factorwise.kernels.chains.chain_rows import FORBIDDEN
from factorwise.learning.chains.structure import FirstOrder, Supervision, neighbors
from reference import chain_rows as reference

NO = np.zeros(3, dtype=bool)
START = np.array([0, 3, 4, 6])
TRUTH = np.array([0, 1, 2, 2, 1, 1], dtype=np.int32)
STRICT = replace(
    FirstOrder.free(3, np.array([[2, 0], [0, 1]])),
    forbidden=np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool),
    not_first=np.array([False, True, False]),
    not_last=np.array([False, False, True]),
)


def test_a_free_chain_weighs_every_pair_and_forbids_nothing():
    chain = FirstOrder.free(2)
    assert chain.pairs.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert chain.size == 4
    assert not chain.forbidden.any()
    np.testing.assert_array_equal(chain.table(np.array([1.0, 2.0, 3.0, 4.0])), [[1.0, 2.0], [3.0, 4.0]])


def test_pairs_without_a_weight_score_zero_and_forbidden_ones_nothing():
    table = STRICT.table(np.array([5.0, -1.0]))
    np.testing.assert_array_equal(table, [[0.0, -1.0, -np.inf], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    weighed = replace(STRICT, pairs=np.array([[0, 2], [0, 1]], dtype=np.int32))
    assert weighed.table(np.array([5.0, -1.0]))[0].tolist() == [0.0, -1.0, -np.inf]


def test_steps_are_the_table_less_its_largest_both_ways_and_padded():
    steps, shift = STRICT.steps(np.array([5.0, -1.0]), 8, np.float32)
    assert shift == 5.0
    lowered = np.array([[-5.0, -6.0, FORBIDDEN], [-5.0, -5.0, -5.0], [0.0, -5.0, -5.0]], dtype=np.float32)
    np.testing.assert_array_equal(steps.score[:, :3], lowered)
    np.testing.assert_array_equal(steps.arrival[:, :3], lowered.T)
    np.testing.assert_allclose(steps.weight[:, :3], np.exp(lowered), rtol=1e-6)
    np.testing.assert_allclose(steps.reverse[:, :3], np.exp(lowered).T, rtol=1e-6)
    for table, empty in zip(steps, [FORBIDDEN, FORBIDDEN, 0.0, 0.0], strict=True):
        assert table.dtype == np.float32
        assert table.shape == (3, 8)
        assert (table[:, 3:] == np.float32(empty)).all()


def test_a_chain_that_forbids_every_pair_has_steps_all_the_same():
    shut = replace(FirstOrder.free(2), forbidden=np.ones((2, 2), dtype=bool))
    steps, shift = shut.steps(np.zeros(4), 8, np.float64)
    assert shift == 0.0
    assert not steps.weight.any()


def test_base_forbids_labels_at_the_ends_of_sentences():
    base = STRICT.base(8, np.float64)
    forbidden = base == FORBIDDEN
    assert forbidden[:, 3:].all()
    assert forbidden[:, :3].tolist() == [
        [False, False, False],
        [False, True, False],
        [False, False, True],
        [False, True, True],
    ]
    assert (base[~forbidden] == 0.0).all()


def test_observed_pairs_are_counted_within_sentences_whose_labels_are_known():
    chain = FirstOrder.free(3)
    counts = chain.observed(START, Supervision(TRUTH))
    np.testing.assert_array_equal(counts, [[0, 1, 0], [0, 1, 1], [0, 0, 0]])
    weighed = chain.observed(START, Supervision(TRUTH, emphasis=np.array([0.5, 7.0, 3.0])))
    np.testing.assert_array_equal(weighed, [[0, 0.5, 0], [0, 3.0, 0.5], [0, 0, 0]])
    unknown = chain.observed(START, Supervision(np.array([0, 1, -1, 2, 1, 1], dtype=np.int32)))
    np.testing.assert_array_equal(unknown, [[0, 0, 0], [0, 1, 0], [0, 0, 0]])


def test_the_gradient_is_read_where_there_are_weights():
    steps, _ = STRICT.steps(np.array([np.log(4.0), 0.0]), 8, np.float64)
    edge = np.arange(24.0).reshape(3, 8)
    observed = np.full((3, 3), 0.5)
    # pair (2, 0) has the largest weight, 1; pair (0, 1) a quarter of it
    np.testing.assert_allclose(STRICT.gradient(edge, steps, observed), [16.0 - 0.5, 1.0 / 4 - 0.5])


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_logs_give_the_sums_over_all_paths(scale, seed):
    rng = np.random.default_rng(seed)
    chain = constrained(rng, FirstOrder.free(3))
    weights, node = rng.normal(scale=scale, size=9), rng.normal(scale=scale, size=(4, 3))
    log_total, labels, pairs = chain.in_logs(node, weights)
    wanted = reference.marginals(node.tolist(), chain.table(weights).tolist())
    assert log_total == pytest.approx(wanted[0], rel=1e-12)
    np.testing.assert_allclose(labels, wanted[1], atol=1e-10)
    np.testing.assert_allclose(pairs, wanted[2], atol=1e-10)
    assert chain.log_partition(node, weights) == pytest.approx(wanted[0], rel=1e-12)
    best = chain.k_best(node, weights, 2)
    path, score = reference.decode(node.tolist(), chain.table(weights).tolist())
    assert tuple(best[0].values.tolist()) == path
    assert best[0].score == pytest.approx(score, rel=1e-12)
    assert best[1].score <= best[0].score


def test_a_sentence_without_a_path_has_log_z_of_minus_infinity():
    chain, shut = FirstOrder.free(2), np.full((2, 2), -np.inf)
    assert chain.log_partition(shut, np.zeros(4)) == -np.inf
    with pytest.raises(ImpossibleError, match="probability zero"):
        chain.in_logs(shut, np.zeros(4))


def test_what_is_known_of_a_token_is_its_label_or_its_set(seed):
    rng = np.random.default_rng(seed)
    truth = possible_labels(rng, START, FirstOrder.free(3))
    known = partly_known(rng, truth, 3)
    for token in range(6):
        if known.truth[token] >= 0:
            assert np.flatnonzero(known.may_be(token, 3)).tolist() == [truth[token]]
        else:
            np.testing.assert_array_equal(known.may_be(token, 3), known.allowed[known.allowed_row[token]])


@pytest.mark.parametrize("every", [False, True])
def test_pairs_with_weights_are_those_seen_or_all_that_may_be(every):
    truth = np.array([0, 1, -1, 2, 1, 1], dtype=np.int32)
    given = {"forbidden": STRICT.forbidden, "not_first": NO, "not_last": NO}
    chain = FirstOrder.from_labels(truth, START, 3, every=every, **given)
    seen = [[0, 1], [1, 1]]
    allowed = [[a, b] for a in range(3) for b in range(3) if (a, b) != (0, 2)]
    assert chain.pairs.tolist() == (allowed if every else seen)
    assert chain.transitions() == [tuple(pair) for pair in chain.pairs.tolist()]


def test_neighbors_do_not_reach_over_the_end_of_a_sentence():
    left, right = neighbors(TRUTH, START)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1), (1, 2), (1, 1)]
    left, right = neighbors(TRUTH[:0], np.array([0]))
    assert len(left) == len(right) == 0


def test_a_chain_is_restored_from_its_arrays_and_damaged_ones_are_refused():
    arrays = STRICT.to_arrays()
    again = FirstOrder.from_arrays(3, arrays)
    for name in ("pairs", "forbidden", "not_first", "not_last"):
        np.testing.assert_array_equal(getattr(again, name), getattr(STRICT, name))
    damaged = [
        {"pairs": np.array([[0, 3]], np.int32)},
        {"pairs": np.array([[0, -1]], np.int32)},
        {"pairs": np.zeros((2, 3), np.int32)},
        {"pairs": np.zeros((2, 2))},
        {"forbidden": np.zeros((2, 2), bool)},
        {"not_first": np.zeros(4, bool)},
        {"not_last": np.zeros(3)},
    ]
    for wrong in damaged:
        with pytest.raises(ShapeError):
            FirstOrder.from_arrays(3, {**arrays, **wrong})
