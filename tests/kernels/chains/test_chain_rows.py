"""Forward, backward, expectations and Viterbi in rows against sums over all paths."""

from dataclasses import dataclass

import numpy as np
import pytest

from chain_cases import NO_INTS, NO_REALS, constrained, partly_known, possible_labels
from factorwise.kernels.chains import chain_rows
from factorwise.kernels.chains.attribute_rows import AHEAD, Entries, Tokens
from factorwise.kernels.chains.chain_rows import FAR, FORBIDDEN, Known, Steps
from factorwise.kernels.chains.rows import GROUP
from factorwise.kernels.compile.compiler import exposed
from factorwise.learning.chains.structure import FirstOrder, Supervision
from reference import chain_rows as reference
from reference import chains

GROUPS = {np.float64: (0,), np.float32: (0, 0, 0)}
CLOSE = {np.float64: {"rtol": 1e-11, "atol": 1e-11}, np.float32: {"rtol": 1e-5, "atol": 1e-5}}
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def padded(values, dtype, empty):
    """The table in as many columns as the groups have."""
    out = np.full((len(values), GROUP * len(GROUPS[dtype])), empty, dtype=dtype)
    out[:, : values.shape[1]] = values
    return out


def as_steps(transition, dtype):
    """The transitions as the kernels read them, and what was taken off each."""
    shift = transition.max()
    lowered = np.maximum(transition - shift, FORBIDDEN)
    tables = [(lowered, FORBIDDEN), (lowered.T, FORBIDDEN), (np.exp(lowered), 0.0), (np.exp(lowered).T, 0.0)]
    return Steps(*(padded(table, dtype, empty) for table, empty in tables)), shift


@dataclass
class Case:
    """Sentences with scores of their own for every token."""

    start: np.ndarray
    scores: np.ndarray
    transition: np.ndarray
    structure: FirstOrder
    supervision: Supervision

    @classmethod
    def random(cls, seed, *, whole=False):
        """Draw up to four labels and five tokens; with ``whole``, few whole scores, so that paths tie."""
        rng = np.random.default_rng(seed)
        labels = int(rng.integers(1, 5))
        start = np.cumsum([0, *rng.integers(1, 6, rng.integers(1, 4))])
        structure = constrained(rng, FirstOrder.free(labels))
        truth = possible_labels(rng, start, structure)
        scores, transition = rng.normal(size=(start[-1], labels)), rng.normal(size=(labels, labels))
        if whole:
            scores, transition = np.round(scores), np.round(transition)
        transition[structure.forbidden] = -np.inf
        known = partly_known(rng, truth, labels) if start[-1] > 2 and seed % 3 else Supervision(truth)
        emphasis = rng.choice([0.0, 0.5, 1.0, 3.0], len(start) - 1) if seed % 2 else np.zeros(0)
        cost = rng.choice([0.0, 1.0, 2.5], labels) if seed % 5 > 1 else np.zeros(0)
        known = Supervision(known.truth, known.allowed_row, known.allowed, emphasis, cost)
        return cls(start, scores, transition, structure, known)

    @property
    def sentences(self):
        return list(zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True))

    def node(self, sentence):
        """Scores of a sentence, with what is forbidden at its ends."""
        begin, end = self.sentences[sentence]
        node = self.scores[begin:end].copy()
        node[0, self.structure.not_first] = -np.inf
        node[-1, self.structure.not_last] = -np.inf
        return node

    def tokens(self, dtype):
        """Each token owns one row of the table: its scores."""
        count, labels = self.scores.shape
        column = np.append(np.arange(count), np.zeros(AHEAD)).astype(np.int32)
        one_each, no_singles = np.arange(count + 1), np.zeros(count + 1, dtype=np.int64)
        no_labels = np.zeros(0, dtype=np.int16)
        entries = Entries(one_each, column, NO_REALS, no_singles, NO_INTS, no_labels, NO_REALS)
        base = padded(np.zeros((4, labels)), dtype, FORBIDDEN)
        base[np.ix_([1, 3], np.flatnonzero(self.structure.not_first))] = FORBIDDEN
        base[np.ix_([2, 3], np.flatnonzero(self.structure.not_last))] = FORBIDDEN
        unit = padded(np.eye(labels), dtype, 0.0)
        return Tokens(self.start, entries, padded(self.scores, dtype, 0.0), unit, np.zeros(1), base)

    def known(self, dtype):
        given = self.supervision
        allowed = padded(given.allowed.reshape(-1, self.scores.shape[1]), dtype, 0.0)
        return Known(
            given.truth, given.allowed_row, allowed, given.emphasis.astype(dtype), given.cost.astype(dtype)
        )

    def scratch(self, forms, dtype):
        longest = int(np.diff(self.start).max())
        return np.full((forms, longest, GROUP * len(GROUPS[dtype])), np.nan, dtype=dtype)


