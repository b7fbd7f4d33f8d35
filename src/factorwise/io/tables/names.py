"""Names of columns: what is refused about them, and how SQL must write them."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

from factorwise.errors import DataFileError


def require_columns(wanted: Iterable[str], known: Sequence[str], origin: str, remedy: str = "") -> None:
    """Refuse a column that is not there, with the nearest that is.

    remedy
        What to do, where the name of the column is not the user's choice.
    """
    for name in wanted:
        if name not in known:
            close = [other for other in known if other.casefold() == name.casefold()]
            close = close or difflib.get_close_matches(name, known, n=1)
            guess = f" Did you mean {close[0]!r}?" if close else ""
            raise DataFileError(
                f"{origin} has no column {name!r}.{guess} Its columns are {', '.join(map(repr, known))}."
                f"{' ' if remedy else ''}{remedy}"
            )


def refuse_repeated(names: Sequence[str], origin: str) -> None:
    """Refuse a table in which two columns have one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        places = [place for place, name in enumerate(names, 1) if name == twice[0]]
        raise DataFileError(
            f"{origin} has {len(places)} columns called {twice[0]!r} (number {_listed(places)})."
            " Give every column a name of its own."
        )


def quoted(identifier: str) -> str:
    """Quote a name of a table or column for SQL, whatever characters it has."""
    return '"' + identifier.replace('"', '""') + '"'


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(str(number) for number in numbers)
