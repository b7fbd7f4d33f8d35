"""Data sets that live outside the project, under the folder named by ``FACTORWISE_DATA``."""

from __future__ import annotations

import difflib
import os
from pathlib import Path, PurePath

from factorwise.errors import MissingDataError, require

VARIABLE = "FACTORWISE_DATA"


def data_directory() -> Path:
    """Return the folder that holds the data sets."""
    given = os.environ.get(VARIABLE, "")
    if not given:
        raise MissingDataError(
            f"{VARIABLE} is not set, so there is no data directory."
            f" Set it to the folder that holds the data sets: export {VARIABLE}=/path/to/data."
        )
    folder = Path(given)
    if not os.access(folder, os.R_OK | os.X_OK) or not folder.is_dir():
        raise MissingDataError(
            f"{VARIABLE} is {given!r}, which is not a folder that can be read."
            " Set it to the folder that holds the data sets, or unset it."
        )
    return folder


def find_data(name: str) -> Path:
    """Return the file or folder called ``name``, as in ``er/cora``, inside the data directory."""
    parts = PurePath(name).parts
    inside = bool(parts) and not PurePath(name).is_absolute() and ".." not in parts
    require(inside, "name", name, "a path inside the data directory, such as 'er/cora'")
    folder = data_directory()
    for depth, part in enumerate(parts):
        if not (folder / part).exists():
            raise MissingDataError(_missing(name, "/".join(parts[:depth]), part, folder))
        folder /= part
    return folder


def _missing(name: str, where: str, part: str, folder: Path) -> str:
    found = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    close = difflib.get_close_matches(part, found, n=1)
    place = f"{VARIABLE}/{where}" if where else VARIABLE
    guess = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(found[:12]) + (", ..." if len(found) > 12 else "") if found else "nothing"
    return (
        f"there is no data set {name!r}: {place} has no {part!r}.{guess}"
        f" It holds {shown}. Put the set there, or point {VARIABLE} elsewhere."
    )
