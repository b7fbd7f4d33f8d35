"""Scratch folders that are always removed, even those of processes that were killed.

A process holds a lock on a file in its scratch folder, which the system releases when the process ends in any
way. Creating a scratch folder removes those beside it that are not locked. Process numbers would not work:
they are reused, and two containers that share a folder number their processes separately.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

PREFIX = "factorwise-scratch-"
LOCK = "lock"


@contextmanager
def scratch_folder(parent: str | Path | None = None) -> Iterator[Path]:
    """Create a folder below ``parent`` or in the system's own place; the context removes it."""
    location = Path(tempfile.gettempdir() if parent is None else parent)
    remove_abandoned(location)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=location) as created, _held(Path(created)):
        yield Path(created)


def remove_abandoned(parent: Path) -> None:
    """Remove scratch folders that ended processes left behind, as far as they are ours."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            with (folder / LOCK).open("r+b") as lock:
                if _locked(lock):
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # it belongs to somebody else, is just being created, or is gone by now
            continue


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder.

    The folder gets its name only when it is locked, so that no other process can take it.
    """
    with (folder / f"{LOCK}.new").open("w+b") as lock:
        if _locked(lock):
            Path(lock.name).rename(folder / LOCK)
        yield


def _locked(file: BinaryIO) -> bool:
    """Lock a file until it is closed; return whether that succeeded."""
    if sys.platform == "win32":
        return False  # an open file cannot be removed there, so abandoned folders stay
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
