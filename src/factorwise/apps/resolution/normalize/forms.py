"""Columns in normal form: coded strings, numbers, lists of coded strings, and vectors.

A string stands once in ``values``, in order of first appearance, and in the rows as its code; -1 is missing.
Kernels read the codes, `to_arrow` hands the columns to DuckDB.
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

MISSING = -1
LARGEST = 2_000_000_000  # bytes; strings with offsets of 32 bits can hold a little more

_ROWS = 1 << 17  # worked on in one go, where temporary arrays are large

_COUNTED = 1 << 23  # codes that are counted at a time

Codes: TypeAlias = NDArray[np.int32]


class Frequencies(NamedTuple):
    """How many rows of a table have each value, and how many have any."""

    counts: NDArray[np.int64]
    present: int


V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class Strings:
    """A string per row.

    codes : int32[rows]
        Which of the values stands in each row; -1 where it is missing.
    values : Arrow strings
        The different strings.
    whole
        Frequencies in a table of which these are some rows; None if these are all.
    """

    codes: Codes
    values: pa.Array
    whole: Frequencies | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def frequencies(self) -> Frequencies:
        """Return how many rows of the table have each value."""
        if self.whole is not None:
            return self.whole
        counts = _counts(self.codes, len(self.values))
        return Frequencies(counts, int(counts.sum()))

    @property
    def missing(self) -> Bools:
        """Where a row has no string."""
        return self.codes < 0

    def rows(self, codes: Ints) -> Strings:
        """Rows chosen by number; -1 chooses a missing one."""
        if _is_every(codes, len(self)):
            return self
        return Strings(np.append(self.codes, np.int32(MISSING))[codes], self.values, self.whole)

    def to_arrow(self) -> pa.Array:
        """Dictionary-encoded Arrow array of the rows."""
        return pa.DictionaryArray.from_arrays(pa.array(self.codes, mask=self.missing), self.values)

    def to_list(self) -> list[str | None]:
        """Rows as Python strings."""
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
        """Where a row has no number."""
        return np.isnan(self.values)

    def rows(self, codes: Ints) -> Numbers:
        """Rows chosen by number; -1 chooses a missing one."""
        return Numbers(np.append(self.values, np.nan)[codes])

    def to_arrow(self) -> pa.Array:
        """Arrow array of the rows, null where missing."""
        return pa.array(self.values, mask=self.missing)

    def to_list(self) -> list[float | None]:
        """Rows as Python numbers."""
        found: list[float | None] = self.to_arrow().to_pylist()
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """A set of strings per row.

    offsets : int64[rows + 1]
        Row ``r`` has the items ``offsets[r]:offsets[r + 1]``; a row without items is missing.
    codes : int32[items]
        Which of the values each item is; ascending within a row, each once.
    values : Arrow strings
        The different strings.
    whole
        Frequencies in a table of which these are some rows; None if these are all.
    """

    offsets: NDArray[np.int64]
    codes: Codes
    values: pa.Array
    whole: Frequencies | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def frequencies(self) -> Frequencies:
        """Return how many rows of the table have each value."""
        if self.whole is not None:
            return self.whole
        counts = _counts(self.codes, len(self.values))
        return Frequencies(counts, int((~self.missing).sum()))

    @property
    def missing(self) -> Bools:
        """Where a row has no items."""
        empty: Bools = np.diff(self.offsets) == 0
        return empty

    def rows(self, codes: Ints) -> Lists:
        """Rows chosen by number; -1 chooses a missing one."""
        if _is_every(codes, len(self)):
            return self
        lengths = np.append(np.diff(self.offsets), 0)[codes]
        starts = np.append(self.offsets[:-1], 0)[codes]
        offsets = starts_of(lengths)
        return Lists(offsets, self.codes[ranges(starts, lengths)], self.values, self.whole)

    def to_arrow(self) -> pa.Array:
        """Arrow array of lists of dictionary-encoded strings, null where missing."""
        items = pa.DictionaryArray.from_arrays(pa.array(self.codes), self.values)
        missing = np.append(self.missing, False)
        return pa.LargeListArray.from_arrays(pa.array(self.offsets, mask=missing), items)

    def to_list(self) -> list[list[str] | None]:
        """Rows as Python lists of strings."""
        found: list[list[str] | None] = self.to_arrow().to_pylist()
        return found


Form: TypeAlias = Strings | Numbers | Lists | Vectors | PairValues


class _Named(Mapping[str, V]):
    """What is looked up by its name; a subclass says what is wrong with a name that is not there."""

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
        """Return a form that is one of strings."""
        return self._of_kind(form, Strings)

    def numbers(self, form: str) -> Numbers:
        """Return a form that is one of numbers."""
        return self._of_kind(form, Numbers)

    def lists(self, form: str) -> Lists:
        """Return a form that is one of lists."""
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
        Forms that were made of others because a comparison needs them, by field and form.
    neighbors
        Blocking keys of near vectors, by field, number of neighbors and sources: they take long to find.
    columns
        Where columns of this table's pairs are kept; if that is in files, so are the forms.
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
        """Return the normal forms of some rows."""
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
        """Return some forms, each named by its field and its own name.

        They, and rows that are taken of them, know how frequent values are in this table.
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
        """Arrow table of all forms, in columns called ``field.form``."""
        return pa.table(
            {
                f"{name}.{form}": column.to_arrow()
                for name, field in self.items()
                for form, column in field.items()
            }
        )


