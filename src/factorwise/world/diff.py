"""Diffs of a clustering: immutable descriptions of a change.

One diff covers relocate, merge and split: a set of items leaves one cluster for another, or for a new one.
Relocate moves one item, merge moves all of a cluster, split moves some of it to a new cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

from factorwise.kernels.clusterings import arrays

__all__ = ["NEW", "PartitionDiff", "Retype", "Transfer"]

NEW = arrays.NEW
"""As the target of a transfer: a cluster that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Some or all ``items`` of cluster ``source`` join cluster ``target``.

    items
        Which items move; all in ``source``.
    source, target
        Cluster ids in the world the diff is for; ``target`` may be NEW.
    new_type
        Type label of the cluster when it is new; an existing target keeps its own.
    """

    items: tuple[int, ...]
    source: int
    target: int
    new_type: int = 0


@dataclass(frozen=True, slots=True)
class Retype:
    """Cluster ``cluster`` changes its type label from ``old`` to ``new``."""

    cluster: int
    old: int
    new: int


PartitionDiff = Transfer | Retype
