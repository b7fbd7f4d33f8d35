"""Texts that may be given directly or as the path of a file."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TypeVar

from factorwise.errors import DataFileError, InvalidArgumentError

T = TypeVar("T")


def text_or_file(name: str, text: T | PathLike[str]) -> T | str:
    """Return the text, or the content of the file if it is a path; refuse a file name as a text.

    name
        The argument, for messages.
    """
    if isinstance(text, PathLike):
        try:
            return Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataFileError(f"{name}: {text} cannot be read: {why}. Check the path.") from error
    if isinstance(text, str) and "\n" not in text and _is_file(text):
        raise InvalidArgumentError(
            f"{name}={text!r} is the name of a file, but a text is needed: give pathlib.Path({text!r})."
        )
    return text


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Return the content of a file; if it is missing, say what to do."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{fspath(path)}: there is no such file. Check the path and the current folder."
        ) from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with an invalid character
        return False
