"""The kinds of fields of a table, and the TOML file that declares them.

[fields.title]
kind = "text"

[fields.authors]
kind = "list"
separator = "|"
items = "name"

[fields.note]
kind = "ignore"
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from factorwise.errors import DataFileError, InvalidArgumentError, MissingDataError
from factorwise.validation import as_number, as_text

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "name": "names of persons",
        "text": "words: titles, descriptions, names of things",
        "number": "quantities and years",
        "date": "days, or years alone",
        "category": "one of a few values",
        "identifier": "codes that are the same or not: account and post codes, model numbers",
        "list": "several values: co-authors, key words",
        "address": "house number and street, with or without town and post code",
        "email": "e-mail addresses",
        "phone": "telephone numbers",
        "location": "a point on the earth, or the name of a place",
        "vector": "lists of numbers, one for each record: embeddings",
        "scores": "scores of pairs by another tool",
        "source": "where records are from, which says how much links between two sources count",
        "ignore": "nothing to compare",
    }
)

# The options of each kind with their allowed values (None for any text); the first is the default.
OPTIONS: Mapping[str, Mapping[str, tuple[str, ...] | None]] = MappingProxyType(
    {
        "name": {"part": ("full", "first", "last")},
        "number": {"decimal": (".", ",")},
        "date": {"order": ("auto", "dmy", "mdy")},
        "list": {"separator": None, "items": ("text", "name")},
        "location": {"part": ("place", "point", "latitude", "longitude")},
        "vector": {"length": None},
    }
)
DEFAULT_SEPARATOR = "|"

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class OwnLevels:
    """Levels and match weights of one comparison of a field, given by the user instead of fitted.

    compare
        The name of the comparison, as in lists of weights: ``edits of phone``.
    starts
        Lower thresholds of the levels, ascending; values below the first have weight 0.
    weights
        What each level adds to the score of a pair, in natural log odds.
    """

    compare: str
    starts: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        as_text("compare", self.compare)
        for name in ("starts", "weights"):
            values = tuple(as_number(name, value) for value in getattr(self, name))
            object.__setattr__(self, name, values)
        ascending = all(a < b for a, b in pairwise(self.starts))
        if not self.starts or not ascending or len(self.starts) != len(self.weights):
            raise InvalidArgumentError(
                f"levels of {self.compare!r} need ascending values from which on each of as many weights"
                f" holds, but from {list(self.starts)} and weights {list(self.weights)} were given."
            )


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of the records.

    name
        Column of the table.
    kind
        One of `KINDS`.
    options
        Options of the kind, as in `OPTIONS`; options that are not given have their defaults.
    note
        Why this kind was inferred; it is ignored when fields are compared.
    weight
        Factor of the field's fitted weights.
    levels
        Comparisons whose weights are given instead of fitted.
    """

    name: str
    kind: str
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    note: str = field(default="", compare=False)
    weight: float = 1.0
    levels: tuple[OwnLevels, ...] = ()

    def __post_init__(self) -> None:
        as_text("name", self.name)
        _check_kind(self.name, self.kind)
        allowed = OPTIONS.get(self.kind, {})
        for key, value in self.options.items():
            if key not in allowed:
                raise InvalidArgumentError(_unknown_option(self.name, self.kind, key, allowed))
            choices = allowed[key]
            if key == "length" and not (isinstance(value, str) and value.isdecimal() and int(value) > 0):
                raise InvalidArgumentError(
                    f"field {self.name!r}: length must be how many numbers a vector has, but {value!r} was"
                    " given."
                )
            if not isinstance(value, str) or not value or (choices is not None and value not in choices):
                wanted = "some text" if choices is None else " or ".join(map(repr, choices))
                raise InvalidArgumentError(
                    f"field {self.name!r}: {key} must be {wanted}, but {value!r} was given."
                )
        if not 0.0 <= as_number("weight", self.weight) < math.inf:
            raise InvalidArgumentError(
                f"field {self.name!r}: weight must be a number from 0 on, but {self.weight!r} was given."
            )
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    def option(self, key: str) -> str:
        """Return the value of an option, or its default if it is not given."""
        choices = OPTIONS[self.kind][key]
        return self.options.get(key, DEFAULT_SEPARATOR if choices is None else choices[0])


