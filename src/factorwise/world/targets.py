"""Worlds in which every item has a target, and the diff that changes them; a base for worlds of one's own.

A change takes one item from its target to another one. What else changes with it is up to the world: its
function ``change(world, move)``, which compiled walks and `TargetWorld.apply` both run.
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
    """One item goes from its target to another."""

    item: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that are made one after the other."""

    changes: tuple[Change, ...]

    def inverse(self) -> Changes:
        """Return the diff that undoes this one."""
        return Changes(tuple(Change(item, new, old) for item, old, new in reversed(self.changes)))


class TargetWorld:
    """A world in which every item has a target.

    Derive from it to make a world of your own: give it ``arrays`` and ``change``, and where not every target
    is allowed a method ``allows``. docs/own-worlds.md has an example.

    arrays
        A named tuple of arrays, which compiled walks read and change. The first is called ``target``,
        int32[items], and says all: worlds with equal targets are equal.
    change
        ``change(world, move)`` makes the change of ``move.item`` from ``move.source`` to ``move.target``, in
        all arrays. The change with source and target exchanged must undo it.
    exchanges
        Whether a change to the target of another item sends that item to the source; ``world.holder[target]``
        then says which item that is.
    """

    __hash__ = None  # type: ignore[assignment]  # it changes; hash canonical() instead

    arrays: Any
    change: ClassVar[Any]
    exchanges: ClassVar[bool] = False

    @property
    def values(self) -> Int32s:
        """Target of each item (a view); changed only by `apply`."""
        return self.arrays.target  # type: ignore[no-any-return]

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.values)

    @property
    def n_targets(self) -> int:
        """Number of targets; as many as items unless a class says otherwise."""
        return self.n_items

    def allows(self, item: int, target: int) -> bool:
        """Whether the item may go to a target that is not its own, as the world is now."""
        return True

    def position(self, item: int) -> int:
        """Where an item is, as the target of a change that would take it back."""
        return int(self.values[item])

    def single_changes(self) -> list[Changes]:
        """Return every diff of one change that the world allows as it is."""
        return [
            self.diff_to(item, self.position(item), target)
            for item in range(len(self.values))
            for target in range(self.n_targets)
            if target != self.position(item) and self.allows(item, target)
        ]

    def choices(self) -> Program:
        """Return the program of Gibbs steps: ``support``, see docs/own-parts.md."""
        raise InvalidArgumentError(
            f"{type(self).__name__} does not say among which targets an item chooses: use Metropolis, or give"
            " it a method choices() that returns Program(support=...)."
        )

    def program(self) -> Program:
        """Return what changes the world in a walk."""
        return Program(apply=type(self).change, name=f"a {type(self).__name__}")

    def frame(self, random: UInt64s, *, many: bool = False, weights: int = 0, entries: int = 0) -> Frame:
        """Return the arrays of a walk over this very world; see `Partition.frame`."""
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
        """Return the diff that takes one item from one target to another."""
        return Changes((Change(item, source, target),))

    def diff_of(self, frame: Frame) -> Changes:
        """Return the diff that the move at hand in a frame of this world stands for."""
        step = frame.step[0]
        if step["changes"] == 1:
            return self.diff_to(int(step["item"]), int(step["source"]), int(step["target"]))
        fields = (frame.changes[: step["changes"]][name].tolist() for name in Change._fields)
        return Changes(tuple(Change(*change) for change in zip(*fields, strict=True)))

    def enter(self, frame: Frame, diff: Changes) -> None:
        """Let the move at hand in a frame of this world be ``diff``, as `diff_of` would read it."""
        step, count = frame.step, len(diff.changes)
        step["changes"], step["world"] = count, 0
        records = step if count == 1 else frame.changes[:count]
        records["world"] = 0
        records["item"], records["source"], records["target"] = np.array(diff.changes).T

    def apply(self, diff: Changes) -> Changes:
        """Change this world in place and return the diff that changes it back."""
        for number, change in enumerate(diff.changes):
            wrong = self._fault(change)
            if wrong:
                for made in Changes(diff.changes[:number]).inverse().changes:
                    type(self).change(self.arrays, made)
                raise DiffError(f"{change} does not fit {self!r}: {wrong}.")
            type(self).change(self.arrays, change)
        return diff.inverse()

    def _fault(self, change: Change) -> str:
        """Return what is wrong with a change, or nothing."""
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
        """Become equal to another world of the same layout, in the same arrays."""
        for own, array in zip(self.arrays, other.arrays, strict=True):
            own[...] = array

    def layout_key(self) -> tuple[Any, ...]:
        """Return what two worlds must share for one walk to go over both."""
        return type(self).__name__, *(array.shape for array in self.arrays)

    def canonical(self) -> bytes:
        """Return a key that is equal for equal worlds and can be hashed."""
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


def whole_numbers(name: str, given: ArrayLike) -> Int64s:
    """Return a one-dimensional array of whole numbers; refuse anything else."""
    array = as_array(name, given)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one number for each item, but has shape {array.shape}.")
    if array.dtype.kind not in "iu" and len(array):
        raise InvalidArgumentError(f"{name} must be whole numbers, but has dtype {array.dtype}.")
    return array.astype(np.int64)
