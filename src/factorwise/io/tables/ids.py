"""Find records by their ids, which are compared as text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some

_SHOWN = 3  # ids listed in an error


def rows_of(values: pa.Array | pa.ChunkedArray, known: pa.Array) -> NDArray[np.int64]:
    """Return the position of each value among ``known``, compared as text; -1 if it is missing."""
    texts = values.cast(pa.string())
    return np.asarray(pc.index_in(texts, value_set=known.cast(pa.string())).fill_null(-1), dtype=np.int64)


def rows_of_pairs(values: pa.ChunkedArray, known: pa.Array, origin: str) -> NDArray[np.int64]:
    """Return the rows of one side of some pairs; refuse ids that no record has.

    origin
        Where the pairs are from, for messages.
    """
    rows = rows_of(values, known)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        named = ", ".join(f"{values[row].as_py()!r} (pair {row + 1})" for row in missing[:_SHOWN].tolist())
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise InvalidArgumentError(
            f"{origin}: no record has the id {named}{more}; ids are such as"
            f" {some(known[:_SHOWN].to_pylist())}. Correct it, or remove the pair."
        )
    return rows
