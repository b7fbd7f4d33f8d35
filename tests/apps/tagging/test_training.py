"""From encoded sentences to a trained chain: which weights there are, the objective, when training stops."""

import json
from dataclasses import replace

import numpy as np
import pytest

from chain_cases import sparse
from factorwise.apps.tagging import training
from factorwise.apps.tagging.config import (
    ALGORITHMS,
    DEFAULT_PRIOR,
    ONLINE,
    TrainingConfig,
    online_rule,
    prior_of,
)
from factorwise.apps.tagging.constraints import LabelConstraints
from factorwise.apps.tagging.features.encoders import choose_encoder
from factorwise.apps.tagging.labels import LabelEncoder
from factorwise.apps.tagging.supervision import (
    class_costs,
    held_out_from,
    random_share,
    sentence_weights,
    supervision_of,
)
from factorwise.apps.tagging.training import EncodedSentences, HeldOutSentences, repeated_rows, train
from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError
from factorwise.learning.chains.likelihood import ChainLikelihood
from factorwise.learning.chains.online import (
    AdaGrad,
    Arow,
    AveragedPerceptron,
    PassiveAggressive,
    StochasticGradient,
)
from factorwise.learning.chains.structure import Supervision
from factorwise.learning.likelihood.priors import Prior
from tagging_cases import BIO, separable, task

CONVERGED = {"epsilon": 1e-7, "delta": 1e-12, "period": 20}


def encoded(X, y, sample_weight=None, class_weight=None, labels=BIO):
    """Sentences as training reads them, and the names of the labels."""
    rows, start = choose_encoder(X, None).fit_encode(X)
    encoder = LabelEncoder(labels)
    known = encoder.fit_encode(y, start)
    return (
        EncodedSentences(
            rows, start, supervision_of(known, encoder.labels, start, sample_weight, class_weight)
        ),
        encoder.labels,
    )


def weights_by_name(trained):
    """Label and attribute, or labels, of each weight with its value."""
    features, structure = trained.tagger.features, trained.tagger.structure
    attribute = np.repeat(np.arange(len(features.start) - 1), features.per_attribute).tolist()
    names = [
        *zip(attribute, features.label.tolist(), strict=True),
        *map(("pair",).__add__, structure.transitions()),
    ]
    return dict(zip(names, trained.tagger.weights.tolist(), strict=True))


# which weights there are

SEEN = {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)}
TWO = [[["a"], ["a", "b"], ["a"]], [["b"], ["c"]]], [["O", "B-X", "I-X"], ["O", "O"]]


@pytest.mark.parametrize(
    ("settings", "states", "pairs"),
    [
        ({}, SEEN, {(0, 0), (0, 1), (1, 2)}),
        ({"all_possible_states": True}, {(a, k) for a in range(3) for k in range(3)}, None),
        ({"all_possible_transitions": True}, None, {(j, k) for j in range(3) for k in range(3)}),
        ({"min_freq": 2}, set(), set()),
        ({"min_freq": 1, "all_possible_transitions": True}, None, {(0, 0), (0, 1), (1, 2)}),
        (
            {"min_freq": 1, "all_possible_states": True},
            {(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)},
            None,
        ),
    ],
)
def test_weights_belong_to_what_was_seen_often_enough_or_to_everything(settings, states, pairs):
    names = weights_by_name(train(*encoded(*TWO), TrainingConfig(max_iterations=1, **settings)))
    if states is not None:
        assert {name for name in names if name[0] != "pair"} == states
    if pairs is not None:
        assert {name[1:] for name in names if name[0] == "pair"} == pairs


def test_chains_of_order_two_have_weights_of_pairs_and_of_triples():
    for settings, triples in (({}, {(0, 1, 2)}), ({"min_freq": 2}, set())):
        trained = train(*encoded(*TWO), TrainingConfig(order=2, max_iterations=1, **settings))
        assert {name for name in trained.tagger.structure.transitions() if len(name) == 3} == triples


def test_a_token_with_several_possible_labels_gives_weights_to_each_and_one_without_any_to_none():
    names = weights_by_name(
        train(
            *encoded([[["a"], ["b"], ["c"]]], [[{"B-X", "I-X"}, None, "O"]]),
            TrainingConfig(max_iterations=1),
        )
    )
    assert set(names) == {(0, 1), (0, 2), (2, 0)}


