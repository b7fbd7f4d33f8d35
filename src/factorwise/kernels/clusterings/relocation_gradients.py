"""The place of each item given where all others are: what pseudo-likelihood over clusterings asks for.

Every relocation from a world is weighed by the exponential of its gain, and its gradient, which the programs
of the templates add up, enters a mean with that weight. Gradients are taken one at a time and never kept, so
memory does not grow with the number of relocations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.clusterings.arrays import LIVE, Clustering
from factorwise.kernels.compile.compiler import lean_kernel, shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import Gradient
from factorwise.kernels.walks.library import listed

TOP, TOTAL = range(2)
CLUSTERS, TYPES = range(2)  # the two worlds of a clustering with types, side by side


class Conditionals(NamedTuple):
    """What the conditional distributions of one world look at, and what they add up to.

    world
        The clustering.
    templates : int64[2, templates, 2]
        For changes of clusters and of types: entry and context of each template's gradient, 0 for none.
    step, gradient
        The move at hand, see `factorwise.kernels.walks.layouts`.
    mean : float64[weights]
        Sum of the gradients so far, each times the exponential of its gain minus the largest gain.
    sums : float64[2]
        The largest gain so far, and the sum of the exponentials of the gains minus the largest.
    slope : float64[weights]
        The gradient of the log-probability of the world as it is, over all conditionals.
    """

    world: Clustering
    templates: NDArray[np.int64]
    step: NDArray[np.void]
    gradient: Gradient
    mean: NDArray[np.float64]
    sums: NDArray[np.float64]
    slope: NDArray[np.float64]


@shared
def begin_conditional(c: Any) -> None:
    """Start from the world as it is, whose gain and gradient are zero."""
    c.sums[TOP], c.sums[TOTAL] = 0.0, 1.0
    for k in range(len(c.mean)):
        c.mean[k] = 0.0


@shared
def weigh_change(c: Any, move: Any, weights: Any) -> None:
    """Add the change at hand to the conditional at hand."""
    index, value = c.gradient.index, c.gradient.value
    move.entries = move.dense
    for k in range(move.dense):
        value[k] = 0.0
    for k in range(c.templates.shape[1]):
        template = c.templates[move.world, k]
        if template[0] != 0:
            call(template[0], template[1])
    gain = listed(weights, c.gradient, move)
    share = 1.0
    if gain > c.sums[TOP]:
        shrunk = np.exp(c.sums[TOP] - gain)
        c.sums[TOP], c.sums[TOTAL] = gain, c.sums[TOTAL] * shrunk
        for k in range(len(c.mean)):
            c.mean[k] *= shrunk
    else:
        share = np.exp(gain - c.sums[TOP])
    c.sums[TOTAL] += share
    if share > 0.0:
        for k in range(move.entries):
            c.mean[index[k]] += share * value[k]


@shared
def end_conditional(c: Any) -> float:
    """Enter the slope of the conditional at hand, and return the log-probability of the world as it is."""
    for k in range(len(c.mean)):
        c.slope[k] -= c.mean[k] / c.sums[TOTAL]
    return -c.sums[TOP] - np.log(c.sums[TOTAL])


@shared
def weigh_type(c: Any, move: Any, weights: Any, cluster: int, kind: int) -> None:
    """Add to the conditional at hand that a cluster has another type."""
    old = np.int64(c.world.type[cluster])
    if kind != old:
        move.world, move.item, move.source, move.target = TYPES, cluster, old, kind
        weigh_change(c, move, weights)


@lean_kernel
def relocation_likelihood(c: Conditionals, weights: NDArray[np.float64], types: int) -> float:
    """Return the log-probability of each item's place given all else, added up; ``c.slope`` is increased.

    With several ``types`` the type of each cluster given all else adds to the sum.
    """
    world, move = c.world, c.step[0]
    value, clusters = 0.0, world.counters[LIVE]
    for item in range(len(world.label)):
        source = np.int64(world.label[item])
        begin_conditional(c)
        for position in range(clusters):
            target = np.int64(world.live[position])
            if target != source:
                move.world, move.item, move.source, move.target = CLUSTERS, item, source, target
                weigh_change(c, move, weights)
        for kind in range(types):  # a cluster of its own; the one that a single item has counts already
            if world.size[source] == 1:
                weigh_type(c, move, weights, source, kind)
            else:
                empty = np.int64(world.live[clusters])
                world.type[empty] = kind
                move.world, move.item, move.source, move.target = CLUSTERS, item, source, empty
                weigh_change(c, move, weights)
        value += end_conditional(c)
    if types > 1:
        for position in range(clusters):
            begin_conditional(c)
            for kind in range(types):
                weigh_type(c, move, weights, np.int64(world.live[position]), kind)
            value += end_conditional(c)
    return value
