"""The chain likelihood against sums over all paths, finite differences, and itself on more threads."""

from dataclasses import replace

import numpy as np
import pytest

from chain_cases import KINDS, Problem, by_differences, possible_labels, problem, sparse
from factorwise.errors import ImpossibleError, ShapeError
from factorwise.inference.exact.chain import chain_marginals
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.layout import Bundles, StateFeatures
from factorwise.learning.chains.structure import FirstOrder, Supervision

every_kind = pytest.mark.parametrize("kind", KINDS)
SINGLE = {"rtol": 2e-5, "atol": 2e-5}  # single precision at scores of a few units


def assert_agrees(case, weights, dtype=np.float64, rtol=1e-10, atol=1e-10):
    """Loss and gradient are those of the sum over all paths."""
    loss, gradient = case.likelihood(dtype)(weights)
    wanted_loss, wanted_gradient = case.by_enumeration(weights)
    assert loss == pytest.approx(wanted_loss, rel=rtol, abs=atol)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=rtol, atol=atol)


@every_kind
def test_loss_and_gradient_are_those_of_the_sum_over_all_paths(kind, seed):
    case = problem(kind, seed)
    assert_agrees(case, case.weights(seed))


@every_kind
def test_the_gradient_is_that_of_finite_differences(kind, seed):
    case = problem(kind, seed)
    weights, likelihood = case.weights(seed + 1), case.likelihood()
    gradient = likelihood(weights)[1].copy()
    np.testing.assert_allclose(gradient, by_differences(likelihood, weights), rtol=1e-7, atol=1e-7)


@every_kind
def test_single_precision_is_close_to_the_sum_over_all_paths(kind, seed):
    case = problem(kind, seed, labels=17, lengths=(1, 2, 1, 2, 2, 1, 1, 2))
    assert_agrees(case, case.weights(seed), np.float32, **SINGLE)


def test_the_kinds_are_what_they_are_called(seed):
    """Each of them would be another's test if its peculiarity did not come about."""
    cases = {kind: problem(kind, seed) for kind in KINDS}
    assert len(Bundles.find(cases["bundled"].rows, cases["bundled"].slot).contents) > 0
    assert len(Bundles.find(cases["everything"].rows, cases["everything"].slot).contents) > 0
    assert len(cases["frequent"].features) < len(
        StateFeatures.observed(cases["frequent"].rows, cases["frequent"].supervision.truth, 3)
    )
    for kind in ("partial", "everything"):
        known, start = cases[kind].supervision, cases[kind].start
        per_sentence = np.add.reduceat(known.truth < 0, start[:-1])
        assert (per_sentence > 0).any()
        assert {1, 3} <= set(known.allowed[known.allowed_row[known.truth < 0]].sum(axis=1))
    assert (np.add.reduceat(cases["partial"].supervision.truth < 0, cases["partial"].start[:-1]) == 0).any()
    for kind in ("constrained", "everything"):
        structure = cases[kind].structure
        assert structure.forbidden.any()
        assert structure.not_first.any()
        assert structure.not_last.any()
    assert 0 < cases["few_pairs"].structure.size < 9
    for kind in ("plain", "valued", "partial"):  # attributes without weights, with one, with a row
        assert {0, 1} < set(cases[kind].features.per_attribute.tolist())


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        *((1, np.float64), (2, np.float64), (8, np.float64), (9, np.float64), (22, np.float32)),
        *((24, np.float32), pytest.param(40, np.float32, marks=pytest.mark.slow)),  # 40 is compiled anew
    ],
)
def test_any_number_of_labels_is_right(labels, dtype, seed):
    case = problem("everything", seed, labels, lengths=(2, 1, 2, 1, 1, 2, 2, 2))
    assert_agrees(case, case.weights(seed), dtype, **(SINGLE if dtype == np.float32 else {}))


