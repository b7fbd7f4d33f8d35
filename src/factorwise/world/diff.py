"""Diffs of a clustering: immutable descriptions of a change.

One class covers relocate, merge and split: some items leave their cluster for another cluster or a new one.
Relocate moves one item, merge moves all items of a cluster, and split moves some items to a new cluster.
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
        The items that move, all of them in ``source``.
    source, target
        Cluster ids in the world that the diff applies to; ``target`` may be NEW.
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
