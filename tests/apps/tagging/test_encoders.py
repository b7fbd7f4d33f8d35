"""Which encoder reads which form of sentences, and sentences of words or columns."""

import numpy as np
import pytest
from scipy import sparse

from factorwise.apps.tagging.features.encoders import (
    ColumnEncoder,
    as_sentences,
    choose_encoder,
    restore_encoder,
)
from factorwise.apps.tagging.features.encoding import AttributeEncoder
from factorwise.apps.tagging.features.matrices import MatrixEncoder
from factorwise.apps.tagging.features.templates import FeatureTemplateError, TemplateSet
from factorwise.errors import InvalidArgumentError, ModelFileError, ShapeError

WORDS = [["the", "cat"], ["sat"]]
COLUMNS = [[("the", "D"), ("cat", "N")], [("sat", "V")]]


@pytest.mark.parametrize(
    ("sentences", "templates", "kind"),
    [
        ([[{"w": "a"}]], None, AttributeEncoder),
        ([[["a", "b"]]], None, AttributeEncoder),
        ([], None, AttributeEncoder),
        ("not a list", None, AttributeEncoder),
        (np.array([[{"w": "a"}]], dtype=object), None, AttributeEncoder),
        ([np.array([["a", "b"]])], None, AttributeEncoder),
        ([np.zeros((2, 3))], None, MatrixEncoder),
        (np.zeros((4, 2, 3)), None, MatrixEncoder),
        ([np.zeros((2, 3), dtype=bool)], None, MatrixEncoder),
        ([sparse.csr_matrix((2, 3))], None, MatrixEncoder),
        ([sparse.csc_array((2, 3))], None, MatrixEncoder),
        (WORDS, "w[0]", ColumnEncoder),
        (WORDS, ["w[0]"], ColumnEncoder),
        (WORDS, TemplateSet.parse("w[0]"), ColumnEncoder),
        (WORDS, "default", ColumnEncoder),
    ],
)
def test_the_form_of_the_sentences_decides_the_encoder(sentences, templates, kind):
    assert type(choose_encoder(sentences, templates)) is kind


