"""Moves over clusterings: relocate, merge, split, split-merge, retype.

Every move but the last draws a transfer of m items from a cluster of s to a cluster of t (t = 0: a new one),
and says with what probability it draws one *literal* transfer, as a function of a few counts.
`partition_mixture` makes proposals of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.rng import Stream
from factorwise.world.diff import NEW, PartitionDiff, Retype, Transfer
from factorwise.world.pairs import both_ends
from factorwise.world.partition import Partition


class Counts(NamedTuple):
    """What the probability of a transfer depends on.

    items, clusters, splittable, types
        Of the world it starts from: n, number of clusters, of clusters of two or more, of type labels.
    source, moving, target
        Sizes s, m and t; a target of 0 is a new cluster.
    peers
        Items in the block of an item that moves; all items without blocking.
    links
        For a single item that moves: the share of its candidates that are in the target.
    """

    items: int
    clusters: int
    splittable: int
    types: int
    source: int
    moving: int
    target: int
    peers: int
    links: float = 0.0


class PartitionMove(Protocol):
    """One way to draw transfers."""

    def available(self, counts: Counts) -> bool:
        """Whether there is anything to propose in a world with these counts."""
        ...

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw one literal transfer; None where the draw hits one that changes nothing."""
        ...

    def log_probability(self, counts: Counts) -> float:
        """Log-probability of drawing one literal transfer with these counts."""
        ...


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0.0 else -math.inf


class _AnyWorld:
    def available(self, counts: Counts) -> bool:
        return counts.items >= 2


@dataclass(frozen=True, slots=True)
class RelocateToCluster:
    """Move a random item to one of the other clusters, all equally likely."""

    def available(self, counts: Counts) -> bool:
        """Two clusters are needed."""
        return counts.clusters >= 2

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw an item, then a cluster that is not its own."""
        item = stream.below(world.n_items)
        source = world.cluster_of(item)
        position = stream.below(world.n_clusters - 1)
        position += (
            position >= world.arrays.clusters["live_at"][source]
        )  # the clusters without its own, in order
        return Transfer((item,), source, int(world.arrays.clusters["live"][position]))

    def log_probability(self, counts: Counts) -> float:
        """1 / n times 1 / (clusters - 1)."""
        if counts.moving != 1 or counts.target == 0:
            return -math.inf
        return -math.log(counts.items) - math.log(counts.clusters - 1)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Groups of items that may be together at all; clusters must not reach across them.

    start, item, of : int64[blocks + 1], int32[n], int32[n]
        The items of block b are ``item[start[b]:start[b + 1]]``; ``of[i]`` is the block of item i.
    """

    start: NDArray[np.int64]
    item: NDArray[np.int32]
    of: NDArray[np.int32]

    @classmethod
    def from_keys(cls, keys: ArrayLike) -> Blocks:
        """Put items with equal keys into one block."""
        of = np.unique(np.asarray(keys), return_inverse=True)[1].astype(np.int32)
        start = np.zeros(int(of.max()) + 2, dtype=np.int64)
        np.cumsum(np.bincount(of), out=start[1:])
        return cls(start, np.argsort(of, kind="stable").astype(np.int32), of)

    def check(self, world: Partition) -> None:
        """Refuse a world with a cluster that reaches across blocks."""
        if len(self.of) != world.n_items:
            raise ShapeError(f"the blocks cover {len(self.of)} items, but the world has {world.n_items}.")
        lowest = np.full(world.n_items, len(self.start), dtype=np.int32)
        highest = np.zeros(world.n_items, dtype=np.int32)
        np.minimum.at(lowest, world.labels, self.of)
        np.maximum.at(highest, world.labels, self.of)
        across = np.flatnonzero(lowest < highest)
        if len(across):
            raise InvalidArgumentError(
                f"a cluster of {world.size_of(int(across[0]))} items reaches across blocks: start from"
                " a world whose clusters lie within blocks, such as Partition.singletons(n)."
            )


