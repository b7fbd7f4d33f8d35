"""Blocking rules: what two records must have in common to become candidates.

A rule is a conjunction of key parts. Each part names a normal form and how keys are derived from it (its
cut). Two records agree in a part if they share a key, and are candidates of the rule if they agree in all
parts.

>>> rule = Rule((Part("author", "last"), Part("author", "first_initial")))
>>> rule.name
'last name + first initial of author'
>>> Rule.from_dict(rule.as_dict()) == rule
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as fields_of
from itertools import groupby
from typing import Any

from factorwise.errors import InvalidArgumentError, require
from factorwise.validation import as_number, as_text, as_whole

MOST_NEAR = 1_000  # largest number of nearest neighbors of a vector
MOST_KEYS = 1_000_000  # upper bound of `most`, `bands` and `rows` of a part
CUTS = ("whole", "prefix", "sound", "items", "bands", "rounded", "nearest", "scored")

# Phrases for forms whose names are less clear; a form of the whole field is shown by the field's name alone.
PHRASES = {
    "last": "last name",
    "first": "first name",
    "root": "first name or nickname",
    "first_initial": "first initial",
    "middle_initial": "middle initial",
    "full": "full name",
    "key": "last name and initial",
    "keys": "last name and initial",
    "given": "given names",
    "last_sound": "sound of last name",
    "first_sound": "sound of first name",
    "tokens": "word",
    "local": "name before @",
    "tail": "last digits",
    "codes": "code",
}
_WHOLE_FIELD = frozenset({"text", "code", "number", "date", "days", "email", "phone", "items", "digits"})


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a key.

    field, form
        The field and its normal form.
    cut
        How keys are derived. ``whole``: the value (for a number, equal numbers). ``prefix``: its first
        ``size`` characters. ``sound``: its phonetic code. ``items``: the items of a list that at most
        ``most`` records have (0 for no limit), and of these the ``size`` rarest (0 for all). ``bands``:
        MinHash of the ``size``-shingles of a text, in ``bands`` bands of ``rows`` hashes each; similar texts
        probably share a band. ``rounded``: a number rounded to multiples of ``size`` on two grids, half a
        multiple apart, so that numbers closer than half a multiple always agree. ``nearest``: a vector agrees
        with its ``size`` nearest neighbors. ``scored``: two records agree if their pair has a score.
    """

    field: str
    form: str
    cut: str = "whole"
    size: float = 0
    most: int = 0
    bands: int = 0
    rows: int = 0

    def __post_init__(self) -> None:
        for name in ("field", "form", "cut"):
            as_text(name, getattr(self, name))
        as_number("size", self.size)
        for name in ("most", "bands", "rows"):
            as_whole(name, getattr(self, name), 0, MOST_KEYS)
        require(self.cut in CUTS, "cut", self.cut, f"one of {', '.join(CUTS)}")
        require(self.cut != "prefix" or self.size >= 1, "size", self.size, "at least 1 for a prefix")
        require(self.cut != "nearest" or 1 <= self.size <= MOST_NEAR, "size", self.size, f"1 to {MOST_NEAR}")
        require(self.cut != "rounded" or self.size > 0, "size", self.size, "above 0 for rounding")
        if self.cut == "bands":
            require(self.size >= 1, "size", self.size, "the length of shingles, at least 1")
            require(self.bands >= 1 and self.rows >= 1, "bands, rows", (self.bands, self.rows), "at least 1")

    @property
    def phrase(self) -> str:
        """Text for what the part compares, without the name of its field."""
        form = "" if self.form in _WHOLE_FIELD else PHRASES.get(self.form, self.form)
        if self.cut == "prefix":
            return f"first {self.size:g} letters" + (f" of {form}" if form else "")
        if self.cut == "sound":
            return "sound" + (f" of {form}" if form else "")
        if self.cut == "items":
            return ("rare " if self.most or self.size else "") + (form or "item")
        if self.cut == "bands":
            return f"{self.size:g}-shingle minhash, band of {self.rows}"
        if self.cut == "scored":
            return "scored"
        if self.cut == "nearest":
            return f"nearest {self.size:g}"
        if self.cut == "rounded":
            return f"{form or 'number'} to {self.size:g}"
        return form

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, without those that have their defaults."""
        return {key: value for key, value in asdict(self).items() if key in {"field", "form"} or value}


@dataclass(frozen=True, slots=True)
class Rule:
    """A blocking rule: records that agree in all its parts are candidates.

    A part that occurs twice requires two distinct shared keys, such as two rare words.
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        require(len(self.parts) >= 1, "parts", self.parts, "at least one")

    @property
    def fields(self) -> frozenset[str]:
        """The fields that the rule compares."""
        return frozenset(part.field for part in self.parts)

    @property
    def name(self) -> str:
        """Text for what records must share, as `parse_rule` reads it."""
        phrases = []
        for field, group in groupby(self.parts, key=lambda part: part.field):
            parts = list(group)
            said = " + ".join(part.phrase or part.form for part in parts)
            phrases.append(f"{said} of {field}" if len(parts) > 1 or parts[0].phrase else field)
        return " + ".join(phrases)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        return {"parts": [part.as_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Rule:
        """Rebuild the rule from the values that `as_dict` returned."""
        known = {field.name for field in fields_of(Part)}
        parts = []
        for part in content.get("parts", ()):
            unknown = sorted(set(part) - known)
            if unknown or not {"field", "form"} <= set(part):
                raise InvalidArgumentError(
                    f"a part of a blocking rule is {dict(part)!r}, but it must have field and form"
                    f" and may have {', '.join(sorted(known - {'field', 'form'}))}."
                )
            parts.append(Part(**part))
        return cls(tuple(parts))
