"""Keys of blocking rules: items that share a key of a rule are candidates.

A key is computed once for each *distinct* value of a normal form and then looked up for the rows. An item
without a value for some part has no key. Keys of bands depend only on the text; other keys depend on the
order of the values, so that they are comparable only within one table, unless they are computed from texts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.nearest import RowKeys, neighbor_keys, sketch_keys
from factorwise.apps.resolution.blocking.rules import Part, Rule
from factorwise.apps.resolution.comparisons.derived import form_of
from factorwise.apps.resolution.normalize.forms import (
    Form,
    Lists,
    NormalTable,
    Numbers,
    Strings,
    encoded,
    ranges,
)
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.normalize.phonetics import sounds
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.errors import InvalidArgumentError
from factorwise.io.text_hashes import text_hashes
from factorwise.rng import split_mix_words
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import starts_of

Keys = NDArray[np.uint64]
_F = TypeVar("_F", Strings, Numbers, Lists, Vectors, PairValues)

_LONGEST = 2_000  # bytes of a text from which shingles are taken
_BYTES = 1 << 24  # bytes of texts that are shingled at once
_ROWS = 1 << 18  # rows whose keys are combined at once
_PLACE = np.uint64(16)  # bits of the index of a pair
_PAIRED = 8  # number of rarest items of a row that are combined in pairs


class KeyRows(NamedTuple):
    """Keys of items.

    item : int32[rows]
        Ascending; an item with several keys occurs several times.
    key : uint64[rows]
    """

    item: NDArray[np.int32]
    key: Keys


class _PartKeys(NamedTuple):
    """Keys of one part; those of item i start at ``offsets[i]``. Without offsets a present item has one."""

    key: Keys
    present: Bools
    offsets: NDArray[np.int64] | None = None


class KeyMaker:
    """Computes the keys of rules for one table; the keys of each part are computed once.

    rows
        Rows for which keys are computed, renumbered from 0; None for all. Item frequencies are still those of
        the whole table.
    across : int[rows of the table]
        Source of each row; nearest neighbors of vectors are then searched only in other sources. None for
        all.
    by_text
        Compute keys from the texts, so that keys of several tables are comparable. This takes longer, and
        list items of a single record are keys too, because another table may contain them.
    """

    def __init__(
        self,
        normal: NormalTable,
        rows: Ints | None = None,
        *,
        across: Ints | None = None,
        by_text: bool = False,
    ) -> None:
        self.normal, self.across = normal, across
        self.rows = rows
        self.by_text = by_text
        self.n_rows = normal.n_rows if rows is None else len(rows)
        self._parts: dict[Part, _PartKeys] = {}

    def keys(self, rule: Rule) -> KeyRows:
        """Return the keys of all items under a rule."""
        counts = Counter(rule.parts)
        key = np.zeros(self.n_rows, np.uint64)
        for part in counts:
            found = self._of(part)
            if found.offsets is None:
                key = combined(key, found.key)
        item = np.flatnonzero(self.present(rule)).astype(np.int32)
        rows = KeyRows(item, key[item])
        for part, count in counts.items():
            if self._of(part).offsets is not None:
                rows = _crossed(rows, self._of(part) if count == 1 else self._pairs(part))
        return rows

    def present(self, rule: Rule) -> Bools:
        """Return which items have a value for every part of a rule."""
        present = np.ones(self.n_rows, bool)
        for part in rule.parts:
            present &= self._of(part).present
        return present

    def _of(self, part: Part) -> _PartKeys:
        if part not in self._parts:
            form = form_of(self.normal, part.field, part.form)
            if part.cut == "nearest":
                self._parts[part] = self._neighbors(_as(form, Vectors, part), part)
                return self._parts[part]
            if part.cut == "scored":
                self._parts[part] = self._scored(_as(form, PairValues, part))
                return self._parts[part]
            rows = form if self.rows is None else form.rows(self.rows)
            if part.cut == "items":
                counts = _as(form, Lists, part).frequencies().counts
                self._parts[part] = _item_keys(_as(rows, Lists, part), counts, part, self.by_text)
            else:
                self._parts[part] = _part_keys(rows, part, self.by_text)
        return self._parts[part]

    def _neighbors(self, form: Vectors, part: Part) -> _PartKeys:
        """Return the keys of nearest neighbors of vectors; the whole table is searched once."""
        if self.by_text:
            found = sketch_keys(form)
        else:
            sources = b"" if self.across is None else np.asarray(self.across).tobytes()
            asked = part.field, int(part.size), sources
            if asked not in self.normal.neighbors:
                self.normal.neighbors[asked] = neighbor_keys(form, int(part.size), self.across)
            found = self.normal.neighbors[asked]
        found = found if self.rows is None else found.rows(self.rows)
        return _PartKeys(found.key, np.diff(found.offsets) > 0, found.offsets)

    def _scored(self, form: PairValues) -> _PartKeys:
        """Return a key for each scored pair; none with ``by_text``, as pairs are specific to the table."""
        count = 0 if self.by_text else len(form.first)
        one, two = form.first[:count], form.second[:count]
        key = split_mix_words((one * np.int64(form.n_rows) + two).astype(np.uint64))
        ends = np.concatenate([one, two])
        order = np.argsort(ends, kind="stable")
        found = RowKeys(np.tile(key, 2)[order], starts_of(np.bincount(ends, minlength=form.n_rows)))
        found = found if self.rows is None else found.rows(self.rows)
        return _PartKeys(found.key, np.diff(found.offsets) > 0, found.offsets)

    def _pairs(self, part: Part) -> _PartKeys:
        """Return the combinations of two distinct keys of an item, among its rarest ones."""
        return _paired(self._of(replace(part, size=min(part.size or _PAIRED, _PAIRED))))


def combined(key: Keys, other: Keys) -> Keys:
    """Return the keys of a conjunction; they depend on the order of its parts."""
    return split_mix_words(key * np.uint64(3) + other)


def different(words: Keys) -> Keys:
    """Return the distinct words, ascending; this is much faster for them than `numpy.unique`."""
    ordered = np.sort(words)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def share_key(rows: KeyRows, pairs: NDArray[np.int64], n_items: int) -> Bools:
    """Return which pairs have a key in common."""
    offsets = np.searchsorted(rows.item, np.arange(n_items + 1))
    lengths = np.diff(offsets)
    holds = np.zeros(len(pairs), bool)
    if lengths.max(initial=0) <= 1:
        both = (lengths[pairs] == 1).all(axis=1)
        places = offsets[pairs[both]]
        holds[both] = rows.key[places[:, 0]] == rows.key[places[:, 1]]
        return holds
    found = []
    for items in (pairs[:, 0], pairs[:, 1]):
        keys = rows.key[ranges(offsets[items], lengths[items])]
        pair = np.repeat(np.arange(len(pairs), dtype=np.uint64), lengths[items])
        found.append(different(combined(pair, keys) << _PLACE | pair))
    words = np.sort(np.concatenate(found))
    twice = words[1:][words[1:] == words[:-1]]
    holds[(twice & ((np.uint64(1) << _PLACE) - np.uint64(1))).astype(np.int64)] = True
    return holds


def rarest(
    counts: Ints, codes: Ints, offsets: NDArray[np.int64], most: int, size: int, least: int = 2
) -> Bools:
    """Return which list items ``least`` to ``most`` records have and are among a row's ``size`` rarest."""
    count = counts[codes]
    kept = (count >= least) & ((count <= most) if most else True)
    if not size or np.diff(offsets).max(initial=0) <= size:
        return np.asarray(kept)
    row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    places = np.flatnonzero(kept)
    order = places[np.lexsort((codes[places], count[places], row[places]))]
    first = np.searchsorted(row[order], row[order], side="left")
    chosen = np.zeros(len(codes), bool)
    chosen[order[np.arange(len(order)) - first < size]] = True
    return chosen


