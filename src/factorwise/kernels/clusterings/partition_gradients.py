"""Atomic gradients of transfers: how the statistics of a model change, from the touched factors only.

Four kinds of factors add to one dense gradient: pair functions and cluster functions of a user (compiled, see
`partition_code`), given pairs with features (edges), and tables of pair features with their cluster-wise
aggregates. Weights play no part, so they may change at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.pair_tables import TableArrays, keep_counts, keep_links, table_gradient
from factorwise.kernels.clusterings.partition_gains import (
    StorageArrays,
    apply_relocation,
    place,
    place_cluster,
    place_everything,
)
from factorwise.kernels.clusterings.partitions import COMPACTIONS, NEW, PartitionArrays, transfer
from factorwise.kernels.compile.compiler import hot, inner

Statistics = Callable[..., None]


class EdgeArrays(NamedTuple):
    """Given pairs from both ends, with sparse features.

    start, neighbor, edge : int64[n + 1], int64[2 edges], int64[2 edges]
        The edges of item i are at ``start[i]`` to ``start[i + 1]``: the other item, and which edge it is.
    entry, index, value : int64[edges + 1], int64[entries], float64[entries]
        The features of edge e are at ``entry[e]`` to ``entry[e + 1]``: which statistic, and how much.
    """

    start: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    edge: NDArray[np.int64]
    entry: NDArray[np.int64]
    index: NDArray[np.int64]
    value: NDArray[np.float64]


@hot
def edge_gradient(
    e: EdgeArrays,
    p: PartitionArrays,
    items: NDArray[np.int32],
    m: int,
    source: int,
    target: int,
    out: NDArray[np.float64],
) -> None:
    """Add the features of edges joined, minus those of edges separated; movers bear mark 1 if m > 1."""
    for index in range(m):
        item = items[index]
        for at in range(e.start[item], e.start[item + 1]):
            neighbor = e.neighbor[at]
            cluster = p.items[neighbor].label
            sign = 0.0
            if cluster == target:
                sign = 1.0
            elif cluster == source and p.items[neighbor].mark == 0:
                sign = -1.0
            if sign != 0.0:
                edge = e.edge[at]
                for k in range(e.entry[edge], e.entry[edge + 1]):
                    out[e.index[k]] += sign * e.value[k]


@inner
def transfer_gradient(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Set ``out`` to statistics after minus before the drawn transfer or change of type.

    Implements: wick2009samplerank, Sec. 3.1.
    """
    for k in range(len(out)):
        out[k] = 0.0
    m, source, target, new_type = drawn[0], drawn[1], drawn[2], drawn[3]
    if m == 0:
        lo = p.clusters[source].start
        hi = lo + p.clusters[source].size
        cluster_statistics(h.ints, h.reals, lo, hi, new_type, 1.0, out)
        cluster_statistics(h.ints, h.reals, lo, hi, np.int64(p.clusters[source].type), -1.0, out)
        return
    if len(tables.blocks) > 0:
        table_gradient(tables, p, items, m, source, target, out)
    if m == 1:
        if len(e.edge) > 0:
            edge_gradient(e, p, items, 1, source, target, out)
        relocation_functions(pair_statistics, cluster_statistics, p, h, items[0], target, new_type, out)
    else:
        for index in range(m):
            p.items[items[index]].mark = 1
        if len(e.edge) > 0:
            edge_gradient(e, p, items, m, source, target, out)
        transfer_functions(pair_statistics, cluster_statistics, p, h, items, drawn, out)
        for index in range(m):
            p.items[items[index]].mark = 0


@hot
def relocation_functions(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    item: int,
    target: int,
    new_type: int,
    out: NDArray[np.float64],
) -> None:
    """Add the change of pair and cluster functions when one item moves."""
    source = p.items[item].label
    s_lo, s_hi = p.clusters[source].start, p.clusters[source].start + p.clusters[source].size
    t_lo, t_hi = np.int64(0), np.int64(0)
    kind = np.int64(new_type)
    if target != NEW:
        t_lo, t_hi = p.clusters[target].start, p.clusters[target].start + p.clusters[target].size
        kind = np.int64(p.clusters[target].type)
    slot = p.items[item].slot
    pair_statistics(h.ints, h.reals, h.rows, t_lo, t_hi, slot, 1.0, out)
    pair_statistics(h.ints, h.reals, h.rows, s_lo, slot, slot, -1.0, out)
    pair_statistics(h.ints, h.reals, h.rows, slot + 1, s_hi, slot, -1.0, out)
    left = np.int64(p.clusters[source].type)
    cluster_statistics(h.ints, h.reals, s_lo, s_hi, left, -1.0, out)
    if s_hi - s_lo > 1:
        place(h, slot, p.members[s_hi - 1])
        cluster_statistics(h.ints, h.reals, s_lo, s_hi - 1, left, 1.0, out)
        place(h, slot, item)
    if target != NEW:
        cluster_statistics(h.ints, h.reals, t_lo, t_hi, kind, -1.0, out)
        if t_hi - t_lo < 1 << p.clusters[target].order:  # one more fits where the cluster stands
            place(h, t_hi, item)
            cluster_statistics(h.ints, h.reals, t_lo, t_hi + 1, kind, 1.0, out)
            return
    spare = len(p.members)
    for index in range(t_hi - t_lo):
        place(h, spare + index, p.members[t_lo + index])
    place(h, spare + t_hi - t_lo, item)
    cluster_statistics(h.ints, h.reals, spare, spare + t_hi - t_lo + 1, kind, 1.0, out)


