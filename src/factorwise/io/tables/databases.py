"""Tables in databases: SQLite files, PostgreSQL, sheets of Excel files.

SQLite is read and written by Python itself. PostgreSQL and Excel are read by extensions of DuckDB if these
are installed; nothing is downloaded. Credentials come from the environment or from files of the drivers.
"""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.io.tables.names import quoted, require_columns
from factorwise.io.tables.values import column_of

SQLITE_MAGIC = b"SQLite format 3\0"


def read_postgres(address: str, columns: Sequence[str] | None) -> pa.Table:
    """Return a table, ``postgres://user@host/base::table``, by an extension of DuckDB."""
    base, separator, table = address.rpartition("::")
    if not separator:
        raise InvalidArgumentError(f"{address} names no table: add it, as in {address}::people.")
    schema, _, name = table.rpartition(".")
    with _extended("postgres", base) as connection:
        escaped = base.replace("'", "''")
        connection.execute(f"ATTACH '{escaped}' AS source (TYPE postgres, READ_ONLY)")
        relation = f"source.{quoted(schema or 'public')}.{quoted(name)}"
        return _selected(connection, relation, columns, address)


def read_excel(path: Path, sheet: str | None, columns: Sequence[str] | None) -> pa.Table:
    """Return a sheet of an Excel file, by default the first, with an extension of DuckDB."""
    with _extended("excel", str(path)) as connection:
        sheet_option = "" if sheet is None else f", sheet = '{sheet.replace(chr(39), chr(39) * 2)}'"
        file = str(path).replace("'", "''")
        return _selected(connection, f"read_xlsx('{file}', header = true{sheet_option})", columns, str(path))


def _selected(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str] | None, origin: str
) -> pa.Table:
    known = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()]
    if columns is not None:
        require_columns(columns, known, origin)
    wanted = ", ".join(quoted(column) for column in (known if columns is None else columns))
    return connection.sql(f"SELECT {wanted} FROM {relation}").to_arrow_table()


@contextmanager
def _extended(extension: str, origin: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open DuckDB with an installed extension; nothing is downloaded."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(config=settings) as connection:
        try:
            connection.execute(f"LOAD {extension}")
        except duckdb.Error as error:
            remedy = "Save the sheet as CSV, or install" if extension == "excel" else "Install"
            raise DataFileError(
                f"{origin}: reading it needs DuckDB's extension {extension!r}, which is not installed here."
                f" {remedy} it: python -c \"import duckdb; duckdb.sql('INSTALL {extension}')\"."
            ) from error
        try:
            yield connection
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise DataFileError(
                f"{origin}: cannot be read: {first}. Check the address and the table."
            ) from error


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database, by its first bytes."""
    with path.open("rb") as stream:
        return stream.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def read_sqlite(path: Path, table: str | None, columns: Sequence[str] | None) -> pa.Table:
    """Return a table or view of an SQLite file; by default the only one."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            names = [row[0] for row in connection.execute(listed) if not row[0].startswith("sqlite_")]
            name = _pick(path, table, names)
            cursor = connection.execute(f"SELECT * FROM {quoted(name)} LIMIT 0")
            known = [column[0] for column in cursor.description]
            if columns is not None:
                require_columns(columns, known, f"{path}::{name}")
            wanted = list(known if columns is None else columns)
            chosen = ", ".join(quoted(column) for column in wanted)
            rows = connection.execute(f"SELECT {chosen} FROM {quoted(name)}").fetchall()
            values = zip(*rows, strict=True) if rows else ([] for _ in wanted)
            return pa.table({name: column_of(list(each)) for name, each in zip(wanted, values, strict=True)})
    except sqlite3.Error as error:
        raise DataFileError(
            f"{path}: could not be read as an SQLite file: {error}. Close programs that write to it, or"
            " restore it from a copy."
        ) from error


def _pick(path: Path, table: str | None, names: list[str]) -> str:
    if table is None and len(names) == 1:
        return names[0]
    if table in names:
        return table
    listed = ", ".join(names) or "none"
    if table is None:
        raise DataFileError(f"{path} has {len(names)} tables ({listed}). Name one, as in {path}::TABLE.")
    close = difflib.get_close_matches(table, names, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    raise DataFileError(f"{path} has no table {table!r}.{guess} Its tables are {listed}.")


def write_database(path: Path, name: str, table: pa.Table) -> None:
    """Write a table into an SQLite or DuckDB file, replacing one of that name; completely or not at all."""
    try:
        if path.suffix.lower() in (".sqlite", ".sqlite3") or (path.exists() and is_sqlite(path)):
            _write_sqlite(path, name, table)
        else:
            with duckdb.connect(str(path)) as connection:
                _refuse_store(connection, path)
                connection.register("written", table)
                connection.execute(f"CREATE OR REPLACE TABLE {quoted(name)} AS SELECT * FROM written")
    except OverflowError as error:
        raise DataFileError(
            f"{path}::{name}: could not be written: SQLite has no whole numbers beyond 2**63 - 1. What was"
            " there is unchanged: make such a column text, or write a DuckDB file."
        ) from error
    except (sqlite3.Error, duckdb.Error) as error:
        raise DataFileError(
            f"{path}::{name}: could not be written: {str(error).splitlines()[0]}. What was there is"
            " unchanged: check the file, its permissions and the free space."
        ) from error


def _refuse_store(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Refuse to write into a store, whose own tables could be replaced."""
    try:
        purpose = connection.execute("SELECT value FROM facts WHERE name = 'purpose'").fetchone()
    except duckdb.Error:  # no such table
        return
    if purpose is not None:
        raise DataFileError(
            f"{path}: is a store, which only the store verbs may change: write to another file."
        )


def _write_sqlite(path: Path, name: str, table: pa.Table) -> None:
    types = [_sqlite_type(field.type) for field in table.schema]
    definition = ", ".join(
        f"{quoted(field)} {kind}" for field, kind in zip(table.column_names, types, strict=True)
    )
    placeholders = ", ".join("?" * table.num_columns)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
            connection.execute(f"CREATE TABLE {quoted(name)} ({definition})")
            for batch in table.to_batches(max_chunksize=1 << 16):
                values = [
                    column.to_pylist()
                    if kind != "TEXT"
                    else [None if each is None else str(each) for each in column.to_pylist()]
                    for column, kind in zip(batch.columns, types, strict=True)
                ]
                connection.executemany(
                    f"INSERT INTO {quoted(name)} VALUES ({placeholders})", zip(*values, strict=True)
                )
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _sqlite_type(kind: pa.DataType) -> str:
    """Return the SQLite type of a column; types that SQLite lacks become text."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    if pa.types.is_floating(kind):
        return "REAL"
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return "BLOB" if is_binary or pa.types.is_fixed_size_binary(kind) else "TEXT"
