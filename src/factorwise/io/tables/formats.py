"""Formats of tables in files, by the endings of their names; this module loads no other library."""

from __future__ import annotations

from pathlib import Path

from factorwise.errors import InvalidArgumentError

_JSON_ENDINGS = {".jsonl", ".ndjson", ".json"}
_PARQUET_ENDINGS = {".parquet", ".pq"}
_DUCKDB_ENDINGS = {".duckdb", ".ddb", ".db"}
_SQLITE_ENDINGS = {".sqlite", ".sqlite3"}
_EXCEL_ENDINGS = {".xlsx"}
_PACKED = ".gz"


def table_format(path: Path) -> str:
    """Return ``csv``, ``parquet``, ``json``, ``duckdb``, ``sqlite`` or ``excel``."""
    ending = _ending(path)
    if ending in _PARQUET_ENDINGS:
        return "parquet"
    if ending in _JSON_ENDINGS:
        return "json"
    if ending in _SQLITE_ENDINGS:
        return "sqlite"
    if ending in _EXCEL_ENDINGS:
        return "excel"
    return "duckdb" if ending in _DUCKDB_ENDINGS else "csv"


def written_format(path: Path) -> str:
    """Return the format in which a table is written; refuse endings that do not determine one."""
    base, separator, name = str(path).rpartition("::")
    if separator:
        form = table_format(Path(base))
        if form in ("duckdb", "sqlite") and name:
            return form
        raise InvalidArgumentError(
            f"{str(path)!r} cannot be written: '::' names a table of a file that ends in .duckdb or .sqlite."
        )
    form = table_format(path)
    known = {"csv": _ending(path) == ".csv", "parquet": not is_packed(path), "json": True}
    if not known.get(form, False):
        raise InvalidArgumentError(
            f"{str(path)!r} cannot be written: tables are written as CSV, Parquet or JSON lines. Give a name"
            " that ends in .csv, .csv.gz, .parquet, .pq, .jsonl, .ndjson or .json, the last three also with"
            " .gz, or FILE.duckdb::TABLE or FILE.sqlite::TABLE."
        )
    return form


def is_packed(path: Path) -> bool:
    """Whether a file is packed with gzip, by its name."""
    return path.suffix.lower() == _PACKED


def _ending(path: Path) -> str:
    """Return the last ending except ``.gz``, in lower case."""
    endings = [suffix.lower() for suffix in path.suffixes]
    return endings[-2] if len(endings) > 1 and endings[-1] == _PACKED else (endings or [""])[-1]
