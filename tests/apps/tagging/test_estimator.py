"""`ChainCRF` as scikit-learn's tools and its users use it."""

import inspect
import pickle
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import chain

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.utils.validation import check_is_fitted

import factorwise
from factorwise import ChainCRF
from factorwise.apps.tagging.config import ALGORITHMS
from factorwise.apps.tagging.features.encoders import choose_encoder
from factorwise.apps.tagging.features.templates import TemplateSet
from factorwise.apps.tagging.prediction import UnseenLabelWarning
from factorwise.apps.tagging.supervision import random_share
from factorwise.apps.tagging.warm import EarlierFit
from factorwise.errors import FactorwiseError, ImpossibleError, InvalidArgumentError, ShapeError
from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.second_order import SecondOrder
from factorwise.learning.chains.structure import FirstOrder
from factorwise.metrics.sequence import score_spans, token_accuracy
from tagging_cases import BIO, AllPaths, agrees_with, attributes, separable, task, with_weights

CONVERGED = {"epsilon": 1e-7, "delta": 1e-12, "period": 20}

# sklearn_crfsuite.CRF 0.5.0: its parameters in order, with their defaults
CRFSUITE = dict.fromkeys([
    "algorithm", "min_freq", "all_possible_states", "all_possible_transitions", "c1", "c2",
    "max_iterations", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch",
    "calibration_eta", "calibration_rate", "calibration_samples", "calibration_candidates",
    "calibration_max_trials", "pa_type", "c", "error_sensitive", "averaging", "variance", "gamma",
]) | {"verbose": False, "model_filename": None, "keep_tempfiles": False, "trainer_cls": None}  # fmt: skip


@cache
def fitted(**settings):
    return ChainCRF(**settings).fit(*task())


def distance(one, other):
    """Largest difference of two models' weights, by name; one that is missing counts as zero."""
    pairs = (
        (one.state_features_, other.state_features_),
        (one.transition_features_, other.transition_features_),
    )
    return max(abs(a.get(name, 0.0) - b.get(name, 0.0)) for a, b in pairs for name in a.keys() | b.keys())


# in the manner of scikit-learn


def test_the_estimator_is_a_public_name():
    assert factorwise.ChainCRF is factorwise.tagging.ChainCRF is ChainCRF


def test_parameters_can_be_read_set_cloned_and_shown():
    model = ChainCRF(c1=0.5, templates=TemplateSet.parse("w[0]"), forbidden=[("O", "I-X")])
    twin = clone(model)
    assert twin is not model
    assert twin.get_params()["c1"] == 0.5
    assert twin.get_params()["forbidden"] == [("O", "I-X")]
    assert twin.templates.lines() == ("w[0]",)
    assert twin.set_params(c1=0.25, order=2) is twin
    assert (twin.c1, twin.order, model.c1) == (0.25, 2, 0.5)
    assert repr(ChainCRF(c1=0.5, scheme="BIO")) == "ChainCRF(c1=0.5, scheme='BIO')"
    with pytest.raises(ValueError, match="no_such"):
        model.set_params(no_such=1)


def test_the_constructor_stores_what_it_is_given_and_nothing_else():
    for name, parameter in inspect.signature(ChainCRF).parameters.items():
        marker = object()
        assert getattr(ChainCRF(**{name: marker}), name) is marker
        assert getattr(ChainCRF(), name) is parameter.default
    assert set(vars(ChainCRF())) == set(ChainCRF().get_params())


