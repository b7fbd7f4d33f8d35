"""A clustering split into shards that can be walked in parallel.

Every cluster lies entirely in one shard, and every shard has its own cluster ids, member storage and lists of
ids. A walk over a shard reads and writes only what belongs to its own items and ids; it may also read the
labels of other items, which are ids of other shards. The same rows in the same order always get the same
layout, so what a walk does to a shard depends on the rows of that shard alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.kernels.clusterings.arrays import (
    FIRST_ID,
    FREE,
    LIVE,
    ORDERS,
    SPARE_IDS,
    SPLITTABLE,
    TOP,
    Clustering,
    no_columns,
)
from factorwise.types import Int32s, Ints
from factorwise.validation import as_array, check_count
from factorwise.world.partition import Partition

SPARE_SLOTS = 4  # of the member storage, beyond four for each item


class Shards:
    """A clustering of n items in shards, which can be redistributed at any time.

    labels
        The cluster of each item, as any labels.
    most
        The largest number of shards.

    world
        The clustering of all shards, for callers that need the number of items or of ids. Its members and
        lists of ids are stored shard by shard, so it cannot itself be walked.
    n_shards, item_start
        The number of shards, and where the items of each shard begin in ``world.arrays.items``.
    """

    def __init__(self, labels: ArrayLike, *, most: int = 1) -> None:
        cluster_labels = as_array("labels", labels)
        if cluster_labels.ndim != 1:
            raise ShapeError(f"labels must be one for each item, but have shape {cluster_labels.shape}.")
        check_count("most", most)
        n, ids = len(cluster_labels), len(cluster_labels) + SPARE_IDS * most
        self.most = most
        self.world = object.__new__(Partition)
        self.world.n_types = 1
        self.world.arrays = Clustering(
            label=np.unique(cluster_labels, return_inverse=True)[1].astype(np.int32),
            slot=np.zeros(n, np.int64),
            size=np.zeros(ids, np.int32),
            start=np.zeros(ids, np.int64),
            order=np.zeros(ids, np.int32),
            type=np.zeros(ids, np.int32),
            live=np.zeros(ids, np.int32),
            live_at=np.zeros(ids, np.int32),
            splittable=np.zeros(ids, np.int32),
            splittable_at=np.zeros(ids, np.int32),
            members=np.zeros(4 * n + SPARE_SLOTS * most, np.int32),
            counters=np.zeros(FREE + ORDERS, np.int64),
            **no_columns(n),
            items=np.arange(n, dtype=np.int32),
            side=np.zeros(n, np.int8),
        )
        self.lay_out()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.world.arrays.label)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.counters[:, LIVE].sum())

    @property
    def label(self) -> Int32s:
        """The id of each item's cluster (a view)."""
        return self.world.arrays.label

    def leaders(self) -> Int32s:
        """Return for each item the smallest member of its cluster, which names the cluster."""
        p, n = self.world.arrays, self.n_items
        smallest = np.empty(len(p.size), np.int32)
        # where a cluster occurs several times, the last assignment wins
        smallest[p.label[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int32)
        return smallest[p.label]

    def place(self, labels: Ints) -> None:
        """Set the clustering and put everything in one shard."""
        if labels.shape != (self.n_items,):
            raise ShapeError(f"{self.n_items} items need a label each, but {labels.shape} were given.")
        self.label[:] = np.unique(labels, return_inverse=True)[1]
        self.lay_out()

    def lay_out(self, shard: Ints | None = None) -> None:
        """Distribute the clustering anew; clusters are ordered by their smallest members, members ascend.

        shard
            The shard of each item, from 0 on; None puts all items in one shard.
        """
        p, n, ids = self.world.arrays, self.n_items, len(self.world.arrays.size)
        shard = np.zeros(n, np.int64) if shard is None else shard
        count = int(shard.max(initial=-1)) + 1
        if count > self.most:
            raise InvalidArgumentError(
                f"{count} shards were given, but there may be {self.most} at most: raise most."
            )
        leader = self.leaders()
        if (shard[leader] != shard).any():
            item = int(np.flatnonzero(shard[leader] != shard)[0])
            raise InvalidArgumentError(
                f"items {item} and {int(leader[item])} are in one cluster: give them the same shard."
            )
        clusters = np.flatnonzero(leader == np.arange(n))
        clusters = clusters[np.argsort(shard[clusters], kind="stable")]
        live = np.bincount(shard[clusters], minlength=count)
        items = np.bincount(shard, minlength=count)
        self.n_shards = count
        self.item_start = np.append(0, np.cumsum(items))
        self.id_start = self.item_start + SPARE_IDS * np.arange(count + 1)
        self.slot_start = 4 * self.item_start + SPARE_SLOTS * np.arange(count + 1)
        number = np.empty(n, np.int32)
        rank = np.arange(len(clusters)) - np.repeat(np.cumsum(live) - live, live)
        number[clusters] = self.id_start[shard[clusters]] + rank
        p.label[:] = number[leader]
        p.size[:] = np.bincount(p.label, minlength=ids)
        used = p.size > 0
        p.order[:] = np.where(used, np.frexp(p.size - 1)[1], 0)
        capacity = np.where(used, np.int64(1) << p.order.astype(np.int64), 0)
        before = np.append(0, np.cumsum(capacity))
        each = np.append(
            np.diff(self.id_start), ids - self.id_start[-1]
        )  # shards beyond the last one are not used
        first = np.repeat(self.id_start, each)
        p.start[:] = before[:-1] - before[first]
        grouped = np.argsort(p.label, kind="stable")
        within = np.empty(n, np.int64)
        within[grouped] = np.arange(n) - np.repeat((np.cumsum(p.size) - p.size)[used], p.size[used])
        p.slot[:] = p.start[p.label] + within
        p.members[self.slot_start[shard] + p.slot] = np.arange(n)
        every = np.arange(ids)
        p.live[:] = every
        p.live_at[:] = every - first
        p.splittable[:] = np.lexsort((p.size < 2, first))
        p.splittable_at[p.splittable] = every - first
        p.type[:] = 0
        p.items[:] = np.argsort(shard, kind="stable")
        self.counters = np.full((count, FREE + ORDERS), -1, np.int64)
        self.counters[:, :FREE] = 0
        self.counters[:, LIVE] = live
        several = np.append(0, np.cumsum(p.size > 1))
        self.counters[:, SPLITTABLE] = several[self.id_start[1:]] - several[self.id_start[:-1]]
        self.counters[:, TOP] = before[self.id_start[1:]] - before[self.id_start[:-1]]
        self.counters[:, FIRST_ID] = self.id_start[:-1]

    def part(self, shard: int) -> Clustering:
        """Return the arrays of one shard for a walk; the walk provides its own scratch arrays."""
        p = self.world.arrays
        ids = slice(self.id_start[shard], self.id_start[shard + 1])
        return p._replace(
            live=p.live[ids],
            splittable=p.splittable[ids],
            members=p.members[self.slot_start[shard] : self.slot_start[shard + 1]],
            counters=self.counters[shard],
            items=p.items[self.item_start[shard] : self.item_start[shard + 1]],
        )
