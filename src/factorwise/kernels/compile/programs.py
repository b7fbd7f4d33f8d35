"""Programs: parts of a walk as plain functions and the arrays that they keep.

A part of a walk (a proposer, a template, a preference, an update rule, an acceptance, a world) has a program:
some plain Python functions, one for each role that the part plays, and named arrays. A function names what it
wants to see as its arguments, in any order:

``world``
    The arrays of the world, by name.
``mine``
    The program's own arrays, by name.
``move``, ``changes``
    The move at hand, and the list of changes of one that has several (`factorwise.kernels.walks.layouts`).
``choice``, ``gradient``
    Targets of a Gibbs step; the list of statistics that change.
``random``
    For `uniform` and `below` of `factorwise.kernels.walks.library`.

The functions run interpreted as they are, or become entries ``double f(int64 context)``, each a generated
module of its own that is kept on disk, so that a combination of parts that were used before compiles nothing.
"""

from __future__ import annotations

import ast
import inspect
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ProgramError, TemplateError
from factorwise.kernels.compile.checks import check_function, explain_failure
from factorwise.kernels.compile.composition import composed_module, source_of
from factorwise.kernels.compile.dependencies import parsed
from factorwise.kernels.compile.pointers import WORDS, fill_words
from factorwise.kernels.walks.layouts import STEP, Choice, Gradient, Record, WalkRecords

#: Fields of the arguments that are the same in every walk.
_FIELDS = {"move": STEP.names or (), "choice": Choice._fields, "gradient": Gradient._fields}


class Role(NamedTuple):
    """What a function of a program may see, and whether it returns a number."""

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


#: Roles of functions that are called at a change, of one of the worlds side by side.
OF_CHANGES = ("apply", "gain", "gains", "gradient", "applied", "pairs", "visit", "sides", "fetch")
#: All worlds side by side, as a part.
WHOLE = "*"
Part = str | tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Written:
    """A function of a program as text that the library has written, with what it looks like in plain Python.

    name, text
        The name of the function in ``text``, which defines it and all it needs.
    arguments
        Of the function.
    plain
        The same by definition, for interpreted walks.
    fallback
        What to compile where the text cannot be compiled.
    makes_arrays
        Whether the function may make arrays, as methods of arrays do inside: references are then counted.
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
    """In place of an array: other programs, whose functions this one calls.

    A row for each program: the entries of ``roles``, 0 where it has none, for changes of each of so many
    ``worlds`` side by side in turn, from the ``first`` on, then its context.
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
    """In place of an array: a function that makes it, once a function of the program wants to read it."""

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
        What the functions find in ``mine``: arrays of one or two dimensions, `Later` or `Pointers`.
    worlds
        Functions for changes of further worlds that lie side by side with the first, each a mapping by role.
    for_gains
        Roles that only serve ``gain`` and ``gains``: walks that take gradients do without them.
    entries
        How many entries the gradient of one change may add to the list, beyond the head; see `Gradient`.
    part
        Of worlds side by side, what the functions see as ``world``: the name of one, or pairs of a name of
        their own and that of a world; `WHOLE` for all of them. By default, what the program that points to
        this one sees.
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
        laid_out = {key: _laid_out(key, value) for key, value in (arrays or {}).items()}
        object.__setattr__(self, "arrays", laid_out)
        for some in (functions, *worlds):
            for role, function in some.items():
                check_arguments(role, function)

    def for_learning(self) -> Program:
        """Return what of the program serves gradients, where it has them."""

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
        """Return the program of one of several worlds side by side, with changes numbered from ``first``.

        part
            What the functions see as ``world``.
        """
        changing = [
            {r: f for r, f in some.items() if r in OF_CHANGES} for some in (self.functions, *self.worlds)
        ]
        others = {role: function for role, function in self.functions.items() if role not in OF_CHANGES}
        placed: list[dict[str, Any]] = [{} for _ in range(first)] + changing
        return self.copy_with(others | placed[0], placed[1:], part=self.part or part)

    @property
    def roles(self) -> set[str]:
        """Roles that the program plays for changes of any world."""
        return {role for functions in (self.functions, *self.worlds) for role in functions}

    def of(self, world: int) -> Mapping[str, Any]:
        """Return the functions for changes of one of the worlds side by side."""
        if world == 0:
            return self.functions
        return self.worlds[world - 1] if world <= len(self.worlds) else {}


