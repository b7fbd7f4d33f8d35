"""Check that generated code on disk can only have been written by this user.

Generated modules are imported, and numba unpickles the compiled code beside them, so whoever can write these
files determines what the next run executes. They are read only if they belong to this user and nobody else
could have changed them. The functions return the problem in words, or an empty string. On Windows, where
files have no such owner, nothing is checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ENTER = stat.S_IRWXG | stat.S_IRWXO


def folder_fault(folder: Path) -> str:
    """Return what lets others write to an existing ``folder``, or replace it."""
    if not hasattr(os, "getuid"):
        return ""
    return _fault(folder, folder.lstat(), stat.S_IFDIR, exposed=True) or next(_parent_faults(folder), "")


def module_fault(folder: Path, name: str, text: str) -> str:
    """Return why the module ``name`` in ``folder`` must not be imported: its files are not ours.

    Only the files of this module are checked, because no others are read. Missing files have no fault.

    text
        The text that the module must have.
    """
    if not hasattr(os, "getuid"):
        return ""
    module, compiled = folder / f"{name}.py", folder / "__pycache__"
    exposed = _can_be_entered(folder)
    fault = _fault_if_there(module, stat.S_IFREG, exposed)
    if fault:
        return fault
    if module.exists() and module.read_bytes() != text.encode():
        return f"{module} is not what factorwise wrote"
    fault = _fault_if_there(compiled, stat.S_IFDIR, exposed)
    if fault or not compiled.exists():
        return fault
    exposed = exposed and _can_be_entered(compiled)
    faults = (_fault_if_there(file, stat.S_IFREG, exposed) for file in compiled.glob(f"{name}.*"))
    return next(filter(None, faults), "")


def _can_be_entered(folder: Path) -> bool:
    """Whether other users can enter a folder; if not, the modes of files inside do not matter."""
    return bool(folder.lstat().st_mode & _OTHERS_ENTER)


def _fault_if_there(path: Path, kind: int, exposed: bool) -> str:
    try:
        return _fault(path, path.lstat(), kind, exposed)
    except FileNotFoundError:
        return ""


def _fault(path: Path, status: os.stat_result, kind: int, exposed: bool) -> str:
    """Return what is wrong with one file or folder.

    kind
        What it must be, as `stat.S_IFMT` gives it.
    exposed
        Whether other users can reach it, so that its mode matters.
    """
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a symbolic link"
    if stat.S_IFMT(status.st_mode) != kind:
        return f"{path} is not a {'folder' if kind == stat.S_IFDIR else 'file'}"
    if status.st_uid != os.getuid():
        return f"{path} belongs to user {status.st_uid}, and this is user {os.getuid()}"
    if exposed and status.st_mode & _OTHERS_WRITE:
        return f"{path} can be written by other users (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _parent_faults(folder: Path) -> Iterator[str]:
    """Yield the parent folders that let others rename ``folder`` and replace it.

    A sticky folder, such as the temporary one, does not. One that this user's own group may write is
    accepted: on many systems that group has one member, and every folder of the user has this mode.
    """
    for parent in sorted({*folder.parents, *folder.resolve().parents}):
        status = parent.stat()
        theirs = status.st_mode & stat.S_IWOTH
        if status.st_gid != os.getgid():
            theirs |= status.st_mode & stat.S_IWGRP
        if theirs and not status.st_mode & stat.S_ISVTX:
            mode = stat.S_IMODE(status.st_mode)
            yield f"other users can replace it, since they can write {parent} (mode {mode:o})"
