"""Given pairs of items, the links, and constraints between items, as programs of templates.

The score of a clustering by its links is a sum over its clusters: a weight for the cluster itself, and for
every two records in it the weight of an unlinked pair, or the score of their link. Links are few (candidates
from blocking), so what an item adds to a cluster is computed from its own links and the number of records
there.

``mine`` of the program of links, and of given pairs alone (edges), which have no such weights:

start, neighbor : int64[n + 1], int32[2 pairs]
    The other items of the links of item i are at ``start[i]`` to ``start[i + 1] - 1``.
graph : int64[1]
    Address of the neighbors, by which moves along the same links are recognised.
score : float32[2 pairs]
    How much each scores above an unlinked pair while its two items are together.
pair : int32[2 pairs]
    The number of the pair: a row of ``levels`` or of ``features``.
levels : uint8[pairs, comparisons], features : float32 or float64[pairs, .]
    The numbers that the weights of links multiply; one of the two has columns.
place : int64[comparisons + 1]
    Where the weights begin: those of unlinked pairs, clusters and links, and the levels 1, 2, ... of each
    comparison.
level_start, level_count : int64[comparisons + 1], float64[levels]
    For cumulative levels: scratch for counting levels, those of comparison c at ``level_start[c]`` to
    ``level_start[c + 1] - 1``. Otherwise empty.
weights : float64[.]
    Weights of the whole model.
count, total : int32[n], int64[ids]
    How many records an item stands for, and a cluster has; empty where each item is one record.
sides, last : int64[3], int64[1]
    Records on either side of a split that is being allocated, and the item that was allocated last.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.arrays import LIVE
from factorwise.kernels.compile.compiler import kernel, shared

#: Weights of every links template; those of the comparisons follow.
UNLINKED_WEIGHT, CLUSTER_WEIGHT, LINK_WEIGHT, FIXED_WEIGHTS = range(4)


@shared
def records_of(mine: Any, item: int) -> int:
    """Return how many records an item stands for."""
    return np.int64(mine.count[item]) if len(mine.count) > 0 else np.int64(1)


@shared
def records_in(world: Any, mine: Any, cluster: int) -> int:
    """Return how many records a cluster has."""
    return mine.total[cluster] if len(mine.count) > 0 else np.int64(world.size[cluster])


@shared
def links_of(mine: Any, item: int) -> range:
    """Return where the links of an item begin and end.

    These and all indices from them are unsigned, so that no check for counting from the end is needed.
    """
    return range(np.uint64(mine.start[item]), np.uint64(mine.start[item + 1]))


@shared
def neighbor_label(world: Any, mine: Any, at: int) -> int:
    """Return the cluster into which a link leads."""
    return world.label[np.uint32(mine.neighbor[at])]


def edge_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Compute the scores of the item's links, by the cluster into which each leads."""
    item = move.item
    if move.graph == mine.graph[0]:
        first = np.uint64(mine.start[item])
        for at in links_of(mine, item):
            k = choice.linked[at - first]
            if k > 0:
                choice.out[np.uint32(k - 1)] += mine.score[at]
    elif move.choices == 1:  # labels suffice, without reading places
        target = choice.targets[0]
        for at in links_of(mine, item):
            if neighbor_label(world, mine, at) == target:
                choice.out[0] += mine.score[at]
    else:
        for at in links_of(mine, item):
            k = choice.place[np.uint32(neighbor_label(world, mine, at))]
            if k > 0:
                choice.out[k - 1] += mine.score[at]


def link_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Compute the scores of the item's links by cluster, and of the pairs that are not linked."""
    edge_gains(world, mine, move, choice)
    unlinked = mine.weights[mine.place[0] + UNLINKED_WEIGHT]
    count = records_of(mine, move.item)
    for k in range(move.choices):
        cluster = choice.targets[k]
        records = records_in(world, mine, cluster)
        if cluster == move.source:
            records -= count
        if records == 0:
            choice.out[k] += mine.weights[mine.place[0] + CLUSTER_WEIGHT]
        else:
            choice.out[k] += unlinked * count * records


