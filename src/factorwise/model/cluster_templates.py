"""Templates over whole clusters: a user's function, and first-order features of the members or their pairs.

A transfer replaces two clusters by two others; no other cluster is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.arguments import check_types
from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.kernels.clusterings.functions import ClusterTerm, PairAggregateTerm
from factorwise.kernels.compile.composition import Source, source_of
from factorwise.kernels.compile.primitives import AGGREGATES
from factorwise.model.contributions import Contributions
from factorwise.model.partition_program import PartitionProgram, check_items
from factorwise.model.partition_templates import Items, PairTemplate, PartitionTemplate, parts_of
from factorwise.model.restrictions import copy_with
from factorwise.model.weights import SparseVector
from factorwise.variables.fields import Fields
from factorwise.world.diff import NEW, PartitionDiff, Retype
from factorwise.world.partition import Partition


class ClusterTemplate(PartitionTemplate):
    """A factor for every cluster.

    function
        ``function(cluster)`` where each field is an attribute holding the members' values as an array
        (members in rows), beside ``cluster.size`` and ``cluster.type``; returns a tuple of numbers or truth
        values that must not depend on the order of the members.
    """

    examined = "whole"

    @check_types
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

    def restrict_to(self, items: NDArray[np.int64]) -> Self:
        """Return the template of some items."""
        return copy_with(self, fields=self.fields.restrict_to(items)) if self.needs_fields else self

    def source(self) -> Source:
        """Text of the function, for compiling."""
        return source_of(self.function)

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Take part in a compiled program, with weights from ``offset`` on."""
        if self.needs_fields:
            program.check_items(self.name, self.fields.n_items)
        source = self.source()
        columns = program.columns(self.fields, source.attributes)
        program.add_clusters(ClusterTerm(source, columns, self.size), offset, self)

    def of(self, items: Items, cluster_type: int) -> NDArray[np.float64]:
        """Return the statistics of one cluster; an empty one has none."""
        if len(items) == 0:
            return np.zeros(self.size)
        chosen = items if self.needs_fields else np.zeros(len(items), np.int32)
        given = f"a cluster of {len(items)}"
        answer = self._answer(given, self.fields.cluster(chosen, cluster_type))
        return np.array(self._checked(answer, given))

    def statistics(self, world: Partition) -> SparseVector:
        """Sum over all clusters."""
        if self.needs_fields:
            check_items(self.name, self.fields.n_items, world.n_items)
        compiled = self._compiled_statistics(world)
        if compiled is not None:
            return SparseVector.from_dense(compiled)
        ids = world.cluster_ids().tolist()
        total = sum((self.of(world.members(c), world.type_of(c)) for c in ids), np.zeros(self.size))
        return SparseVector.from_dense(total)

    def difference(self, world: Partition, diff: PartitionDiff) -> SparseVector:
        """Two clusters after minus two clusters before."""
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
        self, world: Partition, diff: PartitionDiff, weights: NDArray[np.float64], *, bounds: bool = False
    ) -> Contributions:
        """Examine the factors of the two clusters together and always: a diff touches few of them."""
        return Contributions.whole(self, world, diff, weights)


