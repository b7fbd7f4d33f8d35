"""Files that are written completely or not at all.

The new content goes to a temporary file beside its destination, is flushed to the disk, and only then takes
the destination's name. If anything fails before that, including by Ctrl-C, the old file stays unchanged and
no new file remains.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO


@contextmanager
def atomic_binary(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open ``path`` for bytes that appear under that name only if the block ends without an error.

    A link is followed, and the permissions of a file that is replaced are kept.
    """
    target = Path(os.path.realpath(path))
    mode = _mode_to_keep(target)
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    stream = part.open("xb")
    try:
        with stream:
            yield stream
            stream.flush()
            if mode is not None:
                part.chmod(mode)
            os.fsync(stream.fileno())
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_directory(target.parent)


@contextmanager
def atomic_text(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> Iterator[TextIO]:
    """Open ``path`` for text that appears under that name only if the block ends without an error.

    Lines end in a line feed on every platform.
    """
    with atomic_binary(path) as stream:
        text = io.TextIOWrapper(stream, encoding=encoding, newline="\n")
        try:
            yield text
        finally:
            text.detach()


def _mode_to_keep(target: Path) -> int | None:
    """Return the permissions of the file to be replaced; None if there is none yet."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{str(target)!r} exists and is not a regular file, so it cannot be replaced")
    return stat.S_IMODE(status.st_mode)


def _sync_directory(directory: Path) -> None:
    """Make the new name survive a power failure, if the platform can sync folders."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
