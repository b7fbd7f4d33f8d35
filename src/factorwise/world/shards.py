"""A clustering laid out in shards, which can be walked over at the same time.

Every cluster lies wholly in one shard, and every shard has cluster ids, an arena of members and lists of ids
of its own: a walk over a shard reads and writes what belongs to its items and ids and nothing else, but for
the labels of other items, which it may read: they are ids of other shards. The same rows in the same order
are laid out alike wherever they are, so that what a walk does to a shard depends on the rows of the shard
alone.
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

SPARE_SLOTS = 4  # of an arena, beyond four for each item


class Shards:
    """A clustering of n items in shards, which may be laid out anew at any time.

    labels
        The cluster of each item: any labels.
    most
        How many shards there may be.

    world
        The clustering of all shards, for those who ask for the number of items or of ids. Its ids are those
        of the shards; its members and lists of ids lie shard by shard, so that it cannot be walked over.
    n_shards, item_start
        How many shards there are, and where the items of each begin in ``world.arrays.items``.
    """

    def __init__(self, labels: ArrayLike, *, most: int = 1) -> None:
        given = as_array("labels", labels)
        if given.ndim != 1:
            raise ShapeError(f"labels must be one for each item, but have shape {given.shape}.")
        check_count("most", most)
        n, ids = len(given), len(given) + SPARE_IDS * most
        self.most = most
        self.world = object.__new__(Partition)
        self.world.n_types = 1
        self.world.arrays = Clustering(
            label=np.unique(given, return_inverse=True)[1].astype(np.int32),
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
        """Return the cluster of each item, named by its smallest member."""
        p, n = self.world.arrays, self.n_items
        smallest = np.empty(len(p.size), np.int32)
        smallest[p.label[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int32)  # of several, the last is kept
        return smallest[p.label]

    def place(self, labels: Ints) -> None:
        """Set the clustering, in one shard."""
        if labels.shape != (self.n_items,):
            raise ShapeError(f"{self.n_items} items need a label each, but {labels.shape} were given.")
        self.label[:] = np.unique(labels, return_inverse=True)[1]
        self.lay_out()

    def lay_out(self, shard: Ints | None = None) -> None:
        """Lay the clustering out anew: clusters by their smallest members, and members in ascending order.

        shard
            In which shard each item shall lie, from 0 on; None for one shard of all.
        """
        p, n, ids = self.world.arrays, self.n_items, len(self.world.arrays.size)
        shard = np.zeros(n, np.int64) if shard is None else shard
        count = int(shard.max(initial=-1)) + 1
        if count > self.most:
            raise InvalidArgumentError(
                f"there may be {self.most} shards, but {count} were given: raise most."
            )
        leader = self.leaders()
        if (shard[leader] != shard).any():
            item = int(np.flatnonzero(shard[leader] != shard)[0])
            raise InvalidArgumentError(
                f"items {item} and {int(leader[item])} are in one cluster: give them one shard."
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
        )  # those beyond the last shard are not used
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
        """Return the arrays of one shard, to be walked over; scratch is left to whoever walks."""
        p = self.world.arrays
        ids = slice(self.id_start[shard], self.id_start[shard + 1])
        return p._replace(
            live=p.live[ids],
            splittable=p.splittable[ids],
            members=p.members[self.slot_start[shard] : self.slot_start[shard + 1]],
            counters=self.counters[shard],
            items=p.items[self.item_start[shard] : self.item_start[shard + 1]],
        )
