"""Numbers for pairs of records, such as the scores of another tool, as a normal form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.types import Bools, Ints


@dataclass(frozen=True, slots=True, eq=False)
class PairValues:
    """A number for some pairs of rows.

    n_rows
        Number of rows.
    first, second : int64[pairs]
        The rows of each pair, ``first < second``; sorted by both, without duplicates.
    values : float32[pairs]
        The number of each pair.
    """

    n_rows: int
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, n_rows: int, one: Ints, two: Ints, values: NDArray[np.float32]) -> PairValues:
        """Build the form from pairs in any order; of duplicate pairs the highest number is kept."""
        differ = one != two
        low, high = np.minimum(one, two)[differ], np.maximum(one, two)[differ]
        order = np.lexsort((-values[differ], high, low))
        low, high, found = low[order], high[order], values[differ][order]
        new = np.append(True, (low[1:] != low[:-1]) | (high[1:] != high[:-1])) if len(low) else low > 0
        return cls(n_rows, low[new].astype(np.int64), high[new].astype(np.int64), found[new])

    def __len__(self) -> int:
        return self.n_rows

    @property
    def missing(self) -> Bools:
        """Which rows are in no pair."""
        there = np.zeros(self.n_rows, bool)
        there[self.first] = there[self.second] = True
        return ~there

    def rows(self, codes: Ints) -> PairValues:
        """Return the rows with the given indices; index -1 yields a row without pairs."""
        place = np.full(self.n_rows + 1, -1, np.int64)
        place[codes] = np.arange(len(codes))
        place[-1] = -1
        one, two = place[self.first], place[self.second]
        kept = (one >= 0) & (two >= 0)
        return PairValues.of(len(codes), one[kept], two[kept], self.values[kept])

    def lookup(self, first: Ints, second: Ints) -> NDArray[np.float32]:
        """Return the number of each pair of rows, or NaN if it has none."""
        width = np.int64(self.n_rows)
        keys = self.first * width + self.second
        wanted = np.minimum(first, second).astype(np.int64) * width + np.maximum(first, second)
        place = np.searchsorted(keys, wanted)
        known = np.append(keys, -1)[place] == wanted
        return np.where(known, np.append(self.values, np.float32(np.nan))[place], np.float32(np.nan))

    def to_arrow(self) -> pa.Array:
        """Return the number of pairs of each row as an Arrow array."""
        return pa.array(np.bincount(np.append(self.first, self.second), minlength=self.n_rows))

    def to_list(self) -> list[int]:
        """Return the number of pairs of each row as Python numbers."""
        found: list[int] = self.to_arrow().to_pylist()
        return found
