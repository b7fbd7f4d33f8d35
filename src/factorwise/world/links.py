"""Links: given pairs of items, which can be looked up from either item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.kernels.clusterings.links import link_rows
from factorwise.types import Int32s, Int64s, Ints
from factorwise.validation import as_ints, as_numbers, as_whole, check_range, check_starts
from factorwise.variables.sparse_rows import take_rows
from factorwise.world.pairs import pairs_among


@dataclass(frozen=True, slots=True, eq=False)
class LinkGraph:
    """Links between items.

    first, second : int32[pairs]
        The linked pairs.
    start : int64[items + 1], neighbor : int32[2 pairs], pair : int32[2 pairs]
        The same links by item: where the links of an item begin, the neighbor of each, and the pair that each
        belongs to.
    """

    first: Int32s
    second: Int32s
    start: Int64s
    neighbor: Int32s
    pair: Int32s

    def __post_init__(self) -> None:
        keep = partial(object.__setattr__, self)
        keep("first", as_ints("first", self.first, dtype=np.int32))
        pairs = len(self.first)
        for name, size in (("second", pairs), ("neighbor", 2 * pairs), ("pair", 2 * pairs)):
            keep(name, as_ints(name, getattr(self, name), size=size, dtype=np.int32))
        keep("start", as_ints("start", self.start))
        check_starts("start", self.start, 2 * pairs)
        for name in ("first", "second", "neighbor"):
            check_range(name, getattr(self, name), self.n_items)
        check_range("pair", self.pair, pairs)

    @classmethod
    def from_pairs(cls, n_items: int, first: ArrayLike, second: ArrayLike) -> LinkGraph:
        """Build from pairs of different items, each pair once."""
        left = as_ints("first", first, dtype=np.int32)
        two = as_ints("second", second, size=len(left), dtype=np.int32)
        n_items = as_whole("n_items", n_items)
        for name, items in (("first", left), ("second", two)):
            check_range(name, items, n_items)
        if (left == two).any():
            item = int(left[left == two][0])
            raise InvalidArgumentError(f"item {item} cannot be linked with itself: name two different items.")
        start = np.zeros(n_items + 1, np.int64)
        neighbor, pair = np.empty(2 * len(left), np.int32), np.empty(2 * len(left), np.int32)
        link_rows(left, two, start, neighbor, pair)
        return cls(left, two, start, neighbor, pair)

    @classmethod
    def from_rows(cls, n_items: int, pairs: ArrayLike) -> LinkGraph:
        """Build from an array with one row per pair of different items."""
        listed = as_numbers("pairs", pairs, np.int64)
        if listed.size and (listed.ndim != 2 or listed.shape[1] != 2):
            raise ShapeError(f"pairs must be rows of two items, but have shape {listed.shape}.")
        listed = listed.reshape(-1, 2)
        return cls.from_pairs(n_items, listed[:, 0], listed[:, 1])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.start) - 1

    def find_pairs(self, first: Ints, second: Ints) -> Int64s:
        """Return the number of the link between the items of each pair; -1 for pairs that are not linked."""
        start, entries = take_rows(self.start, first)
        query = np.repeat(np.arange(len(first)), np.diff(start))
        hits = np.flatnonzero(self.neighbor[entries] == second[query])
        links = np.full(len(first), -1, np.int64)
        links[query[hits]] = self.pair[entries[hits]]
        return links

    def between(self, items: Ints, second_items: Ints) -> Int64s:
        """Return the linked pairs with one item in each of two lists that have no item in common."""
        wanted = set(second_items.tolist())
        links = [
            int(self.pair[at])
            for item in items.tolist()
            for at in range(int(self.start[item]), int(self.start[item + 1]))
            if int(self.neighbor[at]) in wanted
        ]
        return np.array(links, np.int64)

    def restrict_to(self, items: Ints) -> tuple[LinkGraph, Int32s]:
        """Return the links between some items, and the numbers that these links had.

        items
            Ascending; they are numbered from 0 in the graph that is returned. Links keep their order.
        """
        start, links = take_rows(self.start, items)
        among = pairs_among(items, start, self.neighbor[links])
        pair = self.pair[links[among.place]]
        order = np.argsort(pair)
        graph = LinkGraph.from_pairs(len(items), among.first[order], among.second[order])
        return graph, pair[order]
