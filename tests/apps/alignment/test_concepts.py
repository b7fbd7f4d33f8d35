"""Words, stems and hierarchies of concepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_cases import table
from factorwise.apps.alignment.concepts import STOP_WORDS, content_words, head_word, stem, words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Upper_Lip", ("upper", "lip")),
        ("upperLip", ("upper", "lip")),
        ("XMLFile2", ("xml", "file", "2")),
        ("T12_Vertebra", ("t", "12", "vertebra")),
        ("cranial nerve VIII", ("cranial", "nerve", "8")),
        ("lobule XIV", ("lobule", "14")),
        ("third ventricle", ("3", "ventricle")),
        ("Getränke", ("getraenke",)),
        ("café", ("cafe",)),
        ("Henle's loop", ("henle", "s", "loop")),
        ("ηπαρ", ("ηπαρ",)),
        ("", ()),
        ("--", ()),
    ],
)
def test_names_are_taken_apart(text, found):
    assert words(text) == found


@given(st.text())
def test_words_are_lower_case_and_not_empty(text):
    assert all(word and word == word.lower() for word in words(text))


def test_stop_words_go_unless_nothing_else_is_there():
    assert content_words("Body_of_the_Pancreas") == ("body", "pancreas")
    assert content_words("Fisch und Wurst") == ("fisch", "wurst")
    assert content_words("of the") == ("of", "the")
    assert "lip" not in STOP_WORDS


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("Body_of_the_Pancreas", "body"),
        ("pancreas body", "body"),
        ("Fish and Chips", "chips"),
        ("of mice", "mice"),
        ("", ""),
    ],
)
def test_the_head_of_a_name_says_what_kind_of_thing_it_is(text, head):
    assert head_word(text) == head


@pytest.mark.parametrize(
    "forms",
    [("thymus", "thymic"), ("intestine", "intestinal"), ("ovary", "ovarian"), ("trachea", "tracheal")],
)
def test_forms_of_a_word_share_a_stem(forms):
    assert stem(forms[0]) == stem(forms[1])


def test_stems_keep_four_letters():
    assert [stem(word) for word in ("rib", "ribs", "nails", "12")] == ["rib", "ribs", "nail", "12"]


def test_the_hierarchy_is_known_upwards_and_downwards():
    found = table(
        "body", {"label": "organ", "parents": [0]}, {"label": "heart", "parents": [1], "part_of": [0]}, "x"
    )
    assert found.children == ((1,), (2,), (), ())
    assert found.parts == ((2,), (), (), ())
    assert found.ancestors == (frozenset(), {0}, {0, 1}, frozenset())
    assert found.depth == (0, 1, 2, 0)


def test_a_whole_that_is_below_its_part_leaves_ancestors_finite():
    found = table({"label": "a", "part_of": [1]}, {"label": "b", "parents": [0]})
    assert found.ancestors == ({1}, {0})


def test_what_lies_outside_the_file_is_left_out():
    assert table({"label": "a", "parents": ["elsewhere"], "part_of": ["there"]}).ancestors == (frozenset(),)


def test_names_are_the_label_and_the_synonyms_that_differ_from_it():
    (names,) = table({"label": "Upper_Lip", "synonyms": ("upper lip", "labrum", "--")}).names
    assert [name.text for name in names] == ["Upper_Lip", "labrum"]
