"""Composition: a user's plain functions become part of a compiled module that is kept on disk.

The module is generated as text. It has the source of the user's function and, transitively, of every function
and constant that it refers to, renamed so that nothing collides; its name is a hash of that text and of the
versions that matter. So editing a helper three files away gives another module, and the compiled code of an
unchanged one is found again in the next process, unlike that of closures over compiled functions.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import inspect
import math
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np

from factorwise.errors import TemplateError
from factorwise.kernels.compile.cache import composed_name, usable_cache_directory
from factorwise.kernels.compile.dependencies import parsed

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))
_LARGEST_ARRAY = 4096
_TRUSTED = {"numpy", "math", "builtins", "operator"}
_ONE_AT_A_TIME = RLock()  # a thread must not find a module that another is still generating


@dataclass(frozen=True)
class SourceText:
    """The text of a function under a unique name, with everything it refers to.

    name
        The name of the function in ``text``.
    text
        Module-level statements, its dependencies first.

    Attributes
        Names of all attributes that the text reads: which fields it may use.
    """

    name: str
    text: str
    attributes: frozenset[str]


def source_of(function: Callable[..., Any]) -> SourceText:
    """Collect the text of ``function`` and, transitively, of what it refers to."""
    collector = _Collector()
    name = collector.add(function)
    text = "\n\n".join(collector.statements)
    attributes = {node.attr for node in ast.walk(parsed(text)) if isinstance(node, ast.Attribute)}
    return SourceText(name, text, frozenset(attributes))


def composed_module(text: str) -> ModuleType:
    """Import generated ``text`` as a module whose compiled functions are cached on disk.

    Processes that generate the same text at the same time write the same file under a temporary name and
    rename it, so none of them reads half a file.
    """
    versions = {"numba": numba.__version__, "numpy": np.__version__, "llvmlite": llvmlite.__version__}
    name = composed_name(text, **versions)
    with _ONE_AT_A_TIME:
        return sys.modules[name] if name in sys.modules else _imported(name, text)


def _imported(name: str, text: str) -> ModuleType:
    """Write ``text`` unless it exists, and import it."""
    path = usable_cache_directory(name, text) / f"{name}.py"
    if not path.exists():
        _write_whole(path, text)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TemplateError(f"the generated module {path} cannot be imported: remove it and try again.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except numba.core.errors.NumbaError as fault:
        del sys.modules[name]
        raise TemplateError(
            "a function of the model cannot be compiled; it can still run with engine='plain'."
            f" The compiler says: {_last_words(fault)}"
        ) from fault
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _last_words(fault: Exception) -> str:
    """Return the lines of a compiler's message that name the cause."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Failed in", "During:", "There are", "- Of"))]
    return " ".join(telling[:6])[:600]


def _write_whole(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).replace(path)


