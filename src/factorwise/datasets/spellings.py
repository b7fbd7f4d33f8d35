"""Spellings of an author's name: the usual one, and variants for some of the mentions.

A variant differs from the usual spelling in one of eight ways, whose frequencies were measured among variants
of real authors. These frequencies leave a rest, which we assigned to the style of reference lists, with an
initial and the last name first. A variant has only a kind that is possible: a nickname needs a name that has
one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.datasets.names import Laws, Names, NameTable, draw_families
from factorwise.datasets.nicknames import NICKNAMES
from factorwise.datasets.texts import folded, joined, replaced, without_accents
from factorwise.types import Bools, Ints

#: Kinds of variants, those possible for the fewest authors first, and their shares among the variants.
KINDS = {
    "nickname": 0.05,
    "punctuation": 0.10,
    "middle name added or dropped": 0.40,
    "first name respelt": 0.07,
    "first name to initial": 0.05,
    "case and accents": 0.055,
    "order": 0.02,
    "last name changed": 0.19,
    "initial and order": 0.065,
}
_VARIANTS = 0.31  # expected number of variants for each e-fold of mentions
_MOST = 8
_HYPHENATED = 0.3  # of given names of two syllables
_FULL_MIDDLE = 0.15  # of middle names
_DOUBLE = 0.4  # of changed last names keep the old one in front
_LONGEST = 0.5  # part of a career over which a variant is used

# Tried in turn until one of them changes the name.
_RESPELLINGS = (
    ("ph", "f"),
    ("ck", "k"),
    ("th", "t"),
    ("ie", "y"),
    ("ei", "ey"),
    ("ya", "ia"),
    ("ai", "ay"),
    ("oo", "u"),
    ("ee", "i"),
    ("ss", "s"),
    ("nn", "n"),
    ("ll", "l"),
    ("^C", "K"),
    ("^Y", "J"),
    ("ou", "u"),
    ("([aeiou])([lnrst])([aeiou])", r"\1\2\2\3"),
    ("i$", "ie"),
    ("a$", "ah"),
    ("e$", ""),
    ("([bcdfgklmnprstz])$", r"\1\1"),
    ("([a-z])$", r"\1h"),
)


class Spellings(NamedTuple):
    """All spellings: first the usual one of every author, then the variants.

    author, kind
        Author and kind of each spelling; the kind is the position in `KINDS`, -1 for the usual spelling.
    name
        The name as written.
    last, initial
        Last name, and first letter of the first name, in lower case without accents.
    """

    author: Ints
    kind: Ints
    name: pa.StringArray
    last: pa.StringArray
    initial: pa.StringArray


class _Parts(NamedTuple):
    """Columns of a name; a middle name may be missing."""

    first: Any
    middle: Any
    last: Any

    def take(self, rows: Ints) -> _Parts:
        index = pa.array(rows)
        return _Parts(*(column.take(index) for column in self))


def write_names(
    rng: np.random.Generator, table: NameTable, names: Names, laws: Laws, careers: Ints
) -> Spellings:
    """Write the usual name of every author and draw its variants."""
    common = _common(rng, table, names)
    author, able = _variants(rng, table, names, common, careers)
    kind = _kinds(rng, able)
    order = np.argsort(kind, kind="stable")
    author, kind = author[order], kind[order]
    parts, texts = [common], [_plain(common)]
    for kind_number, name in enumerate(KINDS):
        rows = author[kind == kind_number]
        changed = _CHANGES[name](rng, table, names.take(rows), common.take(rows), laws)
        parts.append(changed)
        texts.append(_reversed(changed) if name in _REVERSED else _plain(changed))
    first, last = (pa.concat_arrays([part[column] for part in parts]) for column in (0, 2))
    return Spellings(
        np.concatenate([np.arange(len(careers)), author]),
        np.concatenate([np.full(len(careers), -1), kind]),
        pa.concat_arrays(texts),
        folded(last),
        folded(pc.utf8_slice_codeunits(first, 0, 1)),
    )


def use_spellings(rng: np.random.Generator, spellings: Spellings, careers: Ints) -> Ints:
    """Choose a spelling for every mention, given by author and in order of time: int64[mentions].

    A variant is used for a stretch of the career; a changed last name to its end.
    """
    used = np.repeat(np.arange(len(careers)), careers)
    variants = np.arange(len(careers), len(spellings.author))
    length = careers[spellings.author[variants]]
    lasting = spellings.kind[variants] == list(KINDS).index("last name changed")
    begin = np.where(lasting, 1, 0) + (rng.random(len(variants)) * (length - lasting)).astype(np.int64)
    stretch = 1 + (rng.random(len(variants)) ** 2 * _LONGEST * length).astype(np.int64)
    count = np.where(lasting, length - begin, np.minimum(stretch, length - begin))
    # the later of two variants at the same position counts; lasting ones are written first
    order = np.argsort(~lasting, kind="stable")
    variants, begin, count = variants[order], begin[order], count[order]
    first = (np.cumsum(careers) - careers)[spellings.author[variants]] + begin
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    used[np.repeat(first, count) + within] = np.repeat(variants, count)
    return used


def _common(rng: np.random.Generator, table: NameTable, names: Names) -> _Parts:
    """Return names in the usual spelling of their authors."""
    first = table.given.take(pa.array(names.given))
    apart = _syllables_apart(table).take(pa.array(names.given))
    hyphenated = pc.and_(pa.array(rng.random(len(names.given)) < _HYPHENATED), apart.is_valid())
    middle = table.given.take(pa.array(np.where(names.middle >= 0, names.middle, 0)))
    initial = joined(pc.utf8_slice_codeunits(middle, 0, 1), ".", by="")
    whole = pa.array(rng.random(len(names.given)) < _FULL_MIDDLE)
    return _Parts(
        pc.if_else(hyphenated, apart, first),
        pc.if_else(pa.array(names.middle >= 0), pc.if_else(whole, middle, initial), None),
        table.family.take(pa.array(names.family)),
    )


def _syllables_apart(table: NameTable) -> pa.StringArray:
    """Return given names of two syllables with a hyphen between them; missing for all others."""
    apart: list[str | None] = []
    for lists in table.lists:
        if not lists.culture.syllabic:
            apart += [None] * len(lists.given)
            continue
        syllables = re.compile(lists.culture.syllable, re.IGNORECASE)
        for match in map(syllables.fullmatch, lists.given):
            apart.append(None if match is None else f"{match[1]}-{match[2].capitalize()}")
    return pa.array(apart, pa.string())


def _variants(
    rng: np.random.Generator, table: NameTable, names: Names, common: _Parts, careers: Ints
) -> tuple[Ints, dict[str, Bools]]:
    """Return the author of each variant, and which kinds it could have."""
    expected = _VARIANTS * np.log(careers)
    count = np.minimum(rng.poisson(expected), np.minimum(careers - 1, _MOST))
    author = np.repeat(np.arange(len(careers)), count)
    customary = np.array([lists.culture.middle > 0 for lists in table.lists])
    parts = common.take(author)
    full_names = joined(parts.first, parts.middle, parts.last)
    return author, {
        "nickname": np.asarray(pc.is_in(parts.first, pa.array(list(NICKNAMES)))),
        "punctuation": np.asarray(pc.match_substring_regex(full_names, r"[.'\x{2019}-]")),
        "middle name added or dropped": customary[names.culture[author]],
        "first name respelt": np.asarray(pc.match_substring_regex(parts.first, "[a-z]$")),
    }


def _kinds(rng: np.random.Generator, able: dict[str, Bools]) -> Ints:
    """Return the kind of each variant: every kind gets its share of the variants for which it is possible."""
    total = len(next(iter(able.values())))
    kind = np.full(total, -1)
    for number, (name, share) in enumerate(KINDS.items()):
        possible = kind < 0
        if name in able:
            possible &= able[name]
        candidates = rng.permutation(np.flatnonzero(possible))
        kind[candidates[: round(share * total)]] = number
    rest = np.flatnonzero(kind < 0)  # a remainder from rounding, or no kind was possible
    kind[rest] = list(KINDS).index("last name changed")
    return kind


def _nickname(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    known = pa.array(list(NICKNAMES))
    familiar = pa.array(list(NICKNAMES.values())).take(pc.index_in(parts.first, known))
    return parts._replace(first=pc.coalesce(familiar, parts.first))


def _punctuation(
    rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws
) -> _Parts:
    """Write a name without punctuation, or with a space for a hyphen."""
    apart = pa.array(rng.random(len(parts.first)) < 0.5)
    spaced, tight = (
        _Parts(*(replaced(replaced(part, "-", blank), r"[.'\x{2019}]", "") for part in parts))
        for blank in (" ", "")
    )
    return _Parts(
        *(pc.if_else(apart, loose, tight_part) for loose, tight_part in zip(spaced, tight, strict=True))
    )


def _middle(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    """Drop the middle name; without one, add the initial of somebody else's of the culture."""
    permuted = rng.permutation(len(names.given))
    by_culture = np.argsort(names.culture, kind="stable")
    shuffled = permuted[np.argsort(names.culture[permuted], kind="stable")]
    donor = np.empty(len(permuted), dtype=np.int64)
    donor[by_culture] = shuffled
    added = joined(pc.utf8_slice_codeunits(table.given.take(pa.array(names.given[donor])), 0, 1), ".", by="")
    return parts._replace(middle=pc.if_else(parts.middle.is_null(), added, None))


