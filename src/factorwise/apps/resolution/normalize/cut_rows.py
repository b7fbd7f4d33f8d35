"""Rows of normal forms that stand by themselves: all that a task looks at.

Values that none of the rows has are left out. The others keep their order, so that sums over the values of a
row come out the same to the last bit, and they know how frequent they are in the whole table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import Form, Frequencies, Lists, Numbers, Strings, ranges
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.types import Int32s, Ints
from factorwise.variables.sparse_rows import starts_of


def counted(form: Form) -> Form:
    """Return a form that knows how frequent its values are, so that they are counted once."""
    return replace(form, whole=form.frequencies()) if isinstance(form, Strings | Lists) else form


def cut_rows(form: Form, rows: Ints, *, texts: bool = True) -> Form:
    """Return some rows of a form that was `counted`, none of which is missing from it.

    texts
        Whether to bring the texts of strings; where only their codes are compared, they are null.
    """
    if isinstance(form, Strings):
        used, codes = _renumbered(form.codes[rows], len(form.values))
        return Strings(codes, _taken(form.values, used, texts), _some(form.frequencies(), used))
    if isinstance(form, Lists):
        starts = form.offsets[rows]
        lengths = form.offsets[rows + 1] - starts
        used, codes = _renumbered(form.codes[ranges(starts, lengths)], len(form.values))
        values = _taken(form.values, used, texts)
        return Lists(starts_of(lengths), codes, values, _some(form.frequencies(), used))
    if isinstance(form, Numbers):
        return Numbers(form.values[rows])
    if isinstance(form, Vectors):
        used, codes = _renumbered(form.codes[rows], len(form.values))
        return Vectors(codes, form.values[used])
    return form.rows(rows)


def _renumbered(codes: Int32s, count: int) -> tuple[NDArray[np.int64], Int32s]:
    """Return which of so many values there are, and codes that are their places among these."""
    there = np.zeros(count + 1, np.bool_)  # the last one stands for what is missing
    there[codes] = True
    place = np.cumsum(there, dtype=np.int32) - np.int32(1)
    place[-1] = -1
    return np.flatnonzero(there[:-1]), np.asarray(place[codes], np.int32)


def _some(whole: Frequencies, used: Ints) -> Frequencies:
    return Frequencies(whole.counts[used], whole.present)


def _taken(values: pa.Array, used: Ints, texts: bool) -> pa.Array:
    return values.take(pa.array(used)) if texts else pa.nulls(len(used), values.type)