CASES = [Case.random(seed) for seed in range(30)]


# the passes


@pytest.fixture(scope="module")
def passes():
    """The parts of the kernels, compiled so that they can be called."""
    return exposed(chain_rows.forward), exposed(chain_rows.backward), exposed(chain_rows.add_transitions)


@every_type
def test_forward_and_backward_equal_the_sums_over_all_paths(passes, dtype):
    forward, backward, add_transitions = passes
    for case in CASES:
        steps, shift = as_steps(case.transition, dtype)
        for sentence in range(len(case.sentences)):
            node = case.node(sentence)
            length, labels = node.shape
            top = node.max(axis=1, keepdims=True)
            weight = padded(np.exp(node - top), dtype, 0.0)
            alpha = np.full_like(weight, np.nan)
            log_scale, total = forward(GROUPS[dtype], length, labels, steps.weight, weight, alpha)
            log_total, single, double = reference.marginals(node.tolist(), case.transition.tolist())
            found = top.sum() + shift * (length - 1) + log_scale + np.log(total)
            assert found == pytest.approx(log_total, rel=CLOSE[dtype]["rtol"], abs=CLOSE[dtype]["atol"])

            edge = np.broadcast_to(case.transition, (length - 1, labels, labels)).tolist()
            begun = np.exp(np.array(chains.forward_log(node.tolist(), edge)))
            share = alpha / alpha.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(
                share[:, :labels], begun / begun.sum(axis=1, keepdims=True), **CLOSE[dtype]
            )

            out = np.ones((length + 2, weight.shape[1]), dtype=dtype)
            reach = backward(GROUPS[dtype], length, labels, steps.reverse, 0.5 / total, alpha, weight, out, 1)
            assert 0.0 < reach < FAR
            np.testing.assert_allclose(out[1:-1, :labels], 1.0 + 0.5 * np.array(single), **CLOSE[dtype])
            assert (out[[0, -1]] == 1.0).all()
            assert (out[:, labels:] == 1.0).all()

            pairs = np.ones((labels, weight.shape[1]), dtype=dtype)
            add_transitions(GROUPS[dtype], length, labels, alpha, weight, pairs)
            expected = (pairs - 1.0) * steps.weight
            np.testing.assert_allclose(expected[:, :labels], 0.5 * np.array(double), **CLOSE[dtype])


@every_type
def test_forward_gives_up_where_a_sum_is_too_small(passes, dtype):
    """The second label follows only at e**-60, and nothing else can be at the second token."""
    weight = padded(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), dtype, 0.0)
    transition = padded(np.array([[1.0, np.exp(-60.0)], [1.0, 1.0]]), dtype, 0.0)
    alpha = np.zeros_like(weight)
    for length in (2, 3):
        assert passes[0](GROUPS[dtype], length, 2, transition, weight.copy(), alpha)[1] == 0.0
    assert passes[0](GROUPS[dtype], 1, 2, transition, weight.copy(), alpha)[1] == 1.0


# expectations


def run_expectations(case, dtype, parts):
    """Loss, residual and edge of the parts of the sentences, called one after the other."""
    steps, _ = as_steps(case.transition, dtype)
    residual = np.full((case.start[-1], steps.weight.shape[1]), np.nan, dtype=dtype)
    edge, loss = np.zeros_like(steps.weight), np.zeros(len(case.sentences))
    for first, last in parts:
        chain_rows.expectations(
            GROUPS[dtype],
            case.tokens(dtype),
            case.known(dtype),
            steps,
            first,
            last,
            case.scratch(4, dtype),
            residual,
            edge,
            loss,
        )
    labels = len(case.transition)
    return loss, residual, (edge * steps.weight)[:, :labels]


