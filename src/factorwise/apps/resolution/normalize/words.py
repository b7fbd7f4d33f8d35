"""Split texts into normalized words.

Texts are split at white space in Arrow. Only the *distinct* pieces, which are few even in millions of texts,
are processed in Python: case is folded, accents and apostrophes are removed, other punctuation splits.

>>> normal_words("Müller-Lüdenscheidt's")
('muller', 'ludenscheidts')
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import (
    MISSING,
    Codes,
    Lists,
    Strings,
    encoded,
    ranges,
    sets,
    united,
)
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import starts_of

MISSING_TEXTS = frozenset({"na", "n a", "nan", "null", "none", "nil", "unknown", "not available", "missing"})

_NO_APOSTROPHES = str.maketrans(dict.fromkeys("'`\u2019\u2018\u00b4\u02bc\u02b9"))
_ASCII = str.maketrans(
    {chr(code): " " for code in range(128) if not chr(code).isalnum()}
    | dict(zip(string.ascii_uppercase, string.ascii_lowercase, strict=True))
    | dict.fromkeys("'`")
)
# Letters that Unicode does not decompose into a plain letter and an accent.
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "\u0131": "i", "ħ": "h"}
)
_TEXTS = 1 << 17  # texts that are processed at once
_BYTES = 1 << 28  # most bytes of these texts
_T = TypeVar("_T")


class WordRows(NamedTuple):
    """Words of texts, in their order.

    offsets : int64[texts + 1]
        The words of text ``t`` are ``offsets[t]:offsets[t + 1]``.
    codes : int32[words]
        Index of each word in ``values``.
    values : Arrow strings
        The distinct words.
    """

    offsets: NDArray[np.int64]
    codes: Codes
    values: pa.Array

    @property
    def text_of(self) -> NDArray[np.int64]:
        """Index of the text of each word."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def normal_words(piece: str) -> tuple[str, ...]:
    """Return the normalized words of a piece of text."""
    if piece.isascii():
        if piece.isalnum():
            return (piece.lower(),)
        return tuple(piece.translate(_ASCII).split())
    return tuple(_folded(piece).split())


def cut_at_spaces(texts: pa.Array) -> WordRows:
    """Split texts at white space; a text of white space alone has no words."""
    lengths, pieces = [], []
    for part in _parts(texts):
        # Spaces beyond ASCII are handled by the function that normalizes the pieces.
        trimmed = pc.ascii_trim_whitespace(part)
        some = pc.greater(pc.binary_length(trimmed), 0).fill_null(False)
        lists = pc.ascii_split_whitespace(trimmed.filter(some))
        length = np.zeros(len(part), np.int64)
        length[np.asarray(some)] = np.asarray(pc.list_value_length(lists))
        lengths.append(length)
        pieces.append(lists.flatten().dictionary_encode())
    coded = united(pieces, texts.type)
    offsets = starts_of(np.concatenate([np.zeros(0, np.int64), *lengths]))
    return WordRows(offsets, coded.codes, coded.values)


def replaced(rows: WordRows, parts: WordRows) -> WordRows:
    """Replace each word by the words that ``parts`` has for its code."""
    lengths = np.diff(parts.offsets)
    if (lengths == 1).all():
        return WordRows(rows.offsets, parts.codes[rows.codes], parts.values)
    n_texts = len(rows.offsets) - 1
    found, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    for start in range(0, n_texts, _TEXTS):
        offsets = rows.offsets[start : min(start + _TEXTS, n_texts) + 1]
        words = rows.codes[offsets[0] : offsets[-1]]
        found.append(parts.codes[ranges(parts.offsets[words], lengths[words])])
        counts.append(np.diff(starts_of(lengths[words])[offsets - offsets[0]]))
    return WordRows(starts_of(np.concatenate(counts)), np.concatenate(found), parts.values)


def text_words(texts: pa.Array) -> WordRows:
    """Split texts into normalized words."""
    rows = cut_at_spaces(texts)
    parts = per_value(rows.values, normal_words)
    words = encoded(pa.array([word for part in parts for word in part], pa.string()))
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    return replaced(rows, WordRows(starts_of(lengths), words.codes, words.values))


