"""Where generated modules and their compiled code are kept between runs."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from functools import cache
from pathlib import Path

# what generated modules import
_LIBRARY = ("compile/compiler.py", "compile/primitives.py", "numeric/simd.py")


def cache_directory() -> Path:
    """Return the folder for compiled code, whether or not it exists.

    ``FACTORWISE_CACHE`` if that is set, else ``factorwise`` in the user's cache folder
    (``XDG_CACHE_HOME``, or ``~/.cache``).
    """
    own = os.environ.get("FACTORWISE_CACHE", "")
    if own:
        return Path(own).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():  # unset, empty or relative: the XDG specification says to ignore it
        shared = Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111  Path.home() fails without a home
    return shared.absolute() / "factorwise"


def usable_cache_directory() -> Path:
    """Return a folder for compiled code that can be written now.

    `cache_directory`, created if need be; where it cannot be written, a temporary folder that only this
    user can read and write, because code is loaded from it.
    """
    folder = cache_directory()
    if _can_write(folder):
        return folder
    return _private_temporary_directory()


def composed_name(text: str, *, numba: str, numpy: str) -> str:
    """Return the name of the module that is generated with this text: a hash of all its code depends on.

    numba, numpy
        Their versions.
    """
    versions = f"{_library_digest()} {sys.version_info[:2]} {numba} {numpy}"
    digest = hashlib.sha256(f"{versions}\n{text}".encode()).hexdigest()[:24]
    return f"factorwise_composed_{digest}"


@cache
def _library_digest() -> str:
    """Hash the library's own functions that generated text imports: numba does not notice their edits."""
    digest = hashlib.sha256()
    for name in _LIBRARY:
        digest.update((Path(__file__).parents[1] / name).read_bytes())
    return digest.hexdigest()[:16]


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@cache
def _private_temporary_directory() -> Path:
    """Return this user's folder among the temporary ones, or a fresh one where that is not safe."""
    if hasattr(os, "getuid"):
        folder = Path(tempfile.gettempdir()) / f"factorwise-{os.getuid()}"
        if _can_write(folder):
            found = folder.lstat()
            private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
            if private and found.st_uid == os.getuid():
                return folder
    return Path(tempfile.mkdtemp(prefix="factorwise-"))