def _laid_out(name: str, value: Any) -> Any:
    """Return a contiguous array of one or two dimensions; what is not an array as it is."""
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
    """Return the arguments of a function; refuse what its role does not offer."""
    if role not in ROLES:
        raise ProgramError(f"no function of a program is called {role!r}: choose from {list(ROLES)}.")
    written = isinstance(function, Written)
    try:
        names = function.arguments if written else tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise ProgramError(f"the {role} of a program is a plain function, not {function!r}.") from None
    unknown = [name for name in names if name not in ROLES[role].arguments]
    if unknown:
        raise ProgramError(
            f"{function.__name__}, the {role} of a program, asks for {unknown[0]!r}, but {role} is offered"
            f" {', '.join(ROLES[role].arguments)}: name only these as its arguments."
        )
    return names


class Frame(NamedTuple):
    """The arrays that all parts of one walk share.

    world
        A named tuple of arrays, or of such tuples: those of worlds side by side.
    random : uint64[2]
        State of the stream.
    """

    world: Any
    step: NDArray[np.void]
    changes: NDArray[np.void]
    random: NDArray[np.uint64]
    choice: Choice
    gradient: Gradient

    def listed(self) -> list[NDArray[Any]]:
        """All arrays, in the order of the words of a context."""
        return [*flat(self.world), self.step, self.changes, self.random, *self.choice, *self.gradient]


def flat(world: Any) -> list[NDArray[Any]]:
    """Return the arrays of a world, those of worlds side by side one after the other."""
    return [array for part in world for array in (flat(part) if isinstance(part, tuple) else [part])]


def narrow(world: Any, part: Part) -> Any:
    """Return the arrays of those of several worlds side by side that a program wants to see."""
    if part in ("", WHOLE):
        return world
    if isinstance(part, str):
        return getattr(world, part)
    return side_by_side({own: getattr(world, name) for own, name in part})


def side_by_side(worlds: Mapping[str, Any]) -> Any:
    """Return a named tuple of the arrays of worlds side by side."""
    kind = namedtuple("SideBySide", worlds, module="generated")  # type: ignore[misc]  # fields not known before
    return kind(*worlds.values())


class Framed(Program):
    """A program that looks at arrays of its own, wherever it is bound.

    Say, at another world than the walk's.
    """

    frame: Frame

    def __init__(self, program: Program, frame: Frame) -> None:
        vars(self).update(vars(program), frame=frame)


class Bound:
    """A program in one walk: its context, and its functions as pointers.

    The context holds bare addresses: whoever walks keeps this object alive.
    """

    def __init__(self, program: Program, frame: Frame, part: Part = "") -> None:
        """Bind a program to the arrays of a walk; ``part`` is what it sees unless it says so itself."""
        self.whole, self.part = getattr(program, "frame", frame), program.part or part
        frame = self.whole._replace(world=narrow(self.whole.world, self.part))
        self.program = program
        self.frame = frame
        self.inner: list[Bound] = []
        self._open: dict[str, Pointers | Later] = {}
        self.arrays = {name: self._array(name, value) for name, value in program.arrays.items()}
        arrays = [*frame.listed(), *self.arrays.values()]
        self.table = np.zeros(WORDS * len(arrays), np.int64)
        for position, array in enumerate(arrays):
            fill_words(self.table, position, array)

    def _array(self, name: str, value: Any) -> NDArray[Any]:
        if not isinstance(value, Pointers | Later):
            return np.asarray(value)
        self._open[name] = value
        if isinstance(value, Later):
            return value.placeholder()
        return np.zeros((len(value.programs), value.worlds * len(value.roles) + 1), np.int64)

    def _fill(self, name: str) -> None:
        """Make an array that a function reads which is being compiled; compile what it points to."""
        value = self._open.pop(name)
        if isinstance(value, Later):
            self.arrays[name] = _laid_out(name, value.make())
            position = len(self.frame.listed()) + list(self.arrays).index(name)
            fill_words(self.table, position, self.arrays[name])
            return
        for at, program in enumerate(value.programs):
            bound = Bound(program, self.whole, self.part)
            self.inner.append(bound)
            self.arrays[name][at] = [*value.row(bound), bound.context]

    @property
    def context(self) -> int:
        """Address of the table."""
        return int(self.table.ctypes.data)

    def entry(self, role: str, world: int = 0) -> int:
        """Return the address of the compiled function of a role; 0 where there is none."""
        functions = self.program.of(world)
        if role not in functions:
            return 0
        for name in [name for name in self._open if name in _attributes(functions[role])]:
            self._fill(name)
        layout = tuple((name, _dtype_text(array.dtype), array.ndim) for name, array in self.arrays.items())
        return _entry(
            functions[role],
            role,
            _world_layout(self.frame.world),
            layout,
        )


