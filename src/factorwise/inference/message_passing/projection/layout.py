"""The position of each probability in the flat vector of marginals that energies read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.types import Floats, Int64s
from factorwise.variables.sparse_rows import starts_of


@dataclass(frozen=True, eq=False)
class Layout:
    """Probabilities of the labels of each variable, then those of each factor of two or more variables.

    A measurement of variables only reads the first ``node_size`` entries of the vector.

    cardinality : int64[variables]
    scopes
        Variables of each factor; its entries are in C order.
    """

    cardinality: Int64s
    scopes: tuple[tuple[int, ...], ...]

    @classmethod
    def chain(cls, length: int, labels: int) -> Layout:
        """Return the layout of ``length`` positions with ``labels`` labels and a factor between neighbors."""
        return cls(np.full(length, labels), tuple((position, position + 1) for position in range(length - 1)))

    @cached_property
    def node_start(self) -> Int64s:
        """Where the labels of each variable begin, and the end of the last."""
        return starts_of(self.cardinality)

    @cached_property
    def factor_start(self) -> Int64s:
        """Where the entries of each factor begin, and the end of the last."""
        return self.node_size + starts_of([prod(self.shape(factor)) for factor in range(len(self.scopes))])

    @property
    def node_size(self) -> int:
        """Number of entries that belong to variables."""
        return int(self.node_start[-1])

    @property
    def size(self) -> int:
        """Number of all entries."""
        return int(self.factor_start[-1])

    def shape(self, factor: int) -> tuple[int, ...]:
        """Return the shape of one factor's table."""
        return tuple(int(self.cardinality[variable]) for variable in self.scopes[factor])

    def node(self, variable: int, label: int) -> int:
        """Return the position of one label of one variable."""
        self._check("variable", variable, len(self.cardinality))
        self._check(f"label of variable {variable}", label, int(self.cardinality[variable]))
        return int(self.node_start[variable]) + label

    def factor(self, factor: int, labels: Sequence[int]) -> int:
        """Return the position of one setting of one factor's variables."""
        self._check("factor", factor, len(self.scopes))
        shape = self.shape(factor)
        if len(labels) != len(shape):
            raise ShapeError(
                f"factor {factor} connects the variables {self.scopes[factor]}, but {len(labels)} labels were"
                f" given: give {len(shape)}."
            )
        for label, size in zip(labels, shape, strict=True):
            self._check(f"label of factor {factor}", label, size)
        return int(self.factor_start[factor] + np.ravel_multi_index(tuple(labels), shape))

    def split(self, flat: Floats) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """Cut a vector into one array per variable and one per factor; no factors if it contains none."""
        node = tuple(np.split(flat[: self.node_size], self.node_start[1:-1]))
        if len(flat) == self.node_size:
            return node, ()
        bounds = self.factor_start
        return node, tuple(
            flat[bounds[index] : bounds[index + 1]].reshape(self.shape(index))
            for index in range(len(self.scopes))
        )

    @staticmethod
    def _check(name: str, number: int, count: int) -> None:
        if not 0 <= number < count:
            raise InvalidArgumentError(f"{name} {number} does not exist: use numbers from 0 to {count - 1}.")