def test_every_parameter_of_sklearn_crfsuite_is_there_with_its_default_and_in_its_place():
    parameters = inspect.signature(ChainCRF).parameters
    ours = {name: p.default for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
    assert list(ours.items()) == list(CRFSUITE.items())


def test_fitting_leaves_the_parameters_alone():
    model = ChainCRF(c1=0.1, scheme="BIO", class_weight={"O": 2.0}, random_state=None)
    before = dict(model.get_params())
    model.fit(*task(sentences=4))
    assert model.get_params() == before


@pytest.mark.parametrize("scoring", [None, ChainCRF.span_scorer], ids=["default", "span F1"])
def test_a_grid_search_finds_the_better_penalty(scoring):
    search = GridSearchCV(
        ChainCRF(n_jobs=1),
        {"c1": np.array([0.0, 0.1]), "c2": [0.1, 1000.0]},
        scoring=scoring,
        cv=3,
        error_score="raise",
    )
    X, y = task(sentences=30)
    search.fit(X, y)
    assert search.best_params_["c2"] == 0.1
    assert search.best_score_ > max(search.cv_results_["mean_test_score"][[1, 3]])
    wanted = search.best_estimator_.score(X, y)
    if scoring is not None:
        wanted = score_spans(y, search.predict(X)).micro.f1
    assert search.score(X, y) == pytest.approx(wanted)


def test_cross_validated_predictions_are_those_of_models_that_did_not_see_the_sentence():
    X, y = task(sentences=9)
    found = cross_val_predict(ChainCRF(n_jobs=1), X, y, cv=3)
    assert found.shape == (9,)
    for fold in range(3):
        apart = range(3 * fold, 3 * fold + 3)
        rest = [k for k in range(9) if k not in apart]
        model = ChainCRF(n_jobs=1).fit([X[k] for k in rest], [y[k] for k in rest])
        assert [found[k] for k in apart] == model.predict([X[k] for k in apart])


def test_predictions_are_lists_that_numpy_takes_for_one_dimension():
    model = fitted()
    for X in ([[{"w": "a"}, {"w": "b"}]] * 3, task()[0]):
        predicted = model.predict(X)
        assert isinstance(predicted, list)
        assert np.asarray(predicted).shape == (len(X),)
        assert np.asarray(predicted)[0] == predicted[0]
    assert np.asarray(model.predict_marginals(X)).shape == (len(X),)


@pytest.mark.parametrize("passes_through", [lambda m: pickle.loads(pickle.dumps(m)), "joblib"])
def test_a_model_survives_pickling(passes_through, tmp_path):
    model = ChainCRF(order=2, scheme="BIO").fit(*task(sentences=6))
    if passes_through == "joblib":
        joblib.dump(model, tmp_path / "model")
        again = joblib.load(tmp_path / "model")
    else:
        again = passes_through(model)
    X, _ = task(5)
    assert again.get_params() == model.get_params()
    assert again.predict(X) == model.predict(X)
    assert again.training_log_ == model.training_log_
    again.fit(*task(sentences=6))
    assert again.objective_ == model.objective_


def test_sentence_weights_are_routed_through_cross_validation():
    X, y = task(sentences=12)
    weight = np.where(np.arange(12) % 5, 1.0, 0.5)
    with sklearn.config_context(enable_metadata_routing=True):
        model = ChainCRF(n_jobs=1).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        folds = [(np.arange(9), np.arange(9, 12))]
        params = {"sample_weight": weight}
        found = cross_validate(model, X, y, cv=folds, params=params, return_estimator=True)
        wanted = ChainCRF(n_jobs=1).fit(X[:9], y[:9], sample_weight=weight[:9])
        assert found["estimator"][0].objective_ == wanted.objective_
        assert found["test_score"][0] == wanted.score(X[9:], y[9:], weight[9:])
    assert "sample_weight" in str(model.get_metadata_routing())


def test_a_model_is_fitted_only_after_fit():
    model = ChainCRF()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    X, y = task(sentences=3)
    for ask in (
        lambda: model.predict(X),
        lambda: model.predict_nbest(X),
        lambda: model.predict_spans(X),
        lambda: model.score(X, y),
        lambda: model.save("nowhere.fw"),
    ):
        with pytest.raises(NotFittedError, match=r"call fit first, or ChainCRF\.load"):
            ask()
    check_is_fitted(model.fit(X, y))


# what fit leaves behind


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"c1": 0.2, "c2": 0.1},
        {"order": 2},
        {"order": 2, "c1": 0.1},
        {"scheme": "BIO", "c2": 0.3},
        {"prior_variance": 0.25, "prior_scale": 5.0},
        {"algorithm": "coordinate-descent", "max_iterations": 5},
    ],
    ids=str,
)
def test_the_objective_is_minus_the_log_likelihood_plus_the_penalty(settings):
    X, y = task()
    model = ChainCRF(**settings).fit(X, y)
    prior = model.training_config().prior
    weights = np.array([*model.state_features_.values(), *model.transition_features_.values()])
    penalty = prior.l1 * np.abs(weights).sum() + prior.l2 * (weights**2).sum()
    assert model.objective_ == pytest.approx(penalty - model.log_likelihood(X, y), rel=2e-6)


def test_attributes_after_fit():
    model = fitted()
    assert model.classes_ == sorted(BIO, key=["O", "B-X", "I-X"].index)
    assert model.n_iter_ == len(model.training_log_) == model.training_log_[-1].iteration
    assert model.converged_
    first, last = model.training_log_[0], model.training_log_[-1]
    assert first.objective > last.objective == model.objective_
    assert last.gradient_norm < first.gradient_norm
    assert last.seconds > 0
    assert last.score is None
    names = {"bias", "w:a", "w:b", "w:c", "w:d", "s:Op", "s:Oq", "s:Bp", "s:Bq", "s:Ip", "s:Iq"}
    assert set(model.attributes_) == names
    assert model.num_attributes_ == len(names)
    assert {name for name, _ in model.state_features_} == names
    assert set(model.transition_features_) <= {(a, b) for a in BIO for b in BIO}
    assert ("O", "I-X") not in model.transition_features_
    assert len(model.state_features_) + len(model.transition_features_) == last.active