def per_value(values: pa.Array, function: Callable[[str], _T]) -> list[_T]:
    """Apply a Python function to each of a few distinct values."""
    return [function(value) for value in values.to_pylist()]


def joined(rows: WordRows) -> Strings:
    """Return the words of each text, joined by spaces; missing if it has none."""
    parts = []
    n_texts = len(rows.offsets) - 1
    for start in range(0, n_texts, _TEXTS):
        offsets = rows.offsets[start : min(start + _TEXTS, n_texts) + 1]
        words = rows.values.take(pa.array(rows.codes[offsets[0] : offsets[-1]]))
        lists = pa.LargeListArray.from_arrays(pa.array(offsets - offsets[0]), words)
        parts.append(pc.binary_join(lists, " "))
    coded = encoded(pa.chunked_array(parts, rows.values.type))
    return without(coded, {""})


def selected(rows: WordRows, kept: Bools) -> WordRows:
    """Return the words for which ``kept`` is true, text by text."""
    before = starts_of(kept.view(np.int8))
    return WordRows(before[rows.offsets], rows.codes[kept], rows.values)


def ranges_of(rows: WordRows, starts: Ints, stops: Ints) -> WordRows:
    """Return the words ``starts[t]:stops[t]`` for each text t, as indices into all words."""
    lengths = np.maximum(np.asarray(stops) - starts, 0)
    return WordRows(starts_of(lengths), rows.codes[ranges(starts, lengths)], rows.values)


def without(strings: Strings, unwanted: Iterable[str]) -> Strings:
    """Return the strings with unwanted ones set to missing and removed from the values."""
    found = pc.is_in(strings.values, value_set=pa.array(sorted(unwanted), strings.values.type))
    drop = np.asarray(found)
    if not drop.any():
        return strings
    renumbered = np.where(drop, MISSING, np.cumsum(~drop) - 1).astype(np.int32)
    codes = np.append(renumbered, np.int32(MISSING))[strings.codes]
    return Strings(codes, strings.values.filter(pa.array(~drop)))


def compact(strings: Strings) -> Strings:
    """Return the same rows with only the values that occur in them."""
    return encoded(strings.to_arrow())


def mapped(strings: Strings, function: Callable[[str], str | None]) -> Strings:
    """Apply a Python function to the distinct values; strings for which it returns None become missing."""
    images = encoded(pa.array(per_value(strings.values, function), pa.string()))
    return images.rows(strings.codes)


def normal_text(rows: WordRows) -> Strings:
    """Return the words of each text, joined by spaces; missing for words such as "unknown"."""
    return without(joined(rows), MISSING_TEXTS)


def set_of_words(rows: WordRows, whole: Strings) -> Lists:
    """Return the set of words of each text; it is empty if the ``whole`` text is missing."""
    codes = np.where(np.repeat(whole.codes, np.diff(rows.offsets)) < 0, MISSING, rows.codes)
    return sets(rows.offsets, codes, rows.values)


def text_forms(column: Strings) -> dict[str, Strings | Lists]:
    """Return the forms ``text`` and ``tokens`` of encoded texts."""
    rows = text_words(column.values)
    whole = normal_text(rows)
    return {"text": whole.rows(column.codes), "tokens": set_of_words(rows, whole).rows(column.codes)}


def _folded(piece: str) -> str:
    """Fold case, remove accents and replace punctuation by spaces, in any script."""
    # Decomposition may produce capitals, and case folding may produce letters with accents.
    small = unicodedata.normalize("NFKD", piece.translate(_NO_APOSTROPHES)).casefold()
    apart = unicodedata.normalize("NFKD", small).translate(_PLAIN_LETTERS)
    plain = unicodedata.normalize("NFC", "".join(c for c in apart if not "\u0300" <= c <= "\u036f"))
    # Vowel signs of Indic scripts are marks rather than letters, but belong to their word.
    return "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in plain)


def _parts(texts: pa.Array) -> Iterable[pa.Array]:
    """Split an array into chunks whose words fit in memory."""
    size = max(1, min(_TEXTS, int(_BYTES * len(texts) / max(texts.nbytes, 1))))
    return [texts.slice(start, size) for start in range(0, len(texts), size)]
