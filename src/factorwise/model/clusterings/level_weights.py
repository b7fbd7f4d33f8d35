"""Weights of links by their comparison levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from factorwise.errors import ShapeError, require
from factorwise.kernels.clusterings.links import CLUSTER_WEIGHT, FIXED_WEIGHTS, LINK_WEIGHT, UNLINKED_WEIGHT
from factorwise.types import Float64s, Int64s, UInt8s


@dataclass(frozen=True, eq=False)
class LevelWeights:
    """Weights of links by their comparison levels, in the order that a `LinkTemplate` uses.

    sizes
        Number of levels of each comparison, without level 0.
    values : float64[weights]
        The weights of an unlinked pair, of a cluster and of a link, then those of the levels of each
        comparison.
    """

    sizes: tuple[int, ...]
    values: Float64s
    offsets: Int64s = field(init=False)

    def __post_init__(self) -> None:
        require(all(size >= 0 for size in self.sizes), "sizes", self.sizes, "zero or more levels each")
        offsets = link_offsets(self.sizes)
        object.__setattr__(self, "offsets", offsets[:-1])
        if self.values.shape != (offsets[-1],):
            raise ShapeError(
                f"comparisons with {self.sizes} levels need {offsets[-1]} weights,"
                f" but {self.values.shape} were given."
            )

    @classmethod
    def zeros(cls, sizes: Sequence[int]) -> LevelWeights:
        """Return weights that are all zero."""
        return cls(tuple(sizes), np.zeros(FIXED_WEIGHTS + sum(sizes)))

    @property
    def unlinked(self) -> float:
        """Weight of two members that are not linked."""
        return float(self.values[UNLINKED_WEIGHT])

    @property
    def cluster(self) -> float:
        """Weight of a cluster."""
        return float(self.values[CLUSTER_WEIGHT])

    @property
    def link(self) -> float:
        """Weight of two members that are linked, whatever their levels."""
        return float(self.values[LINK_WEIGHT])

    def tables(self) -> list[Float64s]:
        """Return the weights of the levels of each comparison, including level 0."""
        return [np.append(0.0, self.values[part]) for part in self._parts()]

    def used(self) -> list[int]:
        """Return the comparisons that have a level with a weight other than zero."""
        return [number for number, part in enumerate(self._parts()) if self.values[part].any()]

    def only(self, comparisons: Sequence[int]) -> LevelWeights:
        """Return the weights of some of the comparisons."""
        parts = self._parts()
        chosen = [self.values[parts[number]] for number in comparisons]
        values = np.concatenate([self.values[:FIXED_WEIGHTS], *chosen])
        return LevelWeights(tuple(self.sizes[number] for number in comparisons), values)

    def with_tables(self, comparisons: Sequence[int], replacement: LevelWeights) -> LevelWeights:
        """Return these weights with those of some comparisons replaced.

        comparisons
            Which comparisons to replace.
        replacement
            Their new weights, and the new weights of unlinked pairs, clusters and links.
        """
        values, parts = self.values.copy(), self._parts()
        values[:FIXED_WEIGHTS] = replacement.values[:FIXED_WEIGHTS]
        for number, part in zip(comparisons, replacement._parts(), strict=True):
            values[parts[number]] = replacement.values[part]
        return LevelWeights(self.sizes, values)

    def cumulated(self) -> LevelWeights:
        """Return weights of levels, if these are weights of the steps from each level to the next."""
        return self._mapped(np.cumsum)

    def steps(self) -> LevelWeights:
        """Return weights of the steps from each level to the next, if these are weights of levels."""
        return self._mapped(lambda values: np.diff(values, prepend=0.0))

    def link_scores(self, levels: UInt8s) -> Float64s:
        """Return the scores of links with these levels: uint8[links, comparisons]."""
        scores = np.full(len(levels), self.link)
        for column, table in enumerate(self.tables()):
            scores += table[levels[:, column]]
        return scores

    def _parts(self) -> list[slice]:
        ends = self.offsets + np.asarray(self.sizes, np.int64)
        return [slice(*bounds) for bounds in zip(self.offsets.tolist(), ends.tolist(), strict=True)]

    def _mapped(self, function: Callable[[Float64s], Float64s]) -> LevelWeights:
        values = self.values.copy()
        for part in self._parts():
            values[part] = function(self.values[part])
        return LevelWeights(self.sizes, values)


def link_offsets(sizes: Sequence[int]) -> Int64s:
    """Return where the weights of each comparison begin, and where the last ones end."""
    return FIXED_WEIGHTS + np.append(0, np.cumsum(sizes)).astype(np.int64)