class ClusterAggregate(ClusterTemplate):
    """First-order features of clusters: aggregates over the members' values of one field.

    aggregates
        Any of all, exists, count, majority (of values that are not zero), min, max, mean, distinct.
    """

    @check_types
    def __init__(self, name: str, fields: Fields, field: str, aggregates: Iterable[str]) -> None:
        chosen = list(aggregates)
        unknown = [a for a in chosen if a not in AGGREGATES]
        if unknown:
            raise InvalidArgumentError(
                f"no aggregate is called {unknown[0]!r}: choose from {list(AGGREGATES)}."
            )
        if fields[field].width:
            raise ShapeError(f"field {field!r} has several numbers per item: aggregate a plain field.")
        self.field = field
        self.aggregates = chosen
        functions = [AGGREGATES[a] for a in chosen]
        super().__init__(
            name,
            fields,
            lambda cluster: tuple(function(getattr(cluster, field)) for function in functions),
            [f"{aggregate} of {field}" for aggregate in chosen],
        )

    def source(self) -> Source:
        """Text of the aggregates, for compiling."""
        names = [AGGREGATES[a].__name__ for a in self.aggregates]
        imports = f"from factorwise.kernels.compile.primitives import {', '.join(dict.fromkeys(names))}"
        values = "".join(f"{name}(cluster.{self.field}), " for name in names)
        function = f"aggregate_{self.field}_{'_'.join(names)}"
        text = f"{imports}\n\n@inlined\ndef {function}(cluster):\n    return ({values})"
        return Source(function, text, frozenset({self.field}))


class ClusterSize(ClusterTemplate):
    """How many clusters there are, and how many of them have one member: a prior on granularity."""

    @check_types
    def __init__(self, name: str = "cluster size") -> None:
        super().__init__(name, None, _count_and_singleton, ["clusters", "singletons"])


def _count_and_singleton(cluster: Any) -> tuple[Any, ...]:
    return 1.0, cluster.size == 1


class PairAggregate(ClusterTemplate):
    """First-order features of clusters: one aggregate of a pair function over all pairs of members.

    aggregate
        One of all, exists, count, majority (of pairs whose value is above zero), min, max, mean. ``count``
        adds the values up. A cluster of one has no pairs: all its statistics are zero.
    """

    @check_types
    def __init__(
        self,
        name: str,
        fields: Fields,
        function: Callable[[Any, Any], tuple[Any, ...]],
        statistics: Sequence[str],
        aggregate: str,
    ) -> None:
        if aggregate not in _PAIR_AGGREGATES:
            raise InvalidArgumentError(
                f"no pair aggregate is called {aggregate!r}: choose from {list(_PAIR_AGGREGATES)}."
            )
        self.aggregate = aggregate
        self.pairs = PairTemplate(name, fields, function, statistics)
        super().__init__(name, fields, lambda cluster: (0.0,) * len(statistics), statistics)

    def restrict_to(self, items: NDArray[np.int64]) -> Self:
        """Return the template of some items."""
        pairs = self.pairs.restrict_to(items)
        return copy_with(self, fields=pairs.fields, pairs=pairs)

    def source(self) -> Source:
        """Text of the pair function, for compiling."""
        return self.pairs.source()

    def add_to(self, program: PartitionProgram, offset: int) -> None:
        """Take part in a compiled program, with weights from ``offset`` on."""
        program.check_items(self.name, self.fields.n_items)
        source = self.source()
        columns = program.columns(self.fields, source.attributes)
        program.add_clusters(PairAggregateTerm(source, columns, self.size, self.aggregate), offset, self)

    def weight_name(self, index: int) -> str:
        """Return the template, the aggregate and the statistic."""
        return f"{self.name}: {self.aggregate} of {self.statistic_names[index]}"

    def of(self, items: Items, cluster_type: int) -> NDArray[np.float64]:
        """Return the aggregate of each statistic over the pairs of one cluster."""
        if len(items) < 2:
            return np.zeros(self.size)
        values = np.array([self.pairs._of(a, b) for a, b in combinations(self.fields.records(items), 2)])
        return np.asarray(_PAIR_AGGREGATES[self.aggregate](values), dtype=np.float64)


_PAIR_AGGREGATES: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "all": lambda values: values.min(axis=0) > 0,
    "exists": lambda values: values.max(axis=0) > 0,
    "count": lambda values: values.sum(axis=0),
    "min": lambda values: values.min(axis=0),
    "max": lambda values: values.max(axis=0),
    "mean": lambda values: values.mean(axis=0),
    "majority": lambda values: 2 * (values > 0).sum(axis=0) > len(values),
}
