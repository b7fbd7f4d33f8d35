"""Links by strata of their score before any answer, from which questions are drawn at random."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.regions import CHUNK
from factorwise.apps.resolution.curation.teaching import GroupOdds
from factorwise.types import Bools

BOUNDS = (-4.0, -1.5, 0.0, 1.5, 4.0)  # scores between the strata


class LinkStrata:
    """The strata of all links.

    scores
        Of the links, before any answer.
    """

    def __init__(self, scores: NDArray[np.float32]) -> None:
        self._scores = scores

    @cached_property
    def of_links(self) -> NDArray[np.int8]:
        """The stratum of each link."""
        return np.searchsorted(np.array(BOUNDS, np.float32), self._scores).astype(np.int8)

    def draw(self, random: np.random.Generator) -> int:
        """Return a link of a stratum at random."""
        links = self._links[int(random.integers(len(self._links)))]
        return int(links[random.integers(len(links))])

    def expected_shares(self, together: Bools) -> NDArray[np.float32]:
        """Return the probability of each link, before any answer, that its records are of one entity.

        together
            Whether the link is within an entity now.
        """
        apart, inside = self._shares
        return np.where(together, inside, apart)

    @cached_property
    def _links(self) -> list[NDArray[np.int64]]:
        found = [np.flatnonzero(self.of_links == k) for k in range(len(BOUNDS) + 1)]
        return [links for links in found if len(links)]

    @cached_property
    def _shares(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        odds, found = GroupOdds(), np.empty((2, len(self._scores)), np.float32)
        for low in range(0, len(self._scores), CHUNK):
            scores = self._scores[low : low + CHUNK].astype(np.float64)
            for together in (0, 1):
                flags = np.full(len(scores), bool(together))
                found[together, low : low + CHUNK] = odds.probability(scores, scores, flags)
        return found[0], found[1]
