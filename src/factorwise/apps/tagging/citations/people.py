"""Names of people in the author, editor or translator field of a reference.

Lists come in many styles: "Lee, A., & Fox, B. C.", "A. Lee and B. C. Fox", "Lee A, Fox BC", "Lee, Ann; Fox,
Bea". Initials show which part is the given name. Without initials, the number of words decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_ROLES = re.compile(
    r"""(?<!\w)(?:in:?|by|edited\ by|translated\ by|trans(?:lated|lators?)?\.?|hrsg\.?|hg\.?
    |herausgegeben\ von|eds?\.?|editors?|\xe9ds?\.?|dir\.?|coords?\.?|org\.?|comp\.?)(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_ROLE_IN_BRACKETS = re.compile(rf"[(\[][\s,]*{_ROLES.pattern}[\s.,]*[)\]]", re.VERBOSE | re.IGNORECASE)
_LAST_ROLE = re.compile(rf"[\s,]+{_ROLES.pattern}[\s.,:]*$", re.VERBOSE | re.IGNORECASE)
_FIRST_ROLE = re.compile(rf"^[\s,]*(?:{_ROLES.pattern}[\s,:]+)+", re.VERBOSE | re.IGNORECASE)
_AND_OTHERS = re.compile(
    r"[\s,;]*(?:\bet\.? al\b|\band others\b|(?-i:\bu\. ?a\.)|\bet coll\b|\u2026|\.\.\.)\.?", re.IGNORECASE
)
_AND = re.compile(r"\s*(?:,\s*)?(?:&|\b(?:and|und|et|y|e|en|og|och|with)\b)\s+")
_CAPITALS = re.compile(r"(?:[^\W\d_][-\u2010 ]?){1,3}\.?|(?:[^\W\d_]\.[-\u2010 ]?)*[^\W\d_]\.?")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.[-\u2010 ]?)+")
_SUFFIX = re.compile(r"(?:Jr|Sr|II|III|IV)\.?")
_PARTICLES = frozenset(
    [
        "af",
        "al",
        "bin",
        "da",
        "de",
        "del",
        "della",
        "den",
        "der",
        "di",
        "do",
        "dos",
        "du",
        "el",
        "la",
        "le",
        "ten",
        "ter",
        "van",
        "von",
        "vom",
        "zu",
        "zum",
        "zur",
        "'t",
    ]
)


_INSTITUTION = re.compile(
    r"\b(?:organi[sz]ation|institut\w*|universit\w*|committee|department|association|society|minist\w+|group|agency"
    r"|collaboration|consortium|council|commission|bureau|office|foundation|center|centre|bank|inc|ltd|corp|gmbh)\b",
    re.IGNORECASE,
)


class Person(NamedTuple):
    """A person's name. The name of an institution is all in ``family``, and its ``given`` is empty."""

    family: str
    given: str = ""


class People(NamedTuple):
    """The names of a list, and whether it includes "et al."."""

    names: tuple[Person, ...]
    others: bool


def read_people(text: str) -> People:
    """Return the people of a list of names.

    >>> read_people("Lee, A., de la Cruz, B.C., & Fox, D. (Eds.),").names[1]
    Person(family='de la Cruz', given='B.C.')
    >>> [person.family for person in read_people("Ann Lee, Bea van Dyke and C. Fox").names]
    ['Lee', 'van Dyke', 'Fox']
    """
    text = _ROLE_IN_BRACKETS.sub(" ", text)
    text = _LAST_ROLE.sub("", _FIRST_ROLE.sub("", text))
    shorter, others = _AND_OTHERS.subn("", text)
    shorter = " ".join(shorter.split()).removesuffix(" .")
    names = [person for part in _divided(shorter) for person in _read_part(part)]
    return People(tuple(names), others > 0)


