"""Load the names of a package when they are first used, so that importing it takes almost no time.

From then on, calls of public classes and functions are checked against their annotations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def load_lazily(
    package: str, homes: Mapping[str, Sequence[str]], rooms: Mapping[str, str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    package
        The ``__name__`` of the package.
    homes
        The names that each module defines; modules are named relative to the package.
    rooms
        Names of the package that are modules, each with the path of its module.
    """
    where = {name: home for home, names in homes.items() for name in names}
    rooms = rooms or {}
    module = sys.modules[package]

    def load(name: str) -> object:
        from factorwise.arguments import guard

        if name in where:
            value = guard(getattr(import_module(f"{package}.{where[name]}"), name))
        elif name in rooms:
            value = import_module(f"{package}.{rooms[name]}")
            for public in value.__all__ if "__getattr__" not in vars(value) else ():  # else it guards them
                setattr(value, public, guard(getattr(value, public)))
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(module, name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(module), *where, *rooms})

    return load, names
