"""Partitions: clusterings of n items, whose clusters may carry a type label.

With a type domain, the world consists of a partition and a type for each of its clusters, so that a model can
score both together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

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
from factorwise.validation import as_array, as_numbers, check_count, shown
from factorwise.views import MOST_ROWS, html_table, listed
from factorwise.world.diff import PartitionDiff, Retype, Transfer

_COLUMNS = ("item_ints", "item_reals", "item_rows", "ints", "reals", "rows")


class Partition:
    """A clustering of the items 0 to n - 1 that changes by diffs.

    Relocating an item takes O(1); merging and splitting take time proportional to the number of items that
    move. The members of a cluster are stored contiguously. A cluster keeps its id as long as it has members.
    Two partitions are equal when they group the items in the same way and give the groups the same types.

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

    def __init__(self, labels: Int32s, types: Int32s | None = None, n_types: int = 1) -> None:
        """Build from an array of dense labels; `from_labels`, `from_keys` and `singletons` accept more."""
        if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise ClusterIdError(
                f"Partition takes an array of cluster ids, but {shown(labels)} was given: build it with"
                " Partition.from_labels or Partition.from_keys."
            )
        if len(labels) == 0:
            raise EmptyWorldError("a partition needs at least one item, but the labels are empty.")
        least, clusters = int(labels.min()), int(labels.max()) + 1
        present = np.bincount(labels) if least >= 0 and clusters <= len(labels) else np.zeros(1)
        if (present == 0).any():
            gaps = np.setdiff1d(np.arange(min(clusters, len(labels))), labels)
            wrong = f"id {least} is negative" if least < 0 else f"id {int(gaps[0])} is missing"
            raise ClusterIdError(
                f"cluster ids must run from 0 to k - 1 without gaps, but {wrong}: use"
                " Partition.from_keys(labels), which renumbers them."
            )
        self.n_types = n_types
        self.arrays = make_clustering(labels, self._checked_types(types, clusters, n_types), n_types)

    @classmethod
    def from_labels(cls, labels: ArrayLike, *, types: ArrayLike | None = None, n_types: int = 1) -> Partition:
        """Build from cluster numbers 0 to k - 1 without gaps; ``types[c]`` is the type of cluster c."""
        array = as_array("labels", labels)
        if array.ndim != 1:
            raise ShapeError(f"labels must be one-dimensional, but the array has shape {array.shape}.")
        if array.dtype.kind not in "iu" and len(array):
            raise ClusterIdError(
                f"cluster ids must be integers, but the labels have dtype {array.dtype}: build from any"
                " keys with Partition.from_keys(labels)."
            )
        return cls(array.astype(np.int64), types, n_types)  # type: ignore[arg-type]  # types are checked there

    @classmethod
    def from_keys(cls, keys: ArrayLike) -> Partition:
        """Group items with equal keys, which may be of any sortable kind (numbers, strings)."""
        array = np.asarray(keys)
        if array.ndim != 1 or len(array) == 0:
            raise EmptyWorldError(
                f"keys must be a non-empty list, but an array of shape {array.shape} was given."
            )
        return cls(np.unique(array, return_inverse=True)[1].astype(np.int32))

    @classmethod
    def from_clusters(cls, clusters: Iterable[Sequence[int]], **options: int) -> Partition:
        """Build from lists of items, which together must hold 0 to n - 1, each once."""
        listed = [list(cluster) for cluster in clusters]
        items = np.array([item for cluster in listed for item in cluster], dtype=np.int64)
        if len(items) == 0 or not np.array_equal(np.sort(items), np.arange(len(items))):
            raise ClusterIdError(
                "clusters must hold the items 0 to n - 1 once each, but hold"
                f" {sorted(items.tolist())[:20]}: add missing items as clusters of their own."
            )
        labels = np.empty(len(items), np.int32)
        labels[items] = np.repeat(np.arange(len(listed)), [len(cluster) for cluster in listed])
        return cls.from_labels(labels, **options)

    @classmethod
    def singletons(cls, n: int, *, n_types: int = 1) -> Partition:
        """Put every item in a cluster of its own, of type 0."""
        check_count("the number of items", n, 0)
        return cls.from_labels(np.arange(n), n_types=n_types)

    @staticmethod
    def _checked_types(types: ArrayLike | None, clusters: int, n_types: int) -> Int32s:
        check_count("n_types", n_types)
        array = np.zeros(clusters, np.int32) if types is None else as_numbers("types", types, np.int32)
        if array.shape != (clusters,):
            raise ShapeError(f"{clusters} clusters need {clusters} types, but types has shape {array.shape}.")
        if array.min() < 0 or array.max() >= n_types:
            raise InvalidArgumentError(
                f"types must lie between 0 and {n_types - 1}, but run from {array.min()} to"
                f" {array.max()}: give n_types."
            )
        return array

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
        """Number of clusters with two members or more."""
        return int(self.arrays.counters[SPLITTABLE])

    @property
    def labels(self) -> Int32s:
        """Cluster id of each item (a view); ids need not be dense, see `dense_labels`."""
        return self.arrays.label

    def cluster_ids(self) -> Int32s:
        """Return the ids of all clusters, in no particular order (a copy)."""
        return self.arrays.live[: self.n_clusters].copy()

    def cluster_of(self, item: int) -> int:
        """Return the cluster id of one item."""
        if not isinstance(item, int | np.integer) or not 0 <= item < self.n_items:
            raise InvalidArgumentError(f"item {item} does not exist: items run from 0 to {self.n_items - 1}.")
        return int(self.labels[item])

    def members(self, cluster: int) -> Int32s:
        """Return the items of one cluster (a read-only view, valid until the next diff)."""
        start = self.arrays.start[self._checked(cluster)]
        view = self.arrays.members[start : start + self.arrays.size[cluster]]
        view.flags.writeable = False
        return view

    def size_of(self, cluster: int) -> int:
        """Return the number of members of a cluster."""
        return int(self.arrays.size[self._checked(cluster)])

    def type_of(self, cluster: int) -> int:
        """Return the type label of a cluster; 0 if clusters have no types."""
        return int(self.arrays.type[self._checked(cluster)])

    def clusters(self) -> Iterator[Int32s]:
        """Yield the members of each cluster."""
        for cluster in self.cluster_ids():
            yield self.members(int(cluster))

    def _checked(self, cluster: int) -> int:
        exists = isinstance(cluster, int | np.integer) and 0 <= cluster < len(self.arrays.size)
        if not exists or self.arrays.live_at[cluster] >= self.n_clusters:
            raise DiffError(
                f"cluster {cluster} does not exist in this world. A cluster loses its id when it"
                " becomes empty: look up the current id with cluster_of(item)."
            )
        return int(cluster)

    def dense_labels(self) -> Int64s:
        """Return cluster numbers 0 to k - 1 by first appearance, which are equal for equal groupings."""
        _, first, inverse = np.unique(self.labels, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse]

    def dense_types(self) -> Int32s:
        """Return the type of each cluster, numbered as in `dense_labels`."""
        _, first = np.unique(self.dense_labels(), return_index=True)
        return self.arrays.type[self.labels[first]]

    def canonical(self) -> tuple[bytes, bytes]:
        """Return a hashable key that is equal for equal worlds."""
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
        """Return an equal world that changes on its own, with the same ids and storage order."""
        twin = object.__new__(Partition)
        own = {name: array.copy() for name, array in self.arrays._asdict().items() if name not in _COLUMNS}
        twin.arrays = Clustering(**own, **no_columns(self.n_items))
        twin.n_types = self.n_types
        return twin

    def layout_key(self) -> tuple[int, int]:
        """Return what two worlds must have in common so that one walk can run over both."""
        return self.n_items, self.n_types

    def take(self, other: Partition) -> None:
        """Become equal to another world of the same items, in the arrays of this one.

        Columns that are stored with the members move with them.
        """
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
        """Return the program that changes the clustering, and the types of its clusters, in a walk."""
        return Program(apply=apply_change, worlds=[{"apply": apply_type}], name="a clustering")

    def choices(self) -> Program:
        """Return the program with which an item chooses among all clusters and a new one of each type."""
        return Program(support=offer_all, arrays={"types": [self.n_types]}, name="all clusters")

    def frame(self, random: UInt64s, *, many: bool = False, weights: int = 0, entries: int = 0) -> Frame:
        """Return the arrays of a walk over this world itself.

        random
            The state of the random stream.
        many
            Whether a move may consist of several changes.
        weights
            Number of weights; a gradient begins with one entry for each.
        entries
            How many further entries a gradient may have.
        """
        ids = len(self.arrays.size)
        changes = self.n_items if many else 1
        return make_frame(
            self.arrays, random, weights=weights, changes=changes, choices=ids, targets=ids, entries=entries
        )

    def diff_of(self, frame: Frame) -> PartitionDiff:
        """Return the diff for the current move in a frame of this world."""
        step = frame.step[0]
        if step["world"] == 1:
            return Retype(int(step["item"]), int(step["source"]), int(step["target"]))
        if step["changes"] == 1:
            return self.diff_to(int(step["item"]), int(step["source"]), int(step["target"]))
        changes = frame.changes[: step["changes"]]
        source, target = int(changes["source"][0]), int(changes["target"][0])
        return self._diff_to(tuple(changes["item"].tolist()), source, target)

    def enter(self, frame: Frame, diff: PartitionDiff) -> None:
        """Write ``diff`` into a frame of this world as its current move; the inverse of `diff_of`."""
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
        """Return the transfer of one item to a cluster; an id that is not in use stands for a new cluster.

        An item that is alone stays in its cluster, which takes the type of that id.
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
        """Change this world in place and return the diff that undoes the change."""
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
        cluster = int(transfer(self.arrays, items, len(items), diff.target, diff.new_type))
        return Transfer(diff.items, cluster, NEW if emptied else diff.source, old_type)

    def _check_transfer(self, diff: Transfer) -> None:
        source = self._checked(diff.source)
        listed = isinstance(diff.items, tuple | list) and all(
            isinstance(item, int | np.integer) for item in diff.items
        )
        if not listed or not 0 < len(set(diff.items)) == len(diff.items):
            raise DiffError(
                f"a transfer must move at least one item, and each once, but {diff.items} was given."
            )
        strangers = [item for item in diff.items if self.cluster_of(item) != source]
        if strangers:
            raise DiffError(
                f"item {strangers[0]} is in cluster {self.cluster_of(strangers[0])}, not in source {source}:"
                " build transfers with world.moves from the world they are applied to."
            )
        if isinstance(diff.target, int) and diff.target == NEW:
            if len(diff.items) == self.size_of(source):
                raise DiffError(
                    f"moving all of cluster {source} to a new cluster changes nothing: leave this diff out."
                )
            if not 0 <= diff.new_type < self.n_types:
                raise DiffError(f"new_type {diff.new_type} is not between 0 and {self.n_types - 1}.")
        elif self._checked(diff.target) == source:
            raise DiffError(f"source and target are both cluster {source}: leave this diff out.")
