"""Columns of vectors as one of the normal forms: an embedding per record, compared by its cosine.

Only directions count, so vectors are kept at length one; equal ones are kept once. A record without a vector,
or with one of zeros alone, says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.types import Bools, Ints

_PAIRS = 1 << 12  # pairs whose vectors are laid side by side in one go


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A vector per row.

    codes : int32[rows]
        Which of the values stands in each row; -1 where it is missing.
    values : float32[different, numbers]
        The different vectors, each of length one.
    """

    codes: NDArray[np.int32]
    values: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def missing(self) -> Bools:
        """Where a row has no vector."""
        return self.codes < 0

    def rows(self, codes: Ints) -> Vectors:
        """Rows chosen by number; -1 chooses a missing one."""
        return Vectors(np.append(self.codes, np.int32(-1))[codes], self.values)

    def cosines(self, first: Ints, second: Ints) -> NDArray[np.float32]:
        """Return the cosine of the vectors of each pair of rows; NaN where one is missing."""
        one, two = self.codes[first], self.codes[second]
        found = np.full(len(one), np.nan, np.float32)
        there = np.flatnonzero((one >= 0) & (two >= 0))
        for low in range(0, len(there), _PAIRS):
            part = there[low : low + _PAIRS]
            found[part] = np.einsum("ij,ij->i", self.values[one[part]], self.values[two[part]])
        found[there[one[there] == two[there]]] = 1.0  # equal vectors, whatever rounding does
        return np.clip(found, -1.0, 1.0)

    def to_arrow(self) -> pa.Array:
        """Arrow array of the rows, null where missing."""
        size = self.values.shape[1]
        padded = np.vstack([self.values, np.zeros((1, size), np.float32)])
        flat = pa.array(padded[self.codes].ravel())
        return pa.FixedSizeListArray.from_arrays(flat, size, mask=pa.array(self.missing))

    def to_list(self) -> list[list[float] | None]:
        """Rows as Python lists of numbers."""
        found: list[list[float] | None] = self.to_arrow().to_pylist()
        return found
