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
        None where every marginal is measured by itself.
    size
        The layout's ``node_size`` where variables alone are read, else its ``size``; which of the two decides
        whether a solver asks for the marginals of factors at all.
    factors : float64[size]
        What each marginal is multiplied by where there is no matrix; None for the marginals as they are.
    """

    matrix: Any
    size: int
    factors: Floats | None = None

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
        factors = np.broadcast_to(np.asarray(scale, dtype=np.float64), (size,))
        bad = np.flatnonzero(~np.isfinite(factors))
        if len(bad):
            raise InvalidArgumentError(
                f"entry {int(bad[0])} of the scale is {factors[bad[0]]}: coefficients are finite."
            )
        return cls(None, size, factors.copy())

    @classmethod
    def label_counts(cls, layout: Layout) -> Measurement:
        """Expected number of variables with each label: the marginals of all variables summed."""
        return cls.label_counts_of_each(layout, np.array([0, len(layout.cardinality)]))

    @classmethod
    def label_counts_of_each(cls, layout: Layout, start: Ints) -> Measurement:
        """`label_counts` of each of several groups of variables; group g begins at variable ``start[g]``."""
        labels, places = int(layout.cardinality.max()), np.arange(layout.node_size)
        label = places - np.repeat(layout.node_start[:-1], layout.cardinality)
        group = np.repeat(np.arange(len(start) - 1), np.diff(layout.node_start[start]))
        shape = ((len(start) - 1) * labels, layout.node_size)
        return cls.of(sparse.csr_array((np.ones(len(places)), (group * labels + label, places)), shape=shape))

    def taken(self, rows: Ints) -> Measurement:
        """Return some of the rows."""
        if len(rows) and not 0 <= np.min(rows) <= np.max(rows) < self.count:
            raise InvalidArgumentError(f"rows {rows} were asked for, but there are {self.count}, from 0 on.")
        if len(rows) == self.count and np.array_equal(rows, np.arange(self.count)):
            return self
        return Measurement(self.rows_matrix[rows], self.size)

    def times(self, factors: Floats) -> Measurement:
        """Return each row times a number."""
        if self.matrix is None:
            return Measurement(None, self.size, factors if self.factors is None else factors * self.factors)
        return Measurement(sparse.csr_array(sparse.diags_array(factors) @ self.matrix), self.size)

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
        return self._scaled(read) if self.matrix is None else np.asarray(self.matrix @ read)

    def adjoint(self, slope: Floats) -> Floats:
        """Bring the slope of a function of the measurements back to the marginals."""
        return self._scaled(slope) if self.matrix is None else np.asarray(self._transposed @ slope)

    def squared(self, marginals: Floats) -> Floats:
        """Measure with the squares of the coefficients: a bound on the variance of what is measured."""
        read = marginals[: self.size]
        return self._scaled(self._scaled(read)) if self.matrix is None else np.asarray(self._squares @ read)

    def first_negative_row(self, among: Bools) -> int | None:
        """Return the first of the marked rows that has a negative coefficient."""
        matrix = self.rows_matrix
        owner = np.repeat(np.arange(self.count), np.diff(matrix.indptr))
        found = owner[(matrix.data < 0) & among[owner]]
        return int(found[0]) if len(found) else None

    def stacked(self, *others: Measurement) -> Measurement:
        """Return the rows of this one and the others, one below the other, read from the longest."""
        size = max(part.size for part in (self, *others))
        parts = [part.widened(size).matrix for part in (self, *others)]
        return Measurement(sparse.csr_array(sparse.vstack(parts)), size)

    def widened(self, size: int) -> Measurement:
        """Return the same rows over a longer vector, as an explicit matrix."""
        rows = self.rows_matrix
        return Measurement(
            sparse.csr_array((rows.data, rows.indices, rows.indptr), (rows.shape[0], size)), size
        )

    @property
    def rows_matrix(self) -> Any:
        """The rows as an explicit sparse matrix."""
        if self.matrix is not None:
            return self.matrix
        factors = np.ones(self.size) if self.factors is None else self.factors
        return sparse.csr_array(sparse.diags_array(factors))

    def _scaled(self, values: Floats) -> Floats:
        return values if self.factors is None else self.factors * values

    @cached_property
    def _transposed(self) -> Any:
        return sparse.csr_array(self.matrix.T)

    @cached_property
    def _squares(self) -> Any:
        return self.matrix.power(2)