def test_weights_of_zero_are_not_listed():
    model = fitted(c1=1.0)
    listed = len(model.state_features_) + len(model.transition_features_)
    assert listed == model.training_log_[-1].active < len(model.tagger_.weights)
    assert all(model.state_features_.values())
    assert all(model.transition_features_.values())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_learns_a_separable_task(algorithm):
    X, y = separable()
    model = ChainCRF(algorithm=algorithm, c2=0.01).fit(X, y)
    assert model.predict(X) == y
    assert model.score(X, y) == 1.0
    assert model.n_iter_ == len(model.training_log_) >= 1


@pytest.mark.parametrize("settings", [{}, {"algorithm": "l2sgd"}, {"algorithm": "pa"}, {"order": 2}], ids=str)
def test_the_result_is_the_same_in_every_run_and_for_any_number_of_threads(settings):
    X, y = task(sentences=50)
    found = [ChainCRF(n_jobs=n, max_iterations=10, **settings).fit(X, y) for n in (1, 2, 2, None)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].tagger_.weights, other.tagger_.weights)
        assert found[0].objective_ == other.objective_
        for one, two in zip(found[0].predict_proba(X), other.predict_proba(X), strict=True):
            np.testing.assert_array_equal(one, two)


def test_the_random_state_decides_what_is_random():
    X, y = task()
    first, again, other, none = (
        ChainCRF(algorithm="ap", max_iterations=3, random_state=seed).fit(X, y) for seed in (0, 0, 1, None)
    )
    assert distance(first, again) == distance(first, none) == 0.0
    assert distance(first, other) > 0.0


# forms of sentences