def _divided(text: str) -> Iterator[str]:
    """Split a list at semicolons and at "and", and yield the names."""
    parts = text.split(";") if ";" in text else [text]
    for part in parts:
        for name in _AND.split(part):
            cleaned = name.strip(' \t,;:/()[]"\u201c\u201d')
            if any(map(str.isalpha, cleaned)):
                yield cleaned


def _read_part(part: str) -> list[Person]:
    """Parse names in a part where commas separate either names or family and given names."""
    pieces = [piece for piece in (p.strip(" :()[]") for p in part.split(",")) if piece]
    pieces = [p for i, p in enumerate(pieces) if not (i and _SUFFIX.fullmatch(p))]
    if any(map(_is_initials, pieces[1:])):
        return _pairs(pieces)
    if len(pieces) > 1 and _is_family_name(pieces[0]):
        if len(pieces) == 2 or len(pieces[2].split()) > 1:  # "Lee, Ann" or "Lee, Ann, Bea Fox"
            first = Person(pieces[0], _without_period(pieces[1]))
            return [first, *map(_uninverted, pieces[2:])]
        if len(pieces) % 2 == 0 and all(map(_is_family_name, pieces)):
            return _pairs(pieces)
    return [_uninverted(piece) for piece in pieces]


def _pairs(pieces: Sequence[str]) -> list[Person]:
    """Parse "family, given" pairs; a name without a given name stands alone."""
    people: list[Person] = []
    position = 0
    while position < len(pieces):
        name = pieces[position]
        following = pieces[position + 1] if position + 1 < len(pieces) else ""
        uninverted = _is_initials(name.split()[0])
        if following and not uninverted and _can_be_given(following, pieces):
            people.append(Person(name.rstrip("."), _without_period(following)))
            position += 2
        else:
            people.append(_uninverted(name))
            position += 1
    return people


def _can_be_given(piece: str, pieces: Sequence[str]) -> bool:
    """Return whether a piece can be given names; it must have initials if any piece of the list has."""
    return any(map(_is_initials, piece.split())) or not any(map(_is_initials, pieces))


def _uninverted(name: str) -> Person:
    """Parse one name such as "A. B. Lee", "Lee AB" or "Ann van Lee"."""
    words = name.split()
    if len(words) == 1:
        return Person(name.rstrip(".") if not _is_initials(name) else name)
    if _ends_in_initials(name) and not _is_initials(words[0]):
        split = next(i for i in range(1, len(words)) if all(map(_is_initials, words[i:])))
        given = " ".join(words[split:])  # "Lee AB.": the period ends the list
        return Person(" ".join(words[:split]), given.rstrip(".") if "." not in given[:-1] else given)
    shouted = [word for word in words if len(word) > 2 and word.isupper()]
    if words[: len(shouted)] == shouted and 0 < len(shouted) < len(words):
        return Person(" ".join(shouted), _without_period(" ".join(words[len(shouted) :])))
    lower = [word for word in words if word[0].islower() and word.lower() not in _PARTICLES]
    if lower or len(words) > 5 or _INSTITUTION.search(name):
        return Person(name.rstrip("."))  # an institution
    split = len(words) - 1
    while split > 1 and words[split - 1].lower() in _PARTICLES:
        split -= 1
    return Person(" ".join(words[split:]).rstrip("."), " ".join(words[:split]))


def _is_family_name(piece: str) -> bool:
    """Return whether a name has one word, not counting particles."""
    words = [word for word in piece.split() if word.lower() not in _PARTICLES]
    return len(words) == 1 and not _is_initials(words[0])


def _without_period(name: str) -> str:
    """Remove the period that ends a list, unless the name ends in initials."""
    return name if _is_initials(name.split()[-1]) else name.rstrip(".")


def _is_initials(piece: str) -> bool:
    """Return whether a piece is initials, with or without periods: "A. B.", "AB", "J.-P."."""
    return bool(_CAPITALS.fullmatch(piece) if piece.isupper() else _DOTTED.fullmatch(piece))


def _ends_in_initials(name: str) -> bool:
    words = name.split()
    return len(words) > 1 and _is_initials(words[-1])
