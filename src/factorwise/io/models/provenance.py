"""The provenance of a result: program, versions, configuration, seed and data, as plain JSON values."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

from factorwise import __version__
from factorwise.errors import InvalidArgumentError

PACKAGES = ("numpy", "numba", "scipy")
HIDDEN = "***"

_CREDENTIAL = r"[\w-]*(?:pass(?:word|wd|phrase)?|secret|token|credentials?|auth|key)"
_CREDENTIAL_OPTION = re.compile(rf"-{_CREDENTIAL}", re.IGNORECASE)
_CREDENTIAL_VALUE = re.compile(rf"(\b{_CREDENTIAL}=)[^\s&;]+", re.IGNORECASE)
_ADDRESS_USER = re.compile(r"(\w[\w+.-]*://)[^/@\s]+@")
_ADDRESS_PARAMETERS = re.compile(r"(\w[\w+.-]*://[^?\s]*)\?\S+")


def provenance(
    configuration: Mapping[str, Any] | None = None,
    seed: int | None = None,
    data: Iterable[str | os.PathLike[str]] = (),
) -> dict[str, Any]:
    """Return the record that goes into a saved model.

    It contains only what determines the result: the same input, settings and seed always give the same
    record. Paths are reduced to file names.

    configuration
        Settings that determine the result, as plain values.
    seed
        The seed of the run.
    data
        Input files; each is recorded by name, size and checksum.
    """
    return {
        "versions": versions(),
        "platform": sysconfig.get_platform(),
        "configuration": _plain(configuration or {}),
        "seed": seed,
        "data": [fingerprint(path) for path in data],
    }


def public_command(words: Sequence[str]) -> list[str]:
    """Return a command line without private information.

    Absolute paths are reduced to file names; values of options that may be credentials, and user names,
    passwords and parameters in addresses, are replaced by ``***``.
    """
    public: list[str] = []
    hidden = False
    for word in words:
        public.append(HIDDEN if hidden else _public_word(word))
        hidden = _CREDENTIAL_OPTION.fullmatch(word) is not None
    return public


def public_name(path: str) -> str:
    """Return the last part of a path or address, without folder, user, host or parameters."""
    return re.sub(r"\?.*?(?=::|$)", "", PurePath(path).name) if "://" in path else PurePath(path).name


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str | None]:
    """Return the versions of factorwise, Python and ``packages`` without importing them; None if absent."""
    versions: dict[str, str | None] = {
        "factorwise": __version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def fingerprint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return name, size in bytes and SHA-256 of a file."""
    file = Path(path)
    if not file.is_file():
        raise InvalidArgumentError(
            f"data must be files that can be read, but {str(path)!r} is not one. Of a folder, give the"
            " files that were used."
        )
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return {"name": file.name, "bytes": stream.tell(), "sha256": digest.hexdigest()}


def _public_word(word: str) -> str:
    """Hide credentials in a word, and reduce an absolute path, alone or after ``--option=``, to its name."""
    word = _CREDENTIAL_VALUE.sub(rf"\1{HIDDEN}", word)
    word = _ADDRESS_PARAMETERS.sub(rf"\1?{HIDDEN}", _ADDRESS_USER.sub(rf"\1{HIDDEN}@", word))
    option, equals, value = word.rpartition("=")
    return option + equals + (PurePath(value).name if PurePath(value).is_absolute() else value)


def _plain(value: Any) -> Any:
    """Copy nested settings with paths reduced to file names; other values pass as they are."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value.name if isinstance(value, PurePath) else value
