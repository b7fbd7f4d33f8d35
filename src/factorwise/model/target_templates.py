"""Templates over worlds in which every item has a target: matchings, permutations, trees, custom worlds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateError
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.structures import targets as kernels
from factorwise.model.template import Template
from factorwise.model.weights import SparseVector
from factorwise.types import Float64s
from factorwise.validation import as_array
from factorwise.world.hierarchy import Hierarchy
from factorwise.world.targets import Changes, TargetWorld


class WholeWorldTemplate(Template[Any, Any]):
    """A template that computes the effect of a diff from its statistics before and after.

    This is a base for custom templates. ``statistics`` is enough for plain Python; ``program`` defines how
    compiled walks find the few factors that a change touches.
    """

    def difference(self, world: Any, diff: Any) -> SparseVector:
        """Return the statistics of the whole world after ``diff`` minus those before it."""
        before = self.statistics(world)
        return SparseVector.sum([self.statistics(world.after(diff)), before.scaled(-1.0)])


class _PairStatistics(WholeWorldTemplate):
    """Statistics of some pairs of numbers.

    pairs : int[pairs, 2]
        Each pair once; all other pairs have statistics of zero.
    values : float[pairs, statistics]
        One row, or one number, for each pair.
    statistic_names
        The name of each statistic.
    """

    worlds = (TargetWorld,)
    except_for = (Hierarchy,)

    def __init__(
        self, name: str, pairs: ArrayLike, values: ArrayLike, statistic_names: Sequence[str] = ()
    ) -> None:
        self.name = name
        listed, numbers = as_array("pairs", pairs), np.asarray(values, dtype=np.float64)
        numbers = numbers[:, None] if numbers.ndim == 1 else numbers
        if listed.ndim != 2 or listed.shape[1] != 2 or listed.dtype.kind not in "iu" or listed.min() < 0:
            raise ShapeError(
                f"pairs of template {name!r} must be whole numbers from 0 on, of shape (pairs, 2)."
            )
        if numbers.ndim != 2 or len(numbers) != len(listed) or not np.isfinite(numbers).all():
            raise ShapeError(
                f"template {name!r} has {len(listed)} pairs and values of shape {numbers.shape}: give a row"
                " of finite numbers for each pair."
            )
        self.size = numbers.shape[1]
        self.statistic_names = tuple(statistic_names) or tuple(map(str, range(self.size)))
        if len(self.statistic_names) != self.size:
            raise InvalidArgumentError(
                f"template {name!r} has {self.size} statistics and {len(self.statistic_names)} names."
            )
        order = np.lexsort((listed[:, 1], listed[:, 0]))
        self.pairs, self.numbers = listed[order].astype(np.int64), np.ascontiguousarray(numbers[order])
        self._key = self.pairs[:, 0] << 32 | self.pairs[:, 1]
        if (np.diff(self._key) == 0).any():
            raise InvalidArgumentError(
                f"template {name!r} lists a pair twice: list each pair once, with the sum of its statistics."
            )

    def weight_name(self, index: int) -> str:
        """Return the name of the statistic."""
        return f"{self.name}: {self.statistic_names[index]}"

    def _sum(self, first: NDArray[Any], second: NDArray[Any]) -> SparseVector:
        """Add the statistics of some pairs."""
        key = first.astype(np.int64) << 32 | second.astype(np.int64)
        row = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
        return SparseVector.from_dense(self.numbers[row[self._key[row] == key]].sum(axis=0))

    def _program(self, n_items: int, offset: int, weights: Float64s, entries: int, **roles: Any) -> Program:
        start = np.searchsorted(self.pairs[:, 0], np.arange(n_items + 1)).astype(np.int64)
        arrays = {
            "start": start,
            "partner": self.pairs[:, 1].astype(np.int32),
            "value": self.numbers,
            "weights": weights,
            "offset": [offset],
            "score": np.zeros(len(self.pairs)),
        }
        return Program(
            begin=kernels.begin_pairs,
            arrays=arrays,
            name=self.name,
            for_gains=("begin",),
            entries=entries * self.size,
            **roles,
        )


class TargetTemplate(_PairStatistics):
    """Statistics of each item and its target.

    The target is the partner of a left item in a `Matching`, the position of an item in a `Permutation`, or
    the parent of an item in a `Tree`. A missing partner or parent counts as one more target, the last.

    pairs : int[pairs, 2]
        Items and targets; all other pairs have statistics of zero.
    values : float[pairs, statistics]
        One row, or one number, for each pair.

    >>> from factorwise.world.structures import Matching
    >>> near = TargetTemplate("near", [(0, 0), (0, 1), (1, 0)], [0.5, 0.1, 0.9])
    >>> near.statistics(Matching(2, 2, pairs=[(0, 1), (1, 0)])).value
    array([1.])
    """

    @classmethod
    def from_table(cls, name: str, table: ArrayLike) -> TargetTemplate:
        """Make a template with one statistic from a table of items by targets."""
        values = np.asarray(table, dtype=np.float64)
        if values.ndim != 2:
            raise ShapeError(
                f"the table of template {name!r} must have two dimensions, but has shape {values.shape}."
            )
        return cls(name, np.argwhere(np.ones(values.shape, bool)), values.ravel())

    def statistics(self, world: TargetWorld) -> SparseVector:
        """Return the sum over all items."""
        return self._sum(np.arange(world.n_items), world.values)

    def difference(self, world: TargetWorld, diff: Changes) -> SparseVector:
        """Return the statistics after ``diff`` minus those before it, of the items that it moves."""
        if world.exchanges:
            return super().difference(world, diff)
        item, source, target = np.array(diff.changes).T
        return SparseVector.sum([self._sum(item, target), self._sum(item, source).scaled(-1.0)])

    def program(self, world: TargetWorld, offset: int, weights: Float64s) -> Program:
        """Return the program, which looks up the item with its old and its new target."""
        if world.exchanges:
            gain, gradient = kernels.gain_of_exchange, kernels.gradient_of_exchange
            return self._program(world.n_items, offset, weights, 4, gain=gain, gradient=gradient)
        return self._program(
            world.n_items,
            offset,
            weights,
            2,
            gain=kernels.gain_of_target,
            gains=kernels.gains_of_targets,
            gradient=kernels.gradient_of_target,
        )


class FollowTemplate(_PairStatistics):
    """Statistics of each two items of a `Permutation` that follow each other directly.

    pairs : int[pairs, 2]
        The earlier item and the one that follows it; all other pairs have statistics of zero.
    values : float[pairs, statistics]
        One row, or one number, for each pair.
    """

    def statistics(self, world: TargetWorld) -> SparseVector:
        """Return the sum over all positions except the last."""
        self._check_order(world)
        order = world.arrays.holder
        return self._sum(order[:-1], order[1:])

    def program(self, world: TargetWorld, offset: int, weights: Float64s) -> Program:
        """Return the program, which looks up the items around the two positions that change."""
        self._check_order(world)
        gain, gradient = kernels.gain_of_neighbors, kernels.gradient_of_neighbors
        return self._program(world.n_items, offset, weights, 8, gain=gain, gradient=gradient)

    def _check_order(self, world: TargetWorld) -> None:
        if not world.exchanges:
            raise TemplateError(
                f"template {self.name!r} needs items in an order, but the world is {world!r}: give a"
                " Permutation."
            )
