"""Given pairs of items, the links, looked up from either end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.clusterings.links import link_rows
from factorwise.types import Int32s, Int64s, Ints
from factorwise.validation import as_ints, as_whole, check_range, check_starts
from factorwise.variables.sparse_rows import take_rows
from factorwise.world.pairs import pairs_among


@dataclass(frozen=True, slots=True, eq=False)
class LinkGraph:
    """Links between items.

    first, second : int32[pairs]
        The linked pairs.
    start : int64[items + 1], neighbor : int32[2 pairs], pair : int32[2 pairs]
        The same by item: where an item's links begin, whom they lead to, and to which pair they belong.
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
        """Lay out pairs of different items, each given once."""
        one = as_ints("first", first, dtype=np.int32)
        two = as_ints("second", second, size=len(one), dtype=np.int32)
        n_items = as_whole("n_items", n_items)
        for name, items in (("first", one), ("second", two)):
            check_range(name, items, n_items)
        if (one == two).any():
            item = int(one[one == two][0])
            raise InvalidArgumentError(f"item {item} cannot be linked with itself: name two different items.")
        start = np.zeros(n_items + 1, np.int64)
        neighbor, pair = np.empty(2 * len(one), np.int32), np.empty(2 * len(one), np.int32)
        link_rows(one, two, start, neighbor, pair)
        return cls(one, two, start, neighbor, pair)

    @classmethod
    def from_rows(cls, n_items: int, pairs: ArrayLike) -> LinkGraph:
        """Lay out pairs of different items, a row for each."""
        listed = np.asarray(pairs, np.int64).reshape(-1, 2)
        return cls.from_pairs(n_items, listed[:, 0], listed[:, 1])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.start) - 1

    def find_pairs(self, first: Ints, second: Ints) -> Int64s:
        """Return which link each of some pairs of items is; -1 for pairs that are not linked."""
        start, entries = take_rows(self.start, first)
        asked = np.repeat(np.arange(len(first)), np.diff(start))
        hits = np.flatnonzero(self.neighbor[entries] == second[asked])
        found = np.full(len(first), -1, np.int64)
        found[asked[hits]] = self.pair[entries[hits]]
        return found

    def between(self, items: Ints, others: Ints) -> Int64s:
        """Return the pairs with one item in each of two lists that share none."""
        wanted = set(others.tolist())
        found = [
            int(self.pair[at])
            for item in items.tolist()
            for at in range(int(self.start[item]), int(self.start[item + 1]))
            if int(self.neighbor[at]) in wanted
        ]
        return np.array(found, np.int64)

    def restrict_to(self, items: Ints) -> tuple[LinkGraph, Int32s]:
        """Return the links between some items, ascending and numbered anew, and which pairs they were.

        Links keep their order.
        """
        start, links = take_rows(self.start, items)
        among = pairs_among(items, start, self.neighbor[links])
        pair = self.pair[links[among.place]]
        order = np.argsort(pair)
        graph = LinkGraph.from_pairs(len(items), among.first[order], among.second[order])
        return graph, pair[order]
