"""Corrections and descent, sentence by sentence, against the same written from the definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chain_cases import KINDS, problem
from factorwise.kernels.chains import chain_descent, chain_online
from factorwise.kernels.chains.chain_online import OnlineStep
from factorwise.kernels.chains.rows import groups_of, keep_where, load_row, square_root, store_row
from factorwise.kernels.compile.compiler import lean_kernel
from factorwise.learning.chains.passes import Corrections, Descent, LaidOut, SquaredDescent
from factorwise.rng import Stream
from reference import chain_descent as descent_twin
from reference import chain_online as twin

PASSES = 3
CLOSE = {np.float64: 1e-10, np.float32: 1e-5}
RULES = {
    "perceptron": chain_online.PERCEPTRON,
    "pa0": chain_online.AGGRESSIVE,
    "pa1": chain_online.AGGRESSIVE_I,
    "pa2": chain_online.AGGRESSIVE_II,
    "arow": chain_online.ADAPTIVE,
}


def model_of(case):
    """The case as the twin reads it."""
    attribute = np.repeat(np.arange(case.rows.width), case.features.per_attribute).tolist()
    state = list(zip(attribute, case.features.label.tolist(), strict=True))
    pairs = [tuple(pair) for pair in case.structure.pairs.tolist()]
    return twin.Model(
        case.structure.labels,
        len(state) + len(pairs),
        {key: place for place, key in enumerate(state)},
        {pair: len(state) + place for place, pair in enumerate(pairs)},
        frozenset(map(tuple, np.argwhere(case.structure.forbidden).tolist())),
        frozenset(np.flatnonzero(case.structure.not_first).tolist()),
        frozenset(np.flatnonzero(case.structure.not_last).tolist()),
        case.supervision.cost.tolist(),
    )


def sentences_of(case):
    """The case's sentences as the twin reads them."""
    values, known = case.rows.value_of_each(), case.supervision
    tokens = [
        list(zip(case.rows.indices[a:b].tolist(), values[a:b].tolist(), strict=True))
        for a, b in zip(case.rows.indptr[:-1], case.rows.indptr[1:], strict=True)
    ]
    return [
        twin.Sentence(
            tokens[begin:end],
            known.truth[begin:end].tolist(),
            [case.may_be(token) for token in range(begin, end)],
            float(known.emphasis[number]) if len(known.emphasis) else 1.0,
        )
        for number, (begin, end) in enumerate(zip(case.start[:-1], case.start[1:], strict=True))
    ]


def wide():
    """Everything at once, with labels that fill a group and a part of a second one."""
    return problem("everything", labels=11, lengths=(2, 3, 1, 3))


def laid_out(case, start, dtype):
    parts = (case.rows, case.start, case.supervision, case.features, case.structure)
    return LaidOut(*parts, start, dtype)


def orders(case, seed=3):
    """A new order of the sentences for each pass."""
    rng = np.random.default_rng(seed)
    return [rng.permutation(len(case.start) - 1) for _ in range(PASSES)]


def run(passes, case):
    """Loss and mistakes of all passes together."""
    found = [passes.run(order) for order in orders(case)]
    return sum(loss for loss, _ in found), sum(wrong for _, wrong in found)


def assert_corrects_like_its_twin(case, kind, dtype, *, by_errors=True, bound=0.7, start=None):
    step = OnlineStep(RULES[kind], bound, by_errors)
    variance = 0.6 if kind == "arow" else None
    last = Corrections(laid_out(case, start, dtype), step, averaging=False, variance=variance)
    mean = Corrections(laid_out(case, start, dtype), step, averaging=True, variance=variance)
    loss, wrong = run(last, case)
    run(mean, case)
    model = model_of(case)
    expected = twin.correct_mistakes(
        model,
        sentences_of(case),
        np.concatenate(orders(case)).tolist(),
        [0.0] * model.size if start is None else start.tolist(),
        kind,
        bound,
        by_errors,
        0.6,
    )
    assert wrong == expected.wrong
    assert loss == pytest.approx(expected.loss, rel=CLOSE[dtype])
    np.testing.assert_allclose(last.weights(), expected.weights, rtol=0, atol=CLOSE[dtype])
    np.testing.assert_allclose(mean.weights(), expected.mean, rtol=0, atol=CLOSE[dtype])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", RULES)
def test_corrections_are_those_of_the_definition(rule, kind):
    case = problem(kind)
    start = case.weights(seed=1, scale=0.5)
    assert_corrects_like_its_twin(case, rule, np.float64, start=start)


@pytest.mark.parametrize("rule", RULES)
def test_corrections_in_single_precision_with_more_labels_than_a_group_holds_are_close(rule):
    case = wide()
    assert_corrects_like_its_twin(case, rule, np.float32, start=case.weights(seed=1, scale=0.5))


