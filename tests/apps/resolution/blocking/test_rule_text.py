"""Blocking rules as text."""

import pytest

from factorwise.apps.resolution.blocking.pool import atoms
from factorwise.apps.resolution.blocking.rule_text import parse_rule, read_rules
from factorwise.apps.resolution.blocking.rules import Part, Rule
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError
from resolution_cases import people_table

FIELDS = [
    FieldSpec("author", "name"),
    FieldSpec("family name", "name", {"part": "last"}),
    FieldSpec("title", "text"),
    FieldSpec("born", "date"),
    FieldSpec("price", "number"),
    FieldSpec("others", "list"),
    FieldSpec("note", "ignore"),
]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("last name of author", [Part("author", "last")]),
        ("last name + first initial of author", [Part("author", "last"), Part("author", "first_initial")]),
        ("author + born", [Part("author", "full"), Part("born", "date")]),
        ("family name", [Part("family name", "last")]),
        ("first 3 letters of last name of author", [Part("author", "last", "prefix", 3)]),
        ("first 6 letters of title", [Part("title", "text", "prefix", 6)]),
        ("sound of last name of author", [Part("author", "last_sound")]),
        ("sound of title", [Part("title", "text", "sound")]),
        ("word + word of title", [Part("title", "tokens", "items")] * 2),
        ("rare word of title", [Part("title", "tokens", "items", 4, most=100)]),
        ("item of others + year of born", [Part("others", "items", "items"), Part("born", "year")]),
        ("number to 5 of price", [Part("price", "number", "rounded", 5.0)]),
        ("3-shingle minhash, band of 4 of title", [Part("title", "text", "bands", 3, bands=10, rows=4)]),
    ],
)
def test_a_text_is_read_as_the_rule_that_it_describes(text, parts):
    assert parse_rule(text, FIELDS) == Rule(tuple(parts))


@pytest.mark.parametrize("text", ["", "last name", "year of nothing", "author +", "note"])
def test_a_part_without_a_column_is_refused_with_the_columns(text):
    with pytest.raises(InvalidArgumentError, match=r"names no column.*the columns are author, family name"):
        parse_rule(text, FIELDS)


def test_names_of_rules_are_read_back():
    table = people_table(20)
    fields = [FieldSpec(name, "text") for name in table.column_names]
    for parts, _ in atoms(fields, normalize(table, fields), 20):
        assert parse_rule(Rule(parts).name, fields) == Rule(parts)


def test_rules_and_texts_can_be_mixed():
    rule = Rule((Part("title", "text"),))
    assert read_rules([rule, "title"], FIELDS) == [rule, rule]