class Interpreted:
    """A program in one walk, its functions run by the interpreter on the same arrays."""

    def __init__(self, program: Program, frame: Frame, stream: Any, part: Part = "") -> None:
        """Bind a program to the arrays of a walk; ``part`` is what it sees unless it says so itself."""
        whole, part = getattr(program, "frame", frame), program.part or part
        frame = whole._replace(world=narrow(whole.world, part))
        self.program = program
        mine: dict[str, Any] = {}
        for name, value in program.arrays.items():
            if isinstance(value, Pointers):
                rows = [Interpreted(p, whole, stream, part) for p in value.programs]
                table = np.zeros((len(rows), value.worlds * len(value.roles) + 1), object)
                for at, row in enumerate(rows):
                    table[at, :-1] = value.row(row)
                mine[name] = table
            elif isinstance(value, Later):
                mine[name] = _laid_out(name, value.make())
            elif value.dtype.names:
                mine[name] = WalkRecords(value)
            else:
                mine[name] = value
        self.given = {
            "world": frame.world,
            "mine": SimpleNamespace(**mine),
            "move": Record(frame.step),
            "changes": WalkRecords(frame.changes),
            "choice": frame.choice,
            "gradient": frame.gradient,
            "random": stream,
        }

    def entry(self, role: str, world: int = 0) -> Any:
        """Return the function of a role, of one argument that does not matter; 0 where there is none."""
        functions = self.program.of(world)
        if role not in functions:
            return 0
        function = functions[role]
        if isinstance(function, Written):
            function = function.plain
        if function is None:  # only ever called by compiled code
            return 0
        arguments = [self.given[name] for name in check_arguments(role, function)]

        def run(_: Any) -> float:
            value = function(*arguments)
            return float(value) if ROLES[role].returns else 0.0

        return run


def _dtype_text(dtype: np.dtype[Any]) -> str:
    """Code that stands for a dtype: a number's name, or the fields of a record."""
    if dtype.names is None:
        return f"np.{dtype.name}"
    return f"np.dtype({np.lib.format.dtype_to_descr(dtype)!r}, align={dtype.isalignedstruct})"


class WorldLayout(NamedTuple):
    """What a world looks like to compiled code.

    home, kind, fields
        The class of its named tuple: the module that defines it, its name and its fields.
    parts
        For each field the dtype and the dimensions of an array, or the layout of another world.
    """

    home: str
    kind: str
    fields: tuple[str, ...]
    parts: tuple[Any, ...]

    def text(self, view: Callable[[int, str, int], str], lines: list[str], first: int = 0) -> tuple[str, int]:
        """Return code that makes the world of the arrays from number ``first`` on, and how many there are.

        lines
            Definitions that the code needs are added here. A class of the library is imported, so that
            compiled helpers know it; others are made anew, wherever they were defined.
        """
        if self.home.split(".")[0] == __name__.split(".")[0]:
            define = f"from {self.home} import {self.kind}"
        else:
            define = f"{self.kind} = namedtuple({self.kind!r}, {list(self.fields)!r})"
        made, count = [], 0
        for part in self.parts:
            if isinstance(part, WorldLayout):
                text, many = part.text(view, lines, first + count)
            else:
                text, many = view(first + count, *part), 1
            made.append(f"{text}, ")
            count += many
        if define not in lines:
            lines.append(define)
        return f"{self.kind}({''.join(made)})", count

    @property
    def n_arrays(self) -> int:
        """Number of arrays."""
        return sum(part.n_arrays if isinstance(part, WorldLayout) else 1 for part in self.parts)


def _world_layout(world: Any) -> WorldLayout:
    kind = cast("Any", type(world))
    parts = (
        _world_layout(part) if isinstance(part, tuple) else (_dtype_text(part.dtype), part.ndim)
        for part in world
    )
    return WorldLayout(kind.__module__, kind.__name__, getattr(kind, "_fields", ()), tuple(parts))