class _Collector:
    """Turns functions into renamed source text, each once, dependencies first."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self._names: dict[FunctionType, str] = {}
        self._open: list[FunctionType] = []

    def add(self, function: Callable[..., Any]) -> str:
        """Add ``function`` and what it needs; return its name in the text, a hash of its content."""
        plain = getattr(function, "py_func", function)
        if not isinstance(plain, FunctionType):
            raise TemplateError(f"{function!r} is not a plain Python function: define it with def.")
        if plain in self._names:
            return self._names[plain]
        if plain in self._open:
            raise TemplateError(
                f"{plain.__name__} calls itself through another function, which cannot be compiled: use a"
                " loop."
            )
        self._open.append(plain)
        node = _definition(plain)
        renamed = {
            name: self._reference(plain, name, value)
            for name, value in _references(plain, node).items()
            if value is not plain
        }
        original = node.name
        body = ast.unparse(_Renamer({**renamed, original: "itself"}).visit(node))
        name = f"{original}_{hashlib.sha256(body.encode()).hexdigest()[:8]}"
        self.statements.append("@inlined\n" + ast.unparse(_Renamer({"itself": name}).visit(parsed(body))))
        self._open.pop()
        self._names[plain] = name
        return name

    def _reference(self, owner: FunctionType, name: str, value: object) -> str:
        home = getattr(value, "__module__", None) or ""
        if isinstance(value, ModuleType):
            if value.__name__.split(".")[0] not in _TRUSTED:
                raise TemplateError(
                    f"{owner.__name__} uses module {value.__name__!r}: import the function it needs by"
                    f" name (from {value.__name__} import ...), so that its source can be followed."
                )
            return self._statement(name, f"import {value.__name__} as {{}}")
        if home.startswith("factorwise.kernels.") and _is_imported(home, value):
            return self._statement(name, f"from {home} import {getattr(value, '__name__', name)} as {{}}")
        if isinstance(value, FunctionType) or hasattr(value, "py_func"):
            return self.add(value)  # type: ignore[arg-type]
        if isinstance(value, (BuiltinFunctionType, np.ufunc)) or home.split(".")[0] in _TRUSTED:
            module = "numpy" if isinstance(value, np.ufunc) else home
            return self._statement(name, f"from {module} import {getattr(value, '__name__', name)} as {{}}")
        return self._statement(name, f"{{}} = {_literal(owner, name, value)}")

    def _statement(self, name: str, form: str) -> str:
        unique = f"{name}_{hashlib.sha256(form.encode()).hexdigest()[:8]}"
        statement = form.format(unique)
        if statement not in self.statements:
            self.statements.append(statement)
        return unique


def _is_imported(home: str, value: object) -> bool:
    """Whether something of the library is imported instead of copied.

    These are classes, compiled functions, and functions with two forms.
    """
    if isinstance(value, type) or hasattr(value, "py_func") or hasattr(value, "has_two_forms"):
        return True
    return home.endswith(".primitives")


def _definition(function: FunctionType) -> ast.FunctionDef:
    """Parse the source of one function or lambda into a bare definition."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as fault:
        raise TemplateError(
            f"the source of {function.__name__} cannot be read, so it cannot be compiled:"
            " define it in a file or a notebook cell, or use engine='plain'."
        ) from fault
    try:
        tree = parsed(text)
    except SyntaxError:  # a lambda in the middle of an expression
        tree = parsed("(" + text.strip().rstrip(",") + ")") if function.__name__ == "<lambda>" else parsed("")
    if function.__name__ == "<lambda>":
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if len(found) == 1:
            returned = ast.Return(value=found[0].body)
            made = ast.FunctionDef(name="function", args=found[0].args, body=[returned], decorator_list=[])
            made.type_params = []  # type: ignore[attr-defined]  # a field since Python 3.12
            return ast.fix_missing_locations(made)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            node.decorator_list = []
            node.returns = None
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
            return node
    raise TemplateError(
        f"the source of {function.__name__} contains more than its definition: define it with def, on"
        " lines of its own."
    )


def _references(function: FunctionType, node: ast.FunctionDef) -> dict[str, object]:
    """Return the names that the function reads from outside, with their current values, without built-ins.

    They are read from the text instead of `inspect.getclosurevars`, which confuses attributes with names and
    ignores comprehensions.
    """
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    outside = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    written = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    arguments = {a.arg for a in ast.walk(node) if isinstance(a, ast.arg)}
    free = read - written - arguments
    missing = free - set(outside) - set(dir(builtins)) - {node.name}
    if missing:
        raise TemplateError(
            f"{function.__name__} refers to {sorted(missing)[0]!r}, which is not defined there."
        )
    return {name: outside[name] for name in sorted(free & set(outside))}


def _literal(owner: FunctionType, name: str, value: object) -> str:
    """Write a constant as source text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, _CONSTANTS):
        return repr(value)
    if isinstance(value, tuple):
        inner = "".join(f"{_literal(owner, name, part)}, " for part in value)
        return f"({inner})"
    if isinstance(value, np.ndarray) and value.size <= _LARGEST_ARRAY and value.dtype.kind in "biuf":
        numbers = _literal(owner, name, tuple(value.ravel().tolist()))
        return f"__import__('numpy').array({numbers}, dtype={value.dtype.str!r}).reshape({value.shape})"
    raise TemplateError(
        f"{owner.__name__} refers to {name!r}, a {type(value).__name__}, which cannot become a constant of"
        f" compiled code: use numbers, tuples of numbers or arrays of at most {_LARGEST_ARRAY} numbers,"
        " or make it a field."
    )


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:  # the name that ast calls
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        return self.generic_visit(node)
