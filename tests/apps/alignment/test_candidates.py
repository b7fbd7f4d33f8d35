"""Which pairs are considered."""

import numpy as np
import pytest

from alignment_cases import candidates, table
from factorwise.apps.alignment.candidates import CandidateConfig, candidate_pairs
from factorwise.apps.alignment.vectors import cosines, nearest, tfidf
from factorwise.errors import InvalidArgumentError

NONE = {"words": 0, "letters": 0, "context": 0, "texts": 0, "relatives": False}


def only(**kwargs):
    return CandidateConfig(**(NONE | kwargs))


def test_pairs_are_sorted_unique_and_of_integers():
    left, right = table("upper lip", "lower lip"), table("lip upper", "lower lip")
    pairs = candidate_pairs(left, right)
    assert pairs.dtype == np.int64
    assert pairs.tolist() == [list(pair) for pair in sorted(set(map(tuple, pairs.tolist())))]


def test_words_find_the_nearest_of_each_side():
    left, right = table("upper lip", "heart"), table("heart valve", "upper lip", "upper arm")
    assert candidates(left, right, only(words=1)) == {(0, 1), (1, 0), (0, 2)}


def test_what_shares_nothing_is_no_candidate():
    assert candidates(table("heart"), table("lip")) == set()


def test_letters_find_words_written_together():
    assert candidates(table("gall bladder"), table("zzz", "gallbladder"), only(letters=1)) == {(0, 1)}


def test_the_names_above_help_where_names_are_common():
    left = table(
        "retina", {"label": "inner layer", "part_of": [0]}, "skin", {"label": "inner layer", "part_of": [2]}
    )
    right = table("skin", {"label": "layer", "part_of": [0]}, "retina", {"label": "layer", "part_of": [2]})
    found = candidates(left, right, only(context=1))
    assert {(1, 3), (3, 1)} <= found
    assert not {(1, 1), (3, 3)} & found


def test_texts_find_concepts_whose_names_share_nothing():
    left = table(
        {"label": "x", "instances": (("shop one", "tea and coffee"),)},
        {"label": "y", "comment": "garden tools"},
    )
    right = table(
        {"label": "p", "comment": "tools"}, {"label": "q", "instances": (("shop two", "coffee beans"),)}
    )
    assert candidates(left, right, only(texts=1)) == {(0, 1), (1, 0)}


def test_children_and_parts_of_concepts_with_the_same_name_are_paired():
    left = table("limb", {"label": "arm", "parents": [0]}, {"label": "bone", "part_of": [0]})
    right = table("Limb", {"label": "wing", "parents": [0]}, {"label": "os", "part_of": [0]})
    assert candidates(left, right, only(relatives=True)) == {(1, 1), (2, 2)}


def test_replaced_words_lead_to_candidates():
    left = table("kidney cortex", "kidney pelvis", "kidney tumour")
    right = table("renal cortex", "renal pelvis", "zzz", "renal xylem")
    assert (2, 3) in candidates(left, right, only(words=3))


def test_negative_numbers_are_refused():
    with pytest.raises(InvalidArgumentError, match="words must be zero or more, but -1"):
        CandidateConfig(words=-1)


def test_rare_terms_weigh_more_and_rows_have_length_one():
    left, right = tfidf([["a", "b"], ["a", "c"], []], [["a"], ["b"]])
    lengths = np.sqrt(np.asarray(left.multiply(left).sum(axis=1))).ravel()
    np.testing.assert_allclose(lengths, [1, 1, 0])
    found = cosines(left, right, np.array([[0, 0], [0, 1], [2, 0]]))
    assert found[1] > found[0] > 0 == found[2]


def test_cosines_are_entries_of_the_product():
    rng = np.random.default_rng(0)
    bags = [[str(t) for t in rng.integers(0, 9, 4)] for _ in range(12)]
    left, right = tfidf(bags[:7], bags[7:])
    pairs = np.argwhere(np.ones((7, 5)))
    np.testing.assert_allclose(cosines(left, right, pairs), (left @ right.T).toarray().ravel(), atol=1e-12)


def test_equally_near_rows_are_taken_in_the_order_of_the_file():
    left, right = tfidf([["a"]], [["b"], ["a"], ["a"], ["a"]])
    assert [tuple(pair) for pair in nearest(left, right, 2)[:2].tolist()] == [(0, 1), (0, 2)]
