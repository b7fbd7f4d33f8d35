"""Attributes by templates against a loop over tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.apps.tagging.features import extraction
from factorwise.apps.tagging.features.extraction import TemplateExtractor
from factorwise.apps.tagging.features.templates import TemplateSet, default_templates, function_named
from factorwise.errors import InvalidArgumentError, ModelFileError, ShapeError

TEMPLATES = TemplateSet.parse(
    """
    bias
    w[0]
    lower(w[-1])
    suffix2(w[0])|p[1]
    short_shape(w[0])
    w[-2]|w[-1]|w[0]|w[1]|w[2]
    is_upper(w[1])
    is_title(w[0])|p[0]
    first
    last|shape(w[0])
    c2[-3]
    """
)
WORDS = ["", "The", "the", "THE", "Ünïts", "漢字", "\ud800", "a\0b", "\0", "|", "x" * 40, "<before 1>", "4"]
words = st.sampled_from(WORDS)
sentences = st.lists(
    st.lists(st.tuples(words, st.sampled_from(["N", "V", ""]), words), min_size=1, max_size=5),
    min_size=1,
    max_size=6,
)


def columns_of(sentences):
    tokens = [token for sentence in sentences for token in sentence]
    return [list(column) for column in zip(*tokens, strict=True)], np.cumsum([0, *map(len, sentences)])


def plain_value(part, sentence, token):
    """What a part says of a token: a value, or None when a flag is false."""
    if part.function == "first":
        return () if token == 0 else None
    if part.function == "last":
        return () if token == len(sentence) - 1 else None
    position = token + part.offset
    if not 0 <= position < len(sentence):
        edge = ("before", -position) if position < 0 else ("after", position - len(sentence) + 1)
        return None if part.is_flag else edge
    result = function_named(part.function)(sentence[position][part.column])
    return (() if result else None) if part.is_flag else result


def plain_attributes(templates, sentences):
    """Template and values of each attribute, token by token."""
    tokens = []
    for sentence in sentences:
        for token in range(len(sentence)):
            made = []
            for number, template in enumerate(templates.templates):
                values = [plain_value(part, sentence, token) for part in template.parts]
                if None not in values:
                    made.append((number, *values))
            tokens.append(made)
    return tokens


def rows_of(rows):
    return [rows.indices[a:b].tolist() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]


@given(sentences, sentences, st.sampled_from([1, 2, 2_048]))
def test_attributes_are_numbered_as_a_loop_over_tokens_meets_them(train, test, at_once):
    extractor = TemplateExtractor(TEMPLATES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extraction, "_AT_ONCE", at_once)
        rows, start = extractor.fit_encode(*columns_of(train))
        later, _ = extractor.encode(*columns_of(test))
    code_of = {}
    expected = [
        [code_of.setdefault(attribute, len(code_of)) for attribute in token]
        for token in plain_attributes(TEMPLATES, train)
    ]
    assert rows_of(rows) == expected
    assert rows.values is None
    assert extractor.width == rows.width == len(code_of)
    assert start.tolist() == np.cumsum([0, *map(len, train)]).tolist()
    assert extractor.slots().tolist() == [attribute[0] for attribute in code_of]
    expected = [
        [code_of[attribute] for attribute in token if attribute in code_of]
        for token in plain_attributes(TEMPLATES, test)
    ]
    assert rows_of(later) == expected


@given(sentences, sentences, st.integers(2, 3))
def test_rare_attributes_are_left_out_and_the_others_keep_their_order(train, test, min_frequency):
    extractor = TemplateExtractor(TEMPLATES, min_frequency=min_frequency)
    rows, _ = extractor.fit_encode(*columns_of(train))
    met = plain_attributes(TEMPLATES, train)
    flat = [attribute for token in met for attribute in token]
    frequent = [attribute for attribute in dict.fromkeys(flat) if flat.count(attribute) >= min_frequency]
    code_of = {attribute: code for code, attribute in enumerate(frequent)}
    assert rows_of(rows) == [[code_of[a] for a in token if a in code_of] for token in met]
    assert extractor.width == len(code_of)
    later, _ = extractor.encode(*columns_of(test))
    expected = plain_attributes(TEMPLATES, test)
    assert rows_of(later) == [[code_of[a] for a in token if a in code_of] for token in expected]


def test_encoding_leaves_the_extractor_as_it_was():
    extractor = TemplateExtractor(TEMPLATES)
    extractor.fit_encode([["The", "cat"], ["D", "N"], ["x", "y"]], [0, 2])
    before, _ = extractor.to_arrays()
    extractor.encode([["Some", "other-WORDS", "The"], ["Q", "N", "D"], ["z", "x", "x"]], [0, 1, 3])
    after, _ = extractor.to_arrays()
    assert {name: array.tolist() for name, array in after.items()} == {
        name: array.tolist() for name, array in before.items()
    }


@given(sentences, sentences)
def test_a_restored_extractor_does_the_same(train, test):
    extractor = TemplateExtractor(TEMPLATES, min_frequency=2)
    extractor.fit_encode(*columns_of(train))
    arrays, metadata = extractor.to_arrays()
    assert all(array.dtype.kind in "iu" for array in arrays.values())
    restored = TemplateExtractor.from_arrays(arrays, metadata)
    assert list(restored.names()) == list(extractor.names())
    assert restored.slots().tolist() == extractor.slots().tolist()
    assert restored.templates == TEMPLATES
    assert restored.min_frequency == 2
    first, second = restored.encode(*columns_of(test)), extractor.encode(*columns_of(test))
    assert rows_of(first.rows) == rows_of(second.rows)
    assert first.rows.width == second.rows.width


def test_names_are_made_from_template_and_values():
    extractor = TemplateExtractor(TemplateSet.parse("bias\nw[-1]|is_title(w[0])|lower(w[2])\nlast"))
    extractor.fit_encode([["A", "b", "C", "D"]], [0, 4])
    assert list(extractor.names()) == [
        "bias",
        "w[-1]|is_title(w[0])|lower(w[2])=<before 1>|c",
        "w[-1]|is_title(w[0])|lower(w[2])=b|<after 1>",
        "w[-1]|is_title(w[0])|lower(w[2])=C|<after 2>",
        "last",
    ]
    names = extractor.names()
    assert (len(names), names[-1], names[:2]) == (5, "last", ["bias", names[1]])
    with pytest.raises(IndexError):
        names[5]


def test_the_bundled_sets_run_on_the_columns_they_are_for():
    for count in (1, 2, 3):
        extractor = TemplateExtractor(default_templates(count))
        rows, _ = extractor.fit_encode([["Tom", "ran"]] * count, [0, 2])
        assert extractor.width == len(set(extractor.names()))
        assert len(rows) == 2


def test_thousands_of_tokens_in_sentences_of_all_lengths_come_out_as_from_the_loop(seed):
    rng = np.random.default_rng(seed)
    templates = default_templates(2)
    data = [
        [(f"w{rng.zipf(1.4) % 5_000}", f"p{rng.integers(9)}") for _ in range(size)]
        for size in [3_000, *rng.integers(1, 30, size=120), 1]
    ]
    rows, _ = TemplateExtractor(templates).fit_encode(*columns_of(data))
    code_of = {}
    expected = [
        [code_of.setdefault(attribute, len(code_of)) for attribute in token]
        for token in plain_attributes(templates, data)
    ]
    assert rows_of(rows) == expected


def test_arrays_of_strings_are_columns_too():
    extractor = TemplateExtractor(TemplateSet.parse("w[0]"))
    rows, _ = extractor.fit_encode([np.array(["a", "b", "a"])], np.array([0, 1, 3], dtype=np.int32))
    assert rows.indices.tolist() == [0, 1, 0]


def test_no_sentences_can_be_encoded_but_not_learned_from():
    extractor = TemplateExtractor(TemplateSet.parse("w[0]"))
    with pytest.raises(InvalidArgumentError, match="give at least one"):
        extractor.fit_encode([[]], [0])
    extractor.fit_encode([["a"]], [0, 1])
    rows, start = extractor.encode([[]], [0])
    assert (len(rows), rows.width, start.tolist()) == (0, 1, [0])


@pytest.mark.parametrize(
    ("columns", "start", "error", "message"),
    [
        ([["a", "b"], ["N"]], [0, 2], ShapeError, "column 1 has 1 tokens, but column 0 has 2"),
        ([["a", "b"], ["N", "N"]], [0, 1], ShapeError, "start goes from 0 to 1, but there are 2 tokens"),
        ([["a", "b"], ["N", "N"]], [1, 2], ShapeError, "it must begin with 0"),
        ([["a", "b"], ["N", "N"]], [0, 1, 1, 2], ShapeError, "sentence 1 has no tokens"),
        ([["a", "b"], ["N", "N"]], [0.0, 2.0], ShapeError, "whole numbers"),
        ([["a", "b"], ["N", 7]], [0, 2], InvalidArgumentError, "column 1 of token 1 is 7, not a string"),
        (["ab", "NN"], [0, 2], InvalidArgumentError, "one sentence of words is [words]"),
        ([["a", "b"]], [0, 2], InvalidArgumentError, "asks for column 1"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns, start, error, message):
    extractor = TemplateExtractor(TemplateSet.parse("w[0]\np[0]"))
    with pytest.raises(error) as refused:
        extractor.fit_encode(columns, start)
    assert message in str(refused.value)


def test_a_frequency_below_one_is_refused():
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        TemplateExtractor(TEMPLATES, min_frequency=0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("keys.offsets", lambda array: array[:-1]),
        ("keys.offsets", lambda array: array + 1),
        ("keys.offsets", lambda array: array.astype(np.int32)),
        ("keys.text", lambda array: array + np.uint8(100)),
        ("keys.text", lambda array: array[:-1]),
        ("keys.text", lambda array: np.zeros_like(array)),
        ("column0.text", lambda array: array[:1]),
        ("column0.text", lambda array: np.zeros_like(array)),
        ("column0.lower.offsets", lambda array: array[:0]),
        ("column0.lower.offsets", lambda array: array[::-1].copy()),
    ],
)
def test_damaged_arrays_are_refused(name, change):
    extractor = TemplateExtractor(TemplateSet.parse("lower(w[0])\nw[-1]|w[0]"))
    extractor.fit_encode([["the", "cat", "sat"]], [0, 3])
    arrays, metadata = extractor.to_arrays()
    with pytest.raises(ModelFileError, match="restore the model from a copy"):
        TemplateExtractor.from_arrays({**arrays, name: change(arrays[name])}, metadata)
    del arrays[name]
    with pytest.raises(ModelFileError, match="is missing"):
        TemplateExtractor.from_arrays(arrays, metadata)
