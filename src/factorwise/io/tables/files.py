"""Tables in files: the readers of Parquet, JSON lines and DuckDB files.

`factorwise.io.tables.formats` determines the format of a file, and `factorwise.io.tables.delimited` reads
delimited text. Each reader takes a path and the columns to read (None for all) and returns an Arrow table;
errors are `DataFileError`s with file, reason and remedy.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.json as pajson
import pyarrow.parquet as pq

from factorwise.errors import DataFileError, MissingDataError
from factorwise.io.columns import table_in_file
from factorwise.io.tables.addresses import POSTGRES, is_address, refuse_credentials
from factorwise.io.tables.databases import is_sqlite, read_excel, read_postgres, read_sqlite
from factorwise.io.tables.delimited import opened, read_delimited, refuse_encoding
from factorwise.io.tables.formats import table_format
from factorwise.io.tables.names import quoted, require_columns
from factorwise.io.tables.parts import is_large, read_address, refuse_unfinished
from factorwise.io.tables.values import column_of

_ODD_LINE = re.compile(rb"\n[ \t\r]*[^{ \t\r\n]")
_BLOCK = 1 << 24
_ROWS = 1 << 17  # that are read from a large file at a time
_LARGEST_BLOCK = (1 << 31) - 1


def read_file(
    source: str, columns: Sequence[str] | None, encoding: str | None, most: int | None = None
) -> pa.Table:
    """Return the Arrow table in a file, or in a table of a DuckDB file given as ``file.duckdb::table``.

    The Parquet files of a folder, or those that match a pattern such as ``parts/*.parquet``, are one table;
    so are those at an address such as ``s3://bucket/folder``. Tables of SQLite files and of PostgreSQL, and
    sheets of Excel files, are named like those of DuckDB files.

    most
        Bytes that the records of Parquet files may take in memory; more of them lie in a file that is mapped.
    """
    if is_address(source):
        if encoding is not None:
            raise DataFileError(f"encoding={encoding!r} was given, but {source} has its own: leave it out.")
        if source.startswith(POSTGRES):
            refuse_credentials(source)
            return read_postgres(source, columns)
        return read_address(source, columns, most)
    name, separator, table = source.rpartition("::")
    path = Path(name if separator else source)
    if not separator and (path.is_dir() or (not path.exists() and any(sign in source for sign in "*?["))):
        return _read_parts(path, columns, encoding, most)
    if not path.exists():
        raise MissingDataError(_no_file(path))
    if path.is_dir():
        raise DataFileError(f"{path} is a folder. Give the file in it that holds the records.")
    if path.stat().st_size == 0:
        raise DataFileError(f"{path}: the file is empty. A table with at least one record is needed.")
    form = _content_format(path, named=bool(separator))
    if encoding is not None and form != "csv":
        raise DataFileError(f"encoding={encoding!r} was given, but {path} is {form}, which has its own.")
    if form == "sqlite":
        return read_sqlite(path, table if separator else None, columns)
    if form == "excel":
        return read_excel(path, table if separator else None, columns)
    if form == "duckdb":
        if separator and not _is_database(path):
            raise DataFileError(
                f"{path}: is not a DuckDB or SQLite file, so it has no table '::{table}'. Leave that"
                " out, or give such a file."
            )
        return read_database(path, table if separator else None, columns)
    if form == "parquet":
        return read_parquet(path, columns, most)
    if form == "json":
        return read_json_lines(path)
    return read_delimited(path, columns, encoding)


def _content_format(path: Path, *, named: bool) -> str:
    """Return the format of a file; ``named`` says whether the source names a table in it."""
    form = table_format(path)
    if form == "excel" or not (named or form in ("duckdb", "sqlite")):
        return form
    return "sqlite" if is_sqlite(path) else "duckdb"


def _read_parts(
    path: Path, columns: Sequence[str] | None, encoding: str | None, most: int | None
) -> pa.Table:
    """Return the records of all Parquet files in a folder, or that match a pattern, in the order of names.

    Columns that some files lack are missing in their records.
    """
    folder = path.is_dir()
    paths = path.rglob("*") if folder else Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    parts = sorted(part for part in paths if part.is_file() and table_format(part) == "parquet")
    if not parts:
        remedy = "Give the file in it that holds the records, or a folder with Parquet files."
        if folder:
            raise DataFileError(f"{path} is a folder. {remedy}")
        raise MissingDataError(f"no Parquet file matches the pattern {str(path)!r}. Check the path.")
    if folder:
        refuse_unfinished(str(path), [part.name for part in path.iterdir()])
    if encoding is not None:
        raise DataFileError(f"encoding={encoding!r} was given, but {path} is parquet, which has its own.")
    each = None if most is None else most // len(parts)
    tables = [read_parquet(part, None, each) for part in parts]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataFileError(
            f"{path}: the {len(parts)} Parquet files in it do not fit together: {error}. Give files whose"
            " columns have the same types."
        ) from error
    if columns is None:
        return table
    require_columns(columns, table.column_names, str(path))
    return table.select(list(columns))


def _index_columns(table: pa.Table) -> list[str]:
    """Return the columns in which pandas stores row numbers, which are not data."""
    index_columns = (table.schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in index_columns if isinstance(name, str) and name.startswith("__index_level_")]


def read_parquet(path: Path, columns: Sequence[str] | None, most: int | None = None) -> pa.Table:
    """Return a Parquet file's table; ``most`` as in `read_file`."""
    try:
        with pq.ParquetFile(path) as file:
            known = file.schema_arrow.names
            if columns is not None:
                require_columns(columns, known, str(path))
            wanted = None if columns is None else list(columns)
            if is_large(file.metadata, most):
                batches = file.iter_batches(_ROWS, columns=wanted)
                schema = file.schema_arrow
                if wanted is not None:
                    schema = pa.schema([schema.field(name) for name in wanted], schema.metadata)
                tables = (pa.Table.from_batches([batch]).cast(schema) for batch in batches)
                table = table_in_file(schema, (batch for part in tables for batch in part.to_batches()))
            else:
                table = file.read(columns=wanted)
            return table if columns is not None else table.drop_columns(_index_columns(table))
    except (pa.ArrowException, OSError) as error:
        raise DataFileError(
            f"{path}: not a complete Parquet file: {error}. Write it again, or correct its ending."
        ) from error


def read_json_lines(path: Path) -> pa.Table:
    """Return the table of a file with a JSON object per line, or with one array of objects.

    A column whose values are of several types becomes text.
    """
    with opened(path) as stream:
        start = stream.read(256)
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return records_table(_json_array(path), str(path))
    if _odd_lines(path):  # Arrow reads a null as a record, and crashes if it comes first
        refuse_encoding(path, "utf-8")
        return records_table(_json_objects(path), str(path))
    block = _BLOCK
    while True:
        try:
            table = _parse_json(path, block)
            table.validate(full=True)
            return table
        except (pa.ArrowInvalid, UnicodeError) as error:
            if "straddl" in str(error) and block < _LARGEST_BLOCK:
                block = min(block * 8, _LARGEST_BLOCK)
                continue
            refuse_encoding(path, "utf-8")
            return records_table(_json_objects(path), str(path))


def read_database(path: Path, table: str | None, columns: Sequence[str] | None) -> pa.Table:
    """Return a table or view of a DuckDB file; by default the only one."""
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            tables = connection.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_catalog = current_database() ORDER BY ALL"
            ).fetchall()
            schema, name = _pick_table(path, table, tables)
            relation = f"{quoted(schema)}.{quoted(name)}"
            known = [row[0] for row in connection.execute(f"DESCRIBE {relation}").fetchall()]
            if columns is not None:
                require_columns(columns, known, f"{path}::{name}")
            wanted = ", ".join(quoted(column) for column in (known if columns is None else columns))
            return connection.sql(f"SELECT {wanted} FROM {relation}").to_arrow_table()
    except duckdb.Error as error:
        raise DataFileError(
            f"{path} could not be read as a DuckDB file: {error}."
            " Close other programs that write to it, or give a file of another format its own ending."
        ) from error


def _is_database(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(12)[8:] == b"DUCK"


def records_table(records: Iterable[Mapping[str, Any]], origin: str) -> pa.Table:
    """Return the Arrow table of mappings; its columns are the keys of all, in order of arrival."""
    columns: dict[str, list[Any]] = {}
    rows = 0
    for record in records:
        if not isinstance(record, Mapping):
            raise DataFileError(
                f"{origin}: record {rows + 1} is {record!r}, but every record must be a mapping."
            )
        for name, value in record.items():
            values = columns.setdefault(str(name), [])
            values.extend([None] * (rows - len(values)))
            values.append(value)
        rows += 1
    for values in columns.values():
        values.extend([None] * (rows - len(values)))
    return pa.table({name: column_of(values) for name, values in columns.items()})


def _no_file(path: Path) -> str:
    if str(path) == "-":
        return "there is no file '-', and tables are not read from standard input. Give a file."
    folder = path.parent
    # without endings, because two short names with the same ending would always look alike
    names = {entry.stem: entry.name for entry in folder.iterdir()} if folder.is_dir() else {}
    close = difflib.get_close_matches(path.stem, names, n=1, cutoff=0.75)
    guess = f" Did you mean {str(folder / names[close[0]])!r}?" if close else " Check the path."
    return f"there is no file {str(path)!r}.{guess}"


def _pick_table(path: Path, table: str | None, tables: list[tuple[str, str]]) -> tuple[str, str]:
    names = [name for _, name in tables]
    if table is None:
        if len(tables) == 1:
            return tables[0]
        raise DataFileError(
            f"{path} has {len(tables)} tables ({', '.join(names) or 'none'}). Name the one to read, as"
            f" in {path}::{names[0] if names else 'table'}."
        )
    for schema, name in tables:
        if table in (name, f"{schema}.{name}"):
            return schema, name
    close = difflib.get_close_matches(table, names, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    raise DataFileError(f"{path} has no table {table!r}.{guess} Its tables are {', '.join(names) or 'none'}.")


def _parse_json(path: Path, block: int, schema: pa.Schema | None = None) -> pa.Table:
    """Parse the file, and parse it again with strings that look like times kept as strings."""
    options = pajson.ParseOptions(explicit_schema=schema, newlines_in_values=False)
    with opened(path) as stream:
        table = pajson.read_json(
            stream, read_options=pajson.ReadOptions(block_size=block), parse_options=options
        )
    if schema is None and any(pa.types.is_timestamp(field.type) for field in table.schema):
        kept = [
            pa.field(field.name, pa.string() if pa.types.is_timestamp(field.type) else field.type)
            for field in table.schema
        ]
        return _parse_json(path, block, pa.schema(kept))
    return table


def _odd_lines(path: Path) -> bool:
    """Whether some line begins with something other than an object."""
    rest = b"\n"
    with opened(path) as stream:
        while part := stream.read(_BLOCK):
            whole, newline, rest = (rest + part.removeprefix(b"\xef\xbb\xbf")).rpartition(b"\n")
            if _ODD_LINE.search(whole + newline):
                return True
            rest = b"\n" + rest
    return _ODD_LINE.search(rest) is not None


def _json_objects(path: Path) -> Iterable[Mapping[str, Any]]:
    """Yield the objects of a file, one per line; an error names the line that has none."""
    with opened(path) as stream:
        content = stream.read()
    for number, line in enumerate(content.decode("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataFileError(
                f"{path}, line {number}: not JSON: {error}. Each line must contain one complete object."
            ) from None
        if not isinstance(record, dict):
            raise DataFileError(
                f"{path}, line {number}: {type(record).__name__} instead of an object with named"
                f' fields, such as {{"id": 1, "name": "Ann"}}.'
            )
        yield record


def _json_array(path: Path) -> list[Any]:
    refuse_encoding(path, "utf-8")
    with opened(path) as stream:
        content = stream.read().decode("utf-8-sig")
    try:
        records: list[Any] = json.loads(content)
    except ValueError as error:
        raise DataFileError(f"{path}: not JSON: {error}. Give an array of objects or one per line.") from None
    return records
