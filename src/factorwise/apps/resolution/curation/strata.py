"""Links by strata of their score before any answer, from which questions are drawn at random."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

BOUNDS = (-4.0, -1.5, 0.0, 1.5, 4.0)  # scores between the strata


class LinkStrata:
    """The strata of all links.

    scores
        Of the links, before any answer.
    """

    def __init__(self, scores: NDArray[np.float32]) -> None:
        self._scores = scores

    @property
    def cells(self) -> int:
        """How many cells there are: links of each stratum within entities, and between them."""
        return 2 * (len(BOUNDS) + 1)

    @cached_property
    def of_links(self) -> NDArray[np.int8]:
        """The stratum of each link."""
        return np.searchsorted(np.array(BOUNDS, np.float32), self._scores).astype(np.int8)

    def draw(self, random: np.random.Generator) -> int:
        """Return a link of a stratum at random."""
        links = self._links[int(random.integers(len(self._links)))]
        return int(links[random.integers(len(links))])

    @cached_property
    def _links(self) -> list[NDArray[np.int64]]:
        found = [np.flatnonzero(self.of_links == k) for k in range(len(BOUNDS) + 1)]
        return [links for links in found if len(links)]