def encoded(column: pa.Array | pa.ChunkedArray) -> Strings:
    """Code an Arrow column of strings (or of anything that can be written as a string)."""
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
    """Strings of stretches of rows, each just coded by Arrow, under one set of values.

    Arrow codes by first appearance and unites in the order of the stretches, so nothing is coded anew.
    """
    if not parts:
        return Strings(np.zeros(0, np.int32), pa.array([], kind))
    chunks = pa.chunked_array(parts).unify_dictionaries().chunks
    return Strings(np.concatenate([_codes(chunk.indices) for chunk in chunks]), chunks[-1].dictionary)


def ranges(starts: Ints, lengths: Ints) -> NDArray[np.int64]:
    """Numbers ``starts[r], starts[r] + 1, ...``, ``lengths[r]`` of them, for each row in turn."""
    offsets = starts_of(lengths)
    places = np.repeat(np.asarray(starts, np.int64) - offsets[:-1], lengths)
    places += np.arange(offsets[-1])
    return places


def sets(offsets: NDArray[np.int64], codes: Ints, values: pa.Array) -> Lists:
    """Lists of the codes ``offsets[r]:offsets[r + 1]`` of each row, ascending and each once.

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
    """Code a column as `encoded` does, unless hardly a string stands twice: then its rows are the values.

    In the second case values may be equal or null. It spares the cost of finding out which.
    """
    chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if len(chunks) <= _ROWS or not pa.types.is_string(chunks.type) or chunks.nbytes > LARGEST:
        return encoded(chunks)
    sample = chunks.slice(0, _ROWS)
    if pc.count_distinct(sample).as_py() < 0.8 * (len(sample) - sample.null_count):
        return encoded(chunks)
    return Strings(np.arange(len(chunks), dtype=np.int32), chunks.combine_chunks())


def _is_every(codes: Ints, n_rows: int) -> bool:
    """Whether codes choose all rows in their order, as those of a column without repeats do."""
    return len(codes) == n_rows and bool((codes == np.arange(n_rows)).all())


def _counts(codes: Codes, size: int) -> NDArray[np.int64]:
    """Count codes below a size, some at a time, because all of them would be copied; -1 does not count."""
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
    """Codes of a dictionary-encoded column, in order of first appearance and each string once."""
    joined = chunks.unify_dictionaries().combine_chunks()
    old = _codes(joined.indices.cast(pa.int32()))
    values = encoded(joined.dictionary)
    codes = np.append(values.codes, np.int32(MISSING))[old]
    first = np.full(len(values.values) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of several writes the last one stays: the first row
    first[MISSING] = len(codes)
    used = np.flatnonzero(first < len(codes))
    order = used[np.argsort(first[used], kind="stable")]
    renumbered = np.full(len(first), MISSING, np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    return Strings(renumbered[codes], values.values.take(pa.array(order)))
