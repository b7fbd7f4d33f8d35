"""Read tables of records from any source as Arrow tables.

A *source* is the path of a file (delimited text, Parquet, JSON lines; ``file.duckdb::table`` or
``file.sqlite::table`` for a table in a database, ``file.xlsx::sheet``), an address (Parquet in an object
store, ``postgres://user@host/base::table``), a pandas or polars DataFrame, any object that offers an Arrow
stream, a list of mappings, or a mapping of columns. The strings of a table stay in Arrow: no code here
handles single values in Python.

>>> table = read_table([{"id": "a", "name": "Ann Lee"}, {"id": "b", "name": "A. Lee"}])
>>> ids_of(table, "id").to_pylist()
['a', 'b']
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from factorwise.errors import DataFileError, InvalidArgumentError, require
from factorwise.io.atomic import atomic_binary
from factorwise.io.tables.databases import write_database
from factorwise.io.tables.files import read_file, records_table
from factorwise.io.tables.formats import is_packed, written_format
from factorwise.io.tables.names import refuse_repeated, require_columns

TableSource: TypeAlias = "str | os.PathLike[str] | Sequence[Mapping[str, Any]] | Any"

LIST_SEPARATOR = "|"
SOURCE_COLUMN = "source"
_FORMULA = re.compile(r"\A([=+\-@\t\r])")  # beginnings of texts that spreadsheets treat as formulas
_MANY = 1 << 20  # ids from which on they are told apart by hashes
_SHOWN = 3  # repeated ids listed in an error
_ROWS = 1 << 16  # records converted to JSON at a time


def read_table(
    source: TableSource,
    *,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    may_be_empty: bool = False,
    most: int | None = None,
) -> pa.Table:
    """Return the records of ``source`` as a `pyarrow.Table` with at least one row.

    columns
        The columns to read, in this order; None for all of them.
    encoding
        Encoding of a delimited file that is neither UTF-8 nor UTF-16 with a BOM, such as ``cp1252``.
    may_be_empty
        Accept column names without any records.
    most
        Bytes that records of Parquet files may take in memory; more of them lie in a file that is mapped.
    """
    if isinstance(source, (str, os.PathLike)):
        origin = os.fspath(source)
        table = read_file(origin, columns, encoding, most)
    else:
        origin = f"the {type(source).__name__}"
        table = _from_memory(source, origin)
    refuse_repeated(table.column_names, origin)
    if columns is not None:
        require_columns(columns, table.column_names, origin)
        table = table.select(list(columns))
    if table.num_rows == 0 and not may_be_empty:
        raise DataFileError(f"{origin} has column names but no records. At least one record is needed.")
    return _with_plain_types(table)


def ids_of(table: pa.Table, column: str) -> pa.Array:
    """Return the ids of the records as an Arrow array, after checking that they exist and differ."""
    require_columns([column], table.column_names, "the table")
    ids = table.column(column).combine_chunks()
    if ids.null_count:
        row = int(np.flatnonzero(np.asarray(ids.is_null()))[0]) + 1
        raise DataFileError(
            f"column {column!r} has no id in {ids.null_count} records, the first of them record {row}."
            " Every record needs its own id: fill them in, or name another column."
        )
    if len(ids) > _MANY and _all_differ(ids):
        return ids
    coded = ids.dictionary_encode()
    if len(coded.dictionary) < len(ids):
        raise DataFileError(_repeated_ids(column, coded))
    return ids


def _all_differ(ids: pa.Array) -> bool:
    """Return whether the ids of a large table differ by their hashes, which take little memory."""
    from factorwise.io.text_hashes import all_differ  # it loads the compiler

    return all_differ(ids)


def stack_tables(
    tables: Sequence[tuple[str, pa.Table]], *, id_column: str | None = None, prefix_ids: bool = False
) -> pa.Table:
    """Concatenate several named tables, with a column ``source`` that has the table of each record.

    Columns are united by name; a table without a column has missing values there; if the types differ, all
    become text. With ``id_column`` the ids must differ over all tables; ``prefix_ids`` ensures this by
    writing the table's name and a colon before each.
    """
    names = [name for name, _ in tables]
    require(len(tables) >= 1, "tables", names, "at least one pair of a name and a table")
    require(len(set(names)) == len(names), "names of tables", names, "different from one another")
    require(not prefix_ids or id_column is not None, "id_column", id_column, "given when ids are prefixed")
    united = _united_types(tables)
    parts = []
    for name, table in tables:
        if SOURCE_COLUMN in table.column_names:
            raise DataFileError(
                f"table {name!r} already has a column {SOURCE_COLUMN!r}, which is to contain the table"
                " of each record. Rename or leave out that column, or give one table with all records."
            )
        if id_column is not None:
            require_columns([id_column], table.column_names, f"table {name!r}")
        part = _with_types(table, united)
        if prefix_ids:
            position = part.column_names.index(id_column)
            texts = part.column(position).cast(pa.string())
            part = part.set_column(position, id_column, pc.binary_join_element_wise(name, texts, ":"))
        origin = pa.array([name]).take(pa.array(np.zeros(part.num_rows, np.int32)))
        parts.append(part.append_column(SOURCE_COLUMN, origin))
    stacked = pa.concat_tables(parts)
    if id_column is not None:
        _refuse_shared_ids(stacked, id_column)
    return stacked


def write_table(path: str | os.PathLike[str], table: pa.Table, *, for_spreadsheets: bool = False) -> None:
    """Write a table as CSV, Parquet or JSON lines, by the ending of ``path``, completely or not at all.

    CSV and JSON lines are packed if the name ends in ``.gz``. In CSV the items of a list are joined by ``|``
    in one field, and a missing value is an empty field.

    for_spreadsheets
        In CSV, put an apostrophe before texts that begin with ``= + - @``, a tab or a carriage return, which
        spreadsheets would treat as formulas.
    """
    target = Path(path)
    form = written_format(target)
    if form in ("duckdb", "sqlite"):
        base, _, name = str(target).rpartition("::")
        write_database(Path(base), name, table)
        return
    with atomic_binary(target) as stream, _packing(stream, target) as sink:
        if form == "parquet":
            pq.write_table(table, sink)
        elif form == "json":
            for line in _json_lines(table):
                sink.write(line)
        else:
            flat = _flat(table)
            pacsv.write_csv(without_formulas(flat) if for_spreadsheets else flat, sink)


def _from_memory(source: Any, origin: str) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    try:
        library = type(source).__module__.partition(".")[0]
        if library == "pandas":
            return pa.Table.from_pandas(source, preserve_index=False)
        if library == "pyarrow" and hasattr(source, "to_table"):  # a dataset
            return source.to_table()
        if library == "polars" and hasattr(source, "collect"):  # a lazy frame
            return pa.table(source.collect())
        if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
            return pa.table(source)
        if isinstance(source, Mapping):
            return pa.table(dict(source))
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataFileError(
            f"{origin} cannot be converted to an Arrow table: {error}. Give every column values of one"
            " type, for example text, and all columns the same length."
        ) from error
    if isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray)):
        if not source:
            raise DataFileError(f"{origin} is empty. At least one record is needed.")
        return records_table(source, origin)
    raise InvalidArgumentError(
        f"records cannot be read from {origin}. Give the path of a CSV, Parquet or JSON lines file,"
        " 'file.duckdb::table', a folder of Parquet files, a DataFrame, an Arrow table or dataset, or a list"
        " of dictionaries."
    )


def _with_plain_types(table: pa.Table) -> pa.Table:
    """Replace types that differ from others only in their memory layout."""
    for position, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(pa.string()))
        elif pa.types.is_large_list(field.type) and pa.types.is_string_view(field.type.value_type):
            plain = pa.large_list(pa.string())
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    return table


def _repeated_ids(column: str, coded: pa.DictionaryArray) -> str:
    codes = np.asarray(coded.indices)
    counts = np.bincount(codes)
    # ids are coded in order of appearance, so the first repeated ones come first
    repeated = np.flatnonzero(counts > 1)
    shown = []
    for code in repeated[:_SHOWN]:
        first, second = np.flatnonzero(codes == code)[:2] + 1
        shown.append(f"{coded.dictionary[int(code)].as_py()!r} (records {first} and {second})")
    return (
        f"column {column!r} has {len(repeated)} ids that occur more than once:"
        f" {', '.join(shown)}{', ...' if len(repeated) > _SHOWN else ''}. Every record needs its own"
        " id: name another column, or number the records."
    )


def _refuse_shared_ids(stacked: pa.Table, column: str) -> None:
    try:
        ids_of(stacked, column)
    except DataFileError as error:
        raise DataFileError(
            f"{error} If tables have ids in common, prefix_ids=True writes the table's name before each."
        ) from None


def _united_types(tables: Sequence[tuple[str, pa.Table]]) -> dict[str, pa.DataType]:
    """Return the type of every column of all tables: its own, or text if they differ."""
    types: dict[str, pa.DataType] = {}
    for _, table in tables:
        for field in table.schema:
            known = types.setdefault(field.name, field.type)
            if pa.types.is_null(known):
                types[field.name] = field.type
            elif known != field.type and not pa.types.is_null(field.type):
                types[field.name] = pa.string()
    return types


def _with_types(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    columns = {}
    for name, kind in types.items():
        if name not in table.column_names:
            columns[name] = pa.chunked_array([pa.nulls(table.num_rows, kind)])
        elif pa.types.is_string(kind):
            columns[name] = _as_text(table.column(name))
        else:
            columns[name] = table.column(name).cast(kind)
    return pa.table(columns)


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as strings; the items of a list are joined."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        item = pa.list_(pa.string()) if pa.types.is_list(column.type) else pa.large_list(pa.string())
        return pc.binary_join(column.cast(item), LIST_SEPARATOR)
    return column.cast(pa.string())


def _flat(table: pa.Table) -> pa.Table:
    """Return a table without lists and coded strings, which CSV does not support."""
    for position, field in enumerate(table.schema):
        if pa.types.is_nested(field.type) or pa.types.is_dictionary(field.type):
            table = table.set_column(position, field.name, _as_text(table.column(position)))
    return table


def without_formulas(table: pa.Table) -> pa.Table:
    """Mark texts, and names of columns, that a spreadsheet would treat as formulas."""
    for position, field in enumerate(table.schema):
        name = _FORMULA.sub(r"'\1", field.name)
        column = table.column(position)
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = pc.replace_substring_regex(column, pattern=_FORMULA.pattern, replacement=r"'\1")
        table = table.set_column(position, name, column)
    return table


def _json_lines(table: pa.Table) -> Iterator[bytes]:
    for batch in table.to_batches(max_chunksize=_ROWS):
        lines = [json.dumps(_finite(record), ensure_ascii=False, default=str) for record in batch.to_pylist()]
        yield ("\n".join(lines) + "\n").encode() if lines else b""


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """Replace numbers that JSON cannot represent by null."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in record.items()
    }


@contextmanager
def _packing(stream: BinaryIO, target: Path) -> Iterator[Any]:
    if not is_packed(target):
        yield stream
        return
    with gzip.GzipFile(fileobj=stream, mode="wb", filename="", mtime=0) as packed:
        yield packed
