"""Sparse features with names: one row per variable or edge, one column per name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, UnknownLabelError
from factorwise.types import Float64s, Floats, Int64s, Ints
from factorwise.validation import as_numbers, check_starts
from factorwise.variables.domain import Domain, DomainBuilder

Row = Mapping[str, float] | Iterable[str]


@dataclass(frozen=True, eq=False)
class Features:
    """A sparse matrix (compressed rows) whose columns have names.

    vocabulary
        The names of the columns, in order.
    indptr : int64[rows + 1]
        Row ``r`` has the entries ``indptr[r]:indptr[r + 1]``.
    indices : int64[entries]
        Column of each entry; no column twice in one row.
    data : float64[entries]
        Value of each entry; finite.

    >>> words = Features.from_rows([["caps", "ends=s"], {"caps": 2.0}])
    >>> words.vocabulary.labels, words.row(1)
    (('caps', 'ends=s'), {'caps': 2.0})
    """

    vocabulary: Domain
    indptr: Int64s
    indices: Int64s
    data: Float64s

    def __post_init__(self) -> None:
        for part, dtype in (("indptr", np.int64), ("indices", np.int64), ("data", np.float64)):
            object.__setattr__(self, part, as_numbers(part, getattr(self, part), dtype))
        if not self.indptr.ndim == self.indices.ndim == self.data.ndim == 1:
            raise ShapeError("indptr, indices and data have one dimension each.")
        if len(self.indices) != len(self.data):
            raise ShapeError(
                f"features have {len(self.indices)} columns, but {len(self.data)} values: give one"
                " value per column."
            )
        check_starts("indptr", self.indptr, len(self.data))
        if len(self.indices) and not 0 <= self.indices.min() <= self.indices.max() < self.width:
            raise ShapeError(
                f"features use column {int(self.indices.max())}, but the vocabulary has {self.width} names:"
                " give one name per column."
            )
        wrong = np.flatnonzero(~np.isfinite(self.data))
        if len(wrong):
            row = int(np.searchsorted(self.indptr, wrong[0], side="right")) - 1
            name = self.vocabulary.labels[int(self.indices[wrong[0]])]
            raise InvalidArgumentError(
                f"the feature {name!r} of row {row} is {self.data[wrong[0]]}: features are finite numbers."
                " Replace it, or leave the entry out and add a feature that says it is missing."
            )

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Row],
        vocabulary: Domain | DomainBuilder | None = None,
        unknown: Literal["drop", "error"] = "drop",
    ) -> Features:
        """Build from one mapping ``name: value``, or one list of names (value 1 each), per row.

        vocabulary
            A `DomainBuilder` takes in the names that occur; a frozen domain keeps its labels, and ``unknown``
            says whether other names are dropped or refused. By default the names that occur become the
            vocabulary.
        """
        listed: list[Any] = [row if isinstance(row, Mapping) else list(row) for row in rows]
        names = [name for row in listed for name in row]
        data = [
            v for row in listed for v in (row.values() if isinstance(row, Mapping) else (1.0,) * len(row))
        ]
        owner = np.repeat(np.arange(len(listed)), np.array([len(row) for row in listed], dtype=np.int64))
        if isinstance(vocabulary, Domain):
            codes = vocabulary.find(names) if names else np.zeros(0, dtype=np.int32)
            if unknown == "error" and (codes < 0).any():
                first = names[int(np.flatnonzero(codes < 0)[0])]
                raise UnknownLabelError(first, vocabulary.name, vocabulary.labels)
            frozen = vocabulary
        else:
            builder = DomainBuilder("features") if vocabulary is None else vocabulary
            codes = builder.encode(names)
            frozen = builder.freeze()
        kept = codes >= 0
        values = np.array(data, dtype=np.float64)
        return cls._summed(frozen, len(listed), owner[kept], codes[kept], values[kept])

    @classmethod
    def from_dense(cls, values: ArrayLike, names: Sequence[str] | None = None) -> Features:
        """Build from a rows x columns array; zeros are left out."""
        dense = np.asarray(values, dtype=np.float64)
        if dense.ndim != 2:
            raise ShapeError(f"dense features are rows x columns, but the array has shape {dense.shape}.")
        row, column = np.nonzero(dense)
        vocabulary = _names(names, dense.shape[1])
        return cls._summed(vocabulary, len(dense), row, column, dense[row, column])

    @classmethod
    def from_csr(cls, matrix: Any, names: Sequence[str] | None = None) -> Features:
        """Build from any SciPy sparse matrix or array."""
        entries = matrix.tocoo()
        vocabulary = _names(names, matrix.shape[1])
        return cls._summed(vocabulary, matrix.shape[0], entries.row, entries.col, entries.data)

    @classmethod
    def _summed(cls, vocabulary: Domain, rows: int, row: Ints, column: Ints, data: Floats) -> Features:
        """Sort entries by row and column, and add up entries with the same row and column."""
        width = max(len(vocabulary), 1)
        cell, inverse = np.unique(row.astype(np.int64) * width + column, return_inverse=True)
        total = np.bincount(inverse, weights=data, minlength=len(cell)).astype(np.float64)
        indptr = np.zeros(rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(cell // width, minlength=rows), out=indptr[1:])
        return cls(vocabulary, indptr, cell % width, total)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.vocabulary)

    def row(self, row: int) -> dict[str, float]:
        """Return the named entries of one row."""
        part = slice(self.indptr[row], self.indptr[row + 1])
        names = self.vocabulary.decode(self.indices[part]).tolist()
        return dict(zip(names, self.data[part].tolist(), strict=True))

    def times(self, weights: Floats) -> Float64s:
        """Return the product with a dense matrix of ``width`` rows: one row of scores per feature row."""
        if weights.shape[0] != self.width:
            raise ShapeError(
                f"the features have {self.width} columns, but the weights have {weights.shape[0]} rows:"
                " encode both with one vocabulary."
            )
        from scipy.sparse import csr_array  # here, so that reading features does not load SciPy

        matrix = csr_array((self.data, self.indices, self.indptr), shape=(len(self), self.width))
        return np.asarray(matrix @ weights, dtype=np.float64)


def _names(names: Sequence[str] | None, width: int) -> Domain:
    if names is None:
        return Domain("features", [f"feature {number}" for number in range(width)])
    if len(names) != width:
        raise ShapeError(
            f"{len(names)} names were given for {width} feature columns: give one name per column."
        )
    return Domain("features", names)
