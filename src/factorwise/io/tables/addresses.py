"""Folders and files by path, or by an address such as ``s3://`` that Arrow or fsspec knows."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from factorwise.errors import DataFileError, InvalidArgumentError, MissingExtraError

POSTGRES = ("postgres://", "postgresql://")
_PASSWORD = re.compile(r"password\s*=|passwd\s*=|secret|token=|\bsig=", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Whether a text is the address of a store rather than a path."""
    return "://" in text


def refuse_credentials(address: str) -> None:
    """Refuse an address that contains a password or a key, because command lines are recorded."""
    parts = urlsplit(address)
    if parts.password or _PASSWORD.search(parts.query):
        where = "PGPASSWORD or ~/.pgpass" if address.startswith(POSTGRES) else "the variables of the store"
        raise InvalidArgumentError(
            f"the address of {parts.hostname or 'a store'} contains a password or a key, and command"
            f" lines are recorded. Leave it out, and set {where}."
        )


def open_address(address: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of an address, and the path in it."""
    if not is_address(address):
        return pafs.LocalFileSystem(), str(Path(address).resolve())
    refuse_credentials(address)
    try:
        located: tuple[pafs.FileSystem, str] = pafs.FileSystem.from_uri(address)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _by_fsspec(address)
    except OSError as error:
        raise DataFileError(
            f"{address}: cannot be reached ({error}). Check the address, the network and your"
            " permissions, or give a folder."
        ) from error
    return located


def _by_fsspec(address: str) -> tuple[pafs.FileSystem, str]:
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError(
            f"{address}: Arrow does not support this kind of address, but fsspec may. Install it with:"
            ' pip install "factorwise[ray]"'
        ) from error
    try:
        files, folder = fsspec.core.url_to_fs(address)
    except (ValueError, ImportError) as error:
        raise DataFileError(
            f"{address}: is not the address of a folder ({error}). Give one such as s3://bucket/run, or"
            " a path."
        ) from error
    return pafs.PyFileSystem(pafs.FSSpecHandler(files)), folder
