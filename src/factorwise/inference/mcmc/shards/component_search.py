"""Search for the best clustering of linked items, one group of components after the other.

Links with positive scores connect items into components. If unlinked pairs do not score for being together,
no best clustering has a cluster across two components, so each component is a search of its own. A component
in which every two items are linked with a positive score is one cluster of a best clustering, and so is a
single item. All other components are open. They are packed into *groups*: ordered by their smallest items,
and cut whenever `ITEMS_PER_GROUP` items are full; no component is cut.

The result for a group depends only on its items, the links between them, the search and the seed: not on
other groups, memory, threads or machines. Links are read in stretches, so that they may lie in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.link_walk import LinkGraph, LinkWalk
from factorwise.inference.mcmc.shards.search import Found, LinkSearch, SearchProgress, SearchState
from factorwise.kernels.clusterings.link_groups import (
    count_inside,
    count_positive,
    scatter_links,
)
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.graphs.components import join_ends, number_roots
from factorwise.model.model import Model
from factorwise.rng import split_mix
from factorwise.types import Bools, Ints

ITEMS_PER_GROUP = 20_000
STRETCH = 1 << 22  # links that are read at a time
Codes = NDArray[np.int32]
Scores = NDArray[np.float32]


class LinkWeights(NamedTuple):
    """Weights of two members that are not linked (unlinked pair weight), and of a cluster."""

    unlinked: float
    cluster: float = 0.0


@dataclass(eq=False)
class ScoredLinks:
    """Links of items and their scores, in memory or in memory-mapped files.

    first, second : int32[links]
        The items of each link, which are different; each pair once.
    score : float32[links]
        Score of two linked items in one cluster; -inf forbids that.
    counts : int32[items]
        How many records each item stands for.
    sources : uint64[items]
        Bits of the sources of each item, if a cluster may have only one record of each source; else zeros.
    link_pairs : int32[links] or None
        How many linked pairs of records each link stands for; None for one each.
    further
        A model of further templates over the items, in addition to their links; None for none.
    shift
        A number that is added to each score.
    make, release
        Called to allocate room for links that are sorted into groups, and when columns are not needed for a
        while: for columns in files, that frees memory.
    """

    first: Codes
    second: Codes
    score: Scores
    weights: LinkWeights
    counts: Codes
    sources: NDArray[np.uint64]
    link_pairs: Codes | None = None
    further: Model | None = None
    shift: float = 0.0
    make: Callable[[int, Any], NDArray[Any]] = np.zeros
    release: Callable[..., None] = field(default=lambda *columns: None)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.counts)

    @property
    def has_components(self) -> bool:
        """Whether no best clustering has a cluster across two components of positive links."""
        # a negative cluster weight is a price that joining saves, even for items that are not linked
        return self.further is None and self.weights.unlinked <= min(self.weights.cluster, 0.0)

    def stretches(self) -> Iterator[tuple[Codes, Codes, Scores]]:
        """Yield all links in order, a stretch at a time."""
        for low in range(0, len(self.first), STRETCH):
            part = slice(low, low + STRETCH)
            score = _read(self.score[part])
            if self.shift:
                score = score + np.float32(self.shift)
            yield _read(self.first[part]), _read(self.second[part]), score
            self.release(self.first, self.second, self.score)

    def walk(self, labels: Ints | None = None) -> LinkWalk:
        """Return a walk over all items, from these labels; None starts with every item by itself."""
        return LinkWalk(
            LinkGraph.from_pairs(self.n_items, _read(self.first), _read(self.second)),
            _read(self.score) + np.float32(self.shift) if self.shift else _read(self.score),
            unlinked=self.weights.unlinked,
            cluster=self.weights.cluster,
            labels=labels,
            counts=self.counts,
            link_pairs=self.link_pairs,
            sources=self.sources,
            further=self.further,
        )


def _read(values: Any) -> Any:
    """Return values in memory; numbers in a file are copied."""
    return np.array(values) if isinstance(values, np.memmap) else values


class ComponentGroup(NamedTuple):
    """Open components that are searched together: all that `search_group` reads.

    items : int64[items]
        Numbers of the items among all items, ordered by component.
    first, second : int32[links]
        The links inside components, as positions in ``items``.
    score : float32[links]
        Their scores.
    counts, sources
        Of these items, as in `ScoredLinks`.
    further
        Templates in addition to the links, if all items are one group; None for none.
    """

    items: NDArray[np.int64]
    first: Codes
    second: Codes
    score: Scores
    counts: Codes
    sources: NDArray[np.uint64]
    further: Model | None = None

    @property
    def number(self) -> int:
        """The smallest item, which identifies a group."""
        return int(self.items.min(initial=0))


class GroupFound(NamedTuple):
    """The result for a group, and how its search ended.

    The labels are, for each item, the position of its cluster's first item.
    Items of different components have different labels.
    """

    labels: Codes
    found: Found


def group_walk(group: ComponentGroup, weights: LinkWeights) -> LinkWalk:
    """Return a walk over the items of a group, starting with every item by itself."""
    return LinkWalk(
        LinkGraph.from_pairs(len(group.items), group.first, group.second),
        group.score,
        unlinked=weights.unlinked,
        cluster=weights.cluster,
        counts=group.counts,
        sources=group.sources,
        further=group.further,
    )


def search_group(
    group: ComponentGroup,
    weights: LinkWeights,
    search: LinkSearch,
    seed: int,
    *,
    team: Team | None = None,
    resume: SearchState | None = None,
    watch: Callable[[SearchProgress], None] | None = None,
    keep: Callable[[SearchState], None] | None = None,
) -> GroupFound:
    """Search for the best clustering of a group.

    team
        Threads; None for this thread only. The result does not depend on it.
    resume, watch, keep
        As in `LinkSearch.run`.
    """
    walk = group_walk(group, weights)
    own = split_mix(seed ^ split_mix(group.number))
    outcome = search.run(walk, seed=own, team=team or Team(1), resume=resume, watch=watch, keep=keep)
    return GroupFound(walk.labels, outcome)


@dataclass(eq=False)
class ComponentGroups:
    """The groups of the open components of some links.

    links
        All links.
    component : int32[items]
        The component of each item; a settled component is one cluster.
    group : int32[components]
        The group of each component; -1 for settled components.
    settled_score
        The score of the settled clusters.
    """

    links: ScoredLinks
    component: Codes
    group: Codes
    settled_score: float
    _members: NDArray[np.int64]
    _start: NDArray[np.int64]
    _link_start: NDArray[np.int64]
    _inside: tuple[Codes, Codes, Scores] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self._start) - 1

    @property
    def open_items(self) -> int:
        """Number of items in open components."""
        return int(self._start[-1])

    @property
    def settled_clusters(self) -> int:
        """Number of clusters that need no search."""
        return int((self.group < 0).sum())

    def items(self, number: int) -> NDArray[np.int64]:
        """Return the items of a group, ordered by component; groups are numbered from 0."""
        return self._members[self._start[number] : self._start[number + 1]]

    def take(self, number: int) -> ComponentGroup:
        """Return a group; groups are numbered from 0."""
        self.sort_links()
        items = self.items(number)
        part = slice(int(self._link_start[number]), int(self._link_start[number + 1]))
        first, second, score = (_read(each[part]) for each in self._inside or ())
        links = self.links
        return ComponentGroup(
            items, first, second, score, links.counts[items], links.sources[items], links.further
        )

    def __iter__(self) -> Iterator[ComponentGroup]:
        return (self.take(number) for number in range(len(self)))

    def labels(self, results: Iterator[tuple[int, Codes]]) -> Codes:
        """Return the cluster of each item, named by its smallest member.

        results
            Numbers of groups with their results; the items of other groups stay by themselves.
        """
        label = self.component.astype(np.int64)
        label[self._members] = len(label) + self._members
        for number, own in results:
            items = self.items(number)
            label[items] = len(label) + items[own]
        return smallest_members(label)

    def sort_links(self) -> None:
        """Sort the links inside open components by their groups, unless they are sorted."""
        if self._inside is not None:
            return
        position = np.zeros(self.links.n_items, np.int32)
        position[self._members] = np.arange(len(self._members)) - np.repeat(
            self._start[:-1], np.diff(self._start)
        )
        total = int(self._link_start[-1])
        make, release = self.links.make, self.links.release
        first, second, score = make(total, np.int32), make(total, np.int32), make(total, np.float32)
        written = np.asarray(first), np.asarray(second), np.asarray(score)
        end = self._link_start[:-1].copy()
        for stretch in self.links.stretches():
            scatter_links(*stretch, self.component, self.group, position, end, *written)
        release(first, second, score)
        self._inside = first, second, score


def find_groups(links: ScoredLinks, *, all_open: bool = False) -> ComponentGroups:
    """Find the components of links, and group the open ones.

    all_open
        Whether settled components count as open, too.

    If the scores of links do not separate components, all items are one open component.
    """
    component = find_components(links)
    size = np.bincount(component)
    settled = np.zeros(len(size), np.bool_) if all_open else _settled(links, component, size)
    group = np.full(len(size), -1, np.int32)
    open_ = np.flatnonzero(~settled)
    before = np.cumsum(size[open_]) - size[open_]
    group[open_] = np.unique(before // ITEMS_PER_GROUP, return_inverse=True)[1]
    n_groups = int(group.max(initial=-1)) + 1
    members = np.flatnonzero(~settled[component])
    members = members[np.argsort(component[members], kind="stable")]
    start = np.append(0, np.cumsum(np.bincount(group[component[members]], minlength=n_groups)))
    inside, score = np.zeros(n_groups, np.int64), np.zeros(1)
    for stretch in links.stretches():
        count_inside(*stretch, component, group, inside, score)
    # the pairs of records inside an item score as unlinked pairs in any clustering
    counts = links.counts[settled[component]].astype(np.float64)
    alone = links.weights.cluster * int(settled.sum())
    alone += links.weights.unlinked * float((counts * (counts - 1.0)).sum()) / 2.0
    link_start = np.append(0, np.cumsum(inside))
    return ComponentGroups(links, component, group, float(score[0]) + alone, members, start, link_start)


def find_components(links: ScoredLinks) -> Codes:
    """Return the component of each item, numbered by their smallest items.

    All 0 if links cannot separate them.
    """
    parent = np.arange(links.n_items, dtype=np.int32)
    if not links.has_components:
        return np.zeros_like(parent)
    # A negative cluster weight is a price: links that cost less than it may be worth making.
    least = min(links.weights.cluster, 0.0)
    for first, second, score in links.stretches():
        worth = score > least
        join_ends(first[worth], second[worth], parent)
    number_roots(parent)
    return parent


def _settled(links: ScoredLinks, component: Codes, size: NDArray[np.int64]) -> Bools:
    """Return which components are cliques of positive links that no split would improve.

    A split of m items into k clusters cuts at least (k - 1) m / 2 links and adds k - 1 cluster weights. If a
    cluster may have only one record of each source, only single items are settled. If unlinked pairs have a
    negative weight, so are only items that stand for one record each, because the linked pairs of others may
    cost more than they add.
    """
    if not links.has_components:
        return np.zeros(len(size), np.bool_)
    alone = np.asarray(size == 1)
    if links.sources.any():
        return alone
    positive, weakest = np.zeros(len(size), np.int64), np.full(len(size), np.inf, np.float32)
    for stretch in links.stretches():
        count_positive(*stretch, component, positive, weakest)
    closed = positive == size * (size - 1) // 2
    if links.weights.unlinked < 0.0:
        closed &= alone | (np.bincount(component, links.counts) == size)
    if links.weights.cluster > 0.0:
        closed &= alone | (weakest * size / 2.0 >= links.weights.cluster)
    return np.asarray(closed)


def smallest_members(label: Ints) -> Codes:
    """Name clusters by their smallest members; ``label`` may contain any numbers."""
    number = np.unique(label, return_inverse=True)[1]
    smallest = np.empty(int(number.max(initial=-1)) + 1, np.int32)
    smallest[number[::-1]] = np.arange(len(label) - 1, -1, -1, dtype=np.int32)  # the last assignment wins
    return np.asarray(smallest[number])
