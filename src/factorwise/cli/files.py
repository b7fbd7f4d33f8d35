"""Files that verbs read and write: errors of the system told with a remedy, standard input and output too."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from factorwise.errors import DataFileError, EmptyWorldError, InvalidArgumentError
from factorwise.io.atomic import atomic_text

STANDARD = "-"  # standard input or output in place of a file


def shown(path: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if path == STANDARD else path


def check_target(option: str, path: Path, *inputs: str | Path | None) -> None:
    """Refuse a file that could not be written or is an input, before work is spent on its content."""
    if any(one is not None and Path(one).exists() and path.exists() and path.samefile(one) for one in inputs):
        raise click.UsageError(f"{option} {str(path)!r} is also read from: give another file.")
    if path.is_dir():
        raise click.UsageError(f"{option} {str(path)!r} is a folder: give the path of a file in it.")
    if not path.resolve().parent.is_dir():
        raise click.UsageError(
            f"{option} {str(path)!r}: the folder {str(path.parent)!r} does not exist. Make it first."
        )


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Tell why a file cannot be read, where a reader leaves that to the system."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataFileError(str(error)) from None
    except OSError as error:
        raise _unreadable(path, error) from error


def read_text(path: Path) -> str:
    """Read a small text file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(str(path), error) from error
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: not text in UTF-8 ({error.reason}). Save it in UTF-8.") from error


@contextmanager
def speaking_of(name: str) -> Iterator[None]:
    """Name the file that an error speaks of, where what found it knows only the content."""
    try:
        yield
    except (DataFileError, EmptyWorldError, InvalidArgumentError) as error:
        raise DataFileError(f"{name}: {error}") from error


@contextmanager
def writing(output: str, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Open the output for text in this encoding; a file appears whole or not at all."""
    if output == STANDARD:
        sys.stdout.flush()
        stream = io.TextIOWrapper(sys.stdout.buffer, encoding=encoding, newline="\n")
        try:
            yield stream
            stream.flush()
        finally:
            stream.detach()
        return
    try:
        with atomic_text(output, encoding=encoding) as file:
            yield file
    except OSError as error:
        raise DataFileError(
            f"{output}: could not be written: {error.strerror or error}. Nothing was written, and a file that"
            " was there is unchanged: check the folder, its permissions and the free space."
        ) from error


def _unreadable(path: str, error: OSError) -> DataFileError:
    return DataFileError(
        f"{path}: cannot be read: {error.strerror or error}. Check the path and its permissions."
    )
