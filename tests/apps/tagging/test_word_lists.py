"""Columns looked up from words, columns of numbers, and classes made from unlabelled text."""

from __future__ import annotations

import numpy as np
import pytest

from factorwise.apps.tagging.estimator import ChainCRF
from factorwise.apps.tagging.features.encoders import ColumnEncoder, restore_encoder
from factorwise.apps.tagging.features.extraction import TemplateExtractor
from factorwise.apps.tagging.features.templates import FeatureTemplateError, TemplateSet, default_templates
from factorwise.apps.tagging.features.word_classes import learn_word_classes, read_vectors
from factorwise.apps.tagging.features.word_lists import Gazetteer, WordClasses
from factorwise.errors import DataFileError, InvalidArgumentError

CITIES = Gazetteer.of("city", ["New York", "new york city", "Boston", ""])


def test_longest_phrase_counts_and_ends_with_its_sentence() -> None:
    words = ["NEW", "York", "City", "boston", "new", "york", "new"]
    assert CITIES.column(words, np.array([0, 6, 7])) == ["B", "I", "E", "S", "B", "E", "-"]
    assert CITIES.column(words, np.array([0, 2, 7])) == ["B", "E", "-", "S", "B", "E", "-"]


def test_gazetteers_that_are_none_are_refused() -> None:
    with pytest.raises(DataFileError, match="has no phrases: write one a line"):
        Gazetteer.of("city", ["", " "])
    with pytest.raises(DataFileError, match="Write one phrase a line"):
        Gazetteer.of("city", ["word " * 51])


def test_classes_are_looked_up_in_three_forms() -> None:
    [classes] = WordClasses.parse("k", ["cat\t1", "0000\t2", "Polish\t3", "polish\t4"])
    assert classes.column(["Cat", "1984", "Polish", "POLISH", "dog"], np.array([0, 5])) == [
        *("1", "2", "3", "4", "-")
    ]


def test_every_column_of_classes_and_brown_paths_are_read() -> None:
    assert [c.name for c in WordClasses.parse("k", ["cat\t1\t7", "dog\t1\t8"])] == ["k1", "k2"]
    paths = WordClasses.parse("brown", ["0110101\tcat\t12", "1\tdog\t3"])
    assert [(c.name, c.classes["cat"]) for c in paths][:2] == [("brown4", "0110"), ("brown6", "011010")]
    with pytest.raises(DataFileError, match=r"line 2: 1 columns.*Write word<TAB>class on every line"):
        WordClasses.parse("k", ["cat\t1", "dog"])


def test_a_tagger_learns_from_a_gazetteer_and_keeps_it(tmp_path) -> None:
    X = [["we", "saw", "Rome"], ["Ann", "left", "New", "York"], ["Bob", "met", "Ann"]]
    y = [["O", "O", "B"], ["O", "O", "B", "I"], ["O", "O", "O"]]
    cities = {"city": ["Rome", "New York", "Los Angeles", "Oslo"]}
    crf = ChainCRF(templates="default", gazetteers=cities, word_classes={"k": {"ann": "n"}}).fit(X, y)
    unseen = [["Bob", "saw", "Los", "Angeles"]]
    assert crf.predict(unseen) == [["O", "O", "B", "I"]]
    crf.save(tmp_path / "model.fw")
    assert ChainCRF.load(tmp_path / "model.fw").predict(unseen) == crf.predict(unseen)
    assert any(name.startswith("city[0]") for name in crf.encoder_.names())
    with pytest.raises(InvalidArgumentError, match="give templates"):
        ChainCRF(gazetteers=cities).fit(X, y)


def test_encoders_with_lists_are_the_same_after_saving() -> None:
    lists = [CITIES, *WordClasses.parse("k", ["cat\t1\t2"])]
    encoder = ColumnEncoder(None, lists)
    encoder.fit_encode([["a", "Boston", "cat"]])
    again = restore_encoder(*encoder.to_arrays())
    assert list(again.names()) == list(encoder.names())
    rows, other = encoder.encode([["cat", "boston"]]).rows, again.encode([["cat", "boston"]]).rows
    np.testing.assert_array_equal(rows.to_dense(), other.to_dense())


def test_numbers_are_values_of_attributes_within_their_sentence() -> None:
    extractor = TemplateExtractor(TemplateSet.parse("w[0]\nvalue(c1[0])\nvalue(c1[-1])"))
    rows, _ = extractor.fit_encode([["a", "b", "a"], ["0.5", "0", "-2"]], [0, 2, 3])
    expected = [[1, 0, 0.5, 0], [0, 1, 0, 0.5], [1, 0, -2, 0]]
    np.testing.assert_array_equal(rows.to_dense(), np.array(expected, dtype=np.float32))
    assert list(extractor.names())[2:] == ["value(p[0])", "value(p[-1])"]
    again = TemplateExtractor.from_arrays(*extractor.to_arrays())
    np.testing.assert_array_equal(again.encode([["b"], ["7"]], [0, 1]).rows.to_dense(), [[0, 1, 7, 0]])
    with pytest.raises(InvalidArgumentError, match="token 1 is 'x', where a finite number should be"):
        extractor.encode([["a", "b"], ["1", "x"]], [0, 2])


def test_numbers_stand_alone_and_not_first() -> None:
    with pytest.raises(FeatureTemplateError, match=r"value\(...\) stands alone"):
        TemplateSet.parse("value(c1[0])|w[0]")
    with pytest.raises(FeatureTemplateError, match="first column holds numbers"):
        default_templates(2, (0,))
    assert "value(p[0])" in default_templates(2, (1,)).lines()
    assert "is_alnum(w[0])" in default_templates(2, (1,)).lines()


def test_words_between_the_same_neighbors_are_in_one_class() -> None:
    rng = np.random.default_rng(0)
    animals, verbs = ["cat", "dog", "cow", "pig"], ["eats", "sees", "hears", "likes"]
    text = [["the", str(rng.choice(animals)), str(rng.choice(verbs)), "it", "."] for _ in range(400)]
    classes = learn_word_classes(text, (3,), seed=1)
    for group in (animals, verbs):
        assert len({classes[word] for word in group}) == 1
    assert classes["cat"] != classes["eats"]
    with pytest.raises(DataFileError, match="give more text"):
        learn_word_classes([["once"]])


def test_vectors_are_read_as_others_write_them() -> None:
    words, vectors = read_vectors(["2 3", "cat 1 2 3", "dog 0 0 -1"], "v.txt")
    assert words == ["cat", "dog"]
    assert vectors.tolist() == [[1, 2, 3], [0, 0, -1]]
    with pytest.raises(DataFileError, match=r"v.txt, line 2.*Give word vectors as text"):
        read_vectors(["cat 1 2", "dog 1"], "v.txt")
