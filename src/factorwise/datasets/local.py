"""Data sets outside the project, in the folder that ``FACTORWISE_DATA`` names."""

from __future__ import annotations

import difflib
import os
from pathlib import Path, PurePath

from factorwise.errors import MissingDataError, require

VARIABLE = "FACTORWISE_DATA"


def data_directory() -> Path:
    """Return the folder with the data sets."""
    setting = os.environ.get(VARIABLE, "")
    if not setting:
        raise MissingDataError(
            f"{VARIABLE} is not set, so there is no data directory."
            f" Set it to the folder that holds the data sets: export {VARIABLE}=/path/to/data."
        )
    folder = Path(setting)
    if not os.access(folder, os.R_OK | os.X_OK) or not folder.is_dir():
        raise MissingDataError(
            f"{VARIABLE} is {setting!r}, which is not a readable folder. Set it to the folder that"
            " holds the data sets, or unset it."
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
    entries = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    close = difflib.get_close_matches(part, entries, n=1)
    location = f"{VARIABLE}/{where}" if where else VARIABLE
    guess = f" Did you mean {close[0]!r}?" if close else ""
    shown = ", ".join(entries[:12]) + (", ..." if len(entries) > 12 else "") if entries else "nothing"
    return (
        f"there is no data set {name!r}: {location} has no {part!r}.{guess} It contains {shown}. Put"
        f" the data set there, or set {VARIABLE} to another folder."
    )
