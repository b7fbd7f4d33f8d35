"""Templates over assignments whose statistics are computed by a user's functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.kernels.assignments.touched import touched_functions
from factorwise.kernels.compile.programs import Program
from factorwise.model.labels.base import ScopedTemplate, TableGroup, scope_array
from factorwise.model.labels.statistics import StatisticRows
from factorwise.model.template import Template
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Floats, Int64s
from factorwise.variables.domain import Codes
from factorwise.variables.variable import Variables
from factorwise.world.assignment import Assignment, Relabel


class TupleTemplate(ScopedTemplate):
    """Statistics of fixed tuples of variables, from a plain function of their labels.

    scopes : int[factors, arity]
        Flat variable numbers; see `Variables.number`.
    function
        ``function(label, ..., datum, ...)`` gets the labels of one factor (as the domain lists them, not
        their codes) and the factor's entry of each ``data`` column. It returns a tuple of numbers, which must
        depend on the arguments only.
    statistic_names
        The name of each statistic.
    data
        Columns with one entry per factor.
    """

    def __init__(
        self,
        name: str,
        scopes: ArrayLike,
        function: Callable[..., Any],
        statistic_names: Sequence[str],
        data: Sequence[Sequence[Any]] | None = None,
    ) -> None:
        self.name = name
        self.scopes = scope_array(name, scopes)
        self.function = function
        self.statistic_names = tuple(statistic_names)
        self.size = len(self.statistic_names)
        self.data = tuple(data or ())
        self._known: tuple[object, list[tuple[Int64s, Int64s, Float64s]]] | None = None
        for number, column in enumerate(self.data):
            if len(column) != len(self.scopes):
                raise ShapeError(
                    f"data column {number} of template {name!r} has {len(column)} rows, but there are"
                    f" {len(self.scopes)} factors: give one row per factor."
                )

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Call the function for each factor."""
        rows = [
            self._call(variables, factor, codes)
            for factor, codes in zip(factors.tolist(), labels.tolist(), strict=True)
        ]
        values = np.array(rows, dtype=np.float64).reshape(len(rows), self.size)
        return np.tile(np.arange(self.size, dtype=np.int64), len(rows)), values.ravel()

    def tables(self, variables: Variables, weights: Floats) -> Iterator[TableGroup]:
        """Yield one table per factor or, without data, one per combination of domains."""
        for scopes, which, numbers in self._statistics_tables(variables):
            yield TableGroup(scopes, which, numbers @ np.asarray(weights, dtype=np.float64))

    def adjoint(self, variables: Variables, arrays: Sequence[Floats]) -> SparseVector:
        """Add the statistics of all table entries, each times the number given for it."""
        total = np.zeros(self.size)
        for (_, _, numbers), array in zip(self._statistics_tables(variables), arrays, strict=True):
            total += np.tensordot(array, numbers, axes=2)
        return SparseVector.from_dense(total)

    def statistic_rows(self, variables: Variables) -> StatisticRows:
        """List the statistics from which the tables are computed."""
        scopes, first, counts, index, value, rows = [], [], [], [], [], 0
        for scope, which, numbers in self._statistics_tables(variables):
            row, statistic = np.nonzero(numbers.reshape(-1, self.size))
            scopes.append(scope)
            first.append(rows + which * numbers.shape[1])
            counts.append(np.bincount(row, minlength=numbers.shape[0] * numbers.shape[1]))
            index.append(statistic)
            value.append(numbers.reshape(-1, self.size)[row, statistic])
            rows += len(counts[-1])
        start = np.append(0, np.cumsum(np.concatenate(counts))).astype(np.int64)
        return StatisticRows(
            np.concatenate(scopes), np.concatenate(first), start, np.concatenate(index), np.concatenate(value)
        )

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: {self.statistic_names[index]}"

    def _statistics_tables(self, variables: Variables) -> list[tuple[Int64s, Int64s, Float64s]]:
        """Return scopes, ``which`` and float64[tables, entries, size] per group.

        The function is called only once for every table entry, because learning asks for the tables again and
        again.
        """
        self.offset(variables)
        if self._known is None or self._known[0] != variables.layout:
            self._known = (variables.layout, list(self._called(variables)))
        return self._known[1]

    def _called(self, variables: Variables) -> Iterator[tuple[Int64s, Int64s, Float64s]]:
        cardinality = variables.cardinality[self.scopes]
        column = np.searchsorted(variables.start, self.scopes, side="right")
        key = column if not self.data else np.hstack([column, np.arange(len(self.scopes))[:, None]])
        _, first, which = np.unique(key, axis=0, return_index=True, return_inverse=True)
        shapes, kind = np.unique(cardinality[first], axis=0, return_inverse=True)
        for number, shape in enumerate(shapes):
            chosen = np.flatnonzero(kind.ravel() == number)
            position = np.full(len(first), -1, dtype=np.int64)
            position[chosen] = np.arange(len(chosen))
            mine = position[which.ravel()]
            settings = np.indices(tuple(shape)).reshape(len(shape), -1).T.tolist()
            numbers = [
                [self._call(variables, factor, codes) for codes in settings]
                for factor in first[chosen].tolist()
            ]
            members = mine >= 0
            shaped = np.array(numbers, dtype=np.float64).reshape(len(chosen), len(settings), self.size)
            yield self.scopes[members], mine[members], shaped

    def _call(self, variables: Variables, factor: int, codes: Sequence[int]) -> tuple[float, ...]:
        scope = self.scopes[factor].tolist()
        labels = [variables.domain_of(v).labels[code] for v, code in zip(scope, codes, strict=True)]
        result = self.function(*labels, *(column[factor] for column in self.data))
        where = f"factor {factor} over variables {tuple(scope)} with labels {tuple(labels)}"
        return checked_statistics(self.name, where, result, self.size)


