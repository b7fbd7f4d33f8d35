"""Connected components by joining sets."""

from __future__ import annotations

from collections.abc import Iterable


def join_ends(n: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the smallest node of the component of each of ``n`` nodes."""
    part = {node: {node} for node in range(n)}
    for one, two in edges:
        joined = part[one] | part[two]
        part.update(dict.fromkeys(joined, joined))
    return [min(part[node]) for node in range(n)]


def number_roots(smallest: list[int]) -> list[int]:
    """Number components by their smallest nodes, from 0 on."""
    order = sorted(set(smallest))
    return [order.index(node) for node in smallest]
