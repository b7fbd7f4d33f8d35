"""A table of pair features: named truth values for every pair of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.types import Int64s, UInt8s
from factorwise.validation import as_array

REGISTER = 32  # bytes that are added at a time


class PairTable:
    """Truth values of named features for every pair of n items.

    names
        What each feature says of two items; their order does not matter.
    padded : uint8[n (n - 1) / 2, features and padding]
        One row of zeros and ones per pair: the pair (i, j) with i > j is row ``i (i - 1) / 2 + j``. Rows are
        padded with zeros to whole registers, because samplers add millions of them.

    >>> table = PairTable.from_squares({"same head": [[1, 1, 0], [1, 1, 0], [0, 0, 1]]})
    >>> table.row(0, 1).tolist(), table.row(2, 1).tolist()
    ([1], [0])
    """

    def __init__(self, n_items: int, names: Sequence[str], values: ArrayLike) -> None:
        self.n_items = int(n_items)
        self.names = tuple(names)
        array = as_array("values", values)
        pairs = self.n_items * (self.n_items - 1) // 2
        if self.n_items < 1:
            raise EmptyWorldError("a pair table needs at least one item.")
        if not self.names or len(set(self.names)) != len(self.names):
            raise InvalidArgumentError(
                f"each feature needs a name of its own, but {list(names)[:20]} was given."
            )
        if array.shape != (pairs, len(self.names)):
            raise ShapeError(
                f"{self.n_items} items with {len(self.names)} features need a table of shape"
                f" {(pairs, len(self.names))}, but {array.shape} was given."
            )
        _check_truth_values(array)
        self.padded = np.zeros((pairs, -(-len(self.names) // REGISTER) * REGISTER), np.uint8)
        self.padded[:, : len(self.names)] = array

    @classmethod
    def from_squares(cls, squares: Mapping[str, ArrayLike]) -> PairTable:
        """Build from one symmetric n by n matrix of truth values per feature; diagonals are ignored."""
        if not squares:
            raise InvalidArgumentError("a pair table needs at least one feature.")
        n = len(np.atleast_1d(as_array("the first feature", next(iter(squares.values())))))
        upper = np.tri(n, n, -1, dtype=bool)
        values = np.empty((n * (n - 1) // 2, len(squares)), np.uint8)
        for column, (name, matrix) in enumerate(squares.items()):
            square = np.asarray(matrix)
            if square.shape != (n, n):
                raise ShapeError(f"feature {name!r} needs a {n} by {n} matrix, but has shape {square.shape}.")
            if not np.array_equal(square, square.T):
                i, j = (int(k) for k in np.argwhere(square != square.T)[0])
                raise InvalidArgumentError(
                    f"feature {name!r} differs between items ({i}, {j}) and ({j}, {i}): pairs have no order."
                )
            _check_truth_values(square[upper])
            values[:, column] = square[upper]
        return cls(n, list(squares), values)

    @property
    def values(self) -> UInt8s:
        """The table without the padding (a view): uint8[n (n - 1) / 2, features]."""
        return self.padded[:, : len(self.names)]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.names)

    def with_features(self, features: Mapping[str, ArrayLike]) -> PairTable:
        """Return a table with further features, each given as a truth value for every pair in order."""
        more = [np.asarray(values, np.uint8)[:, None] for values in features.values()]
        return PairTable(self.n_items, [*self.names, *features], np.concatenate([self.values, *more], axis=1))

    def restrict_to(self, items: Int64s) -> PairTable:
        """Return the table of the pairs of some items, ascending, which are renumbered from 0."""
        first, second = np.tril_indices(len(items), -1)
        larger, smaller = items[first], items[second]
        restricted = object.__new__(PairTable)
        restricted.n_items, restricted.names = len(items), self.names
        restricted.padded = self.padded[larger * (larger - 1) // 2 + smaller]
        return restricted

    def row(self, first: int, second: int) -> UInt8s:
        """Return the features of two different items."""
        if first == second:
            raise InvalidArgumentError(f"item {first} has no features with itself: give two different items.")
        i, j = max(first, second), min(first, second)
        return np.asarray(self.values[i * (i - 1) // 2 + j])

    def rows(self, items: ArrayLike, partners: ArrayLike) -> UInt8s:
        """Return the features of the pairs (items[k], partners[k]), each of two different items."""
        first, second = np.broadcast_arrays(np.asarray(items, np.int64), np.asarray(partners, np.int64))
        i, j = np.maximum(first, second), np.minimum(first, second)
        return np.asarray(self.values[i * (i - 1) // 2 + j])


def _check_truth_values(values: NDArray[Any]) -> None:
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise InvalidArgumentError(
            f"pair features must be 0 or 1, but the table contains {values[wrong][0]}: cut numbers into"
            " bins, one feature each."
        )
