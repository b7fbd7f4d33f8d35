"""Normal forms of fields with several values: Arrow lists, or texts with separators."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import (
    Lists,
    Strings,
    coded_if_repeated,
    encoded,
    sets,
    united,
)
from factorwise.apps.resolution.normalize.names import name_keys
from factorwise.apps.resolution.normalize.words import normal_text, text_words
from factorwise.variables.sparse_rows import starts_of

_TEXTS = 1 << 17  # texts that are split at once
_KEPT_COMMA = "\x1f"  # stands for a comma between last and first name while the other commas split
# Substitutions, applied in turn, for a list of names with commas both inside and between them. Bars are
# doubled so that each of two neighboring names can match one.
_COMMA_RULES = [
    (r"(?i)[\s,;|]*(?:\s(?:and|et|und)\s|&|;|\|)[\s,;|]*", "||"),
    # initials between two separators belong to the preceding name
    (r",\s*((?:\pL\.[\s-]*)+|\pL(?:\s+\pL)*\s*)(,|\||$)", _KEPT_COMMA + r"\1|\2"),
    # a word, a comma and a word, with or without initials, are a last and a first name
    (
        r"(^|\|)\s*([\pL'\x{2019}-]+)\s*,\s*([\pL'\x{2019}-]+\.?(?:\s+\pL\.?)*)\s*(\||$)",
        r"\1\2" + _KEPT_COMMA + r"\3\4",
    ),
    (r"[,|]+", "|"),
    (_KEPT_COMMA, ", "),
]


class Items(NamedTuple):
    """Items of the rows of a column.

    offsets : int64[rows + 1]
        The items of row ``r`` are ``offsets[r]:offsets[r + 1]``.
    strings
        The items of all rows.
    """

    offsets: NDArray[np.int64]
    strings: Strings


def is_list(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is a list type."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def list_forms(column: pa.ChunkedArray, separator: str, items: str) -> dict[str, Lists]:
    """Return the forms of a column of lists: ``items``, and for names ``keys`` (last name and initial)."""
    if is_list(column.type):
        return _forms(items_of_lists(column), items)
    texts = coded_if_repeated(column)
    if separator == "," and items == "name":
        cut, separator = names_apart(texts.values), "|"
    else:
        cut = texts.values
    by_text = _forms(_cut(cut, separator), items)
    return {name: form.rows(texts.codes) for name, form in by_text.items()}


def items_of_lists(column: pa.ChunkedArray) -> Items:
    """Return the items of Arrow lists."""
    lengths = np.asarray(pc.list_value_length(column).fill_null(0))
    flat = pc.list_flatten(column)
    return Items(starts_of(lengths), encoded(flat))


def _cut(texts: pa.Array, separator: str) -> Items:
    """Split texts into items, in chunks; a null text has no items."""
    lengths, items = [np.zeros(0, np.int64)], []
    for start in range(0, len(texts), _TEXTS):
        lists = pc.split_pattern(texts.slice(start, _TEXTS), separator)
        lengths.append(np.asarray(pc.list_value_length(lists).fill_null(0), np.int64))
        items.append(lists.flatten().dictionary_encode())
    return Items(starts_of(np.concatenate(lengths)), united(items, texts.type))


def names_apart(texts: pa.Array) -> pa.Array:
    """Put bars between the names of texts such as ``Auer, P., N. Cesa-Bianchi and Schapire, Robert E.``."""
    for pattern, replacement in _COMMA_RULES:
        texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def _forms(items: Items, kind: str) -> dict[str, Lists]:
    if kind == "name":
        full, key = name_keys(items.strings.values)
        found = {"items": full, "keys": key}
    else:
        found = {"items": normal_text(text_words(items.strings.values))}
    return {
        name: sets(items.offsets, form.rows(items.strings.codes).codes, form.values)
        for name, form in found.items()
    }
