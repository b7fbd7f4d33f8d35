"""Partition worlds: clusterings of n items, whose clusters may carry a type label.

With a type domain the world is a joint one: a partition and an assignment of a type to each of its
clusters, so that models can score both together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from factorwise.arguments import check_types
from factorwise.errors import ClusterIdError, DiffError, EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.kernels.clusterings.arrays import (
    LIVE,
    NEW,
    SPLITTABLE,
    Clustering,
    apply_change,
    apply_type,
    make_clustering,
    no_columns,
    spare_id,
    transfer,
)
from factorwise.kernels.clusterings.choices import offer_all
from factorwise.kernels.compile.binding import Frame
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import make_frame
from factorwise.types import Int32s, Int64s, UInt64s
from factorwise.validation import as_array, as_numbers, check_count
from factorwise.views import MOST_ROWS, html_table, listed
from factorwise.world.diff import PartitionDiff, Retype, Transfer

_COLUMNS = ("item_ints", "item_reals", "item_rows", "ints", "reals", "rows")


class Partition:
    """A clustering of the items 0 to n - 1 that changes by diffs.

    Relocating an item costs O(1), merging and splitting cost the items that move; the members of a cluster
    lie contiguously. Cluster ids are handles into storage: one stays with its cluster as long as that has
    members, and two partitions are equal when they group the items alike (and give the groups the same
    types).

    >>> world = Partition.from_labels([0, 0, 1])
    >>> back = world.apply(Transfer((2,), source=1, target=0))
    >>> world.n_clusters
    1
    >>> _ = world.apply(back)
    >>> world.dense_labels().tolist()
    [0, 0, 1]
    """

    __slots__ = ("arrays", "n_types")

    arrays: Clustering
    n_types: int

    @check_types
    def __init__(self, labels: Int32s, types: Int32s | None = None, n_types: int = 1) -> None:
        """Build from checked dense labels; users call `from_labels`, `from_keys` or `singletons`."""
        clusters = int(labels.max()) + 1
        self.n_types = n_types
        self.arrays = make_clustering(
            labels, np.zeros(clusters, np.int32) if types is None else types, n_types
        )

    @classmethod
    @check_types
    def from_labels(cls, labels: ArrayLike, *, types: ArrayLike | None = None, n_types: int = 1) -> Partition:
        """Build from cluster numbers 0 to k - 1 without gaps; ``types[c]`` is the type of cluster c."""
        given = as_array("labels", labels)
        if given.ndim != 1:
            raise ShapeError(f"labels must be one-dimensional, but the array has shape {given.shape}.")
        if len(given) == 0:
            raise EmptyWorldError("a partition needs at least one item, but the labels are empty.")
        if given.dtype.kind not in "iu":
            raise ClusterIdError(
                f"cluster ids must be integers, but the labels have dtype {given.dtype}:"
                " build from any keys with Partition.from_keys(labels)."
            )
        present = np.bincount(given) if given.min() >= 0 and given.max() < len(given) else np.zeros(1)
        if (present == 0).any():
            wrong = (
                f"id {int(given.min())} is negative"
                if given.min() < 0
                else f"id {int(np.setdiff1d(np.arange(min(given.max(), len(given))), given)[0])} is missing"
            )
            raise ClusterIdError(
                f"cluster ids must run from 0 to k - 1 without gaps, but {wrong}:"
                " number them anew with Partition.from_keys(labels)."
            )
        return cls(given.astype(np.int32), cls._checked_types(types, int(given.max()) + 1, n_types), n_types)

    @classmethod
    def from_keys(cls, keys: ArrayLike) -> Partition:
        """Group items with equal keys of any sortable kind (numbers, strings)."""
        given = np.asarray(keys)
        if given.ndim != 1 or len(given) == 0:
            raise EmptyWorldError(
                f"keys must be a non-empty list, but an array of shape {given.shape} was given."
            )
        return cls(np.unique(given, return_inverse=True)[1].astype(np.int32))

    @classmethod
    @check_types
    def from_clusters(cls, clusters: Iterable[Sequence[int]], **options: int) -> Partition:
        """Build from lists of items; together they must hold 0 to n - 1, each once."""
        listed = [list(cluster) for cluster in clusters]
        items = np.array([item for cluster in listed for item in cluster], dtype=np.int64)
        if len(items) == 0 or not np.array_equal(np.sort(items), np.arange(len(items))):
            raise ClusterIdError(
                f"clusters must hold the items 0 to n - 1 once each, but hold {sorted(items.tolist())[:20]}:"
                " add what is missing as clusters of one."
            )
        labels = np.empty(len(items), np.int32)
        labels[items] = np.repeat(np.arange(len(listed)), [len(cluster) for cluster in listed])
        return cls.from_labels(labels, **options)

    @classmethod
    @check_types
    def singletons(cls, n: int, *, n_types: int = 1) -> Partition:
        """Put every item in a cluster of its own, of type 0."""
        check_count("the number of items", n, 0)
        return cls.from_labels(np.arange(n), n_types=n_types)

    @staticmethod
    def _checked_types(types: ArrayLike | None, clusters: int, n_types: int) -> Int32s:
        check_count("n_types", n_types)
        given = np.zeros(clusters, np.int32) if types is None else as_numbers("types", types, np.int32)
        if given.shape != (clusters,):
            raise ShapeError(f"{clusters} clusters need {clusters} types, but types has shape {given.shape}.")
        if given.min() < 0 or given.max() >= n_types:
            raise InvalidArgumentError(
                f"types must lie between 0 and {n_types - 1}, but run from {given.min()} to {given.max()}:"
                " give n_types."
            )
        return given

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.arrays.label)

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.arrays.counters[LIVE])

    @property
    def n_splittable(self) -> int:
        """Number of clusters of two or more."""
        return int(self.arrays.counters[SPLITTABLE])

    @property
    def labels(self) -> Int32s:
        """Cluster id of each item (a view); ids need not be dense, see `dense_labels`."""
        return self.arrays.label

    def cluster_ids(self) -> Int32s:
        """Ids of all clusters, in no particular order (a copy)."""
        return self.arrays.live[: self.n_clusters].copy()

    def cluster_of(self, item: int) -> int:
        """Cluster id of one item."""
        if not isinstance(item, int | np.integer) or not 0 <= item < self.n_items:
            raise InvalidArgumentError(f"item {item} does not exist: items run from 0 to {self.n_items - 1}.")
        return int(self.labels[item])

    def members(self, cluster: int) -> Int32s:
        """Items of one cluster (a read-only view, valid until the next diff)."""
        start = self.arrays.start[self._checked(cluster)]
        view = self.arrays.members[start : start + self.arrays.size[cluster]]
        view.flags.writeable = False
        return view

    def size_of(self, cluster: int) -> int:
        """Number of members."""
        return int(self.arrays.size[self._checked(cluster)])

    def type_of(self, cluster: int) -> int:
        """Type label of a cluster; 0 where clusters carry none."""
        return int(self.arrays.type[self._checked(cluster)])

    def clusters(self) -> Iterator[Int32s]:
        """Yield the members of each cluster."""
        for cluster in self.cluster_ids():
            yield self.members(int(cluster))

    def _checked(self, cluster: int) -> int:
        exists = isinstance(cluster, int | np.integer) and 0 <= cluster < len(self.arrays.size)
        if not exists or self.arrays.live_at[cluster] >= self.n_clusters:
            raise DiffError(
                f"cluster {cluster} does not exist in this world. An id is given up when its cluster is"
                " emptied:"
                " look the cluster up with cluster_of(item)."
            )
        return int(cluster)

    def dense_labels(self) -> Int64s:
        """Cluster numbers 0 to k - 1 by first appearance: equal for equal groupings."""
        _, first, inverse = np.unique(self.labels, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse]

    def dense_types(self) -> Int32s:
        """Type of each cluster in the numbering of `dense_labels`."""
        _, first = np.unique(self.dense_labels(), return_index=True)
        return self.arrays.type[self.labels[first]]

    def canonical(self) -> tuple[bytes, bytes]:
        """Return a hashable key, equal for equal worlds."""
        types = self.dense_types().tobytes() if self.n_types > 1 else b""
        return self.dense_labels().astype(np.int32).tobytes(), types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partition) and self.canonical() == other.canonical()

    __hash__ = None  # type: ignore[assignment]  # a world changes: use canonical() as a key

    def __repr__(self) -> str:
        shown = self.dense_labels()[:20].tolist()
        more = ", ..." if self.n_items > 20 else ""
        return f"Partition({self.n_items} items, {self.n_clusters} clusters: {shown}{more})"

    def _repr_html_(self) -> str:
        ids = sorted(self.cluster_ids().tolist(), key=lambda cluster: -self.size_of(cluster))[:MOST_ROWS]
        rows = [(self.size_of(cluster), listed(sorted(self.members(cluster).tolist()))) for cluster in ids]
        title = f"Partition: {self.n_items} items in {self.n_clusters} clusters"
        return html_table(title, ("size", "items"), rows, total=self.n_clusters)

    def copy(self) -> Partition:
        """Return a world that changes on its own, with the same ids and the same order of storage."""
        twin = object.__new__(Partition)
        own = {name: array.copy() for name, array in self.arrays._asdict().items() if name not in _COLUMNS}
        twin.arrays = Clustering(**own, **no_columns(self.n_items))
        twin.n_types = self.n_types
        return twin

    def layout_key(self) -> tuple[int, int]:
        """Return what two worlds must share for one walk to go over both."""
        return self.n_items, self.n_types

    def take(self, other: Partition) -> None:
        """Become equal to another world of the same items, in the same arrays; columns follow the members."""
        p = self.arrays
        for name, array in other.arrays._asdict().items():
            if name not in _COLUMNS:
                getattr(p, name)[...] = array
        for columns, items in ((p.ints, p.item_ints.T), (p.reals, p.item_reals.T)):
            if len(columns):
                columns[:, p.slot] = items
        if p.rows.shape[1]:
            p.rows[p.slot] = p.item_rows

    def program(self) -> Program:
        """Return what changes the clustering, and beside it the types of its clusters, in a walk."""
        return Program(apply=apply_change, worlds=[{"apply": apply_type}], name="a clustering")

    def choices(self) -> Program:
        """Let an item choose among all clusters and a cluster of its own of each type."""
        return Program(support=offer_all, arrays={"types": [self.n_types]}, name="all clusters")

    def frame(self, random: UInt64s, *, many: bool = False, weights: int = 0, entries: int = 0) -> Frame:
        """Return the arrays of a walk over this very world.

        many
            Whether moves may have several changes.
        entries
            How many entries may follow the head of a gradient, which has all weights.
        """
        ids = len(self.arrays.size)
        changes = self.n_items if many else 1
        return make_frame(
            self.arrays, random, weights=weights, changes=changes, choices=ids, targets=ids, entries=entries
        )

    def diff_of(self, frame: Frame) -> PartitionDiff:
        """Return the diff that the move at hand in a frame of this world stands for."""
        step = frame.step[0]
        if step["world"] == 1:
            return Retype(int(step["item"]), int(step["source"]), int(step["target"]))
        if step["changes"] == 1:
            return self.diff_to(int(step["item"]), int(step["source"]), int(step["target"]))
        changes = frame.changes[: step["changes"]]
        source, target = int(changes["source"][0]), int(changes["target"][0])
        return self._diff_to(tuple(changes["item"].tolist()), source, target)

    def enter(self, frame: Frame, diff: PartitionDiff) -> None:
        """Let the move at hand in a frame of this world be ``diff``, as `diff_of` would read it."""
        step = frame.step
        if isinstance(diff, Retype):
            step["changes"], step["world"] = 1, 1
            step["item"], step["source"], step["target"] = diff.cluster, diff.old, diff.new
            return
        target = spare_id(self.arrays, diff.new_type) if diff.target == NEW else diff.target
        step["changes"], step["world"] = len(diff.items), 0
        step["item"], step["source"], step["target"] = diff.items[0], diff.source, target
        if len(diff.items) > 1:
            changes = frame.changes[: len(diff.items)]
            changes["world"], changes["item"], changes["source"], changes["target"] = (
                0,
                diff.items,
                diff.source,
                target,
            )

    def diff_to(self, item: int, source: int, target: int) -> PartitionDiff:
        """Return the transfer of one item to a cluster, or to an id that is not in use: a new cluster.

        An item that is alone stays where it is, and its cluster gets the type of that id.
        """
        return self._diff_to((item,), source, target)

    def _diff_to(self, items: tuple[int, ...], source: int, target: int) -> PartitionDiff:
        if self.arrays.size[target] > 0:
            return Transfer(items, source, target)
        kind = int(self.arrays.type[target])
        if len(items) == self.arrays.size[source]:
            return Retype(source, self.type_of(source), kind)
        return Transfer(items, source, NEW, kind)

    def after(self, diff: PartitionDiff) -> Partition:
        """Return a copy with ``diff`` applied."""
        twin = self.copy()
        twin.apply(diff)
        return twin

    def apply(self, diff: PartitionDiff) -> PartitionDiff:
        """Change this world in place and return the diff that changes it back."""
        if isinstance(diff, Retype):
            if self.type_of(diff.cluster) != diff.old or not 0 <= diff.new < self.n_types:
                raise DiffError(
                    f"{diff} does not fit: cluster {diff.cluster} has type {self.type_of(diff.cluster)} and"
                    f" types run from 0 to {self.n_types - 1}. Build it with moves.retype."
                )
            self.arrays.type[diff.cluster] = diff.new
            return Retype(diff.cluster, diff.new, diff.old)
        return self._transfer(diff)

    def _transfer(self, diff: Transfer) -> Transfer:
        self._check_transfer(diff)
        old_type = self.type_of(diff.source)
        emptied = len(diff.items) == self.size_of(diff.source)
        items = np.array(diff.items, np.int32)
        here = int(transfer(self.arrays, items, len(items), diff.target, diff.new_type))
        return Transfer(diff.items, here, NEW if emptied else diff.source, old_type)

    def _check_transfer(self, diff: Transfer) -> None:
        source = self._checked(diff.source)
        listed = isinstance(diff.items, tuple | list) and all(
            isinstance(item, int | np.integer) for item in diff.items
        )
        if not listed or not 0 < len(set(diff.items)) == len(diff.items):
            raise DiffError(f"a transfer moves one or more different items, but {diff.items} was given.")
        strangers = [item for item in diff.items if self.cluster_of(item) != source]
        if strangers:
            raise DiffError(
                f"item {strangers[0]} is in cluster {self.cluster_of(strangers[0])}, not in source {source}:"
                " build transfers with world.moves from the world they are applied to."
            )
        if isinstance(diff.target, int) and diff.target == NEW:
            if len(diff.items) == self.size_of(source):
                raise DiffError(
                    f"moving all of cluster {source} to a new cluster changes nothing: leave it out."
                )
            if not 0 <= diff.new_type < self.n_types:
                raise DiffError(f"new_type {diff.new_type} is not between 0 and {self.n_types - 1}.")
        elif self._checked(diff.target) == source:
            raise DiffError(f"source and target are both cluster {source}: leave the transfer out.")
