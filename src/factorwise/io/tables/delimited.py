"""Delimited text (CSV and its cousins) as Arrow tables of strings.

Every column is read as text, so that ``007`` stays ``007``; an empty field is a missing value. The delimiter
is the one of ``, ; tab |`` that cuts the first records into the largest constant number of fields. Fields may
be quoted, may contain delimiters, quotes and line ends, and may have any length. Text is UTF-8, with or
without a BOM, or UTF-16 with one; any other encoding must be named.

The fast reader says little about errors, so a refused file is read again slowly to find the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.csv as pacsv

from factorwise.errors import DataFileError
from factorwise.io.file_kinds import EncodingError, known_encoding, refuse_other_kind
from factorwise.io.tables.names import refuse_repeated, require_columns

_DELIMITERS = (",", "\t", ";", "|")
_SNIFFED = 50  # records that are read to find the delimiter
_HEAD = 1 << 16  # bytes of the file in which they lie
_BLOCK = 1 << 24  # bytes parsed at a time, unless a record is longer
_LARGEST_BLOCK = (1 << 31) - 1
_GZIP = b"\x1f\x8b"
_BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def read_delimited(path: Path, columns: Sequence[str] | None, encoding: str | None) -> pa.Table:
    """Return the Arrow table of a delimited file, with the given ``columns`` or all (None)."""
    encoding = _encoding(path, encoding)
    try:
        head = _head(path, encoding)
    except UnicodeError:
        refuse_encoding(path, encoding)
        raise
    if not head.strip():
        raise DataFileError(f"{path}: the file is empty. A header line with column names must come first.")
    delimiter = sniff_delimiter(head)
    names = _header(path, head, delimiter, encoding)
    refuse_repeated(names, str(path))
    if columns is not None:
        require_columns(columns, names, str(path))
    try:
        table = _parse(path, names, columns, delimiter, encoding)
    except (pa.ArrowInvalid, UnicodeError) as error:
        _explain(path, names, delimiter, encoding, error)
    _refuse_open_quote(path, table, names, delimiter, encoding)
    return table


@contextmanager
def opened(path: Path) -> Iterator[pa.NativeFile]:
    """Open a file for bytes, unpacked if it is gzip, whatever its ending."""
    with path.open("rb") as stream:
        packed = stream.read(2) == _GZIP
    try:
        with pa.OSFile(str(path), "rb") as raw:
            if packed:
                with pa.CompressedInputStream(raw, "gzip") as unpacked:
                    yield unpacked
            else:
                yield raw
    except OSError as error:
        if packed:
            raise DataFileError(
                f"{path}: the file cannot be unpacked: {error}. Check that it is complete."
            ) from error
        raise


def sniff_delimiter(head: str) -> str:
    """Return the delimiter that cuts the first records of ``head`` into most fields, all the same number."""
    best, most = ",", 1
    for delimiter in _DELIMITERS:
        rows = list(islice(_records(io.StringIO(head, newline=""), delimiter), _SNIFFED + 1))
        rows = rows[:-1] if len(rows) > 1 else rows  # the last one may be truncated
        lengths = {len(row) for row in rows if row}
        width = len(rows[0]) if rows else 1
        if width > most and (len(lengths) == 1 or most == 1):
            best, most = delimiter, width
    return best


def decoding_problem(path: Path, encoding: str = "utf-8") -> tuple[int, str] | None:
    """Return the line of the first bytes that are not valid in ``encoding``, and these bytes."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with opened(path) as stream:
        while True:
            block = stream.read(_BLOCK)
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(encoding, errors="ignore").count("\n")
                return line + before, error.object[error.start : error.end].hex(" ")
            except UnicodeError:  # without the BOM of such an encoding
                return line, block[:2].hex(" ")
            if not block:
                return None


def refuse_encoding(path: Path, encoding: str) -> None:
    """Raise an error that names the line, if the file is not text in ``encoding``."""
    problem = decoding_problem(path, encoding)
    if problem is not None:
        _refuse_other_kind(path)
        line, bad_bytes = problem
        raise EncodingError(
            f"{path}, line {line}: the bytes {bad_bytes} are not text in {encoding}.",
            "Name the file's encoding, for example encoding='cp1252' or encoding='latin-1', or convert the"
            " file to UTF-8.",
        )