# the objective


@pytest.mark.parametrize("prior", [Prior(l2=0.5), Prior(l1=0.3, l2=0.1), Prior()])
@pytest.mark.parametrize("order", [1, 2])
def test_the_objective_is_the_loss_plus_the_penalty_at_the_weights_returned(prior, order):
    sentences, labels = encoded(*task())
    trained = train(sentences, labels, TrainingConfig(prior=prior, order=order, max_iterations=7))
    tagger = trained.tagger
    loss = ChainLikelihood(
        sentences.rows, sentences.start, sentences.supervision, tagger.features, tagger.structure
    )
    value, _ = loss(tagger.weights)
    assert trained.objective == pytest.approx(value + prior.penalty(tagger.weights), rel=1e-6)
    assert (trained.n_iter, trained.converged) == (7, False)
    assert "max_iterations = 7" in trained.message
    last = trained.steps[-1]
    assert (last.iteration, last.objective) == (7, trained.objective)
    assert last.active == np.count_nonzero(tagger.weights)


def test_a_sentence_that_counts_twice_is_a_sentence_given_twice():
    X, y = task(sentences=10)
    weight = [1.0, 2.0, 0.0, *[1.0] * 7]
    repeated = [k for k, times in enumerate(weight) for _ in range(int(times))]
    config = TrainingConfig(prior=Prior(l2=0.5), **CONVERGED)
    weighted = train(*encoded(X, y, sample_weight=weight), config)
    rows, start = choose_encoder(X, None).fit_encode(X)
    chosen = np.concatenate([np.arange(start[k], start[k + 1]) for k in repeated])
    encoder = LabelEncoder(BIO)
    sizes = np.diff(start)[repeated]
    known = encoder.fit_encode([y[k] for k in repeated], np.cumsum([0, *sizes]))
    twice = EncodedSentences(
        repeated_rows(rows, chosen), np.cumsum([0, *sizes], dtype=np.int64), Supervision(known.codes)
    )
    repeated_fit = train(twice, BIO, config)
    assert weighted.objective == pytest.approx(repeated_fit.objective, rel=1e-6)
    one, other = weights_by_name(weighted), weights_by_name(repeated_fit)
    assert max(abs(one.get(k, 0.0) - other.get(k, 0.0)) for k in one.keys() | other.keys()) < 1e-3


@pytest.mark.parametrize("algorithm", ["lbfgs", "cg", "newton-cg", "gradient-descent", "coordinate-descent"])
def test_every_batch_algorithm_reaches_the_same_optimum(algorithm):
    sentences, labels = encoded(*task(sentences=8))
    settings = {"epsilon": 1e-4, "delta": 1e-9, "period": 20, "precision": "double", "max_iterations": 400}
    trained = train(sentences, labels, TrainingConfig(algorithm=algorithm, **settings))
    best = train(sentences, labels, TrainingConfig(**CONVERGED, precision="double"))
    assert best.converged
    assert trained.objective == pytest.approx(best.objective, rel=1e-6)
    np.testing.assert_allclose(trained.tagger.weights, best.tagger.weights, atol=2e-3)