def edge_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the scores of the links joined minus those of the links separated."""
    item, source, target = move.item, move.source, move.target
    total = 0.0
    for at in links_of(mine, item):
        cluster = neighbor_label(world, mine, at)
        if cluster == source:
            total -= mine.score[at]
        elif cluster == target:
            total += mine.score[at]
    return total


def link_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of moving one item to another cluster."""
    count = records_of(mine, move.item)
    left = records_in(world, mine, move.source) - count
    joined = records_in(world, mine, move.target)
    clusters = np.float64(joined == 0) - np.float64(left == 0)
    total = edge_gain(world, mine, move)
    total += mine.weights[mine.place[0] + UNLINKED_WEIGHT] * count * (joined - left)
    return total + mine.weights[mine.place[0] + CLUSTER_WEIGHT] * clusters


@shared
def add_links(world: Any, mine: Any, move: Any, gradient: Any) -> float:
    """Add the links joined minus those separated to the gradient; return the difference of their numbers."""
    item, source, target = move.item, move.source, move.target
    links = 0.0
    for at in links_of(mine, item):
        cluster = neighbor_label(world, mine, at)
        if cluster == target:
            links += 1.0
            add_link(mine, gradient, mine.pair[at], 1.0)
        elif cluster == source:
            links -= 1.0
            add_link(mine, gradient, mine.pair[at], -1.0)
    return links


def edge_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the features of the links joined minus those of the links separated."""
    add_links(world, mine, move, gradient)


def link_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics of the links joined minus those separated, of unlinked pairs and of clusters."""
    links = add_links(world, mine, move, gradient)
    count = records_of(mine, move.item)
    left = records_in(world, mine, move.source) - count
    joined = records_in(world, mine, move.target)
    gradient.value[mine.place[0] + UNLINKED_WEIGHT] += count * (joined - left) - links
    gradient.value[mine.place[0] + CLUSTER_WEIGHT] += np.float64(joined == 0) - np.float64(left == 0)
    gradient.value[mine.place[0] + LINK_WEIGHT] += links
    for comparison in range(len(mine.level_start) - 1):  # none unless levels are cumulative
        above, first = 0.0, mine.place[1 + comparison] - mine.level_start[comparison]
        for at in range(mine.level_start[comparison + 1] - 1, mine.level_start[comparison] - 1, -1):
            above += mine.level_count[at]
            mine.level_count[at] = 0.0
            gradient.value[first + at] += above


@shared
def add_link(mine: Any, gradient: Any, pair: int, sign: float) -> None:
    """Add the levels or features of a link to the gradient; cumulative levels are counted first."""
    for comparison in range(mine.levels.shape[1]):
        level = np.int64(mine.levels[pair, comparison])
        if level > 0:
            if len(mine.level_count) > 0:
                mine.level_count[mine.level_start[comparison] + level - 1] += sign
            else:
                gradient.value[mine.place[1 + comparison] + level - 1] += sign
    for column in range(mine.features.shape[1]):
        gradient.value[mine.place[0] + FIXED_WEIGHTS + column] += sign * mine.features[pair, column]


