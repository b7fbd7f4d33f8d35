"""Network files of every format: which one a file is in, and errors that name the file."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from factorwise.errors import DataFileError, FactorwiseError, InvalidArgumentError
from factorwise.io.file_kinds import refuse_other_kind
from factorwise.io.networks.bif import parse_bif
from factorwise.io.networks.libdai import parse_fg
from factorwise.io.networks.network import Network
from factorwise.io.networks.uai import parse_evidence, parse_uai
from factorwise.io.networks.xmlbif import parse_xmlbif

#: The formats, and the file endings of each.
FORMATS = {"uai": (".uai",), "bif": (".bif",), "xmlbif": (".xml", ".xmlbif", ".xbif"), "fg": (".fg",)}
MOST_BYTES = 1 << 30  # of an unpacked file

_PARSERS: dict[str, Callable[[str], Network]] = {"uai": parse_uai, "bif": parse_bif, "fg": parse_fg}


def read_network(path: str | os.PathLike[str], *, syntax: str | None = None) -> Network:
    """Read a network from a file, which may be packed with gzip.

    syntax
        "uai", "bif", "xmlbif" or "fg"; by default determined from the ending of the file.
    """
    return parse_network(Path(path).read_bytes(), name=os.fspath(path), syntax=syntax)


def parse_network(content: bytes, *, name: str = "input", syntax: str | None = None) -> Network:
    """Read a network from the bytes of a file.

    name
        For errors, and to determine the format by its ending if none is given.
    syntax
        "uai", "bif", "xmlbif" or "fg".
    """
    form = _format_of(name) if syntax is None else syntax
    if form not in FORMATS:
        raise InvalidArgumentError(f"syntax must be one of {', '.join(FORMATS)}, but {form!r} was given.")
    with _naming(name):
        plain = _unpacked(content)
        return parse_xmlbif(plain) if form == "xmlbif" else _PARSERS[form](_text(plain, "a network"))


def read_evidence(path: str | os.PathLike[str], network: Network) -> dict[int, int]:
    """Read the label number of each observed variable from an evidence file of the UAI competitions."""
    content = Path(path).read_bytes()
    with _naming(os.fspath(path)):
        return parse_evidence(_text(_unpacked(content), "evidence"), network.graph.cardinality)


def _format_of(name: str) -> str:
    """Return the format for the ending of a file."""
    bare = name[:-3] if name.lower().endswith(".gz") else name
    ending = PurePath(bare).suffix.lower()
    for form, endings in FORMATS.items():
        if ending in endings:
            return form
    known = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise DataFileError(
        f"{name}: the ending does not determine the format of the network: use one of {known}, or give"
        " syntax='uai', or bif, xmlbif, fg."
    )


def _unpacked(content: bytes) -> bytes:
    """Unpack content that is packed with gzip."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            plain = stream.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(f"packed with gzip, but damaged: {error}. Get the complete file.") from None
    if len(plain) > MOST_BYTES:
        raise DataFileError(f"unpacks to more than {MOST_BYTES} bytes, the limit for networks.")
    return plain


def _text(content: bytes, wanted: str) -> str:
    """Decode UTF-8 text with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse_other_kind(content, "the file", f"{wanted} as text")
        raise DataFileError(f"not text in UTF-8 ({error.reason}). Save it in UTF-8.") from None


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the file name to errors about its content."""
    try:
        yield
    except FactorwiseError as error:
        raise DataFileError(f"{name}: {error}") from error