@pytest.mark.parametrize("algorithm", ["lbfgs", "gradient-descent", "coordinate-descent"])
def test_algorithms_with_an_l1_penalty_reach_the_same_optimum(algorithm):
    sentences, labels = encoded(*task(sentences=8))
    prior = Prior(l1=0.4, l2=0.1)
    settings = {"prior": prior, "epsilon": 1e-4, "delta": 1e-9, "period": 20, "max_iterations": 400}
    trained = train(sentences, labels, TrainingConfig(algorithm=algorithm, precision="double", **settings))
    assert trained.objective == pytest.approx(25.2577262, rel=1e-6)
    assert trained.steps[-1].active < len(trained.tagger.weights)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_both_precisions_find_the_same_weights(precision):
    sentences, labels = encoded(*task())
    single = train(sentences, labels, TrainingConfig(**CONVERGED))
    other = train(sentences, labels, TrainingConfig(precision=precision, **CONVERGED))
    np.testing.assert_allclose(other.tagger.weights, single.tagger.weights, atol=1e-4)


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd"])
def test_the_result_does_not_depend_on_the_number_of_threads_nor_on_the_run(algorithm):
    sentences, labels = encoded(*task(sentences=60))
    config = TrainingConfig(algorithm=algorithm, max_iterations=8, seed=5)
    found = [train(sentences, labels, config, threads=threads).tagger.weights for threads in (1, 2, 2, 3)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_the_seed_decides_the_order_of_sentences():
    sentences, labels = encoded(*task())
    config = TrainingConfig(algorithm="ap", max_iterations=3)
    first, again, other = (
        train(sentences, labels, replace(config, seed=seed)).tagger.weights for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


# held-out sentences


@pytest.fixture
def scripted(monkeypatch):
    """Train with held-out sentences whose score is made up, one for each evaluation."""

    def run(scores, patience, every=1):
        sentences, labels = encoded(*task())
        held_out = held_out_from(sentences, sentences.complete, patience)._replace(every=every)
        left, seen = iter(scores), []
        monkeypatch.setattr(training._Watcher, "_score", lambda *_: next(left, None))
        config = TrainingConfig(max_iterations=len(scores) * every, epsilon=0.0, delta=0.0)
        return train(sentences, labels, config, held_out=held_out, watch=seen.append), seen

    return run


def test_training_stops_when_the_held_out_score_no_longer_improves_and_keeps_the_best_weights(scripted):
    trained, seen = scripted([0.1, 0.5, 0.9, 0.9, 0.3, 0.95], patience=2)
    assert [step.score for step in seen] == [0.1, 0.5, 0.9, 0.9, 0.3]
    assert trained.n_iter == 5
    assert trained.objective == seen[2].objective
    best, _ = scripted([0.1, 0.5, 0.9], patience=9)
    np.testing.assert_array_equal(trained.tagger.weights, best.tagger.weights)


def test_the_score_told_is_that_of_the_weights_kept():
    everything, labels = encoded(*task(sentences=30))
    first = np.arange(30) < 12
    config = TrainingConfig(prior=Prior(l2=1e-3), epsilon=0.0, delta=0.0, max_iterations=30)
    for patience, kept in ((None, lambda scores: scores[-1]), (3, max)):
        held_out = held_out_from(everything, ~first, patience)
        trained = train(everything.taken(first), labels, config, held_out=held_out)
        scores = [step.score for step in trained.steps]
        assert trained.score == kept(scores)
    assert max(scores) > scores[-1]  # the last weights were not the best


def test_without_patience_scores_are_reported_and_the_last_weights_kept(scripted):
    trained, seen = scripted([0.9, 0.1, 0.1], patience=None)
    assert [step.score for step in seen] == [0.9, 0.1, 0.1]
    assert trained.objective == seen[-1].objective


def test_held_out_sentences_are_scored_every_so_many_iterations(scripted):
    _, seen = scripted([0.5, 0.5], patience=None, every=2)
    assert [step.score for step in seen] == [None, 0.5, None, 0.5]


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
def test_the_held_out_score_is_span_f1_or_accuracy_where_labels_name_no_spans(algorithm):
    for labels in (("B-X", "I-X", "O"), ("N", "V", "D")):
        X, y = separable(labels)
        sentences, names = encoded(X, y, labels=())
        held_out = HeldOutSentences(sentences.rows, sentences.start, sentences.supervision.truth)
        trained = train(
            sentences, names, TrainingConfig(algorithm=algorithm, max_iterations=20), held_out=held_out
        )
        assert trained.steps[-1].score == trained.score == 1.0
    assert train(sentences, names, TrainingConfig(max_iterations=1)).score is None


def test_sentences_are_chosen_with_all_that_is_known_of_them():
    X, y = (
        [[["a"], ["b"]], [["c"]], [["b"], ["d"], ["a"]]],
        [["O", None], ["B-X"], [{"O", "B-X"}, "I-X", "O"]],
    )
    sentences, _ = encoded(X, y, sample_weight=[1.0, 2.0, 3.0])
    assert sentences.complete.tolist() == [False, True, False]
    apart = sentences.taken(np.array([False, True, True]))
    assert apart.start.tolist() == [0, 1, 4]
    assert apart.rows.to_dense().tolist() == sentences.rows.to_dense()[2:].tolist()
    known = apart.supervision
    assert known.truth.tolist() == [1, -1, 2, 0]
    assert known.may_be(1, 3).tolist() == [True, True, False]
    assert known.emphasis.tolist() == [2.0, 3.0]


def test_rows_can_be_repeated_and_reordered_with_their_values():
    rows = sparse([[(0, 1.0), (1, 2.0)], [], [(2, 3.0)]], 3)
    picked = repeated_rows(rows, np.array([2, 0, 0, 1]))
    assert picked.to_dense().tolist() == rows.to_dense()[[2, 0, 0, 1]].tolist()


def test_a_random_share_is_of_those_that_are_able_and_depends_on_the_seed():
    able = np.arange(100) % 2 == 0
    chosen = random_share(able, 0.2, 0)
    assert chosen.sum() == 20
    assert not chosen[~able].any()
    np.testing.assert_array_equal(chosen, random_share(able, 0.2, 0))
    assert (chosen != random_share(able, 0.2, 1)).any()
    assert random_share(able, 0.001, 0).sum() == 1


# what is asked for


def test_labels_that_the_constraints_make_impossible_are_refused_before_training():
    sentences, labels = encoded([[["a"], ["b"]], [["a"]]], [["O", "B-X"], [{"B-X", "I-X"}]])
    rules = LabelConstraints.of_scheme(labels, "BIO").with_pairs(labels, [(None, "B-X")])
    with pytest.raises(ImpossibleError, match="sentence 1"):
        train(sentences, labels, TrainingConfig(), constraints=rules)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "sgd"}, r"algorithm must be one of lbfgs, .*but 'sgd'"),
        ({"algorithm": "l2sgd", "prior": Prior(l1=0.1)}, r"c1 = 0.1.*'l2sgd' has no L1.*use one of lbfgs"),
        ({"algorithm": "cg", "prior": Prior(l1=0.1)}, r"'cg' has no L1 penalty.*or c1=0"),
        ({"algorithm": "ap", "order": 2}, r"'ap' trains chains of order 1 only: use 'lbfgs', or order=1"),
        ({"order": 3}, r"order must be 1 or 2, but 3"),
        ({"order": None}, r"order must be a whole number, but None"),
        ({"precision": "half"}, r"precision must be 'single' or 'double'"),
        ({"linesearch": "Armijo"}, r"linesearch must be one of MoreThuente"),
        ({"max_iterations": 0}, r"max_iterations must be at least 1"),
        ({"max_iterations": 2.5}, r"max_iterations must be a whole number"),
        ({"period": 0}, r"period must be at least 1"),
        ({"memory": 0}, r"num_memories must be at least 1"),
        ({"epsilon": -1.0}, r"epsilon must be zero or more"),
        ({"delta": float("nan")}, r"delta must be a finite number, but nan"),
        ({"min_freq": "2"}, r"min_freq must be a finite number, but '2'"),
        ({"min_freq": True}, r"min_freq must be a finite number, but True"),
        ({"aggressiveness": float("inf")}, r"c must be a finite number"),
        ({"pa_type": 3}, r"pa_type must be 0, 1 or 2"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings, message):
    with pytest.raises(InvalidArgumentError, match=message):
        TrainingConfig(**settings)


