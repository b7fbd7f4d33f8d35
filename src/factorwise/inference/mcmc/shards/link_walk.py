"""A walk over clusterings of linked items whose links have given scores, made of the usual parts."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import ShapeError, require
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.link_moves import LinkedGibbs, LinkedJumps
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk
from factorwise.model.clusterings.link_templates import CannotLinkTemplate, LinkTemplate, OnePerSourceTemplate
from factorwise.model.model import Model
from factorwise.model.template import AnyTemplate
from factorwise.types import Ints
from factorwise.world.links import LinkGraph

__all__ = ["MOST_SOURCES", "LinkGraph", "LinkWalk"]

Kind = TypeVar("Kind", bound=np.generic)

MOST_SOURCES = 64  # one word has this many bits
FOLLOWED = np.float32(0.01)  # smallest worth of a link to which further templates may add


class LinkWalk(ShardedWalk):
    """A walk over clusterings of linked items, with an ordinary `Model` of their links.

    link_scores
        Score of each pair of the graph if it is in one cluster; -inf forbids that.
    unlinked, cluster
        The weight of two members that are not linked (unlinked pair weight), and that of a cluster.
    labels
        Where to start, as any labels; None starts with every item by itself. An item whose source its cluster
        already has starts by itself.
    counts, link_pairs
        Number of records that each item stands for, and of linked pairs of records that each link stands for;
        None for one each. The score of a link is the sum of theirs, minus ``unlinked`` for each pair beyond
        the first.
    sources
        Bits of the sources of each item, if a cluster may have only one record of each source; else None.
    strict
        Leave exp(score / temperature) invariant; otherwise search: see `LinkedGibbs`.
    further
        A model of further templates over the items, in addition to their links; None for none.
    """

    def __init__(
        self,
        graph: LinkGraph,
        link_scores: ArrayLike,
        *,
        unlinked: float,
        cluster: float,
        labels: ArrayLike | None = None,
        counts: ArrayLike | None = None,
        link_pairs: ArrayLike | None = None,
        sources: ArrayLike | None = None,
        strict: bool = False,
        further: Model | None = None,
    ) -> None:
        n = graph.n_items
        scores = np.asarray(link_scores, np.float32)
        if scores.shape != graph.first.shape:
            raise ShapeError(
                f"{len(graph.first)} pairs need a score each, but an array of shape {scores.shape} was given."
            )
        require(bool((scores < np.inf).all()), "link_scores", "NaN or inf", "numbers or -inf")
        require(
            bool(np.isfinite([unlinked, cluster]).all()),
            "unlinked and cluster",
            (unlinked, cluster),
            "finite",
        )
        self.graph, self.link_scores = graph, scores
        self.settings = np.array([unlinked, cluster])
        self.counts = _one_for_each("counts", np.ones(n) if counts is None else counts, np.int32, n)
        self.link_pairs = _one_for_each(
            "link_pairs", np.ones(len(scores)) if link_pairs is None else link_pairs, np.int32, len(scores)
        )
        self.sources = _one_for_each("sources", np.zeros(n) if sources is None else sources, np.uint64, n)
        self.further = further
        model = self._model(float(unlinked), float(cluster), further)
        start = np.arange(n) if labels is None else self._allowed(np.asarray(labels))
        worth = scores if further is None else np.maximum(scores, FOLLOWED)
        jumps = Metropolis(model, LinkedJumps(graph, strict))
        super().__init__(LinkedGibbs(model, graph, strict), jumps, labels=start, worth=worth)

    def _model(self, unlinked: float, cluster: float, further: Model | None) -> Model:
        """Return the model: the links, constraints if there are any, and further templates."""
        n, graph, scores = self.graph.n_items, self.graph, self.link_scores
        forbidden = scores == -np.inf
        finite = np.where(forbidden, np.float32(0.0), scores) if forbidden.any() else scores
        templates: list[AnyTemplate] = [
            LinkTemplate("links", n, graph, features=finite[:, None], counts=self.counts)
        ]
        if self.sources.any():
            templates.append(OnePerSourceTemplate("one per source", self.sources))
        if forbidden.any():
            pairs = np.column_stack([graph.first[forbidden], graph.second[forbidden]])
            templates.append(CannotLinkTemplate("cannot link", n, pairs))
        weights = np.array([unlinked, cluster, 0.0, 1.0])
        if further is None:
            return Model(templates, weights)
        return Model([*templates, *further.templates], np.concatenate([weights, further.weights]))

    def place_items(self, labels: Ints) -> None:
        """Set the clustering; an item whose source its cluster already has gets a cluster of its own."""
        self.shards.place(self._allowed(labels))

    def _allowed(self, labels: Ints) -> Ints:
        if labels.shape != (self.graph.n_items,):
            raise ShapeError(
                f"{self.graph.n_items} items need a label each, but an array of shape {labels.shape} was"
                " given."
            )
        return _one_per_source(labels, self.sources) if self.sources.any() else labels


def _one_for_each(name: str, values: ArrayLike, kind: type[Kind], n: int) -> NDArray[Kind]:
    array = np.asarray(values, kind)
    if array.shape != (n,):
        raise ShapeError(
            f"{name} must have {n} values, one for each, but an array of shape {array.shape} was given."
        )
    return array


def _one_per_source(labels: Ints, sources: NDArray[np.uint64]) -> Ints:
    """Return labels by which no two items of a cluster share a source.

    Later items get labels of their own.
    """
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
