"""Pairs of records, grouped by the two clusters that they connect.

Many pairs of records connect the same two clusters, so features of clusters are computed only once for all of
them. If both records are in one cluster, the two sides are a record and the rest of the cluster, and the pair
gets the mean of the values of its two records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons import Cuts, HasPairs
from factorwise.types import Floats, Ints

STRETCH = 1 << 22  # pairs processed at a time


class Sides(NamedTuple):
    """A number for each pair of clusters, and one for each record against the rest of its cluster."""

    across: Floats
    inside: Floats


def cluster_parts(pairs: HasPairs, label: Ints, most: int) -> Iterator[NDArray[np.int32]]:
    """Split pairs into parts of about ``most`` pairs; pairs of the same clusters share a part.

    label
        The cluster of each record, numbered from 0 on. A pair belongs to its cluster with the lower number,
        and all pairs of a cluster are in one part.
    """
    count = len(pairs.first)
    if count <= most:
        yield np.arange(count, dtype=np.int32)
        return
    in_cluster = np.zeros(int(label.max(initial=-1)) + 1, np.int64)
    for low in range(0, count, STRETCH):
        lower = _lower_clusters(pairs, label, low)
        in_cluster += np.bincount(lower, minlength=len(in_cluster))
    part_of = ((np.cumsum(in_cluster) - in_cluster) // most).astype(np.uint16)
    sizes = np.bincount(part_of, weights=in_cluster).astype(np.int64)
    end = np.cumsum(sizes) - sizes
    order = np.empty(count, np.int32)
    for low in range(0, count, STRETCH):
        part = part_of[_lower_clusters(pairs, label, low)]
        by_part = np.argsort(part, kind="stable")
        counts = np.bincount(part, minlength=len(sizes))
        starts = np.cumsum(counts) - counts
        order[np.repeat(end - starts, counts) + np.arange(len(part))] = low + by_part
        end += counts
    for start, size in zip((np.cumsum(sizes) - sizes).tolist(), sizes.tolist(), strict=True):
        if size:
            yield order[start : start + size]


def _lower_clusters(pairs: HasPairs, label: Ints, low: int) -> Ints:
    first, second = pairs.first[low : low + STRETCH], pairs.second[low : low + STRETCH]
    return np.asarray(np.minimum(label[first], label[second]))


class ClusterPairs:
    """The pairs of clusters that are connected by pairs of records.

    label, size
        The cluster of each record, numbered from 0 on, and the number of records of each cluster.
    one, two : int64[pairs of clusters]
        The two clusters of each connected pair of clusters.
    record : int64[.]
        Records that have a pair inside their cluster.
    pair
        The number of the pair of clusters of each pair of records in different clusters.
    ends
        The positions in ``record`` of the two records of each pair in one cluster.
    """

    def __init__(self, first: Ints, second: Ints, labels: Ints) -> None:
        self.label = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.size = np.bincount(self.label)
        clusters = len(self.size)
        low, high = self.label[first], self.label[second]
        self.is_inside = low == high
        self.across, self.inside = np.flatnonzero(~self.is_inside), np.flatnonzero(self.is_inside)
        keys = np.minimum(low, high)[self.across] * clusters + np.maximum(low, high)[self.across]
        pairs, self.pair = np.unique(keys, return_inverse=True)
        self.one, self.two = pairs // clusters, pairs % clusters
        ends = np.concatenate([first[self.inside], second[self.inside]])
        self.record, place = np.unique(ends, return_inverse=True)
        self.ends = place.reshape(2, -1)
        self.ends_across = np.stack([first[self.across], second[self.across]])

    def levels(self, sides: Sides, cuts: Cuts) -> NDArray[np.uint8]:
        """Return the level of a feature for each pair of records."""
        found = np.empty(len(self.is_inside), np.uint8)
        found[self.across] = cuts.levels(sides.across.astype(np.float32))[self.pair]
        found[self.inside] = cuts.levels(self._means(sides))
        return found

    def values(self, sides: Sides) -> NDArray[np.float32]:
        """Return the value of a feature for each pair of records."""
        found = np.empty(len(self.is_inside), np.float32)
        found[self.across] = sides.across[self.pair]
        found[self.inside] = self._means(sides)
        return found

    def _means(self, sides: Sides) -> NDArray[np.float32]:
        one, two = sides.inside[self.ends]
        return np.asarray(0.5 * (one + two), np.float32)
