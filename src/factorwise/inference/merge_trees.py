"""Posteriors over the clusterings that cut a tree of merges, computed exactly and without chains.

The tree joins items by average linkage: first the items of each cluster that a search found, then these
clusters. A clustering that the tree allows is a cut: each of its clusters is a node with everything below it.
From the top down, every node that is reached is a cluster with a probability of its own; otherwise its two
children are reached. So draws are independent, and the probability of a pair, or of a cluster, is a product
along a path.

Clusterings that are not cuts have no probability: a record can leave its cluster, but it can join another
cluster only together with the items that it was joined with first.

The tree follows the links. The exact change of score that further templates of a model give to a merge is
known at every node: see `factorwise.inference.merge_gains`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from factorwise.errors import ShapeError
from factorwise.kernels.clusterings.merge_trees import (
    add_parts,
    best_links,
    cut_trees,
    join_groups,
    mark_forbidden,
    pair_chances,
    split_chances,
)
from factorwise.kernels.graphs.components import component_numbers
from factorwise.types import Bools, Float32s, Float64s, Int32s, Int64s, Ints, UInt64s
from factorwise.world.links import LinkGraph

Nodes = Int64s

SURE = 0.01  # a pair is uncertain if its probability differs from 0 and from 1 by more than this
UNLINKED = -2.0  # score of a pair that is not linked
LOWEST_MEAN = -3.0  # clusters whose pairs have a lower mean score are not joined
LARGEST_GROUP = 1_500  # units that are joined in one matrix
FORBIDDEN = -1e9  # stands for minus infinity, which has no mean
LOWEST_BEST = -30.0  # lower scores count as this in the mean of best links


class LinkPosterior(NamedTuple):
    """Draws from a posterior, and probabilities that are computed exactly.

    labels : int32[draws, items]
        Clusterings: each cluster is named by its smallest member.
    together : float32[pairs]
        Probability that the items of each linked pair are in one cluster.
    whole : float32[items]
        Probability that the cluster in which the search put each item is a cluster, with no more and no fewer
        items.
    """

    labels: Int32s
    together: Float32s
    whole: Float32s

    def uncertain_pairs(self) -> Int64s:
        """Return the linked pairs that are neither certain nor impossible, the most uncertain first."""
        distance = np.minimum(self.together, 1.0 - self.together)
        pairs = np.flatnonzero(distance > SURE)
        return pairs[np.argsort(-distance[pairs], kind="stable")]


@dataclass(frozen=True, slots=True, eq=False)
class MergeTree:
    """A tree of merges of linked items; arrays are over nodes, of which the items are the first.

    n_items, n_inner
        Number of items, and of all nodes up to the clusters that the search found.
    left, right, parent
        The two children and the parent of each node; -1 if there is none.
    mean
        Mean score of the pairs between the two children; zero for items.
    best
        Mean, over the records of the smaller child, of the score of the best link into the other child.
    count
        Number of records.
    possible
        Whether no constraint forbids the node as a cluster.
    found : int64[items]
        Node of the cluster in which the search put each item.
    gains
        For each further template, by name, the change of the model's score if the two children become one
        cluster.
    """

    n_items: int
    n_inner: int
    left: Int64s
    right: Int64s
    parent: Int64s
    mean: Float64s
    best: Float64s
    count: Float64s
    possible: Bools
    found: Int64s
    gains: Mapping[str, Float64s] = field(default_factory=dict)

    def posterior(self, whole: Float64s, graph: LinkGraph, *, draws: int, seed: int) -> LinkPosterior:
        """Draw clusterings, and compute the probabilities of linked pairs and of the clusters of the search.

        whole
            For each node, the probability that it is a cluster if no node above it is. With several rows,
            which are equally likely, draws take them in turn, and probabilities are means over them.
        """
        rows = np.atleast_2d(whole)
        labels = np.empty((draws, self.n_items), np.int32)
        together, own = np.zeros(len(graph.first), np.float32), np.zeros(self.n_items)
        for number, row in enumerate(rows):
            split, parent = self.split(row)
            for draw in range(number, draws, len(rows)):
                labels[draw] = self._draw(row, parent, [seed, draw])
            together += self.together(split, parent, graph) / np.float32(len(rows))
            own += row[self.found] * np.where(parent[self.found] < 0, 1.0, split[parent[self.found]])
        return LinkPosterior(labels, np.minimum(together, 1.0), (own / len(rows)).astype(np.float32))

    def entities_united(self) -> Int64s:
        """Return how many of the clusters that were found each node unites; 1 for them and below."""
        united = np.ones(len(self.mean), np.int64)
        add_parts(self.left, self.right, self.n_inner, united)
        return united

    def split(self, whole: Float64s) -> tuple[Float64s, Int64s]:
        """Return the probability that no cluster contains the node, and its possible parents."""
        if whole.shape != self.mean.shape:
            raise ShapeError(
                f"{len(self.mean)} nodes need a probability each, but an array of shape {whole.shape} was"
                " given."
            )
        split = np.empty(len(whole))
        split_chances(self.parent, whole, split)
        inside = self.parent >= 0
        inside[inside] = split[self.parent[inside]] < 1.0
        return split, np.where(inside, self.parent, -1)

    def together(self, split: Float64s, parent: Nodes, graph: LinkGraph) -> Float32s:
        """Return the probability of each linked pair."""
        root = np.empty(len(parent), np.int64)
        cut_trees(parent, parent < 0, root)
        chance = np.empty(len(graph.first), np.float32)
        pair_chances(graph.first, graph.second, parent, root[: self.n_items], split, chance)
        return chance

    def _draw(self, whole: Float64s, parent: Nodes, seed: list[int]) -> Int32s:
        """Draw a clustering: int32[items]."""
        top = np.empty(len(whole), np.int64)
        random = np.random.default_rng(seed).random(len(whole))
        cut_trees(parent, random < whole, top)
        smallest = np.full(len(whole), self.n_items, np.int32)
        np.minimum.at(smallest, top[: self.n_items], np.arange(self.n_items, dtype=np.int32))
        return smallest[top[: self.n_items]]


def grow_merge_tree(
    graph: LinkGraph,
    scores: Float32s,
    labels: Ints,
    *,
    counts: Ints,
    sources: UInt64s,
    pairs: Ints,
    unlinked: float,
) -> MergeTree:
    """Join the items of each cluster, and then the clusters, by the mean scores of the pairs between them.

    scores
        Score of each link if its items are in one cluster; -inf forbids that.
    labels
        The clustering that a search found.
    counts, sources
        How many records each item stands for, and the bits of their sources if an entity has one record of
        each source, else zero.
    pairs, unlinked
        How many linked pairs of records each link stands for. The score of a link is then the sum of theirs,
        minus ``unlinked`` for each beyond the first.
    """
    n = graph.n_items
    size = max(2 * n, 1)
    left, right = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    total, count = np.zeros(size), np.zeros(size)
    count[:n] = counts
    linked = np.maximum(scores.astype(np.float64), FORBIDDEN) + (pairs - 1) * unlinked
    cluster = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    nodes = (left, right, total, count)
    inside = _Links(graph.first.astype(np.int64), graph.second.astype(np.int64), linked - pairs * UNLINKED)
    tops, inner = _join(cluster, np.arange(n, dtype=np.int64), inside, nodes, n)
    across = _between_clusters(cluster, inside)
    records = count[tops]
    mean = across.sum / (records[across.first] * records[across.second]) + UNLINKED
    part = _parts(len(tops), across, mean)
    _, n_nodes = _join(part, tops, across, nodes, inner)
    left, right, total, count = left[:n_nodes], right[:n_nodes], total[:n_nodes], count[:n_nodes]
    parent = np.full(n_nodes, -1, np.int64)
    parent[left[n:]] = parent[right[n:]] = np.arange(n, n_nodes)
    means, best = np.zeros(n_nodes), np.zeros(n_nodes)
    means[n:] = total[n:] / (count[left[n:]] * count[right[n:]])
    each = np.maximum(linked / pairs, LOWEST_BEST)
    best_links(graph.start, graph.neighbor, graph.pair, each, UNLINKED, left, right, parent, count, best)
    impossible = total < 0.5 * FORBIDDEN
    bits = np.zeros(n_nodes, np.uint64)
    bits[:n] = sources
    mark_forbidden(left, right, impossible, bits)
    return MergeTree(n, inner, left, right, parent, means, best, count, ~impossible, tops[cluster])


class _Links(NamedTuple):
    """Links between units, and how much each scores above pairs that are not linked."""

    first: Int64s
    second: Int64s
    sum: Float64s


def _join(
    group: Int64s,
    unit: Int64s,
    links: _Links,
    nodes: tuple[Nodes, Nodes, Float64s, Float64s],
    first_node: int,
) -> tuple[Int64s, int]:
    """Join the units of each group, numbered from 0 on.

    Return the top nodes, and the number of nodes so far.
    """
    groups = int(group.max(initial=-1)) + 1
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(groups + 1))
    position = np.empty(len(group), np.int64)
    position[order] = np.arange(len(group)) - start[group[order]]
    within = np.flatnonzero(group[links.first] == group[links.second])
    within = within[np.argsort(group[links.first[within]], kind="stable")]
    link_start = np.searchsorted(group[links.first[within]], np.arange(groups + 1))
    root = np.empty(groups, np.int64)
    joined = join_groups(
        start,
        unit[order],
        link_start,
        position[links.first[within]],
        position[links.second[within]],
        links.sum[within],
        UNLINKED,
        LARGEST_GROUP,
        *nodes,
        first_node,
        root,
    )
    return root, joined


def _between_clusters(cluster: Int64s, links: _Links) -> _Links:
    """Sum the links between every two clusters."""
    first, second = cluster[links.first], cluster[links.second]
    across = first != second
    n = int(cluster.max(initial=0)) + 1
    pairs = np.minimum(first, second)[across] * n + np.maximum(first, second)[across]
    distinct, number = np.unique(pairs, return_inverse=True)
    sums = np.bincount(number, weights=links.sum[across], minlength=len(distinct)).astype(np.float64)
    return _Links(distinct // n, distinct % n, sums)


def _parts(n: int, links: _Links, mean: Float64s) -> Int64s:
    """Number the groups of clusters that might be joined.

    A group that would be too large is cut at weak links.
    """
    lowest = LOWEST_MEAN
    while True:
        good = mean > lowest
        part = component_numbers(n, links.first[good], links.second[good]).astype(np.int64)
        if int(np.bincount(part).max(initial=0)) <= LARGEST_GROUP:
            return part
        lowest += 0.5
