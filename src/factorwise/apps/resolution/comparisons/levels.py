"""Comparison levels: thresholds cut the values of a measure into a few levels, each with its own weight.

Level 0 means that a value is missing, which is no evidence. Level 1 is a measure of exactly zero (different,
nothing shared, or no distance). The levels above it hold about equal shares of the other values that the
candidates had when the thresholds were chosen, with finer levels among the most similar pairs: few candidates
are matches, and what separates these from non-matches happens among the most similar pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.measures import Values
from factorwise.kernels.text.relations import add_level_weights, cut_levels

NOTHING = 0
EVEN_PARTS = 7
#: Shares of candidates below the additional thresholds, at the similar end.
TAIL = (0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
FINE_PARTS = 24
SHARED_PARTS = 48
FINE_TAIL = (0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.9965, 0.998, 0.999)
_TINY = np.float32(1e-9)


@dataclass(frozen=True, slots=True)
class Cuts:
    """The thresholds of the levels of one comparison.

    edges
        Ascending thresholds; a value below the first one has level 1. Empty if the measure returns levels.
    size
        Number of levels without level 0.
    """

    edges: tuple[float, ...]
    size: int

    @classmethod
    def of_relation(cls, size: int) -> Cuts:
        """Return the cuts of a measure whose values are levels."""
        return cls((), size)

    @classmethod
    def by_quantiles(cls, values: Values, *, falling: bool = False, fine: bool = False) -> Cuts:
        """Choose thresholds at quantiles of the values above zero, with finer steps at the similar end.

        falling
            Whether lower values mean more similar.
        fine
            Whether to make many levels, whose weights can be learned only with labels.
        """
        above = values[values > _TINY]  # excludes NaN
        if not len(above):
            return cls((float(_TINY),), 2)
        parts, tail = (FINE_PARTS, np.array(FINE_TAIL)) if fine else (EVEN_PARTS, np.array(TAIL))
        shares = np.append(np.arange(1, parts) / parts, 1.0 - tail if falling else tail)
        edges = np.unique(np.append(_TINY, np.quantile(above, shares, method="higher").astype(np.float32)))
        return cls(tuple(edges.tolist()), len(edges) + 1)

    @classmethod
    def by_shares(cls, values: Values) -> Cuts:
        """Choose thresholds at quantiles of all values, of either sign."""
        known = values[~np.isnan(values)]
        if not len(known):
            return cls((0.0,), 2)
        shares = np.arange(1, SHARED_PARTS) / SHARED_PARTS
        edges = np.unique(np.quantile(known, shares, method="higher").astype(np.float32))
        return cls(tuple(edges.tolist()), len(edges) + 1)

    def levels(self, values: Values) -> NDArray[np.uint8]:
        """Return the level of each value."""
        found = np.empty(len(values), np.uint8)
        cut_levels(np.asarray(values, np.float32), np.asarray(self.edges, np.float32), found)
        return found

    def add_weights(self, values: Values, weights: Values, scores: Values) -> None:
        """Add the weight of the level of each value to its score; ``weights`` includes level 0."""
        add_level_weights(values, np.asarray(self.edges, np.float32), weights, scores)

    def text(self, level: int) -> str:
        """Describe the values of a level as text."""
        if level == NOTHING:
            return "missing"
        if not self.edges:
            return f"relation {level}"
        if level == 1:
            return "zero" if self.edges[0] == _TINY else f"below {self.edges[0]:.3g}"
        low = self.edges[level - 2]
        if level == self.size:
            return "above zero" if low <= _TINY else f"from {low:.3g}"
        high = self.edges[level - 1]
        return f"below {high:.3g}" if low <= _TINY else f"{low:.3g} to {high:.3g}"
