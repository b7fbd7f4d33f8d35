"""Names of columns: checks, and quoting for SQL."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

from factorwise.errors import DataFileError


def require_columns(wanted: Iterable[str], known: Sequence[str], origin: str, remedy: str = "") -> None:
    """Refuse a missing column; the error names the closest existing one.

    remedy
        What to do, if the user did not choose the name of the column.
    """
    for name in wanted:
        if name not in known:
            close = [candidate for candidate in known if candidate.casefold() == name.casefold()]
            close = close or difflib.get_close_matches(name, known, n=1)
            guess = f" Did you mean {close[0]!r}?" if close else ""
            raise DataFileError(
                f"{origin} has no column {name!r}.{guess} Its columns are {', '.join(map(repr, known))}."
                f"{' ' if remedy else ''}{remedy}"
            )


def refuse_repeated(names: Sequence[str], origin: str) -> None:
    """Refuse a table in which two columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        positions = [position for position, name in enumerate(names, 1) if name == twice[0]]
        raise DataFileError(
            f"{origin} has {len(positions)} columns called {twice[0]!r} (number {_listed(positions)})."
            " Give every column its own name."
        )


def quoted(identifier: str) -> str:
    """Quote the name of a table or column for SQL, whatever its characters."""
    return '"' + identifier.replace('"', '""') + '"'


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(str(number) for number in numbers)
