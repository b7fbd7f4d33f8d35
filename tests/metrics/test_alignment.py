"""Matches against a reference: scores of sets of pairs, and the curve over confidences."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.metrics.alignment import MatchCurve, best_threshold, match_curve, score_matches
from factorwise.metrics.sequence import Score

REFERENCE = [("ear", "Ohr"), ("eye", "Auge"), ("nose", "Nase"), ("hand", "Hand")]
PREDICTED = [("eye", "Ei"), ("ear", "Ohr"), ("hand", "Hand"), ("hand", "Rand"), ("eye", "Auge")]
CONFIDENCES = [0.6, 0.9, 0.6, 0.1, 0.4]

pairs = st.tuples(st.sampled_from("abcd"), st.integers(0, 3))
references = st.lists(pairs, min_size=1, unique=True)
predictions = st.lists(st.tuples(pairs, st.sampled_from([0.0, 0.25, 0.5, 1.0])), unique_by=lambda row: row[0])


def split(rows):
    return [pair for pair, _ in rows], [confidence for _, confidence in rows]


def test_a_match_is_right_if_the_reference_has_it():
    score = score_matches(REFERENCE, PREDICTED)
    assert (score.precision, score.recall, score.f1) == pytest.approx((3 / 5, 3 / 4, 2 / 3))
    assert (score.support, score.predicted) == (4, 5)


def test_the_sides_of_a_match_are_not_interchangeable():
    assert score_matches(REFERENCE, [(right, left) for left, right in REFERENCE[:3]]).precision == 0.0


def test_no_prediction_scores_zero():
    assert score_matches(REFERENCE, []) == Score(0.0, 0.0, 0.0, support=4, predicted=0)
    assert best_threshold(REFERENCE, [], []) == (np.inf, Score(0.0, 0.0, 0.0, 4, 0))
    assert len(match_curve(REFERENCE, [], []).precision) == 0


@given(references, predictions)
def test_scores_are_those_of_sets(reference, rows):
    predicted, _ = split(rows)
    right = len(set(reference) & set(predicted))
    assert score_matches(reference, predicted) == Score.of(right, len(reference), len(predicted))
    if predicted:
        back = score_matches(predicted, reference)
        assert score_matches(reference, predicted).recall == back.precision


def test_the_curve_falls_through_the_confidences_and_keeps_ties_together():
    curve = match_curve(REFERENCE, PREDICTED, CONFIDENCES)
    assert curve.threshold.tolist() == [0.9, 0.6, 0.4, 0.1]
    assert curve.precision.tolist() == [1.0, 2 / 3, 3 / 4, 3 / 5]
    assert curve.recall.tolist() == [1 / 4, 2 / 4, 3 / 4, 3 / 4]
    assert curve.f1 == pytest.approx([2 / 5, 4 / 7, 3 / 4, 2 / 3])
    assert curve.best == best_threshold(REFERENCE, PREDICTED, CONFIDENCES)
    assert curve.best == (0.4, Score(3 / 4, 3 / 4, 3 / 4, support=4, predicted=4))


@given(references, predictions)
def test_every_point_of_the_curve_is_the_score_at_its_threshold(reference, rows):
    predicted, confidences = split(rows)
    curve = match_curve(reference, predicted, confidences)
    assert curve.threshold.tolist() == sorted(set(confidences), reverse=True)
    for point, threshold in enumerate(curve.threshold):
        score = score_matches(reference, predicted, confidences, threshold=threshold)
        assert curve.at(point) == (threshold, score)
        assert (curve.precision[point], curve.recall[point]) == (score.precision, score.recall)
        assert curve.f1[point] == pytest.approx(score.f1)
    assert (np.diff(curve.recall) >= 0).all()


@given(references, predictions.filter(bool), st.randoms(use_true_random=False))
def test_no_threshold_beats_the_best_one_whatever_the_order(reference, rows, random):
    predicted, confidences = split(rows)
    best = best_threshold(reference, predicted, confidences)
    for threshold in confidences:
        score = score_matches(reference, predicted, confidences, threshold=threshold)
        assert score.f1 <= best.score.f1 + 1e-12
        if score.f1 == best.score.f1:
            assert score.predicted >= best.score.predicted
    random.shuffle(rows)
    assert best_threshold(reference, *split(rows)) == best


def test_equal_best_points_leave_the_fewer_matches():
    # Two of four right at 2 predicted, three of four at 5: F1 is 2/3 at both.
    curve = MatchCurve(np.array([0.9, 0.5]), np.array([2, 3]), np.array([2, 5]), 4)
    assert curve.best.threshold == 0.9


def test_pairs_may_be_lists_arrays_or_come_one_by_one():
    as_array = np.array(PREDICTED)
    assert score_matches(iter(map(list, REFERENCE)), as_array) == score_matches(REFERENCE, PREDICTED)


def test_scores_become_json():
    best = best_threshold(REFERENCE, PREDICTED, np.array(CONFIDENCES))
    assert json.loads(json.dumps([best.threshold, asdict(best.score)]))[1]["support"] == 4


@pytest.mark.parametrize("name", ["reference", "predicted"])
def test_repeated_pairs_are_refused(name):
    sides = {"reference": REFERENCE, "predicted": PREDICTED}
    sides[name] = [*sides[name], sides[name][1]]
    place = len(sides[name]) - 1
    remedy = rf"{name} has the pair .* twice, at 1 and {place} \(counted from 0\): give each pair once"
    with pytest.raises(InvalidArgumentError, match=remedy):
        score_matches(**sides)


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("ab", "not a pair"),
        (("a", "b", 0.5), "not a pair"),
        (("a",), "not a pair"),
        ({"a", "b"}, "not a pair"),
        ({"left": "a", "right": "b"}, "not a pair"),
        (None, "not a pair"),
        (7, "not a pair"),
        (("a", None), "missing"),
        ((float("nan"), "b"), "missing"),
        ((["a"], "b"), "cannot be hashed"),
        (("a", np.array([1, 2])), "cannot be hashed"),
    ],
)
def test_what_is_no_pair_is_refused(entry, wrong):
    remedy = rf"predicted has .* at 1 \(counted from 0\), .*{wrong}: give a left and a right concept"
    with pytest.raises(InvalidArgumentError, match=remedy):
        score_matches(REFERENCE, [("ear", "Ohr"), entry])


@pytest.mark.parametrize("function", [score_matches, match_curve, best_threshold])
def test_an_empty_reference_is_refused(function):
    with pytest.raises(InvalidArgumentError, match=r"reference has no pairs.*give at least one"):
        function([], PREDICTED, CONFIDENCES)


@pytest.mark.parametrize("function", [score_matches, match_curve, best_threshold])
@pytest.mark.parametrize(
    ("confidences", "error", "remedy"),
    [
        (
            [0.1, 0.2],
            ShapeError,
            r"shape \(2,\), but there are 5 predicted pairs: give one confidence for each",
        ),
        ([CONFIDENCES], ShapeError, "one confidence for each"),
        ([0.1, 0.2, None, 0.3, 0.4], InvalidArgumentError, "NaN at 2 .*or leave the pair out"),
        ([0.1, 0.2, 0.3, 0.4, float("nan")], InvalidArgumentError, "NaN at 4"),
        (["high"] * 5, InvalidArgumentError, "confidences must be numbers"),
    ],
)
def test_confidences_that_do_not_fit_are_refused(function, confidences, error, remedy):
    with pytest.raises(error, match=remedy):
        function(REFERENCE, PREDICTED, confidences)


def test_a_threshold_needs_confidences_and_is_a_number():
    with pytest.raises(InvalidArgumentError, match=r"threshold of 0.5 was given without confidences"):
        score_matches(REFERENCE, PREDICTED, threshold=0.5)
    with pytest.raises(InvalidArgumentError, match=r"threshold must be a number, but nan was given"):
        score_matches(REFERENCE, PREDICTED, CONFIDENCES, threshold=float("nan"))
