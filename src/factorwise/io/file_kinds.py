"""What a file is that was taken for text, by its first bytes."""

from __future__ import annotations

import codecs

from factorwise.errors import DataFileError

#: First bytes of files that are often given in place of another, and what such a file is.
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


#: Encodings of names in the Internet: what is not in them is refused in ways of their own.
_OF_NAMES = ("idna", "punycode")


class EncodingError(DataFileError):
    """A text in another encoding than it was read in, where the reader could be told another.

    fault
        What is wrong, without what to do.
    """

    def __init__(self, fault: str, remedy: str) -> None:
        super().__init__(f"{fault} {remedy}")
        self.fault = fault


def known_encoding(name: str) -> str | None:
    """Return what Python calls an encoding of text; None if there is none of this name."""
    try:
        "a".encode(name)  # also refuses codecs that are not for text
    except (LookupError, ValueError):
        return None
    found = codecs.lookup(name).name
    return None if found in _OF_NAMES else found


def refuse_other_kind(start: bytes, name: str, wanted: str) -> None:
    """Say what a file is whose beginning is ``start``, if it is known not to be text.

    To be called for what could not be read as text: a text may begin with the same letters as some of these.

    wanted
        What is to be given instead.
    """
    for beginning, kind in _BEGINNINGS.items():
        if start.startswith(beginning):
            raise DataFileError(f"{name}: is {kind}, where {wanted} is needed. Give another file.")