def oracle(case, weights):
    """Loss and gradient by forward and backward of the library, for sentences too long to enumerate."""
    table, loss = case.transition(weights), 0.0
    residual, pairs = np.zeros((len(case.rows), case.structure.labels)), np.zeros_like(table)
    for begin, end, node in case.sentences(weights):
        agreeing = np.where([case.may_be(token) for token in range(begin, end)], node, -np.inf)
        found, known = chain_marginals(node, table), chain_marginals(agreeing, table)
        loss += found.log_partition - known.log_partition
        residual[begin:end] = found.node - known.node
        pairs += found.edge.sum(axis=0) - known.edge.sum(axis=0)
    attribute = np.repeat(np.arange(case.rows.width), case.features.per_attribute)
    state = (case.rows.to_dense().T @ residual)[attribute, case.features.label]
    return loss, np.concatenate([state, pairs[tuple(case.structure.pairs.T)]])


@pytest.mark.parametrize("kind", ["plain", "constrained", "partial"])
def test_long_sentences_are_right(kind, seed):
    case = problem(kind, seed, labels=9, lengths=(700, 1, 90))
    weights = case.weights(seed)
    loss, gradient = case.likelihood()(weights)
    wanted_loss, wanted_gradient = oracle(case, weights)
    assert loss == pytest.approx(wanted_loss, rel=1e-11)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-9, atol=1e-9)


def test_more_tokens_than_a_block_and_more_sentences_than_chunks_are_right(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 40, 500)
    case = problem("plain", seed, labels=3, lengths=tuple(lengths.tolist()))
    assert len(case.rows) > 2 * 4096
    weights = case.weights(seed)
    loss, gradient = case.likelihood()(weights)
    wanted_loss, wanted_gradient = oracle(case, weights)
    assert loss == pytest.approx(wanted_loss, rel=1e-11)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-9, atol=1e-8)