def read_fields(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> list[FieldSpec]:
    """Read fields from a TOML file; with ``columns``, raise an error if a field is not one of them."""
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise MissingDataError(
            f"there is no file {str(file)!r} with kinds of fields. Check the path."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataFileError(f"{file} is not TOML: {error}. Correct it there.") from None
    try:
        return fields_from(content, columns)
    except InvalidArgumentError as error:
        raise DataFileError(f"{file}: {error}") from None


def fields_from(content: Mapping[str, Any], columns: Sequence[str] | None = None) -> list[FieldSpec]:
    """Return the fields that the content of a TOML file declares, in its order."""
    for key in content:
        if key != "fields":
            raise InvalidArgumentError(f"{key!r} is not known here. Write sections such as [fields.title].")
    tables = content.get("fields", {})
    if not isinstance(tables, Mapping):
        raise InvalidArgumentError(f"fields is {tables!r}. Write sections such as [fields.title].")
    specs = []
    for name, table in tables.items():
        if columns is not None and name not in columns:
            raise InvalidArgumentError(
                f"there is no column {name!r}.{_nearest(name, columns)}"
                f" The columns are {', '.join(map(repr, columns))}."
            )
        if not isinstance(table, Mapping) or "kind" not in table:
            raise InvalidArgumentError(
                f'[fields.{_key(name)}] has no kind. Write kind = "text" or another of {", ".join(KINDS)}.'
            )
        options = {
            key: str(value) if key == "length" and isinstance(value, int) else value
            for key, value in table.items()
            if key not in ("kind", "weight", "levels")
        }
        levels = tuple(_own_levels(name, entry) for entry in table.get("levels", ()))
        _check_kind(name, table["kind"])
        specs.append(FieldSpec(name, table["kind"], options, weight=table.get("weight", 1.0), levels=levels))
    return specs


def _own_levels(name: str, entry: object) -> OwnLevels:
    if not isinstance(entry, Mapping) or set(entry) != {"compare", "from", "weights"}:
        raise InvalidArgumentError(
            f'each [[fields.{_key(name)}.levels]] needs compare = "edits of phone" or another comparison,'
            f" from = [...] and weights = [...], but {entry!r} was given."
        )
    starts, weights = entry["from"], entry["weights"]
    if not isinstance(starts, list) or not isinstance(weights, list):
        raise InvalidArgumentError(f"[[fields.{_key(name)}.levels]]: from and weights must be lists.")
    return OwnLevels(entry["compare"], tuple(starts), tuple(weights))


def fields_to_toml(specs: Iterable[FieldSpec]) -> str:
    """Return TOML text that declares these fields; notes become comments."""
    sections = []
    for spec in specs:
        note = [f"# {line}" for line in spec.note.splitlines()]
        lines = [f"{key} = {_quoted(value)}" for key, value in {"kind": spec.kind, **spec.options}.items()]
        lines += [] if spec.weight == 1.0 else [f"weight = {spec.weight:g}"]
        for own in spec.levels:
            lines += [f"[[fields.{_key(spec.name)}.levels]]", f"compare = {_quoted(own.compare)}"]
            lines += [f"from = {list(own.starts)}", f"weights = {list(own.weights)}"]
        sections.append("\n".join([*note, f"[fields.{_key(spec.name)}]", *lines]) + "\n")
    return "\n".join(sections)


def override(inferred: Sequence[FieldSpec], given: Sequence[FieldSpec]) -> list[FieldSpec]:
    """Return the inferred fields, replaced by given ones of the same name; other given ones are appended."""
    by_name = {spec.name: spec for spec in given}
    known = {spec.name for spec in inferred}
    return [by_name.get(spec.name, spec) for spec in inferred] + [s for s in given if s.name not in known]


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return the text as a basic string of TOML."""
    escapes = {'"': '\\"', "\\": "\\\\"}
    shown = (escapes.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text)
    return '"' + "".join(shown) + '"'


def _check_kind(name: str, kind: object) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidArgumentError(
            f"field {name!r} has kind {kind!r}.{_nearest(kind, KINDS)} The kinds are {', '.join(KINDS)}."
        )


def _nearest(name: object, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _unknown_option(name: str, kind: str, key: str, allowed: Iterable[str]) -> str:
    takes = ", ".join(allowed)
    remedy = f" It takes {takes}." if takes else " It takes none."
    return f"field {name!r} of kind {kind} has no option {key!r}.{_nearest(key, allowed)}{remedy}"
