"""What of a clustering is decided by the scores of links alone, and what is left for a walk to search.

Links with positive scores connect items into components. Where pairs that are not linked do not speak for
being together, no best clustering has a cluster across two of them. A component in which every two items are
linked with a positive score is one cluster of a best clustering, and so is an item alone. All others are open
questions. Of a million Febrl-like records, one in twenty lies in such a component.

The walk over open questions alone draws other random numbers than one over all items: where it ends in
another local optimum than that one would, the clusterings differ; settled components are best in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import Progress
from factorwise.kernels.graphs.components import component_numbers
from factorwise.types import Ints

FEWEST_ITEMS = 20_000  # a walk over fewer takes less than a second, and goes over all of them


@dataclass(frozen=True, slots=True, eq=False)
class OpenQuestions:
    """The part of a walk that has to be searched.

    items : int64[.]
        The items of open components, ascending.
    walk
        A walk over these items, every one by itself; None if there are none.
    component : int32[items]
        The component of each item of the whole walk; a settled one is a cluster.
    clusters, score
        How many clusters are settled, and what they add to the score.
    """

    items: NDArray[np.int64]
    walk: LinkWalk | None
    component: NDArray[np.int32]
    clusters: int
    score: float

    def all_labels(self) -> NDArray[np.int64]:
        """Return a label for each item of the whole walk, by where the walk over open questions is now."""
        labels = self.component.astype(np.int64)
        if self.walk is not None:
            labels[self.items] = len(labels) + self.walk.labels.astype(np.int64)
        return labels

    def counted_in(self, watch: Callable[[Progress], None]) -> Callable[[Progress], None]:
        """Return what tells ``watch`` of rounds over open questions, with what is settled counted in."""

        def tell(progress: Progress) -> None:
            clusters, score = progress.clusters + self.clusters, progress.score + self.score
            watch(progress._replace(clusters=clusters, score=score))

        return tell


def open_questions(walk: LinkWalk) -> OpenQuestions | None:
    """Find what a walk has to search; None for all.

    All is searched where there are few items, and where scores of links alone decide nothing: with templates
    beside the links, with one record per source, where pairs that are not linked are better together, and
    where the walk has begun already.
    """
    unlinked, cluster = (float(weight) for weight in walk.settings)
    of_links_alone = not walk.sources.any() and len(walk.model.templates) == 1 + _has_forbidden(walk)
    begun = walk.n_clusters < walk.n_items
    if walk.n_items < FEWEST_ITEMS or unlinked > 0.0 or not of_links_alone or begun:
        return None
    n, first, second, scores = walk.n_items, walk.graph.first, walk.graph.second, walk.link_scores
    # A cluster weight below zero is a price: links that cost less than it may be worth it.
    joining = scores > min(cluster, 0.0)
    component = component_numbers(n, first[joining], second[joining])
    size = np.bincount(component)
    settled = _closed(component, size, first, second, scores, cluster)
    items = np.flatnonzero(~settled[component])
    inside = settled[component[first]] & (component[first] == component[second])
    score = float(scores[inside].sum(dtype=np.float64)) + cluster * int(settled.sum())
    return OpenQuestions(items, _walk_over(walk, items), component, int(settled.sum()), score)


def _has_forbidden(walk: LinkWalk) -> bool:
    return bool((walk.link_scores == -np.inf).any())


def _closed(
    component: NDArray[np.int32],
    size: NDArray[np.int64],
    first: Ints,
    second: Ints,
    scores: NDArray[np.float32],
    cluster: float,
) -> NDArray[np.bool_]:
    """Return which components are cliques of positive links that no split would make better.

    A split of m items into k clusters cuts at least (k - 1) m / 2 links and adds k - 1 cluster weights.
    """
    positive = np.flatnonzero(scores > 0.0)
    of = component[first[positive]]
    closed = np.bincount(of, minlength=len(size)) == size * (size - 1) // 2
    if cluster > 0.0:
        weakest = np.full(len(size), np.inf)
        np.minimum.at(weakest, of, scores[positive])
        closed &= (size == 1) | (weakest * size / 2.0 >= cluster)
    return np.asarray(closed)


def _walk_over(walk: LinkWalk, items: NDArray[np.int64]) -> LinkWalk | None:
    if not len(items):
        return None
    graph, pairs = walk.graph.restrict_to(items)
    unlinked, cluster = walk.settings
    return LinkWalk(
        graph,
        walk.link_scores[pairs],
        unlinked=float(unlinked),
        cluster=float(cluster),
        counts=walk.counts[items],
        strict=walk.gibbs.strict,
    )
