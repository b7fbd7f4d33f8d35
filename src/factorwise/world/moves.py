"""Named ways to build diffs of a clustering."""

from __future__ import annotations

from collections.abc import Sequence

from factorwise.errors import DiffError
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.partition import Partition

__all__ = ["merge", "relocate", "retype", "split"]


def relocate(world: Partition, item: int, target: int, *, new_type: int = 0) -> Transfer:
    """Return the diff that moves one item to cluster ``target``; with ``target=NEW`` to a new cluster."""
    return Transfer((int(item),), world.cluster_of(item), int(target), new_type)


def merge(world: Partition, source: int, target: int) -> Transfer:
    """Return the diff that moves all items of ``source`` into ``target``, which keeps its type."""
    if source == target:
        raise DiffError(f"cluster {source} cannot be merged with itself: name two clusters.")
    return Transfer(tuple(world.members(source).tolist()), int(source), int(target))


def split(world: Partition, cluster: int, items: Sequence[int], *, new_type: int = 0) -> Transfer:
    """Return the diff that moves ``items`` from ``cluster`` into a new one; at least one item must stay."""
    if not 0 < len(items) < world.size_of(cluster):
        raise DiffError(
            f"cluster {cluster} has {world.size_of(cluster)} members and {len(items)} were to leave it:"
            " name at least one, and leave at least one."
        )
    return Transfer(tuple(int(item) for item in items), int(cluster), NEW, new_type)


def retype(world: Partition, cluster: int, new: int) -> Retype:
    """Return the diff that gives ``cluster`` another type label."""
    return Retype(int(cluster), world.type_of(cluster), int(new))
