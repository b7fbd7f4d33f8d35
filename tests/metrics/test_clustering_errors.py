"""What is no clustering is refused with a remedy."""

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.metrics.clustering import (
    Contingency,
    adjusted_rand_index,
    b_cubed,
    pairwise,
    pooled,
    rand_index,
    tally_b_cubed,
)
from factorwise.metrics.coreference import (
    blanc,
    ceaf_e,
    ceaf_m,
    conll_average,
    lea,
    muc,
    score_clusterings,
    score_documents,
)

FUNCTIONS = [
    pairwise,
    b_cubed,
    muc,
    ceaf_e,
    ceaf_m,
    blanc,
    lea,
    rand_index,
    adjusted_rand_index,
    conll_average,
    score_clusterings,
]


class NotAvailable:
    """Refuses to say whether it equals itself, as the missing values of some libraries do."""

    def __eq__(self, other):
        raise TypeError("ambiguous")

    def __hash__(self):
        return 0

    def __repr__(self):
        return "<NA>"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_sides_of_different_lengths_are_refused(function):
    with pytest.raises(ShapeError, match=r"truth has 3 labels but predicted has 2: .*for every item"):
        function([0, 0, 1], [0, 1])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("empty", [[], np.array([], dtype=int), np.array([])])
def test_nothing_is_not_scored(function, empty):
    with pytest.raises(InvalidArgumentError, match="nothing to compare: give two labels"):
        function(empty, empty)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ([1, None, 2], "None"),
        (["a", float("nan"), "b"], "nan"),
        (np.array([1.0, np.nan, 2.0]), "nan"),
        (np.array([1, None, 2], dtype=object), "None"),
        (np.ma.array([1, 2, 3], mask=[False, True, False]), "None"),
        (np.array(["2020-01-01", "NaT", "2020-01-02"], dtype="datetime64[D]"), "None"),
        ([1, NotAvailable(), 2], "<NA>"),
    ],
)
def test_missing_labels_are_found(labels, shown):
    remedy = f"predicted has the label {shown} at item 1 .*leave the item out on both sides, or, if it is"
    with pytest.raises(InvalidArgumentError, match=remedy):
        b_cubed([0, 0, 1], labels)


def test_labels_that_cannot_be_hashed_are_found():
    with pytest.raises(
        InvalidArgumentError, match=r"truth has the label \[2\] at item 1 .*strings or tuples"
    ):
        b_cubed([(1,), [2]], [0, 0])


@pytest.mark.parametrize("labels", ["ab", b"ab", {0: 1, 1: 2}, {0, 1}, 5, None])
def test_what_has_no_order_or_is_one_word_is_refused(labels):
    remedy = f"truth must be a list or an array .*but a {type(labels).__name__} was given"
    with pytest.raises(InvalidArgumentError, match=remedy):
        Contingency.of(labels, [0, 0])


@pytest.mark.parametrize("labels", [np.zeros((2, 2)), np.array(3), np.zeros((1, 2), dtype=int)])
def test_labels_in_another_number_of_dimensions_are_refused(labels):
    with pytest.raises(ShapeError, match=r"predicted has the shape \(.*in one dimension"):
        Contingency.of([0, 0], labels)


def test_errors_in_documents_name_the_document():
    with pytest.raises(
        ShapeError, match=r"truth of document 1 \(counted from 0\) has 2 labels but predicted"
    ):
        score_documents([[0], [0, 0]], [[0], [0]])
    with pytest.raises(InvalidArgumentError, match=r"predicted of document 2 .* label None at item 0"):
        pooled(tally_b_cubed, [[0], [], [0]], [[0], [], [None]])


def test_documents_without_a_partner_are_refused():
    with pytest.raises(
        ShapeError, match=r"truth has 2 documents but predicted has 1: .*an empty list for one"
    ):
        score_documents([[0], []], [[0]])


@pytest.mark.parametrize("documents", [[], [[], []]])
def test_documents_without_any_items_are_not_scored(documents):
    with pytest.raises(InvalidArgumentError, match=f"none of the {len(documents)} documents has items"):
        score_documents(documents, documents)


def test_labels_not_in_documents_are_refused():
    with pytest.raises(InvalidArgumentError, match=r"truth of document 0 .*must be a list or an array"):
        score_documents(["a", "b"], [[0], [0]])
    with pytest.raises(InvalidArgumentError, match="truth must be a list with the labels of each document"):
        score_documents("ab", [[0], [0]])
