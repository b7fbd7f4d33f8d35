"""Files that verbs read and write: errors of the system told with a remedy, standard input and output too."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from factorwise.cli.tag_options import STANDARD
from factorwise.errors import DataFileError, EmptyWorldError, InvalidArgumentError
from factorwise.io.atomic import atomic_text


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Tell why a file cannot be read, where a reader leaves that to the system."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataFileError(str(error)) from None
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot be read: {error.strerror or error}. Check the path and its permissions."
        ) from error


@contextmanager
def speaking_of(name: str) -> Iterator[None]:
    """Name the file that an error speaks of, where what found it knows only the content."""
    try:
        yield
    except (DataFileError, EmptyWorldError, InvalidArgumentError) as error:
        raise DataFileError(f"{name}: {error}") from error


@contextmanager
def writing(output: str) -> Iterator[TextIO]:
    """Open the output for text in UTF-8; a file appears whole or not at all."""
    if output == STANDARD:
        sys.stdout.flush()
        stream = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
        try:
            yield stream
            stream.flush()
        finally:
            stream.detach()
        return
    try:
        with atomic_text(output) as file:
            yield file
    except OSError as error:
        raise DataFileError(
            f"{output}: could not be written: {error.strerror or error}. Nothing was written, and a file that"
            " was there is unchanged: check the folder, its permissions and the free space."
        ) from error
