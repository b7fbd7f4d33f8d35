"""What made a result: program, versions, configuration, seed and data, as plain JSON values."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from factorwise import __version__
from factorwise.errors import InvalidArgumentError

PACKAGES = ("numpy", "numba", "scipy")


def provenance(
    command: Sequence[str] | None = None,
    configuration: Mapping[str, Any] | None = None,
    seed: int | None = None,
    data: Iterable[str | os.PathLike[str]] = (),
) -> dict[str, Any]:
    """Return the record that goes into a saved model.

    Paths are reduced to file names, so that the record tells nothing about the machine's folders.

    command
        Words of the command line; by default those of this process.
    configuration
        Settings that decided the result, as plain values.
    seed
        The seed of the run.
    data
        Files the result was made from; each is recorded by name, size and checksum.
    """
    words = sys.argv if command is None else command
    return {
        "versions": versions(),
        "platform": sysconfig.get_platform(),
        "command": [_without_folders(word) for word in words],
        "configuration": _plain(configuration or {}),
        "seed": seed,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": [fingerprint(path) for path in data],
    }


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str | None]:
    """Return the versions of factorwise, Python and ``packages``, importing none of them; None if absent."""
    found: dict[str, str | None] = {
        "factorwise": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def fingerprint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return name, size in bytes and SHA-256 of a file."""
    file = Path(path)
    if not file.is_file():
        raise InvalidArgumentError(
            f"data must be files that can be read, but {str(path)!r} is not one."
            " For a folder, give the files in it that were used."
        )
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return {"name": file.name, "bytes": stream.tell(), "sha256": digest.hexdigest()}


def _without_folders(word: str) -> str:
    """Reduce an absolute path, alone or after ``--option=``, to its file name."""
    option, equals, value = word.rpartition("=")
    return option + equals + (PurePath(value).name if PurePath(value).is_absolute() else value)


def _plain(value: Any) -> Any:
    """Copy nested settings with paths reduced to file names; other values pass as they are."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.name if isinstance(value, PurePath) else value