def test_words_and_columns_become_attributes():
    encoder = choose_encoder(WORDS, "w[0]\nw[-1]|w[0]")
    rows, start = encoder.fit_encode(WORDS)
    assert start.tolist() == [0, 2, 3]
    assert list(encoder.names()) == [
        "w[0]=the",
        "w[-1]|w[0]=<before 1>|the",
        "w[0]=cat",
        "w[-1]|w[0]=the|cat",
        "w[0]=sat",
        "w[-1]|w[0]=<before 1>|sat",
    ]
    assert encoder.width == rows.width == 6
    assert encoder.slots().tolist() == [0, 1, 0, 1, 0, 1]
    again, _ = encoder.encode([["cat", "the"]])
    assert again.to_dense().tolist() == [[0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    "sentences",
    [
        COLUMNS,
        [[list(token) for token in sentence] for sentence in COLUMNS],
        [np.array(sentence) for sentence in COLUMNS],
        tuple(map(tuple, COLUMNS)),
    ],
    ids=["tuples", "lists", "arrays", "all tuples"],
)
def test_a_token_may_be_any_sequence_of_strings(sentences):
    encoder = choose_encoder(sentences, "p[0]")
    rows, _ = encoder.fit_encode(sentences)
    assert list(encoder.names()) == ["p[0]=D", "p[0]=N", "p[0]=V"]
    assert rows.to_dense().tolist() == np.eye(3).tolist()


def test_columns_can_be_given_whole():
    encoder, other = ColumnEncoder(TemplateSet.parse("w[0]|p[0]")), ColumnEncoder(None)
    rows, start = encoder.fit_columns([["the", "cat", "sat"], ["D", "N", "V"]], np.array([0, 2, 3]))
    assert list(encoder.names()) == ["w[0]|p[0]=the|D", "w[0]|p[0]=cat|N", "w[0]|p[0]=sat|V"]
    assert start.tolist() == [0, 2, 3]
    again, _ = encoder.encode_columns([["sat"], ["V"]], np.array([0, 1]))
    assert again.to_dense().tolist() == rows.to_dense()[2:].tolist()
    other.fit_columns([["the", "cat"]], np.array([0, 2]))
    assert not any("p[" in name for name in other.names())


def test_no_sentences_are_no_rows_whatever_the_number_of_columns():
    encoder = choose_encoder(COLUMNS, "w[0]|p[0]")
    encoder.fit_encode(COLUMNS)
    rows, start = encoder.encode([])
    assert (len(rows), rows.width, start.tolist()) == (0, 3, [0])


def test_each_encoder_is_restored_from_its_arrays():
    for sentences, templates in (
        ([[{"w": "a"}, {"x": 2.0}]], None),
        ([np.eye(2)], None),
        (WORDS, "w[0]\nsuffix2(w[0])"),
        (COLUMNS, "default"),
    ):
        encoder = choose_encoder(sentences, templates)
        rows, _ = encoder.fit_encode(sentences)
        again = restore_encoder(*encoder.to_arrays())
        assert type(again) is type(encoder)
        assert list(again.names()) == list(encoder.names())
        assert again.slots().tolist() == encoder.slots().tolist()
        found, _ = again.encode(sentences)
        assert found.to_dense().tolist() == rows.to_dense().tolist()


def test_an_encoder_of_a_later_version_is_refused():
    with pytest.raises(ModelFileError, match=r"encoder is 'dreams'.*upgrade"):
        restore_encoder({}, {"encoder": "dreams"})


def test_what_can_only_be_gone_through_becomes_a_list():
    assert as_sentences(iter(WORDS)) == WORDS
    for kept in (WORDS, tuple(WORDS), np.zeros((1, 2, 3)), {"a": 1}, "text", 5, sparse.csr_matrix((2, 3))):
        assert as_sentences(kept) is kept


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        (["the cat"], InvalidArgumentError, r"sentence 0 is 'the cat': with templates, X is a list"),
        ([["the"], 5], InvalidArgumentError, r"sentence 1 is 5"),
        ([["the"], []], ShapeError, r"sentence 1 has no tokens: leave it out"),
        ([["the", None]], InvalidArgumentError, r"token 1 of sentence 0 is None.*a string, or a tuple"),
        ([["the"], [b"cat"]], InvalidArgumentError, r"token 0 of sentence 1 is b'cat'"),
        ([[("the", 5)]], InvalidArgumentError, r"token 0 of sentence 0 is \('the', 5\).*tuple of strings"),
        ([[()]], InvalidArgumentError, r"token 0 of sentence 0 is \(\)"),
        ([[("a", "b")], ["c"]], InvalidArgumentError, r"token 0 of sentence 1.*1 columns.*first token has 2"),
        ("text", InvalidArgumentError, r"X is a str, not a list of sentences"),
        ({"a": 1}, InvalidArgumentError, r"X is a dict, not a list of sentences"),
    ],
)  # fmt: skip
def test_sentences_of_another_form_are_refused_with_their_place(sentences, error, message):
    encoder = choose_encoder(WORDS, "w[0]")
    with pytest.raises(error, match=message):
        encoder.fit_encode(sentences)
    encoder.fit_encode(WORDS)
    with pytest.raises(error, match=message):
        encoder.encode(sentences)


def test_templates_that_ask_for_a_column_that_is_not_there_are_refused():
    with pytest.raises(FeatureTemplateError, match=r"asks for column 1"):
        choose_encoder(WORDS, "p[0]").fit_encode(WORDS)


def test_encoding_before_learning_is_refused():
    for ask in ("names", "slots", "to_arrays"):
        with pytest.raises(InvalidArgumentError, match=r"call fit_encode first"):
            getattr(ColumnEncoder(None), ask)()
    with pytest.raises(InvalidArgumentError, match=r"call fit_encode first"):
        ColumnEncoder(None).encode(WORDS)
