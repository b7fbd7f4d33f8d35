"""Second-order chains against sums over all paths, a first-order chain of label pairs, and first order."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import chisquare

from chain_cases import KINDS, by_differences, problem
from factorwise.errors import ImpossibleError, ShapeError
from factorwise.inference.exact.chain import chain_best, chain_k_best, chain_marginals
from factorwise.kernels.chains import second_order_rows
from factorwise.kernels.chains.rows import GROUP, groups_of
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.second_order import SecondOrder, as_label_pairs, observed_triples
from factorwise.learning.chains.structure import FirstOrder, Supervision
from factorwise.rng import Stream
from reference import second_order_rows as reference

FALSE_ALARM = 1e-4
SINGLE = {"rtol": 2e-5, "atol": 2e-5}  # single precision at scores of a few units
every_kind = pytest.mark.parametrize("kind", KINDS)
lengthened = pytest.mark.parametrize("share", [0.3, 1.0], ids=["some_triples", "all_triples"])


def second_order(case, seed, share=0.3):
    """The same problem with weights for some triples, or for all that are not forbidden."""
    triples = SecondOrder.extending(case.structure).triples
    chosen = np.random.default_rng(seed).random(len(triples)) < share
    return replace(case, structure=SecondOrder.extending(case.structure, triples[chosen]))


def spelled_out(structure, weights):
    """Scores of first pairs and of triples, read off the weights one by one."""
    labels, first = structure.labels, structure.first
    pair, triple = np.zeros((labels, labels)), np.zeros((labels, labels, labels))
    for transition, weight in zip(structure.transitions(), weights, strict=True):
        (pair if len(transition) == 2 else triple)[transition] = weight
    after = np.full_like(triple, -np.inf)
    for a, b, c in product(range(labels), repeat=3):
        if not first.forbidden[a, b] and not first.forbidden[b, c]:
            after[a, b, c] = pair[b, c] + triple[a, b, c]
    return np.where(first.forbidden, -np.inf, pair), after


def gradient_of(case, residual, first, triples):
    """Gradient in the order of the weights."""
    structure = case.structure
    attribute = np.repeat(np.arange(case.rows.width), case.features.per_attribute)
    state = (case.rows.to_dense().T @ residual)[attribute, case.features.label]
    pairs = first + triples.sum(axis=0)
    return np.concatenate([state, pairs[tuple(structure.first.pairs.T)], triples[tuple(structure.triples.T)]])


def by_enumeration(case, weights):
    """Loss and gradient from the sum over all paths of every sentence."""
    known, labels = case.supervision, case.structure.labels
    tables = [table.tolist() for table in spelled_out(case.structure, weights[len(case.features) :])]
    residual = np.zeros((len(case.rows), labels))
    first, triples, loss = np.zeros((labels, labels)), np.zeros((labels, labels, labels)), 0.0
    for sentence, (begin, end, node) in enumerate(case.sentences(weights)):
        found = reference.expectations(
            node.tolist(),
            *tables,
            known.truth[begin:end].tolist(),
            [case.may_be(token) for token in range(begin, end)],
            float(known.emphasis[sentence]) if len(known.emphasis) else 1.0,
            known.cost.tolist(),
        )
        loss += found.loss
        residual[begin:end] = found.residual
        first += found.first
        triples += found.triples
    return loss, gradient_of(case, residual, first, triples)


def assert_agrees(case, weights, dtype=np.float64, rtol=1e-10, atol=1e-10):
    """Loss and gradient are those of the sum over all paths."""
    loss, gradient = case.likelihood(dtype)(weights)
    wanted_loss, wanted_gradient = by_enumeration(case, weights)
    assert loss == pytest.approx(wanted_loss, rel=rtol, abs=atol)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=rtol, atol=atol)


@lengthened
@every_kind
def test_loss_and_gradient_are_those_of_the_sum_over_all_paths(kind, share, seed):
    case = second_order(problem(kind, seed), seed, share)
    assert_agrees(case, case.weights(seed))


@lengthened
@pytest.mark.parametrize("kind", ["plain", "partial", "constrained", "everything"])
def test_the_gradient_is_that_of_finite_differences(kind, share, seed):
    case = second_order(problem(kind, seed), seed, share)
    weights, likelihood = case.weights(seed + 1), case.likelihood()
    gradient = likelihood(weights)[1].copy()
    np.testing.assert_allclose(gradient, by_differences(likelihood, weights), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["plain", "everything"])
def test_single_precision_is_close_to_the_sum_over_all_paths(kind, seed):
    case = second_order(problem(kind, seed, labels=17, lengths=(1, 2, 3, 2, 1, 2)), seed)
    assert_agrees(case, case.weights(seed), np.float32, **SINGLE)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_sentences_alone_are_right(length, seed):
    case = second_order(problem("plain", seed, lengths=(length, length, length)), seed)
    assert_agrees(case, case.weights(seed))


# a first-order chain whose states are pairs of labels


def of_label_pairs(case, weights):
    """Loss and gradient by forward and backward over label pairs."""
    labels, tables = case.structure.labels, case.structure.tables(weights[len(case.features) :])
    residual, loss = np.zeros((len(case.rows), labels)), 0.0
    first, triples = np.zeros((labels, labels)), np.zeros((labels, labels, labels))
    for begin, end, node in case.sentences(weights):
        agreeing = np.where([case.may_be(token) for token in range(begin, end)], node, -np.inf)
        for scores, sign in ((node, 1.0), (agreeing, -1.0)):
            found = chain_marginals(*as_label_pairs(scores, *tables))
            loss += sign * found.log_partition
            residual[begin:end] += sign * found.node.reshape(-1, labels + 1, labels).sum(axis=1)
            steps = found.edge.reshape(-1, labels + 1, labels, labels + 1, labels).sum(axis=0)
            for middle in range(labels):
                first[middle] += sign * steps[labels, middle, middle]
                triples[:, middle] += sign * steps[:labels, middle, middle]
    return loss, gradient_of(case, residual, first, triples)


@pytest.mark.parametrize("kind", ["plain", "constrained", "partial"])
def test_it_equals_a_first_order_chain_of_label_pairs(kind, seed):
    case = second_order(problem(kind, seed, labels=5, lengths=(60, 1, 2, 30, 3)), seed)
    weights = case.weights(seed)
    loss, gradient = case.likelihood()(weights)
    wanted_loss, wanted_gradient = of_label_pairs(case, weights)
    assert loss == pytest.approx(wanted_loss, rel=1e-10)
    np.testing.assert_allclose(gradient, wanted_gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", ["plain", "constrained"])
def test_decoding_equals_that_of_label_pairs(kind, seed):
    case = second_order(problem(kind, seed, labels=5, lengths=(60, 1, 2, 30, 3)), seed)
    weights = case.weights(seed)
    path, score = decoded(case, weights)
    for sentence, (begin, end, node) in enumerate(case.sentences(weights)):
        tables = case.structure.tables(weights[len(case.features) :])
        best = chain_best(*as_label_pairs(node, *tables))
        assert path[begin:end].tolist() == (best.values % 5).tolist()
        assert score[sentence] == pytest.approx(best.score, rel=1e-10)


def decoded(case, weights):
    """Best paths by the kernels of the structure, and their scores."""
    structure, groups = case.structure, groups_of(case.structure.labels)
    columns = GROUP * len(groups)
    likelihood = case.likelihood()
    likelihood(weights)  # lays out the weights
    tokens = likelihood._tokens._replace(weights=weights[: len(case.features)])
    steps, shift = structure.steps(weights[len(case.features) :], columns, np.float64)
    longest = int(np.diff(case.start).max())
    path, score = np.zeros(len(case.rows), dtype=np.int32), np.zeros(len(case.start) - 1)
    best = structure.scratch(1, longest, columns, np.float64)[0]
    structure.kernels.decode(groups, tokens, steps, 0, len(score), best, path, score)
    return path, score + shift * (np.diff(case.start) - 1)


# first order is a special case


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@every_kind
def test_without_weight_on_triples_it_is_the_first_order_chain(kind, share, seed):
    case = problem(kind, seed)
    longer = second_order(case, seed, share)
    weights = case.weights(seed)
    padded = np.append(weights, np.zeros(len(longer.structure.triples)))
    loss, gradient = case.likelihood()(weights)
    longer_loss, longer_gradient = longer.likelihood()(padded)
    assert longer_loss == pytest.approx(loss, rel=1e-13, abs=1e-13)
    np.testing.assert_allclose(longer_gradient[: len(weights)], gradient, rtol=1e-11, atol=1e-12)
    path, score = decoded(case, weights)
    longer_path, longer_score = decoded(longer, padded)
    assert longer_path.tolist() == path.tolist()
    np.testing.assert_allclose(longer_score, score, rtol=1e-14)


def test_the_weight_of_a_forbidden_triple_changes_nothing(seed):
    case = problem("constrained", seed)
    every = SecondOrder.free(3).triples
    forbidden = case.structure.forbidden
    idle = forbidden[every[:, 0], every[:, 1]] | forbidden[every[:, 1], every[:, 2]]
    assert idle.any()
    case = replace(case, structure=SecondOrder.extending(case.structure, every))
    weights = case.weights(seed)
    loss, gradient = case.likelihood()(weights)
    assert_agrees(case, weights)
    gradient_of_triples = gradient[-len(every) :].copy()
    assert not gradient_of_triples[idle].any()
    weights[-len(every) :][idle] += 3.0
    assert case.likelihood()(weights)[0] == loss


def test_tables_and_steps_forbid_all_that_follows_a_forbidden_pair(seed):
    case = second_order(problem("constrained", seed), seed, share=1.0)
    structure, forbidden = case.structure, case.structure.first.forbidden
    tail = case.weights(seed)[len(case.features) :]
    for table, wanted in zip(structure.tables(tail), spelled_out(structure, tail), strict=True):
        np.testing.assert_allclose(table, wanted, rtol=1e-14)
    for made in (structure, SecondOrder.extending(structure.first, np.zeros((0, 3)))):
        steps, _ = made.steps(tail[: made.size], GROUP, np.float64)
        assert not steps.share[:, :3][forbidden].any()
        assert forbidden.any()


# threads and precision


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_change_a_bit(dtype, seed):
    lengths = tuple(np.random.default_rng(seed).integers(1, 9, 150).tolist())
    case = second_order(problem("everything", seed, 17 if dtype == np.float32 else 3, lengths), seed)
    weights = case.weights(seed, scale=2.0)
    alone, gradient = case.likelihood(dtype)(weights)
    for threads in (2, 3):
        with Team(threads) as team:
            loss, other = case.likelihood(dtype, team)(weights)
            assert loss == alone
            assert np.array_equal(other, gradient)


@lengthened
@pytest.mark.parametrize("kind", ["plain", "constrained", "partial", "everything"])
def test_scores_of_hundreds_are_computed_in_logs_where_they_must_be(kind, share, seed, monkeypatch):
    asked = []
    in_logs = SecondOrder.in_logs
    monkeypatch.setattr(SecondOrder, "in_logs", lambda *given: asked.append(1) or in_logs(*given))
    for shift in range(3):
        case = second_order(problem(kind, seed + shift), seed, share)
        assert_agrees(case, 200.0 * np.sign(case.weights(seed + shift)) + case.weights(seed + 9))
    assert asked


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("kind", ["plain", "constrained"])
def test_in_logs_and_the_log_partition_are_sums_over_all_paths(kind, length, seed):
    case = second_order(problem(kind, seed, lengths=(length,)), seed)
    weights = case.weights(seed, scale=30.0)
    structure, tail = case.structure, weights[len(case.features) :]
    ((_, _, node),) = case.sentences(weights)
    first, after = spelled_out(structure, tail)
    wanted = reference.marginals(node.tolist(), first.tolist(), after.tolist())
    log_partition, probability, transitions = structure.in_logs(node, tail)
    assert log_partition == pytest.approx(wanted.log_partition, rel=1e-12)
    assert structure.log_partition(node, tail) == pytest.approx(wanted.log_partition, rel=1e-12)
    np.testing.assert_allclose(probability, wanted.node, rtol=1e-9, atol=1e-12)
    assert transitions.sum() == pytest.approx(length - 1, rel=1e-9)


def test_a_sentence_without_a_path_has_no_marginals(seed):
    structure = replace(FirstOrder.free(2), forbidden=np.ones((2, 2), dtype=bool))
    structure = SecondOrder.extending(structure, SecondOrder.free(2).triples)
    tail = np.random.default_rng(seed).normal(size=structure.size)
    assert structure.log_partition(np.zeros((3, 2)), tail) == -np.inf
    with pytest.raises(ImpossibleError):
        structure.in_logs(np.zeros((3, 2)), tail)
    assert structure.log_partition(np.zeros((1, 2)), tail) == pytest.approx(np.log(2.0))
    assert np.isfinite(structure.steps(tail, GROUP, np.float64)[1])


# the k best and samples


@pytest.mark.parametrize("length", [1, 2, 4])
@pytest.mark.parametrize("kind", ["plain", "constrained"])
def test_the_k_best_are_those_of_all_paths(kind, length, seed):
    case = second_order(problem(kind, seed, lengths=(length,)), seed)
    weights = case.weights(seed)
    tail = weights[len(case.features) :]
    ((_, _, node),) = case.sentences(weights)
    tables = [table.tolist() for table in spelled_out(case.structure, tail)]
    scores = reference.scores(node.tolist(), *tables)
    wanted = sorted(score for score in scores.values() if score > -np.inf)[::-1][:20]
    found = case.structure.k_best(node, tail, 20)
    paths = [tuple(best.values.tolist()) for best in found]
    assert [best.score for best in found] == pytest.approx(wanted, rel=1e-12)
    assert [scores[path] for path in paths] == pytest.approx(wanted, rel=1e-12)
    assert len(set(paths)) == len(wanted)


@pytest.mark.statistical
@pytest.mark.parametrize("length", [1, 3])
def test_samples_follow_the_distribution_over_all_paths(length, seed):
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[1, 2] = True
    structure = SecondOrder.extending(replace(FirstOrder.free(3), forbidden=forbidden))
    rng = np.random.default_rng(5)
    node, tail = rng.normal(scale=0.5, size=(length, 3)), rng.normal(scale=0.5, size=structure.size)
    tables = [table.tolist() for table in spelled_out(structure, tail)]
    scores = reference.scores(node.tolist(), *tables)
    weight = np.exp(list(scores.values()))
    drawn = structure.sample(node, tail, Stream(seed), 4_000)
    times = np.array([(drawn == path).all(axis=1).sum() for path in scores])
    assert times.sum() == 4_000
    possible = weight > 0
    assert not times[~possible].any()
    expected = 4_000 * weight[possible] / weight.sum()
    assert expected.min() > 5  # enough for the chi-square
    assert chisquare(times[possible], expected).pvalue > FALSE_ALARM


def test_every_label_pair_state_stands_for_its_remainder():
    rng = np.random.default_rng(3)
    node, first, after = rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), rng.normal(size=(3, 3, 3))
    states, transition = as_label_pairs(node, first, after)
    assert states.shape == (4, 12)
    assert transition.shape == (12, 12)
    paths = [tuple((best.values % 3).tolist()) for best in chain_k_best(states, transition, 81)]
    assert sorted(paths) == sorted(product(range(3), repeat=4))


# which transitions have weights


def test_observed_triples_lie_within_sentences_and_are_known():
    truth = np.array([0, 1, 2, 0, 1, 2, 2, 2, 0, -1, 1, 0, 0], dtype=np.int32)
    start = np.array([0, 3, 4, 5, 9, 11, 13])
    assert observed_triples(truth, start, 3).tolist() == [[0, 1, 2], [2, 2, 0], [2, 2, 2]]
    assert observed_triples(truth[:2], np.array([0, 2]), 3).shape == (0, 3)


@pytest.mark.parametrize("every", [False, True])
def test_transitions_are_those_seen_or_all_that_are_possible(every):
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[1, 2] = True
    no = np.zeros(3, dtype=bool)
    truth, start = np.array([0, 1, 1, 2, 2], dtype=np.int32), np.array([0, 3, 5])
    first = FirstOrder.from_labels(
        truth, start, 3, every=every, forbidden=forbidden, not_first=no, not_last=no
    )
    structure = SecondOrder.seen(first, truth, start, every=every)
    transitions = structure.transitions()
    assert structure.size == len(transitions) == len(set(transitions))
    if every:
        assert len(transitions) == 8 + 27 - 3 - 3  # (1, 2) begins three triples and ends three
        assert not any(pair == (1, 2) for t in transitions for pair in pairwise(t))
    else:
        assert transitions == [(0, 1), (1, 1), (2, 2), (0, 1, 1)]


def test_a_structure_is_the_same_after_being_stored(seed):
    case = second_order(problem("constrained", seed), seed)
    again = SecondOrder.from_arrays(3, case.structure.to_arrays())
    assert again.transitions() == case.structure.transitions()
    weights = case.weights(seed)
    loss, gradient = case.likelihood()(weights)
    loss_again, gradient_again = replace(case, structure=again).likelihood()(weights)
    assert loss_again == loss
    assert np.array_equal(gradient_again, gradient)


@pytest.mark.parametrize(
    "triples", [np.zeros((2, 2), np.int32), np.zeros((2, 3)), np.full((1, 3), 3, np.int32)]
)
def test_stored_triples_that_cannot_be_are_refused(triples, seed):
    arrays = SecondOrder.free(3).to_arrays() | {"triples": triples}
    with pytest.raises(ShapeError, match="transitions"):
        SecondOrder.from_arrays(3, arrays)


def test_observed_counts_leave_out_sentences_with_unknown_labels():
    structure = SecondOrder.free(2, triples=[[0, 1, 1]])
    truth = np.array([0, 1, 1, 1, 0, 1, 1, 0, -1, 1], dtype=np.int32)
    start = np.array([0, 4, 5, 7, 10], dtype=np.int64)
    counts = structure.observed(start, Supervision(truth, emphasis=np.array([2.0, 1.0, 5.0, 1.0])))
    own, shared = counts[:1], counts[1:]
    assert own.tolist() == [[0.0, 2.0]]
    assert shared.tolist() == [[0.0, 2.0], [0.0, 7.0]]  # the first pairs 0 1 and 1 1, and 1 1 1


def test_the_kernels_are_those_of_second_order():
    assert SecondOrder.kernels is second_order_rows
