"""Labels whole, missing and ambiguous."""

import numpy as np
import pytest

from factorwise.apps.tagging.labels import LabelEncoder, UnseenLabelError
from factorwise.errors import InvalidArgumentError, ShapeError, UnknownLabelError


def test_labels_get_codes_in_order_of_first_appearance():
    encoder = LabelEncoder()
    codes, partial, allowed = encoder.fit_encode([["B", "O"], ["A"], ("O", "B")], [0, 2, 3, 5])
    assert encoder.labels == ("B", "O", "A")
    assert codes.tolist() == [0, 1, 2, 1, 0]
    assert codes.dtype == np.int32
    assert (len(partial), allowed.shape) == (0, (0, 3))


def test_missing_labels_may_be_any_and_ambiguous_ones_those_listed():
    encoder = LabelEncoder()
    y = [["A", None, ["B", "A"]], [("C",), {"C", "D"}, "A"]]
    codes, partial, allowed = encoder.fit_encode(y, [0, 3, 6])
    assert encoder.labels == ("A", "B", "C", "D")
    assert codes.tolist() == [0, -1, -1, 2, -1, 0]
    assert partial.tolist() == [1, 2, 4]
    assert allowed.tolist() == [[True] * 4, [True, True, False, False], [False, False, True, True]]


def test_the_codes_of_sets_do_not_depend_on_their_order():
    labels = [f"L{number}" for number in range(30)]
    encoder = LabelEncoder()
    encoder.fit_encode([[set(labels), "A"]], [0, 2])
    assert encoder.labels == (*sorted(labels), "A")


def test_labels_given_in_advance_come_first():
    encoder = LabelEncoder(["O", "B", "O"])
    codes, _, allowed = encoder.fit_encode([["X", None]], [0, 2])
    assert encoder.labels == ("O", "B", "X")
    assert codes.tolist() == [2, -1]
    assert allowed.tolist() == [[True, True, True]]
    assert LabelEncoder(["O"]).fit_encode([[None]], [0, 1]).allowed.tolist() == [[True]]


def test_labels_may_be_anything_hashable():
    encoder = LabelEncoder()
    codes, _, _ = encoder.fit_encode([[3, True, "3", np.str_("x"), "x", np.int64(3), b"x"]], [0, 7])
    assert encoder.labels == (3, True, "3", "x", b"x")
    assert codes.tolist() == [0, 1, 2, 3, 3, 0, 4]
    assert [type(label) for label in encoder.labels] == [int, bool, str, str, bytes]
    assert LabelEncoder().fit_encode([np.array(["N", "V"])], [0, 2]).codes.tolist() == [0, 1]


def test_known_labels_are_encoded_as_they_were_learned():
    encoder = LabelEncoder()
    encoder.fit_encode([["A", "B", "C"]], [0, 3])
    codes, partial, allowed = encoder.encode([["C", None], [["C", "A"], "B"]], [0, 2, 4])
    assert codes.tolist() == [2, -1, -1, 1]
    assert partial.tolist() == [1, 2]
    assert allowed.tolist() == [[True, True, True], [True, False, True]]
    assert encoder.labels == ("A", "B", "C")


@pytest.mark.parametrize("label", ["B-PERS", ["O", "B-PERS"]])
def test_a_label_unseen_at_training_is_refused_with_its_place(label):
    encoder = LabelEncoder()
    encoder.fit_encode([["B-PER", "O"]], [0, 2])
    with pytest.raises(UnseenLabelError) as refused:
        encoder.encode([["O"], ["O", label]], [0, 1, 3])
    assert isinstance(refused.value, UnknownLabelError)
    assert "token 1 of sentence 1 has the label 'B-PERS'" in str(refused.value)
    assert "the 2 seen at training (B-PER, O). Did you mean 'B-PER'? Correct it" in str(refused.value)
    assert encoder.labels == ("B-PER", "O")


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([["A", "B"]], ShapeError, "X has 2 sentences, but y has 1"),
        ([["A", "B"], ["A", "B"]], ShapeError, "sentence 1 has 1 tokens, but 2 labels"),
        ([["A"], ["A"]], ShapeError, "sentence 0 has 2 tokens, but 1 labels"),
        (["AB", "A"], InvalidArgumentError, "the labels of sentence 0 are 'AB', not a list"),
        (["A", "B"], InvalidArgumentError, "For a single sentence, give [y]"),
        ("AB", InvalidArgumentError, "y is a str, not a list of sentences"),
        (None, InvalidArgumentError, "y is a NoneType"),
        ([["A", "B"], [[]]], InvalidArgumentError, "token 0 of sentence 1 may have none of the labels"),
        ([["A", "B"], [["A", None]]], InvalidArgumentError, "give a string, or None alone"),
        ([["A", float("nan")], ["A"]], InvalidArgumentError, "token 1 of sentence 0 has nan for a label"),
        ([["A", {"a": 1}], ["A"]], InvalidArgumentError, "token 1 of sentence 0 has {'a': 1} for a label"),
        ([[None, None], [None]], InvalidArgumentError, "no token has a label"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit_are_refused(y, error, message):
    with pytest.raises(error) as refused:
        LabelEncoder().fit_encode(y, [0, 2, 3])
    assert message in str(refused.value)
