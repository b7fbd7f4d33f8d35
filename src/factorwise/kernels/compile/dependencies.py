"""What generated code depends on: the modules of the library that its imports reach, and their sources.

numba checks only the file that contains a function. If a generated module calls a function of the library and
the library is edited or upgraded, numba would still load code that was compiled with the old function. The
names of generated modules therefore contain a hash of all library sources that they can reach.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.util import resolve_name
from pathlib import Path
from threading import RLock

LIBRARY = Path(__file__).parents[2]

_NAME = LIBRARY.name
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # where a statement contains other statements
_ONE_AT_A_TIME = RLock()


def parsed(text: str | bytes) -> ast.Module:
    """Parse source text in one thread at a time, because Python 3.11 fails if two do."""
    with _ONE_AT_A_TIME:
        return ast.parse(text)


@lru_cache(maxsize=64)
def library_digest(text: str) -> str:
    """Hash the sources of all modules of the library that ``text`` reaches."""
    digest = hashlib.sha256()
    for name in sorted(reached_modules(text)):
        digest.update(f"{name} {_module(name)[0]}\n".encode())
    return digest.hexdigest()[:16]


def reached_modules(text: str) -> set[str]:
    """Return the names of the library's modules that ``text`` imports, directly or through one another.

    Imports count everywhere, also in functions, except those for type checkers only. A package that is only
    part of the path to one of its modules does not count.
    """
    reached: set[str] = set()
    waiting = _of_the_library(_imports(parsed(text), package=""))
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting |= _module(name)[1]
    return reached


@cache
def _module(name: str) -> tuple[str, frozenset[str]]:
    """Return the hash of a module of the library, and the modules that it imports."""
    path = _path(name)
    assert path is not None, f"{name} was found before"
    source = _read(path)
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    imports = _of_the_library(_imports(parsed(source), package))
    return hashlib.sha256(source).hexdigest(), frozenset(imports)


def _of_the_library(names: Iterable[str]) -> set[str]:
    return {name for name in names if _path(name) is not None}


@cache
def _path(name: str) -> Path | None:
    """Return the file of a module of the library; None if the name is something else."""
    first, *others = name.split(".")
    if first != _NAME:
        return None
    place = LIBRARY.joinpath(*others)
    candidates = [place / "__init__.py", place.with_name(f"{place.name}.py")]
    return next((path for path in candidates if path.is_file()), None)


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _imports(tree: ast.Module, package: str) -> set[str]:
    """Return all names that may be modules in the import statements of a module."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            home = resolve_name("." * statement.level + (statement.module or ""), package)
            found.update([home, *(f"{home}.{alias.name}" for alias in statement.names)])
        elif isinstance(statement, ast.If) and _is_for_type_checkers(statement.test):
            waiting.extend(statement.orelse)
        else:
            waiting.extend(inner for block in _BLOCKS for inner in getattr(statement, block, ()))
    return found


def _is_for_type_checkers(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", "")) == "TYPE_CHECKING"
