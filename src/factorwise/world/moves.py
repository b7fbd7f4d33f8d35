"""Named ways to build diffs of a clustering."""

from __future__ import annotations

from collections.abc import Sequence

from factorwise.errors import DiffError
from factorwise.world.diff import NEW, Retype, Transfer
from factorwise.world.partition import Partition


def relocate(world: Partition, item: int, target: int, *, new_type: int = 0) -> Transfer:
    """Move one item to cluster ``target``, or to a cluster of its own with ``target=NEW``."""
    return Transfer((int(item),), world.cluster_of(item), int(target), new_type)


def merge(world: Partition, source: int, target: int) -> Transfer:
    """Move all of ``source`` into ``target``, whose type is kept."""
    if source == target:
        raise DiffError(f"cluster {source} cannot be merged with itself: name two clusters.")
    return Transfer(tuple(world.members(source).tolist()), int(source), int(target))


def split(world: Partition, cluster: int, items: Sequence[int], *, new_type: int = 0) -> Transfer:
    """Move ``items`` out of ``cluster`` into a new one; at least one must stay."""
    if not 0 < len(items) < world.size_of(cluster):
        raise DiffError(
            f"cluster {cluster} has {world.size_of(cluster)} members and {len(items)} of them were named:"
            " a split moves at least one and leaves at least one."
        )
    return Transfer(tuple(int(item) for item in items), int(cluster), NEW, new_type)


def retype(world: Partition, cluster: int, new: int) -> Retype:
    """Give ``cluster`` another type label."""
    return Retype(int(cluster), world.type_of(cluster), int(new))
