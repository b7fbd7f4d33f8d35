"""Normal forms that are derived from others when a comparison needs them.

``grams``
    Character 3-grams inside the words of ``tokens``; a shorter word is one gram. Two spellings of a word
    share most of their grams, and so do ``VN-4100PC`` and ``VN4100PC``.
``codes``
    Words of ``text`` that contain a digit, and adjacent words of which one contains a digit, joined: ``vn
    4100pc`` gives ``vn4100pc``, however it was written.

The whole record is also compared as if it were a field: its ``tokens`` are the words of all fields.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.cut_rows import cut_rows
from factorwise.apps.resolution.normalize.forms import (
    Form,
    Lists,
    NormalField,
    NormalTable,
    Numbers,
    Strings,
    encoded,
    sets,
)
from factorwise.apps.resolution.normalize.stored_forms import StoredForms
from factorwise.apps.resolution.normalize.uniting import unite_forms
from factorwise.apps.resolution.normalize.words import (
    WordRows,
    cut_at_spaces,
    normal_text,
    replaced,
    set_of_words,
    text_words,
)
from factorwise.variables.sparse_rows import starts_of

RECORD = "whole record"  # field name under which the whole record is compared
STRETCH = 1 << 18  # records in one batch, when the words of whole records are collected
_ROWS = 1 << 17  # rows processed at a time within a batch
SIZE = 3  # characters in a gram
_BITS = 21  # bits of a Unicode character: three of them fit into 64 bits


#: Forms from which the words of a field are taken, by kind; ``tokens`` is used alone if a field has it.
_WORDS = {
    "name": ("tokens", "given", "last"),
    "text": ("tokens",),
    "category": ("text",),
    "identifier": ("code",),
    "list": ("items",),
    "number": ("number",),
    "date": ("date",),
    "address": ("tokens",),
    "email": ("email",),
    "phone": ("phone",),
    "location": ("tokens",),
    "vector": (),
    "scores": (),
    "source": (),
}


def has_form(normal: NormalTable, field: str, form: str) -> bool:
    """Return whether a field has a form, or one from which it can be derived."""
    if field == RECORD and field not in normal:
        return form in ("tokens", "grams")
    if form in normal[field]:
        return True
    return (form == "grams" and "tokens" in normal[field]) or (form == "codes" and "text" in normal[field])


def form_of(normal: NormalTable, field: str, form: str) -> Form:
    """Return a form of a field or of the whole record; a derived form is cached with the table."""
    if field in normal and form in normal[field]:
        return normal[field][form]
    if (field, form) not in normal.derived:
        normal.derived[field, form] = _derived(normal, field, form)
    return normal.derived[field, form]


def _derived(normal: NormalTable, field: str, form: str) -> Form:
    whole = field == RECORD and field not in normal
    if whole and form == "tokens":
        return words_of_records(normal)
    if form == "grams" and (whole or "tokens" in normal[field]):
        tokens = form_of(normal, field, "tokens")
        assert isinstance(tokens, Lists)
        return grams_of(tokens)
    if form == "codes":
        return codes_of(normal[field].strings("text"))
    return normal[field][form]  # raises an error that lists the existing forms


def grams_of_words(words: pa.Array) -> WordRows:
    """Return the grams of each word, in order."""
    lengths = np.asarray(pc.utf8_length(words), np.int64)
    text = "".join(words.to_pylist()).encode("utf-32-le") + bytes(4 * (SIZE - 1))
    characters = np.frombuffer(text, np.uint32).astype(np.uint64)
    counts = np.maximum(lengths - SIZE + 1, np.minimum(lengths, 1))
    ends, starts = np.cumsum(lengths), np.cumsum(lengths) - lengths
    offsets = starts_of(counts)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, counts)
    end = np.repeat(ends, counts)
    packed = np.zeros(len(place), np.uint64)
    for step in range(SIZE):
        inside = place + step < end
        packed = packed << np.uint64(_BITS) | np.where(inside, characters[place + step], np.uint64(0))
    keys, codes = np.unique(packed, return_inverse=True)
    return WordRows(offsets, codes.astype(np.int32), pa.array(_unpacked(keys), pa.string()))


def _unpacked(keys: NDArray[np.uint64]) -> list[str]:
    mask = np.uint64((1 << _BITS) - 1)
    shifts = [np.uint64(_BITS * (SIZE - 1 - step)) for step in range(SIZE)]
    characters = np.stack([(keys >> shift) & mask for shift in shifts], axis=1).astype(np.uint32)
    found: list[str] = np.ascontiguousarray(characters).view(f"<U{SIZE}").ravel().tolist()
    return found


def grams_of(tokens: Lists) -> Lists:
    """Return the set of grams of each row of words."""
    parts = grams_of_words(tokens.values)
    rows = replaced(WordRows(tokens.offsets, tokens.codes, tokens.values), parts)
    return sets(rows.offsets, rows.codes, rows.values)


def codes_of(text: Strings) -> Lists:
    """Return the words with a digit of each row, alone and joined with the word before or after."""
    rows = cut_at_spaces(text.values)
    has_digit = np.asarray(pc.match_substring_regex(rows.values, r"\d"), bool)
    word = rows.codes.astype(np.int64)
    follows = np.ones(len(word), bool)
    follows[rows.offsets[:-1][np.diff(rows.offsets) > 0]] = False
    alone = np.flatnonzero(has_digit[word])
    second = np.flatnonzero(follows & (has_digit[word] | np.append(False, has_digit[word[:-1]])))
    pairs, pair = np.unique(word[second - 1] * len(rows.values) + word[second], return_inverse=True)
    joined = pc.binary_join_element_wise(
        rows.values.take(pa.array(pairs // max(len(rows.values), 1))),
        rows.values.take(pa.array(pairs % max(len(rows.values), 1))),
        "",
    )
    values = encoded(pa.concat_arrays([rows.values, joined]))
    codes = np.concatenate([values.codes[word[alone]], values.codes[len(rows.values) + pair]])
    text_of = rows.text_of
    owner = np.concatenate([text_of[alone], text_of[second]])
    order = np.argsort(owner, kind="stable")
    offsets = starts_of(np.bincount(owner, minlength=len(text.values)))
    by_value = sets(offsets, codes[order], values.values)
    return by_value.rows(text.codes)


def words_of_records(normal: NormalTable) -> Lists:
    """Return the set of words of all fields of each record, computed for a stretch of records at a time."""
    if normal.n_rows <= STRETCH:
        return _words_of_rows(normal)
    stretches: MutableMapping[int, Form] = StoredForms(normal.columns) if normal.columns.in_files else {}
    for low in range(0, normal.n_rows, STRETCH):
        rows = np.arange(low, min(low + STRETCH, normal.n_rows))
        fields = {}
        for name, field in normal.items():
            forms = {form: cut_rows(field[form], rows).form for form in _WORDS[field.kind] if form in field}
            fields[name] = NormalField(name, field.kind, forms)
        stretches[low] = _words_of_rows(NormalTable(len(rows), fields))
        normal.columns.rest()
    united = unite_forms([stretches[low] for low in list(stretches)], normal.columns)
    stretches.clear()
    assert isinstance(united, Lists)
    return united


def _words_of_rows(normal: NormalTable) -> Lists:
    parts = [words for field in normal.values() for words in _words_of(field)]
    if not parts:
        return Lists(np.zeros(normal.n_rows + 1, np.int64), np.zeros(0, np.int32), pa.array([], pa.string()))
    values = encoded(pa.concat_arrays([part.values.cast(pa.string()) for part in parts]))
    starts = starts_of(np.array([len(part.values) for part in parts], np.int64))[:-1].tolist()
    width = max(len(values.values), 1)
    lengths, codes = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for low in range(0, normal.n_rows, _ROWS):
        high = min(low + _ROWS, normal.n_rows)
        keys = []
        for start, part in zip(starts, parts, strict=True):
            offsets = part.offsets[low : high + 1]
            row = np.repeat(np.arange(high - low), np.diff(offsets))
            keys.append(row * width + values.codes[start + part.codes[offsets[0] : offsets[-1]]])
        key = np.sort(np.concatenate(keys))
        key = key[np.append(True, key[1:] != key[:-1])] if len(key) else key
        row, code = np.divmod(key, width)
        lengths.append(np.bincount(row, minlength=high - low))
        codes.append(code.astype(np.int32))
    return Lists(starts_of(np.concatenate(lengths)), np.concatenate(codes), values.values)


def _words_of(field: NormalField) -> Iterator[Lists]:
    """Yield the sets of words of a field, one for each of its forms that holds words."""
    for name in _WORDS[field.kind]:
        if name not in field:
            continue
        form = field[name]
        if name == "tokens":
            assert isinstance(form, Lists)
            yield form
            return
        if isinstance(form, Numbers):
            form = _written(form)
        assert isinstance(form, Strings | Lists)  # a vector has no words
        words = text_words(form.values)
        if isinstance(form, Strings):
            yield set_of_words(words, normal_text(words)).rows(form.codes)
        else:
            rows = replaced(WordRows(form.offsets, form.codes, form.values), words)
            yield sets(rows.offsets, rows.codes, rows.values)


def _written(form: Numbers) -> Strings:
    """Format numbers as text."""
    different, codes = np.unique(form.values, return_inverse=True)
    texts = [None if np.isnan(value) else f"{value:.10g}" for value in different.tolist()]
    return encoded(pa.array(texts, pa.string())).rows(codes)
