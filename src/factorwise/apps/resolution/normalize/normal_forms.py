"""Compute the normal forms of the fields of a table, which comparisons and blocking use.

===========  =================================================================================================
kind         forms
===========  =================================================================================================
text         ``text`` (words joined by spaces), ``tokens`` (the set of its words)
category     ``text``
identifier   ``code`` (letters and digits only)
name         whole names: ``last``, ``first``, ``middle`` (both without initials), ``given`` (all given names
             as they stand), ``first_initial``, ``middle_initial``, ``root`` (of the first name: Bill is
             William), ``full`` (given and last), ``key`` (last and first initial), ``suffix``,
             ``last_sound``, ``first_sound``, ``tokens``; first names: ``given``, ``first``, ``middle``,
             ``first_initial``, ``middle_initial``, ``root``, ``first_sound``; last names: ``last``,
             ``last_sound``
list         ``items`` (the set of its items); of names also ``keys`` (last name and first initial of each)
number       ``number``
date         ``date`` (yyyy-mm-dd, or as much of it as is known), ``digits`` (yyyymmdd), ``year``,
             ``month``, ``day``, ``days`` (since 1970-01-01; missing unless the date is complete)
address      ``text``, ``tokens`` (abbreviations spelled out), ``number`` (of the house), ``street``,
             ``postcode``
email        ``email``, ``local`` (without what follows a plus), ``domain``
phone        ``phone`` (all digits), ``tail`` (the last seven)
location     ``text`` and ``tokens`` of a place; ``latitude`` and ``longitude`` of a point; one of the two
             of a column that has only it
vector       ``vector`` (of length one)
scores       ``pairs`` (log odds of pairs of rows)
source       ``source``
===========  =================================================================================================

Only the first `LONGEST` characters of a text, and `LONGEST_LIST` of a list in text form, are used.
Missing are null, the empty string, punctuation alone, and words that say so (NA, null, none, unknown, ...);
not ``Na`` in a name, which is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.contacts import (
    address_forms,
    email_forms,
    identifier_forms,
    phone_forms,
    point_forms,
)
from factorwise.apps.resolution.normalize.forms import (
    Form,
    NormalField,
    NormalTable,
    Strings,
    coded_if_repeated,
    encoded,
)
from factorwise.apps.resolution.normalize.lists import is_list, list_forms
from factorwise.apps.resolution.normalize.names import name_forms
from factorwise.apps.resolution.normalize.quantities import (
    date_forms,
    day_or_month_first,
    number_forms,
    numbers_of,
)
from factorwise.apps.resolution.normalize.stored_forms import StoredForms
from factorwise.apps.resolution.normalize.uniting import unite_forms
from factorwise.apps.resolution.normalize.vector_forms import vector_forms
from factorwise.apps.resolution.normalize.words import text_forms
from factorwise.apps.resolution.pair_scores import pair_score_forms
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.distributed.executors import Executor
from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import IN_MEMORY, Columns

LONGEST = 4_000  # characters of a text that are used, because comparing two is quadratic
LONGEST_LIST = 1_000_000  # characters of the text of a list that are used
ROWS_OF_A_STRETCH = 1 << 20  # rows whose forms are computed at once
_WHOLE = frozenset({"vector", "scores"})  # kinds whose forms are computed for all rows at once


def normalize(
    table: pa.Table,
    specs: Sequence[FieldSpec],
    columns: Columns = IN_MEMORY,
    executor: Executor | None = None,
) -> NormalTable:
    """Return the normal forms of the fields of a table; fields of kind ``ignore`` are left out.

    columns
        Where the forms are stored, field by field.
    executor
        Computes the forms of chunks of rows as tasks; None to use this thread. The result is the same.
    """
    fields = {}
    for spec in specs:
        if spec.kind == "ignore":
            continue
        if spec.name not in table.column_names:
            raise InvalidArgumentError(
                f"there is no column {spec.name!r}, which is to be compared; there are"
                f" {', '.join(table.column_names)}. Add it, empty if its values are not known, or use a model"
                " that does not compare it."
            )
        forms = _forms_of_stretches(table.column(spec.name), spec, columns, executor)
        fields[spec.name] = NormalField(spec.name, spec.kind, forms)
    normal = NormalTable(table.num_rows, fields, columns)
    if columns.in_files:
        normal.derived = StoredForms(columns)
    return normal


def _forms_of_stretches(
    column: pa.ChunkedArray, spec: FieldSpec, columns: Columns, executor: Executor | None
) -> Mapping[str, Form]:
    """Return the normal forms of one column, computed in chunks of rows."""
    size = max(len(column), 1) if spec.kind in _WHOLE else ROWS_OF_A_STRETCH
    starts = range(0, max(len(column), 1), size)
    if len(starts) > 1 and spec.kind == "date" and spec.option("order") == "auto":
        order = day_or_month_first(encoded(_plain(column)).values.to_pylist())
        spec = replace(spec, options={**spec.options, "order": order})  # the same in all chunks
    parts: dict[int, MutableMapping[str, Form]] = {}
    if executor is None or len(starts) == 1:
        for place, low in enumerate(starts):
            parts[place] = _kept(normal_forms(column.slice(low, size), spec), columns)
    else:
        tasks = ((_detached(column.slice(low, size)), spec) for low in starts)
        for place, forms in executor.stream(make_forms, tasks):
            parts[place] = _kept(forms, columns)
    if len(parts) == 1:
        return parts[0]
    found: dict[str, Form] | StoredForms[str] = StoredForms(columns) if columns.in_files else {}
    for name in list(parts[0]):
        found[name] = unite_forms([parts[place][name] for place in range(len(parts))], columns)
        for part in parts.values():
            del part[name]
        columns.rest()
    return found


def make_forms(rows: pa.Buffer, spec: FieldSpec) -> Mapping[str, Form]:
    """Return the normal forms of some rows of a column, which are given as an Arrow stream."""
    return normal_forms(pa.ipc.open_stream(rows).read_all().column(0), spec)


def _detached(column: pa.ChunkedArray) -> pa.Buffer:
    """Serialize a slice of rows, so that the rest of its buffers is not sent to the task."""
    table, sink = pa.table({"column": column}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _kept(forms: Mapping[str, Form], columns: Columns) -> MutableMapping[str, Form]:
    if not columns.in_files:
        return dict(forms)
    stored: StoredForms[str] = StoredForms(columns)
    stored.update(forms)
    columns.rest()
    return stored


def normal_forms(column: pa.ChunkedArray, spec: FieldSpec) -> Mapping[str, Form]:
    """Return the normal forms of one column."""
    if spec.kind == "vector":
        return vector_forms(column, spec.name, spec.options.get("length", ""))
    if spec.kind == "scores":
        return pair_score_forms(column, spec.name)
    column = shortened(column, LONGEST_LIST if spec.kind == "list" else LONGEST)
    if spec.kind == "list":
        return list_forms(column, spec.option("separator"), spec.option("items"))
    if pa.types.is_nested(column.type):
        raise InvalidArgumentError(
            f"field {spec.name!r} holds {column.type}, which kind {spec.kind} cannot be made of."
            + (" Make it a list." if is_list(column.type) else " Make it columns of their own, or ignore it.")
        )
    if spec.kind == "number" and _is_number(column.type):
        return numbers_of(column)
    if spec.kind == "text":
        return text_forms(coded_if_repeated(column))
    return _OF_KIND[spec.kind](encoded(_plain(column)), spec)


def shortened(column: pa.ChunkedArray, longest: int) -> pa.ChunkedArray:
    """Return a column with texts cut to ``longest`` characters; other types are returned unchanged."""
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    most = pc.max(pc.binary_length(column)).as_py()
    return column if most is None or most <= longest else pc.utf8_slice_codeunits(column, 0, longest)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return timestamps as dates, because only the date is compared."""
    return column.cast(pa.date32(), safe=False) if pa.types.is_timestamp(column.type) else column


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _location_forms(column: Strings, spec: FieldSpec) -> Mapping[str, Form]:
    part = spec.option("part")
    if part == "point":
        return point_forms(column)
    return text_forms(column) if part == "place" else {part: number_forms(column)["number"]}


_OF_KIND: Mapping[str, Callable[[Strings, FieldSpec], Mapping[str, Form]]] = {
    "category": lambda column, spec: {"text": text_forms(column)["text"]},
    "identifier": lambda column, spec: identifier_forms(column),
    "name": lambda column, spec: name_forms(column, spec.option("part")),
    "number": lambda column, spec: number_forms(column, spec.option("decimal")),
    "date": lambda column, spec: date_forms(column, spec.option("order")),
    "address": lambda column, spec: address_forms(column),
    "email": lambda column, spec: email_forms(column),
    "phone": lambda column, spec: phone_forms(column),
    "location": _location_forms,
    "source": lambda column, spec: {"source": text_forms(column)["text"]},
}
