"""Templates that count a label within groups of variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.model.contributions import Contributions
from factorwise.model.labels.base import column_start, log_potentials, ranges
from factorwise.model.labels.program import LabelProgram
from factorwise.model.template import Template, finite_difference
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Floats, Int64s
from factorwise.validation import check_count
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment, Relabel


class Cardinality(Template[Assignment, Relabel]):
    """One factor per group of rows of ``column``, which depends on how many of them have ``label``.

    groups
        Lists of rows, which may overlap; or one integer per row, the row's group (-1: in none). By default
        all rows form one group.
    maximum
        Each count from 0 has a weight of its own, up to ``maximum``, whose weight larger counts share. By
        default the size of the largest group.
    statistics_of
        Other statistics of a count instead: a function of the count that returns a number or a tuple of
        numbers, or an array with one row per count from 0 to the size of the largest group.
    fixed
        Log-potential of each count that no weight multiplies, up to the size of the largest group; ``-inf``
        forbids a count. Without ``maximum`` or ``statistics_of`` the template then has no weights.
    """

    layout = LabelProgram

    def __init__(
        self,
        column: Column,
        label: Hashable,
        groups: Any = None,
        *,
        maximum: int | None = None,
        statistics_of: Callable[[int], Any] | ArrayLike | None = None,
        fixed: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.column = column
        self.label = label
        self.code = column.domain.code(label)
        self.name = name or f"{column.name} count of {label}"
        self.start, self.rows = _grouped(self.name, column, groups)
        largest = int(np.diff(self.start).max(initial=0))
        self.one_hot = statistics_of is None
        if statistics_of is not None:
            if maximum is not None:
                raise InvalidArgumentError(
                    f"template {self.name!r} was given maximum and statistics_of: give one of them."
                )
            self.basis = _basis(self.name, statistics_of, largest)
        elif fixed is not None and maximum is None:
            self.basis = np.zeros((largest + 1, 0))
        else:
            top = largest if maximum is None else maximum
            check_count("maximum", top, 0)
            self.basis = np.eye(top + 1)[np.minimum(np.arange(largest + 1), top)]
        self.size = self.basis.shape[1]
        self.fixed = None if fixed is None else log_potentials(self.name, fixed)
        if self.fixed is not None and self.fixed.shape != (largest + 1,):
            raise ShapeError(
                f"the fixed log-potentials of template {self.name!r} have shape {self.fixed.shape}, but"
                f" its largest group allows counts from 0 to {largest}: give {largest + 1} numbers."
            )

    @property
    def n_groups(self) -> int:
        """Number of factors."""
        return len(self.start) - 1

    def potentials(self, weights: Floats) -> Float64s:
        """Return the log-potential of each count under ``weights``, the weights of this template."""
        scores = np.asarray(self.basis @ weights, dtype=np.float64)
        return scores if self.fixed is None else scores + self.fixed

    def adjoint(self, array: Floats) -> SparseVector:
        """Return the gradient, in the weights, of a sum over counts: the transpose of `potentials`.

        array
            The number that multiplies the potential of each count.
        """
        return SparseVector.from_dense(array @ self.basis)

    def expected(self, beliefs: Sequence[Floats]) -> SparseVector:
        """Return the sum over the groups of the expected statistics.

        beliefs
            One array of joint probabilities per group, in any order, with one axis per member.
        """
        chance = np.zeros(len(self.basis))
        axes = np.array([np.ndim(belief) for belief in beliefs])
        for size in np.unique(axes).tolist():
            joint = np.sum([beliefs[group] for group in np.flatnonzero(axes == size).tolist()], axis=0)
            count = (np.indices(joint.shape) == self.code).sum(axis=0)
            chance[: size + 1] += np.bincount(count.ravel(), weights=joint.ravel(), minlength=size + 1)
        return self.adjoint(chance)

    def members(self, variables: Variables) -> Int64s:
        """Return the flat numbers of the groups' variables, group after group."""
        return self.rows + column_start(self.name, self.column, variables)

    @cached_property
    def _memberships(self) -> tuple[Int64s, Int64s]:
        """The groups of each row as ``(start[rows + 1], group[memberships])``."""
        group = np.repeat(np.arange(self.n_groups), np.diff(self.start))
        order = np.argsort(self.rows, kind="stable")
        start = np.zeros(len(self.column) + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.rows, minlength=len(self.column)), out=start[1:])
        return start, group[order]

    def _counts(self, world: Assignment, groups: Int64s) -> Int64s:
        position = ranges(self.start, groups)
        owner = np.repeat(np.arange(len(groups)), self.start[groups + 1] - self.start[groups])
        has = world.values[self.members(world.variables)[position]] == self.code
        return np.bincount(owner[has], minlength=len(groups))

    def _changed(self, world: Assignment, diff: Relabel) -> tuple[Int64s, Int64s]:
        """Return the groups whose count ``diff`` changes, with their counts before and after it."""
        offset = column_start(self.name, self.column, world.variables)
        rows = np.asarray(diff.variables, dtype=np.int64) - offset
        step = np.equal(diff.new, self.code).astype(np.int64) - np.equal(diff.old, self.code)
        moved = (rows >= 0) & (rows < len(self.column)) & (step != 0)
        start, group = self._memberships
        rows, step = rows[moved], step[moved]
        touched, inverse = np.unique(group[ranges(start, rows)], return_inverse=True)
        shift = np.zeros(len(touched), dtype=np.int64)
        np.add.at(shift, inverse, np.repeat(step, start[rows + 1] - start[rows]))
        before = self._counts(world, touched)
        return before, before + shift

    def statistics(self, world: Assignment) -> SparseVector:
        """Return the sum of the statistics of all groups."""
        counts = self._counts(world, np.arange(self.n_groups))
        return SparseVector.from_dense(np.bincount(counts, minlength=len(self.basis)) @ self.basis)

    def difference(self, world: Assignment, diff: Relabel) -> SparseVector:
        """Return the statistics after ``diff`` minus those before it, from the groups whose count changes."""
        before, after = self._changed(world, diff)
        return SparseVector.from_dense((self.basis[after] - self.basis[before]).sum(axis=0))

    def constant(self, world: Assignment) -> float:
        """Return the sum of the fixed log-potentials of all counts."""
        if self.fixed is None:
            return 0.0
        return float(self.fixed[self._counts(world, np.arange(self.n_groups))].sum())

    def constant_gain(self, world: Assignment, diff: Relabel) -> float:
        """Return the change of the fixed log-potentials, from the groups whose count changes."""
        if self.fixed is None:
            return 0.0
        before, after = self._changed(world, diff)
        return finite_difference(float(self.fixed[after].sum()), float(self.fixed[before].sum()))

    def contributions(
        self, world: Assignment, diff: Relabel, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the groups' factors as one that is always examined, because a diff touches few groups."""
        return Contributions.whole(self, world, diff, weights)

    def add_to(self, layout: LabelProgram, offset: int) -> None:
        """Add the counts to those of a compiled walk."""
        layout.add_counts(self, offset)

    def weight_name(self, index: int) -> str:
        """Return the name of the count."""
        if not self.one_hot:
            return f"{self.name}: statistic {index}"
        if index == self.size - 1 and self.size < len(self.basis):
            return f"{self.name}: {index} or more"
        return f"{self.name}: {index}"


def _grouped(name: str, column: Column, groups: Any) -> tuple[Int64s, Int64s]:
    """Check groups and return them as ``(start[groups + 1], row[memberships])``."""
    if groups is None:
        return np.array([0, len(column)], dtype=np.int64), np.arange(len(column), dtype=np.int64)
    if isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "iu":
        if len(groups) != len(column):
            raise ShapeError(
                f"template {name!r} was given {len(groups)} group numbers for {len(column)} rows: give one"
                " per row, or lists of rows."
            )
        rows = np.flatnonzero(groups >= 0)
        _, group = np.unique(groups[rows], return_inverse=True)
        order = np.argsort(group, kind="stable")
        sizes, rows = np.bincount(group), rows[order]
    else:
        listed: Sequence[Int64s] = [np.unique(np.asarray(group, dtype=np.int64)) for group in groups]
        if any(len(distinct) != len(given) for distinct, given in zip(listed, groups, strict=True)):
            raise InvalidArgumentError(f"a group of template {name!r} lists a row twice: list each row once.")
        sizes = np.array([len(group) for group in listed], dtype=np.int64)
        rows = np.concatenate(listed) if listed else np.zeros(0, dtype=np.int64)
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(column):
            raise InvalidArgumentError(
                f"a group of template {name!r} names row {int(rows.max())}, but column {column.name!r}"
                f" has rows 0 to {len(column) - 1}."
            )
    if not len(sizes) or int(sizes.min()) == 0:
        raise InvalidArgumentError(
            f"template {name!r} has no groups, or an empty one: give at least one row in each group."
        )
    start = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=start[1:])
    return start, rows


def _basis(name: str, statistics: Callable[[int], Any] | ArrayLike, largest: int) -> Float64s:
    rows: Any = (
        [np.atleast_1d(statistics(n)) for n in range(largest + 1)] if callable(statistics) else statistics
    )
    try:
        basis = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        basis = np.zeros(0)
    if basis.ndim == 1 and not callable(statistics):
        basis = basis[:, None]
    if basis.ndim != 2 or len(basis) != largest + 1:
        raise TemplateError(
            f"the statistics of template {name!r} must have the same number of values for each count"
            f" from 0 to {largest}, but have shape {basis.shape}."
        )
    if not np.isfinite(basis).all():
        count = int(np.argwhere(~np.isfinite(basis))[0][0])
        raise TemplateError(
            f"template {name!r} returned a statistic that is not finite for the count {count}:"
            " return finite numbers, and use fixed= with -inf to forbid a count."
        )
    return basis
