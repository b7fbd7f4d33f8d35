"""Files that verbs read and write, standard input and output included: system errors get a remedy."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from factorwise.errors import (
    CountsError,
    DataFileError,
    EmptyWorldError,
    InvalidArgumentError,
    ModelFileError,
)
from factorwise.io.atomic import atomic_text
from factorwise.io.file_kinds import EncodingError, form_by_ending
from factorwise.io.tables.formats import written_format

if TYPE_CHECKING:  # Arrow takes long to load
    import pyarrow as pa

TABLE = "::"  # between a database and a table of it
STANDARD = "-"  # standard input or output in place of a file

RESOLUTION = "resolution"  # the kind of model files, named here because its own module loads the compiler

#: The group of verbs for each kind of model file.
VERB_OF_KIND = {
    "alignment": "align",
    "chain-crf": "tag",
    "collective": "flows",
    "coreference": "coref",
    RESOLUTION: "resolve",
}


def check_kind(path: Path, kind: str) -> None:
    """Refuse a model file of another kind; the error names the verbs for it."""
    from factorwise.io.models.files import read_model  # loads NumPy, which help does not need

    actual = read_model(path).kind
    if actual != kind:
        group = VERB_OF_KIND.get(actual)
        use = f"Use it with `factorwise {group}`" if group else "See what it holds with `factorwise inspect`"
        raise ModelFileError(
            f"{path}: its kind is {actual!r}, but {kind!r} is needed. {use}, or train one"
            f" with `factorwise {VERB_OF_KIND[kind]} fit`."
        )


def shown(path: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if path == STANDARD else path


def files_among(names: Iterable[str | Path | None]) -> list[str | Path]:
    """Return those inputs of a verb that are files: no standard input, no tables of databases."""
    return [name for name in names if name is not None and Path(name).is_file()]


def check_target(option: str, path: Path, *inputs: str | Path | None) -> None:
    """Refuse a file that could not be written or is an input, before any work is done.

    A model (``--model``) may replace only model files; tables and reports replace any file.
    """
    try:
        _check_target(option, path, inputs)
    except OSError as error:
        raise click.UsageError(f"{option} cannot be used: {error.strerror or error}.") from error


def _check_target(option: str, path: Path, inputs: Sequence[str | Path | None]) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        path.lstat()  # raises if no file can have such a name
    if any(source is not None and _is_same(path, source) for source in inputs):
        if TABLE in str(path):
            raise click.UsageError(f"{option} {str(path)!r} is also an input: give another table.")
        raise click.UsageError(f"{option} {str(path)!r} is also an input: give another file.")
    if path.is_dir():
        raise click.UsageError(f"{option} {str(path)!r} is a folder: give the path of a file in it.")
    if option == "--model":
        from factorwise.io.models.files import may_become_model  # loads NumPy, which help does not need

        if not may_become_model(path):
            raise click.UsageError(
                f"{option} {str(path)!r} is not a model file: give another name, or remove it first."
            )
    if not path.resolve().parent.is_dir():
        raise click.UsageError(
            f"{option} {str(path)!r}: the folder {str(path.parent)!r} does not exist. Create it first."
        )
    if not can_write(path.resolve().parent):
        raise click.UsageError(
            f"{option} {str(path)!r}: the folder {str(path.parent)!r} cannot be written to. Change its"
            " permissions, or give another."
        )


def _is_same(path: Path, source: str | Path) -> bool:
    """Whether two names denote one file, or one table of it; a file stands for all its tables."""
    (file, _, table), (other_file, _, other_table) = _parts(path), _parts(source)
    if table and other_table and table.casefold() != other_table.casefold():
        return False
    try:
        return Path(file).samefile(other_file)
    except OSError:  # one of them does not exist, or has an invalid name: the readers report that
        return False


def _parts(path: str | Path) -> tuple[str, str, str]:
    """Split ``FILE::TABLE``; a name without a table is just a file."""
    file, sign, table = str(path).rpartition(TABLE)
    return (file, sign, table) if sign else (table, "", "")


def can_write(folder: Path) -> bool:
    """Whether files can be created in a folder: permissions alone do not show it, least of all for root."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def check_different(targets: Mapping[str, str | Path | None]) -> None:
    """Refuse one file for two outputs, the second of which would overwrite the first.

    targets
        The file of each option; None if it was not given.
    """
    seen: dict[Path, str] = {}
    for option, path in targets.items():
        if path is None or path == STANDARD:
            continue
        first = seen.setdefault(Path(path).resolve(), option)
        if first != option:
            raise click.UsageError(f"{option} and {first} are both {str(path)!r}: give two files.")


def check_tables(targets: Mapping[str, Path | None]) -> None:
    """Refuse endings of formats in which tables cannot be written."""
    for option, path in targets.items():
        try:
            if path is not None:
                written_format(path)
        except InvalidArgumentError as error:
            raise click.UsageError(f"{option}: {error}") from None


