"""Columns in normal form: coded strings, numbers, lists of coded strings, and vectors.

Each distinct string is stored once in ``values``, in order of first appearance. Rows contain its code, or -1
if it is missing. Kernels read the codes; `to_arrow` passes the columns to DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import IN_MEMORY, Columns, release
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import starts_of

MISSING = -1  # code of a missing value
LARGEST = 2_000_000_000  # bytes of strings with 32-bit offsets, a little below their limit

_ROWS = 1 << 17  # rows that are processed at once if temporary arrays are large

_COUNTED = 1 << 23  # codes that are counted at once

Codes: TypeAlias = NDArray[np.int32]


class Frequencies(NamedTuple):
    """Numbers of rows of a table with each value, and with any value."""

    counts: NDArray[np.int64]
    present: int


V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """A string per row.

    codes : int32[rows]
        Index of each row's value in ``values``; -1 where it is missing.
    values : Arrow strings
        The distinct strings.
    whole
        Frequencies in the whole table, if these are only some of its rows; else None.
    """

    codes: Codes
    values: pa.Array
    whole: Frequencies | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def frequencies(self) -> Frequencies:
        """Return the number of rows of the table with each value."""
        if self.whole is not None:
            return self.whole
        counts = _counts(self.codes, len(self.values))
        return Frequencies(counts, int(counts.sum()))

    @property
    def missing(self) -> Bools:
        """Which rows have no string."""
        return self.codes < 0

    def rows(self, codes: Ints) -> Strings:
        """Return the rows with the given indices; index -1 yields a missing row."""
        if _is_every(codes, len(self)):
            return self
        return Strings(np.append(self.codes, np.int32(MISSING))[codes], self.values, self.whole)

    def to_arrow(self) -> pa.Array:
        """Return the rows as a dictionary-encoded Arrow array."""
        return pa.DictionaryArray.from_arrays(pa.array(self.codes, mask=self.missing), self.values)

    def to_list(self) -> list[str | None]:
        """Return the rows as Python strings."""
        found: list[str | None] = self.to_arrow().to_pylist()
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A number per row.

    values : float64[rows]
        The numbers; NaN where they are missing.
    """

    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def missing(self) -> Bools:
        """Which rows have no number."""
        return np.isnan(self.values)

    def rows(self, codes: Ints) -> Numbers:
        """Return the rows with the given indices; index -1 yields a missing row."""
        return Numbers(np.append(self.values, np.nan)[codes])

    def to_arrow(self) -> pa.Array:
        """Return the rows as an Arrow array; missing ones are null."""
        return pa.array(self.values, mask=self.missing)

    def to_list(self) -> list[float | None]:
        """Return the rows as Python numbers."""
        found: list[float | None] = self.to_arrow().to_pylist()
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """A set of strings per row.

    offsets : int64[rows + 1]
        The items of row ``r`` are ``offsets[r]:offsets[r + 1]``; a row without items is missing.
    codes : int32[items]
        Index of each item in ``values``; ascending within a row, without duplicates.
    values : Arrow strings
        The distinct strings.
    whole
        Frequencies in the whole table, if these are only some of its rows; else None.
    """

    offsets: NDArray[np.int64]
    codes: Codes
    values: pa.Array
    whole: Frequencies | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def frequencies(self) -> Frequencies:
        """Return the number of rows of the table with each value."""
        if self.whole is not None:
            return self.whole
        counts = _counts(self.codes, len(self.values))
        return Frequencies(counts, int((~self.missing).sum()))

    @property
    def missing(self) -> Bools:
        """Which rows have no items."""
        empty: Bools = np.diff(self.offsets) == 0
        return empty

    def rows(self, codes: Ints) -> Lists:
        """Return the rows with the given indices; index -1 yields a missing row."""
        if _is_every(codes, len(self)):
            return self
        lengths = np.append(np.diff(self.offsets), 0)[codes]
        starts = np.append(self.offsets[:-1], 0)[codes]
        offsets = starts_of(lengths)
        return Lists(offsets, self.codes[ranges(starts, lengths)], self.values, self.whole)

    def to_arrow(self) -> pa.Array:
        """Return the rows as an Arrow array of lists of dictionary-encoded strings; missing ones are null."""
        items = pa.DictionaryArray.from_arrays(pa.array(self.codes), self.values)
        missing = np.append(self.missing, False)
        return pa.LargeListArray.from_arrays(pa.array(self.offsets, mask=missing), items)

    def to_list(self) -> list[list[str] | None]:
        """Return the rows as Python lists of strings."""
        found: list[list[str] | None] = self.to_arrow().to_pylist()
        return found