def _part_keys(form: Form, part: Part, by_text: bool) -> _PartKeys:
    if part.cut == "rounded":
        return _rounded_keys(_as(form, Numbers, part), part.size)
    if part.cut == "whole" and isinstance(form, Numbers):
        values = np.where(form.missing, 0.0, form.values) + 0.0  # no negative zero
        return _PartKeys(split_mix_words(values.view(np.uint64)), ~form.missing)
    strings = _as(form, Strings, part)
    if part.cut == "bands":
        return _band_keys(strings, part)
    if part.cut == "prefix":
        strings = _prefixes(strings, int(part.size))
    elif part.cut == "sound":
        strings = encoded(sounds(strings.values)).rows(strings.codes)
    if by_text:
        key = np.append(text_hashes(strings.values), np.uint64(0))[strings.codes]
        return _PartKeys(key, ~strings.missing)
    return _PartKeys(split_mix_words(strings.codes.astype(np.uint64)), ~strings.missing)


def _as(form: Form, wanted: type[_F], part: Part) -> _F:
    if not isinstance(form, wanted):
        raise InvalidArgumentError(
            f"a blocking rule cuts form {part.form!r} of field {part.field!r} by {part.cut!r}, which is for"
            f" {wanted.__name__}, but the form is {type(form).__name__}."
            " Change the kind of the field or the rule."
        )
    return form


def _prefixes(strings: Strings, size: int) -> Strings:
    cut = pc.utf8_slice_codeunits(strings.values, 0, size).dictionary_encode()
    return Strings(np.asarray(cut.indices, np.int32), cut.dictionary).rows(strings.codes)


