"""Worlds in which every item has a target, and their diffs; the base class for custom worlds.

A change moves one item from its target to another one. What else changes with it is up to the function
``change(world, move)`` of the world, which both compiled walks and `TargetWorld.apply` call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import DiffError, InvalidArgumentError, ShapeError
from factorwise.kernels.compile.binding import Frame
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import make_frame
from factorwise.types import Int32s, Int64s, UInt64s
from factorwise.validation import as_array
from factorwise.views import html_table, listed

_FEW = 4  # changes for which every frame has room: an exchange needs up to three


class Change(NamedTuple):
    """One item moves from its target to another."""

    item: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that are applied one after the other."""

    changes: tuple[Change, ...]

    def inverse(self) -> Changes:
        """Return the diff that undoes this one."""
        return Changes(tuple(Change(item, new, old) for item, old, new in reversed(self.changes)))


class TargetWorld:
    """A world in which every item has a target.

    Derive from it to make a custom world: give the class ``arrays`` and ``change``, and a method ``allows``
    if not every target is allowed. docs/own-worlds.md has an example.

    arrays
        A named tuple of arrays, which compiled walks read and change. The first is called ``target``,
        int32[items], and determines the world: worlds with equal targets are equal.
    change
        ``change(world, move)`` changes all arrays for the move of ``move.item`` from ``move.source`` to
        ``move.target``. The change with source and target exchanged must undo it.
    exchanges
        Whether moving to the target of another item sends that item to the source; ``world.holder[target]``
        is then that item.
    """

    __hash__ = None  # type: ignore[assignment]  # it changes; hash canonical() instead

    arrays: Any
    change: ClassVar[Any]
    exchanges: ClassVar[bool] = False

    @property
    def values(self) -> Int32s:
        """The target of each item (a view), which only `apply` changes."""
        return self.arrays.target  # type: ignore[no-any-return]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.values)

    @property
    def n_targets(self) -> int:
        """Number of targets; the number of items unless a class overrides it."""
        return self.n_items

    def allows(self, item: int, target: int) -> bool:
        """Whether the item may move to a target other than its own, in the current world."""
        return True

    def position(self, item: int) -> int:
        """Return the target that would take an item back to where it is now."""
        return int(self.values[item])

    def single_changes(self) -> list[Changes]:
        """Return every diff of one change that the world currently allows."""
        return [
            self.diff_to(item, self.position(item), target)
            for item in range(len(self.values))
            for target in range(self.n_targets)
            if target != self.position(item) and self.allows(item, target)
        ]

    def choices(self) -> Program:
        """Return the program of Gibbs steps, which has ``support``; see docs/own-parts.md."""
        raise InvalidArgumentError(
            f"{type(self).__name__} does not list the targets among which an item can choose: use"
            " Metropolis, or give the class a method choices() that returns Program(support=...)."
        )

    def program(self) -> Program:
        """Return the program that changes the world in a walk."""
        return Program(apply=type(self).change, name=f"a {type(self).__name__}")

    def frame(self, random: UInt64s, *, many: bool = False, weights: int = 0, entries: int = 0) -> Frame:
        """Return the arrays of a walk over this world itself; see `Partition.frame`."""
        return make_frame(
            self.arrays,
            random,
            weights=weights,
            changes=max(self.n_items, _FEW) if many else 1,
            choices=self.n_targets + 1,
            targets=self.n_targets,
            dense=0,
            entries=entries,
        )

    def diff_to(self, item: int, source: int, target: int) -> Changes:
        """Return the diff that moves one item from one target to another."""
        return Changes((Change(item, source, target),))

    def diff_of(self, frame: Frame) -> Changes:
        """Return the diff for the current move in a frame of this world."""
        step = frame.step[0]
        if step["changes"] == 1:
            return self.diff_to(int(step["item"]), int(step["source"]), int(step["target"]))
        fields = (frame.changes[: step["changes"]][name].tolist() for name in Change._fields)
        return Changes(tuple(Change(*change) for change in zip(*fields, strict=True)))

    def enter(self, frame: Frame, diff: Changes) -> None:
        """Write ``diff`` into a frame of this world as its current move; the inverse of `diff_of`."""
        step, count = frame.step, len(diff.changes)
        step["changes"], step["world"] = count, 0
        records = step if count == 1 else frame.changes[:count]
        records["world"] = 0
        records["item"], records["source"], records["target"] = np.array(diff.changes).T

    def apply(self, diff: Changes) -> Changes:
        """Change this world in place and return the diff that undoes the change."""
        for number, change in enumerate(diff.changes):
            wrong = self._fault(change)
            if wrong:
                for applied in Changes(diff.changes[:number]).inverse().changes:
                    type(self).change(self.arrays, applied)
                raise DiffError(f"{change} does not fit {self!r}: {wrong}.")
            type(self).change(self.arrays, change)
        return diff.inverse()

    def _fault(self, change: Change) -> str:
        """Return why a change does not fit, or an empty string if it does."""
        if not 0 <= change.item < len(self.values):
            return f"items run from 0 to {len(self.values) - 1}"
        if not 0 <= change.target < self.n_targets:
            return f"targets run from 0 to {self.n_targets - 1}"
        if self.position(change.item) != change.source:
            return f"the item is at {self.position(change.item)}"
        if change.target == change.source:
            return "it changes nothing, so leave it out"
        return "" if self.allows(change.item, change.target) else "this world does not allow that target"

    def after(self, diff: Changes) -> Self:
        """Return a copy with ``diff`` applied."""
        twin = self.copy()
        twin.apply(diff)
        return twin

    def copy(self) -> Self:
        """Return an equal world that changes on its own."""
        twin = object.__new__(type(self))
        twin.arrays = type(self.arrays)(*(array.copy() for array in self.arrays))
        return twin

    def take(self, other: TargetWorld) -> None:
        """Become equal to another world of the same layout, in the arrays of this one."""
        for own, array in zip(self.arrays, other.arrays, strict=True):
            own[...] = array

    def layout_key(self) -> tuple[Any, ...]:
        """Return what two worlds must have in common so that one walk can run over both."""
        return type(self).__name__, *(array.shape for array in self.arrays)

    def canonical(self) -> bytes:
        """Return a hashable key that is equal for equal worlds."""
        return self.values.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.canonical() == other.canonical()

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.values[:10].tolist()))
        return f"{type(self).__name__}([{shown}{', ...' if self.n_items > 10 else ''}])"

    def _repr_html_(self) -> str:
        rows = [(item, target) for item, target in enumerate(self.values[:20].tolist())]
        title = f"{type(self).__name__}: {listed(self.values.tolist())}"
        return html_table(title, ("item", "target"), rows, total=self.n_items)


def whole_numbers(name: str, values: ArrayLike) -> Int64s:
    """Return a one-dimensional array of whole numbers, or raise an error."""
    array = as_array(name, values)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one number for each item, but has shape {array.shape}.")
    if array.dtype.kind not in "iu" and len(array):
        raise InvalidArgumentError(f"{name} must be whole numbers, but has dtype {array.dtype}.")
    return array.astype(np.int64)
