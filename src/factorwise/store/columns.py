"""Columns of record numbers, and the positions of records in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.types import Ints


def record_column(rows: Ints) -> pa.Table:
    """Return a table of the distinct records, for SQL joins."""
    return pa.table({"record": pa.array(np.unique(np.asarray(rows, np.int64)))})


def find_places(records: pa.ChunkedArray, rows: Ints, *, missing: bool = False) -> NDArray[np.int64]:
    """Return the position of each of ``rows`` in ``records``; with ``missing``, -1 for those not in it."""
    there = records.to_numpy()
    order = np.argsort(there, kind="stable")
    wanted = np.asarray(rows, np.int64)
    place = np.searchsorted(there[order], wanted)
    inside = np.minimum(place, max(len(there) - 1, 0))
    fits = (there[order][inside] == wanted) if len(there) else np.zeros(len(wanted), bool)
    if not missing and not fits.all():
        raise InvalidArgumentError(f"there is no record number {int(wanted[~fits][0])}.")
    return np.where(fits, order[inside] if len(there) else 0, -1)


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
