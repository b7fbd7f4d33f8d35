"""Split column headers into words, and list the words that mark parts of persons' names."""

from __future__ import annotations

import re
import unicodedata

from factorwise.apps.resolution.normalize.word_sets import word_set

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")

FIRST_NAME_WORDS = word_set(
    "first given fname firstname forename forenames prenom vorname voornaam fornavn fornamn imie имя 名"
)
LAST_NAME_WORDS = word_set(
    "last surname lname lastname family familyname nachname nom apellido apellidos cognome sobrenome"
    " achternaam efternavn efternamn nazwisko фамилия 姓"
)


def header_words(name: str) -> frozenset[str]:
    """Return the words of a column's header in lower case without accents, in any script."""
    parts = unicodedata.normalize("NFKD", name)
    plain = unicodedata.normalize("NFC", "".join(one for one in parts if not unicodedata.combining(one)))
    return frozenset(word.casefold() for word in _WORD.findall(plain))
