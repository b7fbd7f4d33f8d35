"""The folder in which generated modules and their compiled code are kept between runs."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

from factorwise import __version__
from factorwise.kernels.compile.dependencies import library_digest
from factorwise.kernels.compile.ownership import folder_fault, module_fault

_WARNED: set[Path] = set()  # caches about which this process has warned


class UnsafeCacheWarning(UserWarning):
    """Others could have written to the cache, so its code is not executed."""


def cache_directory() -> Path:
    """Return the folder for compiled code, whether or not it exists.

    ``FACTORWISE_CACHE`` if that is set, else ``factorwise`` in the user's cache folder
    (``XDG_CACHE_HOME``, or ``~/.cache``).
    """
    own = os.environ.get("FACTORWISE_CACHE", "")
    if own:
        return Path(own).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not shared.is_absolute():  # unset, empty or relative, which the XDG specification says to ignore
        shared = Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111  Path.home() fails without a home
    return shared.absolute() / "factorwise"


def usable_cache_directory(name: str, text: str) -> Path:
    """Return a folder to write the generated module ``name`` to, and to import it from.

    It is `cache_directory`, created if necessary. If that cannot be written, if others could have written to
    it, or if it has something other than ``text`` under this name, it is a temporary folder that only this
    user can read and write, because the module and its compiled code will be executed.
    """
    folder = cache_directory()
    if _can_write(folder):
        fault = folder_fault(folder) or module_fault(folder, name, text)
        if not fault:
            return _with_place_for_compiled_code(folder)
        _warn_once(folder, fault)
    folder = _private_temporary_directory()
    if module_fault(folder, name, text):
        folder = _fresh_temporary_directory()
    return _with_place_for_compiled_code(folder)


def unsafe_cache_text(folder: Path, fault: str) -> str:
    """Return why a cache is not used, and what to do about it."""
    return (
        f"The compile cache {folder} is not used, because {fault}; a temporary folder is used instead."
        f" If you trust everything in the cache, make it private with 'chmod 700 {folder}'; otherwise"
        " delete it, or set FACTORWISE_CACHE to a folder that only you can write."
    )


def composed_name(text: str, *, numba: str, numpy: str, llvmlite: str) -> str:
    """Return the name of the module that is generated with this text: a hash of all its code depends on.

    numba, numpy, llvmlite
        Their versions.
    """
    versions = f"{__version__} {sys.version_info[:2]} {numba} {numpy} {llvmlite}"
    digest = hashlib.sha256(f"{library_digest(text)} {versions}\n{text}".encode()).hexdigest()[:24]
    return f"factorwise_composed_{digest}"


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _with_place_for_compiled_code(folder: Path) -> Path:
    """Create the folder in which numba keeps compiled code before numba does, as private as the modules."""
    (folder / "__pycache__").mkdir(mode=0o700, exist_ok=True)
    return folder


def _warn_once(folder: Path, fault: str) -> None:
    if folder not in _WARNED:
        warnings.warn(unsafe_cache_text(folder, fault), UnsafeCacheWarning, stacklevel=2)
        _WARNED.add(folder)


@cache
def _private_temporary_directory() -> Path:
    """Return this user's folder among the temporary ones, or a new one if that is not safe."""
    if hasattr(os, "getuid"):
        folder = Path(tempfile.gettempdir()) / f"factorwise-{os.getuid()}"
        if _can_write(folder):
            found = folder.lstat()
            private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
            if private and found.st_uid == os.getuid():
                return folder
    return _fresh_temporary_directory()


@cache
def _fresh_temporary_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="factorwise-"))
