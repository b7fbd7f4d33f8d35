"""Items that stand for records, the links between items, and a clustering of the items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.constraints import Constraints, tied
from factorwise.distributed.executors import Executor, LocalExecutor, in_order
from factorwise.inference.mcmc.shards.component_search import (
    LinkWeights,
    ScoredLinks,
    smallest_members,
)
from factorwise.inference.mcmc.shards.item_ranges import chances_of_range, cut_ranges
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.kernels.compile.threads import Team
from factorwise.types import Ints

ITEMS_AT_ONCE = 1 << 19  # number of items whose confidence is computed in one batch


class LinkedItems:
    """Items that stand for records, the links between items, and a clustering of the items.

    unit : int32[rows]
        The item that stands for each record; records that must be together share one item.
    links
        The links of the items and their scores.
    """

    def __init__(self, unit: NDArray[np.int32], links: ScoredLinks) -> None:
        self.unit, self.links = unit, links
        self._labels = np.arange(links.n_items, dtype=np.int32)
        self._walk: LinkWalk | None = None

    @property
    def labels(self) -> NDArray[np.int32]:
        """The cluster of each item, named by its smallest member; at first, every item is its own cluster."""
        return self._labels if self._walk is None else self._walk.labels

    def place_items(self, labels: Ints) -> None:
        """Set the clustering."""
        if self._walk is None:
            self._labels = smallest_members(labels)
        else:
            self._walk.place_items(labels)

    @property
    def walk(self) -> LinkWalk:
        """An MCMC walk that starts at the current clustering; it is created on first access."""
        if self._walk is None:
            self._walk = self.links.walk(self._labels)
        return self._walk

    def rows_of_units(self, labels: Ints) -> NDArray[np.int32]:
        """Return the label of each record, which is that of its item."""
        return np.asarray(labels[self.unit], np.int32)

    def confidence(
        self, temperature: float, team: Team, executor: Executor | None = None
    ) -> NDArray[np.float32]:
        """Return the probability of each record's cluster, given the clusters of all other records."""
        if self.links.further is not None:
            return np.asarray(self.walk.home_chances(temperature, team=team)[self.unit])
        executor, weights = executor or LocalExecutor(team.threads), self.links.weights
        ranges = cut_ranges(self.links, self.labels, ITEMS_AT_ONCE)
        answers = executor.stream(chances_of_range, ((part, weights, temperature) for part in ranges))
        chances = [np.zeros(0, np.float32), *in_order(answers)]
        return np.asarray(np.concatenate(chances)[self.unit])


class Links(NamedTuple):
    """Links between items, and the score of each link if both items are in one cluster.

    pairs
        The number of linked pairs of records behind each link; None if it is one each.
    """

    first: Ints
    second: Ints
    score: NDArray[np.float32]
    pairs: NDArray[np.int32] | None = None


def link_items(
    n: int, links: Links, limits: Constraints, weights: LinkWeights
) -> tuple[NDArray[np.int32], ScoredLinks]:
    """Return the item of each of ``n`` records, and the links between items.

    links
        Links between records, given by their rows.
    weights
        Where several records are one item, the unlinked pair weight stands in for links that are missing.
    """
    unit = np.arange(n, dtype=np.int32)
    if len(limits.must):
        unit = np.unique(tied(limits.must, n), return_inverse=True)[1].astype(np.int32)
        links = Links(unit[links.first], unit[links.second], links.score)
    if len(limits.must) or len(limits.cannot):
        links = _merged(links, unit, limits, weights.unlinked)
    n_items = int(unit.max(initial=-1)) + 1
    counts = np.bincount(unit, minlength=n_items).astype(np.int32)
    sources = limits.source_bits(unit, n_items)
    if sources is None:
        sources = np.zeros(n_items, np.uint64)
    first, second = (ends.astype(np.int32, copy=False) for ends in links[:2])
    return unit, ScoredLinks(first, second, links.score, weights, counts, sources, links.pairs)


def _merged(links: Links, unit: Ints, limits: Constraints, apart: float) -> Links:
    """Sum the links of records that share an item, and give cannot-link pairs a score of minus infinity."""
    cannot = unit[limits.cannot].reshape(-1, 2)
    one = np.concatenate([links.first, cannot[:, 0]]).astype(np.int64)
    two = np.concatenate([links.second, cannot[:, 1]]).astype(np.int64)
    beyond = np.concatenate([links.score.astype(np.float64) - apart, np.full(len(cannot), -np.inf)])
    apart_already = one != two
    low, high = np.minimum(one, two)[apart_already], np.maximum(one, two)[apart_already]
    n = int(unit.max(initial=0)) + 1
    pairs, place = np.unique(low * n + high, return_inverse=True)
    total = np.zeros(len(pairs))
    np.add.at(total, place, beyond[apart_already])
    first, second = (pairs // n).astype(np.int32), (pairs % n).astype(np.int32)
    count = np.bincount(place, minlength=len(pairs)).astype(np.int32)
    return Links(first, second, (total + apart).astype(np.float32), count)
