"""Spans and their scores: what seqeval 1.2.2 finds, case by case, and what must hold for any labels."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.metrics.sequence import (
    SCHEMES,
    Score,
    SpanCounter,
    confusion,
    label_scores,
    score_spans,
    spans,
    token_accuracy,
)

# Sentences, and the spans in them according to seqeval's default mode, ends made exclusive.
LENIENT = {
    "B-X I-X O B-Y": [("X", 0, 2), ("Y", 3, 4)],
    "I-X I-X O I-Y": [("X", 0, 2), ("Y", 3, 4)],
    "B-X I-Y I-Y": [("X", 0, 1), ("Y", 1, 3)],
    "I-X B-X I-X": [("X", 0, 1), ("X", 1, 3)],
    "B-X E-X S-X E-X I-X": [("X", 0, 2), ("X", 2, 3), ("X", 3, 4), ("X", 4, 5)],
    "O E-X E-X O": [("X", 1, 2), ("X", 2, 3)],
    "S-X I-X E-X": [("X", 0, 1), ("X", 1, 3)],
    "B-X S-Y I-Y": [("X", 0, 1), ("Y", 1, 2), ("Y", 2, 3)],
    "B I O I": [("_", 0, 2), ("_", 3, 4)],
    "B . I": [("_", 0, 3)],
    "B-X . I-X": [("X", 0, 1), ("X", 2, 3)],
    "B-X .-X I-X": [("X", 0, 3)],
    "B- I-_ I": [("_", 0, 3)],
    "BX IX I-X": [("X", 0, 3)],
    "B-A-B I-A-B I-B": [("A-B", 0, 2), ("B", 2, 3)],
    "PER PER LOC O ORG": [("ER", 0, 2), ("OC", 2, 3)],
    "NP-SBJ NP-SBJ B-X": [("SBJ", 0, 2), ("X", 2, 3)],
    "U-X U-X L-Y": [("X", 0, 2), ("Y", 2, 3)],
    "-X --X B-": [("X", 0, 2), ("_", 2, 3)],
    "O U B-X": [("_", 0, 2), ("X", 2, 3)],
    "B-X O U I-X": [("X", 0, 1), ("_", 0, 3), ("X", 3, 4)],
    "O-X U-X B-Y": [("X", 0, 2), ("Y", 2, 3)],
    "O O": [],
    "": [],
}
# The same for seqeval's strict mode.
STRICT = [
    ("IOB1", "B-X I-X", [("X", 1, 2)]),
    ("IOB1", "I-X I-X B-X I-X I-Y", [("X", 0, 2), ("X", 2, 4), ("Y", 4, 5)]),
    ("IOB1", "O B-X B-X I-X", [("X", 2, 4)]),
    ("IOB1", "I-X B-Y I-Y", [("X", 0, 1), ("Y", 2, 3)]),
    ("IOB2", "B-X I-X I-X B-X", [("X", 0, 3), ("X", 3, 4)]),
    ("IOB2", "I-X I-X O B-Y", [("Y", 3, 4)]),
    ("IOB2", "B-X I-Y I-Y", [("X", 0, 1)]),
    ("IOB2", "B--X- IX", [("X", 0, 2)]),
    ("IOE1", "I-X E-X I-X", [("X", 0, 2), ("X", 2, 3)]),
    ("IOE1", "E-X E-X I-X", [("X", 1, 2), ("X", 2, 3)]),
    ("IOE1", "I-X E-X", []),
    ("IOE1", "O E-X I-X", [("X", 2, 3)]),
    ("IOE2", "I-X E-X E-Y", [("X", 0, 2), ("Y", 2, 3)]),
    ("IOE2", "I-X I-X O E-X", [("X", 3, 4)]),
    ("IOE2", "I-X I-Y E-Y", [("Y", 1, 3)]),
    ("IOBES", "B-X I-X E-X S-Y", [("X", 0, 3), ("Y", 3, 4)]),
    ("IOBES", "B-X O S-X", [("X", 2, 3)]),
    ("IOBES", "B-X E-Y B-X E-X", [("X", 2, 4)]),
    ("IOBES", "B-X B-X E-X", [("X", 1, 3)]),
    ("IOBES", "B E S", [("_", 0, 2), ("_", 2, 3)]),
    ("BILOU", "B-X I-X L-X U-Y", [("X", 0, 3), ("Y", 3, 4)]),
    ("BILOU", "U-X L-X", [("X", 0, 1)]),
    ("BILOU", "B-X I-Y L-Y", []),
]


def sentences(*texts):
    return [text.split() for text in texts]


TRUTH = sentences("B-PER I-PER O B-LOC", "O I-LOC I-LOC O B-PER", "B-ORG I-ORG E-ORG", "O")
PREDICTED = sentences("B-PER I-PER O B-PER", "O B-LOC I-LOC O I-PER", "B-ORG I-ORG O", "B-MISC")


def assert_score(score, precision, recall, f1, support, predicted):
    assert (score.precision, score.recall, score.f1) == pytest.approx((precision, recall, f1), abs=1e-15)
    assert (score.support, score.predicted) == (support, predicted)


@st.composite
def annotated(draw):
    """A sentence as spans in order: type, first token, token after the last."""
    found, position = [], 0
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from("XY")), max_size=6)
    ):
        found.append((kind, position + gap, position + gap + length))
        position += gap + length
    return found, position + draw(st.integers(0, 2))


def written(found, length, scheme):
    """Label the tokens of the spans by the definition of a scheme."""
    labels = ["O"] * length
    for index, (kind, first, after) in enumerate(found):
        last = after - 1
        prefixes = dict.fromkeys(range(first, after), "I")
        touches = [other[0] == kind and first == other[2] for other in found[:index]]
        touched = [other[0] == kind and after == other[1] for other in found[index + 1 :]]
        if scheme in ("IOB2", "IOBES", "BILOU") or (scheme == "IOB1" and any(touches)):
            prefixes[first] = "B"
        if scheme in ("IOE2", "IOBES") or (scheme == "IOE1" and any(touched)):
            prefixes[last] = "E"
        if scheme == "BILOU":
            prefixes[last] = "L"
        if scheme in ("IOBES", "BILOU") and first == last:
            prefixes[first] = "S" if scheme == "IOBES" else "U"
        for token, prefix in prefixes.items():
            labels[token] = f"{prefix}-{kind}"
    return labels


MIXED = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in "XY")]


@st.composite
def pairs_of_labels(draw, labels=MIXED):
    """True and predicted sentences of the same lengths, often with the same label."""
    truth = draw(st.lists(st.lists(st.sampled_from(labels), max_size=8), max_size=4))
    changes = st.sampled_from([None] * len(labels) + list(labels))
    return truth, [[draw(changes) or label for label in sentence] for sentence in truth]


@pytest.mark.parametrize(("text", "expected"), LENIENT.items())
def test_any_labels_are_read_as_seqeval_reads_them_by_default(text, expected):
    assert spans(text.split()) == expected


@pytest.mark.parametrize(("scheme", "text", "expected"), STRICT)
def test_schemes_count_only_what_seqeval_counts_in_strict_mode(scheme, text, expected):
    assert spans(text.split(), scheme) == expected


def test_no_span_reaches_into_the_next_sentence():
    scores = score_spans(sentences("B-X", "I-X"), sentences("B-X", "O"))
    assert_score(scores.types["X"], 1.0, 0.5, 2 / 3, 2, 1)
    assert score_spans(sentences("B-X", "I-X"), sentences("B-X", "I-X"), "IOB2").micro.support == 1


def test_scores_are_those_of_a_seqeval_report():
    scores = score_spans(TRUTH, PREDICTED)
    assert list(scores.types) == ["LOC", "MISC", "ORG", "PER"]
    assert_score(scores.types["LOC"], 1.0, 0.5, 2 / 3, 2, 1)
    assert_score(scores.types["MISC"], 0.0, 0.0, 0.0, 0, 1)
    assert_score(scores.types["ORG"], 0.0, 0.0, 0.0, 1, 1)
    assert_score(scores.types["PER"], 2 / 3, 1.0, 0.8, 2, 3)
    assert_score(scores.micro, 0.5, 0.6, 0.5454545454545454, 5, 6)
    assert_score(scores.macro, 0.41666666666666663, 0.375, 0.3666666666666667, 5, 6)
    assert_score(scores.weighted, 0.6666666666666666, 0.6, 0.5866666666666667, 5, 6)


def test_strict_scores_are_those_of_a_strict_seqeval_report():
    scores = score_spans(TRUTH[:2], PREDICTED[:2], "IOB2")
    assert_score(scores.types["LOC"], 0.0, 0.0, 0.0, 1, 1)
    assert_score(scores.types["PER"], 0.5, 0.5, 0.5, 2, 2)
    assert_score(scores.micro, 1 / 3, 1 / 3, 1 / 3, 3, 3)
    assert_score(scores.macro, 0.25, 0.25, 0.25, 3, 3)
    assert_score(scores.weighted, 1 / 3, 1 / 3, 1 / 3, 3, 3)


@pytest.mark.parametrize(("truth", "predicted"), [([], []), ([[]], [[]]), ([["O"]], [["O"]])])
def test_without_spans_every_score_is_zero(truth, predicted):
    scores = score_spans(truth, predicted)
    assert scores.types == {}
    assert scores.micro == scores.macro == scores.weighted == Score(0.0, 0.0, 0.0, 0, 0)


def test_scores_become_json():
    record = json.loads(json.dumps(score_spans(TRUTH, PREDICTED).as_dict()))
    assert record["types"]["PER"]["support"] == 2
    assert record["micro"]["recall"] == 0.6


@given(annotated(), st.sampled_from(SCHEMES))
def test_spans_written_in_a_scheme_are_read_back(case, scheme):
    found, length = case
    labels = written(found, length, scheme)
    # seqeval misses a span of one token in front of another of its type, unless E stands before it too.
    missed = [
        (kind, first, after)
        for kind, first, after in found
        if scheme == "IOE1"
        and labels[first] == f"E-{kind}"
        and after == first + 1
        and labels[first - 1 : first] != labels[first:after]
    ]
    assert spans(labels, scheme) == [span for span in found if span not in missed]
    if scheme != "BILOU":  # the lenient reading knows neither L nor U
        assert spans(labels) == found


@given(st.sampled_from(SCHEMES), st.data())
def test_strict_spans_are_separate_and_lie_within_the_sentence(scheme, data):
    prefixes = set(scheme) & set("BIESLU")
    pool = ["O", *(f"{prefix}-{kind}" for prefix in sorted(prefixes) for kind in "XY")]
    labels = data.draw(st.lists(st.sampled_from(pool)))
    free = 0
    for kind, first, after in spans(labels, scheme):
        assert free <= first < after <= len(labels)
        assert {label[1:] for label in labels[first:after]} == {f"-{kind}"}
        free = after


@given(st.lists(st.sampled_from(MIXED)))
def test_lenient_spans_cover_exactly_the_labels_other_than_o(labels):
    covered = [token for _, first, after in spans(labels) for token in range(first, after)]
    assert covered == [token for token, label in enumerate(labels) if label != "O"]


@given(pairs_of_labels(), st.sampled_from([None, "IOBES"]))
def test_counts_are_those_of_sets_of_spans(case, scheme):
    truth, predicted = case
    true_set, predicted_set = (
        {(number, *span) for number, labels in enumerate(side) for span in spans(labels, scheme)}
        for side in case
    )
    scores = score_spans(truth, predicted, scheme)
    common = len(true_set & predicted_set)
    assert scores.micro == Score.of(common, len(true_set), len(predicted_set))
    for kind, score in scores.types.items():
        right, true, found = (
            sum(span[1] == kind for span in side)
            for side in (true_set & predicted_set, true_set, predicted_set)
        )
        assert score == Score.of(right, true, found)


@given(pairs_of_labels())
def test_exchanging_truth_and_prediction_exchanges_precision_and_recall(case):
    there, back = score_spans(*case), score_spans(*reversed(case))
    assert there.micro.precision == back.micro.recall
    assert there.macro.recall == back.macro.precision
    assert there.micro.f1 == pytest.approx(back.micro.f1)


@given(pairs_of_labels("ABC"))
def test_token_measures_agree_with_counting(case):
    truth, predicted = ([label for sentence in side for label in sentence] for side in case)
    labels, matrix = confusion(*case)
    assert labels == tuple(sorted({*truth, *predicted}))
    for row, true in enumerate(labels):
        for column, found in enumerate(labels):
            assert matrix[row, column] == list(zip(truth, predicted, strict=True)).count((true, found))
    right = sum(map(str.__eq__, truth, predicted))
    assert token_accuracy(*case) == (right / len(truth) if truth else 0.0)
    scores = label_scores(*case)
    assert list(scores) == list(labels)
    for label, score in scores.items():
        both = sum(a == b == label for a, b in zip(truth, predicted, strict=True))
        assert score == Score.of(both, truth.count(label), predicted.count(label))


def test_token_accuracy_is_that_of_seqeval():
    assert token_accuracy(TRUTH, PREDICTED) == 0.6153846153846154


def test_codes_and_strings_give_the_same_scores():
    names = sorted({label for sentence in TRUTH + PREDICTED for label in sentence})[::-1]
    truth, predicted = (
        np.array([names.index(label) for sentence in side for label in sentence])
        for side in (TRUTH, PREDICTED)
    )
    start = np.cumsum([0, *map(len, TRUTH)])
    counter = SpanCounter([*names, "B-UNUSED"])
    assert counter.scores(truth, predicted, start) == score_spans(TRUTH, PREDICTED)
    counts = counter.counts(truth, predicted, start)
    assert counter.types == ("LOC", "MISC", "ORG", "PER", "UNUSED")
    assert counts.n_true.tolist() == [2, 0, 1, 2, 0]
    assert counts.n_predicted.tolist() == [1, 1, 1, 3, 0]
    assert counts.n_right.tolist() == [1, 0, 0, 2, 0]


def test_spans_of_many_sentences_are_found_at_their_places_among_all_tokens():
    counter = SpanCounter(["O", "B-X", "I-X"])
    found = counter.find([1, 2, 2, 0, 0, 1, 2], [0, 0, 2, 3, 3, 7])
    assert found.start.tolist() == [0, 2, 5]
    assert found.end.tolist() == [2, 3, 7]
    assert found.type.tolist() == [0, 0, 0]


def test_labels_that_are_not_labels_of_spans_are_named():
    assert SpanCounter(["O", "B-X", "E-X", "NN", "B", "L-X", "VBZ"]).unusual == ("NN", "B", "L-X", "VBZ")
    assert SpanCounter(["O", "L-X", "B"], "BILOU").unusual == ("B",)


def test_labels_outside_a_scheme_are_refused_with_its_prefixes():
    remedy = r"'S-X' is not a label of the scheme IOB2, whose labels are O, B-TYPE, I-TYPE\..*scheme=None"
    with pytest.raises(InvalidArgumentError, match=remedy):
        spans(["O", "S-X"], "IOB2")


def test_an_unknown_scheme_is_refused_with_the_known_ones():
    with pytest.raises(InvalidArgumentError, match=r"None or one of IOB1, IOB2, .*'BOI' was given"):
        spans(["O"], "BOI")


@pytest.mark.parametrize("measure", [score_spans, token_accuracy, label_scores, confusion])
def test_sentences_that_do_not_match_are_named(measure):
    with pytest.raises(ShapeError, match=r"sentence 1 \(counted from 0\) has 2 true labels but 1 predicted"):
        measure(sentences("O", "O O", "O"), sentences("O", "O", "O O"))
    with pytest.raises(ShapeError, match=r"2 true sentences but 1 predicted.*sentence 1 .*has no partner"):
        measure(sentences("O", "O"), sentences("O"))


@pytest.mark.parametrize("labels", [["B-X", "O"], "BIO"])
def test_labels_not_in_sentences_are_refused(labels):
    with pytest.raises(InvalidArgumentError, match=r"predicted must be sentences.*put it into another list"):
        score_spans([["B-X"], ["O"]], labels)


@pytest.mark.parametrize("label", ["", None, 3])
def test_labels_that_are_not_words_are_refused(label):
    with pytest.raises(InvalidArgumentError, match=f"one or more letters, but {re.escape(repr(label))}"):
        score_spans([["O"]], [[label]])


@pytest.mark.parametrize(
    ("codes", "error", "remedy"),
    [
        ([0, 1], ShapeError, "one code for every token"),
        ([[0, 1, 1]], ShapeError, "one code for every token"),
        ([0, 1, 2], InvalidArgumentError, "from 0 to 1, .* int64 from 0 to 2 was given"),
        ([0, 1, -1], InvalidArgumentError, "from -1 to 1 was given. Leave out tokens without a label"),
        ([0.0, 1.0, 1.0], InvalidArgumentError, "float64 from"),
    ],
)
def test_codes_that_do_not_fit_are_refused(codes, error, remedy):
    with pytest.raises(error, match=f"predicted .*{remedy}"):
        SpanCounter(["O", "B-X"]).counts([0, 0, 0], codes, [0, 3])


@pytest.mark.parametrize("start", [[], [1, 3], [0, 3, 2], [[0, 3]]])
def test_starts_of_sentences_that_cannot_be_are_refused(start):
    with pytest.raises(ShapeError, match="begin with 0 and never fall"):
        SpanCounter(["O"]).find([0, 0, 0], start)