def test_bundles_leave_loss_and_gradient_as_they_are(seed):
    case = problem("bundled", seed)
    weights = case.weights(seed)
    with_bundles = case.likelihood()(weights)
    without = replace(case, slot=None).likelihood()(weights)
    assert with_bundles[0] == pytest.approx(without[0], rel=1e-13)
    np.testing.assert_allclose(with_bundles[1], without[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["valued", "everything"])
def test_the_number_of_threads_does_not_change_a_bit(kind, dtype, seed):
    lengths = tuple(np.random.default_rng(seed).integers(1, 9, 150).tolist())
    labels = 17 if dtype == np.float32 else 3
    case = problem(kind, seed, labels, lengths)
    weights = case.weights(seed, scale=3.0)
    alone, gradient = case.likelihood(dtype)(weights)
    for threads in (2, 3):
        with Team(threads) as team:
            likelihood = case.likelihood(dtype, team)
            for _ in range(2):
                loss, other = likelihood(weights)
                assert loss == alone
                assert np.array_equal(other, gradient)


def test_the_loss_of_zero_weights_counts_labels_and_the_next_call_forgets_the_last():
    case = problem("plain", labels=3)
    likelihood = case.likelihood()
    likelihood(case.weights(1, scale=500.0))  # faint sentences, too
    loss, _ = likelihood(np.zeros(likelihood.size))
    assert loss == pytest.approx(len(case.rows) * np.log(3.0), rel=1e-14)
    assert likelihood.size == len(case.features) + 9


@pytest.mark.parametrize("kind", ["plain", "constrained", "partial"])
def test_sentences_without_any_attribute_leave_the_transitions_to_learn(kind, seed):
    case = problem(kind, seed)
    bare = sparse([[] for _ in range(len(case.rows))], width=0, valued=False)
    case = replace(case, rows=bare, features=StateFeatures(np.zeros(1, np.int64), np.zeros(0, np.int32)))
    assert case.likelihood().size == 9
    assert_agrees(case, case.weights(seed))


def test_attributes_without_weights_and_weights_without_tokens_are_harmless(seed):
    case = problem("plain", seed)
    none = StateFeatures(np.zeros(case.rows.width + 1, np.int64), np.zeros(0, np.int32))
    assert_agrees(replace(case, features=none), np.linspace(-1, 1, 9))
    wider = replace(case, rows=replace(case.rows, width=case.rows.width + 5))
    wider = replace(wider, features=StateFeatures.all_pairs(wider.rows.width, 3))
    gradient = wider.likelihood()(wider.weights(seed))[1]
    unused = gradient[3 * case.rows.width : -9]
    assert unused.shape == (15,)
    assert not unused.any()
    assert_agrees(wider, wider.weights(seed))


def test_a_chain_without_transition_weights_judges_every_token_alone(seed):
    case = replace(problem("plain", seed), structure=FirstOrder.free(3, np.zeros((0, 2), np.int32)))
    weights = case.weights(seed)
    loss, gradient = case.likelihood()(weights)
    scores = np.vstack([node for _, _, node in case.sentences(weights)])
    right = scores[np.arange(len(scores)), case.supervision.truth]
    assert loss == pytest.approx((np.log(np.exp(scores).sum(axis=1)) - right).sum(), rel=1e-12)
    assert len(gradient) == len(case.features)


# scores that single precision cannot hold


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_kind
def test_scores_of_hundreds_are_computed_in_logs_where_they_must_be(kind, dtype, seed):
    labels = 17 if dtype == np.float32 else 3
    lengths = (2, 1, 2, 2, 1, 2, 2, 2) if dtype == np.float32 else (5, 1, 4, 3, 5)
    for shift in range(3):
        case = problem(kind, seed + shift, labels, lengths)
        weights = 200.0 * np.sign(case.weights(seed + shift)) + case.weights(seed + 9)
        assert_agrees(case, weights, dtype, **({"rtol": 1e-5, "atol": 2e-3} if labels > 3 else {}))


def two_labels(columns, truth, weights, dtype, **known):
    """One sentence with one attribute per token; label 1 cannot be reached from label 0."""
    structure = replace(FirstOrder.free(2), forbidden=np.array([[False, True], [False, False]]))
    rows = sparse([[(column, 1.0)] for column in columns], 2, valued=False)
    start, supervision = np.array([0, len(columns)]), Supervision(np.array(truth, np.int32), **known)
    case = Problem(rows, start, supervision, StateFeatures.all_pairs(2, 2), structure)
    assert_agrees(case, np.array([*weights, 0.0, 0.0, 0.0, 0.0]), dtype, rtol=1e-6, atol=1e-5)
    return case


ANY_OF_TWO = {"allowed": np.ones((1, 2), dtype=bool), "allowed_row": np.zeros(5, dtype=np.int32)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "known", [{}, {"emphasis": np.array([0.3])}, {"cost": np.array([1.0, 2.0])}], ids=["", "emphasis", "cost"]
)
def test_a_path_that_vanishes_at_first_counts_if_it_wins_in_the_end(dtype, known):
    """Label 1 is 110 behind at the first token, beyond single precision, and gains 50 at each of the rest."""
    two_labels([0, 1, 1, 1, 1], [0] * 5, [110.0, 0.0, 0.0, 50.0], dtype, **known)
    two_labels([0, 1, 1, 1, 1], [1] * 5, [110.0, 0.0, 0.0, 50.0], dtype, **known)
    two_labels([0, 1, 1, 1, 1], [-1, -1, 0, -1, 0], [110.0, 0.0, 0.0, 50.0], dtype, **known, **ANY_OF_TWO)
    two_labels([0, 1, 1, 1, 1], [-1] * 5, [110.0, 0.0, 0.0, 50.0], dtype, **known, **ANY_OF_TWO)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_cannot_be_reached_does_not_overflow_on_the_way_back(dtype):
    """Label 1 may not begin, and is 50 better at each token: its share would be e**250."""
    case = two_labels([1] * 5, [0] * 5, [0.0, 0.0, 0.0, 10.0], dtype)
    shut = replace(case.structure, not_first=np.array([False, True]))
    for gain in (20.0, 50.0, 300.0):
        weights = np.array([0.0, 0.0, 0.0, gain, 0.0, 0.0, 0.0, 0.0])
        loss, gradient = replace(case, structure=shut).likelihood(dtype)(weights)
        assert loss == pytest.approx(0.0, abs=1e-5)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_faint_sentences_among_others_change_nothing_about_the_others(dtype, seed):
    case = problem("emphasis", seed, lengths=(2, 3, 1, 4))
    calm = np.where(np.arange(case.likelihood().size) % 4 == 0, 150.0, 1.0) * case.weights(seed)
    assert_agrees(case, calm, dtype, **({"rtol": 1e-5, "atol": 1e-3} if dtype == np.float32 else {}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("truth", [[1, 0], [0, 1], [-1, 1]], ids=["first", "pair", "with a gap"])
def test_labels_that_the_chain_forbids_are_refused(truth, dtype):
    structure = replace(
        FirstOrder.free(2),
        forbidden=np.array([[False, True], [False, False]]),
        not_first=np.array([False, True]),
    )
    supervision = Supervision(np.array(truth, np.int32), np.zeros(2, np.int32), np.ones((1, 2), bool))
    case = Problem(
        sparse([[], []], 0, valued=False),
        np.array([0, 2]),
        supervision,
        StateFeatures(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        structure,
    )
    with pytest.raises(ImpossibleError, match="probability zero"):
        case.likelihood(dtype)(np.zeros(4))


@pytest.mark.parametrize("known", [0, -1])
def test_a_token_that_may_have_no_label_is_refused(known):
    shut = np.array([True, True])
    case = Problem(
        sparse([[]], 0, valued=False),
        np.array([0, 1]),
        Supervision(np.array([known], np.int32), np.zeros(1, np.int32), np.ones((1, 2), bool)),
        StateFeatures(np.zeros(1, np.int64), np.zeros(0, np.int32)),
        replace(FirstOrder.free(2), not_first=shut),
    )
    with pytest.raises(ImpossibleError, match="probability zero"):
        case.likelihood(np.float32)(np.zeros(4))


def test_tokens_labels_and_sentences_must_agree_in_number(seed):
    case = problem("plain", seed)
    with pytest.raises(ShapeError, match="the three must agree"):
        replace(case, start=case.start[:-1]).likelihood()
    with pytest.raises(ShapeError, match="the three must agree"):
        replace(case, supervision=Supervision(case.supervision.truth[:-1])).likelihood()


@pytest.mark.parametrize("lengths", [(2, 0, 3), (0, 2), (2, 0)])
def test_a_sentence_without_tokens_is_refused(lengths, seed):
    full = problem("plain", seed, lengths=tuple(filter(None, lengths)))
    empty = replace(full, start=np.cumsum([0, *lengths]))
    with pytest.raises(ShapeError, match=f"sentence {lengths.index(0)} has no tokens: leave it out"):
        empty.likelihood()


def test_no_sentences_at_all_lose_nothing():
    none = Problem(
        sparse([], 3, valued=False),
        np.zeros(1, np.int64),
        Supervision(np.zeros(0, np.int32)),
        StateFeatures.all_pairs(3, 2),
        FirstOrder.free(2),
    )
    loss, gradient = none.likelihood()(np.ones(10))
    assert loss == 0.0
    assert gradient.tolist() == [0.0] * 10


def test_random_labels_of_a_constrained_chain_are_possible(seed):
    """The problems above rest on it."""
    rng = np.random.default_rng(seed)
    case = problem("constrained", seed, labels=5)
    truth = possible_labels(rng, case.start, case.structure)
    again = replace(case, supervision=Supervision(truth))
    assert np.isfinite(again.by_enumeration(again.weights(seed))[0])
