"""Choose the identity columns of a table: the columns that name the entity each record describes.

A header such as "name" or "title" counts for more than the kind of the column. First and last name together
name a person. Two such columns that are never filled together (a person's name, a film's title) form one
identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.blocking import Part, Rule
from factorwise.apps.resolution.blocking.joins import MOST_RULES
from factorwise.apps.resolution.normalize.nicknames import KNOWN_FIRST_NAMES
from factorwise.apps.resolution.normalize.word_sets import word_set
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.schema.header_words import FIRST_NAME_WORDS, LAST_NAME_WORDS, header_words
from factorwise.errors import InvalidArgumentError

PERSON, TEXT = "person", "text"
SAYS_MOST = "the column of words that says most"  # the reason if no header names the identity
_FIRST = FIRST_NAME_WORDS | word_set("nombre nombres nome")  # header words of first names
_LAST = LAST_NAME_WORDS
_MIDDLE = word_set("middle mname second")
_NAMED = word_set("name names label nombre nome naam navn namn nazwa название наименование 姓名 氏名 名称")
_TITLED = word_set("title titel titre heading titulo titolo заголовок 标题")
_THINGS = word_set(
    "product company organization organisation org firm institution assignee business institute agency"
    " school site restaurant hotel employer applicant item article work song album"
)
#: Header words of columns that describe the entity but do not name it.
_OTHERS = word_set(
    "brand city town street state country county venue journal file user domain host manufacturer"
    " category class group publisher series conference type language job position coauthor coauthors"
    " coinventors department place birthplace suburb attorney lawyer email address genre artist short nick"
)
_PERSONS = word_set("name person author inventor patient customer client employee contact")
_MATES = word_set("coauthors coauthor coinventors coinventor colleagues")
_FEWEST = 0.3  # least share of the records that have a value in an identity column
_BOTH = 0.01  # largest share of records with both values for two columns to be one identity
_ROWS = 20_000  # rows that are sampled to inspect the values
_SINGLE, _FIRST_NAMES, _ENOUGH_NAMES = 0.75, 0.1, 20  # least shares of single words, first names; values
_WORDY = frozenset({"text", "category", "identifier", "location", "name", "address", "list"})


@dataclass(frozen=True, slots=True)
class About:
    """The identity columns of a table: those that name the entity.

    columns
        One column; the first and last name of a person; or several columns that are never filled
        together.
    form
        ``person`` or ``text``.
    reason
        Why these columns were chosen, as text for the user.
    """

    columns: tuple[str, ...]
    form: str
    reason: str

    @property
    def phrase(self) -> str:
        """The columns as text for the user."""
        return " + ".join(self.columns) if self.form == PERSON else " or ".join(self.columns)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        return {"columns": list(self.columns), "form": self.form, "reason": self.reason}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> About:
        """Rebuild the object from the values that `as_dict` returned."""
        about = cls(tuple(map(str, content["columns"])), str(content["form"]), str(content["reason"]))
        if about.form not in (PERSON, TEXT) or not about.columns:
            raise InvalidArgumentError(f"what records are about is {dict(content)!r}.")
        return about


def choose_about(
    table: pa.Table, fields: Sequence[FieldSpec], columns: Sequence[str] = ()
) -> tuple[About, list[FieldSpec]]:
    """Choose the identity columns, and return them with the fields, whose kinds are adapted to them.

    columns
        The identity columns that the user chose; empty to infer them.
    """
    filled = {
        one.name: _filled(table.column(one.name))
        for one in fields
        if one.name in table.column_names and one.kind not in ("vector", "scores", "source")
    }
    if not filled:
        raise InvalidArgumentError(
            "without labels, records need a column that names them, but there is none that can be read: give"
            " one, or label some entities or pairs."
        )
    unknown = [name for name in columns if name not in filled]
    if unknown:
        raise InvalidArgumentError(
            f"records cannot be about {unknown[0]!r}: the columns that are compared are"
            f" {', '.join(map(repr, filled))}."
        )
    readable = [one for one in fields if one.name in filled]
    about = _told(readable, columns) if columns else _inferred(table, readable, filled)
    return about, _fitting(fields, about)


def _told(fields: Sequence[FieldSpec], columns: Sequence[str]) -> About:
    chosen = [one for one in fields if one.name in columns]
    parts = _parts(chosen, dict.fromkeys(columns, 1.0))
    if parts is not None:
        return About(parts, PERSON, "as you said")
    is_person = len(chosen) == 1 and chosen[0].kind == "name" and chosen[0].option("part") == "full"
    return About(tuple(columns), PERSON if is_person else TEXT, "as you said")


def _inferred(table: pa.Table, fields: Sequence[FieldSpec], filled: Mapping[str, float]) -> About:
    used = [one for one in fields if filled.get(one.name, 0.0) > 0.0 and _has_letters(table, one)]
    words = {one.name: header_words(one.name) for one in used}
    enough = [one for one in used if filled[one.name] >= _FEWEST]
    parts = _parts(enough, filled)
    if parts is not None:
        return About(parts, PERSON, "first and last names are one person's name")
    plain = [one for one in used if one.kind in _WORDY and not words[one.name] & (_OTHERS | _MATES)]
    mates = any(header_words(one.name) & _MATES for one in fields)
    titled = [one for one in plain if words[one.name] & _TITLED and one.kind != "list"]
    persons = [
        one
        for one in plain
        if filled[one.name] >= _FEWEST
        and not words[one.name] & _THINGS
        and (one.kind == "name" or (mates and words[one.name] & _PERSONS))
    ]
    named = [one for one in plain if words[one.name] & _NAMED and one.kind != "list"]
    for person in sorted(persons, key=lambda one: (not words[one.name] & _NAMED, -filled[one.name])):
        role = not words[person.name] & _NAMED
        if role and not mates and any(filled[one.name] >= _FEWEST for one in titled):
            continue  # this is the author of a work, and the records describe works
        if _partners(table, person.name, [*named, *titled]):
            break
        return About((person.name,), PERSON, "a column of persons' names")
    for group, why in ((named, "the header says name"), (titled, "the header says title")):
        whole = [one for one in group if filled[one.name] >= _FEWEST] or group[:1]
        if whole and (filled[whole[0].name] >= _FEWEST or _partners(table, whole[0].name, [*named, *titled])):
            best = max(whole, key=lambda one: _information(table, one.name)).name
            partners = _partners(table, best, [*named, *titled])
            reason = why + ("; the columns are never filled together" if partners else "")
            return About((best, *partners), TEXT, reason)
    things = [one for one in plain if words[one.name] & _THINGS and filled[one.name] >= _FEWEST]
    parts = None if things else _parts_by_values(table, enough)
    if parts is not None:
        return About(parts, PERSON, "a column of first names, and the one beside it")
    texts = [one for one in enough if one.kind == "text" and one in plain]
    others = [one for one in enough if one.kind in _WORDY and one in plain]
    rest = things or texts or others or enough or list(fields)
    best = max(rest, key=lambda one: _information(table, one.name)).name
    return About((best,), TEXT, "the header names a thing" if things else SAYS_MOST)


def _parts(fields: Sequence[FieldSpec], filled: Mapping[str, float]) -> tuple[str, ...] | None:
    """Return the columns of first and last names, or None unless the table has both."""
    found = []
    for hints, others, part in ((_FIRST, _LAST | _MIDDLE, "first"), (_LAST, _FIRST | _MIDDLE, "last")):
        fitting = [
            one.name
            for one in fields
            if (header_words(one.name) & hints and not header_words(one.name) & (others | _OTHERS))
            or (one.kind == "name" and one.option("part") == part)
        ]
        if not fitting:
            return None
        found.append(max(fitting, key=lambda name: filled[name]))
    return tuple(found)


def _parts_by_values(table: pa.Table, fields: Sequence[FieldSpec]) -> tuple[str, ...] | None:
    """Return a column with common first names and the column of last names next to it, or None."""
    single, shares = set(), {}
    for one in fields:
        if one.kind not in ("text", "category", "name"):
            continue
        values = table.column(one.name).slice(0, _ROWS).drop_null().unique().to_pylist()
        words = [str(value).casefold().split() for value in values if str(value).strip()]
        if words and np.mean([len([w for w in each if len(w) > 2]) <= 1 for each in words]) >= _SINGLE:
            single.add(one.name)
            shares[one.name] = float(np.mean([each[0] in KNOWN_FIRST_NAMES for each in words]))
    first = max(shares, key=lambda name: shares[name], default=None)
    if first is None or shares[first] < _FIRST_NAMES or len(table.column(first).unique()) < _ENOUGH_NAMES:
        return None
    place = table.column_names.index(first)
    beside = [table.column_names[k] for k in (place + 1, place - 1) if 0 <= k < table.num_columns]
    last = next((name for name in beside if name in single), None)
    return None if last is None else (first, last)


def _partners(table: pa.Table, column: str, others: Sequence[FieldSpec]) -> tuple[str, ...]:
    """Return the other columns that are filled only where ``column`` and those before them are empty."""
    have, found = _known(table.column(column)), []
    if have.mean() > 0.98:
        return ()
    for one in others:
        more = _known(table.column(one.name))
        if one.name == column or one.name in found or not more.any():
            continue
        if (have & more).sum() <= _BOTH * min(have.sum(), more.sum()):
            found.append(one.name)
            have = have | more
    return tuple(found)


def _fitting(fields: Sequence[FieldSpec], about: About) -> list[FieldSpec]:
    """Return the fields, in which identity columns have a kind with the normal forms of an identity."""
    parts = ("full",) if len(about.columns) == 1 else ("first", "last")
    note = "what records are about"
    changed = []
    for one in fields:
        if one.name not in about.columns:
            changed.append(one)
        elif about.form == PERSON:
            part = parts[about.columns.index(one.name)]
            changed.append(one if one.kind == "name" else FieldSpec(one.name, "name", {"part": part}, note))
        else:
            changed.append(one if one.kind == "text" else FieldSpec(one.name, "text", note=note))
    return changed


def identity_rules(about: About, rules: Sequence[Rule]) -> list[Rule]:
    """Return blocking rules; the first ones make every two records with equal identities candidates."""
    if about.form == PERSON:
        first, last = about.columns[0], about.columns[-1]
        own = [Rule((Part(last, "last"), Part(first, "first_initial")))]
    else:
        own = [Rule((Part(name, "text"),)) for name in about.columns]
    return [*own, *(rule for rule in rules if rule not in own)][:MOST_RULES]


def _known(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    known = np.asarray(column.is_valid())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        known = known & np.asarray(pc.not_equal(pc.utf8_trim_whitespace(column), "").fill_null(False))
    return known


def _filled(column: pa.ChunkedArray) -> float:
    return float(_known(column).mean()) if len(column) else 0.0


def _has_letters(table: pa.Table, field: FieldSpec) -> bool:
    """Return whether most values of a column contain words rather than numbers."""
    column = table.column(field.name)
    if field.kind in ("number", "date", "phone", "email"):
        return False
    if field.kind == "ignore" and pc.count_distinct(column).as_py() < len(column) - column.null_count:
        return False  # only a code whose values are all different may name the entity
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    known = column.slice(0, 20_000).drop_null()
    letters = pc.match_substring_regex(known, r"\pL\pL")
    return len(known) > 0 and float(pc.mean(letters.cast(pa.float64())).as_py()) >= 0.5


def _information(table: pa.Table, column: str) -> float:
    """Return the entropy of a column's values, multiplied by the share of records that have a value."""
    values = table.column(column)
    counts = np.asarray(pc.value_counts(values.drop_null().combine_chunks()).field("counts"), float)
    share = counts / max(counts.sum(), 1.0)
    return float(-(share * np.log(share)).sum()) * _filled(values) if len(counts) else 0.0
