"""Strata of links by their initial score, from which random questions are drawn."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

BOUNDS = (-4.0, -1.5, 0.0, 1.5, 4.0)  # scores that separate the strata


class LinkStrata:
    """The strata of all links.

    scores
        Scores of the links before any answer.
    """

    def __init__(self, scores: NDArray[np.float32]) -> None:
        self._scores = scores

    @property
    def cells(self) -> int:
        """Number of cells: each stratum has one within entities and one between them."""
        return 2 * (len(BOUNDS) + 1)

    @cached_property
    def of_links(self) -> NDArray[np.int8]:
        """The stratum of each link."""
        return np.searchsorted(np.array(BOUNDS, np.float32), self._scores).astype(np.int8)

    def draw(self, random: np.random.Generator) -> int:
        """Draw a random link from a random stratum."""
        links = self._links[int(random.integers(len(self._links)))]
        return int(links[random.integers(len(links))])

    @cached_property
    def _links(self) -> list[NDArray[np.int64]]:
        found = [np.flatnonzero(self.of_links == k) for k in range(len(BOUNDS) + 1)]
        return [links for links in found if len(links)]
