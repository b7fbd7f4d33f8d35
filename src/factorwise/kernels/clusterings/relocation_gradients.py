"""The place of each item given where all others are: what pseudo-likelihood over clusterings asks for.

Every relocation from a world is weighed by the exponential of its gain, and its gradient enters a mean with
that weight. Gradients are taken one at a time and never kept, so memory does not grow with the number of
relocations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.gradient_walks import product
from factorwise.kernels.clusterings.pair_tables import TableArrays
from factorwise.kernels.clusterings.partition_gains import StorageArrays
from factorwise.kernels.clusterings.partition_gradients import EdgeArrays, Statistics, transfer_gradient
from factorwise.kernels.clusterings.partitions import LIVE, NEW, PartitionArrays
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel

TOP, TOTAL = range(2)


class ConditionalArrays(NamedTuple):
    """Scratch of one conditional distribution, and what all of them add up to.

    items, drawn : int32[1], int64[4]
        The change at hand: its item; how many items move (none for a change of type), source, target, type.
    gradient : float64[weights]
        Its gradient.
    mean : float64[weights]
        Sum of the gradients so far, each times the exponential of its gain minus the largest gain.
    sums : float64[2]
        The largest gain so far, and the sum of the exponentials of the gains minus the largest.
    slope : float64[weights]
        The gradient of the log-probability of the world as it is, over all conditionals.
    """

    items: NDArray[np.int32]
    drawn: NDArray[np.int64]
    gradient: NDArray[np.float64]
    mean: NDArray[np.float64]
    sums: NDArray[np.float64]
    slope: NDArray[np.float64]


def conditional_arrays(weights: int) -> ConditionalArrays:
    """Make room for the conditionals of a world under a model with so many weights."""
    return ConditionalArrays(
        items=np.zeros(1, np.int32),
        drawn=np.zeros(4, np.int64),
        gradient=np.zeros(weights),
        mean=np.zeros(weights),
        sums=np.zeros(2),
        slope=np.zeros(weights),
    )


@hot
def begin_conditional(c: ConditionalArrays) -> None:
    """Start from the world as it is, whose gain and gradient are zero."""
    c.sums[TOP], c.sums[TOTAL] = 0.0, 1.0
    for k in range(len(c.mean)):
        c.mean[k] = 0.0


@inner
def weigh_change(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    weights: NDArray[np.float64],
    c: ConditionalArrays,
) -> None:
    """Add the change in ``c.drawn`` to the conditional at hand."""
    transfer_gradient(pair_statistics, cluster_statistics, p, h, e, tables, c.items, c.drawn, c.gradient)
    gain = product(weights, c.gradient)
    if gain > c.sums[TOP]:
        shrunk = np.exp(c.sums[TOP] - gain)
        c.sums[TOP], c.sums[TOTAL] = gain, c.sums[TOTAL] * shrunk + 1.0
        for k in range(len(c.mean)):
            c.mean[k] = c.mean[k] * shrunk + c.gradient[k]
        return
    share = np.exp(gain - c.sums[TOP])
    c.sums[TOTAL] += share
    if share > 0.0:
        for k in range(len(c.mean)):
            c.mean[k] += share * c.gradient[k]


@hot
def end_conditional(c: ConditionalArrays) -> float:
    """Enter the slope of the conditional at hand, and return the log-probability of the world as it is."""
    for k in range(len(c.mean)):
        c.slope[k] -= c.mean[k] / c.sums[TOTAL]
    return -c.sums[TOP] - np.log(c.sums[TOTAL])


@lean_kernel
def relocation_likelihood(
    pair_statistics: Statistics,
    cluster_statistics: Statistics,
    p: PartitionArrays,
    h: StorageArrays,
    e: EdgeArrays,
    tables: TableArrays,
    weights: NDArray[np.float64],
    types: int,
    c: ConditionalArrays,
) -> float:
    """Return the log-probability of each item's place given all else, added up; ``c.slope`` is increased.

    With several ``types`` the type of each cluster given all else adds to the sum.
    """
    value = 0.0
    for item in range(len(p.items)):
        c.items[0] = item
        c.drawn[1] = p.items[item].label
        source = c.drawn[1]
        alone = p.clusters[source].size == 1
        begin_conditional(c)
        for position in range(p.counters[LIVE]):
            c.drawn[0], c.drawn[2], c.drawn[3] = 1, p.clusters[position].live, 0
            if c.drawn[2] != source:
                weigh_change(pair_statistics, cluster_statistics, p, h, e, tables, weights, c)
        for kind in range(types):  # a cluster of its own; the one that a single item has counts already
            c.drawn[0], c.drawn[2], c.drawn[3] = (0, source, kind) if alone else (1, NEW, kind)
            if not alone or kind != p.clusters[source].type:
                weigh_change(pair_statistics, cluster_statistics, p, h, e, tables, weights, c)
        value += end_conditional(c)
    if types > 1:
        for position in range(p.counters[LIVE]):
            c.drawn[0], c.drawn[1] = 0, p.clusters[position].live
            begin_conditional(c)
            for kind in range(types):
                c.drawn[3] = kind
                if kind != p.clusters[c.drawn[1]].type:
                    weigh_change(pair_statistics, cluster_statistics, p, h, e, tables, weights, c)
            value += end_conditional(c)
    return value
