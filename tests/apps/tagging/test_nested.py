"""Spans within spans: levels, learning, files."""

import numpy as np
import pytest

from factorwise.apps.tagging.nested import NestedTagger, labels_by_level
from factorwise.errors import InvalidArgumentError, ModelFileError

WORDS = ("her", "sister", "'s", "husband", "saw", "him")
SPANS = [("PRO", 0, 1), ("NOM", 0, 2), ("NOM", 0, 4), ("PRO", 5, 6)]
SENTENCES = [WORDS, ("he", "saw", "her", "sister"), ("husband", "saw", "her")] * 4
KNOWN = [SPANS, [("PRO", 0, 1), ("NOM", 2, 4), ("PRO", 2, 3)], [("PRO", 2, 3)]] * 4


@pytest.fixture(scope="module")
def tagger():
    return NestedTagger(n_jobs=1).fit(SENTENCES, KNOWN)


def test_each_level_has_spans_around_those_below():
    first, second, third = labels_by_level(6, SPANS, 3)
    assert first == ["B-PRO", "O", "O", "O", "O", "B-PRO"]
    assert second == ["B-NOM", "I-NOM", "O", "O", "O", "O"]
    assert third == ["B-NOM", "I-NOM", "I-NOM", "I-NOM", "O", "O"]


def test_what_is_too_deep_crosses_or_comes_twice_is_left_out():
    assert labels_by_level(6, SPANS, 2)[1] == ["B-NOM", "I-NOM", "O", "O", "O", "O"]
    assert labels_by_level(4, [("A", 0, 2), ("B", 1, 3)], 2) == [["B-A", "I-A", "O", "O"], ["O"] * 4]
    assert labels_by_level(2, [("A", 0, 2), ("B", 0, 2)], 2) == [["B-A", "I-A"], ["O", "O"]]
    with pytest.raises(InvalidArgumentError, match="from 1 to 3 does not lie in a sentence of 2 words"):
        labels_by_level(2, [("A", 1, 3)], 1)


def test_nested_spans_are_found_with_their_probability(tagger):
    found = tagger.predict_spans(SENTENCES[:2])
    assert [(span.kind, span.start, span.end) for span in found[0]] == [
        ("NOM", 0, 4), ("NOM", 0, 2), ("PRO", 0, 1), ("PRO", 5, 6)
    ]  # fmt: skip
    assert len(tagger.taggers_) == 3
    assert all(0.5 < span.confidence <= 1.0 for spans in found for span in spans)


def test_a_saved_tagger_finds_the_same_and_a_damaged_one_is_refused(tagger, tmp_path):
    tagger.save(tmp_path / "nested.fw")
    again = NestedTagger.load(tmp_path / "nested.fw", n_jobs=1)
    assert again.predict_spans(SENTENCES) == tagger.predict_spans(SENTENCES)
    content = bytearray((tmp_path / "nested.fw").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "bad.fw").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"bad\.fw"):
        NestedTagger.load(tmp_path / "bad.fw")


def test_mistakes_are_told():
    with pytest.raises(InvalidArgumentError, match="call fit, or load a saved one"):
        NestedTagger().predict_spans([["a"]])
    with pytest.raises(InvalidArgumentError, match="there are no spans to learn from"):
        NestedTagger().fit([["a"]], [[]])
    with pytest.raises(InvalidArgumentError, match="2 sentences and 1 lists of spans"):
        NestedTagger().fit([["a"], ["b"]], [[]])
    with pytest.raises(InvalidArgumentError, match="levels"):
        NestedTagger(levels=0).fit([["a"]], [[]])


def test_spans_of_one_level_lie_apart():
    rng = np.random.default_rng(3)
    for _ in range(200):
        starts = rng.integers(0, 8, 6)
        spans = [("A", int(s), int(s + rng.integers(1, 4))) for s in starts]
        levels = labels_by_level(12, spans, 3)
        for labels in levels:
            assert all(labels[i - 1] != "O" for i in range(1, 12) if labels[i] == "I-A")
