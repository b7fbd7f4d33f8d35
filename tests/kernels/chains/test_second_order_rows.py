"""Second-order chain kernels against sums over all paths."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from chain_cases import NO_INTS, NO_REALS
from factorwise.kernels.chains import second_order_rows
from factorwise.kernels.chains.attribute_rows import AHEAD, Entries, Tokens
from factorwise.kernels.chains.chain_rows import FORBIDDEN, Known
from factorwise.kernels.chains.rows import GROUP, groups_of
from factorwise.kernels.chains.second_order_rows import LongSteps
from reference import second_order_rows as reference

# One group of double numbers, three of single ones: each combination is compiled anew.
SIZES = {np.float64: (3, (1, 2, 3, 5, 4, 1, 2)), np.float32: (17, (1, 2, 3, 2, 1))}
SOFT = {np.float64: {"rtol": 1e-11, "atol": 1e-11}, np.float32: {"rtol": 3e-5, "atol": 3e-5}}
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])
every_share = pytest.mark.parametrize("own_rows", [0.0, 0.4, 1.0], ids=["all_share", "some_share", "none"])


@dataclass(frozen=True)
class Case:
    """Sentences with their scores; ``own`` tells which pairs (left, middle) have a row of their own."""

    start: np.ndarray
    node: np.ndarray
    first: np.ndarray
    after: np.ndarray
    own: np.ndarray
    dtype: type

    @property
    def labels(self):
        return len(self.first)

    @property
    def columns(self):
        return GROUP * len(groups_of(self.labels))

    def padded(self, values, empty):
        out = np.full((len(values), self.columns), empty, dtype=self.dtype)
        out[:, : self.labels] = np.maximum(values, FORBIDDEN)
        return out

    def tokens(self):
        """Every token has one attribute, whose row holds its scores."""
        count, zeros = len(self.node), np.zeros(len(self.node) + 1, dtype=np.int64)
        columns = np.append(np.arange(count), np.zeros(AHEAD)).astype(np.int32)
        entries = Entries(
            np.arange(count + 1), columns, NO_REALS, zeros, NO_INTS, NO_INTS.astype(np.int16), NO_REALS
        )
        unit = np.eye(self.labels, self.columns, dtype=self.dtype)
        base = self.padded(np.zeros((4, self.labels)), FORBIDDEN)
        return Tokens(self.start, entries, self.padded(self.node, 0.0), unit, np.zeros(0), base)

    def steps(self):
        middle, left = np.nonzero(self.own.T)
        start = np.searchsorted(middle, np.arange(self.labels + 1)).astype(np.int64)
        row = np.tile(len(left) + np.arange(self.labels), (self.labels, 1))
        row[left, middle] = np.arange(len(left))
        score = np.concatenate([self.after[left, middle], self.first])
        shares = np.where(self.own, FORBIDDEN, 0.0)
        return LongSteps(
            start,
            left.copy(),
            row,
            self.padded(score, FORBIDDEN),
            self.padded(np.exp(score), 0.0),
            self.padded(shares, FORBIDDEN),
            self.padded(np.exp(shares), 0.0),
        )

    def scratch(self, forms):
        """Room for the longest sentence, full of what must not be read."""
        longest = int(np.diff(self.start).max())
        return np.full((forms, longest * (self.labels + 2), self.columns), np.nan, dtype=self.dtype)

    def sentences(self):
        for begin, end in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            yield begin, end, (self.node[begin:end].tolist(), self.first.tolist(), self.after.tolist())

    def expect(self, known, first=0, last=None):
        """Run the kernel; residual, expected transitions (first pairs, triples) and loss."""
        steps = self.steps()
        residual = np.full((len(self.node), self.columns), 7.0, dtype=self.dtype)
        edge = np.zeros(steps.weight.shape, dtype=self.dtype)
        loss = np.full(len(self.start) - 1, 7.0)
        last = len(loss) if last is None else last
        second_order_rows.expectations(
            groups_of(self.labels),
            self.tokens(),
            known,
            steps,
            first,
            last,
            self.scratch(4),
            residual,
            edge,
            loss,
        )
        return residual, (edge * steps.weight)[:, : self.labels].astype(np.float64), loss

    def in_rows(self, first, triples):
        """First pairs and triples as the kernel counts them."""
        middle, left = np.nonzero(self.own.T)
        shared = (triples * ~self.own[:, :, None]).sum(axis=0)
        return np.concatenate([triples[left, middle], shared + first])

    def known(self, truth, may_be=None, emphasis=(), cost=()):
        """All labels known; with ``may_be``, those of tokens with -1 only as far as it says."""
        allowed = self.padded(np.zeros((0, self.labels)) if may_be is None else may_be, 0.0)
        rows = NO_INTS if may_be is None else np.arange(len(truth), dtype=np.int32)
        real = (np.array(values, dtype=self.dtype) for values in (emphasis, cost))
        return Known(truth.astype(np.int32), rows, allowed, *real)


def a_case(seed, dtype, own_rows, values=None, lengths=None):
    """Random scores, or scores out of ``values``; pairs without an own row go on as the first pair does."""
    rng = np.random.default_rng(seed)
    labels, usual = SIZES[dtype]
    lengths = usual if lengths is None else lengths
    start = np.cumsum([0, *lengths], dtype=np.int64)

    def scores(*shape):
        drawn = rng.normal(size=shape) if values is None else rng.choice(values, size=shape)
        return np.minimum(drawn, 0.0)

    first, own = scores(labels, labels), rng.random((labels, labels)) < own_rows
    after = np.where(own[:, :, None], scores(labels, labels, labels), first)
    return Case(start, 2.0 * scores(start[-1], labels) + 1.0, first, after, own, dtype)


def forbidding(case, seed):
    """The case with a few pairs forbidden: no path and no triple has them."""
    rng = np.random.default_rng(seed)
    forbidden = rng.random(case.first.shape) < 0.2
    forbidden[0], forbidden[1, 0] = False, True
    first = np.where(forbidden, -np.inf, case.first)
    after = np.where(forbidden[:, :, None] & case.own[:, :, None], -np.inf, case.after)
    return replace(case, first=first, after=np.where(forbidden, -np.inf, after))


def of_all_paths(case, truth, may_be, emphasis=None, cost=()):
    """What `Case.expect` should give for products: all less the agreeing, or all where labels are known."""
    residual, loss, rows = [], [], 0.0
    for sentence, (begin, end, scores) in enumerate(case.sentences()):
        amount = 1.0 if emphasis is None else emphasis[sentence]
        open_to = may_be[begin:end].tolist()
        found = reference.expectations(*scores, truth[begin:end].tolist(), open_to, amount, cost)
        residual += found.residual
        loss.append(found.loss)
        rows = rows + case.in_rows(np.array(found.first), np.array(found.triples))
        if (truth[begin:end] >= 0).all():
            rows = rows + amount * counted(case, truth[begin:end])
    return np.array(residual), rows, np.array(loss)


def counted(case, path):
    first, triples = np.zeros_like(case.first), np.zeros_like(case.after)
    if len(path) > 1:
        first[path[0], path[1]] = 1.0
    np.add.at(triples, (path[:-2], path[1:-1], path[2:]), 1.0)
    return case.in_rows(first, triples)


@every_share
@every_type
def test_expectations_are_sums_over_all_paths(dtype, own_rows, seed):
    case = a_case(seed, dtype, own_rows)
    truth = np.random.default_rng(seed).integers(0, case.labels, len(case.node))
    only = truth[:, None] == np.arange(case.labels)
    residual, rows, loss = case.expect(case.known(truth))
    wanted_residual, wanted_rows, wanted_loss = of_all_paths(case, truth, only)
    np.testing.assert_allclose(loss, wanted_loss, **SOFT[dtype])
    np.testing.assert_allclose(residual[:, : case.labels], wanted_residual, **SOFT[dtype])
    np.testing.assert_allclose(rows, wanted_rows, **SOFT[dtype])
    assert not residual[:, case.labels :].any()


@every_share
@every_type
def test_partial_labels_emphasis_and_cost_are_sums_over_all_paths(dtype, own_rows, seed):
    rng = np.random.default_rng(seed)
    case = forbidding(a_case(seed, dtype, own_rows), seed)
    truth = np.zeros(len(case.node), dtype=np.int64)  # never forbidden
    may_be = rng.random((len(truth), case.labels)) < 0.5
    may_be[:, 0] = True
    truth[rng.random(len(truth)) < 0.5] = -1
    truth[0], truth[-1] = 0, -1
    may_be[truth >= 0] = np.arange(case.labels) == 0
    emphasis = rng.choice([0.0, 0.5, 3.0], size=len(case.start) - 1)
    cost = rng.choice([0.5, 2.0], size=case.labels)
    residual, rows, loss = case.expect(case.known(truth, may_be, emphasis, cost))
    wanted_residual, wanted_rows, wanted_loss = of_all_paths(case, truth, may_be, emphasis, cost.tolist())
    np.testing.assert_allclose(loss, wanted_loss, **SOFT[dtype])
    np.testing.assert_allclose(residual[:, : case.labels], wanted_residual, **SOFT[dtype])
    np.testing.assert_allclose(rows, wanted_rows, **SOFT[dtype])


def test_expectations_leave_other_sentences_alone(seed):
    case = a_case(seed, np.float64, 0.5)
    known = case.known(np.zeros(len(case.node)))
    residual, _, loss = case.expect(known, first=2, last=4)
    everything, _, losses = case.expect(known)
    inside = slice(case.start[2], case.start[4])
    assert np.array_equal(residual[inside], everything[inside])
    assert np.array_equal(loss[2:4], losses[2:4])
    residual[inside], loss[2:4] = 7.0, 7.0
    assert (residual == 7.0).all()
    assert (loss == 7.0).all()


@every_share
@every_type
def test_marginals_are_sums_over_all_paths(dtype, own_rows, seed):
    case = forbidding(a_case(seed, dtype, own_rows), seed)
    out, log_partition = np.full((len(case.node), case.columns), 7.0, dtype), np.zeros(len(case.start) - 1)
    second_order_rows.marginals(
        groups_of(case.labels),
        case.tokens(),
        case.steps(),
        0,
        len(log_partition),
        case.scratch(2),
        out,
        log_partition,
    )
    for sentence, (begin, end, scores) in enumerate(case.sentences()):
        wanted = reference.marginals(*scores)
        assert log_partition[sentence] == pytest.approx(wanted.log_partition, **rel(dtype))
        np.testing.assert_allclose(out[begin:end, : case.labels], wanted.node, **SOFT[dtype])
    assert not out[:, case.labels :].any()


def rel(dtype):
    return {"rel": SOFT[dtype]["rtol"], "abs": SOFT[dtype]["atol"]}


def decoded(case):
    longest = int(np.diff(case.start).max())
    best = np.full((longest * case.labels + 1, case.columns), np.nan, dtype=case.dtype)
    path, score = np.zeros(len(case.node), dtype=np.int32), np.zeros(len(case.start) - 1)
    second_order_rows.decode(
        groups_of(case.labels), case.tokens(), case.steps(), 0, len(score), best, path, score
    )
    return path, score


@every_share
@every_type
def test_the_decoded_path_is_the_best_of_all(dtype, own_rows, seed):
    case = forbidding(a_case(seed, dtype, own_rows), seed)
    path, score = decoded(case)
    for sentence, (begin, end, scores) in enumerate(case.sentences()):
        wanted, best = reference.decode(*scores)
        assert tuple(path[begin:end].tolist()) == wanted
        assert score[sentence] == pytest.approx(best, **rel(dtype))


@every_share
def test_equally_good_paths_are_decided_by_the_lowest_labels_from_the_end(own_rows, seed):
    ties = 0
    for shift in range(20):
        case = a_case(seed + shift, np.float64, own_rows, values=[-1.0, -0.5, 0.0])
        path, score = decoded(case)
        for sentence, (begin, end, scores) in enumerate(case.sentences()):
            wanted, best = reference.decode(*scores)
            assert tuple(path[begin:end].tolist()) == wanted
            assert score[sentence] == best
            ties += list(reference.scores(*scores).values()).count(best) > 1
    assert ties > 20


def hard(seed, length=3):
    """A case in single precision whose third sentence is yet to be made hard; where it begins and ends."""
    case = a_case(seed, np.float32, 0.4, lengths=(1, 2, length, 2, 1))
    begin, end = case.start[2:4].tolist()
    own, node = case.own.copy(), case.node.copy()
    own[:, :3] = True
    node[begin:end] = -200.0
    return replace(case, node=node, own=own, first=case.first.copy(), after=case.after.copy()), begin, end


def assert_third_is_left_out(case, begin, end):
    known = case.known(np.zeros(len(case.node)))
    residual, rows, loss = case.expect(known)
    assert np.isnan(loss[2])
    assert np.isfinite(np.delete(loss, 2)).all()
    assert not residual[begin:end].any()
    around = case.expect(known, 0, 2)[1] + case.expect(known, 3, len(loss))[1]
    np.testing.assert_allclose(rows, around, rtol=1e-5, atol=1e-6)
    assert around.any()


def test_a_sentence_whose_paths_are_all_faint_is_marked_and_left_out(seed):
    case, begin, end = hard(seed)
    case.node[[begin, begin + 1, begin + 2], [1, 2, 0]] = 0.0
    case.first[1, 2] = -200.0
    assert_third_is_left_out(case, begin, end)


@pytest.mark.parametrize("fades_at", [0, 1])
def test_a_sentence_whose_best_path_fades_at_first_is_marked_and_left_out(fades_at, seed):
    """Label 1 is bad at one token, but what follows label 0 from there is so bad that it wins in the end."""
    case, begin, end = hard(seed, length=3 + fades_at)
    case.node[begin:end, 0] = case.node[begin + fades_at :, 1] = 0.0
    case.node[begin + fades_at, 1] = -80.0
    case.first[:, :2] = case.after[:2, :2, :2] = -200.0  # other labels lead nowhere
    case.after[0, 0, 0], case.after[1, 1, 1] = -45.0, 0.0
    if fades_at == 0:
        case.first[0, 0], case.first[1, 1] = -45.0, 0.0
    else:
        case.first[0, :2] = case.after[0, 1, 1] = 0.0
    scores = case.node[begin:end].tolist(), case.first.tolist(), case.after.tolist()
    assert reference.decode(*scores)[0][1:] == (1,) * (2 + fades_at)
    assert_third_is_left_out(case, begin, end)
    out, log_partition = np.full((len(case.node), case.columns), 7.0, np.float32), np.zeros(5)
    arguments = groups_of(case.labels), case.tokens(), case.steps(), 0, 5, case.scratch(2)
    second_order_rows.marginals(*arguments, out, log_partition)
    assert np.isnan(log_partition[2])
    assert not out[begin:end].any()


def test_a_known_path_that_is_forbidden_is_marked_and_left_out(seed):
    case, begin, end = hard(seed)
    case.node[begin:end] = 0.0
    case.first[0, 0] = case.after[0, 0, 0] = -np.inf
    truth = np.full(len(case.node), 2)
    truth[begin:end] = 0
    residual, _, loss = case.expect(case.known(truth))
    assert np.flatnonzero(np.isnan(loss)).tolist() == [2]
    assert not residual[begin:end].any()