Form: TypeAlias = Strings | Numbers | Lists | Vectors | PairValues


class _Named(Mapping[str, V]):
    """A mapping by name; a subclass defines the error for an unknown name."""

    _named: Mapping[str, V]

    def __contains__(self, name: object) -> bool:
        return name in self._named

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)


class NormalField(_Named[Form]):
    """The normal forms of one field, by name."""

    def __init__(self, name: str, kind: str, forms: Mapping[str, Form]) -> None:
        self.name = name
        self.kind = kind
        self._named = forms

    def __getitem__(self, form: str) -> Form:
        if form not in self._named:
            raise InvalidArgumentError(
                f"field {self.name!r} of kind {self.kind} has no form {form!r}; it has {', '.join(self)}."
            )
        return self._named[form]

    def strings(self, form: str) -> Strings:
        """Return a form of strings; raise an error if it is of another type."""
        return self._of_kind(form, Strings)

    def numbers(self, form: str) -> Numbers:
        """Return a form of numbers; raise an error if it is of another type."""
        return self._of_kind(form, Numbers)

    def lists(self, form: str) -> Lists:
        """Return a form of lists; raise an error if it is of another type."""
        return self._of_kind(form, Lists)

    def _of_kind(self, form: str, kind: type[V]) -> V:
        found = self[form]
        if not isinstance(found, kind):
            raise InvalidArgumentError(
                f"form {form!r} of field {self.name!r} is {type(found).__name__}, not {kind.__name__}."
            )
        return found


class NormalTable(_Named[NormalField]):
    """The normal forms of all fields of a table: ``normal[field][form]``.

    derived
        Cache of forms that were computed from others for a comparison, by field and form.
    neighbors
        Cache of blocking keys of nearest vectors, by field, number of neighbors and sources.
    columns
        Where columns of this table's pairs are stored; if they are in files, the forms are too.
    """

    def __init__(self, n_rows: int, fields: Mapping[str, NormalField], columns: Columns = IN_MEMORY) -> None:
        self.n_rows = n_rows
        self.columns = columns
        self.derived: MutableMapping[tuple[str, str], Form] = {}
        self.neighbors: dict[tuple[str, int, bytes], Any] = {}
        self._named = dict(fields)

    def __getitem__(self, field: str) -> NormalField:
        if field not in self._named:
            raise InvalidArgumentError(f"there is no field {field!r}; there are {', '.join(self)}.")
        return self._named[field]

    def rows(self, rows: Ints) -> NormalTable:
        """Return the normal forms of the given rows."""
        fields = {
            name: NormalField(name, field.kind, {form: column.rows(rows) for form, column in field.items()})
            for name, field in self.items()
        }
        return NormalTable(len(rows), fields)

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Yield the numbers and codes of all forms."""
        for field in self.values():
            for form in field.values():
                yield from (getattr(form, name) for name in ("codes", "offsets") if hasattr(form, name))
                if isinstance(form, Numbers):
                    yield form.values

    def only(self, forms: Iterable[tuple[str, str]]) -> NormalTable:
        """Return the given forms, each named by its field and its own name.

        They, and rows taken from them, keep the frequencies of values in this table.
        """
        wanted: dict[str, dict[str, Form]] = {}
        for field, form in forms:
            column = self[field][form]
            if isinstance(column, Strings | Lists):
                column = replace(column, whole=column.frequencies())
            wanted.setdefault(field, {})[form] = column
        fields = {name: NormalField(name, self[name].kind, kept) for name, kept in wanted.items()}
        return NormalTable(self.n_rows, fields)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table of all forms, in columns named ``field.form``."""
        return pa.table(
            {
                f"{name}.{form}": column.to_arrow()
                for name, field in self.items()
                for form, column in field.items()
            }
        )


def encoded(column: pa.Array | pa.ChunkedArray) -> Strings:
    """Encode an Arrow column of strings, or of values that can be cast to strings."""
    chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if pa.types.is_dictionary(chunks.type):
        return _recoded(chunks)
    if not (pa.types.is_string(chunks.type) or pa.types.is_large_string(chunks.type)):
        chunks = chunks.cast(pa.string())
    if chunks.nbytes > LARGEST:
        chunks = chunks.cast(pa.large_string())
    coded = chunks.dictionary_encode().combine_chunks()
    return Strings(_codes(coded.indices), coded.dictionary)


