"""Clusterings from the definition: a set of clusters, each a set of items with a type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Cluster = tuple[frozenset[int], int]
Clustering = frozenset[Cluster]


def fill_partition(labels: Sequence[int], types: Sequence[int]) -> Clustering:
    """Group the items with equal labels; ``types[c]`` is the type of the items labelled c."""
    return frozenset(
        (frozenset(item for item, label in enumerate(labels) if label == cluster), types[cluster])
        for cluster in set(labels)
    )


def transfer(
    clustering: Clustering, items: Iterable[int], target: frozenset[int] | None, new_type: int
) -> Clustering:
    """Move ``items`` of one cluster to the cluster ``target``, or to a new one of ``new_type``."""
    moving = frozenset(items)
    changed: set[Cluster] = set()
    for members, kind in clustering:
        if members == target:
            changed.add((members | moving, kind))
        elif members - moving:
            changed.add((members - moving, kind))
    if target is None:
        changed.add((moving, new_type))
    return frozenset(changed)
