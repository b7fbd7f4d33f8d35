"""Recognise the kind of a file by its first bytes or by the ending of its name."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from pathlib import PurePath

from factorwise.errors import DataFileError, InvalidArgumentError

#: First bytes of files that are often given by mistake, and what such a file is.
_BEGINNINGS = {
    b"PK\x03\x04": "a zip archive, as model files and workbooks of spreadsheets are",
    b"\x89PNG\r\n": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF87a": "a picture",
    b"GIF89a": "a picture",
    b"%PDF-": "a PDF document",
    b"PAR1": "a Parquet file",
    b"\x1f\x8b": "packed with gzip",
    b"\xd0\xcf\x11\xe0": "a document or workbook of an office program",
}


#: Internet names of encodings: other codecs raise errors of their own.
_OF_NAMES = ("idna", "punycode")


class EncodingError(DataFileError):
    """A text is in another encoding than it was read in; the caller may name another.

    fault
        What is wrong, without what to do.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(f"{fault} {remedy}")
        self.fault = fault


def known_encoding(name: str) -> str | None:
    """Return Python's name of an encoding of text; None if there is none of this name."""
    try:
        "a".encode(name)  # also refuses codecs that are not for text
    except (LookupError, ValueError):
        return None
    codec = codecs.lookup(name).name
    return None if codec in _OF_NAMES else codec


def refuse_other_kind(start: bytes, name: str, wanted: str) -> None:
    """If the beginning ``start`` shows that a file is not text, raise an error that says what it is.

    Call it for files that could not be read as text, because a text may begin with the same letters as some
    of these.

    wanted
        What to give instead.
    """
    for beginning, kind in _BEGINNINGS.items():
        if start.startswith(beginning):
            raise DataFileError(f"{name}: is {kind}, where {wanted} is needed. Give another file.")


def form_by_ending(path: str | os.PathLike[str], endings: Mapping[str, str], default: str) -> str:
    """Return the format that the ending of a file names; refuse endings that name none.

    endings
        The form that each ending stands for, in lower case. Longer endings come first where one is the end
        of another.
    default
        The form of a file whose name has no ending.
    """
    name = PurePath(path).name.lower()
    if not PurePath(name).suffix:
        return default
    for ending, form in endings.items():
        if name.endswith(ending):
            return form
    *others, last = endings
    known = f"{', '.join(others)} or {last}" if others else last
    raise InvalidArgumentError(
        f"{os.fspath(path)!r} does not say in which format to write. Give a name that ends in {known}, or the"
        " format."
    )
