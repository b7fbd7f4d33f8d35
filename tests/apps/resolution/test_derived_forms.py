"""Forms that comparisons make of others, against plain Python."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factorwise.apps.resolution.comparisons.derived import RECORD, form_of, grams_of_words, has_form
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError

TEXTS = st.lists(st.none() | st.text(st.sampled_from("aAbé12- 漢😀"), max_size=12), min_size=1, max_size=6)


def forms_of(texts, form, kind="text"):
    normal = normalize(pa.table({"t": pa.array(texts, pa.string())}), [FieldSpec("t", kind)])
    words = [None if text is None else text.split() for text in normal["t"].strings("text").to_list()]
    return words, form_of(normal, "t", form).to_list()


def grams(word):
    return [word[k : k + 3] for k in range(max(len(word) - 2, 1))]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)))
def test_grams_of_a_word_are_its_three_characters_in_a_row(words):
    found = grams_of_words(pa.array(words, pa.string()))
    values = found.values.to_pylist()
    bounds = found.offsets.tolist()
    rows = [[values[code] for code in found.codes[a:b]] for a, b in pairwise(bounds)]
    assert rows == [grams(word) for word in words]


@given(TEXTS)
def test_grams_of_a_text_are_those_of_its_words(texts):
    words, found = forms_of(texts, "grams")
    expected = [None if not row else {gram for word in row for gram in grams(word)} for row in words]
    assert [None if row is None else set(row) for row in found] == expected
    assert all(row is None or len(row) == len(set(row)) for row in found)


def has_digit(word):
    return any(character.isdigit() for character in word)


def codes(words):
    alone = {word for word in words if has_digit(word)}
    joined = {one + two for one, two in pairwise(words) if has_digit(one) or has_digit(two)}
    return alone | joined or None


@given(TEXTS)
def test_codes_are_words_with_a_digit_and_two_words_in_a_row_of_which_one_has_one(texts):
    words, found = forms_of(texts, "codes")
    assert [None if row is None else set(row) for row in found] == [
        None if row is None else codes(row) for row in words
    ]


def test_a_code_is_the_same_with_a_hyphen_a_space_or_neither():
    _, found = forms_of(["recorder VN-4100PC", "VN4100PC", "the vn 4100PC."], "codes")
    assert set.intersection(*map(set, found)) == {"vn4100pc"}


def test_the_words_of_a_record_are_those_of_all_its_fields():
    table = pa.table(
        {
            "title": ["Red fox", None, "Fox"],
            "by": ["Smith, Anna|B. Lee", None, None],
            "year": [1999, None, 2001],
            "zip": ["AB-12", None, None],
            "point": ["1.5, 2.5", None, None],
        }
    )
    specs = [
        FieldSpec("title", "text"),
        FieldSpec("by", "list", {"separator": "|", "items": "name"}),
        FieldSpec("year", "number"),
        FieldSpec("zip", "identifier"),
        FieldSpec("point", "location", {"part": "point"}),
    ]
    normal = normalize(table, specs)
    found = form_of(normal, RECORD, "tokens").to_list()
    assert set(found[0]) == {"red", "fox", "anna", "smith", "b", "lee", "1999", "ab12"}
    assert found[1] is None
    assert set(found[2]) == {"fox", "2001"}
    assert form_of(normal, RECORD, "tokens") is form_of(normal, RECORD, "tokens")  # made once
    grams_of_third = form_of(normal, RECORD, "grams").to_list()[2]
    assert set(grams_of_third) == {"fox", "200", "001"}


def test_a_table_without_words_has_records_without_words():
    normal = normalize(pa.table({"p": ["1, 2"]}), [FieldSpec("p", "location", {"part": "point"})])
    assert form_of(normal, RECORD, "grams").to_list() == [None]


def test_a_column_with_the_name_of_the_whole_record_is_a_column():
    normal = normalize(
        pa.table({RECORD: ["x1 y"], "b": ["z"]}), [FieldSpec(c, "text") for c in (RECORD, "b")]
    )
    assert set(form_of(normal, RECORD, "tokens").to_list()[0]) == {"x1", "y"}
    assert has_form(normal, RECORD, "codes")


def test_a_form_that_cannot_be_made_is_refused_with_those_that_are_there():
    normal = normalize(pa.table({"n": [1.0]}), [FieldSpec("n", "number")])
    assert not has_form(normal, "n", "grams")
    with pytest.raises(InvalidArgumentError, match=r"has no form 'grams'; it has number"):
        form_of(normal, "n", "grams")
