"""The base of all static templates over assignments: factors over fixed tuples of variables.

A subclass defines the statistics of a factor for given labels (`ScopedTemplate.entries`) and the factors as
tables of log-potentials (`ScopedTemplate.tables`). This class finds the factors that a diff touches, reads
the labels before and after it, and subtracts. Tables are linear in the weights, so learning uses their
transpose, from numbers on table entries to the weights: `ScopedTemplate.adjoint`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.model.contributions import Contributions
from factorwise.model.labels.program import LabelProgram
from factorwise.model.labels.statistics import Crossed, StatisticRows, written_out
from factorwise.model.template import Template, finite_difference
from factorwise.model.weights import SparseVector
from factorwise.types import Bools, Float64s, Floats, Int64s
from factorwise.validation import as_array, as_numbers
from factorwise.variables.sparse_rows import take_rows
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment, Relabel


class TableGroup(NamedTuple):
    """Factors of one arity with their tables.

    scopes : int64[factors, arity]
        Flat variable numbers.
    which : int64[factors]
        The table of each factor; factors may share one.
    tables : float64[tables, entries]
        Natural-log potentials in C order over the scope.
    """

    scopes: Int64s
    which: Int64s
    tables: Float64s

    def summed(self, arrays: Sequence[Floats]) -> Float64s:
        """Add arrays, one per factor, over the factors that share a table, into the shape of ``tables``."""
        count, entries = self.tables.shape
        if not len(arrays):
            return np.zeros((count, entries))
        rows = np.concatenate([np.ravel(array) for array in arrays]).reshape(len(arrays), entries)
        if count == 1:
            return np.asarray(rows.sum(axis=0, keepdims=True), dtype=np.float64)
        if count == len(rows) and bool((self.which == np.arange(count)).all()):
            return rows
        total = np.zeros((count, entries))
        np.add.at(total, self.which, rows)
        return total


class ScopedTemplate(Template[Assignment, Relabel]):
    """Factors over fixed tuples of variables.

    scopes : int64[factors, arity]
        Rows of ``column``, or flat variable numbers if ``column`` is None; no variable twice in a factor.
    column
        The column whose rows the scopes name.
    """

    scopes: Int64s
    column: Column | None = None
    layout = LabelProgram
    _bound: tuple[Variables, int] | None = None

    def entries(self, variables: Variables, factors: Int64s, labels: Int64s) -> tuple[Int64s, Float64s]:
        """Return index and value of the statistics of ``factors``, given one row of label codes for each."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)

    def constants(self, factors: Int64s, labels: Int64s) -> Float64s | None:
        """Return the score of each factor that no weight multiplies; None if there is none."""
        return None

    def has_constants(self) -> bool:
        """Whether there is a score that no weight multiplies."""
        return type(self).constants is not ScopedTemplate.constants

    def hard(self, factors: Int64s) -> Bools:
        """Return which of ``factors`` can forbid a setting; samples of factors always include them."""
        return np.zeros(len(factors), dtype=np.bool_)

    def tables(self, variables: Variables, weights: Floats) -> Iterator[TableGroup]:
        """Yield all factors as tables under ``weights``, the weights of this template."""
        raise NotImplementedError(f"{type(self).__name__} does not define its tables")

    def adjoint(self, variables: Variables, arrays: Sequence[Floats]) -> SparseVector:
        """Return the gradient, in the weights, of a sum over table entries: the transpose of `tables`.

        This default tries one weight after the other; a subclass that knows its tables can override it.

        arrays
            For each group that `tables` yields, the numbers that multiply its entries, in the shape of the
            group's tables.
        """
        total = np.zeros(self.size)
        constants = [group.tables for group in self.tables(variables, np.zeros(self.size))]
        for weight in range(self.size):
            unit = np.zeros(self.size)  # a new array each time, because tables may be views of the weights
            unit[weight] = 1.0
            for group, constant, array in zip(self.tables(variables, unit), constants, arrays, strict=True):
                slope = np.zeros_like(constant)
                np.subtract(group.tables, constant, out=slope, where=constant > -np.inf)
                total[weight] += np.vdot(array, slope)
        return SparseVector.from_dense(total)

    def expected(self, variables: Variables, beliefs: Sequence[Floats]) -> SparseVector:
        """Return the sum over all factors of the expected statistics.

        beliefs
            One array of joint probabilities per factor, in the order in which `tables` yields the factors.
        """
        if self.size == 0:
            return SparseVector.empty()
        groups, first = [], 0
        for group in self.tables(variables, np.zeros(self.size)):
            groups.append(group.summed(beliefs[first : first + len(group.scopes)]))
            first += len(group.scopes)
        return self.adjoint(variables, groups)

    def crossing(self) -> Crossed | None:
        """Return what `entries` cross with the joint setting of the labels, for compiled gradients.

        With None, the default, the statistics are listed for every setting.
        """
        return None

    def trusted_crossing(self) -> Crossed | None:
        """Return `crossing`, or None if a subclass overrides `entries` and not `crossing`."""
        for kind in type(self).__mro__:
            if "entries" in vars(kind) or "crossing" in vars(kind):
                return self.crossing() if "crossing" in vars(kind) else None
        return None

    def statistic_rows(self, variables: Variables) -> StatisticRows:
        """List the statistics of every setting, once for factors that share a table."""
        scopes = self.scopes + self.offset(variables)
        groups = list(self.tables(variables, np.zeros(self.size)))
        # if there are several groups, the factors are not in the order of the scopes
        which = groups[0].which if len(groups) == 1 else np.arange(len(scopes))

        def statistics(factor: int, setting: tuple[int, ...]) -> tuple[Int64s, Float64s]:
            return self.entries(variables, np.array([factor]), np.array([setting], dtype=np.int64))

        return written_out(scopes, which, variables.cardinality, statistics)

    def add_to(self, layout: LabelProgram, offset: int) -> None:
        """Add the factors to those of a compiled walk."""
        layout.add_factors(self, offset)

    def check(self, variables: Variables) -> None:
        """Refuse variables that do not fit the scopes; called once per set of variables."""
        if len(self.scopes) and int(self.scopes.max()) >= len(variables):
            raise InvalidArgumentError(
                f"template {self.name!r} names variable {int(self.scopes.max())}, but there are only"
                f" {len(variables)} variables: build it for the variables of this world."
            )

    def offset(self, variables: Variables) -> int:
        """Return the flat number of the first variable of the scopes, after checking that they fit."""
        if self._bound is not None and self._bound[0] is variables:
            return self._bound[1]
        start = 0
        if self.column is None:
            self.check(variables)
        else:
            start = column_start(self.name, self.column, variables)
        self._bound = (variables, start)
        return start

    @cached_property
    def touching(self) -> tuple[Int64s, Int64s]:
        """The factors of each row of the scopes as ``(start[rows + 1], factor[edges])``."""
        rows = self.scopes.ravel()
        order = np.argsort(rows, kind="stable")
        start = np.zeros(int(rows.max(initial=-1)) + 2, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(start) - 1), out=start[1:])
        return start, order // max(self.scopes.shape[1], 1)

    def touched(self, offset: int, diff: Relabel) -> Int64s:
        """Return the factors that involve a variable of ``diff``, each once."""
        start, factor = self.touching
        rows = np.asarray(diff.variables, dtype=np.int64) - offset
        rows = rows[(rows >= 0) & (rows < len(start) - 1)]
        if len(rows) == 1:
            return factor[start[rows[0]] : start[rows[0] + 1]]
        return np.unique(factor[ranges(start, rows)])

    def around(self, world: Assignment, diff: Relabel) -> tuple[Int64s, Int64s, Int64s]:
        """Return the touched factors with their labels before and after ``diff``."""
        offset = self.offset(world.variables)
        factors = self.touched(offset, diff)
        scopes = self.scopes[factors] + offset
        before = world.values[scopes].astype(np.int64)
        return factors, before, replaced(scopes, before, diff)

    def statistics(self, world: Assignment) -> SparseVector:
        """Return the sum of the statistics of all factors."""
        labels = world.values[self.scopes + self.offset(world.variables)].astype(np.int64)
        index, value = self.entries(world.variables, np.arange(len(self.scopes)), labels)
        if self.size <= 4 * len(index):  # counting is faster than sorting, unless most weights do not occur
            return SparseVector.from_dense(np.bincount(index, weights=value, minlength=self.size))
        return SparseVector.of(index, value)

    def difference(self, world: Assignment, diff: Relabel) -> SparseVector:
        """Return the statistics after ``diff`` minus those before it, from the touched factors only."""
        if self.size == 0:
            return SparseVector.empty()
        factors, before, after = self.around(world, diff)
        index, value = self.entries(world.variables, factors, after)
        lost, amount = self.entries(world.variables, factors, before)
        return SparseVector.of(np.concatenate([index, lost]), np.concatenate([value, -amount]))

    def constant(self, world: Assignment) -> float:
        """Return the score that no weight multiplies."""
        labels = world.values[self.scopes + self.offset(world.variables)].astype(np.int64)
        scores = self.constants(np.arange(len(self.scopes)), labels)
        return 0.0 if scores is None else float(scores.sum())

    def constant_gain(self, world: Assignment, diff: Relabel) -> float:
        """Return the change of `constant`, from the touched factors only."""
        if not self.has_constants():
            return 0.0
        factors, before, after = self.around(world, diff)
        now, then = self.constants(factors, before), self.constants(factors, after)
        if now is None or then is None:
            return 0.0
        return finite_difference(float(then.sum()), float(now.sum()))

    def contributions(
        self, world: Assignment, diff: Relabel, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the touched factors; a change is bounded by the range of the factor's table."""
        factors, before, after = self.around(world, diff)
        owner, index, value = self._listed_entries(world.variables, factors, before, after)
        now, then = self.constants(factors, before), self.constants(factors, after)
        constant = None
        if now is not None and then is not None:
            constant = [finite_difference(b, a) for a, b in zip(now.tolist(), then.tolist(), strict=True)]
        bound: Any = np.inf
        if bounds:
            groups = list(self.tables(world.variables, weights))
            # if there are several groups, the factors are not in the order of the scopes
            if len(groups) == 1:
                bound = np.ptp(np.nan_to_num(groups[0].tables, neginf=0.0), axis=1)[groups[0].which[factors]]
        return Contributions.weighted(
            len(factors),
            owner,
            index,
            value,
            weights,
            constant=constant,
            certain=self.hard(factors),
            bound=bound,
        )

    def _listed_entries(
        self, variables: Variables, factors: Int64s, before: Int64s, after: Int64s
    ) -> tuple[Int64s, Int64s, Float64s]:
        """Return the factor, weight and amount of every change of a statistic, ordered by factor."""
        owner: list[int] = []
        index: list[int] = []
        value: list[float] = []
        for factor_number in range(len(factors)):
            for labels, sign in ((after, 1.0), (before, -1.0)):
                where, amount = self.entries(
                    variables,
                    factors[factor_number : factor_number + 1],
                    labels[factor_number : factor_number + 1],
                )
                owner += [factor_number] * len(where)
                index += where.tolist()
                value += (sign * amount).tolist()
        return np.array(owner, np.int64), np.array(index, np.int64), np.array(value, np.float64)


def column_start(template: str, column: Column, variables: Variables) -> int:
    """Return where ``column`` begins in ``variables``, after checking that it is the same column."""
    actual = variables.column(column.name)
    if len(actual) != len(column) or actual.domain != column.domain:
        raise InvalidArgumentError(
            f"template {template!r} was built for column {column.name!r} with {len(column)} rows over"
            f" domain {column.domain.name!r} of {len(column.domain)} labels, but the world's column has"
            f" {len(actual)} rows and {len(actual.domain)} labels: build the template from the world's"
            " column."
        )
    return int(variables.slice_of(column.name).start)


def ranges(start: Int64s, rows: Int64s) -> Int64s:
    """Return the positions ``start[r]`` to ``start[r + 1] - 1`` of each row, one row after the other."""
    return take_rows(start, rows)[1]


def replaced(scopes: Int64s, labels: Int64s, diff: Relabel) -> Int64s:
    """Return ``labels`` of the variables ``scopes`` after ``diff``."""
    changed = np.asarray(diff.variables, dtype=np.int64)
    new = np.asarray(diff.new, dtype=np.int64)
    if len(changed) == 1:
        return np.where(scopes == changed[0], new[0], labels)
    if len(changed) == 0:
        return labels.copy()
    order = np.argsort(changed)
    position = np.minimum(np.searchsorted(changed[order], scopes), len(changed) - 1)
    return np.where(changed[order][position] == scopes, new[order][position], labels)


def scope_array(template: str, values: Any, arity: int | None = None) -> Int64s:
    """Check scopes from a user and return them as int64[factors, arity]."""
    scopes = as_array(f"the scopes of template {template!r}", values)
    if scopes.size == 0:
        return np.zeros((0, arity or 1), dtype=np.int64)
    if scopes.ndim != 2 or (arity is not None and scopes.shape[1] != arity):
        wanted = "arity" if arity is None else str(arity)
        raise ShapeError(
            f"the scopes of template {template!r} have shape {scopes.shape}: give factors x {wanted}"
            " integers, one row per factor."
        )
    if scopes.dtype.kind not in "iu" or scopes.min() < 0:
        raise InvalidArgumentError(
            f"the scopes of template {template!r} must be numbers of variables, zero or more, but are"
            f" {scopes.dtype} from {scopes.min()} on."
        )
    ordered = np.sort(scopes, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        raise InvalidArgumentError(
            f"factor {int(twice[0])} of template {template!r} names a variable twice"
            f" ({scopes[twice[0]].tolist()}): use a template over fewer variables for it."
        )
    return scopes.astype(np.int64)


def log_potentials(template: str, values: ArrayLike) -> Float64s:
    """Check log-potentials from a user: finite, or -inf to forbid a setting."""
    tables = as_numbers(f"tables of template {template!r}", values)
    wrong = np.isnan(tables) | np.isposinf(tables)
    if wrong.any():
        raise InvalidArgumentError(
            f"a table of template {template!r} holds {tables[wrong].flat[0]}: log-potentials must be"
            " finite, or -inf to forbid a setting."
        )
    return tables
