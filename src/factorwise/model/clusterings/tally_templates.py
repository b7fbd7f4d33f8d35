r"""Tallies: templates whose statistics follow from how much of each key a cluster has.

With :math:`n(C, k)` the amount of key k that the members of a cluster C have together, a tally is

.. math:: \sum_C \mathrm{value}\Bigl(\sum_k \mathrm{part}(n(C, k)),\; |C|\Bigr)

Moving an item changes the counts of its own keys in two clusters, which takes two look-ups per key, however
large the clusters are. Examples are the number of different first names of a cluster, the similarity of the
members' words to those of the whole cluster, and whether all members, or some two of them, agree. A statistic
that is not a sum over keys, such as the share of the most frequent value, needs a `ClusterTemplate`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.kernels.clusterings.tallies import in_units, tally_functions
from factorwise.kernels.compile.programs import Program
from factorwise.model.clusterings.cluster_templates import WholeClusterTemplate
from factorwise.model.clusterings.count_layout import KeptLayout
from factorwise.model.clusterings.partition_templates import Items
from factorwise.model.clusterings.program import check_items
from factorwise.model.clusterings.restrictions import copy_with
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s, Int32s, Int64s
from factorwise.variables.bags import UNIT, Bags
from factorwise.variables.sparse_rows import take_rows
from factorwise.world.partition import Partition

_TRIED = 64  # the part is tried with this many counts from 0 on, and with as many of the largest
_LARGEST_SUM = 2**62  # of parts, in units


class TallyTemplate(WholeClusterTemplate):
    """A factor for every cluster: a function of the sum over keys of a function of the count.

    keys
        The keys of the items, from `Bags.from_field`, `Bags.from_lists` or `Bags.from_weights`.
    part
        ``part(count)`` of the amount, a whole number, that a cluster has of one key; ``part(0)`` must be 0.
    value
        ``value(total, size)`` of the sum of the parts and of the number of members. It returns a number or a
        truth value, or a tuple of them, one per statistic.
    statistics
        Names of the statistics, each of which has one weight.
    unit
        Sums are kept as whole multiples of this, so that no rounding errors accumulate: 1 if all parts are
        whole numbers, otherwise a small number such as ``2**-20``.

    >>> from factorwise.world.partition import Partition
    >>> names = Bags.from_lists([["ann"], ["ann"], ["bob"]])
    >>> def once(count):
    ...     return count > 0
    >>> def beyond_one(total, size):
    ...     return max(0.0, total - 1.0)
    >>> template = TallyTemplate("names", names, once, beyond_one, ["more than one name"])
    >>> template.statistics(Partition.from_labels([0, 0, 0])).value
    array([1.])
    """

    asks_for_groups = True

    def __init__(
        self,
        name: str,
        keys: Bags,
        part: Callable[[int], Any],
        value: Callable[[float, int], Any],
        statistics: Sequence[str],
        *,
        unit: float = 1.0,
    ) -> None:
        super().__init__(name, statistics)
        self.keys = keys
        self.part = part
        self.function = value
        self.unit = float(unit)
        if not (self.unit > 0.0 and math.isfinite(self.unit)):
            raise InvalidArgumentError(f"the unit of template {name!r} must be above zero, but is {unit!r}.")
        self._layout = KeptLayout(name, keys.start, keys.key, amount=keys.amount)
        self._layout.of(None)
        self._check_part()
        self.single = not isinstance(self._answer("a cluster of one", 0.0, 1), tuple)
        self._statistics(0, 1)
        amounts, position = np.unique(keys.amount, return_inverse=True)
        parts = np.array([self._part(amount) for amount in amounts.tolist()], np.int64)[position]
        self._parts = parts

    def _check_part(self) -> None:
        most = np.bincount(self.keys.key, weights=self.keys.amount).astype(np.int64)
        for count in sorted({*range(_TRIED + 1), *np.unique(most)[-_TRIED:].tolist()}):
            part = self._called(count)
            if count == 0 and part != 0.0:
                raise TemplateError(
                    f"part(0) of template {self.name!r} is {part}, but must be 0, because a cluster"
                    " lacks almost all keys."
                )
            if self.unit == 1.0 and part != math.floor(part):
                raise TemplateError(
                    f"part({count}) of template {self.name!r} is {part}, which is not a whole number:"
                    " use TallyTemplate(..., unit=2**-20), which keeps sums as multiples of the unit."
                )
        different, times = np.unique(most, return_counts=True)
        parts = np.array([abs(self._called(count)) for count in different.tolist()])
        largest = float(parts @ times) / self.unit
        if largest > _LARGEST_SUM:
            raise InvalidArgumentError(
                f"the parts of template {self.name!r} add up to {largest:.3g} units, but the limit is"
                " 2^62: use a larger unit or smaller amounts."
            )

    def _called(self, count: int) -> float:
        try:
            part = float(self.part(count))
        except (ArithmeticError, IndexError, TypeError, ValueError) as fault:
            raise TemplateError(
                f"the part of template {self.name!r} failed for a count of {count}: {fault}. It must return"
                " a number for every whole number from 0 on."
            ) from fault
        if not math.isfinite(part):
            raise TemplateError(
                f"part({count}) of template {self.name!r} is {part}, but parts must be finite numbers."
            )
        return part

    def _part(self, count: int) -> int:
        """Return the part of a count, in units."""
        return int(in_units(self._called(count), self.unit))

    def _statistics(self, total: int, size: int) -> tuple[float, ...]:
        """Return the statistics of a cluster, given its sum of parts in units."""
        description = f"a total of {total * self.unit} and a cluster of {size}"
        answer = self._answer(description, total * self.unit, size)
        return self._checked((answer,) if self.single else answer, description)

    def restrict_to(self, items: Int64s) -> Self:
        """Return the template for some of the items, with the keys that they have."""
        _, entries = take_rows(self.keys.start, items)
        keys = self.keys.restrict_to(items)
        layout = KeptLayout(self.name, keys.start, keys.key, amount=keys.amount)
        return copy_with(self, keys=keys, _layout=layout, _parts=self._parts[entries])

    def program(
        self, world: Partition, offset: int, weights: Float64s, groups: Int32s | None = None
    ) -> Program:
        """Return the program for compiled walks.

        offset
            Where the weights of the template begin.
        groups
            Group numbers: only items of the same group can ever be together.
        """
        check_items(self.name, self.keys.n_items, world.n_items)
        counts = self._layout.of(groups)
        own = np.cumsum(np.where(counts.shared, 0, self._parts))
        arrays = {
            **counts.arrays(),
            "own": np.diff(np.concatenate([[0], own])[self.keys.start]),
            "total": np.zeros(len(world.arrays.size), np.int64),
            "weights": weights,
            "offset": np.array([offset]),
            "place": np.array([offset]),
        }
        functions: dict[str, Any] = tally_functions(self.part, self.function, self.unit, self.single)
        return Program(name=f"tally {self.name!r}", arrays=arrays, **functions)

    def of(self, items: Items, cluster_type: int = 0) -> Float64s:
        """Return the statistics of one cluster; an empty cluster has none."""
        if len(items) == 0:
            return np.zeros(self.size)
        amounts: Counter[int] = Counter()
        for item in items.tolist():
            amounts.update(self.keys.of(item))
        return np.array(self._statistics(sum(map(self._part, amounts.values())), len(items)))

    def statistics(self, world: Partition) -> SparseVector:
        """Return the sum over all clusters, from the counts of all keys at once."""
        check_items(self.name, self.keys.n_items, world.n_items)
        cluster = np.repeat(world.labels, np.diff(self.keys.start)).astype(np.int64)
        pairs, position = np.unique(cluster * max(self.keys.n_keys, 1) + self.keys.key, return_inverse=True)
        counts = np.bincount(position, weights=self.keys.amount, minlength=len(pairs)).astype(np.int64)
        different, position = np.unique(counts, return_inverse=True)
        parts = np.array([self._part(count) for count in different.tolist()], np.int64)[position]
        total = np.zeros(len(world.arrays.size), np.int64)
        np.add.at(total, pairs // max(self.keys.n_keys, 1), parts)
        ids = world.cluster_ids()
        rows, times = np.unique(np.stack([total[ids], world.arrays.size[ids]]), axis=1, return_counts=True)
        values = [self._statistics(total, size) for total, size in rows.T.tolist()]
        return SparseVector.from_dense(times @ np.reshape(values, (-1, self.size)))


def occurs(count: int) -> bool:
    """Whether a cluster has a key: the part function of tallies that count keys."""
    return count > 0


def occurs_twice(count: int) -> bool:
    """Whether a cluster has a key more than once: the part function of tallies that count repeats."""
    return count > 1


def square(count: int) -> int:
    """Return the square of a count: the part function of tallies that compare bags."""
    return count * count


def beyond_one(total: float, size: int) -> float:
    """Return by how much a sum exceeds 1."""
    return max(0.0, total - 1.0)


def sum_of_cosines(total: float, size: int) -> float:
    """Return the length of a bag in units.

    It is the sum of the cosines between the bag and those of its members.
    """
    return math.sqrt(total) / UNIT


def is_square_of_size(total: float, size: int) -> bool:
    """Whether all members of a cluster of two or more share one key."""
    return size > 1 and total == size * size


def is_positive(total: float, size: int) -> bool:
    """Whether a sum is above zero."""
    return total > 0.0


class DistinctValues(TallyTemplate):
    """The number of different keys of a cluster beyond the first: first names, years, sources."""

    def __init__(self, name: str, keys: Bags) -> None:
        super().__init__(name, keys.present(), occurs, beyond_one, ["values beyond one"])


class BagCosine(TallyTemplate):
    """The sum of the cosines between each member's bag and that of its cluster.

    keys
        Words with counts or, from `Bags.from_weights`, with weights; they are scaled to bags of one length.
    """

    def __init__(self, name: str, keys: Bags) -> None:
        super().__init__(name, keys.scaled(), square, sum_of_cosines, ["cosines with the cluster"])


class AllAgree(TallyTemplate):
    """Whether all members of a cluster of two or more have the same key.

    A member without a key agrees with no other member.
    """

    def __init__(self, name: str, keys: Bags) -> None:
        if np.diff(keys.start).max() > 1:
            raise ShapeError(
                f"template {name!r} compares one key per item, but some item has several: use a field"
                " with one number per item."
            )
        super().__init__(name, keys.present(), square, is_square_of_size, ["all agree"])


class SomeAgree(TallyTemplate):
    """Whether any two members of a cluster have a key in common."""

    def __init__(self, name: str, keys: Bags) -> None:
        super().__init__(name, keys.present(), occurs_twice, is_positive, ["some agree"])
