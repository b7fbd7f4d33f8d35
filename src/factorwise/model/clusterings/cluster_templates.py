"""Templates over whole clusters, whose statistics are a function of all members.

A transfer replaces two clusters by two others and touches no other cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from factorwise.kernels.clusterings.code.functions import ClusterTerm
from factorwise.kernels.compile.composition import source_of
from factorwise.model.clusterings.partition_templates import Items, PartitionTemplate, parts_of
from factorwise.model.clusterings.program import PartitionProgram, check_items
from factorwise.model.clusterings.restrictions import copy_with
from factorwise.model.contributions import Contributions
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int64s
from factorwise.variables.fields import Fields
from factorwise.world.diff import NEW, PartitionDiff, Retype
from factorwise.world.partition import Partition


class WholeClusterTemplate(PartitionTemplate):
    """A factor for every cluster, whose statistics the method `of` computes."""

    examined = "whole"

    def of(self, items: Items, cluster_type: int = 0) -> Float64s:
        """Return the statistics of one cluster; an empty cluster has none."""
        raise NotImplementedError(
            f"{type(self).__name__} does not define the statistics of a cluster: override the method"
            " of(items, cluster_type)"
        )

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Return the statistics of the two clusters after the diff minus those of the two before it."""
        if isinstance(diff, Retype):
            members = world.members(diff.cluster)
            return SparseVector.from_dense(self.of(members, diff.new) - self.of(members, diff.old))
        moving, target, staying = parts_of(world, diff)
        source_type = world.type_of(diff.source)
        target_type = diff.new_type if diff.target == NEW else world.type_of(diff.target)
        after = self.of(np.concatenate([target, moving]), target_type) + self.of(staying, source_type)
        before = self.of(target, target_type) + self.of(world.members(diff.source), source_type)
        return SparseVector.from_dense(after - before)

    def contributions(
        self, world: Partition, diff: PartitionDiff, weights: Float64s, *, bounds: bool = False
    ) -> Contributions:
        """List the two touched clusters as one factor that is always examined."""
        return Contributions.whole(self, world, diff, weights)


class ClusterTemplate(WholeClusterTemplate):
    """A factor for every cluster, whose statistics a user's function computes.

    function
        ``function(cluster)`` gets the cluster with each field as an attribute, which has the members' values
        as an array (members in rows), and with ``cluster.size`` and ``cluster.type``. It returns a tuple of
        numbers or truth values that must not depend on the order of the members.
    """

    def __init__(
        self,
        name: str,
        fields: Fields | None,
        function: Callable[[Any], tuple[Any, ...]],
        statistics: Sequence[str],
    ) -> None:
        super().__init__(name, statistics)
        self.fields = fields if fields is not None else Fields(item=np.zeros(1, np.int32))
        self.needs_fields = fields is not None
        self.function = function
        self.of(np.arange(1, dtype=np.int32), 0)

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items."""
        return copy_with(self, fields=self.fields.restrict_to(items)) if self.needs_fields else self

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Add the template to a compiled program; its weights begin at ``offset``."""
        if self.needs_fields:
            program.check_items(self.name, self.fields.n_items)
        source = source_of(self.function)
        columns = program.columns(self.fields, source.attributes)
        program.add_clusters(ClusterTerm(source, columns, self.size), offset, self)

    def of(self, items: Items, cluster_type: int = 0) -> Float64s:
        """Return the statistics of one cluster; an empty cluster has none."""
        if len(items) == 0:
            return np.zeros(self.size)
        chosen = items if self.needs_fields else np.zeros(len(items), np.int32)
        return self.statistics_of(self.fields.cluster(chosen, cluster_type))

    def statistics_of(self, cluster: Any) -> Float64s:
        """Return the function's answer for a cluster with its fields, ``size`` and ``type`` as attributes."""
        description = f"a cluster of {cluster.size}"
        return np.array(self._checked(self._answer(description, cluster), description))

    def statistics(self, world: Partition) -> SparseVector:
        """Return the sum over all clusters."""
        if self.needs_fields:
            check_items(self.name, self.fields.n_items, world.n_items)
        compiled = self._compiled_statistics(world)
        if compiled is not None:
            return SparseVector.from_dense(compiled)
        ids = world.cluster_ids().tolist()
        total = sum((self.of(world.members(c), world.type_of(c)) for c in ids), np.zeros(self.size))
        return SparseVector.from_dense(total)


class ClusterSize(ClusterTemplate):
    """The number of clusters and the number of clusters with one member: a prior on granularity."""

    def __init__(self, name: str = "cluster size") -> None:
        super().__init__(name, None, _count_and_singleton, ["clusters", "singletons"])


def _count_and_singleton(cluster: Any) -> tuple[Any, ...]:
    return 1.0, cluster.size == 1