def test_sentences_of_dictionaries_strings_and_matrices_are_the_same_to_it():
    names = ["a", "b", "c"]
    rng = np.random.default_rng(0)
    dense = [(rng.random((length, 3)) < 0.5).astype(float) for length in (3, 1, 4, 2, 5)]
    y = [[BIO[k] for k in rng.integers(0, 2, len(rows))] for rows in dense]
    strings = [[[names[k] for k in np.flatnonzero(row)] for row in rows] for rows in dense]
    dictionaries = [[{names[k]: 1.0 for k in np.flatnonzero(row)} for row in rows] for rows in dense]
    forms = [
        dense,
        [sparse.csr_matrix(rows) for rows in dense],
        [sparse.coo_array(rows) for rows in dense],
        strings,
        [[set(token) for token in tokens] for tokens in strings],
        dictionaries,
        [np.array(tokens, dtype=object) for tokens in dictionaries],
        [tuple(tokens) for tokens in dictionaries],
        (tokens for tokens in dictionaries),
    ]
    found = [ChainCRF(**CONVERGED, all_possible_states=True).fit(X, y) for X in forms]
    for model, X in zip(found[:-1], forms[:-1], strict=True):
        assert model.objective_ == pytest.approx(found[0].objective_, rel=1e-6)
        for one, other in zip(model.predict_proba(X), found[0].predict_proba(dense), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
    assert found[-1].predict(iter(dictionaries)) == found[5].predict(dictionaries)


def test_labels_may_be_arrays_and_need_not_be_strings():
    X, y = separable((3, 7, 1))
    model = ChainCRF().fit(X, [np.array(labels) for labels in y])
    assert model.predict(X) == y
    assert sorted(model.classes_) == [1, 3, 7]
    assert model.score(X, y) == 1.0
    assert ChainCRF().fit(*separable(("", "x", "y"))).predict_single([["is="]]) == [""]


def test_real_values_scale_a_weight():
    X = [[{"size": value}] for value in (2.0, -1.0, 0.5, -3.0)]
    model = ChainCRF(**CONVERGED).fit(X, [["up"], ["down"], ["up"], ["down"]])
    lead = model.state_features_["size", "up"] - model.state_features_["size", "down"]
    ((up, down),) = model.predict_proba([[{"size": 0.25}]])[0]
    assert up / down == pytest.approx(np.exp(0.25 * lead), rel=1e-5)


@pytest.mark.parametrize("templates", ["w[0]\nw[-1]", ["w[0]", "w[-1]"], TemplateSet.parse("w[0]\nw[-1]")])
def test_templates_read_words_and_columns(templates):
    X = [["the", "cat"], ["a", "cat", "sat"]]
    y = [["D", "N"], ["D", "N", "V"]]
    model = ChainCRF(templates=templates, c2=0.01).fit(X, y)
    assert model.predict([["the", "cat", "sat"]]) == [["D", "N", "V"]]
    assert ("w[-1]=the", "N") in model.state_features_
    columns = [[(word, "x") for word in words] for words in X]
    again = ChainCRF(templates=templates, c2=0.01).fit(columns, y)
    assert again.state_features_ == model.state_features_


def test_default_templates_suit_the_number_of_columns():
    X, y = [["The", "cat"], ["cats"]], [["D", "N"], ["N"]]
    assert ChainCRF(templates="default", c2=0.01).fit(X, y).predict(X) == y
    columns = [[(word, word[0]) for word in words] for words in X]
    model = ChainCRF(templates="default", c2=0.01).fit(columns, y)
    assert model.predict(columns) == y
    assert any(name.startswith("p[0]=") for name in model.attributes_)


@pytest.mark.parametrize("templates", [None, "w[0]"])
def test_no_sentences_get_no_labels(templates):
    X = [["a", "b"]] if templates else [[["a"], ["b"]]]
    model = ChainCRF(templates=templates).fit(X, [["O", "B-X"]])
    assert model.predict([]) == []
    assert model.predict_proba([]) == []
    assert model.predict_marginals([]) == []
    assert model.predict_nbest([]) == []
    assert model.predict_spans([]) == []
    assert model.log_likelihood([], []) == 0.0


def test_single_sentences():
    model, (X, _) = fitted(), task(5)
    assert model.predict_single(X[1]) == model.predict(X)[1]
    assert model.predict_marginals_single(X[1]) == model.predict_marginals(X)[1]
    (proba,) = model.predict_proba(X[1:2])
    for row, marginals in zip(proba, model.predict_marginals_single(X[1]), strict=True):
        assert marginals == dict(zip(model.classes_, row, strict=True))


# partial labels and weights


def test_missing_and_ambiguous_labels_are_summed_over_in_training():
    X = [[["a"], ["b"], ["a", "b"]], [["b"], ["a"]], [["c"], ["a"]]]
    y = [["O", None, "B-X"], [{"O", "B-X"}, "I-X"], ["B-X", {"O", "I-X"}]]
    model = ChainCRF(**CONVERGED, c2=1.0, all_possible_states=True, all_possible_transitions=True).fit(X, y)
    total = sum(
        np.log(AllPaths.of(model, tokens).within(agrees_with(known)))
        for tokens, known in zip(X, y, strict=True)
    )
    weights = model.tagger_.weights
    assert model.objective_ == pytest.approx((weights**2).sum() - total, rel=1e-5)
    for size in (1e-2, -1e-2):  # it is a minimum: no step in any direction lowers the sum over paths
        for place in range(0, len(weights), 3):
            moved = weights.copy()
            moved[place] += size
            other = pickle.loads(pickle.dumps(model))
            other.tagger_.weights[:] = moved
            assert (moved**2).sum() - other.log_likelihood(X, y) > model.objective_


def test_a_set_of_one_label_is_that_label_and_lists_are_sets():
    X = [[["a"], ["b"]], [["b"], ["a"]]]
    whole = ChainCRF().fit(X, [["O", "B-X"], ["B-X", "O"]])
    assert distance(whole, ChainCRF().fit(X, [[{"O"}, ["B-X"]], [("B-X",), "O"]])) == 0.0
    either = ChainCRF().fit(X, [["O", {"O", "B-X"}], ["B-X", "O"]])
    assert distance(either, ChainCRF().fit(X, [["O", ["B-X", "O"]], ["B-X", "O"]])) == 0.0


def test_a_weight_of_two_is_the_sentence_twice_and_of_zero_none_at_all():
    X, y = task(sentences=10)
    weight = [2.0, 0.0, *[1.0] * 8]
    weighted = ChainCRF(**CONVERGED).fit(X, y, sample_weight=weight)
    repeated = ChainCRF(**CONVERGED).fit([X[0], X[0], *X[2:]], [y[0], y[0], *y[2:]])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert distance(weighted, repeated) < 1e-3


def test_a_class_weight_raises_the_recall_of_its_class():
    rng = np.random.default_rng(1)
    y = [["rare" if rng.random() < 0.2 else "common"] for _ in range(300)]
    X = [[{"x": rng.normal(1.0 if label == ["rare"] else 0.0), "bias": 1.0}] for label in y]

    def recall(**settings):
        predicted = ChainCRF(c2=0.01, **settings).fit(X, y).predict(X)
        right = [found == wanted for found, wanted in zip(predicted, y, strict=True) if wanted == ["rare"]]
        return np.mean(right)

    plain, more, most = (recall(class_weight=weight) for weight in (None, {"rare": 3.0}, {"rare": 30.0}))
    assert plain + 0.05 < more < most - 0.05
    assert plain + 0.05 < recall(class_weight="balanced")
    assert recall(class_weight={"common": 3.0}) < plain == recall(class_weight={"common": 1.0})


# warm starts and early stopping


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    X, y = task()
    cold = ChainCRF(c2=1.0, epsilon=1e-4).fit(X, y)
    model = ChainCRF(c2=1.0, epsilon=1e-4, warm_start=True).fit(X, y)
    assert model.n_iter_ == cold.n_iter_
    model.fit(X, y)
    assert model.n_iter_ < cold.n_iter_ / 3
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    assert distance(model, cold) < 1e-3


@pytest.mark.parametrize("orders", [(1, 1), (1, 2), (2, 2), (2, 1)])
def test_a_warm_start_keeps_the_weights_whose_names_stay_the_same(orders):
    before, after = orders
    X, y = task(sentences=12)
    more_X = [*X, [{"w": "new", "bias": 1.0}, {"w": "a"}]]
    more_y = [*y, ["B-Z", "O"]]
    cold = ChainCRF(**CONVERGED, order=after).fit(more_X[::-1], more_y[::-1])
    model = ChainCRF(**CONVERGED, order=before, warm_start=True).fit(X, y)
    model.set_params(order=after).fit(more_X[::-1], more_y[::-1])  # reversed: all numbers change
    assert set(model.classes_) == set(cold.classes_) != set(fitted().classes_)
    assert model.objective_ == pytest.approx(cold.objective_, rel=1e-6)
    assert distance(model, cold) < 2e-3
    ahead, behind = (found.training_log_[0].objective - cold.objective_ for found in (model, cold))
    assert ahead < 0.3 * behind


@pytest.mark.parametrize("order", [1, 2])
def test_weights_are_carried_over_by_name_and_all_others_are_zero(order):
    before = with_weights(ChainCRF(order=order, max_iterations=1).fit(*task()), 0)
    X = [[{"w": "q"}, {"w": "a", "s": "Bq"}, {"bias": 1.0, "s": "Ip"}]]
    encoder, labels = choose_encoder(X, None), ("Z", *reversed(before.classes_))
    encoder.fit_encode(X)
    count = len(labels)
    features, structure = StateFeatures.all_pairs(encoder.width, count), FirstOrder.free(count)
    if order == 2:
        structure = SecondOrder.extending(structure)
    seen, present = np.ones(encoder.width, dtype=bool), np.array([label != "O" for label in labels])
    earlier = EarlierFit.of(before.tagger_, before.encoder_, encoder, labels)
    begin = earlier.beginning(features, structure, seen, present)
    assert begin.structure.transitions() == structure.transitions()
    states = [(name, label) for name in encoder.names() for label in labels]
    transitions = [tuple(labels[code] for code in codes) for codes in structure.transitions()]
    wanted = [before.state_features_.get(name, 0.0) for name in states]
    wanted += [before.transition_features_.get(name, 0.0) for name in transitions]
    assert begin.weights.tolist() == wanted
    assert np.count_nonzero(begin.weights) > 10
    names = [*((label,) for _, label in states), *transitions]
    assert begin.held.tolist() == ["O" in label for label in names]
    assert not begin.absent.any()


@pytest.mark.parametrize("algorithm", ["lbfgs", "newton-cg", "ap", "l2sgd"])
@pytest.mark.parametrize("every", [False, True])
def test_a_warm_start_keeps_the_labels_and_attributes_that_only_the_earlier_sentences_had(algorithm, every):
    X, y = task()
    settings = {"all_possible_states": every, "all_possible_transitions": every}
    model = ChainCRF(algorithm, max_iterations=30, warm_start=True, **settings).fit(X, y)
    states, steps, labels = model.state_features_, model.transition_features_, model.classes_
    answers = model.predict(X)
    model.fit([[{"w": "a"}, {"w": "q"}]], [["O", "Y"]])
    assert model.classes_ == [*labels, "Y"]
    held = algorithm in ("lbfgs", "newton-cg")
    for (attribute, label), weight in states.items():
        if attribute != "w:a" or (held and label != "O"):
            assert model.state_features_[attribute, label] == pytest.approx(weight, rel=1e-6)
    if held:
        kept = {pair: weight for pair, weight in steps.items() if pair != ("O", "O")}
        assert kept.items() <= model.transition_features_.items()
        right = [new == old for new, old in zip(model.predict(X), answers, strict=True)]
        assert np.mean(right) > 0.5
    assert model.predict([[{"w": "a"}, {"w": "q"}]])[0][1] == "Y"


def test_a_warm_start_finds_the_optimum_of_the_weights_that_new_sentences_teach():
    """There the slope of the log-likelihood is that of the penalty, with all earlier weights in place."""
    new_X, new_y = task(9, sentences=6)
    for token in chain.from_iterable(new_X):
        token["w"] = {"c": "a", "d": "b"}.get(token["w"], token["w"])
    model = ChainCRF(**CONVERGED, c1=0, c2=0.5, warm_start=True).fit(*task()).fit(new_X, new_y)
    shown = {
        (name, label)
        for tokens, labels in zip(new_X, new_y, strict=True)
        for token, label in zip(tokens, labels, strict=True)
        for name, _ in attributes(token)
    }
    taught = [pair in shown for pair in model.state_features_]
    assert 0 < sum(taught) < len(taught) == len(model.tagger_.state_weights)
    for k in np.flatnonzero(taught)[::3]:
        ahead, behind = (
            model.tagger_.weights + sign * 0.05 * np.eye(1, len(model.tagger_.weights), k)[0]
            for sign in (1, -1)
        )
        slope = (
            np.subtract(
                *(replaced(model, weights).log_likelihood(new_X, new_y) for weights in (ahead, behind))
            )
            / 0.1
        )
        assert slope == pytest.approx(model.tagger_.weights[k], abs=0.02)


def replaced(model, weights):
    """Return the model with other weights."""
    other = copy(model)
    other.tagger_ = replace(model.tagger_, weights=weights)
    return other


def test_a_warm_start_by_templates_keeps_the_words_of_earlier_sentences():
    first = ([["Anna"], ["Bob"], ["sleeps"]], [["PER"], ["PER"], ["O"]])
    then = ([["Rome"], ["Oslo"], ["waits"]], [["LOC"], ["LOC"], ["O"]])
    model = ChainCRF(templates="w[0]\nlower(w[-1])|w[0]", warm_start=True).fit(*first).fit(*then)
    assert sorted(model.classes_) == ["LOC", "O", "PER"]
    assert model.predict([*first[0], *then[0]]) == [*first[1], *then[1]]
    other = model.set_params(templates="suffix2(w[0])").fit(*then)
    assert all(name.startswith("suffix2") for name in other.attributes_)


def noisy():
    """A task on which training goes on to fit noise."""
    X, y = task(4, sentences=40)
    for number, tokens in enumerate(X):
        for place, token in enumerate(tokens):
            token["own"] = f"{number}.{place}"
    return X, y


def test_early_stopping_keeps_the_best_weights_on_given_sentences():
    X, y = noisy()
    X_dev, y_dev = task(8, sentences=40)
    settings = {"c2": 1e-3, "epsilon": 0.0, "delta": 0.0}
    watched = ChainCRF(**settings, max_iterations=60).fit(X, y, X_dev, y_dev)
    scores = [step.score for step in watched.training_log_]
    assert scores[-1] == pytest.approx(watched.span_scorer(X_dev, y_dev))
    model = ChainCRF(**settings, early_stopping=True, n_iter_no_change=5).fit(X, y, X_dev, y_dev)
    seen = [step.score for step in model.training_log_]
    best = int(np.argmax(seen))
    assert seen == scores[: len(seen)]
    assert model.n_iter_ == len(seen) == best + 1 + 5
    assert model.span_scorer(X_dev, y_dev) == pytest.approx(seen[best])
    assert model.objective_ == model.training_log_[best].objective
    assert not model.converged_


def test_early_stopping_on_a_share_of_the_training_sentences():
    X, y = noisy()
    settings = {"c2": 1e-3, "early_stopping": True, "n_iter_no_change": 3, "max_iterations": 200}
    model = ChainCRF(**settings, validation_fraction=0.25).fit(X, y)
    scores = [step.score for step in model.training_log_]
    assert model.objective_ == model.training_log_[int(np.argmax(scores))].objective
    chosen = random_share(np.ones(len(X), dtype=bool), 0.25, 0)
    apart, rest = ([k for k in range(len(X)) if chosen[k] == side] for side in (True, False))
    split = [[data[k] for k in side] for side in (rest, apart) for data in (X, y)]
    by_hand = ChainCRF(**settings).fit(*split)
    assert [step.score for step in by_hand.training_log_] == scores
    assert by_hand.objective_ == pytest.approx(model.objective_, rel=1e-6)
    again = ChainCRF(**settings, validation_fraction=0.25).fit(X, y)
    other = ChainCRF(**settings, validation_fraction=0.25, random_state=1).fit(X, y)
    assert [step.score for step in again.training_log_] == scores
    assert [step.score for step in other.training_log_] != scores


def test_sentences_with_missing_labels_are_learned_from_but_not_scored():
    X, y = task(sentences=20)
    y = [[None, *labels[1:]] if k % 2 else labels for k, labels in enumerate(y)]
    model = ChainCRF(early_stopping=True, validation_fraction=0.3, max_iterations=5).fit(X, y)
    assert all(step.score is not None for step in model.training_log_)
    model.fit(X, y, X, y)
    assert model.training_log_[0].score is not None
    for X_dev, y_dev in ((X[1:2], y[1:2]), ([], [])):
        with pytest.raises(InvalidArgumentError, match=r"X_dev has labels for all.*give one"):
            ChainCRF().fit(X, y, X_dev, y_dev)


# scores


def test_the_score_is_the_share_of_tokens_labelled_right():
    model = fitted()
    X, y = task(8)
    assert model.score(X, y) == pytest.approx(token_accuracy(y, model.predict(X)))
    assert model.span_scorer(X, y) == pytest.approx(score_spans(y, model.predict(X)).micro.f1)
    weight = np.arange(len(X), dtype=float)
    right = [np.array(a) == np.array(b) for a, b in zip(model.predict(X), y, strict=True)]
    wanted = np.average(np.concatenate(right), weights=np.repeat(weight, [len(labels) for labels in y]))
    assert model.score(X, y, sample_weight=weight) == pytest.approx(wanted)


def test_tokens_without_a_label_are_not_scored():
    model = fitted()
    X = task(8)[0][:3]
    predicted = model.predict(X)
    some = [[None, *labels[1:]] for labels in predicted]
    assert model.score(X, some) == 1.0
    with pytest.raises(InvalidArgumentError, match=r"no token to score: give at least one"):
        model.score(X, [[None] * len(labels) for labels in predicted])
    with pytest.raises(InvalidArgumentError, match=r"no token to score"):
        model.score(X, predicted, sample_weight=[0.0] * 3)


def test_a_label_not_seen_at_training_counts_as_wrong_with_a_warning():
    model = fitted()
    X = [[{"w": "a"}, {"w": "b"}]]
    ((first, second),) = model.predict(X)
    with pytest.warns(UnseenLabelWarning, match=r"'B-Q' was not seen at training and counts as wrong"):
        assert model.score(X, [[first, "B-Q"]]) == 0.5
    with pytest.warns(UnseenLabelWarning):
        assert model.span_scorer(X, [["B-Q", second]]) < 1.0


# mistakes

X3, Y3 = task(sentences=3)
WORDS, STOP = {"templates": "w[0]"}, {"early_stopping": True}
NAN = [[[{"x": 1.0}, {"x": float("nan")}]], [["O", "O"]]]


@pytest.mark.parametrize(
    ("settings", "X", "y", "message"),
    [
        ({}, [*X3, []], [*Y3, []], r"sentence 3 has no tokens: leave it out"),
        (WORDS, [["a"], []], [["O"], []], r"sentence 1 has no tokens: leave it out"),
        ({}, [np.zeros((1, 2)), np.zeros((0, 2))], [["O"], []], r"sentence 1 has no tokens"),
        ({}, X3, Y3[:2], r"X has 3 sentences, but y has 2: give labels for each"),
        (
            {},
            X3,
            [Y3[0], Y3[1], [*Y3[2], "O"]],
            r"sentence 2 has \d tokens, but \d labels: give each token one",
        ),
        ({}, [], [], r"no sentences to learn attributes from: give at least one"),
        ({}, NAN[0], NAN[1], r"token 1 of sentence 0 has nan for 'x'.*Replace it"),
        ({}, [np.array([[1.0, np.inf]])], [["O"]], r"token 0 of sentence 0 has inf for 'feature 1'.*Replace"),
        ({}, X3, [[None] * len(labels) for labels in Y3], r"no token has a label: give at least one"),
        ({}, [["the", "cat"]], [["D", "N"]], r"is the string 'the'.*use feature templates"),
        (
            {"templates": "w[0]"},
            ["the cat"],
            [["D", "N"]],
            r"sentence 0 is 'the cat': with templates, X is a list",
        ),
        (
            {"templates": "w[0]"},
            [["a", 5]],
            [["D", "N"]],
            r"token 1 of sentence 0 is 5.*a string, or a tuple",
        ),
        (
            {"templates": "w[0]"},
            [["a", ("b", "c")]],
            [["D", "N"]],
            r"token 1 of sentence 0.*first token has 1",
        ),
        ({"templates": "p[0]"}, [["a"]], [["D"]], r"'p\[0\]' asks for column 1.*give input with that column"),
        (
            {"scheme": "BIO"},
            [[["a"], ["b"]]],
            [["O", "I-X"]],
            r"token 1 of sentence 0 has label 'I-X' after 'O'",
        ),
        ({"scheme": "XYZ"}, X3, Y3, r"scheme must be one of BIO"),
        ({"forbidden": [("O", "B-Q")]}, X3, Y3, r"'B-Q', which is none of the labels of the training data: "),
        ({"forbidden": ["O"]}, X3, Y3, r"forbidden holds 'O', which is not a pair"),
        ({"forbidden": iter([("O", "O")])}, X3, Y3, r"forbidden must be a list of pairs"),
        ({"algorithm": "sgd"}, X3, Y3, r"algorithm must be one of lbfgs.*but 'sgd'"),
        ({"algorithm": "l2sgd", "c1": 0.1}, X3, Y3, r"'l2sgd' has no L1 penalty: use one of lbfgs"),
        ({"algorithm": "arow", "order": 2}, X3, Y3, r"chains of order 1 only: use 'lbfgs', or order=1"),
        ({"c1": -0.1}, X3, Y3, r"c1 must be a finite number from 0 on"),
        ({"c2": "1"}, X3, Y3, r"c2 must be a finite number"),
        ({"c1": 1.0, "prior_scale": 1.0}, X3, Y3, r"c1 and prior_scale say the same thing: give one"),
        ({"class_weight": {"B-Q": 2.0}}, X3, Y3, r"class_weight names 'B-Q'.*leave it out"),
        ({"n_jobs": 0}, X3, Y3, r"n_jobs must be at least 1, or None or -1"),
        ({"n_jobs": "2"}, X3, Y3, r"n_jobs must be a whole number, or None, but '2'"),
        ({"n_jobs": 1.5}, X3, Y3, r"n_jobs must be a whole number"),
        ({"random_state": -1}, X3, Y3, r"random_state must be a whole number from 0 on"),
        ({"random_state": np.random.RandomState(0)}, X3, Y3, r"random_state must be a whole number"),
        (
            {"early_stopping": True, "validation_fraction": 1.0},
            X3,
            Y3,
            r"validation_fraction must be between",
        ),
        (
            {"early_stopping": True, "validation_fraction": 0.9},
            X3,
            Y3,
            r"leaves none to learn from.*give more",
        ),
        (STOP | {"n_iter_no_change": 0}, X3, Y3, r"n_iter_no_change must be at least 1"),
        ({"trainer_cls": object}, X3, Y3, r"trainer_cls is not supported: leave it out"),
        ({}, 5, [["O"]], r"X is a int, not a list of sentences"),
        ({}, X3, None, r"y (is a NoneType, not|of ChainCRF.fit must be) a list"),
    ],
)
def test_mistakes_are_refused_with_what_to_do(settings, X, y, message):
    with pytest.raises(FactorwiseError, match=message):
        ChainCRF(**settings).fit(X, y)


def test_a_mistake_leaves_an_earlier_fit_as_it_was():
    X, y = task()
    model = ChainCRF().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ShapeError):
        model.fit(X, y[:-1])
    assert model.predict(X) == before


