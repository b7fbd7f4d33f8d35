"""A table of what is observed of pairs of items: named truth values for every pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.arguments import check_types
from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.types import Int64s, UInt8s
from factorwise.validation import as_array

REGISTER = 32  # bytes that are added up at a time


class PairTable:
    """Truth values of named features for every pair of n items.

    names
        What each feature says of two items; the order of the two does not matter.
    padded : uint8[n (n - 1) / 2, features and padding]
        One row per pair, zeros and ones: the pair (i, j) with i > j stands in row ``i (i - 1) / 2 + j``. Rows
        are filled up with zeros to whole registers, because the samplers add them up by the million.

    >>> table = PairTable.from_squares({"same head": [[1, 1, 0], [1, 1, 0], [0, 0, 1]]})
    >>> table.row(0, 1).tolist(), table.row(2, 1).tolist()
    ([1], [0])
    """

    @check_types
    def __init__(self, n_items: int, names: Sequence[str], values: ArrayLike) -> None:
        self.n_items = int(n_items)
        self.names = tuple(names)
        given = as_array("values", values)
        pairs = self.n_items * (self.n_items - 1) // 2
        if self.n_items < 1:
            raise EmptyWorldError("a pair table needs at least one item.")
        if not self.names or len(set(self.names)) != len(self.names):
            raise InvalidArgumentError(
                f"features need a name each, all different, but {list(names)[:20]} was given."
            )
        if given.shape != (pairs, len(self.names)):
            raise ShapeError(
                f"{self.n_items} items with {len(self.names)} features need a table of shape"
                f" {(pairs, len(self.names))}, but {given.shape} was given."
            )
        _check_truth_values(given)
        self.padded = np.zeros((pairs, -(-len(self.names) // REGISTER) * REGISTER), np.uint8)
        self.padded[:, : len(self.names)] = given

    @classmethod
    @check_types
    def from_squares(cls, squares: Mapping[str, ArrayLike]) -> PairTable:
        """Build from one symmetric n by n matrix of truth values per feature; diagonals do not matter."""
        if not squares:
            raise InvalidArgumentError("a pair table needs at least one feature.")
        n = len(np.atleast_1d(as_array("the first feature", next(iter(squares.values())))))
        upper = np.tri(n, n, -1, dtype=bool)
        values = np.empty((n * (n - 1) // 2, len(squares)), np.uint8)
        for column, (name, given) in enumerate(squares.items()):
            square = np.asarray(given)
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

    def restrict_to(self, items: Int64s) -> PairTable:
        """Return the table of the pairs of some items, ascending, which are numbered anew."""
        first, second = np.tril_indices(len(items), -1)
        larger, smaller = items[first], items[second]
        found = object.__new__(PairTable)
        found.n_items, found.names = len(items), self.names
        found.padded = self.padded[larger * (larger - 1) // 2 + smaller]
        return found

    def row(self, first: int, second: int) -> UInt8s:
        """Return the features of two different items."""
        if first == second:
            raise InvalidArgumentError(f"item {first} has no features with itself: name two different items.")
        i, j = max(first, second), min(first, second)
        return np.asarray(self.values[i * (i - 1) // 2 + j])

    def rows(self, items: ArrayLike, others: ArrayLike) -> UInt8s:
        """Return the features of the pairs (items[k], others[k]), none of an item with itself."""
        first, second = np.broadcast_arrays(np.asarray(items, np.int64), np.asarray(others, np.int64))
        i, j = np.maximum(first, second), np.minimum(first, second)
        return np.asarray(self.values[i * (i - 1) // 2 + j])


def _check_truth_values(given: NDArray[Any]) -> None:
    wrong = (given != 0) & (given != 1)
    if wrong.any():
        raise InvalidArgumentError(
            f"pair features are truth values, but the table holds {given[wrong][0]}:"
            " cut numbers into bins, one feature each."
        )