def wanted_expectations(case, sentence):
    begin, end = case.sentences[sentence]
    given, labels = case.supervision, len(case.transition)
    may_be = [given.may_be(token, labels).tolist() for token in range(begin, end)]
    emphasis = float(given.emphasis[sentence]) if len(given.emphasis) else 1.0
    truth, cost = given.truth[begin:end].tolist(), given.cost.tolist()
    return reference.expectations(
        case.node(sentence).tolist(), case.transition.tolist(), truth, may_be, emphasis, cost
    )


@every_type
def test_expectations_equal_the_sums_over_all_paths(dtype):
    for case in CASES:
        count, labels = len(case.sentences), len(case.transition)
        loss, residual, pairs = run_expectations(case, dtype, [(0, count)])
        wanted_pairs = np.zeros((labels, labels))
        for sentence, (begin, end) in enumerate(case.sentences):
            wanted = wanted_expectations(case, sentence)
            tolerance = CLOSE[dtype]["rtol"]
            assert loss[sentence] == pytest.approx(wanted.loss, rel=tolerance, abs=tolerance)
            np.testing.assert_allclose(residual[begin:end, :labels], wanted.residual, **CLOSE[dtype])
            partial = (case.supervision.truth[begin:end] < 0).any()
            wanted_pairs += np.array(wanted.pairs) - (np.array(wanted.pairs_known) if partial else 0.0)
        np.testing.assert_allclose(pairs, wanted_pairs, **CLOSE[dtype])
        assert not residual[:, labels:].any()


@every_type
def test_expectations_of_some_sentences_leave_the_others_alone(dtype):
    case = next(case for case in CASES if len(case.sentences) == 3)
    whole = run_expectations(case, dtype, [(0, 3)])
    parts = run_expectations(case, dtype, [(2, 3), (0, 1)])
    begin, end = case.sentences[1]
    assert parts[0][1] == 0.0
    assert np.isnan(parts[1][begin:end]).all()
    for sentence in (0, 2):
        begin, end = case.sentences[sentence]
        assert parts[0][sentence] == whole[0][sentence]
        np.testing.assert_array_equal(parts[1][begin:end], whole[1][begin:end])


def one_sentence(scores, transition, truth, **constraints):
    """Given scores and transitions; no label is unknown."""
    labels = len(transition)
    structure = FirstOrder.free(labels)
    no = np.zeros(labels, dtype=bool)
    structure = FirstOrder(
        labels, structure.pairs, structure.forbidden, **{"not_first": no, "not_last": no, **constraints}
    )
    known = Supervision(np.array(truth, dtype=np.int32))
    return Case(np.array([0, len(scores)]), np.array(scores), np.array(transition), structure, known)


VANISHED = one_sentence([[110.0, 0.0], *[[0.0, 50.0]] * 4], [[0.0, -np.inf], [0.0, 0.0]], [0] * 5)
UNREACHED = one_sentence(
    [[0.0, 60.0]] * 5, [[0.0, -np.inf], [0.0, 0.0]], [0] * 5, not_first=np.array([False, True])
)
TOO_FAINT = one_sentence([[0.0, 200.0], [200.0, 0.0]] * 2, [[0.0, 0.0], [-np.inf, 0.0]], [0] * 4)
NO_LABEL = one_sentence([[1.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]], [0], not_first=np.array([True, True]))
NO_PATH = one_sentence(
    [[1.0, 2.0]] * 2, [[0.0, -np.inf], [-np.inf, -np.inf]], [0] * 2, not_last=np.array([True, False])
)
AWKWARD = {
    "vanished": VANISHED,
    "unreached": UNREACHED,
    "too faint": TOO_FAINT,
    "no label": NO_LABEL,
    "the constraints forbid": NO_PATH,
}
every_awkward = pytest.mark.parametrize("case", AWKWARD.values(), ids=AWKWARD.keys())


@every_awkward
def test_a_sentence_beyond_single_precision_is_marked_and_left_out(case):
    loss, residual, pairs = run_expectations(case, np.float32, [(0, 1)])
    assert np.isnan(loss).all()
    assert not residual.any()
    assert not pairs.any()
    probability, log_partition = run_marginals(case, np.float32)
    assert np.isnan(log_partition).all()
    assert not probability.any()


