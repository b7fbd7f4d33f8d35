"""Kinds of fields in a TOML file: what round-trips, and what is refused with the nearest thing known."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.apps.resolution.schema.fields import (
    KINDS,
    FieldSpec,
    fields_from,
    fields_to_toml,
    override,
    read_fields,
)
from factorwise.errors import DataFileError, InvalidArgumentError, MissingDataError

SPECS = [
    FieldSpec("title", "text"),
    FieldSpec("by", "list", {"separator": "|", "items": "name"}, note="a reason"),
    FieldSpec("surname", "name", {"part": "last"}),
    FieldSpec('a"b\\; drop\n.table', "ignore"),
]


def written(folder, text):
    path = folder / "fields.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_fields_survive_the_file(tmp_path):
    assert read_fields(written(tmp_path, fields_to_toml(SPECS))) == SPECS


@settings(deadline=None)
@given(st.text(), st.text(min_size=1))
def test_any_name_and_separator_survives_the_file(name, separator):
    specs = [FieldSpec(name, "list", {"separator": separator})]
    assert fields_from(tomllib.loads(fields_to_toml(specs))) == specs


def test_notes_are_comments():
    assert "# a reason\n[fields.by]" in fields_to_toml(SPECS)


def test_options_have_defaults():
    assert FieldSpec("f", "list").option("separator") == "|"
    assert FieldSpec("f", "name").option("part") == "full"
    assert FieldSpec("f", "name", {"part": "last"}).option("part") == "last"


def test_what_is_given_overrides_what_was_inferred():
    inferred = [FieldSpec("a", "text"), FieldSpec("b", "number")]
    given_ = [FieldSpec("b", "ignore"), FieldSpec("c", "text")]
    assert override(inferred, given_) == [inferred[0], *given_]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[fields.title]\nkind = "txt"', r"'title' has kind 'txt'\. Did you mean 'text'"),
        ("[fields.title]\nkind = 7", "has kind 7"),
        ('[fields.titel]\nkind = "text"', r"no column 'titel'\. Did you mean 'title'"),
        ('[fields.title]\nkind = "name"\nprat = "last"', r"no option 'prat'\. Did you mean 'part'"),
        ('[fields.title]\nkind = "text"\npart = "last"', "no option 'part'.* takes none"),
        ('[fields.title]\nkind = "name"\npart = "middle"', "must be 'full' or 'first' or 'last'"),
        ('[fields.title]\nkind = "list"\nseparator = ""', "separator must be some text"),
        ('[fields.title]\nkinds = "text"', "has no kind"),
        ('[field.title]\nkind = "text"', r"'field' is not known here.*\[fields\.title\]"),
        ("fields = 3", r"Write sections such as \[fields\.title\]"),
        ("[fields.title", "is not TOML"),
    ],
)
def test_what_the_file_may_not_say_is_refused_with_a_remedy(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(DataFileError, match=message) as caught:
        read_fields(path, columns=["title", "year"])
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(MissingDataError, match="Check the path"):
        read_fields(tmp_path / "none.toml")


def test_an_unknown_kind_lists_those_there_are():
    with pytest.raises(InvalidArgumentError, match=", ".join(KINDS)):
        FieldSpec("f", "nonsense")
