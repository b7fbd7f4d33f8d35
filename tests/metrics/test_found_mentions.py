"""Scores of entities over mentions that a program found itself."""

import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.metrics.coreference import score_clusterings, score_found_mentions


def clusters(*groups):
    """The cluster of each letter."""
    return {letter: number for number, group in enumerate(groups) for letter in group}


def test_the_example_of_the_reference_scorer():
    """Pradhan et al. (2014), Scoring coreference partitions of predicted mentions: Table 1, to two digits."""
    key, response = clusters("abc", "defg"), clusters("ab", "cd", "fghi")
    scores = score_found_mentions([key], [response])
    assert scores.muc == pytest.approx((0.4, 0.4, 0.4))
    assert scores.b_cubed == pytest.approx((0.5, 35 / 84, 2 * 0.5 * 35 / 84 / (0.5 + 35 / 84)))
    assert scores.ceaf_e[:2] == pytest.approx((1.3 / 3, 1.3 / 2))
    assert scores.mentions[:2] == pytest.approx((6 / 8, 6 / 7))
    assert scores.conll == pytest.approx((scores.muc.f1 + scores.b_cubed.f1 + scores.ceaf_e.f1) / 3)


def test_with_the_same_mentions_the_scores_are_those_of_clusterings():
    key, response = clusters("abc", "de", "f"), clusters("ab", "cd", "ef")
    found = score_found_mentions([key], [response])
    given = score_clusterings([key[x] for x in "abcdef"], [response[x] for x in "abcdef"])
    for name in ("muc", "b_cubed", "ceaf_e", "lea", "conll"):
        assert getattr(found, name) == pytest.approx(getattr(given, name))
    assert found.mentions.f1 == 1.0


def test_documents_are_pooled_and_may_lack_mentions():
    scores = score_found_mentions([clusters("ab"), clusters("c")], [{}, clusters("c")])
    assert (scores.mentions.precision, scores.mentions.recall) == pytest.approx((1.0, 1 / 3))
    assert scores.b_cubed.recall == pytest.approx(1 / 3)
    assert (scores.documents, scores.true_mentions, scores.predicted_mentions) == (2, 3, 1)
    with pytest.raises(InvalidArgumentError, match="no true mentions"):
        score_found_mentions([{}], [clusters("a")])
