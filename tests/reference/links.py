"""Links laid out by item, from the definition."""

from __future__ import annotations

from collections.abc import Sequence


def link_rows(n: int, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return where the links of each item start, whom they lead to, and the pairs they belong to."""
    rows: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for k, (one, two) in enumerate(zip(first, second, strict=True)):
        rows[one].append((two, k))
        rows[two].append((one, k))
    start = [sum(len(row) for row in rows[:item]) for item in range(n + 1)]
    return start, [two for row in rows for two, _ in row], [k for row in rows for _, k in row]