@dataclass(frozen=True, slots=True)
class RelocateToItem(_AnyWorld):
    """Move a random item to the cluster of another random item: large clusters attract.

    blocks
        Draw the other item from the same block.
    """

    blocks: Blocks | None = None

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw two different items; nothing changes if they are together already."""
        if self.blocks is None or len(self.blocks.start) == 2:  # one block is none
            item, other = _two_items(stream, world.n_items)
        else:
            item = stream.below(world.n_items)
            block = self.blocks.of[item]
            peers = self.blocks.item[self.blocks.start[block] : self.blocks.start[block + 1]]
            if len(peers) < 2:
                return None
            other = int(peers[stream.below(len(peers) - 1)])
            if other == item:  # the last of the block stands in for the item itself
                other = int(peers[-1])
        source, target = world.cluster_of(item), world.cluster_of(other)
        return None if source == target else Transfer((item,), source, target)

    def log_probability(self, counts: Counts) -> float:
        """1 / n times t / (peers - 1)."""
        if counts.moving != 1 or counts.target == 0:
            return -math.inf
        return _log(counts.target / (counts.items * (counts.peers - 1.0)))


@dataclass(frozen=True, slots=True)
class RelocateToCandidate:
    """Move a random item to the cluster of one of its candidates, as blocking found them.

    start, candidate
        The candidates of item i are ``candidate[start[i]:start[i + 1]]``.
    """

    start: NDArray[np.int64]
    candidate: NDArray[np.int64]

    @classmethod
    def from_pairs(cls, n_items: int, pairs: ArrayLike) -> RelocateToCandidate:
        """Make the two items of each pair candidates of each other."""
        given = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if len(given) and (given.min() < 0 or given.max() >= n_items or (given[:, 0] == given[:, 1]).any()):
            raise ShapeError(f"candidate pairs must be two different items between 0 and {n_items - 1}.")
        start, candidate, _ = both_ends(n_items, given)
        return cls(start, candidate)

    def available(self, counts: Counts) -> bool:
        """At least one candidate pair is needed."""
        return len(self.candidate) > 0

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw an item and one of its candidates."""
        item = stream.below(world.n_items)
        degree = int(self.start[item + 1] - self.start[item])
        choice = stream.below(degree) if degree else 0
        if degree == 0:
            return None
        source = world.cluster_of(item)
        target = world.cluster_of(int(self.candidate[self.start[item] + choice]))
        return None if source == target else Transfer((item,), source, target)

    def links(self, world: Partition, item: int, members: NDArray[np.int32]) -> float:
        """Share of the item's candidates among ``members``."""
        own = self.candidate[self.start[item] : self.start[item + 1]]
        return float(np.isin(own, members).mean()) if len(own) else 0.0

    def log_probability(self, counts: Counts) -> float:
        """1 / n times the share of the candidates that are in the target."""
        if counts.moving != 1 or counts.target == 0:
            return -math.inf
        return _log(counts.links / counts.items)