def written_form(output: str, given: str | None, endings: Mapping[str, str], default: str) -> str:
    """Return the form of an output: the one of ``--format``, or the one that its ending stands for."""
    if given is not None or output == STANDARD:
        return given or default
    try:
        return form_by_ending(output, endings, default)
    except InvalidArgumentError as error:
        raise click.UsageError(f"--output: {str(error).removesuffix('.')} with --format.") from None


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn the system's errors of reading a file into errors with a remedy."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and error.errno is None:  # a reader's own message
            raise DataFileError(str(error)) from None
        raise _unreadable(path, error) from error


@contextmanager
def reading_utf8(path: str) -> Iterator[None]:
    """Like `reading`, for a file whose encoding no option of the verb can name."""
    try:
        with reading(path):
            yield
    except EncodingError as error:
        raise DataFileError(f"{error.fault} Convert the file to UTF-8.") from error


def read_text(path: Path) -> str:
    """Read a small text file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(str(path), error) from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: not text in UTF-8 ({error.reason}). Save it in UTF-8.") from error


@contextmanager
def speaking_of(*names: str | None) -> Iterator[None]:
    """Name the files in an error that knows only their content."""
    files = [name for name in names if name is not None]
    try:
        yield
    except (CountsError, DataFileError, EmptyWorldError, InvalidArgumentError) as error:
        if not files or str(error).startswith(tuple(files)):
            raise
        raise DataFileError(f"{' and '.join(files)}: {error}") from error


@contextmanager
def writing(output: str, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Open the output for text in this encoding; a file appears completely or not at all."""
    if output == STANDARD:
        with standard_output(encoding) as stream:
            yield stream
        return
    try:
        with atomic_text(output, encoding=encoding) as file:
            yield file
    except OSError as error:
        raise unwritten(output, error) from error


@contextmanager
def standard_output(encoding: str, errors: str = "strict") -> Iterator[TextIO]:
    """Open standard output for text, and raise an error if not all of it can be written."""
    if sys.stdout is None:
        raise DataFileError("standard output is closed: leave it open, or redirect it to a file.")
    sys.stdout.flush()
    given: Any = getattr(sys.stdout, "buffer", None)
    if given is None:  # a notebook's, or a text in memory: not a file that could be full
        yield sys.stdout
        return
    # without a buffer (PYTHONUNBUFFERED) a full disk truncates a text silently
    binary: Any = given if isinstance(given, io.BufferedIOBase) else io.BufferedWriter(given)
    stream = io.TextIOWrapper(binary, encoding=encoding, errors=errors, newline="\n")
    try:
        yield stream
        stream.flush()
    except OSError as error:
        _give_up_standard_output()
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            raise click.exceptions.Exit(0) from error
        raise DataFileError(
            f"standard output: could not be written: {error.strerror or error}. A part of it may be missing:"
            " check the free space."
        ) from error
    finally:
        stream.detach()
        if binary is not given:
            binary.detach()


def _give_up_standard_output() -> None:
    """Discard what remains to be written, which would be tried again when the process ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


#: Where a verb writes its result, unless that goes to standard output.
output_option = partial(
    click.option,
    "-o",
    "--output",
    default=STANDARD,
    show_default="standard output",
    help="File to write, completely or not at all.",
)

spreadsheet_option = click.option(
    "--for-spreadsheets",
    is_flag=True,
    help="In CSV, put ' before texts that begin with = + - @, which spreadsheets treat as formulas.",
)


def write_output(path: Path, table: pa.Table, *, for_spreadsheets: bool = False) -> None:
    """Write a table in the format of its ending, completely or not at all."""
    from factorwise.io.tables.reading import write_table

    try:
        write_table(path, table, for_spreadsheets=for_spreadsheets)
    except OSError as error:
        raise unwritten(path, error) from error


def write_tables(
    targets: Mapping[str, Path | None],
    tables: Mapping[str, Callable[[], pa.Table]],
    *,
    for_spreadsheets: bool,
) -> list[str]:
    """Write the requested tables, and return the names of all except that of ``--output``.

    targets
        The file of each option; None if it was not given.
    tables
        The function that makes the table of each option, if it can be made.
    """
    wanted = {option: path for option, path in targets.items() if path is not None and option in tables}
    for option, path in wanted.items():
        write_output(path, tables[option](), for_spreadsheets=for_spreadsheets)
    return [path.name for option, path in wanted.items() if option != "--output"]


def written_bytes(path: Path) -> int:
    """Return the size of the file that was written, or of the database into which a table was written."""
    return Path(str(path).rpartition("::")[0] or path).stat().st_size


def unwritten(output: str | Path, error: OSError) -> DataFileError:
    """Return the error for a file that could not be written."""
    return DataFileError(
        f"{output}: could not be written: {error.strerror or error}. A file that was there is unchanged:"
        " check the folder, its permissions and the free space."
    )


def _unreadable(path: str, error: OSError) -> DataFileError:
    name = path if error.filename is None else os.fsdecode(error.filename)
    return DataFileError(
        f"{name}: cannot be read: {error.strerror or error}. Check the path and its permissions."
    )
