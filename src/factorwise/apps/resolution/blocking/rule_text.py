"""Parse blocking rules from text, in the form that `Rule.name` prints.

>>> from factorwise.apps.resolution.schema.fields import FieldSpec
>>> fields = [FieldSpec("author", "name"), FieldSpec("born", "date")]
>>> parse_rule("last name + first initial of author + year of born", fields).name
'last name + first initial of author + year of born'
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from factorwise.apps.resolution.blocking.rules import MOST_NEAR, PHRASES, Part, Rule
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.errors import InvalidArgumentError, require

#: The form that is used if a rule names only the column, by kind.
_WHOLE = {
    "name": "full",
    "text": "text",
    "category": "text",
    "identifier": "code",
    "list": "items",
    "number": "number",
    "date": "date",
    "address": "text",
    "email": "email",
    "phone": "phone",
    "location": "text",
    "vector": "vector",
    "scores": "pairs",
    "source": "source",
}
_OF_NAMES = {"first": "given", "last": "last"}  # the same for columns with only first or last names
_LISTS = frozenset({"tokens", "items", "keys", "codes"})
_FORMS = {phrase: form for form, phrase in PHRASES.items() if form != "keys"} | {"item": "items"}
_FEW, _RARE, _BANDS = 4, 100, 10  # most rare items of a record, most records that share one, bands of a text
_PREFIX = re.compile(r"first (\d+) letters(?: of (.+))?")
_SOUND = re.compile(r"sound(?: of (.+))?")
_BAND = re.compile(r"(\d+)-shingle minhash, band of (\d+)")
_NEAREST = re.compile(r"nearest (\S+)")
_ROUNDED = re.compile(r"(.+) to ([\d.]+)")


def parse_rule(text: str, fields: Sequence[FieldSpec]) -> Rule:
    """Parse a rule such as ``"last name + first initial of author"``.

    Parts are separated by plus signs. A part is a column, or a phrase followed by "of" and a column. A part
    without a column refers to the next column that is named.

    fields
        The fields of the table.
    """
    pieces = [piece.strip() for piece in text.split("+")]
    known = {field.name: field for field in fields if field.kind != "ignore"}
    parts: list[Part] = []
    column = ""
    for piece in reversed(pieces):
        phrase, named = _split(piece, known)
        column = named or column
        if not piece or not column:
            raise InvalidArgumentError(
                f"blocking rule {text!r}: {piece!r} names no column. Write parts such as 'first 3 letters of"
                f" COLUMN' with + between; the columns are {', '.join(known)}."
            )
        try:
            parts.append(_part(phrase, known[column]))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"blocking rule {text!r}: {error}") from None
    return Rule(tuple(reversed(parts)))


def read_rules(rules: Sequence[Rule | str], fields: Sequence[FieldSpec]) -> list[Rule]:
    """Return the rules, parsing those that are given as text."""
    if not rules:
        raise InvalidArgumentError("there are no blocking rules: give one at least, or None to choose them.")
    return [parse_rule(rule, fields) if isinstance(rule, str) else rule for rule in rules]


def _split(piece: str, known: dict[str, FieldSpec]) -> tuple[str, str]:
    """Return the phrase and the column of a part; each is empty if it is not given."""
    if piece in known:
        return "", piece
    for column in sorted(known, key=len, reverse=True):
        if piece.endswith(f" of {column}"):
            return piece.removesuffix(f" of {column}"), column
    return piece, ""


def _part(phrase: str, field: FieldSpec) -> Part:
    name = field.name
    if phrase not in _FORMS:
        if match := _PREFIX.fullmatch(phrase):
            return Part(name, _form(match[2] or "", field), "prefix", int(match[1]))
        if match := _SOUND.fullmatch(phrase):
            return Part(name, _form(match[1] or "", field), "sound")
        if match := _BAND.fullmatch(phrase):
            return Part(name, _form("", field), "bands", int(match[1]), bands=_BANDS, rows=int(match[2]))
        if phrase == "scored":
            return Part(name, "pairs", "scored")
        if match := _NEAREST.fullmatch(phrase):
            if field.kind != "vector":
                raise InvalidArgumentError(
                    f"neighbors are looked for in a column of vectors, but {name!r} is of kind {field.kind}."
                )
            wanted = f"from 1 to {MOST_NEAR}"
            require(match[1].isdecimal() and 1 <= int(match[1]) <= MOST_NEAR, "nearest", match[1], wanted)
            return Part(name, "vector", "nearest", int(match[1]))
        if match := _ROUNDED.fullmatch(phrase):
            return Part(name, _form(match[1], field), "rounded", float(match[2]))
    rare = phrase.startswith("rare ")
    form = _form(phrase.removeprefix("rare "), field)
    if rare:
        return Part(name, form, "items", _FEW, most=_RARE)
    return Part(name, form, "items" if form in _LISTS else "whole")


def _form(phrase: str, field: FieldSpec) -> str:
    if not phrase:
        part = field.option("part") if field.kind == "name" else ""
        return _OF_NAMES.get(part, _WHOLE[field.kind])
    form = _FORMS.get(phrase, phrase)
    return "keys" if form == "key" and field.kind == "list" else form
