"""Columns of vectors as a normal form: one embedding per record, compared by cosine.

Vectors are normalized to length one, and equal vectors are stored once. A record without a vector, or with a
zero vector, counts as missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.types import Bools, Ints

_PAIRS = 1 << 12  # pairs whose cosines are computed at once


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A vector per row.

    codes : int32[rows]
        Index of each row's vector in ``values``; -1 where it is missing.
    values : float32[different, numbers]
        The distinct vectors, each of length one.
    """

    codes: NDArray[np.int32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> Bools:
        """Which rows have no vector."""
        return self.codes < 0

    def rows(self, codes: Ints) -> Vectors:
        """Return the rows with the given indices; index -1 yields a missing row."""
        return Vectors(np.append(self.codes, np.int32(-1))[codes], self.values)

    def cosines(self, first: Ints, second: Ints) -> NDArray[np.float32]:
        """Return the cosine of the vectors of each pair of rows; NaN where one is missing."""
        one, two = self.codes[first], self.codes[second]
        found = np.full(len(one), np.nan, np.float32)
        there = np.flatnonzero((one >= 0) & (two >= 0))
        for low in range(0, len(there), _PAIRS):
            part = there[low : low + _PAIRS]
            found[part] = np.einsum("ij,ij->i", self.values[one[part]], self.values[two[part]])
        found[there[one[there] == two[there]]] = 1.0  # exactly 1 for equal vectors, in spite of rounding
        return np.clip(found, -1.0, 1.0)

    def to_arrow(self) -> pa.Array:
        """Return the rows as an Arrow array; missing ones are null."""
        size = self.values.shape[1]
        padded = np.vstack([self.values, np.zeros((1, size), np.float32)])
        flat = pa.array(padded[self.codes].ravel())
        return pa.FixedSizeListArray.from_arrays(flat, size, mask=pa.array(self.missing))

    def to_list(self) -> list[list[float] | None]:
        """Return the rows as Python lists of numbers."""
        found: list[list[float] | None] = self.to_arrow().to_pylist()
        return found
