"""A compact sparse matrix, for millions of tokens with dozens of attributes each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError
from factorwise.types import Float32s, Floats, Int32s, Int64s, Ints
from factorwise.validation import as_floats, as_ints, as_whole, check_range, check_starts


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Compressed rows with 32-bit columns, and no stored values if every entry is one.

    indptr : int64[rows + 1]
        Row ``r`` has the entries ``indptr[r]:indptr[r + 1]``.
    indices : int32[entries]
        Column of each entry. A column that occurs twice in one row counts twice.
    values : float32[entries] or None
        Value of each entry; None when all are 1.
    width
        Number of columns.
    """

    indptr: Int64s
    indices: Int32s
    values: Float32s | None
    width: int

    def __post_init__(self) -> None:
        keep = partial(object.__setattr__, self)
        keep("indptr", as_ints("indptr", self.indptr))
        keep("indices", as_ints("indices", self.indices, dtype=np.int32))
        keep("width", as_whole("width", self.width))
        check_starts("indptr", self.indptr, self.n_entries)
        check_range("indices", self.indices, self.width)
        if self.values is not None:
            keep("values", as_floats("values", self.values, size=self.n_entries, dtype=np.float32))
        if self.values is not None and not np.isfinite(self.values).all():
            entry = int(np.flatnonzero(~np.isfinite(self.values))[0])
            row = int(np.searchsorted(self.indptr, entry, side="right")) - 1
            raise InvalidArgumentError(
                f"the value of column {int(self.indices[entry])} in row {row} is {self.values[entry]}:"
                " features are finite numbers. Replace it, or leave the entry out."
            )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        """Number of stored entries."""
        return len(self.indices)

    def value_of_each(self) -> Float32s:
        """Return the value of every entry as an array, also if all are 1."""
        return np.ones(self.n_entries, dtype=np.float32) if self.values is None else self.values

    def to_dense(self) -> Floats:
        """Return a dense array, rows x columns; for small matrices and tests."""
        dense = np.zeros((len(self), self.width))
        row = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        np.add.at(dense, (row, self.indices), self.value_of_each().astype(np.float64))
        return dense


def take_rows(start: Ints, rows: Ints) -> tuple[Int64s, Int64s]:
    """Copy some rows of lists one after the other; return where each begins, and their entries."""
    count = np.diff(start)[rows]
    begin = np.append(0, np.cumsum(count))
    return begin, np.repeat(start[rows] - begin[:-1], count) + np.arange(begin[-1])


def starts_of(lengths: ArrayLike) -> Int64s:
    """Return where pieces of these lengths begin when laid end to end, and where the last one ends."""
    known = lengths if isinstance(lengths, np.ndarray) else np.array(lengths, np.int64)
    starts = np.zeros(len(known) + 1, np.int64)
    np.cumsum(known, out=starts[1:])
    return starts