def test_settings_become_plain_values():
    config = TrainingConfig(max_iterations=np.int64(5), epsilon=np.float32(0.5), prior=Prior(l1=0.25))
    record = json.loads(json.dumps(config.as_dict()))
    assert record["max_iterations"] == 5
    assert record["epsilon"] == 0.5
    assert record["delta"] == 1e-5
    assert record["prior"] == {"c1": 0.25, "c2": 0.0}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_when_to_stop_depends_on_the_algorithm_unless_the_user_says(algorithm):
    wanted = (0.0, 1e-6) if algorithm in ONLINE else (1e-5, 1e-5)
    own = TrainingConfig(algorithm=algorithm).stopping()
    assert (own["epsilon"], own["delta"]) == wanted
    said = TrainingConfig(algorithm=algorithm, epsilon=0.5, delta=0.25, period=3).stopping()
    assert said == {"epsilon": 0.5, "delta": 0.25, "period": 3}


def test_online_algorithms_stop_by_the_rules_that_the_user_gives():
    sentences, labels = encoded(*task())
    first = train(sentences, labels, TrainingConfig(algorithm="ap", epsilon=100.0))
    assert (first.n_iter, first.converged) == (1, True)
    slow = train(sentences, labels, TrainingConfig(algorithm="l2sgd", period=2, delta=10.0))
    assert (slow.n_iter, slow.converged) == (3, True)
    most = train(sentences, labels, TrainingConfig(algorithm="arow", max_iterations=4))
    assert (most.n_iter, most.converged) == (4, False)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"algorithm": "ap"}, AveragedPerceptron()),
        (
            {
                "algorithm": "pa",
                "pa_type": 2,
                "aggressiveness": 0.5,
                "error_sensitive": False,
                "averaging": False,
            },
            PassiveAggressive(kind=2, c=0.5, error_sensitive=False, averaging=False),
        ),
        ({"algorithm": "arow", "variance": 2.0, "gamma": 0.5}, Arow(variance=2.0, gamma=0.5)),
        ({"algorithm": "adagrad", "learning_rate": 0.3, "prior": Prior(l2=2.0)}, AdaGrad(l2=2.0, rate=0.3)),
        (
            {
                "algorithm": "l2sgd",
                "prior": Prior(l2=0.5),
                "calibration_eta": 0.2,
                "calibration_rate": 3.0,
                "calibration_samples": 7,
                "calibration_candidates": 4,
                "calibration_max_trials": 9,
            },
            StochasticGradient(
                l2=0.5,
                calibration_eta=0.2,
                calibration_rate=3.0,
                calibration_samples=7,
                calibration_candidates=4,
                calibration_max_trials=9,
            ),
        ),
    ],
    ids=lambda value: value.get("algorithm") if isinstance(value, dict) else "",
)
def test_settings_reach_the_rule_of_an_online_algorithm(settings, rule):
    assert online_rule(TrainingConfig(**settings)) == rule


