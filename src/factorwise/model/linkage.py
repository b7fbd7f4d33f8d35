"""A model of clusterings in which linked pairs have levels in some comparisons.

The score of a clustering is the sum over its clusters of ``cluster``, and over every two members of a cluster
of ``apart`` if they are not linked and else of ``link`` plus the weight of their level in each comparison.
Level 0, nothing to compare, has no weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import ShapeError, require
from factorwise.kernels.clusterings.linkage_learning import (
    APART_WEIGHT,
    CLUSTER_WEIGHT,
    FIXED_WEIGHTS,
    LINK_WEIGHT,
)
from factorwise.types import Ints

#: Names of the weights that every such model has.
FIXED_NAMES = ("two members not linked", "a cluster", "two members linked")


@dataclass(frozen=True, eq=False)
class LinkModel:
    """Weights of links by their levels.

    sizes
        Levels of each comparison, without level 0.
    weights
        ``apart``, ``cluster`` and ``link``, then those of the levels of each comparison in turn.
    """

    sizes: tuple[int, ...]
    weights: NDArray[np.float64]
    offsets: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        require(all(size >= 1 for size in self.sizes), "sizes", self.sizes, "1 or more levels each")
        starts = FIXED_WEIGHTS + np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        object.__setattr__(self, "offsets", starts[:-1])
        if self.weights.shape != (starts[-1],):
            raise ShapeError(
                f"comparisons with {self.sizes} levels need {starts[-1]} weights,"
                f" but {self.weights.shape} were given."
            )

    @classmethod
    def blank(cls, sizes: Sequence[int]) -> LinkModel:
        """Return a model whose weights are all zero."""
        return cls(tuple(sizes), np.zeros(FIXED_WEIGHTS + sum(sizes)))

    @property
    def apart(self) -> float:
        """Score of two members that are not linked."""
        return float(self.weights[APART_WEIGHT])

    @property
    def cluster(self) -> float:
        """Score of a cluster."""
        return float(self.weights[CLUSTER_WEIGHT])

    @property
    def link(self) -> float:
        """Score of two members that are linked, whatever their levels."""
        return float(self.weights[LINK_WEIGHT])

    def tables(self) -> list[NDArray[np.float64]]:
        """Return for each comparison the weights of its levels, level 0 included."""
        ends = self.offsets + np.asarray(self.sizes, np.int64)
        spans = zip(self.offsets.tolist(), ends.tolist(), strict=True)
        return [np.concatenate([[0.0], self.weights[a:b]]) for a, b in spans]

    def shifted(self, shift: float) -> LinkModel:
        """Return a model in which two linked members score so much more."""
        weights = self.weights.copy()
        weights[LINK_WEIGHT] += shift
        return LinkModel(self.sizes, weights)

    def summed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn weights of the steps from each level to the next into weights of levels."""
        found = weights.copy()
        for first, size in zip(self.offsets.tolist(), self.sizes, strict=True):
            found[first : first + size] = np.cumsum(weights[first : first + size])
        return found

    def link_scores(self, levels: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the scores of pairs with these levels."""
        found = np.full(len(levels), self.link)
        for column, table in enumerate(self.tables()):
            found += table[levels[:, column]]
        return found

    def score(self, labels: ArrayLike, first: Ints, second: Ints, levels: NDArray[np.uint8]) -> float:
        """Return the score of a clustering, from the definition."""
        cluster = np.asarray(labels)
        sizes = np.unique(cluster, return_counts=True)[1]
        together = cluster[first] == cluster[second]
        unlinked = int((sizes * (sizes - 1) // 2).sum()) - int(together.sum())
        links = float(self.link_scores(levels[together]).sum())
        return self.cluster * len(sizes) + self.apart * unlinked + links
