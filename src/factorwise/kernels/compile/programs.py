"""Programs: parts of a walk as plain functions and the arrays that they keep.

A part of a walk (a proposer, a template, a preference, an update rule, an acceptance, a world) has a program:
some plain Python functions, one for each role that the part plays, and named arrays. The arguments of a
function, in any order, say what it reads:

``world``
    The arrays of the world, by name.
``mine``
    The program's own arrays, by name.
``move``, ``changes``
    The current move, and the list of changes if it has several (`factorwise.kernels.walks.layouts`).
``choice``, ``gradient``
    The targets of a Gibbs step; the list of changed statistics.
``random``
    For `uniform` and `below` of `factorwise.kernels.walks.library`.

They are bound to the arrays of a walk, interpreted or compiled, by `factorwise.kernels.compile.binding`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ProgramError

if TYPE_CHECKING:
    from factorwise.kernels.compile.binding import Bound, Interpreted


class Role(NamedTuple):
    """What a function of a program may read, and whether it returns a number."""

    arguments: tuple[str, ...]
    returns: bool


ROLES = {
    "draw": Role(("world", "mine", "random", "move", "changes", "choice", "gradient"), True),
    "support": Role(("world", "mine", "random", "move", "choice"), True),
    "choose": Role(("mine", "random", "move", "choice"), True),
    "accept": Role(("world", "mine", "random", "move"), True),
    "judge": Role(("world", "mine", "move"), True),
    "update": Role(("mine", "move", "gradient"), True),
    "kept": Role(("mine", "move", "gradient"), False),
    "episode": Role(("mine", "move", "gradient"), False),
    "apply": Role(("world", "mine", "move"), False),
    "gain": Role(("world", "mine", "random", "move", "choice"), True),
    "gains": Role(("world", "mine", "random", "move", "choice"), False),
    "pairs": Role(("world", "mine", "move", "choice"), False),
    "visit": Role(("world", "mine", "move"), False),
    "sides": Role(("world", "mine", "move", "choice"), False),
    "gradient": Role(("world", "mine", "random", "move", "gradient"), False),
    "applied": Role(("world", "mine", "move"), False),
    "fetch": Role(("world", "mine", "move"), True),
    "begin": Role(("world", "mine"), False),
    "value": Role(("world", "mine"), True),
    "totals": Role(("world", "mine", "gradient"), False),
    "score": Role(("world", "mine"), True),
    "add": Role(("world", "mine", "gradient"), False),
}


#: Roles of functions that are called for a change of one of the worlds of a joint world.
OF_CHANGES = ("apply", "gain", "gains", "gradient", "applied", "pairs", "visit", "sides", "fetch")
#: All worlds of a joint world, as a part.
WHOLE = "*"
Part = str | tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Written:
    """A function of a program as text that the library has generated, with its plain Python form.

    name, text
        The name of the function in ``text``, which defines it and all it needs.
    arguments
        The arguments of the function.
    plain
        The plain form, by definition, for interpreted walks.
    fallback
        What to compile if the text cannot be compiled.
    makes_arrays
        Whether the function may create arrays, as methods of arrays do internally: references are then
        counted.
    """

    name: str
    text: str
    arguments: tuple[str, ...]
    plain: Callable[..., Any] | None = field(default=None, compare=False)
    fallback: Written | None = None
    makes_arrays: bool = False

    @property
    def __name__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Pointers:
    """Replaces an array by other programs, whose functions this one calls.

    Each program has a row: the entries of ``roles``, 0 for missing ones, for changes of each of ``worlds``
    worlds from the ``first`` on, then its context.
    """

    programs: Sequence[Program]
    roles: tuple[str, ...]
    worlds: int = 1
    first: int = 0

    def row(self, bound: Bound | Interpreted) -> list[Any]:
        """Return the entries of one program."""
        numbers = range(self.first, self.first + self.worlds)
        return [bound.entry(role, world) for world in numbers for role in self.roles]


@dataclass(frozen=True)
class Later:
    """Replaces an array by a function that creates it, once a function of the program reads it."""

    make: Callable[[], NDArray[Any]] = field(compare=False)
    dtype: np.dtype[Any]
    ndim: int = 1

    def placeholder(self) -> NDArray[Any]:
        """Return an empty array of the same kind."""
        return np.zeros((0,) * self.ndim, self.dtype)


@dataclass(frozen=True, init=False)
class Program:
    """A part's plain functions, by role, and its arrays.

    functions
        Plain Python functions; which arguments each role may name is in `ROLES`.
    arrays
        The content of ``mine``: arrays of one or two dimensions, `Later` or `Pointers`.
    worlds
        Functions for changes of further worlds of a joint world, each a mapping by role.
    for_gains
        Roles that only serve ``gain`` and ``gains``, which walks that compute gradients do not need.
    entries
        How many entries the gradient of one change may add to the list, beyond the head; see `Gradient`.
    part
        In a joint world, what the functions get as ``world``: the name of one world, or pairs of a field name
        and the name of a world; `WHOLE` for all worlds. By default the same as for the program that points to
        this one.
    """

    functions: Mapping[str, Any]
    arrays: Mapping[str, Any]
    worlds: tuple[Mapping[str, Any], ...] = ()
    name: str = ""
    for_gains: tuple[str, ...] = ()
    entries: int = 0
    part: Part = ""

    def __init__(
        self,
        *,
        arrays: Mapping[str, Any] | None = None,
        worlds: Sequence[Mapping[str, Any]] = (),
        name: str = "",
        for_gains: tuple[str, ...] = (),
        entries: int = 0,
        part: Part = "",
        **functions: Any,
    ) -> None:
        object.__setattr__(self, "functions", functions)
        object.__setattr__(self, "for_gains", for_gains)
        object.__setattr__(self, "worlds", tuple(worlds))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "part", part)
        named = {key: laid_out(key, value) for key, value in (arrays or {}).items()}
        object.__setattr__(self, "arrays", named)
        for some in (functions, *worlds):
            for role, function in some.items():
                check_arguments(role, function)

    def for_learning(self) -> Program:
        """Return the program with only what gradients need, if it has gradients."""

        def kept(functions: Mapping[str, Any]) -> dict[str, Any]:
            dropped = {"gain", "gains", *self.for_gains} if "gradient" in functions else set()
            return {role: function for role, function in functions.items() if role not in dropped}

        worlds = [kept(some) for some in self.worlds]
        return self.copy_with(kept(self.functions), worlds, for_gains=())

    def copy_with(
        self, functions: Mapping[str, Any], worlds: Sequence[Mapping[str, Any]], **settings: Any
    ) -> Program:
        """Return a program with the same arrays and other functions."""
        same: dict[str, Any] = {
            "name": self.name,
            "for_gains": self.for_gains,
            "entries": self.entries,
            "part": self.part,
        }
        return Program(arrays=self.arrays, worlds=worlds, **(same | settings), **functions)

    def within(self, part: Part, first: int) -> Program:
        """Return the program for one world of a joint world, with changes numbered from ``first``.

        part
            What the functions get as ``world``.
        """
        changing = [
            {r: f for r, f in some.items() if r in OF_CHANGES} for some in (self.functions, *self.worlds)
        ]
        others = {role: function for role, function in self.functions.items() if role not in OF_CHANGES}
        placed: list[dict[str, Any]] = [{} for _ in range(first)] + changing
        return self.copy_with(others | placed[0], placed[1:], part=self.part or part)

    @property
    def roles(self) -> set[str]:
        """The roles that the program plays for changes of any world."""
        return {role for functions in (self.functions, *self.worlds) for role in functions}

    def of(self, world: int) -> Mapping[str, Any]:
        """Return the functions for changes of one of the worlds of a joint world."""
        if world == 0:
            return self.functions
        return self.worlds[world - 1] if world <= len(self.worlds) else {}


def laid_out(name: str, value: Any) -> Any:
    """Return a contiguous array of one or two dimensions; anything but an array is returned unchanged."""
    if isinstance(value, Pointers | Later):
        return value
    array = np.ascontiguousarray(value)
    if array.ndim not in (1, 2) or array.dtype.hasobject:
        raise ProgramError(
            f"array {name!r} of a program has shape {array.shape} and dtype {array.dtype}: give numbers"
            " in one or"
            " two dimensions."
        )
    return array


def check_arguments(role: str, function: Any) -> tuple[str, ...]:
    """Return the arguments of a function; refuse those that its role does not offer."""
    if role not in ROLES:
        raise ProgramError(f"no function of a program is called {role!r}: choose from {list(ROLES)}.")
    written = isinstance(function, Written)
    try:
        names = function.arguments if written else tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise ProgramError(
            f"the {role} of a program must be a plain function, but {function!r} was given."
        ) from None
    unknown = [name for name in names if name not in ROLES[role].arguments]
    if unknown:
        raise ProgramError(
            f"{function.__name__}, the {role} of a program, has the argument {unknown[0]!r}, but {role}"
            f" offers {', '.join(ROLES[role].arguments)}: use only these as its arguments."
        )
    return names
