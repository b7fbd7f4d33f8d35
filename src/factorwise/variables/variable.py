"""Variables in columns: blocks of variables with a common domain, numbered consecutively."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.types import Bools, Int32s, Int64s
from factorwise.validation import as_numbers, check_count
from factorwise.variables.domain import Codes, Domain

HIDDEN = -1


@dataclass(frozen=True, eq=False)
class Column:
    """A named block of variables that share a domain.

    name
        How templates and users refer to the block.
    domain
        The labels its variables may take.
    codes : int32[rows]
        The label of each observed variable; -1 for a hidden one, which is inferred.
    """

    name: str
    domain: Domain
    codes: Codes

    def __post_init__(self) -> None:
        if len(self.domain) == 0:
            raise InvalidArgumentError(f"column {self.name!r} has an empty domain: give it labels.")
        codes = as_numbers("codes", self.codes, np.int32).copy()
        if codes.ndim != 1:
            raise ShapeError(f"column {self.name!r} needs one code per row, but has shape {codes.shape}.")
        wrong = np.flatnonzero((codes < HIDDEN) | (codes >= len(self.domain)))
        if len(wrong):
            raise InvalidArgumentError(
                f"row {int(wrong[0])} of column {self.name!r} has code {int(codes[wrong[0]])}: use -1 for a"
                f" hidden variable, or 0 to {len(self.domain) - 1} for an observed one."
            )
        codes.setflags(write=False)
        object.__setattr__(self, "codes", codes)

    @classmethod
    def hidden(cls, name: str, domain: Domain, rows: int) -> Column:
        """Return a column in which nothing is observed."""
        check_count("rows", rows, 0)
        return cls(name, domain, np.full(rows, HIDDEN, dtype=np.int32))

    @classmethod
    def of(cls, name: str, domain: Domain, labels: Any, observed: ArrayLike | None = None) -> Column:
        """Return a column with the given labels; rows that ``observed`` marks false are hidden.

        By default every row is observed.
        """
        codes = domain.encode(labels)
        if observed is not None:
            mask = np.asarray(observed, dtype=bool)
            if mask.shape != codes.shape:
                raise ShapeError(
                    f"the observed mask of column {name!r} has shape {mask.shape}, but there are"
                    f" {len(codes)} labels: give one entry per row."
                )
            codes = np.where(mask, codes, HIDDEN).astype(np.int32)
        return cls(name, domain, codes)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def observed(self) -> Bools:
        """Whether each variable is observed, and therefore fixed."""
        return np.not_equal(self.codes, HIDDEN)


class Variables:
    """All variables of a problem, numbered consecutively, column after column and row after row.

    >>> tag = Column.hidden("tag", Domain("tag", ["N", "V"]), 3)
    >>> topic = Column.of("topic", Domain("topic", ["war", "peace"]), ["peace"])
    >>> variables = Variables([tag, topic])
    >>> variables.number("topic", 0), variables.locate(2)
    (3, ('tag', 2))
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        self.columns = tuple(columns)
        names = [column.name for column in self.columns]
        self._position = {name: position for position, name in enumerate(names)}
        if len(self._position) != len(names):
            again = next(name for name in names if names.count(name) > 1)
            raise InvalidArgumentError(f"two columns are called {again!r}: give each column its own name.")
        self.start: Int64s = np.zeros(len(names) + 1, dtype=np.int64)
        np.cumsum([len(column) for column in self.columns], out=self.start[1:])
        if self.start[-1] == 0:
            raise EmptyWorldError("there are no variables: give at least one column with at least one row.")

    def __len__(self) -> int:
        return int(self.start[-1])

    def column(self, name: str) -> Column:
        """Return the column called ``name``."""
        return self.columns[self._place(name)]

    def slice_of(self, name: str) -> slice:
        """Return the flat numbers of one column."""
        position = self._place(name)
        return slice(int(self.start[position]), int(self.start[position + 1]))

    def number(self, column: str, row: int) -> int:
        """Return the flat number of the variable in ``row`` of ``column``."""
        part = self.slice_of(column)
        if not 0 <= row < part.stop - part.start:
            raise InvalidArgumentError(
                f"column {column!r} has no row {row}: its rows are 0 to {part.stop - part.start - 1}."
            )
        return int(part.start) + row

    def locate(self, number: int) -> tuple[str, int]:
        """Return the column and the row of a flat number."""
        position = self._column_of(number)
        return self.columns[position].name, int(number - self.start[position])

    def domain_of(self, number: int) -> Domain:
        """Return the domain of one variable."""
        return self.columns[self._column_of(number)].domain

    @cached_property
    def cardinality(self) -> Int64s:
        """Number of labels of each variable."""
        sizes = np.array([len(column.domain) for column in self.columns], dtype=np.int64)
        return np.repeat(sizes, np.diff(self.start))

    @cached_property
    def codes(self) -> Codes:
        """Label of each observed variable, -1 for hidden ones."""
        return np.concatenate([column.codes for column in self.columns])

    @cached_property
    def observed(self) -> Bools:
        """Whether each variable is observed, and therefore fixed."""
        return np.not_equal(self.codes, HIDDEN)

    @cached_property
    def hidden(self) -> Int64s:
        """Numbers of the hidden variables."""
        return np.flatnonzero(~self.observed)

    @cached_property
    def movable(self) -> Int64s:
        """Numbers of the hidden variables that have more than one label."""
        return np.flatnonzero(~self.observed & (self.cardinality > 1))

    @cached_property
    def walked(self) -> tuple[Int32s, Int32s]:
        """`cardinality` and `movable` in the form that compiled walks read."""
        return self.cardinality.astype(np.int32), self.movable.astype(np.int32)

    @cached_property
    def pools(self) -> tuple[Int64s, ...]:
        """Groups of two or more movable variables with the same domain, which may exchange labels."""
        members: dict[Domain, list[Int64s]] = {}
        for column, start in zip(self.columns, self.start[:-1], strict=True):
            if len(column.domain) > 1:
                members.setdefault(column.domain, []).append(start + np.flatnonzero(~column.observed))
        pools = (np.concatenate(parts) for parts in members.values())
        return tuple(pool for pool in pools if len(pool) > 1)

    @cached_property
    def layout(self) -> tuple[tuple[str, Domain, int], ...]:
        """Name, domain and number of rows of each column; worlds with equal layouts can be compared."""
        return tuple((column.name, column.domain, len(column)) for column in self.columns)

    def _place(self, name: str) -> int:
        position = self._position.get(name)
        if position is None:
            raise InvalidArgumentError(
                f"no column is called {name!r}: the columns are {[column.name for column in self.columns]}."
            )
        return position

    def _column_of(self, number: int) -> int:
        if not 0 <= number < len(self):
            raise InvalidArgumentError(
                f"there is no variable {number}: variables are numbered 0 to {len(self) - 1}."
            )
        return int(np.searchsorted(self.start, number, side="right")) - 1
