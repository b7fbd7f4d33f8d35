"""Templates over clusterings of linked items: links with comparison levels, and constraints between items.

The score of a clustering sums a weight for each cluster and a weight for each pair of records within a
cluster. A pair that is not linked has the weight of unlinked pairs. A linked pair has the weight of a link
plus that of its features, or of its level in each comparison. Level 0 means that there was nothing to compare
and has no weight. With `cumulative`, a level also has the weights of all levels below it, so that learning
about one level moves those above it, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.kernels.clusterings import links
from factorwise.kernels.clusterings.links import CLUSTER_WEIGHT, FIXED_WEIGHTS, LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.kernels.compile.programs import Later, Program
from factorwise.model.clusterings.level_weights import LevelWeights, link_offsets
from factorwise.model.clusterings.partition_templates import parts_of
from factorwise.model.clusterings.program import check_items
from factorwise.model.clusterings.restrictions import copy_with
from factorwise.model.template import Template, finite_difference
from factorwise.model.weights import SparseVector
from factorwise.types import Float32s, Float64s, Int32s, Int64s, Ints, UInt8s
from factorwise.world.diff import NEW, PartitionDiff, Retype
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition

#: Names of the first weights of every link template.
FIXED_NAMES = ("two members not linked", "a cluster", "two members linked")


class LinkTemplate(Template[Partition, PartitionDiff]):
    """Factors for given pairs of items, for all other pairs of a cluster, and for each cluster.

    pairs
        int[pairs, 2], each pair of different items once, or a `LinkGraph`.
    levels : uint8[pairs, comparisons]
        Level of each pair in each comparison; level 0 means that there is nothing to compare.
    sizes
        Number of levels of each comparison, without level 0; by default the highest level that occurs.
    cumulative
        Whether a level also has the weights of all levels below it, so that its own weight is what it adds to
        the level below.
    features : float[pairs, statistics]
        Instead of levels: numbers that the weights multiply.
    statistics
        Names of the comparisons or of the features.
    counts
        How many records each item stands for; one by default. A link stands for one pair of records; all
        other pairs, including those within an item, count as not linked.
    """

    def __init__(
        self,
        name: str,
        n_items: int,
        pairs: ArrayLike | LinkGraph,
        *,
        levels: ArrayLike | None = None,
        sizes: Sequence[int] | None = None,
        cumulative: bool = False,
        features: ArrayLike | None = None,
        statistics: Sequence[str] | None = None,
        counts: ArrayLike | None = None,
    ) -> None:
        self.name = name
        self.graph = pairs if isinstance(pairs, LinkGraph) else LinkGraph.from_rows(n_items, pairs)
        check_items(name, self.graph.n_items, n_items)
        if (levels is None) == (features is None):
            raise InvalidArgumentError(
                f"template {name!r} needs levels or features of its links: give one of them."
            )
        n_pairs = len(self.graph.first)
        self.levels = np.zeros((n_pairs, 0), np.uint8) if levels is None else _levels(name, levels)
        self.features = np.zeros((n_pairs, 0), np.float32) if features is None else _reals(features)
        for rows in (self.levels, self.features):
            if rows.ndim != 2 or len(rows) != n_pairs:
                raise ShapeError(
                    f"{n_pairs} links need a row of levels or features each, but an array of shape"
                    f" {rows.shape} was given."
                )
        if not np.isfinite(self.features).all():
            raise InvalidArgumentError(
                f"features of template {name!r} must be finite numbers: to forbid pairs, use"
                " CannotLinkTemplate."
            )
        highest = self.levels.max(axis=0, initial=0)
        self.sizes = (
            tuple(int(top) for top in highest) if sizes is None else tuple(int(size) for size in sizes)
        )
        if len(self.sizes) != len(highest) or (highest > np.array(self.sizes, np.int64)).any():
            raise ShapeError(
                f"levels reach {highest.tolist()}, but the comparisons have only {self.sizes} levels."
            )
        columns = len(self.sizes) + self.features.shape[1]
        self.statistic_names = tuple(statistics or (f"feature {k}" for k in range(columns)))
        if len(self.statistic_names) != columns:
            raise ShapeError(f"{columns} comparisons or features need {columns} names: give statistics.")
        self.cumulative = cumulative
        self.offsets = link_offsets(self.sizes)
        self.size = int(self.offsets[-1]) + self.features.shape[1]
        self.counts = np.ones(n_items, np.int32) if counts is None else np.asarray(counts, np.int32)
        if self.counts.shape != (n_items,):
            raise ShapeError(f"{n_items} items need a count each, but counts have shape {self.counts.shape}.")
        require(bool((self.counts >= 1).all()), "counts", int(self.counts.min(initial=1)), "1 or more")
        self._scored: tuple[Float64s, Float32s] | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.graph.n_items

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items: the links among them, and all other pairs of them."""
        graph, pairs = self.graph.restrict_to(items)
        return copy_with(
            self,
            graph=graph,
            levels=self.levels[pairs],
            features=self.features[pairs],
            counts=self.counts[items],
            _scored=None,
        )

    def weight_name(self, index: int) -> str:
        """Return the name of a weight: unlinked pair, cluster, link, comparison level or feature."""
        if index < FIXED_WEIGHTS:
            return f"{self.name}: {FIXED_NAMES[index]}"
        if not self.sizes:
            return f"{self.name}: {self.statistic_names[index - FIXED_WEIGHTS]}"
        column = int(np.searchsorted(self.offsets, index, side="right")) - 1
        return f"{self.name}: {self.statistic_names[column]}, level {index - int(self.offsets[column]) + 1}"

    def link_scores(self, weights: Float64s) -> Float64s:
        """Return the score of each link under the weights of this template."""
        if not self.sizes:
            return np.asarray(self.features @ weights[FIXED_WEIGHTS:] + weights[LINK_WEIGHT])
        by_level = LevelWeights(self.sizes, weights)
        return (by_level.cumulated() if self.cumulative else by_level).link_scores(self.levels)

    def statistics(self, world: Partition) -> SparseVector:
        """Count unlinked pairs, clusters, links and their levels, or sum the features of links."""
        check_items(self.name, self.n_items, world.n_items)
        records = np.bincount(world.labels, weights=self.counts, minlength=len(world.arrays.size))
        together = np.flatnonzero(world.labels[self.graph.first] == world.labels[self.graph.second])
        counted = self._statistics_of(together)
        counted[UNLINKED_WEIGHT] = float((records * (records - 1.0)).sum()) / 2.0 - len(together)
        counted[CLUSTER_WEIGHT] = world.n_clusters
        return SparseVector.from_dense(counted)

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Return pairs joined minus pairs separated, and clusters made minus clusters emptied."""
        if isinstance(diff, Retype):
            return SparseVector.empty()
        moving, target, staying = parts_of(world, diff)
        joined, separated = self.graph.between(moving, target), self.graph.between(moving, staying)
        records, joining, left = (float(self.counts[items].sum()) for items in (moving, target, staying))
        change = self._statistics_of(joined) - self._statistics_of(separated)
        change[UNLINKED_WEIGHT] = records * (joining - left) - (len(joined) - len(separated))
        change[CLUSTER_WEIGHT] = float(diff.target == NEW) - float(len(staying) == 0)
        return SparseVector.from_dense(change)

    def _statistics_of(self, pairs: Ints) -> Float64s:
        counted = np.zeros(self.size)
        counted[LINK_WEIGHT] = len(pairs)
        for column, (first, size) in enumerate(zip(self.offsets.tolist(), self.sizes, strict=False)):
            counts = np.bincount(self.levels[pairs, column], minlength=size + 1)[1:]
            counted[first : first + size] = np.cumsum(counts[::-1])[::-1] if self.cumulative else counts
        if self.features.shape[1]:
            counted[FIXED_WEIGHTS:] = self.features[pairs].sum(axis=0)
        return counted

    def program(self, world: Partition, offset: int, weights: Float64s) -> Program:
        """Return the program that scores by the item's own links and the record counts of clusters."""
        check_items(self.name, self.n_items, world.n_items)
        counted = bool((self.counts != 1).any())
        arrays = {
            "start": self.graph.start,
            "neighbor": self.graph.neighbor,
            "graph": [self.graph.neighbor.ctypes.data],
            "score": Later(lambda: self._scores(weights[offset : offset + self.size]), np.dtype(np.float32)),
            "pair": self.graph.pair,
            "levels": self.levels,
            "features": self.features,
            "place": offset + np.append(0, self.offsets[:-1]),
            "level_start": (self.offsets if self.cumulative else self.offsets[:1]) - FIXED_WEIGHTS,
            "level_count": np.zeros(sum(self.sizes) if self.cumulative else 0),
            "weights": weights,
            "count": self.counts if counted else self.counts[:0],
            "total": np.zeros(len(world.arrays.size) if counted else 0, np.int64),
            "sides": np.zeros(3, np.int64),
            "last": np.zeros(1, np.int64),
        }
        kept: dict[str, Any] = {"applied": links.link_applied, "begin": links.begin_links} if counted else {}
        return Program(
            name="links",
            gain=links.link_gain,
            gains=links.link_gains,
            gradient=links.link_gradient,
            sides=links.link_sides,
            arrays=arrays,
            **kept,
        )

    def _scores(self, weights: Float64s) -> Float32s:
        """Return how much each link scores above an unlinked pair, listed from both items.

        The last answer is cached.
        """
        if self._scored is None or not np.array_equal(self._scored[0], weights):
            beyond = (self.link_scores(weights) - weights[UNLINKED_WEIGHT]).astype(np.float32)
            self._scored = weights.copy(), beyond[self.graph.pair]
        return self._scored[1]


