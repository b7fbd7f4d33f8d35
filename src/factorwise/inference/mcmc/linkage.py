"""Walking over clusterings of up to millions of linked items, in shards and threads.

`LinkGraph` says which items are linked; `LinkWalk` is a clustering of them that Gibbs steps, splits and
merges change. What a sweep does to a shard depends on the shard's items and on (seed, round, shard) alone:
the result is the same for any number of threads.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.kernels.clusterings.linkage import (
    CHANGED,
    WEIGHED,
    LinkArrays,
    gibbs_sweep,
    home_chances,
    link_rows,
)
from factorwise.kernels.clusterings.linkage_splits import jump_sweep
from factorwise.kernels.compile.threads import Team
from factorwise.rng import Stream
from factorwise.types import Ints

Kind = TypeVar("Kind", bound=np.generic)

MOST_SOURCES = 64  # that one word has bits for


@dataclass(frozen=True, slots=True, eq=False)
class LinkGraph:
    """Links between items.

    first, second : int32[pairs]
        The linked pairs.
    start : int64[items + 1], neighbor : int32[2 pairs], pair : int32[2 pairs]
        The same by item: where an item's links begin, whom they lead to, and to which pair they belong.
    """

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    start: NDArray[np.int64]
    neighbor: NDArray[np.int32]
    pair: NDArray[np.int32]

    @classmethod
    def from_pairs(cls, n_items: int, first: ArrayLike, second: ArrayLike) -> LinkGraph:
        """Lay out pairs of different items, each given once."""
        one, two = np.asarray(first, np.int32), np.asarray(second, np.int32)
        if one.shape != two.shape or one.ndim != 1:
            raise ShapeError(
                f"pairs need two columns of one length, but {one.shape} and {two.shape} were given."
            )
        if len(one) and (min(one.min(), two.min()) < 0 or max(one.max(), two.max()) >= n_items):
            raise InvalidArgumentError(f"pairs must be of items from 0 to {n_items - 1}.")
        if (one == two).any():
            item = int(one[one == two][0])
            raise InvalidArgumentError(f"item {item} cannot be linked with itself: name two different items.")
        start = np.zeros(n_items + 1, np.int64)
        neighbor, pair = np.empty(2 * len(one), np.int32), np.empty(2 * len(one), np.int32)
        link_rows(one, two, start, neighbor, pair)
        return cls(one, two, start, neighbor, pair)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.start) - 1


class LinkWalk:
    """A clustering of linked items on its way.

    link_scores
        Of each pair of the graph, if it is in one cluster; -inf forbids that.
    apart, cluster
        Score of two members that are not linked, and of a cluster.
    labels
        Where to start: any labels; None for every item by itself. An item whose source its cluster has
        already starts by itself.
    weight
        Records that an item stands for; None for one each.
    sources
        Bits of the sources an item comes from, if a cluster may have one record of each; else None.
    """

    def __init__(
        self,
        graph: LinkGraph,
        link_scores: ArrayLike,
        *,
        apart: float,
        cluster: float,
        labels: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        sources: ArrayLike | None = None,
    ) -> None:
        n = graph.n_items
        scores = np.asarray(link_scores, np.float32)
        if scores.shape != graph.first.shape:
            raise ShapeError(f"{len(graph.first)} pairs need a score each, but {scores.shape} were given.")
        require(bool((scores < np.inf).all()), "link_scores", "NaN or inf", "numbers or -inf")
        require(bool(np.isfinite([apart, cluster]).all()), "apart and cluster", (apart, cluster), "finite")
        beyond = (scores - np.float32(apart))[graph.pair]
        self.graph = graph
        self.settings = np.array([apart, cluster])
        self.tally = np.zeros(2, np.int64)
        self.items = np.arange(n, dtype=np.int32)
        self.shard_start = np.array([0, n], np.int64)
        self.arrays = LinkArrays(
            start=graph.start,
            neighbor=graph.neighbor,
            score=beyond,
            weight=_per_item("weight", np.ones(n) if weight is None else weight, np.int32, n),
            sources=_per_item("sources", np.zeros(n) if sources is None else sources, np.uint64, n),
            shard=np.zeros(n, np.int32),
            label=np.empty(n, np.int32),
            total=np.zeros(n, np.int64),
            held=np.zeros(n, np.uint64),
            after=np.empty(n, np.int32),
            before=np.empty(n, np.int32),
            sums=np.zeros(n),
            seen=np.zeros(n, np.int32),
            touched=np.empty(n + 1, np.int32),
            value=np.empty(n + 1),
            side=np.zeros(n, np.int8),
        )
        self.place_items(np.arange(n) if labels is None else np.asarray(labels))

    def copy(self) -> LinkWalk:
        """Return a walk from the same clustering that goes its own way; what does not change is shared."""
        twin = copy.copy(self)
        shared = ("start", "neighbor", "score", "weight", "sources")
        own = {k: v if k in shared else v.copy() for k, v in self.arrays._asdict().items()}
        twin.arrays = LinkArrays(**own)
        twin.tally, twin.items = self.tally.copy(), self.items.copy()
        return twin

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.graph.n_items

    @property
    def labels(self) -> NDArray[np.int32]:
        """The cluster of each item, named by its smallest member."""
        smallest = np.full(self.n_items, self.n_items, np.int32)
        np.minimum.at(smallest, self.arrays.label, np.arange(self.n_items, dtype=np.int32))
        return smallest[self.arrays.label]

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int((self.arrays.label == np.arange(self.n_items)).sum())

    def beyond(self) -> NDArray[np.float32]:
        """Return by how much the score of each linked pair is above that of one that is not linked."""
        found = np.empty(len(self.graph.first), np.float32)
        found[self.graph.pair] = self.arrays.score
        return found

    @property
    def score(self) -> float:
        """Score of the clustering, added up afresh; pairs within an item count as not linked."""
        arrays, (apart, cluster) = self.arrays, self.settings.tolist()
        anchors = np.flatnonzero(arrays.label == np.arange(self.n_items))
        total = arrays.total[anchors].astype(np.float64)
        rows = np.repeat(arrays.label, np.diff(self.graph.start))
        together = rows == arrays.label[self.graph.neighbor]
        links = float(arrays.score[together].sum(dtype=np.float64)) / 2.0
        return float(links + apart * float((total * (total - 1.0)).sum()) / 2.0 + cluster * len(anchors))

    def place_items(self, labels: Ints) -> None:
        """Set the clustering; an item whose source its cluster has already comes to lie by itself."""
        arrays, n = self.arrays, self.n_items
        if labels.shape != (n,):
            raise ShapeError(f"{n} items need a label each, but {labels.shape} were given.")
        if n == 0:
            return
        if arrays.sources.any():
            labels = _one_per_source(labels, arrays.sources)
        order = np.argsort(labels, kind="stable").astype(np.int32)
        new = np.append(True, labels[order][1:] != labels[order][:-1])
        number = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        anchors = order[starts]
        following = np.append(order[1:], order[:1])
        following[np.append(starts[1:], n) - 1] = anchors
        arrays.label[order] = anchors[number]
        arrays.after[order] = following
        arrays.before[following] = order
        arrays.total[anchors] = np.bincount(number, weights=arrays.weight[order]).astype(np.int64)
        arrays.held[anchors] = np.bitwise_or.reduceat(arrays.sources[order], starts)

    def place_shards(self, shard_of_cluster: Ints) -> None:
        """Put clusters into shards, which are numbered from 0: ``shard_of_cluster[label]``."""
        shards = shard_of_cluster[self.arrays.label].astype(np.int32)
        self.arrays.shard[:] = shards
        self.items[:] = np.argsort(shards, kind="stable")
        self.shard_start = np.append(0, np.cumsum(np.bincount(shards))).astype(np.int64)

    def sweep(
        self,
        seed: int,
        number: int,
        temperature: float,
        *,
        team: Team,
        jumps: float = 0.5,
        strict: bool = False,
        stream: int = 0,
    ) -> float:
        """Take a Gibbs step for each item, then propose ``jumps`` splits or merges per item; return the gain.

        number, stream
            Of the sweep and of the chain: with ``seed`` and the shard they give the random numbers.
        strict
            Leave exp(score / temperature) invariant, if shards do not depend on the clustering. Otherwise the
            sweep searches: it merges and leaves clusters more easily than a sampler may.
        """
        gains = np.zeros(len(self.shard_start) - 1)
        tallies = np.zeros((len(gains), 2), np.int64)

        def work(low: int, high: int) -> None:
            for shard in range(low, high):
                a, b = int(self.shard_start[shard]), int(self.shard_start[shard + 1])
                if b - a < 2:
                    continue
                state = Stream(seed, stream, number, shard).state
                common = (self.arrays, self.settings, state, self.items, a, b, float(temperature), strict)
                gains[shard] += gibbs_sweep(*common, tallies[shard])
                gains[shard] += jump_sweep(*common, round(jumps * (b - a)), tallies[shard])

        team.share(len(gains), work)
        self.tally += tallies.sum(axis=0)
        return float(gains.sum())

    def sweep_some(self, items: Ints, seed: int, number: int, temperature: float) -> float:
        """Take a Gibbs step for each of some items, which may go to any cluster; return the gain.

        Shards are to be placed anew before the next `sweep`.
        """
        links = self.arrays._replace(shard=np.zeros(self.n_items, np.int32))
        state, chosen, tally = Stream(seed, 0, number, 0).state, items.astype(np.int32), np.zeros(2, np.int64)
        gain = gibbs_sweep(
            links, self.settings, state, chosen, 0, len(chosen), float(temperature), False, tally
        )
        self.tally += tally
        self.arrays.shard[:] = self.arrays.shard[self.arrays.label]
        return float(gain)

    @property
    def proposals(self) -> int:
        """Clusters that were weighed for an item or a part of a cluster so far."""
        return int(self.tally[WEIGHED])

    @property
    def changes(self) -> int:
        """Steps that changed the clustering so far."""
        return int(self.tally[CHANGED])

    def home_chances(self, temperature: float, *, team: Team) -> NDArray[np.float32]:
        """Return for each item the probability of its cluster given those of all others, in all shards."""
        n = self.n_items
        chances = np.ones(n, np.float32)
        one_shard = np.zeros(n, np.int32)
        most = int(np.diff(self.graph.start).max(initial=0)) + 1

        def work(low: int, high: int) -> None:
            mine = self.arrays._replace(
                shard=one_shard,
                sums=np.zeros(n),
                seen=np.zeros(n, np.int32),
                touched=np.empty(most, np.int32),
                value=np.empty(most),
            )
            items = np.arange(low, high, dtype=np.int32)
            home_chances(mine, self.settings, items, float(temperature), chances)

        team.share(n, work)
        return chances


def _per_item(name: str, given: ArrayLike, kind: type[Kind], n: int) -> NDArray[Kind]:
    found = np.asarray(given, kind)
    if found.shape != (n,):
        raise ShapeError(f"{n} items need a {name} each, but {found.shape} were given.")
    return found


def _one_per_source(labels: Ints, sources: NDArray[np.uint64]) -> Ints:
    """Return labels by which no two items of a cluster share a source: later ones get labels of their own."""
    n = len(labels)
    number = np.unique(labels, return_inverse=True)[1]
    crowded = np.zeros(n, np.bool_)
    for bit in range(int(np.bitwise_or.reduce(sources)).bit_length()):
        has = (sources >> np.uint64(bit)) & np.uint64(1)
        crowded |= np.bincount(number, weights=has, minlength=n) > 1
    held: dict[int, int] = {}
    for item in np.flatnonzero(crowded[number]).tolist():
        label, bits = int(number[item]), int(sources[item])
        if held.get(label, 0) & bits:
            number[item] = n + item
        else:
            held[label] = held.get(label, 0) | bits
    return number