def _refuse_other_kind(path: Path) -> None:
    with opened(path) as stream:
        refuse_other_kind(stream.read(16), str(path), "a table in text, Parquet or DuckDB")


def _encoding(path: Path, requested: str | None) -> str:
    with opened(path) as stream:
        start = stream.read(4)
    if requested is None:
        return next((name for bom, name in _BOMS.items() if start.startswith(bom)), "utf-8")
    codec = known_encoding(requested)
    if codec is None:
        raise DataFileError(
            f"encoding={requested!r} is not known. Give one of Python's encodings, such as 'utf-8',"
            " 'utf-16', 'latin-1' or 'cp1252'."
        )
    return "utf-8" if codec == "utf-8-sig" else codec


def _head(path: Path, encoding: str) -> str:
    """Return the first characters of the file, with invalid bytes replaced."""
    with opened(path) as stream:
        start = stream.read(_HEAD)
    text: str = codecs.getincrementaldecoder(encoding)(errors="replace").decode(start)
    return text.removeprefix("\ufeff")


def _header(path: Path, head: str, delimiter: str, encoding: str) -> list[str]:
    names = next((row for row in _records(io.StringIO(head, newline=""), delimiter) if row), [])
    if any("\ufffd" in name for name in names):
        refuse_encoding(path, encoding)
    if any("\0" in name for name in names):
        _refuse_other_kind(path)
        raise EncodingError(
            f"{path}: the header line contains NUL characters, so this is not delimited text in {encoding}.",
            "Name its encoding, such as encoding='utf-16-le', or give a CSV, Parquet or JSON lines file.",
        )
    return names


def _records(stream: io.TextIOBase, delimiter: str) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    return csv.reader(stream, delimiter=delimiter)


def _parse(
    path: Path, names: Sequence[str], columns: Sequence[str] | None, delimiter: str, encoding: str
) -> pa.Table:
    """Read with the smallest block that no record exceeds."""
    block = _BLOCK
    convert = pacsv.ConvertOptions(
        column_types={name: pa.string() for name in names},
        strings_can_be_null=True,
        null_values=[""],
        include_columns=None if columns is None else list(columns),
    )
    while True:
        options = pacsv.ReadOptions(block_size=block, encoding="utf8" if encoding == "utf-8" else encoding)
        parse = pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        try:
            with opened(path) as stream:
                return pacsv.read_csv(
                    stream, read_options=options, parse_options=parse, convert_options=convert
                )
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block == _LARGEST_BLOCK:
                raise
            block = min(block * 8, _LARGEST_BLOCK)


def _explain(path: Path, names: Sequence[str], delimiter: str, encoding: str, error: Exception) -> NoReturn:
    """Raise an error that names the line at which the fast reader failed."""
    refuse_encoding(path, encoding)
    with opened(path) as stream:
        reader = csv.reader(codecs.getreader(encoding)(stream), delimiter=delimiter)
        before = 0
        for row in reader:
            if row and len(row) != len(names):
                raise DataFileError(
                    f"{path}, line {before + 1}: {len(row)} fields where the header has {len(names)}"
                    f" (delimiter {delimiter!r}): {_shown(delimiter.join(row))}."
                    " Quote fields that hold the delimiter or a line end, and double the quotes inside."
                ) from error
            before = reader.line_num
    raise DataFileError(
        f"{path}: the file could not be read: {error}. Check that it is a table in text: a line of column"
        " names, then a line for each record."
    ) from error


def _refuse_open_quote(
    path: Path, table: pa.Table, names: Sequence[str], delimiter: str, encoding: str
) -> None:
    """Refuse a file in which a quote that is never closed swallowed the rest of the file."""
    last = names[-1]
    if not table.num_rows or last not in table.column_names or encoding != "utf-8":
        return
    value = table.column(last)[-1].as_py() or ""
    if value.endswith("\n") and not value.strip().endswith('"') and not _ends_in_quote(path):
        raise DataFileError(
            f"{path}: the quote that opens the last field of the last record is never closed;"
            f" it begins {_shown(value)}. Close it, or double the quotes that are part of a field."
        )


def _ends_in_quote(path: Path) -> bool:
    end = b""
    with opened(path) as stream:
        while block := stream.read(_BLOCK):
            end = (end + block)[-64:]
    return end.rstrip().endswith(b'"')


def _shown(text: str, longest: int = 60) -> str:
    return repr(text if len(text) <= longest else text[: longest - 3] + "...")
