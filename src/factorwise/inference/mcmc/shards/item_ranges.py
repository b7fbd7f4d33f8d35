"""Ranges of items with all that says how sure their clusters are: what a task is given.

A range has the links of its items, and of the items at their other ends and of the clusters of all of these
what is asked for. So nothing in it grows with the number of all items.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.mcmc.shards.component_search import LinkWeights, ScoredLinks
from factorwise.kernels.clusterings.link_groups import rows_of_links, stay_chances
from factorwise.types import Float32s, Int32s, Int64s, UInt64s


class ItemRange(NamedTuple):
    """The items of a range, and those that they have links with, in order.

    low
        The place of the first item of the range; the others follow it.
    start, neighbor, score
        The links of the items of the range, one item after the other: places of other items, and scores.
    label, counts, sources
        Of all these items their clusters, and as in `ScoredLinks`.
    records, held
        Of these clusters how many records they have, and the bits of their sources.
    """

    low: int
    start: Int64s
    neighbor: Int32s
    score: Float32s
    label: Int32s
    counts: Int32s
    sources: UInt64s
    records: Int64s
    held: UInt64s


def cut_ranges(links: ScoredLinks, labels: Int32s, size: int) -> Iterator[ItemRange]:
    """Yield all items, so many at a time.

    labels
        Cluster of each item, numbers below that of items.
    """
    records = np.bincount(labels, weights=links.counts, minlength=links.n_items).astype(np.int64)
    held = np.zeros(links.n_items, np.uint64)
    np.bitwise_or.at(held, labels, links.sources)
    place = np.empty(links.n_items, np.int32)
    for low in range(0, links.n_items, size):
        high = min(low + size, links.n_items)
        start, neighbor, score = _rows(links, low, high)
        items = _renumber(place, np.append(np.arange(low, high, dtype=np.int32), neighbor))
        first, neighbor = int(place[low]), place[neighbor]
        clusters = _renumber(place, labels[items])
        label = place[labels[items]]
        yield ItemRange(
            first,
            start,
            neighbor,
            score,
            label,
            links.counts[items],
            links.sources[items],
            records[clusters],
            held[clusters],
        )


def chances_of_range(part: ItemRange, weights: LinkWeights, temperature: float) -> Float32s:
    """Return the probability of the cluster of each item of a range, given those of all other items.

    Templates beside the links do not speak.
    """
    chances = np.empty(len(part.start) - 1, np.float32)
    stay_chances(
        part.start,
        part.neighbor,
        part.score,
        part.low,
        part.label,
        part.counts,
        part.records,
        part.sources,
        part.held,
        np.array(weights),
        temperature,
        np.empty(len(part.records)),
        np.full(len(part.records), -1, np.int32),
        chances,
    )
    return chances


def _rows(links: ScoredLinks, low: int, high: int) -> tuple[Int64s, Int32s, Float32s]:
    """Return the links of the items of a range, item by item."""
    start = np.zeros(high - low + 1, np.int64)
    nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
    for stretch in links.stretches():
        rows_of_links(*stretch, low, start, *nothing, False)
    start = np.cumsum(start)
    neighbor, score = np.empty(int(start[-1]), np.int32), np.empty(int(start[-1]), np.float32)
    end = start.copy()
    for stretch in links.stretches():
        rows_of_links(*stretch, low, end, neighbor, score, True)
    return start, neighbor, score


def _renumber(place: Int32s, named: Int32s) -> NDArray[np.int64]:
    """Return the different numbers that are named, in order, having written the place of each."""
    there = np.zeros(len(place), np.bool_)
    there[named] = True
    found = np.flatnonzero(there)
    place[found] = np.arange(len(found), dtype=np.int32)
    return found
