"""Groups of records whose clustering is in doubt, and the two clusterings of each that came up most.

Doubtful pairs connect what is listed together; records that they do not speak of stay away, however large
their entities. Where many of them hang together, hardly any clustering of all comes up twice, which tells
nothing: such a group is cut at its less doubtful pairs, until two clusterings make up most of the draws.
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

CLEAR = 0.5  # of the draws: two clusterings with so many are worth telling


class DoubtfulGroup(NamedTuple):
    """Items whose clustering is in doubt.

    best, second
        A label for each item, the place of its cluster's first among them: in the clustering that came up
        most, and in the next.
    shares
        Of the draws, in which the two came up.
    """

    items: NDArray[np.int64]
    best: NDArray[np.int64]
    second: NDArray[np.int64]
    shares: tuple[float, float]


def doubtful_groups(posterior: LinkPosterior, graph: LinkGraph, most: int) -> list[DoubtfulGroup]:
    """Return the groups, those with the most doubtful pairs first, ``most`` at most."""
    pairs = posterior.uncertain_pairs()
    return list(islice(_groups(posterior, graph, pairs, SURE), most))


def _groups(
    posterior: LinkPosterior, graph: LinkGraph, pairs: NDArray[np.int64], bound: float
) -> Iterator[DoubtfulGroup]:
    """Yield the groups that some pairs connect, all of them more doubtful than ``bound``.

    A group of which all draws have the same clustering is left out: there is no second one.
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
    """Return the pairs that hang together, in the order of the first of each."""
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
    """Return labels that equal clusterings share: in each row, where the first of a cluster stands."""
    order = np.argsort(labels, axis=1, kind="stable")
    ordered = np.take_along_axis(labels, order, axis=1)
    new = np.ones(labels.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(labels.shape[1]), 0), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.take_along_axis(order, start, axis=1), axis=1)
    return places
