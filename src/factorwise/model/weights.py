"""Sparse statistics, and a flat weight vector with one named block per template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, WeightError
from factorwise.types import Float64s, Int64s
from factorwise.validation import as_numbers


@dataclass(frozen=True, slots=True, eq=False)
class SparseVector:
    """The entries of a vector that are not zero: ``index``, ascending and without repeats, and ``value``."""

    index: Int64s
    value: Float64s

    @classmethod
    def of(cls, index: ArrayLike, value: ArrayLike) -> SparseVector:
        """Build from entries; those with the same index are summed, and zeros are dropped."""
        where = np.atleast_1d(np.asarray(index, dtype=np.int64))
        amount = np.atleast_1d(np.asarray(value, dtype=np.float64))
        if where.ndim != 1 or where.shape != amount.shape:
            raise ShapeError(
                f"index and value must have one entry each, but have shapes {where.shape} and {amount.shape}."
            )
        unique, inverse = np.unique(where, return_inverse=True)
        total = np.bincount(inverse, weights=amount, minlength=len(unique))
        kept = total != 0.0
        return cls(unique[kept], total[kept])

    @classmethod
    def empty(cls) -> SparseVector:
        """Return the zero vector."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def from_dense(cls, values: ArrayLike) -> SparseVector:
        """Build from the entries of a dense vector that are not zero."""
        dense = np.atleast_1d(np.asarray(values, dtype=np.float64))
        index = np.flatnonzero(dense)
        return cls(index, dense[index])

    @classmethod
    def sum(cls, parts: Iterable[SparseVector]) -> SparseVector:
        """Return the sum of vectors."""
        listed = list(parts)
        if not listed:
            return cls.empty()
        return cls.of(np.concatenate([p.index for p in listed]), np.concatenate([p.value for p in listed]))

    def dot(self, weights: Float64s) -> float:
        """Return the inner product with a dense vector."""
        return float(self.value @ weights[self.index])

    def scaled(self, factor: float) -> SparseVector:
        """Return the vector with every entry multiplied by ``factor``."""
        return SparseVector(self.index, self.value * factor)

    def shifted(self, offset: int) -> SparseVector:
        """Return the vector with indices of the whole weight vector instead of a template's block."""
        return SparseVector(self.index + offset, self.value)

    def to_dense(self, size: int) -> Float64s:
        """Return the vector with its zeros."""
        dense = np.zeros(size)
        dense[self.index] = self.value
        return dense


@dataclass(frozen=True, slots=True)
class WeightBlocks:
    """Where the weights of each template lie in the flat vector."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        repeated = {name for name in self.names if self.names.count(name) > 1}
        if repeated:
            raise InvalidArgumentError(
                f"two templates are called {sorted(repeated)[0]!r}: weight blocks are found by name, so"
                " give each template its own name."
            )

    @property
    def size(self) -> int:
        """Length of the flat vector."""
        return sum(self.sizes)

    def slice_of(self, name: str) -> slice:
        """Return the part of the flat vector that belongs to one template."""
        if name not in self.names:
            raise InvalidArgumentError(f"no template is called {name!r}: the model has {list(self.names)}.")
        position = self.names.index(name)
        start = sum(self.sizes[:position])
        return slice(start, start + self.sizes[position])

    def flat(self, vector: ArrayLike | Mapping[str, ArrayLike] | None) -> Float64s:
        """Check weights and return a flat copy.

        vector
            One vector, or weights by block; missing blocks are zero.
        """
        if vector is None:
            return np.zeros(self.size)
        if isinstance(vector, Mapping):
            weights = np.zeros(self.size)
            for name, block in vector.items():
                part = self.slice_of(str(name))
                values = as_numbers(f"block {name!r} of weights", block).ravel()
                if len(values) != part.stop - part.start:
                    raise WeightError(
                        f"block {name!r} has {part.stop - part.start} weights, but {len(values)} were given."
                    )
                weights[part] = values
        else:
            weights = as_numbers("weights", vector).ravel().copy()
        if len(weights) != self.size:
            raise WeightError(
                f"the model has {self.size} weights ({dict(zip(self.names, self.sizes, strict=True))}),"
                f" but {len(weights)} were given."
            )
        wrong = np.flatnonzero(~np.isfinite(weights))
        if len(wrong):
            raise WeightError(
                f"weight {int(wrong[0])} is {weights[wrong[0]]}: weights must be finite numbers. To"
                " forbid a setting, use a table or a constraint with -inf instead of a weight."
            )
        return weights
