"""Bind programs to the arrays of a walk, interpreted or compiled as pointers.

Compiled functions become entries ``double f(int64 context)``, each in a generated module of its own that is
kept on disk, so that a combination of parts that were used before compiles nothing.
"""

from __future__ import annotations

import ast
from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import TemplateError
from factorwise.kernels.compile.checks import check_function, explain_failure
from factorwise.kernels.compile.composition import composed_module, source_of
from factorwise.kernels.compile.dependencies import parsed
from factorwise.kernels.compile.pointers import WORDS, fill_words
from factorwise.kernels.compile.programs import (
    ROLES,
    WHOLE,
    Later,
    Part,
    Pointers,
    Program,
    Written,
    check_arguments,
    laid_out,
)
from factorwise.kernels.walks.guards import guarded_program
from factorwise.kernels.walks.layouts import STEP, Choice, Gradient, Record, WalkRecords

#: Fields of the arguments that are the same in every walk.
_FIELDS = {"move": STEP.names or (), "choice": Choice._fields, "gradient": Gradient._fields}


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
        """Return all arrays, in the order of the words of a context."""
        return [*flat(self.world), self.step, self.changes, self.random, *self.choice, *self.gradient]


def flat(world: Any) -> list[NDArray[Any]]:
    """Return the arrays of a world; for a joint world, those of its worlds, concatenated."""
    return [array for part in world for array in (flat(part) if isinstance(part, tuple) else [part])]


def narrow(world: Any, part: Part) -> Any:
    """Return the arrays of those worlds of a joint world that a program reads."""
    if part in ("", WHOLE):
        return world
    if isinstance(part, str):
        return getattr(world, part)
    return side_by_side({own: getattr(world, name) for own, name in part})


def side_by_side(worlds: Mapping[str, Any]) -> Any:
    """Return a named tuple of the arrays of the worlds of a joint world."""
    kind = namedtuple("SideBySide", worlds, module="generated")  # type: ignore[misc]  # fields not known before
    return kind(*worlds.values())


class Framed(Program):
    """A program that always reads its own world, wherever it is bound.

    For example, another world than the walk's.
    """

    frame: Frame

    def __init__(self, program: Program, frame: Frame) -> None:
        vars(self).update(vars(program), frame=frame)


class Bound:
    """A program in one walk: its context, and its functions as pointers.

    The context contains bare addresses: the walk must keep this object alive.
    """

    def __init__(self, program: Program, frame: Frame, part: Part = "") -> None:
        """Bind a program to the arrays of a walk.

        ``part`` is the world it reads unless it names one itself.
        """
        self.whole, self.part = getattr(program, "frame", frame), program.part or part
        frame = self.whole._replace(world=narrow(self.whole.world, self.part))
        self.program = program = guarded_program(program, frame.world, len(frame.choice.place))
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
        """Create an array that a function being compiled reads; compile what it points to."""
        value = self._open.pop(name)
        if isinstance(value, Later):
            self.arrays[name] = laid_out(name, value.make())
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
        """Return the address of the compiled function of a role; 0 if there is none."""
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
    """A program in one walk, whose functions the interpreter runs on the same arrays."""

    def __init__(self, program: Program, frame: Frame, stream: Any, part: Part = "") -> None:
        """Bind a program to the arrays of a walk.

        ``part`` is the world it reads unless it names one itself.
        """
        whole, part = getattr(program, "frame", frame), program.part or part
        frame = whole._replace(world=narrow(whole.world, part))
        self.program = program = guarded_program(program, frame.world, len(frame.choice.place))
        mine: dict[str, Any] = {}
        for name, value in program.arrays.items():
            if isinstance(value, Pointers):
                rows = [Interpreted(p, whole, stream, part) for p in value.programs]
                table = np.zeros((len(rows), value.worlds * len(value.roles) + 1), object)
                for at, row in enumerate(rows):
                    table[at, :-1] = value.row(row)
                mine[name] = table
            elif isinstance(value, Later):
                mine[name] = laid_out(name, value.make())
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
        """Return the function of a role, whose one argument is ignored; 0 if there is none."""
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
    """Return the code of a dtype: a number's name, or the fields of a record."""
    if dtype.names is None:
        return f"np.{dtype.name}"
    return f"np.dtype({np.lib.format.dtype_to_descr(dtype)!r}, align={dtype.isalignedstruct})"


class WorldLayout(NamedTuple):
    """The layout of a world in compiled code.

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
        """Return code that makes the world from the arrays from number ``first`` on, and their number.

        lines
            Definitions that the code needs are appended here. A class of the library is imported, so that
            compiled helpers recognise it; others are defined again, wherever they came from.
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
    """Return the names of all attributes that a function and its helpers read."""
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
    """Compile one function for worlds and arrays of this layout, unless it is compiled.

    Return its address.
    """
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
