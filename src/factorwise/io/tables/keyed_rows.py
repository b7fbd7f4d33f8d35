"""Tables whose records consist of names and numbers: counts, flows, features of pairs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.errors import DataFileError
from factorwise.io.tables.names import require_columns
from factorwise.io.tables.reading import TableSource, read_table
from factorwise.types import Floats

RENAME = "Rename one, or give another table."


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRows:
    """Records as columns.

    origin
        The name of the table in messages.
    keys
        Columns of names, as text; at least one.
    numbers
        Columns of numbers; NaN for empty fields.
    """

    origin: str
    keys: dict[str, list[str]]
    numbers: dict[str, Floats]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(next(iter(self.keys.values())))

    def where(self, row: int) -> str:
        """Name a record for messages, the first one as record 1."""
        return f"{self.origin}, record {row + 1}"


def read_keyed_rows(
    source: TableSource,
    *,
    keys: Sequence[str],
    optional_keys: Sequence[str] = (),
    numbers: Sequence[str] | None = None,
    may_be_empty: bool = False,
) -> KeyedRows:
    """Read a table.

    keys
        Required columns of names.
    optional_keys
        Optional columns of names.
    numbers
        Required columns of numbers; by default all columns except the keys.
    may_be_empty
        Whether messages say that a number may be left out; otherwise callers refuse NaN.
    """
    table = read_table(source)
    origin = os.fspath(source) if isinstance(source, (str, os.PathLike)) else f"the {type(source).__name__}"
    require_columns([*keys, *(numbers or ())], table.column_names, origin, RENAME)
    names = [*keys, *(name for name in optional_keys if name in table.column_names)]
    wanted = numbers if numbers is not None else [n for n in table.column_names if n not in names]
    return KeyedRows(
        origin,
        {name: _names(table.column(name), name, origin) for name in names},
        {name: _numbers(table.column(name), name, origin, may_be_empty) for name in wanted},
    )


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Sort different labels by their numbers if all of them are numbers, otherwise as text."""
    different = set(labels)
    try:
        return tuple(sorted(different, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(different))


def _names(column: pa.ChunkedArray, name: str, origin: str) -> list[str]:
    texts: list[str | None] = pc.utf8_trim_whitespace(column.cast(pa.string())).to_pylist()
    for row, text in enumerate(texts):
        if not text:
            raise DataFileError(f"{origin}, record {row + 1}: {name!r} is empty, but every record needs one.")
    return [text for text in texts if text is not None]


def _numbers(column: pa.ChunkedArray, name: str, origin: str, may_be_empty: bool) -> Floats:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        row, value = next((row, v) for row, v in enumerate(column.to_pylist()) if not _is_number(v))
        remedy = "Write a number, or leave the field empty if there is none."
        raise DataFileError(
            f"{origin}, record {row + 1}: {name!r} is {value!r}, which is not a number."
            f" {remedy if may_be_empty else 'Write a number.'}"
        ) from None
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _is_number(value: object) -> bool:
    try:
        pa.scalar(value).cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    return True
