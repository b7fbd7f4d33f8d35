"""Factors over clusters from a table of pair features.

They are first-order features of a cluster: whether a feature holds for all pairs of its members, for some,
for most, and how often. All follow from the number of pairs of the cluster that have each feature, and a
transfer changes these numbers by the pairs it joins and separates. So a step reads the rows of these pairs
once, whatever the aggregates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.clusterings.tables import AGGREGATE_CODES
from factorwise.model.clusterings.cluster_templates import WholeClusterTemplate
from factorwise.model.clusterings.partition_templates import Items
from factorwise.model.clusterings.program import PartitionProgram, check_items
from factorwise.model.clusterings.restrictions import copy_with
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int64s
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition


class PairTableTemplate(WholeClusterTemplate):
    """A factor for every cluster: aggregates of the features of all pairs of its members.

    table
        The features of every pair of items.
    aggregates
        Each has one weight per feature. Over the pairs of a cluster: ``count``, how many have the feature;
        ``all``, ``exists`` and ``majority``, whether all, any or most have it; ``mean``, the share that has
        it; ``per member``, the count divided by the number of members. ``linked``: how many members have the
        feature with some other member. ``count`` alone is a factor per pair: affinity within clusters or, up
        to a constant, disparity between them. A cluster of one has no pairs, so all its statistics are zero.

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
        self.pairwise = chosen == ("count",)
        super().__init__(
            name, [f"{aggregate} of {feature}" for aggregate in chosen for feature in table.names]
        )

    def pieces(self) -> list[PairTableTemplate]:
        """Return one template per aggregate, in the order of the weights."""
        return [PairTableTemplate(f"{self.name}: {a}", self.table, (a,)) for a in self.aggregates]

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items: the table of their pairs."""
        return copy_with(self, table=self.table.restrict_to(items))

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Add the template to a compiled program; its weights begin at ``offset``."""
        program.check_items(self.name, self.table.n_items)
        program.add_table(self.table, [AGGREGATE_CODES[a] for a in self.aggregates], offset)

    def of(self, items: Items, cluster_type: int = 0) -> Float64s:
        """Return the statistics of one cluster."""
        if len(items) < 2:
            return np.zeros(self.size)
        first, second = np.triu_indices(len(items), 1)
        rows = self.table.rows(items[first], items[second]).astype(np.int64)
        links = np.zeros((len(items), self.table.n_features), np.int64)
        np.add.at(links, first, rows)
        np.add.at(links, second, rows)
        counts, pairs = rows.sum(axis=0), len(first)
        values = {
            "count": counts,
            "all": counts == pairs,
            "exists": counts > 0,
            "majority": 2 * counts > pairs,
            "mean": counts / pairs,
            "per member": counts / len(items),
            "linked": (links > 0).sum(axis=0),
        }
        return np.concatenate([values[aggregate] for aggregate in self.aggregates]).astype(np.float64)

    def statistics(self, world: Partition) -> SparseVector:
        """Return the sum over all clusters."""
        check_items(self.name, self.table.n_items, world.n_items)
        return SparseVector.from_dense(sum((self.of(m) for m in world.clusters()), np.zeros(self.size)))