def _item_keys(lists: Lists, counts: Ints, part: Part, by_text: bool) -> _PartKeys:
    least = 1 if by_text else 2
    kept = rarest(counts, lists.codes, lists.offsets, part.most, int(part.size), least)
    offsets = starts_of(kept.view(np.int8))[lists.offsets]
    if by_text:
        key = text_hashes(lists.values)
    else:
        key = split_mix_words(np.arange(len(lists.values), dtype=np.uint64))
    return _PartKeys(key[lists.codes[kept]], np.diff(offsets) > 0, offsets)


def _rounded_keys(numbers: Numbers, unit: float) -> _PartKeys:
    present = ~numbers.missing & np.isfinite(numbers.values)
    scaled = numbers.values[present] / unit
    both = np.stack([np.floor(scaled) * 2, np.floor(scaled + 0.5) * 2 + 1], axis=1).ravel() + 0.0
    return _PartKeys(split_mix_words(both.view(np.uint64)), present, starts_of(2 * present))


def _crossed(rows: KeyRows, found: _PartKeys) -> KeyRows:
    """Combine each row with every key that its item has in another part."""
    assert found.offsets is not None
    items, keys = [np.zeros(0, np.int32)], [np.zeros(0, np.uint64)]
    for low in range(0, len(rows.item), _ROWS):
        item, key = rows.item[low : low + _ROWS], rows.key[low : low + _ROWS]
        starts = found.offsets[item]
        lengths = found.offsets[item + 1] - starts
        items.append(np.repeat(item, lengths))
        keys.append(combined(np.repeat(key, lengths), found.key[ranges(starts, lengths)]))
    return KeyRows(np.concatenate(items), np.concatenate(keys))


def _paired(found: _PartKeys) -> _PartKeys:
    assert found.offsets is not None
    stops = np.repeat(found.offsets[1:], np.diff(found.offsets))
    place = np.arange(len(found.key))
    after = stops - place - 1  # each key is combined with the following keys of its row
    left, right = found.key[np.repeat(place, after)], found.key[ranges(place + 1, after)]
    offsets = starts_of(after)[found.offsets]
    key = combined(np.minimum(left, right), np.maximum(left, right))
    return _PartKeys(key, np.diff(offsets) > 0, offsets)


def _band_keys(strings: Strings, part: Part) -> _PartKeys:
    """Return the band keys of the rows, which are computed once for each distinct text."""
    of_value = band_hashes(strings.values, int(part.size), part.bands, part.rows)
    present = ~strings.missing
    return _PartKeys(
        of_value[strings.codes[present]].ravel(), present, starts_of(present.astype(np.int64) * part.bands)
    )


def band_hashes(values: pa.Array, size: int, bands: int, rows: int) -> Keys:
    """Return MinHash bands as uint64[values, bands]; similar texts probably share at least one of them.

    The probability that two texts share a given band is the Jaccard similarity of their sets of shingles
    (substrings of ``size`` bytes; a shorter text is one shingle) to the power of ``rows``.
    """
    found = np.zeros((len(values), bands), np.uint64)
    texts = pc.binary_slice(values.cast(pa.binary()), 0, _LONGEST)
    step = max(1, int(_BYTES * len(texts) / max(texts.nbytes, 1)))
    for start in range(0, len(texts), step):
        shingles, starts = _shingles(texts.slice(start, step), size)
        for band in range(bands):
            key = np.full(len(starts), band, np.uint64)
            for row in range(rows):
                seed = split_mix_words(np.array([band * rows + row], np.uint64)) | np.uint64(1)
                # Multiplying by an odd number permutes the hashes, so the minimum selects a random shingle.
                key = combined(key, np.minimum.reduceat(shingles * seed, starts))
            found[start : start + step, band] = key
    return found


def _shingles(texts: pa.Array, size: int) -> tuple[Keys, NDArray[np.int64]]:
    """Return the hashes of the shingles, text by text, and the index of the first one of each text."""
    flat = pa.concat_arrays([texts])
    buffers = flat.buffers()
    bounds = np.frombuffer(buffers[1], np.int32, count=len(flat) + 1, offset=4 * flat.offset)
    data = buffers[2] if buffers[2] is not None else b""
    letters = np.append(np.frombuffer(data, np.uint8), np.zeros(size, np.uint8)).astype(np.uint64)
    lengths = np.diff(bounds).astype(np.int64)
    counts = np.maximum(lengths - size + 1, 1)
    places = ranges(bounds[:-1].astype(np.int64), counts)
    last = np.repeat(bounds[1:].astype(np.int64), counts)
    key = np.zeros(len(places), np.uint64)
    for shift in range(size):
        at = places + shift
        key = key * np.uint64(257) + np.where(at < last, letters[at], 0)
    return split_mix_words(key), starts_of(counts)[:-1]
