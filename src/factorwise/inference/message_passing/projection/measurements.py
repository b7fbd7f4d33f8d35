"""Linear measurements of marginals: counts, constraint values, the marginals themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Measurement:
    r"""A sparse linear map from marginals to numbers, :math:`a = A\mu`.

    matrix : sparse float64[measurements, size]
        None for the identity. ``size`` is the layout's ``node_size`` where variables alone are read, else its
        ``size``; which of the two decides whether a solver asks for the marginals of factors at all.
    """

    matrix: Any
    size: int

    @classmethod
    def of(cls, matrix: Any) -> Measurement:
        """Take a dense or sparse matrix, one row per measurement."""
        rows = sparse.csr_array(matrix, dtype=np.float64)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ShapeError(
                f"a measurement is a matrix with a row for each number, but the shape {rows.shape} was given."
            )
        bad = np.flatnonzero(~np.isfinite(rows.data))
        if len(bad):
            row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
            raise InvalidArgumentError(
                f"row {row} of the measurement holds {rows.data[bad[0]]}: coefficients are finite."
            )
        return cls(rows, rows.shape[1])

    @classmethod
    def rows(cls, size: int, rows: Iterable[Mapping[int, float]]) -> Measurement:
        """Build from one ``{place in the layout: coefficient}`` per measurement."""
        listed = list(rows)
        places = [place for row in listed for place in row]
        if places and not 0 <= min(places) <= max(places) < size:
            wrong = next(place for place in places if not 0 <= place < size)
            raise InvalidArgumentError(
                f"a row of the measurement names entry {wrong} of the marginals, but it reads {size} of them:"
                " take places from Layout.node(...) and Layout.factor(...), and its size if it has factors."
            )
        bounds = np.cumsum([0, *map(len, listed)])
        values = [value for row in listed for value in row.values()]
        return cls.of(sparse.csr_array((values, places, bounds), shape=(len(listed), size)))

    @classmethod
    def identity(cls, size: int) -> Measurement:
        """Every marginal as it is."""
        return cls(None, size)

    @classmethod
    def scaled(cls, scale: ArrayLike, size: int) -> Measurement:
        """Every marginal times a number: one for all, or one for each."""
        return cls.of(sparse.diags_array(np.broadcast_to(np.asarray(scale, dtype=np.float64), (size,))))

    @classmethod
    def label_counts(cls, layout: Layout) -> Measurement:
        """Expected number of variables with each label: the marginals of all variables summed."""
        labels = int(layout.cardinality.max())
        places = np.arange(layout.node_size)
        label = places - np.repeat(layout.node_start[:-1], layout.cardinality)
        ones = np.ones(layout.node_size)
        return cls.of(sparse.csr_array((ones, (label, places)), shape=(labels, layout.node_size)))

    def taken(self, rows: Ints) -> Measurement:
        """Return some of the rows."""
        matrix = sparse.eye_array(self.size, format="csr") if self.matrix is None else self.matrix
        return Measurement(sparse.csr_array(matrix)[rows], self.size)

    def times(self, factors: Floats) -> Measurement:
        """Return each row times a number."""
        return Measurement(
            sparse.csr_array(sparse.diags_array(factors) @ self.taken(np.arange(self.count)).matrix),
            self.size,
        )

    @property
    def count(self) -> int:
        """How many numbers are measured."""
        return self.size if self.matrix is None else int(self.matrix.shape[0])

    def apply(self, marginals: Floats) -> Floats:
        """Measure; entries past ``size`` are not read."""
        if len(marginals) < self.size:
            raise ShapeError(
                f"{len(marginals)} marginals were given, but {self.size} are measured: include those of the"
                " factors."
            )
        read = marginals[: self.size]
        return read if self.matrix is None else np.asarray(self.matrix @ read)

    def adjoint(self, slope: Floats) -> Floats:
        """Bring the slope of a function of the measurements back to the marginals."""
        return slope if self.matrix is None else np.asarray(self._transposed @ slope)

    def squared(self, marginals: Floats) -> Floats:
        """Measure with the squares of the coefficients: a bound on the variance of what is measured."""
        read = marginals[: self.size]
        return read if self.matrix is None else np.asarray(self._squares @ read)

    def first_negative_row(self, among: Bools) -> int | None:
        """Return the first of the marked rows that has a negative coefficient."""
        if self.matrix is None:
            return None
        owner = np.repeat(np.arange(self.count), np.diff(self.matrix.indptr))
        found = owner[(self.matrix.data < 0) & among[owner]]
        return int(found[0]) if len(found) else None

    def stacked(self, *others: Measurement) -> Measurement:
        """Return the rows of this one and the others, one below the other, read from the longest."""
        size = max(part.size for part in (self, *others))
        parts = [part.widened(size).matrix for part in (self, *others)]
        return Measurement(sparse.csr_array(sparse.vstack(parts)), size)

    def widened(self, size: int) -> Measurement:
        """Return the same rows over a longer vector, as an explicit matrix."""
        matrix = sparse.eye_array(self.size) if self.matrix is None else self.matrix
        rows = sparse.csr_array(matrix)
        return Measurement(
            sparse.csr_array((rows.data, rows.indices, rows.indptr), (rows.shape[0], size)), size
        )

    @cached_property
    def _transposed(self) -> Any:
        return sparse.csr_array(self.matrix.T)

    @cached_property
    def _squares(self) -> Any:
        return self.matrix.power(2)