def test_priors_are_read_in_either_notation():
    assert prior_of(None, None) == DEFAULT_PRIOR == Prior(l1=0.1, l2=0.1)
    assert prior_of(None, None, algorithm="l2sgd") == prior_of(0.0, None) == Prior(l2=0.1)
    assert prior_of(None, 1.0) == Prior(l2=1.0)
    assert prior_of(0.2, None) == Prior(l1=0.2, l2=0.1)
    assert prior_of(0.5, np.float64(0.25)) == Prior(l1=0.5, l2=0.25)
    assert type(prior_of(None, np.float32(0.25)).l2) is float
    assert prior_of(None, None, scale=4.0, variance=0.25) == Prior(l1=0.25, l2=2.0)
    for arguments, message in (
        ((0.1, None, 1.0), r"c1 and prior_scale say the same"),
        ((None, 0.1, None, 1.0), r"c2 and prior_variance say the same"),
        ((-1.0, None), r"c1 must be a finite number from 0 on"),
        ((None, "1"), r"c2 must be a finite number from 0 on, or None, but '1'"),
        ((None, float("nan")), r"c2 must be"),
        ((None, None, None, 0.0), r"variance must be greater than zero"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            prior_of(*arguments)


def test_class_weights_are_costs_in_logs():
    codes, names = np.array([0, 0, 0, 1, -1]), ("a", "b", "c")
    assert class_costs(None, codes, names).size == 0
    np.testing.assert_allclose(class_costs({"b": 2.0}, codes, names), [0.0, np.log(2.0), 0.0])
    np.testing.assert_allclose(class_costs("balanced", codes, names), np.log([4 / 9, 4 / 3, 4 / 3]))
    for weight, message in (
        ({"d": 1.0}, r"names 'd', which is none of the labels \['a', 'b', 'c'\]: leave it out"),
        ({"a": 0.0}, r"above zero"),
        ({"a": float("inf")}, r"finite and above zero"),
        ({"a": "much"}, r"class_weight must be numbers"),
        ("equal", r"'balanced' or a dictionary, but 'equal'"),
        ([1.0, 2.0], r"'balanced' or a dictionary"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            class_costs(weight, codes, names)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1.0], ShapeError, r"shape \(1,\), but there are 2 sentences: give one number"),
        ([1.0, -1.0], InvalidArgumentError, r"finite and not negative"),
        ([1.0, float("nan")], InvalidArgumentError, r"finite and not negative"),
        (["a", "b"], InvalidArgumentError, r"sample_weight must be numbers"),
    ],
)
def test_sentence_weights_are_checked(weight, error, message):
    with pytest.raises(error, match=message):
        sentence_weights(weight, 2)