@dataclass(frozen=True, slots=True)
class RelocateToNew:
    """Move a random item to a cluster of its own, with a random type."""

    def available(self, counts: Counts) -> bool:
        """Some cluster must have two members."""
        return counts.splittable >= 1

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw an item; nothing changes for one that is alone."""
        item = stream.below(world.n_items)
        new_type = stream.below(world.n_types) if world.n_types > 1 else 0
        source = world.cluster_of(item)
        return None if world.size_of(source) == 1 else Transfer((item,), source, NEW, new_type)

    def log_probability(self, counts: Counts) -> float:
        """1 / n times 1 / types."""
        if counts.moving != 1 or counts.target != 0:
            return -math.inf
        return -math.log(counts.items) - math.log(counts.types)


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge two random clusters, all ordered pairs equally likely; the second one's type is kept."""

    def available(self, counts: Counts) -> bool:
        """Two clusters are needed."""
        return counts.clusters >= 2

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw two different clusters."""
        first, second = _two_items(stream, world.n_clusters)
        source, target = (int(world.arrays.clusters["live"][k]) for k in (first, second))
        return Transfer(tuple(world.members(source).tolist()), source, target)

    def log_probability(self, counts: Counts) -> float:
        """1 / (clusters (clusters - 1))."""
        if counts.moving != counts.source or counts.target == 0:
            return -math.inf
        return -math.log(counts.clusters) - math.log(counts.clusters - 1)


@dataclass(frozen=True, slots=True)
class Split:
    """Split a random cluster of two or more into two parts, all bipartitions equally likely."""

    def available(self, counts: Counts) -> bool:
        """Some cluster must have two members."""
        return counts.splittable >= 1

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw a cluster, then a part that is neither empty nor all of it."""
        position = stream.below(world.n_splittable)
        source = int(world.arrays.clusters["splittable"][position])
        new_type = stream.below(world.n_types) if world.n_types > 1 else 0
        members = world.members(source).tolist()
        moving: list[int] = []
        while not 0 < len(moving) < len(members):  # two of the 2^s subsets are no split: draw again
            moving = [item for item in members if stream.uniform() < 0.5]
        return Transfer(tuple(moving), source, NEW, new_type)

    def log_probability(self, counts: Counts) -> float:
        """1 / splittable times 1 / (2^s - 2) times 1 / types: either part may be the one that moves."""
        if counts.target != 0 or counts.moving >= counts.source:
            return -math.inf
        subsets = counts.source * math.log(2.0) + math.log1p(-(2.0 ** (1 - counts.source)))
        return -math.log(counts.splittable) - subsets - math.log(counts.types)


@dataclass(frozen=True, slots=True)
class SplitMerge(_AnyWorld):
    """Draw two items: split their cluster at random between them, or merge their two clusters."""

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw the pair; the first stays, the second moves, the other members toss a coin each."""
        stays, moves = _two_items(stream, world.n_items)
        source, target = world.cluster_of(moves), world.cluster_of(stays)
        if source != target:
            return Transfer(tuple(world.members(source).tolist()), source, target)
        new_type = stream.below(world.n_types) if world.n_types > 1 else 0
        part = [
            item
            for item in world.members(source).tolist()
            if item == moves or (item != stays and stream.uniform() < 0.5)
        ]
        return Transfer(tuple(part), source, NEW, new_type)

    def log_probability(self, counts: Counts) -> float:
        """Sum over the pairs that lead there: m (s - m) for a split, s t for a merge, of n (n - 1)."""
        pairs = math.log(counts.items) + math.log(counts.items - 1)
        if counts.target == 0 and counts.moving < counts.source:
            ways = math.log(counts.moving) + math.log(counts.source - counts.moving)
            return ways - pairs - (counts.source - 2) * math.log(2.0) - math.log(counts.types)
        if counts.target > 0 and counts.moving == counts.source:
            return math.log(counts.source) + math.log(counts.target) - pairs
        return -math.inf


@dataclass(frozen=True, slots=True)
class RetypeCluster:
    """Give a random cluster another type, all others equally likely."""

    def available(self, counts: Counts) -> bool:
        """Two types are needed."""
        return counts.types >= 2

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw a cluster and a type that is not its own."""
        cluster = int(world.arrays.clusters["live"][stream.below(world.n_clusters)])
        old = world.type_of(cluster)
        new = stream.below(world.n_types - 1)
        return Retype(cluster, old, new + (new >= old))

    def log_probability(self, counts: Counts) -> float:
        """1 / clusters times 1 / (types - 1), for a change of type: nothing moves."""
        if counts.moving != 0:
            return -math.inf
        return -math.log(counts.clusters) - math.log(counts.types - 1)


def _two_items(stream: Stream, count: int) -> tuple[int, int]:
    """Draw an ordered pair of different numbers below ``count``."""
    first = stream.below(count)
    second = stream.below(count - 1)
    return first, second + (second >= first)
