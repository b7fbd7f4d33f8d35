"""Infer the kinds of columns from samples of their values and, with less weight, from their names.

The tests run in a fixed order, from specific patterns (an @, a date) to unspecific ones. The first test that
applies decides, and the field's note gives the reason. Nothing here is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.lists import is_list
from factorwise.apps.resolution.normalize.vector_forms import is_vector, read_vectors
from factorwise.apps.resolution.pair_scores import is_pair_scores
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.schema.header_words import FIRST_NAME_WORDS, LAST_NAME_WORDS, header_words
from factorwise.apps.resolution.schema.samples import (
    CODE,
    DIGITS,
    EMAIL,
    FULL_DATE,
    NUMBER,
    NUMBER_BY_COMMA,
    PHONE,
    POINT,
    POSTCODE,
    VECTOR,
    YEAR,
    ColumnSample,
    is_compact_date,
    is_month_of_year,
    items_sample,
    persons,
    sample_of,
    single_names,
)

MOST = 0.8  # least share of values that match a pattern for the column to match it
_FEW_ROWS = 20  # least number of values for distinct or repeated values to be meaningful

_MANY = frozenset(
    {
        "authors",
        "author",
        "coauthors",
        "coauthor",
        "editors",
        "editor",
        "inventors",
        "coinventors",
        "creators",
    }
    | {"creator", "contributors", "actors", "members"}
)
_PLACES = frozenset(
    {"place", "city", "town", "suburb", "location", "county", "country", "region", "birthplace", "locality"}
    | {"village", "district", "state", "province"}
)
_PERSONS = frozenset({"name", "person", "patient", "customer", "client", "employee", "inventor", "contact"})
_THINGS = frozenset(
    {"title", "venue", "journal", "affiliation", "organization", "organisation", "institution", "company"}
    | {"publisher", "assignee", "department", "product", "brand", "manufacturer"}
)
_CLASSES = frozenset({"class", "type", "category", "group", "venue", "journal", "community", "status", "sex"})
_CODES = frozenset(
    {"id", "code", "zip", "zipcode", "postcode", "postal", "ssn", "soc", "isbn", "issn", "doi", "sku", "upc"}
    | {"ean", "number", "no", "nr", "key", "uuid", "imei", "vin", "plz", "account", "licence", "license"}
)
_PHONES = frozenset({"phone", "telephone", "tel", "fax", "mobile", "cell"})
_DATES = frozenset({"date", "dob", "birth", "birthdate", "day", "born", "died", "death"})
_ADDRESSES = frozenset({"address", "addr", "street", "road"})

Test = Callable[[str, frozenset[str], ColumnSample], FieldSpec | None]


def infer_kinds(table: pa.Table, *, leave_out: Iterable[str] = ()) -> list[FieldSpec]:
    """Return a field for every column except those left out, such as the id and the true entity.

    A column without information (no values, a single value, or codes that are all distinct) gets the kind
    ``ignore`` and a note with the reason.
    """
    skipped = set(leave_out)
    return [infer_kind(name, table.column(name)) for name in table.column_names if name not in skipped]


def infer_kind(name: str, column: pa.ChunkedArray) -> FieldSpec:
    """Return the field of one column, with the inferred kind."""
    if pa.types.is_null(column.type) or column.null_count == len(column):
        return FieldSpec(name, "ignore", note="all values are missing")
    if is_pair_scores(column.type):
        return FieldSpec(name, "scores", note="scores of pairs by another tool")
    if is_vector(column.type):
        lengths = pc.unique(pc.list_value_length(column).drop_null())
        some = [length for length in lengths.to_pylist() if length]
        if len(some) == 1 and some[0] > 1:
            return FieldSpec(name, "vector", {"length": str(some[0])}, f"of type {column.type}")
    if is_list(column.type):
        return _list_column(name, column)
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return FieldSpec(name, "ignore", note=f"values of type {column.type} cannot be compared")
    if pa.types.is_boolean(column.type):
        return FieldSpec(name, "category", note="true or false")
    if pa.types.is_temporal(column.type):
        return FieldSpec(name, "date", note=f"of type {column.type}")
    sample = sample_of(column)
    if sample.share(VECTOR) >= MOST:
        length = next(value for value in column.to_pylist() if value and "," in value).count(",") + 1
        return FieldSpec(name, "vector", {"length": str(length)}, "lists of numbers in brackets")
    if not sample.values:
        return FieldSpec(name, "ignore", note="no value of a sample says anything")
    if sample.distinct == 1 and pc.count_distinct(column).as_py() == 1:
        return FieldSpec(name, "ignore", note="every record has the same value")
    words = header_words(name)
    found = next(filter(None, (test(name, words, sample) for test in _TESTS)))
    return _unless_all_differ(found, column, sample)


def with_length(spec: FieldSpec, column: pa.ChunkedArray) -> FieldSpec:
    """Return a field of vectors with their length, so that vectors of another length are rejected."""
    if spec.kind != "vector" or "length" in spec.options:
        return spec
    length = read_vectors(column, spec.name).values.shape[1]
    return replace(spec, options={"length": str(length)}) if length else spec


def _list_column(name: str, column: pa.ChunkedArray) -> FieldSpec:
    sample = sample_of(pc.list_flatten(column.slice(0, 10_000)))
    items = "name" if persons(list(sample.values)) >= MOST else "text"
    return FieldSpec(name, "list", {"items": items}, f"of type {column.type}")


def _unless_all_differ(spec: FieldSpec, column: pa.ChunkedArray, sample: ColumnSample) -> FieldSpec:
    """Ignore codes that are all distinct; add a note to other fields whose values are."""
    if sample.repetition < 1 or len(sample.values) < _FEW_ROWS:
        return spec
    if pc.count_distinct(column).as_py() < len(column) - column.null_count:
        return spec
    if spec.kind == "identifier":
        return FieldSpec(spec.name, "ignore", note="a code of which no value stands twice")
    return FieldSpec(spec.name, spec.kind, spec.options, f"{spec.note}; no value stands twice")


def _email(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if sample.share(EMAIL) >= MOST:
        return FieldSpec(name, "email", note="addresses with an @")
    return None


def _point(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if sample.share(POINT) >= MOST:
        return FieldSpec(name, "location", {"part": "point"}, "pairs of degrees")
    if sample.share(NUMBER) >= MOST:
        for part, hints in {
            "latitude": {"lat", "latitude"},
            "longitude": {"lon", "lng", "longitude"},
        }.items():
            if words & hints:
                return FieldSpec(name, "location", {"part": part}, "degrees")
    return None


def _date(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if sample.share(FULL_DATE) >= MOST:
        return FieldSpec(name, "date", note="year, month and day")
    if sample.share(is_compact_date) >= (MOST if words & _DATES else 0.95):
        return FieldSpec(name, "date", note="dates of eight digits")
    if words & _DATES and sample.share(is_month_of_year) >= 0.3:
        return FieldSpec(name, "date", note="years with months")
    return None


def _phone(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    share = sample.share(PHONE)
    marked = sample.share(lambda value: PHONE.fullmatch(value) and not value.isdigit())
    by_shape = marked >= MOST and sample.n_words < 4 and not words & _CODES
    if share >= MOST and (words & _PHONES or by_shape):
        return FieldSpec(name, "phone", note="telephone numbers")
    return None


def _digits(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    """Recognize numbers, and codes that only look like numbers."""
    if sample.share(NUMBER) < MOST:
        if sample.share(NUMBER_BY_COMMA) < MOST:
            return None
        return FieldSpec(name, "number", {"decimal": ","}, "numbers with a decimal comma")
    if sample.share(YEAR) >= MOST and not words & _CODES:
        return FieldSpec(name, "number", note="years")
    if words & _CLASSES:
        return FieldSpec(name, "category", note="numbers of classes, by the column's name")
    plain = [value.strip() for value in sample.values if DIGITS.fullmatch(value.strip())]
    zeros = sum(value.startswith("0") and len(value) > 1 for value in plain)
    if words & _CODES or zeros > 0.02 * len(sample.values):
        return FieldSpec(name, "identifier", note="digits that are a code")
    long = sum(len(value) >= 6 for value in plain) >= MOST * len(sample.values)
    if long and sample.repetition > 0.5:
        return FieldSpec(name, "identifier", note="long numbers, most of which differ")
    return FieldSpec(name, "number", note="numbers")


def _bars(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    """Recognize lists with a separator that is rarely used otherwise."""
    for separator, least in (("|", 0.05), (";", 0.3)):
        values = {value.strip() for value in sample.values}
        parted = {value for value in values if separator in value.strip(separator)}
        share = sample.share(parted.__contains__)
        if share >= least and len(parted) > 1:  # not a single frequent value
            items = items_sample(list(sample.values), separator)
            if sum(map(len, items)) <= 60 * len(items):
                kind = "name" if persons(items) >= 0.7 else "text"
                note = f"items with {separator} between them"
                return FieldSpec(name, "list", {"separator": separator, "items": kind}, note)
    return None


def _names_in_a_row(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    """Recognize lists of persons, separated by commas or 'and'."""
    if not words & _MANY:
        return None
    items = items_sample(list(sample.values), ",")
    if len(items) >= 1.2 * len(sample.values) and persons(items) >= 0.6:
        return FieldSpec(name, "list", {"separator": ",", "items": "name"}, "several names of persons")
    return None


def _name_part(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    for part, hints in (("first", FIRST_NAME_WORDS), ("last", LAST_NAME_WORDS)):
        others = words & (FIRST_NAME_WORDS | LAST_NAME_WORDS) - hints
        if words & hints and not others and single_names(list(sample.values)) >= MOST:
            return FieldSpec(name, "name", {"part": part}, f"{part} names of persons")
    return None


def _person(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if words & (_PLACES | _ADDRESSES | _THINGS):
        return None
    if sample.persons >= (0.7 if words & (_PERSONS | _MANY | FIRST_NAME_WORDS | LAST_NAME_WORDS) else 0.9):
        return FieldSpec(name, "name", {"part": "full"}, "names of persons")
    return None


def _address(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if sample.streets >= (0.3 if words & _ADDRESSES else MOST):
        return FieldSpec(name, "address", note="words of streets, house numbers")
    return None


def _code(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if sample.share(CODE) >= MOST or sample.share(POSTCODE) >= MOST:
        return FieldSpec(name, "identifier", note="letters with digits")
    return None


def _category(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    seldom = sample.repetition <= 0.2 or sample.distinct <= 10
    if sample.distinct <= 200 and seldom and sample.n_words <= 2.5 and len(sample.values) >= _FEW_ROWS:
        return FieldSpec(name, "category", note=f"{sample.distinct} different values in a sample")
    return None


def _place(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    if words & _PLACES and sample.n_words <= 5:
        return FieldSpec(name, "location", {"part": "place"}, "a place, by the column's name")
    return None


def _text(name: str, words: frozenset[str], sample: ColumnSample) -> FieldSpec | None:
    return FieldSpec(name, "text", note="words")


_TESTS: Sequence[Test] = (
    _email,
    _point,
    _date,
    _phone,
    _digits,
    _bars,
    _name_part,
    _names_in_a_row,
    _person,
    _address,
    _code,
    _category,
    _place,
    _text,
)
