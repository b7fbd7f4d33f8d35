"""Features of clusters and of pairs of clusters, compiled, and the odds that follow from them.

The plain form is `inference.mcmc.adaptive.features`. Gradients of transfers of the present world are all that
is needed: what two clusters gain from joining is one gradient, and what a part of a cluster would gain from
joining another is the difference of two, of moving it there and of splitting it off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.jump_odds import JumpArrays, as_odds, forget_cluster, set_odds, sum_row
from factorwise.kernels.clusterings.pair_tables import TableArrays, add_aggregate, row_of
from factorwise.kernels.clusterings.partition_gains import StorageArrays, place
from factorwise.kernels.clusterings.partition_gradients import EdgeArrays, Statistics
from factorwise.kernels.clusterings.partitions import LIVE, NEW, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel


class ClusterModel(NamedTuple):
    """A clustering, what the factors of a model read of it, and its functions, as pointers.

    The gradient of a transfer is a pointer as well: each of the many functions here that ask for it would
    compile it once more. ``seen`` is ``tables`` with no other aggregates than features need. All this is put
    together inside the kernels, because numba takes a millisecond to look at a tuple of arrays and pointers
    that comes from Python.
    """

    pair_statistics: Statistics
    cluster_statistics: Statistics
    gradient: Statistics
    p: PartitionArrays
    h: StorageArrays
    e: EdgeArrays
    tables: TableArrays
    seen: TableArrays


@hot
def gradient_of(
    o: ClusterModel, items: NDArray[np.int32], drawn: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    """Set ``out`` to the gradient of a transfer."""
    o.gradient(o.pair_statistics, o.cluster_statistics, o.p, o.h, o.e, o.tables, items, drawn, out)


@hot
def feature_gradient(
    o: ClusterModel, items: NDArray[np.int32], drawn: NDArray[np.int64], out: NDArray[np.float64]
) -> None:
    """Set ``out`` to the gradient of a transfer in the statistics that are features, at least."""
    o.gradient(o.pair_statistics, o.cluster_statistics, o.p, o.h, o.e, o.seen, items, drawn, out)


@inner
def weighed(jumps: JumpArrays, gradient: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Sum of the statistics that are features, times their weights."""
    total = 0.0
    for k in range(len(jumps.columns)):
        total += weights[k] * gradient[jumps.columns[k]]
    return total


@hot
def log_odds_by(
    jumps: JumpArrays, total: float, weights: NDArray[np.float64], pairs: int, size: int
) -> float:
    """Log-odds from the weighed statistics of ``pairs`` pairs of items; ``size`` enters by its logarithm."""
    return total / pairs + weights[len(jumps.columns)] * np.log(size)