class DynamicTemplate(Template[Assignment, Relabel]):
    """Factors that appear and disappear with the labels, from two plain functions of the array of codes.

    touched
        ``touched(values, variable, out) -> count`` writes to the first rows of ``out`` the keys of all
        factors that exist in ``values`` and whose existence or statistics depend on ``variable``.
    statistics
        ``statistics(values, key) -> tuple`` returns the numbers of one factor.
    statistic_names
        The name of each statistic.
    key_width
        How many integers identify a factor.
    max_touched
        The largest number of factors that one variable can touch.
    """

    def __init__(
        self,
        name: str,
        touched: Callable[[Codes, int, Int64s], int],
        statistics: Callable[[Codes, Int64s], Any],
        statistic_names: Sequence[str],
        *,
        key_width: int = 2,
        max_touched: int = 64,
    ) -> None:
        if key_width < 1 or max_touched < 1:
            raise InvalidArgumentError(
                f"key_width and max_touched must be at least 1, but {key_width} and {max_touched} were given."
            )
        self.name = name
        self.touched = touched
        self.statistics_of = statistics
        self.statistic_names = tuple(statistic_names)
        self.size = len(self.statistic_names)
        self.key_width = key_width
        self.max_touched = max_touched

    def keys(self, values: Codes, variable: int) -> Int64s:
        """Return the keys of the factors that ``variable`` touches, sorted, each once."""
        out = np.zeros((self.max_touched, self.key_width), dtype=np.int64)
        try:
            count = self.touched(values, variable, out)
        except IndexError as error:
            raise TemplateError(
                f"touched of template {self.name!r} wrote outside its {self.max_touched} x {self.key_width}"
                f" rows of keys at variable {variable}: raise max_touched or key_width."
            ) from error
        if not isinstance(count, (int, np.integer)) or not 0 <= count <= self.max_touched:
            raise TemplateError(
                f"touched of template {self.name!r} returned {count!r} at variable {variable}: return how"
                f" many keys it wrote, 0 to max_touched = {self.max_touched}."
            )
        return np.unique(out[:count], axis=0)

    def statistics(self, world: Assignment) -> SparseVector:
        """Return the sum of the statistics of all factors that exist in ``world``."""
        every = [self.keys(world.values, variable) for variable in range(len(world.values))]
        distinct = np.unique(np.concatenate(every), axis=0)
        return SparseVector.from_dense(self._total(world.values, distinct))

    def difference(self, world: Assignment, diff: Relabel) -> SparseVector:
        """Return the statistics after ``diff`` minus those before it, from the touched factors only.

        The changes of the diff are applied one after the other.
        """
        values = world.values.copy()
        total = np.zeros(self.size)
        for variable, new in zip(diff.variables, diff.new, strict=True):
            total -= self._total(values, self.keys(values, variable))
            values[variable] = new
            total += self._total(values, self.keys(values, variable))
        return SparseVector.from_dense(total)

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: {self.statistic_names[index]}"

    def program(self, world: Assignment, offset: int, weights: Floats) -> Program:
        """Return the program, which calls the functions before and after a change."""
        rows = 2 * self.max_touched + 64  # compiled code writes before its count can be checked
        arrays = {
            "keys": np.zeros((rows, self.key_width), np.int64),
            "weights": weights,
            "offset": [offset],
            "change": np.zeros(self.size),
        }
        functions: dict[str, Any] = touched_functions(self.touched, self.statistics_of, self.max_touched)
        return Program(name=f"factors of {self.name!r}", arrays=arrays, entries=self.size, **functions)

    def _total(self, values: Codes, keys: Int64s) -> Float64s:
        total = np.zeros(self.size)
        for key in keys:
            where = f"factor {tuple(key.tolist())}"
            total += checked_statistics(self.name, where, self.statistics_of(values, key), self.size)
        return total


def checked_statistics(template: str, factor: str, result: Any, size: int) -> tuple[float, ...]:
    """Check what a user's function returned: refuse other types, wrong numbers of values, and NaN."""
    if not isinstance(result, (tuple, list, np.ndarray)):
        raise TemplateError(
            f"template {template!r} returned {type(result).__name__} {result!r} for {factor}: return a tuple"
            f" of {size} numbers."
        )
    if len(result) != size:
        raise TemplateError(
            f"template {template!r} returned {len(result)} statistics for {factor}, but it has {size}"
            " statistic names: return one number for each."
        )
    try:
        numbers = tuple(float(value) for value in result)
    except (TypeError, ValueError) as error:
        raise TemplateError(
            f"template {template!r} returned {result!r} for {factor}: return a tuple of {size} numbers."
        ) from error
    if not all(map(math.isfinite, numbers)):
        raise TemplateError(
            f"template {template!r} returned {numbers} for {factor}: statistics must be finite numbers."
            " To forbid a setting, use Tables with -inf."
        )
    return numbers