def test_asking_with_labels_never_seen_or_sentences_of_another_form_is_refused():
    model = fitted()
    X = [[{"w": "a"}]]
    with pytest.raises(FactorwiseError, match=r"label 'B-Y'.*Did you mean 'B-X'"):
        model.predict(X, allowed=[["B-Y"]])
    with pytest.raises(FactorwiseError, match=r"label 'B-Y', which is not among the 3"):
        model.log_likelihood(X, [["B-Y"]])
    with pytest.raises(InvalidArgumentError, match=r"every sentence has weight zero: give at least one"):
        ChainCRF().fit(X, [["O"]], sample_weight=[0.0])
    with pytest.raises(InvalidArgumentError, match=r"X_dev and y_dev belong together: give both"):
        ChainCRF().fit(*task(), X_dev=X)
    with pytest.raises(ShapeError, match=r"sentence 0 has 1 tokens, but 2 labels"):
        model.predict(X, allowed=[["O", "O"]])
    with pytest.raises(ShapeError, match=r"X has 1 sentences, but y has 2"):
        model.score(X, [["O"], ["O"]])
    matrices = ChainCRF().fit([np.eye(3)], [["O", "O", "B-X"]])
    with pytest.raises(ShapeError, match=r"2 columns, but there are 3"):
        matrices.predict([np.eye(2)])


def test_sentences_that_the_constraints_leave_no_labels_for_are_named():
    X = [[["a"], ["b"]]]
    model = ChainCRF(scheme="BIOES").fit(X, [["B-X", "E-X"]])
    with pytest.raises(ImpossibleError, match=r"sentence 1 satisfy the constraints"):
        model.predict([*X, [["a"]]])


def test_the_progress_bar_tells_objective_gradient_and_score(capsys):
    X, y = task()
    ChainCRF(verbose=True, max_iterations=5).fit(X, y, X, y)
    shown = capsys.readouterr().err
    assert "training" in shown
    for word in ("objective=", "gradient=", "held-out F1=", "5/5"):
        assert word in shown
    ChainCRF(max_iterations=2).fit(X, y)
    assert capsys.readouterr() == ("", "")
