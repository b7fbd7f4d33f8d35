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
        None if every marginal is measured by itself.
    size
        The layout's ``node_size`` if only variables are read, else its ``size``; this decides whether a
        solver computes the marginals of factors at all.
    factors : float64[size]
        The factor of each marginal if there is no matrix; None for the marginals unchanged.
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
                "a measurement is a matrix with a row for each measured number, but an array of shape"
                f" {rows.shape} was given."
            )
        bad = np.flatnonzero(~np.isfinite(rows.data))
        if len(bad):
            row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
            raise InvalidArgumentError(
                f"row {row} of the measurement holds {rows.data[bad[0]]}: coefficients must be finite."
            )
        return cls(rows, rows.shape[1])

    @classmethod
    def rows(cls, size: int, rows: Iterable[Mapping[int, float]]) -> Measurement:
        """Build from one ``{position in the layout: coefficient}`` per measurement."""
        listed = list(rows)
        positions = [position for row in listed for position in row]
        if positions and not 0 <= min(positions) <= max(positions) < size:
            wrong = next(position for position in positions if not 0 <= position < size)
            raise InvalidArgumentError(
                f"a row of the measurement names entry {wrong} of the marginals, but it reads {size} of"
                " them: take positions from Layout.node(...) and Layout.factor(...), and the layout's"
                " size if factors are measured."
            )
        bounds = np.cumsum([0, *map(len, listed)])
        values = [value for row in listed for value in row.values()]
        return cls.of(sparse.csr_array((values, positions, bounds), shape=(len(listed), size)))

    @classmethod
    def identity(cls, size: int) -> Measurement:
        """Measure every marginal unchanged."""
        return cls(None, size)

    @classmethod
    def scaled(cls, scale: ArrayLike, size: int) -> Measurement:
        """Measure every marginal times a number: one for all, or one for each."""
        factors = np.broadcast_to(np.asarray(scale, dtype=np.float64), (size,))
        bad = np.flatnonzero(~np.isfinite(factors))
        if len(bad):
            raise InvalidArgumentError(
                f"entry {int(bad[0])} of the scale is {factors[bad[0]]}: coefficients must be finite."
            )
        return cls(None, size, factors.copy())

    @classmethod
    def label_counts(cls, layout: Layout) -> Measurement:
        """Measure the expected number of variables with each label."""
        return cls.label_counts_of_each(layout, np.array([0, len(layout.cardinality)]))

    @classmethod
    def label_counts_of_each(cls, layout: Layout, start: Ints) -> Measurement:
        """`label_counts` of each of several groups of variables; group g begins at variable ``start[g]``."""
        labels, positions = int(layout.cardinality.max()), np.arange(layout.node_size)
        label = positions - np.repeat(layout.node_start[:-1], layout.cardinality)
        group = np.repeat(np.arange(len(start) - 1), np.diff(layout.node_start[start]))
        shape = ((len(start) - 1) * labels, layout.node_size)
        return cls.of(
            sparse.csr_array((np.ones(len(positions)), (group * labels + label, positions)), shape=shape)
        )

    def taken(self, rows: Ints) -> Measurement:
        """Return some of the rows."""
        if len(rows) and not 0 <= np.min(rows) <= np.max(rows) < self.count:
            raise InvalidArgumentError(f"rows {rows} were asked for, but there are {self.count}, from 0 on.")
        if len(rows) == self.count and np.array_equal(rows, np.arange(self.count)):
            return self
        return Measurement(self.rows_matrix[rows], self.size)

    def times(self, factors: Floats) -> Measurement:
        """Return the measurement with each row multiplied by a number."""
        if self.matrix is None:
            return Measurement(None, self.size, factors if self.factors is None else factors * self.factors)
        return Measurement(sparse.csr_array(sparse.diags_array(factors) @ self.matrix), self.size)

    @property
    def count(self) -> int:
        """How many numbers are measured."""
        return self.size if self.matrix is None else int(self.matrix.shape[0])

    def apply(self, marginals: Floats) -> Floats:
        """Return the measured numbers; entries past ``size`` are not read."""
        if len(marginals) < self.size:
            raise ShapeError(
                f"{len(marginals)} marginals were given, but {self.size} are measured: include those of the"
                " factors."
            )
        read = marginals[: self.size]
        return self._scaled(read) if self.matrix is None else np.asarray(self.matrix @ read)

    def adjoint(self, slope: Floats) -> Floats:
        """Carry the slope of a function of the measurements back to the marginals."""
        return self._scaled(slope) if self.matrix is None else np.asarray(self._transposed @ slope)

    def squared(self, marginals: Floats) -> Floats:
        """Measure with squared coefficients, which bounds the variance of the measured numbers."""
        read = marginals[: self.size]
        return self._scaled(self._scaled(read)) if self.matrix is None else np.asarray(self._squares @ read)

    def first_negative_row(self, among: Bools) -> int | None:
        """Return the first of the marked rows that has a negative coefficient."""
        matrix = self.rows_matrix
        owner = np.repeat(np.arange(self.count), np.diff(matrix.indptr))
        rows = owner[(matrix.data < 0) & among[owner]]
        return int(rows[0]) if len(rows) else None

    def stacked(self, *more: Measurement) -> Measurement:
        """Return the rows of this measurement and of more, for the longest vector among them."""
        size = max(part.size for part in (self, *more))
        parts = [part.widened(size).matrix for part in (self, *more)]
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