@pytest.mark.parametrize("truth", [[1, 0], [0, 1]])
def test_labels_that_are_forbidden_are_marked(truth):
    shut = np.array([False, True])
    case = one_sentence([[0.0, 0.0]] * 2, [[0.0, -np.inf], [0.0, 0.0]], truth, not_first=shut)
    loss, residual, pairs = run_expectations(case, np.float64, [(0, 1)])
    assert np.isnan(loss).all()
    assert not residual.any()
    assert not pairs.any()


# marginals and the best path


def run_marginals(case, dtype):
    steps, shift = as_steps(case.transition, dtype)
    out = np.full((case.start[-1], steps.weight.shape[1]), np.nan, dtype=dtype)
    log_partition = np.zeros(len(case.sentences))
    count = len(case.sentences)
    scratch = case.scratch(2, dtype)
    chain_rows.marginals(GROUPS[dtype], case.tokens(dtype), steps, 0, count, scratch, out, log_partition)
    return out, log_partition + shift * (np.diff(case.start) - 1)


@every_type
def test_marginals_equal_the_sums_over_all_paths(dtype):
    for case in CASES:
        labels = len(case.transition)
        probability, log_partition = run_marginals(case, dtype)
        for sentence, (begin, end) in enumerate(case.sentences):
            wanted = reference.marginals(case.node(sentence).tolist(), case.transition.tolist())
            np.testing.assert_allclose(log_partition[sentence], wanted[0], **CLOSE[dtype])
            np.testing.assert_allclose(probability[begin:end, :labels], wanted[1], **CLOSE[dtype])
        assert not probability[:, labels:].any()


def run_decode(case, dtype):
    steps, shift = as_steps(case.transition, dtype)
    path = np.full(case.start[-1], -9, dtype=np.int32)
    score = np.zeros(len(case.sentences))
    count = len(case.sentences)
    best = case.scratch(1, dtype)[0]
    chain_rows.decode(GROUPS[dtype], case.tokens(dtype), steps, 0, count, best, path, score)
    return path, score + shift * (np.diff(case.start) - 1)


@every_type
@pytest.mark.parametrize("whole", [False, True], ids=["one best path", "ties"])
def test_the_best_path_is_the_best_of_all_with_the_lowest_labels(dtype, whole):
    tied = 0
    for seed in range(40):
        case = Case.random(seed, whole=whole)
        path, score = run_decode(case, dtype)
        for sentence, (begin, end) in enumerate(case.sentences):
            node, transition = case.node(sentence).tolist(), case.transition.tolist()
            labels, wanted = reference.decode(node, transition)
            np.testing.assert_allclose(score[sentence], wanted, **CLOSE[dtype])
            assert tuple(path[begin:end].tolist()) == labels
            scores = [
                reference.path_score(node, transition, other)
                for other in chains.paths(len(node), len(transition))
            ]
            tied += scores.count(wanted) > 1
    assert tied > 10 if whole else tied == 0


@every_type
@pytest.mark.parametrize("labels", [5, 6, 7, 8])
def test_equal_scores_give_the_lowest_labels(dtype, labels):
    case = one_sentence(np.zeros((3, labels)), np.zeros((labels, labels)), [0, 0, 0])
    path, score = run_decode(case, dtype)
    assert path.tolist() == [0, 0, 0]
    assert score[0] == 0.0
    for label in range(labels):
        raised = np.zeros((3, labels))
        raised[1, label:] = 1.0
        path, score = run_decode(one_sentence(raised, np.zeros((labels, labels)), [0, 0, 0]), dtype)
        assert path.tolist() == [0, label, 0]
        assert score[0] == 1.0


@every_type
def test_the_best_path_of_scores_in_the_hundreds_is_found(dtype):
    for name in ("vanished", "unreached", "too faint"):
        case = AWKWARD[name]
        labels, wanted = reference.decode(case.node(0).tolist(), case.transition.tolist())
        path, score = run_decode(case, dtype)
        assert tuple(path.tolist()) == labels
        assert score[0] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", ["no label", "the constraints forbid"])
def test_where_no_path_is_possible_the_best_score_says_so(name):
    assert run_decode(AWKWARD[name], np.float32)[1][0] < FORBIDDEN / 2