@cache
def _attributes(function: Any) -> frozenset[str]:
    """Names of all attributes that a function and its helpers read."""
    if isinstance(function, Written):
        return frozenset(n.attr for n in ast.walk(parsed(function.text)) if isinstance(n, ast.Attribute))
    return source_of(function).attributes


_ENTRY = '''"""Generated: {role} of a part, as a pointer."""

from collections import namedtuple

import numpy as np
from numba import cfunc, types

from factorwise.kernels.compile.compiler import FAST_SUMS
from factorwise.kernels.compile.compiler import {inlined} as inlined
from factorwise.kernels.compile.pointers import view_1, view_2
from factorwise.kernels.walks.layouts import CHANGE, STEP, Choice, Gradient

{helpers}

{source}


@cfunc(types.float64(types.int64), cache=True, error_model="numpy", fastmath=set(FAST_SUMS){counting})
def entry(context):
{body}
'''


@cache
def _entry(
    function: Any,
    role: str,
    world: WorldLayout,
    mine: tuple[tuple[str, str, int], ...],
) -> int:
    """Compile, or find compiled, one function for worlds and arrays of this layout; return its address."""
    names = check_arguments(role, function)
    if isinstance(function, Written):
        text = _entry_text(function.name, function.text, role, names, world, mine, function.makes_arrays)
        try:
            return int(composed_module(text).entry.address)
        except TemplateError:
            if function.fallback is None:
                raise
            return _entry(function.fallback, role, world, mine)
    fields = {"world": world.fields, "mine": [name for name, _, _ in mine], **_FIELDS}
    check_function(role, function, fields, returns=ROLES[role].returns)
    source = source_of(function)
    text = _entry_text(source.name, source.text, role, names, world, mine)
    try:
        return int(composed_module(text).entry.address)
    except TemplateError as fault:
        raise explain_failure(role, function, text, fault) from fault


def _entry_text(
    called: str,
    source: str,
    role: str,
    names: tuple[str, ...],
    world: WorldLayout,
    mine: tuple[tuple[str, str, int], ...],
    makes_arrays: bool = False,
) -> str:
    lines, helpers, records = [], [], 0

    def view(position: int, dtype: str, dimensions: int) -> str:
        nonlocal records
        if dtype.startswith("np.dtype"):
            records += 1
            helpers.append(f"RECORD_{records} = {dtype}")
            dtype = f"RECORD_{records}"
        return f"view_{dimensions}(context, {WORDS * position}, {dtype})"

    at = world.n_arrays
    places = {
        "move": at,
        "changes": at + 1,
        "random": at + 2,
        "choice": at + 3,
        "gradient": at + 8,
        "mine": at + 11,
    }
    for name in names:
        place = places.get(name, 0)
        if name == "world":
            lines.append(f"world = {world.text(view, helpers)[0]}")
        elif name == "mine":
            helpers.append(f"Mine = namedtuple('Mine', {[field[0] for field in mine]!r})")
            views = "".join(f"{view(place + k, dtype, ndim)}, " for k, (_, dtype, ndim) in enumerate(mine))
            lines.append(f"mine = Mine({views})" if mine else "mine = ()")
        elif name == "move":
            lines.append(f"move = view_1(context, {WORDS * place}, STEP)[0]")
        elif name == "changes":
            lines.append(f"changes = view_1(context, {WORDS * place}, CHANGE)")
        elif name == "random":
            lines.append(f"random = view_1(context, {WORDS * place}, np.uint64)")
        else:
            kinds = ("np.int32", "np.float64", "np.int32", "np.int32", "np.float64")[: len(_FIELDS[name])]
            views = "".join(
                f"view_1(context, {WORDS * (place + k)}, {dtype}), " for k, dtype in enumerate(kinds)
            )
            lines.append(f"{name} = {name.capitalize()}({views})")
    made = f"{called}({', '.join(names)})"
    lines += [f"return np.float64({made})"] if ROLES[role].returns else [made, "return 0.0"]
    return _ENTRY.format(
        role=role,
        inlined="part_with_arrays" if makes_arrays else "part_of_entry",
        counting="" if makes_arrays else ", _nrt=False",
        helpers="\n".join(helpers),
        source=source,
        body="".join(f"    {line}\n" for line in lines),
    )
