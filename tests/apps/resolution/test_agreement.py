"""Records beside the columns that a resolver was learned from."""

import numpy as np
import pyarrow as pa
import pytest

import factorwise as fw
from factorwise.apps.resolution.schema.agreement import (
    FEWEST,
    check_columns,
    check_declared,
    check_sources_meet,
    describe_unread_values,
    extra_columns,
)
from factorwise.apps.resolution.schema.fields import KINDS, FieldSpec
from factorwise.errors import InvalidArgumentError

VALUES = {
    "name": "Ann Lee",
    "text": "a red house",
    "number": "3.5",
    "date": "1999-12-31",
    "category": "red",
    "identifier": "AB-17",
    "list": "red|green",
    "address": "12 High Street",
    "email": "ann@mail.org",
    "phone": "0123 456789",
    "location": "Leeds",
    "vector": "[0.5, -1.25]",
    "scores": {"id": "a", "others": ["b"], "log_odds": [0.5]},
    "source": "one shop",
    "ignore": "anything",
}


def table(value, rows=FEWEST):
    return pa.table({"id": list(range(rows)), "x": [value] * rows})


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_the_kind_that_was_learned_are_accepted(kind):
    check_columns(table(VALUES[kind]), [FieldSpec("x", kind)])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scores"])  # which are never text
@pytest.mark.parametrize("value", [None, "", "unknown", "n/a", "-"])
def test_missing_values_are_of_every_kind(kind, value):
    check_columns(table(value), [FieldSpec("x", kind)])


@pytest.mark.parametrize("kind", ["number", "date"])
def test_a_column_of_which_no_value_can_be_read_is_refused_and_one_with_a_few_such_is_not(kind):
    field = [FieldSpec("x", kind)]
    with pytest.raises(
        InvalidArgumentError, match=rf"kind {kind}\), but holds text that is none, such as 'so"
    ):
        check_columns(table("soon"), field)
    check_columns(table("soon", FEWEST - 1), field)
    mixed = pa.table({"x": ["soon"] * FEWEST + [VALUES[kind]]})
    check_columns(mixed, field)


@pytest.mark.parametrize("kind", ["number", "date"])
def test_values_that_cannot_be_read_are_reported_if_they_are_many(kind):
    field = [FieldSpec("x", kind)]
    some_unread = pa.table({"x": ["soon"] * 3 + [VALUES[kind]] * 7})
    (text,) = describe_unread_values(some_unread, field)
    assert text.startswith(f"30% of the values of column 'x' cannot be read as a {kind}, such as 'soon'")
    assert describe_unread_values(pa.table({"x": ["soon"] + [VALUES[kind]] * 30}), field) == []
    assert describe_unread_values(pa.table({"x": [None, ""] * 9 + [VALUES[kind]] * 9}), field) == []
    assert describe_unread_values(pa.table({"x": [1.0] * 9}), field) == []


@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_are_looked_at_however_they_are_stored(form):
    given = pa.table({"x": pa.array(["soon"] * FEWEST).cast(form)})
    with pytest.raises(InvalidArgumentError, match="none, such as 'soon'"):
        check_columns(given, [FieldSpec("x", "date")])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_column_of_any_type_is_of_every_kind(kind):
    for form in (pa.float64(), pa.int64(), pa.null(), pa.list_(pa.string())):
        check_columns(pa.table({"x": pa.nulls(FEWEST, form)}), [FieldSpec("x", kind)])


def test_kinds_that_columns_are_declared_to_be_of_are_looked_at_too():
    fields = [FieldSpec("x", "email"), FieldSpec("elsewhere", "date"), FieldSpec("id", "ignore")]
    with pytest.raises(
        InvalidArgumentError, match=r"kind email\), but its type is int64\. Declare another kind"
    ):
        check_declared(table(7), fields)
    check_declared(table("ann@mail.org"), fields)


@pytest.mark.parametrize("kind", ["name", "email", "address", "list"])
def test_numbers_are_no_names_nor_addresses(kind):
    with pytest.raises(InvalidArgumentError, match="its type is int64"):
        check_columns(table(7), [FieldSpec("x", kind)])


@pytest.mark.parametrize("kind", ["text", "number", "date", "category", "identifier", "phone"])
def test_numbers_may_be_years_codes_and_quantities(kind):
    check_columns(table(1999), [FieldSpec("x", kind)])


def test_lists_are_for_fields_of_lists_alone():
    check_columns(table(["red", "green"]), [FieldSpec("x", "list")])
    with pytest.raises(InvalidArgumentError, match=r"its type is list"):
        check_columns(table(["red", "green"]), [FieldSpec("x", "text")])


def test_missing_columns_are_named_with_those_that_are_not_known():
    fields = [FieldSpec("a", "text"), FieldSpec("b", "text"), FieldSpec("c", "ignore")]
    given = pa.table({"id": [1], "a": ["x"], "d": ["y"]})
    with pytest.raises(InvalidArgumentError, match=r"there is no column 'b'.* does not know: 'd'\."):
        check_columns(given, fields, ["id"])
    assert extra_columns(given, fields, ["id"]) == ["d"]


def test_a_source_without_a_column_in_common_is_refused():
    """Two tables under one another, of which one has other columns, or none that is filled."""
    names = pa.table({"name": ["a b", "c d", None, ""], "title": [None, "", "e f", "g h"]})
    sources = np.array([0, 0, 1, 1])
    with pytest.raises(InvalidArgumentError, match=r"in common.*it has 'name', others have 'title'"):
        check_sources_meet(names, ["name", "title"], sources)
    shared = names.append_column("year", pa.array([1999, None, 2001, None]))
    check_sources_meet(shared, ["name", "title", "year"], sources)
    check_sources_meet(names, ["name", "title"], np.zeros(4, int))
    with pytest.raises(InvalidArgumentError, match="no column in common"):
        fw.EntityResolver(n_jobs=1).fit(names, constraints=fw.resolution.Constraints(sources=sources))