def _respelt(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    first = parts.first
    for pattern, replacement in _RESPELLINGS:
        first = pc.if_else(pc.equal(first, parts.first), replaced(first, pattern, replacement, 1), first)
    return parts._replace(first=first)


def _initial(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    first = joined(pc.utf8_slice_codeunits(parts.first, 0, 1), ".", by="")
    middle = joined(pc.utf8_slice_codeunits(parts.middle, 0, 1), ".", by="")
    return parts._replace(first=first, middle=pc.if_else(parts.middle.is_null(), None, middle))


def _case(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    """Write a name without accents; if there are none, with the last name in capitals."""
    plain = _Parts(*(without_accents(part) for part in parts))
    same = pc.and_(pc.equal(plain.first, parts.first), pc.equal(plain.last, parts.last))
    return plain._replace(last=pc.if_else(same, pc.utf8_upper(plain.last), plain.last))


def _unchanged(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    return parts


def _married(rng: np.random.Generator, table: NameTable, names: Names, parts: _Parts, laws: Laws) -> _Parts:
    new_family = table.family.take(pa.array(draw_families(rng, table, names.culture, laws)))
    double = pa.array(rng.random(len(names.given)) < _DOUBLE)
    return parts._replace(last=pc.if_else(double, joined(parts.last, new_family, by="-"), new_family))


_Change = Callable[[np.random.Generator, NameTable, Names, _Parts, Laws], _Parts]
_CHANGES: dict[str, _Change] = {
    "nickname": _nickname,
    "punctuation": _punctuation,
    "middle name added or dropped": _middle,
    "first name respelt": _respelt,
    "first name to initial": _initial,
    "case and accents": _case,
    "order": _unchanged,
    "last name changed": _married,
    "initial and order": _initial,
}
_REVERSED = {"order", "initial and order"}


def _plain(parts: _Parts) -> pa.StringArray:
    return joined(parts.first, parts.middle, parts.last)


def _reversed(parts: _Parts) -> pa.StringArray:
    return joined(parts.last, joined(parts.first, parts.middle), by=", ")