@inner
def transfer_functions(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Add the change of pair and cluster functions when several items, all with mark 1, move."""
    m, source, target = drawn[0], drawn[1], drawn[2]
    s_lo, s_hi = p.clusters[source].start, p.clusters[source].start + p.clusters[source].size
    t_lo, t_hi = np.int64(0), np.int64(0)
    kind = drawn[3]
    if target != NEW:
        t_lo, t_hi = p.clusters[target].start, p.clusters[target].start + p.clusters[target].size
        kind = np.int64(p.clusters[target].type)
    spare = len(p.members)
    rest = spare  # the members that stay, laid out in spare slots
    for slot in range(s_lo, s_hi):
        if p.items[p.members[slot]].mark == 0:
            place(h, rest, p.members[slot])
            rest += 1
    for index in range(m):
        slot = p.items[items[index]].slot
        pair_statistics(h.ints, h.reals, h.rows, t_lo, t_hi, slot, 1.0, out)
        pair_statistics(h.ints, h.reals, h.rows, spare, rest, slot, -1.0, out)
    left = np.int64(p.clusters[source].type)
    cluster_statistics(h.ints, h.reals, s_lo, s_hi, left, -1.0, out)
    if rest > spare:
        cluster_statistics(h.ints, h.reals, spare, rest, left, 1.0, out)
    if target != NEW:
        cluster_statistics(h.ints, h.reals, t_lo, t_hi, kind, -1.0, out)
    together = rest
    for slot in range(t_lo, t_hi):
        place(h, together, p.members[slot])
        together += 1
    for index in range(m):
        place(h, together, items[index])
        together += 1
    cluster_statistics(h.ints, h.reals, rest, together, kind, 1.0, out)


@inner
def apply_drawn(
    p: PartitionArrays,
    h: StorageArrays,
    tables: TableArrays,
    items: NDArray[np.int32],
    drawn: NDArray[np.int64],
) -> None:
    """Apply a transfer whose gradient was just taken; keep slots and counts in step."""
    m, source, target, new_type = drawn[0], drawn[1], drawn[2], drawn[3]
    if m == 0:
        p.clusters[source].type = new_type
        return
    if len(tables.links) > 0:
        keep_links(tables, p, items, m, source, target)
    if m == 1:
        left = np.int64(-1) if p.clusters[source].size == 1 else np.int64(source)
        apply_relocation(h, p, items[0], target, new_type)
        joined = np.int64(p.items[items[0]].label)
    else:
        staying = anchor_of(p, items, m, source)
        compactions = p.counters[COMPACTIONS]
        joined = transfer(p, items, m, target, new_type)
        left = np.int64(-1) if staying < 0 else np.int64(p.items[staying].label)
        if h.ints.shape[0] + h.reals.shape[0] + h.rows.shape[1] > 0:
            if p.counters[COMPACTIONS] != compactions:
                place_everything(h, p)
            else:
                place_cluster(h, p, joined)
                if left >= 0:
                    place_cluster(h, p, left)
    if len(tables.blocks) > 0:
        keep_counts(tables, joined, left)


@inner
def anchor_of(p: PartitionArrays, items: NDArray[np.int32], m: int, source: int) -> int:
    """Return a member of ``source`` that is not among ``items[:m]``, or -1.

    Cluster ids change, items do not.
    """
    if p.clusters[source].size == m:
        return -1
    for slot in range(p.clusters[source].start, p.clusters[source].start + p.clusters[source].size):
        member = p.members[slot]
        moving = False
        for index in range(m):
            if items[index] == member:
                moving = True
                break
        if not moving:
            return member
    return -1
