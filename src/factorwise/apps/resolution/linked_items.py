"""Items that stand for records, their links, and a clustering of them."""

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

ITEMS_AT_ONCE = 1 << 19  # whose confidence is computed at a time


class LinkedItems:
    """Items that stand for records, their links, and a clustering of them.

    unit : int32[rows]
        The item that stands for each record: records that must be together share one.
    links
        The links of the items and their scores.
    """

    def __init__(self, unit: NDArray[np.int32], links: ScoredLinks) -> None:
        self.unit, self.links = unit, links
        self._labels = np.arange(links.n_items, dtype=np.int32)
        self._walk: LinkWalk | None = None

    @property
    def labels(self) -> NDArray[np.int32]:
        """The cluster of each item, named by its smallest member; every item by itself to begin with."""
        return self._labels if self._walk is None else self._walk.labels

    def place_items(self, labels: Ints) -> None:
        """Set the clustering."""
        if self._walk is None:
            self._labels = smallest_members(labels)
        else:
            self._walk.place_items(labels)

    @property
    def walk(self) -> LinkWalk:
        """A walk over clusterings of all items, from where the clustering is; made when it is asked for."""
        if self._walk is None:
            self._walk = self.links.walk(self._labels)
        return self._walk

    def rows_of_units(self, labels: Ints) -> NDArray[np.int32]:
        """Return for each record the label of its item."""
        return np.asarray(labels[self.unit], np.int32)

    def confidence(
        self, temperature: float, team: Team, executor: Executor | None = None
    ) -> NDArray[np.float32]:
        """Return the probability of the cluster of each record, given those of all others."""
        if self.links.further is not None:
            return np.asarray(self.walk.home_chances(temperature, team=team)[self.unit])
        executor, weights = executor or LocalExecutor(team.threads), self.links.weights
        ranges = cut_ranges(self.links, self.labels, ITEMS_AT_ONCE)
        answers = executor.stream(chances_of_range, ((part, weights, temperature) for part in ranges))
        chances = [np.zeros(0, np.float32), *in_order(answers)]
        return np.asarray(np.concatenate(chances)[self.unit])


class Links(NamedTuple):
    """Pairs of items and the scores of each two together.

    pairs
        How many linked pairs of records each stands for; None for one each.
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
        Between records, in rows.
    weights
        That of an unlinked pair also stands for the missing links of records that are one item.
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
    """Add up the links of records that are one item, and forbid what must not be together."""
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
