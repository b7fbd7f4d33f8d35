"""Lists of values in messages: the first of them, and how many more there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def some(values: Iterable[object], most: int = 3) -> str:
    """Name the first ``most`` different values.

    >>> some(["a", "b", "a", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    different = list(dict.fromkeys(map(repr, values)))
    more = f" and {len(different) - most} more" if len(different) > most else ""
    return ", ".join(different[:most]) + more


def difference(expected: Sequence[str], actual: Sequence[str]) -> str:
    """Say which values are missing and which are extra, or that only the order differs.

    >>> difference(["name", "born"], ["name", "dob"])
    "'born' is missing and 'dob' is extra"
    """
    parts = []
    for names, reference, verdict in ((expected, actual, "missing"), (actual, expected, "extra")):
        odd = [name for name in names if name not in reference]
        if odd:
            parts.append(f"{some(odd, 8)} {'is' if len(odd) == 1 else 'are'} {verdict}")
    return " and ".join(parts) or f"the order is {some(actual)} instead of {some(expected)}"
