"""Defaults from a TOML file: shared options at the top, a verb's own in the table of its name.

.. code-block:: toml

    seed = 7
    threads = 2

    [inspect]
    json = true

    [tag.fit]
    c2 = 0.5

The command line wins over the file, and the verb's table over the top; a verb in a group, as ``tag fit``,
takes shared options from the group's table too.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

import click

NOT_IN_FILES = frozenset({"config", "help", "version"})


def apply_config(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Make the file's values the defaults of the verb's options; a callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    options = {
        option.name: option
        for option in context.command.params
        if isinstance(option, click.Option) and option.name and option.name not in NOT_IN_FILES
    }
    shared = {name: option for name, option in options.items() if getattr(option, "shared", False)}
    table, place, names = _read(path), "", []
    defaults: dict[str, Any] = {}
    for step in _way_to(context):
        group = step.parent.command if step.parent else None
        verbs = group.list_commands(step) if isinstance(group, click.Group) else [str(step.info_name)]
        inner = {name: table.pop(name) for name in verbs if isinstance(table.get(name), dict)}
        defaults |= _defaults(context, path, place, table, shared, [*shared, *verbs])
        names.append(str(step.info_name))
        table, place = inner.get(names[-1], {}), f"[{'.'.join(names)}] "
    context.default_map = defaults | _defaults(context, path, place, table, options, list(options))
    return path


def _way_to(context: click.Context) -> list[click.Context]:
    """Return the contexts of the verbs that lead to this one, itself last, without that of the program."""
    way = [context]
    while way[0].parent is not None and way[0].parent.parent is not None:
        way.insert(0, way[0].parent)
    return way


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise click.UsageError(
            f"{path}: {error.strerror or error}. Give --config the path of a TOML file that can be read."
        ) from error
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: not a TOML file ({error}). Correct it there.") from error


def _defaults(
    context: click.Context,
    path: Path,
    place: str,
    given: Mapping[str, Any],
    options: Mapping[str, click.Option],
    known: Collection[str],
) -> dict[str, Any]:
    found = {}
    for key, value in given.items():
        name = key.replace("-", "_")
        if name not in options:
            _refuse_key(context, path, place, key, known)
        _check(context, options[name], f"{path}: {place}{key}", value)
        found[name] = value
    return found


def _refuse_key(context: click.Context, path: Path, place: str, key: str, known: Collection[str]) -> NoReturn:
    close = difflib.get_close_matches(key, known, n=1)
    remedy = f"Did you mean {close[0]!r}?" if close else f"Known here: {', '.join(sorted(known))}."
    raise click.UsageError(f"{path}: {place}{key!r} is not an option. {remedy}", context)


def _check(context: click.Context, option: click.Option, place: str, value: object) -> None:
    """Refuse a value of another type than the option's, which would otherwise be converted unseen."""
    kind, wanted = _toml_type(option)
    several = option.multiple or option.nargs != 1
    values = value if several and isinstance(value, list) else [value]
    fits = isinstance(value, list) == several and all(
        isinstance(entry, kind) and (kind is bool or not isinstance(entry, bool)) for entry in values
    )
    if not fits:
        article = f"a list, each entry {wanted}" if several else wanted
        raise click.UsageError(f"{place} must be {article}, but {value!r} was given.", context)
    try:
        option.type_cast_value(context, value)
    except click.BadParameter as error:
        raise click.UsageError(f"{place}: {error.message}", context) from error


def _toml_type(option: click.Option) -> tuple[type | tuple[type, ...], str]:
    if hasattr(option.type, "toml_type"):
        return option.type.toml_type  # type: ignore[no-any-return]
    if isinstance(option.type, click.types.BoolParamType):
        return bool, "true or false"
    if isinstance(option.type, click.types.IntParamType):
        return int, "an integer"
    if isinstance(option.type, click.types.FloatParamType):
        return (int, float), "a number"
    return str, "a text in quotes"
