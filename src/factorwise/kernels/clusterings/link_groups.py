"""Links by the components that positive ones connect: count them, and sort them by groups of components."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import kernel
from factorwise.kernels.walks.library import tempered

Codes = NDArray[np.int32]
Longs = NDArray[np.int64]
Scores = NDArray[np.float32]
Words = NDArray[np.uint64]


@kernel
def count_positive(
    first: Codes, second: Codes, score: Scores, component: Codes, positive: Longs, weakest: Scores
) -> None:
    """Count the positive links of each component, and find the lowest score of each."""
    for k in range(len(first)):
        of = component[first[k]]
        if score[k] > 0.0 and of == component[second[k]]:
            positive[of] += 1
            weakest[of] = min(weakest[of], score[k])


@kernel
def count_inside(
    first: Codes,
    second: Codes,
    score: Scores,
    component: Codes,
    group: Codes,
    links: Longs,
    settled: NDArray[np.float64],
) -> None:
    """Count the links inside the components of each group; sum those of settled components.

    group
        The group of each component, -1 for a settled one.
    """
    for k in range(len(first)):
        of = component[first[k]]
        if of == component[second[k]]:
            if group[of] >= 0:
                links[group[of]] += 1
            else:
                settled[0] += score[k]


@kernel
def scatter_links(
    first: Codes,
    second: Codes,
    score: Scores,
    component: Codes,
    group: Codes,
    place: Codes,
    end: Longs,
    firsts: Codes,
    seconds: Codes,
    scores: Scores,
) -> None:
    """Write the links inside components by group, in their order, with items as positions in a group.

    end
        Where the next link of each group is written; updated.
    """
    for k in range(len(first)):
        of = component[first[k]]
        if of == component[second[k]] and group[of] >= 0:
            at = end[group[of]]
            end[group[of]] = at + 1
            firsts[at], seconds[at], scores[at] = place[first[k]], place[second[k]], score[k]


@kernel
def rows_of_links(
    first: Codes,
    second: Codes,
    score: Scores,
    low: int,
    start: Longs,
    neighbor: Codes,
    scores: Scores,
    fill: bool,
) -> None:
    """Count, or write, the links of the items of a range, item by item.

    start : int64[items + 1]
        While counting: the number of links of each item, shifted by one. While writing: where the next link
        of each item goes; updated.
    fill
        Whether to write; otherwise to count.
    """
    items = len(start) - 1
    for k in range(len(first)):
        for turn in range(2):
            item = np.int64(first[k] if turn == 0 else second[k]) - low
            if item < 0 or item >= items:
                continue
            if fill:
                at = start[item]
                start[item] = at + 1
                neighbor[at] = second[k] if turn == 0 else first[k]
                scores[at] = score[k]
            else:
                start[item + 1] += 1


@kernel
def stay_chances(
    start: Longs,
    neighbor: Codes,
    score: Scores,
    low: int,
    label: Codes,
    count: Codes,
    records: Longs,
    source: Words,
    held: Words,
    weights: NDArray[np.float64],
    temperature: float,
    total: NDArray[np.float64],
    listed: Codes,
    chances: Scores,
) -> None:
    """Write for the items of a range the probability of their clusters, given those of all other items.

    The clusters that an item could be in are its own, an empty one, and those that it has links into.

    label, count, records
        Cluster of each item of all, how many records it stands for, and those of each cluster.
    source, held
        Bits of the sources of each item and of each cluster: no cluster has one of them twice.
    weights
        Of an unlinked pair and of a cluster.
    total, listed
        Scratch for each cluster: any numbers, and -1.
    """
    unlinked, cluster = weights[0], weights[1]
    targets = np.empty(len(neighbor) + 1, np.int32)
    for k in range(len(start) - 1):
        item = low + k
        home, mine = label[item], count[item]
        targets[0], listed[home], total[home] = home, k, 0.0
        size = 1
        for at in range(start[k], start[k + 1]):
            other = label[neighbor[at]]
            if listed[other] != k:
                targets[size], listed[other], total[other] = other, k, 0.0
                size += 1
            total[other] += score[at] - unlinked
            if other != home and held[other] & source[item] != 0:
                total[other] = -np.inf
        alone = records[home] == mine
        own = cluster if alone else total[home] + unlinked * mine * (records[home] - mine)
        best = own if alone else max(own, cluster)
        for t in range(1, size):
            other = targets[t]
            total[other] += unlinked * mine * records[other]
            best = max(best, total[other])
        everything = 0.0 if alone else np.exp(tempered(cluster - best, temperature))
        everything += np.exp(tempered(own - best, temperature))
        for t in range(1, size):
            everything += np.exp(tempered(total[targets[t]] - best, temperature))
        chances[k] = np.exp(tempered(own - best, temperature)) / everything