@hot
def mixed_odds(jumps: JumpArrays, total: float, size: int) -> float:
    """Odds of splitting a cluster of so many members whose weighed content is given."""
    return as_odds(log_odds_by(jumps, total, jumps.split_weights, size * (size - 1) // 2, size))


@inner
def log_odds_of(
    jumps: JumpArrays, gradient: NDArray[np.float64], weights: NDArray[np.float64], pairs: int, size: int
) -> float:
    """Log-odds from statistics gained by ``pairs`` pairs of items."""
    return log_odds_by(jumps, weighed(jumps, gradient, weights), weights, pairs, size)


@inner
def keep_features(
    jumps: JumpArrays, gradient: NDArray[np.float64], pairs: int, size: int, out: NDArray[np.float32]
) -> None:
    """Write the features of statistics gained by ``pairs`` pairs of items."""
    for k in range(len(jumps.columns)):
        out[k] = gradient[jumps.columns[k]] / pairs
    out[len(jumps.columns)] = np.log(size)


@inner
def take_cluster(jumps: JumpArrays, p: PartitionArrays, cluster: int) -> int:
    """List the members of a cluster as those of a transfer to look at; return how many they are."""
    lo, size = p.clusters[cluster].start, int(p.clusters[cluster].size)
    for index in range(size):
        jumps.items[index] = p.members[lo + index]
    jumps.drawn[0], jumps.drawn[1], jumps.drawn[3] = size, cluster, 0
    return size


@inner
def content_of(
    o: ClusterModel,
    items: NDArray[np.int32],
    m: int,
    out: NDArray[np.float64],
) -> None:
    """Set ``out`` to what the statistics gain from holding ``items[:m]`` together; all marks must be 0."""
    p, h, e, tables = o.p, o.h, o.e, o.seen
    for k in range(len(out)):
        out[k] = 0.0
    spare = len(p.members)
    for index in range(m):
        place(h, spare + index, items[index])
        o.pair_statistics(h.ints, h.reals, h.rows, spare, spare + index, spare + index, 1.0, out)
        o.cluster_statistics(h.ints, h.reals, spare + index, spare + index + 1, 0, -1.0, out)
    o.cluster_statistics(h.ints, h.reals, spare, spare + m, 0, 1.0, out)
    if len(e.edge) > 0:
        for index in range(m):
            item = items[index]
            p.items[item].mark = 1
            add_marked_edges(e, p, item, 1, out)
        for index in range(m):
            p.items[items[index]].mark = 0
    if len(tables.blocks) > 0:
        table_content(o, items, m, out)


@inner
def add_marked_edges(
    e: EdgeArrays, p: PartitionArrays, item: int, mark: int, out: NDArray[np.float64]
) -> None:
    """Add the features of the given pairs of ``item`` with items that bear ``mark``."""
    for at in range(e.start[item], e.start[item + 1]):
        neighbor = e.neighbor[at]
        if neighbor != item and p.items[neighbor].mark == mark:
            for k in range(e.entry[e.edge[at]], e.entry[e.edge[at] + 1]):
                out[e.index[k]] += e.value[k]


@inner
def table_content(o: ClusterModel, items: NDArray[np.int32], m: int, out: NDArray[np.float64]) -> None:
    """Add the aggregates of the pairs of ``items[:m]``, as of a new cluster that all of them have joined."""
    p, tables = o.p, o.seen
    nothing = len(p.items)  # the row of zeros
    for column in range(tables.counts.shape[1]):
        tables.after[0, column] = 0
        tables.after[1, column] = 0
        tables.won[column] = 0
    if len(tables.links) > 0:
        for index in range(m):
            for column in range(len(tables.sums)):
                tables.sums[column] = 0
            add_pairs(tables, items[index], items, m, tables.sums)
            for column in range(len(tables.sums)):
                tables.won[column] += np.int32(tables.sums[column] > 0)
    for index in range(m):
        add_pairs(tables, items[index], items, index, tables.after[0])
    for block in range(len(tables.blocks)):
        add_aggregate(tables, block, nothing, nothing, 0, m, m, out)


@inner
def add_pairs(
    tables: TableArrays, item: int, others: NDArray[np.int32], count: int, out: NDArray[np.int32]
) -> None:
    """Add the rows of ``item`` with each of ``others[:count]`` but itself."""
    for index in range(count):
        if others[index] != item:
            row = row_of(item, others[index])
            for column in range(tables.rows.shape[1]):
                out[column] += np.int32(tables.rows[row, column])


@inner
def merge_gradient(
    o: ClusterModel,
    jumps: JumpArrays,
    other: int,
) -> int:
    """Set ``jumps.gradient`` to that of merging the cluster taken with another; return the pairs between."""
    jumps.drawn[2] = other
    feature_gradient(o, jumps.items, jumps.drawn, jumps.gradient)
    pairs = jumps.drawn[0] * int(o.p.clusters[other].size)
    jumps.tally[0] += pairs
    return pairs


@inner
def refresh_cluster(
    o: ClusterModel,
    jumps: JumpArrays,
    cluster: int,
) -> None:
    """Compute all odds of a cluster that has changed: of splitting it, and of merging it with any other."""
    p = o.p
    size = take_cluster(jumps, p, cluster)
    set_split_odds(o, jumps, cluster, size)
    for position in range(p.counters[LIVE]):
        other = int(p.clusters[position].live)
        if other == cluster:
            continue
        pairs = merge_gradient(o, jumps, other)
        total = weighed(jumps, jumps.gradient, jumps.merge_weights)
        enter_between(jumps, p, cluster, other, total, pairs)
    sum_row(jumps, p, cluster)


@inner
def enter_between(
    jumps: JumpArrays, p: PartitionArrays, cluster: int, other: int, total: float, pairs: int
) -> None:
    """Enter what two clusters would gain from merging, and their odds; the cluster's own sum is set later."""
    odds = as_odds(log_odds_by(jumps, total, jumps.merge_weights, pairs, pairs))
    jumps.between[cluster, other] = total
    jumps.between[other, cluster] = total
    jumps.merge_odds[cluster, other] = odds
    set_odds(jumps, p, other, cluster, odds)


@inner
def join_odds(
    jumps: JumpArrays, p: PartitionArrays, joined: int, gone: int, gradient: NDArray[np.float64]
) -> None:
    """Compute all odds of a cluster that another has joined, from those of both and the merge's gradient.

    Only where all features are sums over pairs of items: then what the two gain from a third adds up, and no
    pair has to be looked at again. The odds of the one that is gone are cleared.
    """
    size = int(p.clusters[joined].size)
    total = 0.0
    for k in range(len(jumps.columns)):
        content = jumps.contents[joined, k] + jumps.contents[gone, k] + gradient[jumps.columns[k]]
        jumps.contents[joined, k] = content
        total += jumps.split_weights[k] * content
    jumps.split_odds[joined] = mixed_odds(jumps, total, size)
    for position in range(p.counters[LIVE]):
        other = int(p.clusters[position].live)
        if other != joined:
            both = jumps.between[joined, other] + jumps.between[gone, other]
            enter_between(jumps, p, joined, other, both, size * int(p.clusters[other].size))
    forget_cluster(jumps, p, gone)
    sum_row(jumps, p, joined)


@inner
def set_split_odds(
    o: ClusterModel,
    jumps: JumpArrays,
    cluster: int,
    size: int,
) -> None:
    """Compute the content of the cluster whose members ``jumps.items`` lists, and its odds of being split."""
    content_of(o, jumps.items, size, jumps.gradient)
    for k in range(len(jumps.columns)):
        jumps.contents[cluster, k] = jumps.gradient[jumps.columns[k]]
    jumps.split_odds[cluster] = 0.0
    if size > 1:
        jumps.tally[0] += size * (size - 1) // 2
        total = weighed(jumps, jumps.gradient, jumps.split_weights)
        jumps.split_odds[cluster] = mixed_odds(jumps, total, size)


@inner
def set_part_odds(
    o: ClusterModel,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    m: int,
    source: int,
    features: NDArray[np.float32],
) -> float:
    """Set the odds of ``items[:m]``, a part of ``source``, with every cluster as if it had left its own.

    Returns the sum over all clusters but its own. ``features``, unless it is empty, gets a row per live
    cluster.
    """
    p = o.p
    for index in range(m):
        jumps.items[index] = items[index]
    jumps.drawn[0], jumps.drawn[1], jumps.drawn[2], jumps.drawn[3] = m, source, NEW, 0
    feature_gradient(o, jumps.items, jumps.drawn, jumps.other)
    total = 0.0
    for position in range(p.counters[LIVE]):
        cluster = int(p.clusters[position].live)
        if cluster == source:
            pairs = m * (int(p.clusters[source].size) - m)
            for k in range(len(jumps.gradient)):
                jumps.gradient[k] = -jumps.other[k]
        else:
            pairs = m * int(p.clusters[cluster].size)
            jumps.drawn[2] = cluster
            feature_gradient(o, jumps.items, jumps.drawn, jumps.gradient)
            for k in range(len(jumps.gradient)):
                jumps.gradient[k] -= jumps.other[k]
        jumps.tally[0] += pairs
        odds = as_odds(log_odds_of(jumps, jumps.gradient, jumps.merge_weights, pairs, pairs))
        jumps.part_odds[cluster] = odds
        if cluster != source:
            total += odds
        if len(features) > 0:
            keep_features(jumps, jumps.gradient, pairs, pairs, features[position])
    return total


@hot
def joining_gradient(
    o: ClusterModel,
    jumps: JumpArrays,
    item: int,
    side: int,
    out: NDArray[np.float64],
) -> None:
    """Set ``out`` to what the statistics gain when ``item`` joins one of two sides.

    Members of side k bear mark k + 1, their fields lie in spare slots, and their pairs are counted in the
    table's row n + 1 + k.
    """
    p, h, e, tables = o.p, o.h, o.e, o.seen
    for k in range(len(out)):
        out[k] = 0.0
    size = jumps.side_sizes[side]
    lo = len(p.members) + side * (len(p.items) + 1)
    place(h, lo + size, item)
    o.pair_statistics(h.ints, h.reals, h.rows, lo, lo + size, lo + size, 1.0, out)
    o.cluster_statistics(h.ints, h.reals, lo, lo + size, 0, -1.0, out)
    o.cluster_statistics(h.ints, h.reals, lo + size, lo + size + 1, 0, -1.0, out)
    o.cluster_statistics(h.ints, h.reals, lo, lo + size + 1, 0, 1.0, out)
    if len(e.edge) > 0:
        add_marked_edges(e, p, item, side + 1, out)
    if len(tables.blocks) > 0:
        nothing = len(p.items)
        row = nothing + 1 + side
        for column in range(tables.counts.shape[1]):
            tables.after[0, column] = tables.counts[row, column]
            tables.after[1, column] = 0
            tables.won[column] = 0
        add_pairs(tables, item, jumps.sides[side], size, tables.after[0])
        for block in range(len(tables.blocks)):
            add_aggregate(tables, block, row, nothing, size, 1, 1, out)


@inner
def join_side(o: ClusterModel, jumps: JumpArrays, item: int, side: int) -> None:
    """Let ``item`` join one of two sides."""
    p, h, tables = o.p, o.h, o.tables
    size = jumps.side_sizes[side]
    place(h, len(p.members) + side * (len(p.items) + 1) + size, item)
    if len(tables.blocks) > 0:
        add_pairs(tables, item, jumps.sides[side], size, tables.counts[len(p.items) + 1 + side])
    jumps.sides[side, size] = item
    jumps.side_sizes[side] = size + 1
    p.items[item].mark = side + 1


@inner
def clear_sides(o: ClusterModel, jumps: JumpArrays) -> None:
    """Take all items off the two sides."""
    for side in range(2):
        for index in range(jumps.side_sizes[side]):
            o.p.items[jumps.sides[side, index]].mark = 0
        jumps.side_sizes[side] = 0
        if len(o.tables.blocks) > 0:
            for column in range(o.tables.counts.shape[1]):
                o.tables.counts[len(o.p.items) + 1 + side, column] = 0


@lean_kernel
def all_features(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    gradient: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    seen: TableArrays,
    jumps: JumpArrays,
    between: NDArray[np.float32],
    within: NDArray[np.float32],
) -> None:
    """Set the odds and contents of everything; write the features where there is room for them.

    Those of the pair at live positions (a, b) with a > b go to row a (a - 1) / 2 + b, those of clusters of
    two or more to rows in their order.
    """
    o = ClusterModel(pair_statistics, cluster_statistics, gradient, p, h, e, tables, seen)
    for cluster in range(len(p.items)):
        jumps.split_odds[cluster] = 0.0
        for other in range(len(p.items)):
            jumps.merge_odds[cluster, other] = 0.0
    for position in range(p.counters[LIVE]):
        cluster = int(p.clusters[position].live)
        size = take_cluster(jumps, p, cluster)
        set_split_odds(o, jumps, cluster, size)
        if size > 1 and len(within) > 0:
            at = int(p.clusters[cluster].splittable_at)
            keep_features(jumps, jumps.gradient, size * (size - 1) // 2, size, within[at])
        for before in range(position):
            other = int(p.clusters[before].live)
            pairs = merge_gradient(o, jumps, other)
            total = weighed(jumps, jumps.gradient, jumps.merge_weights)
            odds = as_odds(log_odds_by(jumps, total, jumps.merge_weights, pairs, pairs))
            jumps.between[cluster, other] = total
            jumps.between[other, cluster] = total
            jumps.merge_odds[cluster, other] = odds
            jumps.merge_odds[other, cluster] = odds
            if len(between) > 0:
                row = position * (position - 1) // 2 + before
                keep_features(jumps, jumps.gradient, pairs, pairs, between[row])
    for position in range(p.counters[LIVE]):
        sum_row(jumps, p, p.clusters[position].live)


@lean_kernel
def part_features(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    gradient: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    seen: TableArrays,
    jumps: JumpArrays,
    items: NDArray[np.int32],
    source: int,
    out: NDArray[np.float32],
) -> None:
    """Write the features of a part of a cluster with each live cluster, its own as if it had left it."""
    o = ClusterModel(pair_statistics, cluster_statistics, gradient, p, h, e, tables, seen)
    set_part_odds(o, jumps, items, len(items), source, out)
