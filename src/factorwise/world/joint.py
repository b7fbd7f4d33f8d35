"""Joint worlds: several worlds side by side, such as a clustering of items and labels of the same items.

A diff may change several of the worlds. Kinds of changes are numbered: those of the first world come first,
and a `Partition` has two (items that move, and clusters that change their type).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from factorwise.errors import DiffError, InvalidArgumentError
from factorwise.kernels.compile.binding import Frame, side_by_side
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.frames import make_frame
from factorwise.kernels.walks.joints import apply_within, offer_within
from factorwise.kernels.walks.mixtures import draw_mixture
from factorwise.types import UInt64s


@dataclass(frozen=True, slots=True)
class JointDiff:
    """Diffs of some of the worlds, applied one after the other.

    parts
        Pairs of the name of a world and a diff of it.
    """

    parts: tuple[tuple[str, Any], ...]


class Joint:
    """Named worlds side by side.

    worlds
        The worlds by name. A `Partition` with types must come first.

    >>> from factorwise.world.partition import Partition
    >>> from factorwise.world.structures import Permutation
    >>> world = Joint(entities=Partition.singletons(3), order=Permutation.identity(2))
    >>> world.part("entities").n_clusters
    3
    """

    __hash__ = None  # type: ignore[assignment]  # it changes; hash canonical() instead

    def __init__(self, **worlds: Any) -> None:
        if not worlds:
            raise InvalidArgumentError("a Joint needs worlds: give Joint(entities=..., labels=...).")
        strangers = [name for name, world in worlds.items() if not hasattr(world, "frame")]
        if strangers:
            raise InvalidArgumentError(
                f"{strangers[0]} is a {type(worlds[strangers[0]]).__name__}, which is not a world: give"
                " a Partition, an Assignment, a Matching or another one that has a program."
            )
        typed = [name for name, world in worlds.items() if getattr(world, "n_types", 1) > 1]
        if typed and typed != [next(iter(worlds))]:
            raise InvalidArgumentError(
                f"{typed[-1]} has types: give it first; only one world may have types."
            )
        self.parts = {name: world.copy() for name, world in worlds.items()}
        self._numbers: dict[str, int] = {}
        count = 0
        for name, world in self.parts.items():
            self._numbers[name] = count
            count += 1 + len(world.program().worlds)
        self.n_changes = count

    def part(self, name: str) -> Any:
        """Return one of the worlds; a change to it changes the joint world, too."""
        if name not in self.parts:
            raise InvalidArgumentError(f"no world is called {name!r}: the names are {list(self.parts)}.")
        return self.parts[name]

    def first(self, name: str) -> int:
        """Return the number of the first kind of changes that belongs to one of the worlds."""
        self.part(name)
        return self._numbers[name]

    def owner(self, number: int) -> str:
        """Return the world to which a kind of changes belongs."""
        return next(name for name in reversed(self.parts) if self._numbers[name] <= number)

    @property
    def arrays(self) -> Any:
        """The arrays of all worlds, by name."""
        return side_by_side({name: world.arrays for name, world in self.parts.items()})

    @arrays.setter
    def arrays(self, replacement: Any) -> None:
        for name, world in self.parts.items():
            world.arrays = getattr(replacement, name)

    def program(self) -> Program:
        """Return the program that changes the worlds in a walk."""
        inner = []
        for name, world in self.parts.items():
            own = world.program()
            numbers = range(1 + len(own.worlds))
            inner += [Program(apply=own.of(k)["apply"], arrays=own.arrays, part=name) for k in numbers]
        more = [{"apply": apply_within}] * (self.n_changes - 1)
        arrays = {"inner": Pointers(inner, ("apply",))}
        return Program(apply=apply_within, worlds=more, arrays=arrays, name="worlds side by side")

    def choices(self) -> Program:
        """Return the program of Gibbs steps, in which an item of one of the worlds chooses its target.

        Each world is drawn in proportion to its number of items.
        """
        programs, items = [], []
        for name, world in self.parts.items():
            inner = Pointers([world.choices()], ("support",))
            arrays = {"inner": inner, "first": [self.first(name)]}
            programs.append(Program(support=offer_within, arrays=arrays, part=name))
            items.append(len(world.arrays[0]))
        shares = np.cumsum(items) / np.sum(items)
        arrays = {"shares": shares, "parts": Pointers(programs, ("support",))}
        return Program(support=draw_mixture, arrays=arrays, name="an item of one of the worlds")

    def frame(self, random: UInt64s, *, many: bool = False, weights: int = 0, entries: int = 0) -> Frame:
        """Return the arrays of a walk over this world itself; see `Partition.frame`."""
        frames = [world.frame(random, many=many, weights=weights) for world in self.parts.values()]
        return make_frame(
            self.arrays,
            random,
            weights=weights,
            changes=sum(len(frame.changes) for frame in frames) if many else 1,
            choices=max(len(frame.choice.targets) for frame in frames),
            targets=max(len(frame.choice.place) for frame in frames),
            dense=max(int(frame.step["dense"][0]) for frame in frames),
            entries=entries,
        )

    def diff_of(self, frame: Frame) -> JointDiff:
        """Return the diff for the current move in a frame of this world."""
        step = frame.step
        listed = frame.changes[: step["changes"][0]]
        if step["changes"][0] == 1:
            listed = np.zeros(1, frame.changes.dtype)
            for field in ("world", "item", "source", "target"):
                listed[field] = step[field]
        parts = []
        runs = groupby(listed, key=lambda change: (change["world"], change["source"], change["target"]))
        for (number, _, _), run in runs:
            name = self.owner(int(number))
            changes = np.array(list(run), listed.dtype)
            changes["world"] -= self.first(name)
            own = frame.step.copy()
            own["changes"] = len(changes)
            for field in ("world", "item", "source", "target"):
                own[field] = changes[field][0]
            narrowed = frame._replace(step=own, changes=changes)
            parts.append((name, self.parts[name].diff_of(narrowed)))
        return JointDiff(tuple(parts))

    def enter(self, frame: Frame, diff: JointDiff) -> None:
        """Write ``diff`` into a frame of this world as its current move; the inverse of `diff_of`."""
        count, world = 0, self.copy() if len(diff.parts) > 1 else self
        for name, inner in diff.parts:
            own = frame._replace(step=frame.step.copy(), changes=frame.changes[count:])
            world.part(name).enter(own, inner)
            many = int(own.step["changes"][0])
            if many == 1:
                for field in ("world", "item", "source", "target"):
                    own.changes[field][0] = own.step[field][0]
            own.changes["world"][:many] += self.first(name)
            count += many
            if world is not self:
                world.parts[name].apply(inner)
        frame.step["changes"] = count
        if count == 1:
            for field in ("world", "item", "source", "target"):
                frame.step[field] = frame.changes[field][0]

    def apply(self, diff: JointDiff) -> JointDiff:
        """Change the worlds in place and return the diff that undoes the change."""
        back: list[tuple[str, Any]] = []
        try:
            for name, inner in diff.parts:
                back.append((name, self.part(name).apply(inner)))
        except DiffError:
            for name, inner in reversed(back):
                self.parts[name].apply(inner)
            raise
        return JointDiff(tuple(reversed(back)))

    def after(self, diff: JointDiff) -> Joint:
        """Return a copy with ``diff`` applied."""
        twin = self.copy()
        twin.apply(diff)
        return twin

    def copy(self) -> Joint:
        """Return an equal joint world that changes on its own."""
        return Joint(**self.parts)

    def take(self, other: Joint) -> None:
        """Become equal to another joint world of the same layout, in the arrays of this one."""
        for name, world in self.parts.items():
            world.take(other.parts[name])

    def layout_key(self) -> Sequence[Any]:
        """Return what two worlds must have in common so that one walk can run over both."""
        return [(name, world.layout_key()) for name, world in self.parts.items()]

    def canonical(self) -> tuple[Any, ...]:
        """Return a hashable key that is equal for equal worlds."""
        return tuple(world.canonical() for world in self.parts.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Joint) and self.parts == other.parts

    def __repr__(self) -> str:
        return f"Joint({', '.join(f'{name}={world!r}' for name, world in self.parts.items())})"

    def _repr_html_(self) -> str:
        return "".join(world._repr_html_() for world in self.parts.values())
