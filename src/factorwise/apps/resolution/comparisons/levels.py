"""Cutting what measures say into a few levels, each with a weight of its own.

Level 0 means that there is nothing to compare: evidence of nothing. Level 1 is a measure of exactly zero
(different, nothing shared, or no distance). The levels above it hold about equally many of the other values
that the candidates had when the cuts were chosen, but for the end where pairs are alike: few candidates are
of one entity, and what tells them from the others happens among the most alike of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.measures import Values
from factorwise.kernels.text.relations import add_level_weights, cut_levels

NOTHING = 0
EVEN_PARTS = 7
#: Shares of the candidates below the further cuts, at the end where pairs are alike.
TAIL = (0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
FINE_PARTS = 24
SHARED_PARTS = 48
FINE_TAIL = (0.95, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.9965, 0.998, 0.999)
_TINY = np.float32(1e-9)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where the levels of one comparison begin.

    edges
        Ascending; a value below the first has level 1. Empty for a measure that gives levels itself.
    size
        Number of levels without level 0.
    """

    edges: tuple[float, ...]
    size: int

    @classmethod
    def of_relation(cls, size: int) -> Cuts:
        """Cuts of a measure whose values are levels."""
        return cls((), size)

    @classmethod
    def by_quantiles(cls, values: Values, *, falling: bool = False, fine: bool = False) -> Cuts:
        """Cut so that the values above zero fall in equal parts, and finer ones at their alike end.

        falling
            Whether lower values are more alike.
        fine
            Whether there are labels, which can tell many levels apart.
        """
        above = values[values > _TINY]  # leaves NaN out
        if not len(above):
            return cls((float(_TINY),), 2)
        parts, tail = (FINE_PARTS, np.array(FINE_TAIL)) if fine else (EVEN_PARTS, np.array(TAIL))
        shares = np.append(np.arange(1, parts) / parts, 1.0 - tail if falling else tail)
        edges = np.unique(np.append(_TINY, np.quantile(above, shares, method="higher").astype(np.float32)))
        return cls(tuple(edges.tolist()), len(edges) + 1)

    @classmethod
    def by_shares(cls, values: Values) -> Cuts:
        """Cut so that the values, of either sign, fall in equal parts."""
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
        """Add to each score the weight of the level of its value; ``weights`` has one for level 0 too."""
        add_level_weights(values, np.asarray(self.edges, np.float32), weights, scores)

    def text(self, level: int) -> str:
        """Say which values a level holds."""
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
