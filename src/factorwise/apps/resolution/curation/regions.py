"""Linked records in memory, and regions of them that are searched again.

A region consists of all records of some entities. The search starts at their current clustering with a low
temperature, so a record moves only because of a verdict or the weights. Other records are not read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.apps.resolution.linked_items import Links, link_items
from factorwise.apps.resolution.updating import start_labels
from factorwise.inference.mcmc.shards.component_search import LinkWeights
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Ints
from factorwise.world.links import LinkGraph

CHUNK = 1 << 17  # links processed at a time
SEARCH = LinkSearch(rounds=3, sweeps=2, hot=0.02, cold=0.02, jumps=1.0, extra=4)


@dataclass(frozen=True, slots=True, eq=False)
class LinkedRecords:
    """Records and their links, with comparison levels and scores.

    graph, levels
        The links, and their levels in each comparison: uint8[links, comparisons].
    weights
        Weights of links and of their comparison levels.
    scores : float32[links]
        Scores of the links under these weights.
    numbers : int64[records] or None
        The numbers of the records in verdicts; None if these are their positions.
    sources : int32[records] or None
        The source of each record, if an entity has one record per source; else None.
    """

    graph: LinkGraph
    levels: NDArray[np.uint8]
    weights: LevelWeights
    scores: NDArray[np.float32]
    numbers: NDArray[np.int64] | None = None
    sources: NDArray[np.int32] | None = None

    @classmethod
    def of(
        cls,
        n_records: int,
        first: Ints,
        second: Ints,
        levels: NDArray[np.uint8],
        weights: LevelWeights,
        numbers: NDArray[np.int64] | None = None,
        sources: NDArray[np.int32] | None = None,
    ) -> LinkedRecords:
        """Build the link graph of records and score the links."""
        if not len(first):
            levels = np.zeros((0, len(weights.sizes)), np.uint8)
        graph = LinkGraph.from_pairs(n_records, first, second)
        return cls(graph, levels, weights, _scores(weights, levels), numbers, sources)

    def weighed(self, weights: LevelWeights, links: Ints | None = None) -> LinkedRecords:
        """Return the same links with other weights.

        links
            The links that are scored again, while the others keep their scores; None for all.
        """
        if links is None:
            return replace(self, weights=weights, scores=_scores(weights, self.levels))
        scores = self.scores.copy()
        scores[links] = _scores(weights, self.levels[links])
        return replace(self, weights=weights, scores=scores)

    def links_of(self, labels: Ints, entities: Ints) -> NDArray[np.int64]:
        """Return the links with at least one record of some entities."""
        inside = np.isin(labels, entities)
        return np.flatnonzero(inside[self.graph.first] | inside[self.graph.second])

    def region(self, rows: Ints) -> LinkedRecords:
        """Restrict to some sorted records and the links between them; ``numbers`` are their old numbers."""
        graph, pair = self.graph.restrict_to(rows)
        numbers = rows if self.numbers is None else self.numbers[rows]
        sources = None if self.sources is None else self.sources[rows]
        kept = np.asarray(numbers, np.int64)
        return LinkedRecords(graph, self.levels[pair], self.weights, self.scores[pair], kept, sources)

    def settle(
        self,
        rows: Ints,
        start: Ints,
        verdicts: Verdicts,
        *,
        search: LinkSearch = SEARCH,
        seed: int,
        team: Team,
    ) -> NDArray[np.int64]:
        """Search among some sorted records, and return the entity label of each.

        start
            The initial labels; records that must be together are merged first.
        """
        walk, unit = self.walk(rows, start, verdicts)
        search.run(walk, seed=seed, team=team)
        return np.asarray(walk.labels[unit], np.int64)

    def walk(self, rows: Ints, start: Ints, verdicts: Verdicts) -> tuple[LinkWalk, NDArray[np.int32]]:
        """Return a walk over some sorted records, and the item of each of them."""
        region = self if len(rows) == self.graph.n_items else self.region(np.asarray(rows))
        return region.walk_within(start, verdicts.within(rows if region.numbers is None else region.numbers))

    def walk_within(self, start: Ints, limits: Constraints) -> tuple[LinkWalk, NDArray[np.int32]]:
        """Return a walk over all records under constraints in their rows, and the item of each record."""
        links = Links(self.graph.first, self.graph.second, self.scores)
        weights = LinkWeights(self.weights.unlinked, self.weights.cluster)
        by_source = replace(limits, sources=self.sources, one_per_source=self.sources is not None)
        unit, linked = link_items(self.graph.n_items, links, by_source, weights)
        walk = linked.walk(start_labels(start, unit, linked.n_items, limits))
        return walk, unit

    def unsettled(self, labels: Ints) -> NDArray[np.int64]:
        """Return records that score better in another entity, and a record of each such entity."""
        n, (first, second) = self.graph.n_items, (self.graph.first, self.graph.second)
        unlinked = self.weights.unlinked
        number = np.unique(labels, return_inverse=True)[1]
        size = np.bincount(number)
        home, crossing = np.zeros(n), []
        for low in range(0, len(first), CHUNK):  # small steps give other threads a chance to run
            part = slice(low, low + CHUNK)
            one, two = first[part], second[part]
            beyond = self.scores[part].astype(np.float64) - unlinked
            inside = number[one] == number[two]
            home += np.bincount(one[inside], beyond[inside], n) + np.bincount(two[inside], beyond[inside], n)
            crossing.append(low + np.flatnonzero(~inside & (beyond > 0)))
        across = np.concatenate([np.zeros(0, np.int64), *crossing])
        item = np.concatenate([first[across], second[across]]).astype(np.int64)
        there = number[np.concatenate([second[across], first[across]])]
        cells, place = np.unique(item * len(size) + there, return_inverse=True)
        worth = np.tile(self.scores[across].astype(np.float64) - unlinked, 2)
        total = np.bincount(place, weights=worth, minlength=len(cells))
        owner, target = cells // len(size), cells % len(size)
        alone = size[number] == 1
        home += unlinked * (size[number] - 1) - np.where(alone, 0.0, self.weights.cluster)
        away = total + unlinked * size[target] - self.weights.cluster
        better = away > home[owner] + 1e-6
        member = np.zeros(len(size), np.int64)
        member[number] = np.arange(n)
        leaving = np.flatnonzero(home < -1e-6)
        return np.unique(np.concatenate([owner[better], member[target[better]], leaving]))


def _scores(weights: LevelWeights, levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    scores = np.empty(len(levels), np.float32)
    for low in range(0, len(levels), CHUNK):
        scores[low : low + CHUNK] = weights.link_scores(levels[low : low + CHUNK])
    return scores
