"""A grounded factor graph: one immutable record of named flat arrays.

Templates and the variables of an assignment are unrolled into this record. All exact and message-passing
methods and the compiled samplers for assignments read it. Factors with the same table share its storage, so a
million tied factors need a million offsets and one table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.types import Float64s, Floats, Int64s
from factorwise.validation import as_floats, as_ints, check_range, check_starts
from factorwise.views import html_table


@dataclass(frozen=True, slots=False, eq=False)
class FactorGraph:
    """Discrete variables and log-potential tables over tuples of them.

    cardinality : int64[variables]
        Number of labels of each variable, at least 1.
    scope_start : int64[factors + 1]
        Factor ``f`` connects ``scope[scope_start[f]:scope_start[f + 1]]``.
    scope : int64[edges]
        Variables of all factors, one after the other; no variable twice in one factor.
    table_start : int64[factors]
        Where the table of factor ``f`` begins in ``tables``; factors may share a table.
    tables : float64[entries]
        Natural-log potentials, each table in C order over its scope; ``-inf`` forbids, ``+inf`` and NaN
        are refused.
    """

    cardinality: Int64s
    scope_start: Int64s
    scope: Int64s
    table_start: Int64s
    tables: Float64s

    @classmethod
    def build(cls, cardinality: ArrayLike, factors: Iterable[tuple[Sequence[int], ArrayLike]]) -> FactorGraph:
        """Collect ``(scope, table)`` pairs; ``table.shape`` is the cardinality of each variable in scope."""
        sizes = np.atleast_1d(np.asarray(cardinality, dtype=np.int64))
        starts, offsets, entries = [0], [], 0
        scopes: list[int] = []
        pieces: list[Floats] = []
        for index, (scope, table) in enumerate(factors):
            values = np.asarray(table, dtype=np.float64)
            expected = tuple(int(sizes[v]) for v in scope if 0 <= v < len(sizes))
            if len(expected) != len(scope):
                raise InvalidArgumentError(
                    f"factor {index} names variables {tuple(scope)}, but there are only {len(sizes)}:"
                    f" use numbers from 0 to {len(sizes) - 1}."
                )
            if values.shape != expected:
                raise ShapeError(
                    f"the table of factor {index} over variables {tuple(scope)} has shape"
                    f" {values.shape}, but the cardinalities of its variables require {expected}:"
                    " reshape or transpose it."
                )
            offsets.append(entries)
            pieces.append(values.ravel())
            entries += values.size
            scopes.extend(scope)
            starts.append(len(scopes))
        return cls(
            sizes,
            np.array(starts, dtype=np.int64),
            np.array(scopes, dtype=np.int64),
            np.array(offsets, dtype=np.int64),
            np.concatenate(pieces) if pieces else np.zeros(0),
        )

    def __post_init__(self) -> None:
        keep = partial(object.__setattr__, self)
        for name in ("cardinality", "scope_start", "scope", "table_start"):
            keep(name, as_ints(name, getattr(self, name)))
        keep("tables", as_floats("tables", self.tables))
        require(
            len(self.cardinality) > 0, "cardinality", self.cardinality, "non-empty: a graph has variables"
        )
        require(bool((self.cardinality >= 1).all()), "cardinality", self.cardinality, "at least 1 everywhere")
        if np.isnan(self.tables).any() or np.isposinf(self.tables).any():
            where = int(np.flatnonzero(np.isnan(self.tables) | np.isposinf(self.tables))[0])
            raise InvalidArgumentError(
                f"entry {where} of the log-potentials is {self.tables[where]}: log-potentials must be"
                " finite, or -inf to forbid a setting."
            )
        check_starts(
            "scope_start", as_ints("scope_start", self.scope_start, size=self.n_factors + 1), len(self.scope)
        )
        check_range("scope", self.scope, self.n_variables)
        owner = np.repeat(np.arange(self.n_factors), np.diff(self.scope_start))
        self._check_tables(owner)
        pairs = owner * len(self.cardinality) + self.scope
        if len(np.unique(pairs)) != len(pairs):
            order = np.sort(pairs)
            factor, variable = divmod(int(order[:-1][order[1:] == order[:-1]][0]), len(self.cardinality))
            raise InvalidArgumentError(
                f"factor {factor} names variable {variable} twice: use the diagonal of its table instead."
            )

    def _check_tables(self, owner: Int64s) -> None:
        """Refuse a factor whose table would extend beyond the stored entries."""
        sizes = np.zeros(self.n_factors)
        np.add.at(sizes, owner, np.log2(self.cardinality[self.scope]))
        largest = float(sizes.max(initial=0.0))
        entries = np.ones(self.n_factors, np.int64)
        if largest < 62.0:  # a larger table would not fit into any memory
            np.multiply.at(entries, owner, self.cardinality[self.scope])
        wrong = (self.table_start < 0) | (self.table_start + entries > len(self.tables)) | (sizes >= 62.0)
        if wrong.any():
            factor = int(np.flatnonzero(wrong)[0])
            raise ShapeError(
                f"the table of factor {factor} begins at entry {int(self.table_start[factor])} and does not"
                f" fit into the {len(self.tables)} entries of tables."
            )

    def _repr_html_(self) -> str:
        arity, count = np.unique(np.diff(self.scope_start), return_counts=True)
        title = (
            f"FactorGraph: {self.n_variables} variables of {self.cardinality.min()} to"
            f" {self.cardinality.max()} labels, {self.n_factors} factors"
        )
        return html_table(
            title, ("variables in a factor", "factors"), zip(arity.tolist(), count.tolist(), strict=True)
        )

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cardinality)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.table_start)

    def scope_of(self, factor: int) -> tuple[int, ...]:
        """Return the variables of one factor."""
        return tuple(self.scope[self.scope_start[factor] : self.scope_start[factor + 1]].tolist())

    def table_of(self, factor: int) -> Floats:
        """Return the log-potentials of one factor, shaped by its scope (a view)."""
        shape = tuple(int(self.cardinality[v]) for v in self.scope_of(factor))
        start = self.table_start[factor]
        return self.tables[start : start + math.prod(shape)].reshape(shape)

    def factors(self) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """Yield ``(scope, table)`` of every factor."""
        for factor in range(self.n_factors):
            yield self.scope_of(factor), self.table_of(factor)

    @cached_property
    def touching(self) -> tuple[Int64s, Int64s]:
        """The factors of each variable as ``(start[variables + 1], factor[edges])``, in factor order."""
        owner = np.repeat(np.arange(self.n_factors, dtype=np.int64), np.diff(self.scope_start))
        order = np.argsort(self.scope, kind="stable")
        start = np.zeros(self.n_variables + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.scope, minlength=self.n_variables), out=start[1:])
        return start, owner[order]

    def score(self, values: ArrayLike) -> float:
        """Return the sum of the log-potentials of one full setting."""
        setting = np.asarray(values)
        return float(sum(table[tuple(setting[list(scope)])] for scope, table in self.factors()))
