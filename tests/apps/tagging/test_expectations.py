"""What users of sklearn-crfsuite and seqeval expect of `ChainCRF` and of the scores beside it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate
from sklearn.utils.validation import check_is_fitted

from factorwise import ChainCRF
from factorwise.apps.tagging.prediction import UnseenLabelWarning
from factorwise.metrics import flat
from factorwise.metrics.span_report import span_report

WORDS = [["Anna", "sleeps"], ["Bob", "runs", "home"], ["the", "cat"]]
X = [[{"word": word, "upper": word[0].isupper()} for word in words] for words in WORDS]
Y = [["PER", "O"], ["PER", "O", "O"], ["O", "O"]]


@pytest.fixture(scope="module")
def crf():
    return ChainCRF().fit(X, Y)


@pytest.mark.parametrize("method", ["predict", "predict_marginals", "predict_nbest", "predict_proba"])
def test_a_sentence_without_tokens_has_an_empty_answer_and_others_keep_theirs(crf, method):
    ask = getattr(crf, method)
    answers, alone = ask([[], X[0], [], X[1]]), ask([X[0], X[1]])
    assert len(answers) == 4
    assert len(answers[0]) == len(answers[2]) == 0
    for answer, expected in zip((answers[1], answers[3]), alone, strict=True):
        assert np.array_equal(answer, expected) if method == "predict_proba" else answer == expected


def test_spans_scores_and_forced_labels_take_sentences_without_tokens():
    spans = ChainCRF().fit(X, [["B-P", "O"], ["B-P", "O", "O"], ["O", "O"]])
    assert [len(found) for found in spans.predict_spans([[], X[0]])] == [0, 1]
    assert spans.score([X[0], []], [["B-P", "O"], []]) == 1.0
    assert spans.predict([[], X[0]], allowed=[[], ["O", None]])[1][0] == "O"
    assert spans.predict([[]]) == [[]]


def test_averages_go_on_after_a_pass_without_errors_and_arow_stops_there():
    for algorithm, passes in (("ap", 30), ("pa", 30)):
        assert ChainCRF(algorithm=algorithm, max_iterations=30).fit(X, Y).n_iter_ == passes
    assert ChainCRF(algorithm="arow", max_iterations=30).fit(X, Y).n_iter_ < 30
    assert ChainCRF(algorithm="ap", max_iterations=30, epsilon=1e-9).fit(X, Y).n_iter_ < 30


def test_an_array_in_a_dictionary_is_an_attribute_for_each_number():
    sentences = [[{"w": "a", "emb": np.array([0.5, -1.0])}], [{"w": "b", "emb": np.array([2, 0])}]]
    crf = ChainCRF().fit(sentences, [["A"], ["B"]])
    assert crf.attributes_ == ["w:a", "emb:0", "emb:1", "w:b"]
    written = [[{"w": "a", "emb": {"0": 0.5, "1": -1.0}}], [{"w": "b", "emb": {"0": 2, "1": 0}}]]
    assert crf.predict_marginals(sentences) == crf.predict_marginals(written)
    with pytest.raises(ValueError, match="array of numbers with one dimension"):
        crf.predict([[{"emb": np.zeros((2, 2))}]])


def test_an_explanation_adds_up_to_the_score_of_a_path():
    for order in (1, 2):
        crf = ChainCRF(order=order, c2=0.1).fit(X, Y)
        reasons = crf.explain(X[1])
        assert [reason.label for reason in reasons] == crf.predict([X[1]])[0]
        total = sum(
            sum(by_label.get(reason.label, 0.0) for by_label in reason.added.values())
            + reason.before.get(reason.label, 0.0)
            for reason in reasons
        )
        start = np.array([0, len(X[1])])
        rows, _ = crf.encoder_.encode([X[1]])
        best = next(iter(crf.tagger_.node_scores(rows, start)))
        assert crf.tagger_.k_best(best, 1)[0].score == pytest.approx(total, abs=1e-5)
        assert reasons[0].before == {}
        assert reasons[-1].after == {}


def test_what_follows_a_label_is_part_of_its_explanation(crf):
    first = crf.explain(X[1])[0]
    weights = crf.transition_features_
    assert first.after["PER"] == pytest.approx(weights.get(("PER", "O"), 0.0))
    assert first.after["O"] == pytest.approx(weights.get(("O", "O"), 0.0))


def test_a_model_file_that_is_there_is_read_by_an_estimator_that_was_not_trained(tmp_path, crf):
    path = tmp_path / "names.fw"
    ChainCRF(model_filename=path).fit(X, Y)
    assert ChainCRF(model_filename=path).predict(X) == crf.predict(X)
    with pytest.raises(NotFittedError):
        ChainCRF(model_filename=tmp_path / "other.fw").predict(X)


def test_attributes_are_none_before_training(crf):
    names = "tagger_ classes_ attributes_ num_attributes_ size_ state_features_ transition_features_"
    for name in names.split():
        assert getattr(ChainCRF(), name) is None
        assert getattr(crf, name) is not None
    assert crf.tagger_.labels() == crf.classes_ == ["PER", "O"]
    assert crf.size_ > 1000
    with pytest.raises(NotFittedError):
        check_is_fitted(ChainCRF())
    check_is_fitted(crf)


def test_answers_compare_as_lists_and_as_arrays_of_one_row(crf):
    answers = crf.predict(X)
    assert answers == Y
    assert (answers == Y).all()
    assert (crf.predict(X[:1]) == Y[0]).all()
    assert not (crf.predict(X[:1]) == Y[1]).any()
    assert answers != Y[0]
    assert type(answers.tolist()) is list
    assert np.array(answers, dtype=object).shape == (3,)


def test_probabilities_of_held_out_sentences_come_from_the_models_of_the_folds():
    """scikit-learn's cross_val_predict wants one label for a sentence where it asks for probabilities."""
    folds = cross_validate(ChainCRF(), X * 3, Y * 3, cv=3, return_estimator=True, return_indices=True)
    for model, held_out in zip(folds["estimator"], folds["indices"]["test"], strict=True):
        found = model.predict_proba([(X * 3)[place] for place in held_out])
        assert [len(sentence) for sentence in found] == [len((X * 3)[place]) for place in held_out]


