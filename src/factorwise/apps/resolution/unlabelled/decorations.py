"""Remove what one source adds to identities: a year in parentheses, or a legal form after a name."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import Strings, encoded
from factorwise.apps.resolution.normalize.word_sets import word_set
from factorwise.types import Ints

MOST, HARDLY = 0.8, 0.1  # least share of decorated values in one source, and largest share in another
_FREQUENT = 0.02  # least share of a source's values that end in a word, for it to be a decoration
_WORDS = 3  # most words of a decoration
_VALUES = 30  # least number of values of a source
_FIRMS = 0.01  # least share of values with a legal form, for legal forms to be removed
_YEAR = re.compile(r"(18|19|20)\d\d")
LEGAL_FORMS = word_set(
    "inc incorporated corp corporation co company ltd limited llc llp lp plc gmbh ag kg kgaa sa sas sarl"
    " srl spa bv nv ab oy oyj as asa kk pty pte ltda kabushiki kaisha"
)


def plain_texts(texts: Strings, sources: Ints | None = None) -> Strings:
    """Return the texts without decorations: affixes that only one source adds, and legal forms of firms."""
    values = [value or "" for value in texts.values.to_pylist()]
    by_row = texts.codes.astype(np.int64)
    if sources is not None and sources.max(initial=0) > 0:
        known = by_row >= 0
        pairs, place = np.unique(sources[known] * np.int64(len(values)) + by_row[known], return_inverse=True)
        by_row[known] = place
        values, where = [values[k] for k in pairs % len(values)], pairs // len(values)
        for _ in range(_WORDS):
            values = _without_source_endings(values, where)
        backwards = [" ".join(reversed(value.split())) for value in values]
        for _ in range(_WORDS):
            backwards = _without_source_endings(backwards, where)
        values = [" ".join(reversed(value.split())) for value in backwards]
    plain = [_without_legal_form(value) for value in values]
    if np.mean([one != two for one, two in zip(plain, values, strict=True)] or [False]) >= _FIRMS:
        values = plain
    return encoded(pa.array([value or None for value in values], pa.string())).rows(by_row)


def _without_source_endings(texts: list[str], sources: Ints) -> list[str]:
    """Remove the frequent last words of a source if nearly all its texts end in one and others lack them.

    A word that another source has anywhere, such as a brand, is not a decoration but a part of the identity.
    """
    words = [["0000" if _YEAR.fullmatch(word) else word for word in text.split(" ")] for text in texts]
    endings = _frequent_endings(words, sources)
    rows_of = {
        int(source): rows
        for source in np.unique(sources)
        if len(rows := np.flatnonzero(sources == source)) >= _VALUES
    }
    cut = np.zeros(len(texts), dtype=bool)
    for source, rows in rows_of.items():
        if endings[rows].mean() < MOST:
            continue
        affixes = {words[row][-1] for row in rows[endings[rows]].tolist()}
        shares = [
            np.mean([not affixes.isdisjoint(words[row]) for row in other.tolist()])
            for another, other in rows_of.items()
            if another != source
        ]
        if shares and min(shares) <= HARDLY:
            cut[rows] = endings[rows]
    return [
        text.rpartition(" ")[0] or text if is_cut else text
        for text, is_cut in zip(texts, cut.tolist(), strict=True)
    ]


def _frequent_endings(words: list[list[str]], sources: Ints) -> NDArray[np.bool_]:
    """Return which texts end in a frequent last word of their source."""
    _, word = np.unique([text[-1] for text in words], return_inverse=True)
    _, key, count = np.unique(sources * np.int64(len(words)) + word, return_inverse=True, return_counts=True)
    size = np.bincount(sources)
    return np.asarray(count[key] >= np.maximum(_FREQUENT * size[sources], 3))


def _without_legal_form(text: str) -> str:
    """Remove the legal forms at the end of a text, including spelled-out ones such as S.p.A."""
    words = text.split()
    while len(words) > 1:
        letters = next(k for k, word in enumerate(reversed([" ", *words])) if len(word) != 1 or word == " ")
        form = next(
            (n for n in range(min(letters, len(words) - 1), 1, -1) if "".join(words[-n:]) in LEGAL_FORMS), 0
        )
        if not form and words[-1] not in LEGAL_FORMS:
            break
        del words[-(form or 1) :]
    return " ".join(words)