def link_sides(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Compute what an item adds to either side of a split, from the items allocated so far."""
    item, sizes = move.item, choice.targets
    if len(mine.count) > 0:
        count_side(world, mine, item, sizes[0] + sizes[1] == 0)
    weights, head = mine.weights, mine.place[0]
    for at in links_of(mine, item):
        side = world.side[np.uint32(mine.neighbor[at])]
        if side > 0:  # rare; sums in registers would be vectorised, and read the scores of all links
            choice.out[side - 1] += mine.score[at]
    unlinked = weights[head + UNLINKED_WEIGHT] * records_of(mine, item)
    records_first, records_second = np.int64(sizes[0]), np.int64(sizes[1])
    if len(mine.count) > 0:
        records_first, records_second = mine.sides[1], mine.sides[2]
    choice.out[0] += unlinked * records_first if records_first > 0 else weights[head + CLUSTER_WEIGHT]
    choice.out[1] += unlinked * records_second if records_second > 0 else weights[head + CLUSTER_WEIGHT]


@shared
def count_side(world: Any, mine: Any, item: int, begins: bool) -> None:
    """Add the records of the item that was allocated last to its side."""
    if begins:
        mine.sides[1], mine.sides[2] = 0, 0
    else:
        mine.sides[world.side[mine.last[0]]] += mine.count[mine.last[0]]
    mine.last[0] = item


def link_applied(mine: Any, move: Any) -> None:
    """Update the number of records of each cluster after a change."""
    count = np.int64(mine.count[move.item])
    mine.total[move.source] -= count
    mine.total[move.target] += count


def begin_links(world: Any, mine: Any) -> None:
    """Count the records of each cluster."""
    for position in range(len(world.live)):
        mine.total[world.live[position]] = 0
    for position in range(world.counters[LIVE]):
        cluster = world.live[position]
        for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
            mine.total[cluster] += mine.count[world.members[slot]]


# One record of each source: ``bits`` uint64[n] of the sources of an item, ``held`` uint64[ids] of a cluster's
# members, and ``sides`` uint64[3], ``last`` int64[1] as above.


def source_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Forbid clusters that have a record of one of the item's sources."""
    bits = mine.bits[move.item]
    if bits == 0:
        return
    for k in range(move.choices):
        cluster = choice.targets[k]
        held = mine.held[cluster]
        if cluster == move.source:
            held ^= bits
        if held & bits != 0:
            choice.out[k] = -math.inf


def source_gain(mine: Any, move: Any) -> float:
    """Return minus infinity if the target has a record of one of the item's sources."""
    return -math.inf if mine.held[move.target] & mine.bits[move.item] != 0 else 0.0


def source_sides(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Forbid a side that has a record of one of the item's sources."""
    if choice.targets[0] + choice.targets[1] == 0:
        mine.sides[1], mine.sides[2] = 0, 0
    else:
        mine.sides[world.side[mine.last[0]]] |= mine.bits[mine.last[0]]
    mine.last[0] = move.item
    bits = mine.bits[move.item]
    for side in range(2):
        if mine.sides[side + 1] & bits != 0:
            choice.out[side] = -math.inf


def source_applied(mine: Any, move: Any) -> None:
    """Update the sources of each cluster after a change.

    Bits are flipped in both clusters, so that a change into a forbidden world can be undone, too.
    """
    mine.held[move.source] ^= mine.bits[move.item]
    mine.held[move.target] ^= mine.bits[move.item]


def begin_sources(world: Any, mine: Any) -> None:
    """Collect the sources of each cluster."""
    for position in range(len(world.live)):
        mine.held[world.live[position]] = 0
    for position in range(world.counters[LIVE]):
        cluster = world.live[position]
        for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
            mine.held[cluster] |= mine.bits[world.members[slot]]


# Pairs that must not be together: ``start`` int64[n + 1] and ``neighbor`` int32[2 pairs].


def forbidden_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Forbid the clusters of the items that this one must not be with."""
    for at in links_of(mine, move.item):
        k = choice.place[np.uint32(neighbor_label(world, mine, at))]
        if k > 0:
            choice.out[k - 1] = -math.inf


def forbidden_gain(world: Any, mine: Any, move: Any) -> float:
    """Return minus infinity if the target has an item that must not be with this one.

    It is infinity for leaving such a cluster.
    """
    gain = 0.0
    for at in links_of(mine, move.item):
        cluster = neighbor_label(world, mine, at)
        if cluster == move.target:
            return -math.inf
        if cluster == move.source:
            gain = math.inf
    return gain


def forbidden_sides(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Forbid a side with an item that this one must not be with."""
    for at in links_of(mine, move.item):
        side = world.side[np.uint32(mine.neighbor[at])]
        if side > 0:
            choice.out[side - 1] = -math.inf


@kernel
def link_rows(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    start: NDArray[np.int64],
    neighbor: NDArray[np.int32],
    pair: NDArray[np.int32],
) -> None:
    """Lay out pairs as links by item: the start of each item's, whom they lead to, and their pairs."""
    start[:] = 0
    for k in range(len(first)):
        start[first[k] + 1] += 1
        start[second[k] + 1] += 1
    for item in range(len(start) - 1):
        start[item + 1] += start[item]
    for k in range(len(first)):  # fills each row from its start, which moves on to the start of the next
        at = start[first[k]]
        neighbor[at], pair[at] = second[k], k
        start[first[k]] = at + 1
        at = start[second[k]]
        neighbor[at], pair[at] = first[k], k
        start[second[k]] = at + 1
    for item in range(len(start) - 1, 0, -1):
        start[item] = start[item - 1]
    start[0] = 0
