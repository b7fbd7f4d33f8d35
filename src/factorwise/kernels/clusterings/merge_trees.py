"""Trees of merges by average linkage, and probabilities that follow from those of their nodes.

Items are the nodes 0 to n - 1; every further node joins two earlier ones. Arrays over nodes:

left, right, parent : int64[nodes]
    The two children and the parent of a node; -1 if there is none.
total, count : float64[nodes]
    Sum of the scores of the pairs across the two, and number of records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import kernel

Nodes = NDArray[np.int64]
Reals = NDArray[np.float64]


@kernel
def join_groups(
    start: Nodes,
    unit: Nodes,
    link_start: Nodes,
    link_first: Nodes,
    link_second: Nodes,
    link_sum: Reals,
    unlinked: float,
    largest: int,
    left: Nodes,
    right: Nodes,
    total: Reals,
    count: Reals,
    first_node: int,
    root: Nodes,
) -> int:
    """Join the units of each group into one tree; return the new number of nodes.

    start, unit
        The units of group g, which are existing nodes, are at ``start[g]`` to ``start[g + 1] - 1``.
    link_start, link_first, link_second, link_sum
        Links within group g stand at ``link_start[g]`` to ``link_start[g + 1]``: positions of two units in
        the group, and what they add beyond ``unlinked`` for each pair of records.
    largest
        Groups with more units are joined pairwise, without comparing scores.
    first_node
        Current number of nodes.
    root
        Set to the top node of each group.

    Merges follow chains of nearest neighbors, which average linkage allows: the tree is that of joining the
    two with the highest mean first.
    """
    most = 1
    for group in range(len(start) - 1):
        units = start[group + 1] - start[group]
        if units <= largest:
            most = max(most, units)
    sums = np.zeros((most, most))
    chain = np.empty(most, np.int64)
    node = np.empty(most, np.int64)
    alive = np.empty(most, np.bool_)
    made = first_node
    for group in range(len(start) - 1):
        begin, units = start[group], start[group + 1] - start[group]
        root[group] = unit[begin]
        if units > largest:
            row = unit[begin : begin + units].copy()
            while units > 1:  # pairs of neighbors, so that no path to the top is long
                for k in range(units // 2):
                    left[made], right[made], total[made] = row[2 * k], row[2 * k + 1], np.inf
                    count[made] = count[row[2 * k]] + count[row[2 * k + 1]]
                    row[k] = made
                    made += 1
                if units % 2:
                    row[units // 2] = row[units - 1]
                units = (units + 1) // 2
            root[group] = row[0]
            continue
        for one in range(units):
            node[one], alive[one] = unit[begin + one], True
            for two in range(units):
                sums[one, two] = unlinked * count[unit[begin + one]] * count[unit[begin + two]]
        for at in range(link_start[group], link_start[group + 1]):
            sums[link_first[at], link_second[at]] += link_sum[at]
            sums[link_second[at], link_first[at]] += link_sum[at]
        length, next_unit, remaining = 0, 0, units
        while remaining > 1:
            if length == 0:
                while not alive[next_unit]:
                    next_unit += 1
                chain[0], length = next_unit, 1
            one = chain[length - 1]
            before = chain[length - 2] if length > 1 else -1
            best, highest = -1, -np.inf
            if before >= 0:
                best, highest = before, sums[one, before] / (count[node[one]] * count[node[before]])
            for two in range(units):
                if alive[two] and two != one:
                    mean = sums[one, two] / (count[node[one]] * count[node[two]])
                    if best < 0 or mean > highest:
                        best, highest = two, mean
            if best != before:
                chain[length] = best
                length += 1
                continue
            left[made], right[made], total[made] = node[before], node[one], sums[before, one]
            count[made] = count[node[before]] + count[node[one]]
            node[before], alive[one] = made, False
            for two in range(units):
                if alive[two] and two != before:
                    sums[before, two] += sums[one, two]
                    sums[two, before] = sums[before, two]
            root[group] = made
            made += 1
            length -= 2
            remaining -= 1
    return made


@kernel
def best_links(
    start: Nodes,
    neighbor: NDArray[np.int32],
    pair: NDArray[np.int32],
    score: Reals,
    unlinked: float,
    left: Nodes,
    right: Nodes,
    parent: Nodes,
    count: Reals,
    best: Reals,
) -> None:
    """Set for each node the mean score of the records' best links into the other child.

    The records are those of the smaller of its two parts, the left one if they are of one size; a record
    without a link into the other part counts as ``unlinked``.

    start, neighbor, pair
        Links of item i stand at ``start[i]`` to ``start[i + 1]``: the other item, and the place of the link.
    score : float64[links]
        For each pair of records of the two items.
    count
        Number of records of each node.
    best : float64[nodes]
        Zero on entry.
    """
    nodes, items = len(left), len(start) - 1
    highest = np.full(nodes, -np.inf)
    reached = np.zeros(nodes)  # records with a link into the other part
    touched = np.empty(nodes, np.int64)
    for item in range(items):
        n_touched = 0
        for at in range(start[item], start[item + 1]):
            one, two, below = np.int64(item), np.int64(neighbor[at]), np.int64(-1)
            while one != two and one >= 0 and two >= 0:  # parents have higher numbers than what they join
                if one < two:
                    below, one = one, parent[one]
                else:
                    two = parent[two]
            if one < 0 or two < 0:
                continue
            other = left[one] if right[one] == below else right[one]
            if count[below] > count[other] or (count[below] == count[other] and below != left[one]):
                continue
            if highest[one] == -np.inf:
                touched[n_touched] = one
                n_touched += 1
            highest[one] = max(highest[one], score[pair[at]])
        for k in range(n_touched):
            node = touched[k]
            best[node] += count[item] * highest[node]
            reached[node] += count[item]
            highest[node] = -np.inf
    for node in range(items, nodes):
        small = min(count[left[node]], count[right[node]])
        best[node] = (best[node] + unlinked * (small - reached[node])) / small


@kernel
def mark_forbidden(
    left: Nodes, right: Nodes, impossible: NDArray[np.bool_], sources: NDArray[np.uint64]
) -> None:
    """Mark the nodes that contain a forbidden pair, or two records of one source.

    impossible
        On entry, nodes that join such a pair; on exit, also the nodes above them.
    sources : uint64[nodes]
        Bits of the sources of each item; those of all other nodes are set.
    """
    for node in range(len(left)):
        one, two = left[node], right[node]
        if one >= 0:
            impossible[node] |= impossible[one] or impossible[two] or (sources[one] & sources[two]) != 0
            sources[node] = sources[one] | sources[two]


@kernel
def add_parts(left: Nodes, right: Nodes, first: int, number: Nodes) -> None:
    """Set the number of each node from ``first`` on to the sum of the numbers of its two children."""
    for node in range(first, len(left)):
        number[node] = number[left[node]] + number[right[node]]


@kernel
def split_chances(parent: Nodes, whole: Reals, split: Reals) -> None:
    """Set the probability that neither a node nor one above it is a cluster.

    whole
        Probability that a node is a cluster if none above it is.
    """
    for node in range(len(parent) - 1, -1, -1):
        above = parent[node]
        split[node] = (1.0 - whole[node]) * (split[above] if above >= 0 else 1.0)


@kernel
def cut_trees(parent: Nodes, is_whole: NDArray[np.bool_], top: Nodes) -> None:
    """Set the cluster of each node, which is the highest whole node at or above it; -1 if there is none."""
    for node in range(len(parent) - 1, -1, -1):
        above = parent[node]
        if above >= 0 and top[above] >= 0:
            top[node] = top[above]
        else:
            top[node] = node if is_whole[node] else -1


@kernel
def pair_chances(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    parent: Nodes,
    root: Nodes,
    split: Reals,
    chance: NDArray[np.float32],
) -> None:
    """Set the probability that the items of each pair are in one cluster: that of their lowest common node.

    root : int64[items]
        The top of the tree of each item.
    """
    for pair in range(len(first)):
        one, two = np.int64(first[pair]), np.int64(second[pair])
        chance[pair] = 0.0
        if root[one] == root[two]:
            while one != two:  # parents have higher numbers than what they join
                if one < two:
                    one = parent[one]
                else:
                    two = parent[two]
            chance[pair] = 1.0 - split[one]
