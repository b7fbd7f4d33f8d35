"""Scratch folders that nothing is left of: not even of processes that were killed.

A process holds a lock on a file in its scratch folder, which the system lets go of when the process ends in
whatever way. Whoever makes a scratch folder next to one that nobody holds removes that one first. Numbers of
processes would not do: they are used again, and two containers that share a folder count for themselves.
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
    """Make a folder below ``parent`` or in the system's own place; it is gone at the end of the context."""
    place = Path(tempfile.gettempdir() if parent is None else parent)
    remove_abandoned(place)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place) as made, _held(Path(made)):
        yield Path(made)


def remove_abandoned(parent: Path) -> None:
    """Remove the scratch folders whose processes have ended without doing so, as far as they are ours."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            with (folder / LOCK).open("r+b") as lock:
                if _locked(lock):
                    shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # it is somebody else's, just being made, or gone by now
            continue


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; it gets its name when it is held, so that nobody else can take it before."""
    with (folder / f"{LOCK}.new").open("w+b") as lock:
        if _locked(lock):
            Path(lock.name).rename(folder / LOCK)
        yield


def _locked(file: BinaryIO) -> bool:
    """Lock a file until it is closed; whether that could be done."""
    if sys.platform == "win32":
        return False  # an open file cannot be removed there, so abandoned folders stay
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