def united(parts: Sequence[pa.DictionaryArray], kind: pa.DataType) -> Strings:
    """Return the strings of consecutive chunks of rows, each encoded by Arrow, with one set of values.

    Arrow encodes by first appearance and unifies in the order of the chunks, so nothing is encoded again.
    """
    if not parts:
        return Strings(np.zeros(0, np.int32), pa.array([], kind))
    chunks = pa.chunked_array(parts).unify_dictionaries().chunks
    return Strings(np.concatenate([_codes(chunk.indices) for chunk in chunks]), chunks[-1].dictionary)


def ranges(starts: Ints, lengths: Ints) -> NDArray[np.int64]:
    """Return ``lengths[r]`` consecutive numbers from ``starts[r]`` on, for each row r in turn."""
    offsets = starts_of(lengths)
    places = np.repeat(np.asarray(starts, np.int64) - offsets[:-1], lengths)
    places += np.arange(offsets[-1])
    return places


def sets(offsets: NDArray[np.int64], codes: Ints, values: pa.Array) -> Lists:
    """Return the codes ``offsets[r]:offsets[r + 1]`` of each row as a set: ascending, without duplicates.

    Negative codes are left out.
    """
    width = max(len(values), 1)
    n_rows = len(offsets) - 1
    lengths, parts = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
    for start in range(0, n_rows, _ROWS):
        part = offsets[start : min(start + _ROWS, n_rows) + 1]
        rows = np.repeat(np.arange(len(part) - 1), np.diff(part))
        keys = rows * width + codes[part[0] : part[-1]]
        keys = keys[codes[part[0] : part[-1]] >= 0]
        keys.sort()
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        lengths.append(np.bincount(keys // width, minlength=len(part) - 1))
        parts.append((keys % width).astype(np.int32))
    return Lists(starts_of(np.concatenate(lengths)), np.concatenate(parts), values)


def coded_if_repeated(column: pa.Array | pa.ChunkedArray) -> Strings:
    """Encode a column as `encoded` does, or use its rows as values if hardly any string occurs twice.

    In the second case, values may be equal or null; this saves the cost of finding duplicates.
    """
    chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if len(chunks) <= _ROWS or not pa.types.is_string(chunks.type) or chunks.nbytes > LARGEST:
        return encoded(chunks)
    sample = chunks.slice(0, _ROWS)
    if pc.count_distinct(sample).as_py() < 0.8 * (len(sample) - sample.null_count):
        return encoded(chunks)
    return Strings(np.arange(len(chunks), dtype=np.int32), chunks.combine_chunks())


def _is_every(codes: Ints, n_rows: int) -> bool:
    """Return whether the codes are all rows in order, as for a column without duplicates."""
    return len(codes) == n_rows and bool((codes == np.arange(n_rows)).all())


def _counts(codes: Codes, size: int) -> NDArray[np.int64]:
    """Count the codes from 0 to ``size`` - 1, in chunks, so that not all codes are copied at once."""
    counts = np.zeros(size, np.int64)
    for low in range(0, len(codes), _COUNTED):
        part = codes[low : low + _COUNTED]
        counts += np.bincount(part[part >= 0], minlength=size)
        release(codes)
    return counts


def _codes(indices: pa.Array) -> Codes:
    filled = indices.fill_null(MISSING) if indices.null_count else indices
    return np.asarray(filled, dtype=np.int32)


def _recoded(chunks: pa.ChunkedArray) -> Strings:
    """Encode a dictionary-encoded column again, by first appearance and without duplicate strings."""
    joined = chunks.unify_dictionaries().combine_chunks()
    old = _codes(joined.indices.cast(pa.int32()))
    values = encoded(joined.dictionary)
    codes = np.append(values.codes, np.int32(MISSING))[old]
    first = np.full(len(values.values) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last write wins, which is that of the first row
    first[MISSING] = len(codes)
    used = np.flatnonzero(first < len(codes))
    order = used[np.argsort(first[used], kind="stable")]
    renumbered = np.full(len(first), MISSING, np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    return Strings(renumbered[codes], values.values.take(pa.array(order)))
