"""Groups of records whose clustering is uncertain, with the two most frequent clusterings of each group.

A group consists of records that are connected by uncertain pairs; other records of their entities are not
listed. In a large group hardly any clustering is drawn twice, so the two most frequent ones say little. Such
a group is split at its less uncertain pairs, until two clusterings make up at least half of the draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.link_walk import LinkGraph
from factorwise.inference.merge_trees import SURE, LinkPosterior
from factorwise.kernels.graphs.components import component_numbers
from factorwise.types import Ints

CLEAR = 0.5  # share of draws that the two most frequent clusterings of a group must have


class DoubtfulGroup(NamedTuple):
    """Items whose clustering is uncertain.

    best, second
        The label of each item in the most frequent clustering, and in the second one: the position of the
        first item of its cluster.
    shares
        The shares of the draws with these two clusterings.
    """

    items: NDArray[np.int64]
    best: NDArray[np.int64]
    second: NDArray[np.int64]
    shares: tuple[float, float]


def doubtful_groups(posterior: LinkPosterior, graph: LinkGraph, most: int) -> list[DoubtfulGroup]:
    """Return at most ``most`` groups, those with the most uncertain pairs first."""
    pairs = posterior.uncertain_pairs()
    return list(islice(_groups(posterior, graph, pairs, SURE), most))


def _groups(
    posterior: LinkPosterior, graph: LinkGraph, pairs: NDArray[np.int64], bound: float
) -> Iterator[DoubtfulGroup]:
    """Yield the groups that are connected by the given pairs, all more uncertain than ``bound``.

    A group that has the same clustering in all draws is left out, because there is no second one.
    """
    draws = posterior.labels
    for part in _connected(graph, pairs):
        items = np.unique(np.concatenate([graph.first[part], graph.second[part]])).astype(np.int64)
        group = _two_best(items, draws[:, items])
        if group is None:
            continue
        chance = posterior.together[part]
        doubtful = part[np.minimum(chance, 1.0 - chance) > 2.0 * bound]
        if sum(group.shares) >= CLEAR or not len(doubtful):
            yield group
        else:
            yield from _groups(posterior, graph, doubtful, 2.0 * bound)


def _connected(graph: LinkGraph, pairs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the pairs of each connected component, in the order of their first pairs."""
    if not len(pairs):
        return []
    ends = np.concatenate([graph.first[pairs], graph.second[pairs]])
    items, place = np.unique(ends, return_inverse=True)
    one, two = place[: len(pairs)], place[len(pairs) :]
    part = component_numbers(len(items), one, two)[one]
    order = np.argsort(part, kind="stable")
    found = np.split(pairs[order], np.flatnonzero(np.diff(part[order])) + 1)
    first = np.unique(part, return_index=True)[1]
    return [found[k] for k in np.argsort(first)]


def _two_best(items: NDArray[np.int64], draws: NDArray[np.int32]) -> DoubtfulGroup | None:
    kinds, counts = np.unique(_first_places(draws), axis=0, return_counts=True)
    if len(kinds) < 2:
        return None
    order = np.argsort(-counts, kind="stable")[:2]
    share = counts[order] / len(draws)
    return DoubtfulGroup(items, kinds[order[0]], kinds[order[1]], (float(share[0]), float(share[1])))


def _first_places(labels: Ints) -> NDArray[np.int64]:
    """Return canonical labels of each row: the position of the first item of each cluster."""
    order = np.argsort(labels, axis=1, kind="stable")
    ordered = np.take_along_axis(labels, order, axis=1)
    new = np.ones(labels.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(labels.shape[1]), 0), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.take_along_axis(order, start, axis=1), axis=1)
    return places