@pytest.mark.parametrize("rule", ["pa0", "pa1", "pa2"])
def test_the_margin_may_be_one_whatever_the_number_of_wrong_labels(rule):
    case = problem("plain")
    assert_corrects_like_its_twin(case, rule, np.float64, by_errors=False, start=case.weights(seed=1))


@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.integers(1, 4))
def test_the_perceptron_agrees_from_zero_weights_with_all_their_ties(seed, kind, labels):
    case = problem(kind, seed=seed, labels=labels, lengths=(2, 3, 1, 4))
    assert_corrects_like_its_twin(case, "perceptron", np.float64)


def assert_descends_like_its_twin(case, dtype, start, *, shrink=None, rate=0.3):
    """Stochastic gradient with ``shrink``, AdaGrad without."""
    laid, order = laid_out(case, start, dtype), np.concatenate(orders(case)).tolist()
    model, sentences = model_of(case), sentences_of(case)
    if shrink is None:
        passes = SquaredDescent(laid, rate=rate, l2=0.3, offset=0.01)
        expected = descent_twin.descend_by_squares(model, sentences, order, start.tolist(), rate, 0.3, 0.01)
    else:
        passes = Descent(laid, rate=rate, shrink=shrink)
        expected = descent_twin.descend(model, sentences, order, start.tolist(), rate, shrink)
    loss, wrong = run(passes, case)
    assert wrong == expected.wrong
    assert loss == pytest.approx(expected.loss, rel=CLOSE[dtype])
    scale = max(1.0, np.abs(start).max())
    np.testing.assert_allclose(passes.weights(), expected.weights, rtol=0, atol=scale * CLOSE[dtype])


@pytest.mark.parametrize("shrink", [0.2, 0.0, None])
@pytest.mark.parametrize("kind", KINDS)
def test_descent_is_that_of_the_definition(kind, shrink):
    case = problem(kind)
    assert_descends_like_its_twin(case, np.float64, case.weights(seed=2, scale=0.5), shrink=shrink)


@pytest.mark.parametrize("shrink", [0.2, None])
def test_descent_in_single_precision_with_more_labels_than_a_group_holds_is_close(shrink):
    case = wide()
    assert_descends_like_its_twin(case, np.float32, case.weights(seed=2, scale=0.5), shrink=shrink)


@pytest.mark.parametrize("shrink", [0.2, None])
def test_scores_too_far_apart_for_single_precision_are_computed_in_logs(shrink, monkeypatch):
    repaired = []
    for kind in (Descent, SquaredDescent):
        slow = kind._in_logs
        monkeypatch.setattr(
            kind, "_in_logs", lambda *which, slow=slow: repaired.append(which) or slow(*which)
        )
    case = wide()
    assert_descends_like_its_twin(case, np.float32, case.weights(seed=2, scale=100.0), shrink=shrink)
    assert repaired


@pytest.mark.parametrize("size", [0, 1, 2, 7, 100])
def test_shuffling_draws_the_same_order_as_its_twin(size):
    order, stream = np.arange(size), Stream(5)
    plain = twin.shuffle(range(size), stream.copy())
    chain_online.shuffle(order, stream.state)
    assert order.tolist() == plain
    assert sorted(plain) == list(range(size))


def test_every_order_of_three_comes_up():
    stream, seen = Stream(1), set()
    for _ in range(200):
        order = np.arange(3)
        chain_online.shuffle(order, stream.state)
        seen.add(tuple(order.tolist()))
    assert len(seen) == 6


def test_sentences_are_counted_once_for_each_attribute_they_have():
    case = problem("plain")
    count = np.zeros(case.rows.width, dtype=np.int64)
    last = np.full(case.rows.width, -1, dtype=np.int64)
    chain_descent.sentences_with(case.start, case.rows.indptr, case.rows.indices, last, count)
    expected = descent_twin.sentences_with(sentences_of(case))
    assert count.tolist() == [expected[attribute] for attribute in range(case.rows.width)]


@lean_kernel
def _row_steps(groups, table, bits, index, out):
    row = load_row(groups, table, index)
    store_row(out, 0, row / load_row(groups, table, 0))
    store_row(out, 1, 2.0 / row)
    store_row(out, 2, row / 4)
    store_row(out, 3, square_root(row))
    store_row(out, 4, keep_where(row, bits, index))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_divided_rooted_and_masked_like_arrays(dtype):
    rng = np.random.default_rng(0)
    groups = groups_of(20)
    table = rng.random((4, 24)).astype(dtype)
    table[3, [0, 13]] = np.inf
    bits = rng.integers(0, 256, (4, 3)).astype(np.uint8)
    out = np.zeros((5, 24), dtype=dtype)
    for index in (2, 3):
        _row_steps(groups, table, bits, index, out)
        row = table[index]
        kept = np.unpackbits(bits[index], bitorder="little").astype(bool)
        expected = [row / table[0], 2 / row, row / 4, np.sqrt(row), np.where(kept, row, 0)]
        np.testing.assert_array_equal(out, np.array(expected, dtype=dtype))
