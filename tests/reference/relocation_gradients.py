"""The place of each item given all others, from whole worlds and their statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from reference.arrays import Clustering, fill_partition, transfer

Vector = NDArray[np.float64]
Statistics = Callable[[Clustering], Vector]


def relocation_likelihood(
    statistics: Statistics, labels: Sequence[int], types: Sequence[int], n_types: int, weights: Vector
) -> tuple[float, Vector]:
    """Return the sum of the logs of all conditionals, and its gradient.

    A conditional is over a set of worlds that differ in one thing: where an item is, or a cluster's type.
    """
    truth = fill_partition(labels, types)
    sets = [places(truth, item, n_types) for item in range(len(labels))]
    if n_types > 1:
        sets += [retyped(truth, cluster, n_types) for cluster, _ in truth]
    value, gradient = 0.0, np.zeros(len(weights))
    here = statistics(truth)
    for worlds in sets:
        rows = np.array([statistics(world) for world in worlds])
        scores = rows @ weights
        log_total = np.logaddexp.reduce(scores)
        value += float(here @ weights - log_total)
        gradient += here - np.exp(scores - log_total) @ rows
    return value, gradient


def places(truth: Clustering, item: int, n_types: int) -> set[Clustering]:
    """Return every world in which the others are as they are."""
    home = next(members for members, _ in truth if item in members)
    worlds = {truth}
    worlds |= {transfer(truth, [item], members, 0) for members, _ in truth if members != home}
    return worlds | {transfer(truth, [item], None, kind) for kind in range(n_types)}


def retyped(truth: Clustering, cluster: frozenset[int], n_types: int) -> set[Clustering]:
    """Return every world in which one cluster may have another type."""
    others = frozenset(pair for pair in truth if pair[0] != cluster)
    return {others | {(cluster, kind)} for kind in range(n_types)}
