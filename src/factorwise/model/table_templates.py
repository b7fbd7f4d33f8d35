"""Cluster-wise factors over a table of pair features.

First-order features of a cluster: what holds for all pairs of its members, for some, for most, on average,
and how often. All follow from how many pairs of the cluster have each feature, and a transfer changes those
counts by the pairs it joins and separates. So a step costs one look at the rows of these pairs, whatever the
aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.pair_tables import AGGREGATE_CODES
from factorwise.model.partition_program import PartitionProgram, check_items
from factorwise.model.partition_templates import Items, PartitionTemplate, parts_of
from factorwise.model.weights import SparseVector
from factorwise.variables.pair_table import PairTable
from factorwise.world.diff import PartitionDiff, Retype
from factorwise.world.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Callable


class PairTableTemplate(PartitionTemplate):
    """A factor for every cluster: aggregates of the features of all pairs of its members.

    table
        The features of every pair of items.
    aggregates
        Any of count, all, exists, majority and mean; each gives one weight per feature. ``count`` alone is a
        factor per pair: affinity within clusters and, which is the same but for a constant, disparity
        between them. A cluster of one has no pairs: all its statistics are zero.

    Implements: wick2009samplerank, Sec. 4 (factors of clusters and of pairs across clusters).
    """

    def __init__(
        self,
        name: str,
        table: PairTable,
        aggregates: Sequence[str] = ("count", "all", "exists", "majority", "mean"),
    ) -> None:
        chosen = tuple(aggregates)
        unknown = [a for a in chosen if a not in AGGREGATE_CODES]
        if unknown or not chosen or len(set(chosen)) != len(chosen):
            raise InvalidArgumentError(
                f"aggregates must be one or more of {list(AGGREGATE_CODES)}, each once, but {list(chosen)}"
                " was given."
            )
        self.table = table
        self.aggregates = chosen
        super().__init__(
            name, [f"{aggregate} of {feature}" for aggregate in chosen for feature in table.names]
        )

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Take part in a compiled program, with weights from ``offset`` on."""
        program.check_items(self.name, self.table.n_items)
        program.add_table(self.table, [AGGREGATE_CODES[a] for a in self.aggregates], offset)

    def within(self, items: Items) -> NDArray[np.int64]:
        """Count the pairs of one list that have each feature."""
        first, second = np.triu_indices(len(items), 1)
        return np.asarray(self.table.rows(items[first], items[second]).sum(axis=0, dtype=np.int64))

    def between(self, first: Items, second: Items) -> NDArray[np.int64]:
        """Count the pairs with one item in each list that have each feature."""
        pairs = self.table.rows(np.repeat(first, len(second)), np.tile(second, len(first)))
        return np.asarray(pairs.sum(axis=0, dtype=np.int64))

    def of(self, counts: NDArray[np.int64], members: int) -> NDArray[np.float64]:
        """Return the statistics of a cluster from the counts of its pairs."""
        pairs = members * (members - 1) // 2
        if pairs == 0:
            return np.zeros(self.size)
        return np.concatenate([_AGGREGATES[a](counts, pairs) for a in self.aggregates])

    def statistics(self, world: Partition) -> SparseVector:
        """Sum over all clusters."""
        check_items(self.name, self.table.n_items, world.n_items)
        total = np.zeros(self.size)
        for members in world.clusters():
            total += self.of(self.within(members), len(members))
        return SparseVector.from_dense(total)

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Two clusters after minus two clusters before."""
        if isinstance(diff, Retype):
            return SparseVector.empty()
        moving, target, staying = parts_of(world, diff)
        moved, left, there = self.within(moving), self.within(staying), self.within(target)
        before = self.of(there, len(target))
        before += self.of(left + moved + self.between(moving, staying), len(staying) + len(moving))
        after = self.of(there + moved + self.between(moving, target), len(target) + len(moving))
        after += self.of(left, len(staying))
        return SparseVector.from_dense(after - before)


_AGGREGATES: dict[str, Callable[[NDArray[np.int64], int], NDArray[np.float64]]] = {
    "count": lambda counts, pairs: counts.astype(np.float64),
    "all": lambda counts, pairs: (counts == pairs).astype(np.float64),
    "exists": lambda counts, pairs: (counts > 0).astype(np.float64),
    "majority": lambda counts, pairs: (2 * counts > pairs).astype(np.float64),
    "mean": lambda counts, pairs: counts / pairs,
}