class _Constraint(Template[Partition, PartitionDiff]):
    """A template without weights that forbids clusterings; walks must start from an allowed one."""

    size = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def is_broken_by(self, members: Int32s) -> bool:
        """Whether these items may not form a cluster."""
        raise NotImplementedError

    def statistics(self, world: Partition) -> SparseVector:
        """Return nothing, because a constraint has no weights."""
        return SparseVector.empty()

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Return nothing, because a constraint has no weights."""
        return SparseVector.empty()

    def constant(self, world: Partition) -> float:
        """Return minus infinity if a cluster breaks the constraint, else zero."""
        return -math.inf if any(self.is_broken_by(members) for members in world.clusters()) else 0.0

    def constant_gain(self, world: Partition, diff: PartitionDiff) -> float:
        """Compare the two clusters that a transfer touches before and after it."""
        if isinstance(diff, Retype):
            return 0.0
        moving, target, staying = parts_of(world, diff)
        before, after = (target, np.append(staying, moving)), (staying, np.append(target, moving))
        broken = [any(self.is_broken_by(members) for members in two) for two in (before, after)]
        return finite_difference(*(-math.inf if wrong else 0.0 for wrong in reversed(broken)))


class OnePerSourceTemplate(_Constraint):
    """Forbid clusters with two items of one source.

    sources
        For each item the bits of the sources that it comes from, up to 64 sources; 0 means any source.
    """

    def __init__(self, name: str, sources: ArrayLike) -> None:
        super().__init__(name)
        self.sources = np.asarray(sources, np.uint64)

    def restrict_to(self, items: Int64s) -> Self:
        """Return the constraint for some of the items."""
        return copy_with(self, sources=self.sources[items])

    def is_broken_by(self, members: Int32s) -> bool:
        """Whether two of the items share a source."""
        held = 0
        for bits in self.sources[members].tolist():
            if held & bits:
                return True
            held |= bits
        return False

    def constant(self, world: Partition) -> float:
        """Return minus infinity if a cluster has two items of one source, else zero."""
        ids = len(world.arrays.size)
        for bit in range(int(np.bitwise_or.reduce(self.sources)).bit_length()):
            has = world.labels[(self.sources >> np.uint64(bit)) & np.uint64(1) != 0]
            if (np.bincount(has, minlength=ids) > 1).any():
                return -math.inf
        return 0.0

    def program(self, world: Partition, offset: int, weights: Float64s) -> Program:
        """Return the program that keeps the sources of each cluster."""
        check_items(self.name, len(self.sources), world.n_items)
        arrays = {
            "bits": self.sources,
            "held": np.zeros(len(world.arrays.size), np.uint64),
            "sides": np.zeros(3, np.uint64),
            "last": np.zeros(1, np.int64),
        }
        return Program(
            name="one per source",
            gain=links.source_gain,
            gains=links.source_gains,
            sides=links.source_sides,
            applied=links.source_applied,
            begin=links.begin_sources,
            arrays=arrays,
        )


class CannotLinkTemplate(_Constraint):
    """Forbid clusters with both items of any of some given pairs."""

    def __init__(self, name: str, n_items: int, pairs: ArrayLike | LinkGraph) -> None:
        super().__init__(name)
        self.graph = pairs if isinstance(pairs, LinkGraph) else LinkGraph.from_rows(n_items, pairs)
        check_items(name, self.graph.n_items, n_items)

    def restrict_to(self, items: Int64s) -> Self:
        """Return the constraint for some of the items: the pairs among them."""
        return copy_with(self, graph=self.graph.restrict_to(items)[0])

    def is_broken_by(self, members: Int32s) -> bool:
        """Whether both items of a pair are among these."""
        graph, inside = self.graph, set(members.tolist())
        return any(
            not inside.isdisjoint(graph.neighbor[graph.start[item] : graph.start[item + 1]].tolist())
            for item in inside
        )

    def constant(self, world: Partition) -> float:
        """Return minus infinity if the items of a pair are together, else zero."""
        broken = world.labels[self.graph.first] == world.labels[self.graph.second]
        return -math.inf if broken.any() else 0.0

    def program(self, world: Partition, offset: int, weights: Float64s) -> Program:
        """Return the program that checks the item's own pairs."""
        check_items(self.name, self.graph.n_items, world.n_items)
        return Program(
            name="cannot link",
            gain=links.forbidden_gain,
            gains=links.forbidden_gains,
            sides=links.forbidden_sides,
            arrays={"start": self.graph.start, "neighbor": self.graph.neighbor},
        )


def _levels(name: str, levels: ArrayLike) -> UInt8s:
    array = np.asarray(levels)
    if array.size and not (array.min() >= 0 and array.max() <= 255):
        raise InvalidArgumentError(f"levels of template {name!r} must be whole numbers from 0 to 255.")
    return array.astype(np.uint8, copy=False)


def _reals(features: ArrayLike) -> NDArray[Any]:
    array = np.asarray(features)
    return array if array.dtype == np.float32 else array.astype(np.float64)
