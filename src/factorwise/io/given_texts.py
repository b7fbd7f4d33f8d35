"""Texts that may be given as they are, or as the path of a file that holds them."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TypeVar

from factorwise.errors import DataFileError, InvalidArgumentError

T = TypeVar("T")


def text_or_file(name: str, given: T | PathLike[str]) -> T | str:
    """Return what was given, or what is in the file if it is a path; refuse the name of a file as a text.

    name
        The argument, for messages.
    """
    if isinstance(given, PathLike):
        try:
            return Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataFileError(f"{name}: {given} cannot be read: {why}. Check the path.") from error
    if isinstance(given, str) and "\n" not in given and _is_file(given):
        raise InvalidArgumentError(
            f"{name}={given!r} is the name of a file, where a text is taken: give pathlib.Path({given!r})."
        )
    return given


def read_bytes(path: str | PathLike[str]) -> bytes:
    """Return what a file holds; say what to do where it is not there."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{fspath(path)}: there is no such file. Check the path and the current folder."
        ) from None


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a character that none has
        return False
