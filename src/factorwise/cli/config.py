"""Defaults from a TOML file: shared options at the top, the options of a verb in the table of its name.

.. code-block:: toml

    seed = 7
    threads = 2

    [inspect]
    json = true

    [tag.fit]
    c2 = 0.5
    max-iterations = 50

A key is a long option without the leading dashes; ``_`` may replace ``-``. A flag is true or false, either
flag of a pair may be named, and an option that may be repeated takes a list. The command line takes
precedence over the file, and the verb's table over the top; a verb in a group, such as ``tag fit``, takes
shared options from the group's table, too.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

NOT_IN_FILES = frozenset({"config", "help", "version", "pair"})  # a pair is input, like arguments


class SettingKey(NamedTuple):
    """What a key sets: an option, or the opposite of a flag (``partial`` of ``--complete/--partial``)."""

    option: click.Option
    opposite: bool = False


def apply_config(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Make the file's values the defaults of the verb's options; this is the callback of ``--config``."""
    if path is None or context.resilient_parsing:
        return path
    keys = keys_of(context.command)
    shared = {name: key for name, key in keys.items() if getattr(key.option, "shared", False)}
    table, section, names = _read(path), "", []
    defaults: dict[str, Any] = {}
    for step in _way_to(context):
        group = step.parent.command if step.parent else None
        verbs = group.list_commands(step) if isinstance(group, click.Group) else [str(step.info_name)]
        inner = {name: table.pop(name) for name in verbs if isinstance(table.get(name), dict)}
        defaults |= _defaults(context, path, section, table, shared, [*shared, *verbs])
        names.append(str(step.info_name))
        table, section = inner.get(names[-1], {}), f"[{'.'.join(names)}] "
    context.default_map = defaults | _defaults(context, path, section, table, keys, list(keys))
    return path


def keys_of(command: click.Command) -> dict[str, SettingKey]:
    """Return the keys that a file may set for a verb: its long options, with ``-`` between words."""
    keys: dict[str, SettingKey] = {}
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in NOT_IN_FILES:
            for opposite, names in ((False, option.opts), (True, option.secondary_opts)):
                keys |= {name[2:]: SettingKey(option, opposite) for name in names if name.startswith("--")}
    return keys


def _way_to(context: click.Context) -> list[click.Context]:
    """Return the contexts of the verbs that lead to this one, which is last, without that of the program."""
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
            f"{path}: {error.strerror or error}. Give --config the path of a readable TOML file."
        ) from error
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path}: not a TOML file ({error}). Correct the file there.") from error


def _defaults(
    context: click.Context,
    path: Path,
    section: str,
    settings: Mapping[str, Any],
    keys: Mapping[str, SettingKey],
    known: Collection[str],
) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    said_by: dict[str, str] = {}
    for name, value in settings.items():
        key = keys.get(name.replace("_", "-"))
        if key is None:
            _refuse_key(context, path, section, name, known)
        _check(context, key.option, f"{path}: {section}{name}", value)
        parameter = str(key.option.name)
        if parameter in defaults:
            raise click.UsageError(
                f"{path}: {section}{said_by[parameter]!r} and {name!r} set the same option: keep one of"
                " them.",
                context,
            )
        defaults[parameter], said_by[parameter] = (not value if key.opposite else value), name
    return defaults


def _refuse_key(
    context: click.Context, path: Path, section: str, key: str, known: Collection[str]
) -> NoReturn:
    close = difflib.get_close_matches(key.replace("_", "-"), known, n=1)
    remedy = f"Did you mean {close[0]!r}?" if close else f"Known keys: {', '.join(sorted(known))}."
    raise click.UsageError(f"{path}: {section}{key!r} is not an option. {remedy}", context)


def _check(context: click.Context, option: click.Option, section: str, value: object) -> None:
    """Refuse a value of another type than the option's, which would otherwise be converted silently."""
    kind, wanted = _toml_type(option)
    several = option.multiple or option.nargs != 1
    values = value if several and isinstance(value, list) else [value]
    fits = isinstance(value, list) == several and all(
        isinstance(entry, kind) and (kind is bool or not isinstance(entry, bool)) for entry in values
    )
    if not fits:
        article = f"a list, each entry {wanted}" if several else wanted
        raise click.UsageError(f"{section} must be {article}, but {value!r} was given.", context)
    try:
        option.type_cast_value(context, value)
    except click.BadParameter as error:
        raise click.UsageError(f"{section}: {error.message}", context) from error


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
