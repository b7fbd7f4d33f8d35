"""Assignments: worlds that give every variable a label, and diffs that change some of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import DiffError, InvalidArgumentError, ShapeError
from factorwise.kernels.assignments.arrays import Labels, apply_label
from factorwise.kernels.assignments.choices import offer_random
from factorwise.kernels.compile.binding import Frame
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import make_frame
from factorwise.rng import Stream
from factorwise.types import UInt64s
from factorwise.validation import as_array
from factorwise.variables.domain import Codes
from factorwise.variables.variable import Variables
from factorwise.views import html_table, listed


@dataclass(frozen=True, slots=True)
class Relabel:
    """New labels for some variables.

    variables
        Flat numbers of the variables, each once.
    old, new
        The code of each variable's label before and after the change.
    """

    variables: tuple[int, ...]
    old: tuple[int, ...]
    new: tuple[int, ...]

    def __post_init__(self) -> None:
        if not all(isinstance(part, tuple | list) for part in (self.variables, self.old, self.new)):
            raise DiffError(
                f"a Relabel consists of three tuples of whole numbers, but {self.variables!r},"
                f" {self.old!r} and {self.new!r} were given."
            )
        if not len(self.variables) == len(self.old) == len(self.new):
            raise DiffError(
                f"a Relabel of {len(self.variables)} variables has {len(self.old)} old and"
                f" {len(self.new)} new labels: give one of each per variable."
            )
        if len(self.variables) > 1 and len(set(self.variables)) < len(self.variables):
            raise DiffError(
                f"a Relabel names a variable twice in {self.variables[:10]}: name each variable once,"
                " with its label before the diff and its label after it."
            )

    def inverse(self) -> Relabel:
        """Return the diff that undoes this one."""
        return Relabel(self.variables, self.new, self.old)


class Assignment:
    """A label for every variable.

    arrays
        The arrays that compiled walks read and change.
    """

    __hash__ = None  # type: ignore[assignment]  # it changes; hash canonical() instead

    def __init__(self, variables: Variables, values: ArrayLike) -> None:
        self.variables = variables
        codes = as_array("values", values)
        if codes.shape != (len(variables),):
            raise ShapeError(
                f"an assignment needs one code for each of {len(variables)} variables, but the array"
                f" has shape {codes.shape}."
            )
        if codes.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"an assignment consists of integer codes, but {codes.dtype} was given: use"
                " Assignment.from_labels for labels."
            )
        self.arrays = Labels(codes.astype(np.int32), *variables.walked)
        self._check_values(codes)

    @property
    def values(self) -> Codes:
        """Code of each variable's label, int32[variables]; changed only by `apply`."""
        return self.arrays.value

    @property
    def n_targets(self) -> int:
        """The largest number of labels that any variable has."""
        return int(self.variables.cardinality.max())

    @classmethod
    def initial(cls, variables: Variables) -> Assignment:
        """Return the world with every hidden variable at its first label."""
        return cls(variables, np.maximum(variables.codes, 0))

    @classmethod
    def uniform(cls, variables: Variables, seed: int) -> Assignment:
        """Return a world with every hidden variable at a uniformly random label."""
        chance = np.random.default_rng(Stream(seed).bits()).random(len(variables))
        drawn = (chance * variables.cardinality).astype(np.int32)
        return cls(variables, np.where(variables.observed, variables.codes, drawn))

    @classmethod
    def from_labels(
        cls, variables: Variables, labels: Mapping[str, Any], unknown: Literal["error", "other"] = "error"
    ) -> Assignment:
        """Build from the labels of each column.

        A column that is left out keeps its observed labels and gets the first label elsewhere.
        """
        values = np.maximum(variables.codes, 0)
        for name, column_labels in labels.items():
            part = variables.slice_of(name)
            codes = variables.column(name).domain.encode(column_labels, unknown)
            if codes.shape != (part.stop - part.start,):
                raise ShapeError(
                    f"column {name!r} has {part.stop - part.start} rows, but {codes.size} labels were given:"
                    " give one label per row."
                )
            values[part] = codes
        return cls(variables, values)

    def labels(self, column: str) -> NDArray[Any]:
        """Return the labels of one column."""
        return self.variables.column(column).domain.decode(self.values[self.variables.slice_of(column)])

    def to_labels(self) -> dict[str, NDArray[Any]]:
        """Return the labels of every column."""
        return {column.name: self.labels(column.name) for column in self.variables.columns}

    def relabel(self, variables: Sequence[int], new: Sequence[int]) -> Relabel:
        """Return the diff that gives ``variables`` the codes ``new``; the world stays as it is."""
        chosen = tuple(int(variable) for variable in variables)
        for variable in chosen:
            if not isinstance(variable, int | np.integer) or not 0 <= variable < len(self.values):
                raise DiffError(_no_variable(variable, len(self.values)))
        return Relabel(chosen, tuple(self.values[list(chosen)].tolist()), tuple(int(code) for code in new))

    def apply(self, diff: Relabel) -> Relabel:
        """Change the world in place and return the diff that undoes it."""
        self._check_diff(diff)
        for variable, new in zip(diff.variables, diff.new, strict=True):
            self.values[variable] = new
        return diff.inverse()

    def after(self, diff: Relabel) -> Assignment:
        """Return the changed world; this one stays as it is."""
        changed = self.copy()
        changed.apply(diff)
        return changed

    def copy(self) -> Assignment:
        """Return an equal world that changes on its own."""
        twin = Assignment.__new__(Assignment)
        twin.variables = self.variables
        twin.arrays = self.arrays._replace(value=self.values.copy())
        return twin

    def layout_key(self) -> tuple[Any, bytes]:
        """Return what two worlds must have in common so that one walk can run over both."""
        return self.variables.layout, self.variables.codes.tobytes()

    def take(self, other: Assignment) -> None:
        """Become equal to another world over the same variables, in the arrays of this one."""
        self.values[...] = other.values

    def program(self) -> Program:
        """Return the program that changes labels in a walk."""
        return Program(apply=apply_label, name="labels")

    def choices(self) -> Program:
        """Return the program with which a hidden variable chooses among its labels."""
        return Program(support=offer_random, name="a random variable")

    def frame(self, random: UInt64s, *, many: bool = False, weights: int = 0, entries: int = 0) -> Frame:
        """Return the arrays of a walk over this world itself; see `Partition.frame`."""
        changes = len(self.values) if many else 1
        return make_frame(
            self.arrays,
            random,
            weights=weights,
            changes=changes,
            choices=self.n_targets,
            targets=self.n_targets,
            dense=0,
            entries=entries,
        )

    def diff_of(self, frame: Frame) -> Relabel:
        """Return the diff for the current move in a frame of this world."""
        step = frame.step[0]
        if step["changes"] == 1:
            return self.diff_to(int(step["item"]), int(step["source"]), int(step["target"]))
        changes = frame.changes[: step["changes"]]
        return Relabel(*(tuple(changes[field].tolist()) for field in ("item", "source", "target")))

    def enter(self, frame: Frame, diff: Relabel) -> None:
        """Write ``diff`` into a frame of this world as its current move; the inverse of `diff_of`."""
        step, count = frame.step, len(diff.variables)
        step["changes"], step["world"] = count, 0
        if count == 1:
            step["item"], step["source"], step["target"] = diff.variables[0], diff.old[0], diff.new[0]
            return
        changes = frame.changes[:count]
        changes["world"] = 0
        changes["item"], changes["source"], changes["target"] = diff.variables, diff.old, diff.new

    def diff_to(self, item: int, source: int, target: int) -> Relabel:
        """Return the diff that changes the label of one variable."""
        return Relabel((item,), (source,), (target,))

    def canonical(self) -> bytes:
        """Return a hashable key that is equal for equal worlds."""
        return self.values.tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assignment):
            return NotImplemented
        same = self.variables is other.variables or self.variables.layout == other.variables.layout
        return same and bool(np.array_equal(self.values, other.values))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.values[:10].tolist()))
        return f"Assignment([{shown}{', ...' if len(self.values) > 10 else ''}])"

    def _repr_html_(self) -> str:
        labels = [(name, values) for name, values in self.to_labels().items()]
        rows = [(name, len(values), listed(values.tolist())) for name, values in labels]
        return html_table(f"Assignment: {len(self.values)} variables", ("column", "rows", "labels"), rows)

    def _check_values(self, codes: NDArray[Any]) -> None:
        wrong = np.flatnonzero((codes < 0) | (codes >= self.variables.cardinality))
        if len(wrong):
            raise InvalidArgumentError(_outside(self.variables, int(wrong[0]), int(codes[wrong[0]])))
        moved = np.flatnonzero(self.variables.observed & (codes != self.variables.codes))
        if len(moved):
            column, row = self.variables.locate(int(moved[0]))
            seen = int(self.variables.codes[moved[0]])
            raise InvalidArgumentError(
                f"row {row} of column {column!r} is observed as"
                f" {self.variables.column(column).domain.labels[seen]!r}, but the world gives it code"
                f" {int(codes[moved[0]])}: keep the observed label, or build the column with the row"
                " hidden."
            )

    def _check_diff(self, diff: Relabel) -> None:
        cardinality, observed = self.variables.cardinality, self.variables.observed
        for variable, old, new in zip(diff.variables, diff.old, diff.new, strict=True):
            if not isinstance(variable, int | np.integer) or not 0 <= variable < len(self.values):
                raise DiffError(_no_variable(variable, len(self.values)))
            if self.values[variable] != old:
                raise DiffError(
                    f"the diff changes variable {variable} from code {old}, but its code in the world"
                    f" is {int(self.values[variable])}: build the diff from the current world with"
                    " world.relabel(variables, new)."
                )
            if observed[variable]:
                column, row = self.variables.locate(variable)
                raise DiffError(
                    f"the diff changes row {row} of column {column!r}, which is observed: relabel hidden"
                    " variables only, or build the column with the row hidden."
                )
            if not isinstance(new, int | np.integer) or not 0 <= new < cardinality[variable]:
                raise InvalidArgumentError(_outside(self.variables, variable, new))


def _no_variable(variable: int, count: int) -> str:
    return f"the diff names variable {variable}, but the world has variables 0 to {count - 1}."


def _outside(variables: Variables, variable: int, code: int) -> str:
    column, row = variables.locate(variable)
    domain = variables.column(column).domain
    return (
        f"row {row} of column {column!r} has code {code}, which does not exist in domain"
        f" {domain.name!r}: use 0 to {len(domain) - 1}, or build the domain with domain.extended(...)."
    )
