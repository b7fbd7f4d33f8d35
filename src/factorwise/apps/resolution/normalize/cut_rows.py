"""Extract rows of normal forms, or join two such sets of rows, as the input of a task.

Values that do not occur in the rows are left out. The others keep their order, so that sums over the values
of a row are bitwise the same, and they keep their frequencies in the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import (
    Form,
    Frequencies,
    Lists,
    NormalField,
    NormalTable,
    Numbers,
    Strings,
    ranges,
)
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.errors import InvalidArgumentError
from factorwise.types import Int32s, Int64s, Ints
from factorwise.variables.sparse_rows import starts_of

Name = tuple[str, str]  # name of a field, and of one of its forms


class CutForm(NamedTuple):
    """Some rows of a form.

    used
        Codes of the values of the whole form that occur, ascending; empty for forms without coded values.
    """

    form: Form
    used: Int64s


def cut_rows(form: Form, rows: Ints, *, texts: bool = True) -> CutForm:
    """Return the given rows of a form; no row may be -1.

    texts
        Whether to include the texts of strings. If only codes are compared, False makes them null.
    """
    if isinstance(form, Strings):
        used, codes = _renumbered(form.codes[rows], len(form.values))
        values, whole = _taken(form.values, used, texts), _some(form.frequencies(), used)
        return CutForm(Strings(codes, values, whole), used)
    if isinstance(form, Lists):
        starts = form.offsets[rows]
        lengths = form.offsets[rows + 1] - starts
        used, codes = _renumbered(form.codes[ranges(starts, lengths)], len(form.values))
        values, whole = _taken(form.values, used, texts), _some(form.frequencies(), used)
        return CutForm(Lists(starts_of(lengths), codes, values, whole), used)
    if isinstance(form, Vectors):
        used, codes = _renumbered(form.codes[rows], len(form.values))
        return CutForm(Vectors(codes, form.values[used]), used)
    nothing = np.zeros(0, np.int64)
    if isinstance(form, Numbers):
        return CutForm(Numbers(form.values[rows]), nothing)
    return CutForm(form.rows(rows), nothing)


def join_cuts(one: CutForm, two: CutForm) -> Form:
    """Return the rows of two parts of one form as one form, the second part after the first."""
    a, b = one.form, two.form
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        return Numbers(np.append(a.values, b.values))
    used, first = np.unique(np.append(one.used, two.used), return_index=True)
    place, other = (np.searchsorted(used, each.used).astype(np.int32) for each in (one, two))
    if isinstance(a, Vectors) and isinstance(b, Vectors):
        return Vectors(
            _codes_of_both(a.codes, b.codes, place, other), np.append(a.values, b.values, 0)[first]
        )
    if not isinstance(a, Strings | Lists) or not isinstance(b, Strings | Lists):
        raise InvalidArgumentError(f"rows of {type(a).__name__} are cut out together, not joined.")
    values = pa.concat_arrays([a.values, b.values]).take(pa.array(first))
    counts = np.append(a.frequencies().counts, b.frequencies().counts)[first]
    whole = Frequencies(counts, a.frequencies().present)
    codes = _codes_of_both(a.codes, b.codes, place, other)
    if isinstance(a, Lists) and isinstance(b, Lists):
        return Lists(np.append(a.offsets, b.offsets[1:] + a.offsets[-1]), codes, values, whole)
    return Strings(codes, values, whole)


def table_of(forms: Iterable[tuple[Name, Form]], kinds: Mapping[str, str], n_rows: int) -> NormalTable:
    """Return a table of forms; those of fields without a kind become derived forms."""
    fields: dict[str, dict[str, Form]] = {}
    derived: dict[Name, Form] = {}
    for (field, name), form in forms:
        if field in kinds:
            fields.setdefault(field, {})[name] = form
        else:
            derived[field, name] = form
    made = NormalTable(n_rows, {name: NormalField(name, kinds[name], fields[name]) for name in fields})
    made.derived.update(derived)
    return made


def _renumbered(codes: Int32s, count: int) -> tuple[NDArray[np.int64], Int32s]:
    """Return which of ``count`` values occur, and the codes renumbered to indices of these."""
    there = np.zeros(count + 1, np.bool_)  # the last entry is for missing values
    there[codes] = True
    place = np.cumsum(there, dtype=np.int32) - np.int32(1)
    place[-1] = -1
    return np.flatnonzero(there[:-1]), np.asarray(place[codes], np.int32)


def _codes_of_both(one: Int32s, two: Int32s, place: Int32s, other: Int32s) -> Int32s:
    """Return the codes of both parts, renumbered from the values of each part to those of both."""
    missing = np.int32(-1)
    return np.append(np.append(place, missing)[one], np.append(other, missing)[two])


def _some(whole: Frequencies, used: Ints) -> Frequencies:
    return Frequencies(whole.counts[used], whole.present)


def _taken(values: pa.Array, used: Ints, texts: bool) -> pa.Array:
    return values.take(pa.array(used)) if texts else pa.nulls(len(used), values.type)
