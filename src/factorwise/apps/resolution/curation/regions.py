"""Linked records in memory with their current entities, and regions of them that are searched again.

A region is all records of some entities. It is searched from where it is, cold from the start, so that a
record moves only where a verdict or the weights say so; the rest of the table is not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.apps.resolution.linking import Links, link_items
from factorwise.apps.resolution.updating import start_labels
from factorwise.inference.mcmc.shards.component_search import LinkWeights
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.model.level_weights import LevelWeights
from factorwise.types import Ints
from factorwise.world.links import LinkGraph

SEARCH = LinkSearch(rounds=3, sweeps=2, hot=0.02, cold=0.02, jumps=1.0, extra=4)


@dataclass(frozen=True, slots=True, eq=False)
class LinkedRecords:
    """Records, their links, and the entities that they are in.

    graph, levels
        The links, and their levels in each comparison: uint8[links, comparisons].
    weights
        Of the links and of their levels.
    scores : float32[links]
        Of the links under these weights.
    numbers : int64[records] or None
        What verdicts call the records; None for their places.
    """

    graph: LinkGraph
    levels: NDArray[np.uint8]
    weights: LevelWeights
    scores: NDArray[np.float32]
    numbers: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        n_records: int,
        first: Ints,
        second: Ints,
        levels: NDArray[np.uint8],
        weights: LevelWeights,
        numbers: NDArray[np.int64] | None = None,
    ) -> LinkedRecords:
        """Lay out links of records."""
        if not len(first):
            levels = np.zeros((0, len(weights.sizes)), np.uint8)
        graph = LinkGraph.from_pairs(n_records, first, second)
        return cls(graph, levels, weights, weights.link_scores(levels).astype(np.float32), numbers)

    def weighed(self, weights: LevelWeights) -> LinkedRecords:
        """Return the same links under other weights."""
        return replace(self, weights=weights, scores=weights.link_scores(self.levels).astype(np.float32))

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
        """Return a label for each of some records, ascending: those of one entity have the same.

        start
            The labels to begin with; records that must be together are brought together.
        """
        walk, unit = self.walk(rows, start, verdicts)
        search.run(walk, seed=seed, team=team)
        return np.asarray(walk.labels[unit], np.int64)

    def walk(self, rows: Ints, start: Ints, verdicts: Verdicts) -> tuple[LinkWalk, NDArray[np.int32]]:
        """Return a walk over some records, ascending, and the item of each of them."""
        limits = verdicts.within(rows if self.numbers is None else self.numbers[rows])
        graph, pair = self.graph.restrict_to(np.asarray(rows))
        links = Links(graph.first, graph.second, self.scores[pair])
        weights = LinkWeights(self.weights.unlinked, self.weights.cluster)
        unit, linked = link_items(len(rows), links, limits, weights)
        walk = linked.walk(start_labels(start, unit, linked.n_items, limits))
        return walk, unit

    def unsettled(self, labels: Ints) -> NDArray[np.int64]:
        """Return the entities with a record that would rather be in another one, and those it would go to."""
        n, (first, second) = self.graph.n_items, (self.graph.first, self.graph.second)
        unlinked = self.weights.unlinked
        number = np.unique(labels, return_inverse=True)[1]
        names = np.unique(labels)
        size = np.bincount(number)
        beyond = self.scores.astype(np.float64) - unlinked
        worth = beyond > 0
        item = np.concatenate([first[worth], second[worth]]).astype(np.int64)
        there = number[np.concatenate([second[worth], first[worth]])]
        cells, place = np.unique(item * len(size) + there, return_inverse=True)
        total = np.bincount(place, weights=np.tile(beyond[worth], 2))
        owner, target = cells // len(size), cells % len(size)
        inside = number[first] == number[second]
        home = np.zeros(n)
        np.add.at(home, first[inside], beyond[inside])
        np.add.at(home, second[inside], beyond[inside])
        alone = size[number] == 1
        home += unlinked * (size[number] - 1) - np.where(alone, 0.0, self.weights.cluster)
        away = total + unlinked * size[target] - self.weights.cluster
        better = (target != number[owner]) & (away > home[owner] + 1e-6)
        leaving = home < -1e-6
        numbers = np.concatenate([number[owner[better]], target[better], number[leaving]])
        return np.asarray(names[np.unique(numbers)], np.int64)
