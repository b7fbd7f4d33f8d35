"""The algebra of log-factors, in which message passing is written.

A factor is a function of a few discrete variables, held as a table of natural-log values; ``-inf`` is the
log of zero. Products add tables, quotients subtract them (zero over zero is zero), sums run through
log-sum-exp. So the message of a cluster reads as in a textbook::

    (potential * incoming).sum_out(variable)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError, require
from factorwise.types import Float64s, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A table of log-values over a tuple of variables.

    scope
        Variable numbers, one per axis of the table, none twice.
    table : float64[cardinality of each variable in scope]
        Natural-log values; ``-inf`` allowed, ``+inf`` and NaN refused.
    """

    scope: tuple[int, ...]
    table: Float64s

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", tuple(self.scope))
        object.__setattr__(self, "table", np.asarray(self.table, dtype=np.float64))
        require(len(set(self.scope)) == len(self.scope), "scope", self.scope, "free of repetitions")
        if self.table.ndim != len(self.scope):
            raise ShapeError(
                f"a table over variables {self.scope} has {len(self.scope)} axes, but shape"
                f" {self.table.shape} was given: reshape the table or change the scope."
            )
        if not bool((self.table < np.inf).all()):
            raise InvalidArgumentError(
                f"the table over variables {self.scope} holds +inf or NaN: log-values must be finite,"
                " or -inf for zero."
            )

    @property
    def cardinality(self) -> tuple[int, ...]:
        """Number of labels of each variable in scope."""
        return self.table.shape

    def __mul__(self, other: Factor) -> Factor:
        """Return the pointwise product over the union of the scopes."""
        return product((self, other))

    def __truediv__(self, other: Factor) -> Factor:
        """Return the pointwise quotient; zero over zero is zero, other divisions by zero are refused."""
        inverse = _trusted(other.scope, np.where(other.table == -np.inf, 0.0, -other.table))
        quotient = product((self, inverse))
        undefined = other.expanded(quotient.scope, quotient.cardinality).table == -np.inf
        if bool((quotient.table[undefined] > -np.inf).any()):
            raise InvalidArgumentError(
                f"the factor over {self.scope} is not zero everywhere the divisor over {other.scope} is:"
                " divide only by a marginal of the factor itself."
            )
        return quotient

    def sum_out(self, *variables: int) -> Factor:
        """Return the log-sum-exp over all labels of ``variables``."""
        axes, rest = self._split(variables)
        return _trusted(rest, log_sum_exp(self.table, axes))

    def max_out(self, *variables: int) -> Factor:
        """Return the maximum over all labels of ``variables``."""
        axes, rest = self._split(variables)
        return _trusted(rest, np.asarray(self.table.max(axis=axes)))

    def condition(self, labels: Mapping[int, int]) -> Factor:
        """Fix variables at a label each and drop them from the scope; others are ignored."""
        for variable, size in zip(self.scope, self.cardinality, strict=True):
            label = labels.get(variable, 0)
            require(0 <= label < size, f"label of variable {variable}", label, f"from 0 to {size - 1}")
        index = tuple(labels.get(variable, slice(None)) for variable in self.scope)
        rest = tuple(variable for variable in self.scope if variable not in labels)
        return _trusted(rest, np.asarray(self.table[index]))

    def expanded(self, scope: Sequence[int], cardinality: Sequence[int]) -> Factor:
        """Return the same function over a larger or reordered ``scope`` (a read-only view)."""
        require(set(self.scope) <= set(scope), "scope", tuple(scope), f"a superset of {self.scope}")
        sizes = tuple(cardinality)
        known = dict(zip(self.scope, self.cardinality, strict=True))
        wanted = tuple(known.get(v, size) for v, size in zip(scope, sizes, strict=True))
        if wanted != sizes:
            raise ShapeError(
                f"variables {tuple(scope)} cannot have cardinalities {sizes}: the factor over {self.scope}"
                f" has {self.cardinality}."
            )
        return _trusted(tuple(scope), np.broadcast_to(self._aligned(scope), sizes))

    def log_total(self) -> float:
        """Return the log of the sum of all values; ``-inf`` if all are zero."""
        return float(log_sum_exp(self.table, tuple(range(self.table.ndim))))

    def normalized(self) -> Factor:
        """Return the factor scaled so that its values sum to one."""
        total = self.log_total()
        if total == -np.inf:
            raise ImpossibleError(
                f"the factor over variables {self.scope} is zero everywhere and cannot be normalized:"
                " replace some -inf by a large negative score."
            )
        return _trusted(self.scope, self.table - total)

    def probabilities(self) -> Float64s:
        """Return the normalized values, not their logs."""
        return np.asarray(np.exp(self.normalized().table))

    def argmax(self) -> dict[int, int]:
        """Return the labels of a largest entry; of equal entries, those of the first in C order."""
        index = np.unravel_index(int(self.table.argmax()), self.table.shape)
        return {variable: int(label) for variable, label in zip(self.scope, index, strict=True)}

    def _split(self, variables: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        require(set(variables) <= set(self.scope), "variables", variables, f"in the scope {self.scope}")
        axes = tuple(axis for axis, variable in enumerate(self.scope) if variable in variables)
        return axes, tuple(variable for variable in self.scope if variable not in variables)

    def _aligned(self, scope: Sequence[int]) -> Float64s:
        """View the table with one axis per variable of ``scope``, of length 1 for variables that it lacks."""
        axes = [scope.index(variable) for variable in self.scope]
        table = self.table
        if axes != sorted(axes):
            table = table.transpose(sorted(range(len(axes)), key=axes.__getitem__))
        shape = [1] * len(scope)
        for axis, size in zip(axes, self.table.shape, strict=True):
            shape[axis] = size
        return table.reshape(shape)


def product(factors: Iterable[Factor], scope: Sequence[int] | None = None) -> Factor:
    """Multiply factors; the product of none is one.

    scope
        Axis order of the result, the union of all scopes in some order; by default the order of first
        appearance.
    """
    parts = tuple(factors)
    sizes: dict[int, int] = {}
    for part in parts:
        for variable, size in zip(part.scope, part.table.shape, strict=True):
            if sizes.setdefault(variable, size) != size:
                raise ShapeError(
                    f"variable {variable} has {sizes[variable]} labels in one factor and {size} in another:"
                    " build both over the same domain."
                )
    axes = tuple(sizes) if scope is None else tuple(scope)
    if len(axes) != len(sizes) or any(variable not in sizes for variable in axes):
        raise InvalidArgumentError(
            f"scope must be the union of all scopes, {tuple(sizes)}, in some order, but {axes} was given."
        )
    total = np.zeros([sizes[variable] for variable in axes])
    for part in parts:
        total += part._aligned(axes)
    return _trusted(axes, total)


def log_sum_exp(table: Floats, axes: tuple[int, ...]) -> Float64s:
    """Return the log of the sum of exp over ``axes``; rows of ``-inf`` give ``-inf``."""
    if not axes:
        return np.asarray(table, dtype=np.float64)
    peak = table.max(axis=axes, keepdims=True)
    peak[peak == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(table - peak).sum(axis=axes))
    return np.asarray(total + peak.reshape(total.shape))


def expectation(probabilities: Floats, scores: Floats) -> float:
    """Return the mean score; an entry ``-inf`` with probability zero counts as zero."""
    seen = probabilities > 0
    return float(np.dot(probabilities[seen], scores[seen]))


def _trusted(scope: tuple[int, ...], table: Float64s) -> Factor:
    """Build a factor from a scope and a table that need no check."""
    factor = object.__new__(Factor)
    object.__setattr__(factor, "scope", scope)
    object.__setattr__(factor, "table", table)
    return factor