def test_showing_an_estimator_in_a_notebook_warns_of_nothing(crf):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "ChainCRF" in crf._repr_html_()


def test_generators_are_read_sentence_by_sentence(crf):
    sentences = ((token for token in sentence) for sentence in X)
    labels = ((label for label in sentence) for sentence in Y)
    streamed = ChainCRF().fit(sentences, labels)
    assert streamed.state_features_ == crf.state_features_
    assert streamed.predict(iter(X)) == crf.predict(X)


def test_words_of_a_sentence_may_come_from_an_iterator():
    lists = ChainCRF(templates="default").fit(WORDS, Y)
    streamed = ChainCRF(templates="default").fit([iter(words) for words in WORDS], Y)
    assert streamed.predict(WORDS) == lists.predict([iter(words) for words in WORDS])


def test_a_fault_in_a_generator_is_found_in_its_sentence():
    many = (X[0] if number != 1_500 else [{"word": None}] for number in range(2_000))
    with pytest.raises(ValueError, match="token 0 of sentence 1500"):
        ChainCRF().fit(many, [Y[0]] * 2_000)


def test_a_label_that_only_held_out_sentences_have_warns_and_does_not_stop():
    with pytest.warns(UnseenLabelWarning, match="'LOC'"):
        ChainCRF().fit(X, Y, [X[0], X[2]], [["PER", "O"], ["O", "LOC"]])


def test_a_warm_start_keeps_the_labels_and_attributes_of_earlier_sentences():
    crf = ChainCRF(warm_start=True).fit(X, Y)
    crf.fit(X[2:], Y[2:])
    assert crf.classes_ == ["PER", "O"]
    assert {"word:Anna", "word:cat"} <= set(crf.attributes_)
    assert crf.predict(X) == Y


@pytest.mark.parametrize("name", ["bio", "IOB2", "Bio"])
def test_schemes_have_several_names_in_any_case(name):
    labels = [["B-P", "O"], ["B-P", "I-P", "O"], ["O", "O"]]
    assert ChainCRF(scheme=name).fit(X, labels).predict([X[0]]) == [["B-P", "O"]]
    assert "P" in span_report(labels, labels, name)


def test_iob1_allows_a_beginning_only_within_spans_of_its_type():
    labels = [["I-P", "B-P"], ["I-P", "O", "I-L"], ["O", "O"]]
    crf = ChainCRF(scheme="IOB1", all_possible_transitions=True).fit(X, labels)
    allowed = [[{"I-L", "B-P"}, {"B-P", "I-P"}]]
    for path, _ in crf.predict_nbest([X[0]], 50)[0]:
        assert path[0] != "B-P"
        assert path[1] != "B-P" or path[0] == "I-P"
    assert crf.predict([X[0]], allowed=allowed)[0] == ["I-L", "I-P"]


def test_flat_scores_are_those_of_the_joined_labels():
    predicted = [["PER", "O"], ["O", "O", "O"], ["O", "O"]]
    assert flat.flat_accuracy_score(Y, predicted) == pytest.approx(6 / 7)
    assert flat.flat_f1_score(Y, predicted, labels=["PER"], average="micro") == pytest.approx(2 / 3)
    assert flat.flat_precision_score(Y, predicted, labels=["PER"], average="micro") == 1.0
    assert flat.flat_recall_score(Y, predicted, labels=["PER"], average="micro") == 0.5
    assert flat.flat_fbeta_score(Y, predicted, beta=1, labels=["PER"], average="micro") == pytest.approx(
        2 / 3
    )
    assert "PER" in flat.flat_classification_report(Y, predicted, zero_division=0)
    assert flat.sequence_accuracy_score(Y, predicted) == pytest.approx(2 / 3)
    assert flat.sequence_accuracy_score(Y, [["PER"], *predicted[1:]]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="sentence 1 "):
        flat.flat_accuracy_score(Y, [["O", "O"], ["O"], ["O", "O"]])
