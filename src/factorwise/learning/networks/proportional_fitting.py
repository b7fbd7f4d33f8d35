"""Maximum likelihood of Markov networks with a free table per clique.

The file has the result, iterative proportional fitting, the closed form of decomposable networks, and the
walk over a junction tree that makes a step of proportional fitting cheap.

The likelihood is highest if the clique marginals of the model equal the empirical ones. Proportional fitting
takes one clique after the other and multiplies its factor by the empirical over the model marginal. This
makes the marginals of that clique right and those of the others slightly wrong, by less in every sweep.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from factorwise.errors import ConvergenceWarning, CountsError, StructureError, warn_caller
from factorwise.inference.exact.elimination import GIBIBYTE, EliminationOrder, elimination_order
from factorwise.inference.exact.junction_tree import JunctionTree
from factorwise.learning.networks.counts import CliqueCounts
from factorwise.model.grounding import FactorGraph
from factorwise.types import Bools, Floats
from factorwise.validation import check_count, check_number

# Up to this many settings, walking one table over all variables is a fifth faster than a tree of smaller
# ones.
SMALL_JOINT = 512


@dataclass(frozen=True, slots=True)
class NetworkFit:
    """A Markov network fitted to counts.

    graph
        One factor per clique, in the order of the counts; ``-inf`` for settings that never occurred.
    log_likelihood
        Log-probability of all records under the fit.
    iterations
        Sweeps over the cliques; 0 for the closed form.
    residual
        Largest difference between a clique marginal of the model and the empirical one.
    converged
        Whether the residual is within the tolerance.
    """

    graph: FactorGraph
    log_likelihood: float
    iterations: int
    residual: float
    converged: bool


def fit_proportional(
    counts: CliqueCounts,
    *,
    tolerance: float = 1e-10,
    max_sweeps: int = 1_000,
    memory_limit: int = 2 * GIBIBYTE,
) -> NetworkFit:
    """Fit a network over any cliques by iterative proportional fitting.

    Marginals are exact. A variable that no clique names stays uniform. For a decomposable network the first
    sweep suffices and a second one confirms it; `fit_decomposable` needs none.

    tolerance
        Largest difference between clique marginals and empirical ones that counts as converged.
    max_sweeps
        Number of sweeps after which to stop with a `ConvergenceWarning`.
    memory_limit
        Bytes that tables may take; a network that needs more is refused before anything is allocated.

    Implements: mccallum17learning, "Solving Unconstrained Convex Optimization Problems" (the specialized
    algorithm named there).
    """
    check_number("tolerance", tolerance, above=0)
    check_count("max_sweeps", max_sweeps)
    walk = _Walk(counts, memory_limit)
    residual, threshold = walk.calibrate(), tolerance
    sweeps = 0
    while residual > tolerance and sweeps < max_sweeps:
        moved = walk.sweep()
        sweeps += 1
        if moved <= threshold or sweeps == max_sweeps:
            # What a sweep corrects differs from the error after it; computing it again also removes rounding
            # errors.
            residual = walk.calibrate()
            threshold /= 2
    if residual > tolerance:
        warn_caller(
            f"proportional fitting stopped after {sweeps} sweeps with clique marginals off by"
            f" {residual:.3g}, more than tolerance={tolerance}. Raise max_sweeps or tolerance; if"
            " counts are zero, add a little to each, because a fit on the boundary converges slowly;"
            " if the tables were not counted on the same records, no distribution may fit them all.",
            ConvergenceWarning,
        )
    potentials = walk.log_potentials()
    return NetworkFit(
        counts.graph(potentials),
        counts.log_likelihood(potentials, walk.log_partition),
        sweeps,
        residual,
        residual <= tolerance,
    )


def fit_decomposable(counts: CliqueCounts) -> NetworkFit:
    """Fit a decomposable network in closed form: clique marginals over separator marginals.

    Eliminating the variables one by one, each with all its neighbors in one clique, writes the fit as a
    product of conditionals: the count of the variable with its neighbors over the count of the neighbors.
    Other networks are refused with a `StructureError` that names the obstacle.
    """
    potentials = [np.zeros(table.shape) for table in counts.tables]
    members = [set(clique) for clique in counts.cliques]
    order = elimination_order(counts.graph(potentials))
    free = 0.0
    for variable, *neighbors in order.cliques:
        needed = {variable, *neighbors}
        host = next((index for index, clique in enumerate(members) if needed <= clique), None)
        if host is None and neighbors:
            raise _not_decomposable(counts, needed)
        if host is None:
            free += math.log(counts.cardinality[variable])
            continue
        clique, table = counts.cliques[host], counts.tables[host]
        axes = tuple(axis for axis, v in enumerate(clique) if v not in needed)
        joint = table.sum(axis=axes, keepdims=True)
        context = joint.sum(axis=clique.index(variable), keepdims=True)
        potentials[host] = potentials[host] + _log(_ratio(joint, context))
    return NetworkFit(counts.graph(potentials), counts.log_likelihood(potentials, free), 0, 0.0, True)


def _not_decomposable(counts: CliqueCounts, needed: set[int]) -> StructureError:
    cycle = _chordless_cycle(counts)
    if cycle:
        fault = f"variables {cycle} form a cycle without a chord"
    else:
        fault = f"variables {tuple(sorted(needed))} are connected pairwise, but no clique contains them all"
    return StructureError(
        f"the network is not decomposable: {fault}, so there is no closed form. Use fit_proportional,"
        " or add a clique that contains them all."
    )


def _chordless_cycle(counts: CliqueCounts) -> tuple[int, ...]:
    """Find a cycle of four or more variables without a chord; return an empty one if there is none."""
    adjacent: dict[int, set[int]] = {v: set() for v, size in enumerate(counts.cardinality) if size > 1}
    for clique in counts.cliques:
        members = {v for v in clique if v in adjacent}
        for v in members:
            adjacent[v] |= members - {v}
    for v, neighbors in adjacent.items():
        for start, end in combinations(sorted(neighbors), 2):
            if end in adjacent[start]:
                continue
            # A shortest path around v has no chord, and has none with v either.
            came: dict[int, int] = {start: start}
            queue = [start]
            for variable in queue:
                fresh = adjacent[variable] - came.keys() - (neighbors - {end}) - {v}
                came.update(dict.fromkeys(fresh, variable))
                queue.extend(sorted(fresh))
            if end in came:
                way = [end]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return (v, *reversed(way))
    return ()


class _Fit(NamedTuple):
    """Fit the marginals of one clique.

    rest
        Axes of the cluster that are not the clique's.
    wanted
        The empirical marginal, with an axis for each variable of the cluster.
    seen
        Where it is above zero.
    """

    clique: int
    cluster: int
    rest: tuple[int, ...]
    wanted: Floats
    seen: Bools


class _Move(NamedTuple):
    """Send a neighbor the change.

    edge
        Number of the separator.
    rest
        Axes of the source that are not the separator's.
    shape
        Shape of the separator with an axis for each variable of the target.
    """

    source: int
    target: int
    edge: int
    rest: tuple[int, ...]
    shape: tuple[int, ...]


class _Walk:
    """A distribution as tables over the clusters of a junction tree, and a round trip through them.

    The distribution is the product of the cluster tables over the product of the separator tables. The table
    of the current cluster is its marginal, so a clique inside it can be fitted there at once; a move to a
    neighbor multiplies the neighbor's table by the new over the old separator. So a sweep takes two moves per
    cluster instead of one inference per clique.
    """

    log_partition: float

    def __init__(self, counts: CliqueCounts, memory_limit: int) -> None:
        self._counts = counts
        self._sizes = counts.cardinality.tolist()
        self._log = [np.zeros(table.shape) for table in counts.tables]
        self._oracle = JunctionTree(memory_limit=memory_limit)
        order = elimination_order(counts.graph(self._log))
        # cluster tables, factors, buckets and beliefs, all of equal size
        order.require_memory(4, memory_limit)
        self._clusters, home, self._edges = _junction_tree(order, math.prod(self._sizes) <= SMALL_JOINT)
        self._inside: list[list[_Fit]] = [[] for _ in self._clusters]
        rank = {v: turn for turn, v in enumerate(home)}
        first = [min((rank[v] for v in clique if v in rank), default=-1) for clique in counts.cliques]
        # Backwards along the order, so that one sweep fits a decomposable network.
        for index in sorted(range(len(first)), key=lambda index: -first[index]):
            if first[index] >= 0:
                self._add(index, home[order.cliques[first[index]][0]])
        self._program = list(self._round_trip())

    def sweep(self) -> float:
        """Fit every clique once; return the largest difference before its fit."""
        largest = 0.0
        for step in self._program:
            if isinstance(step, _Fit):
                largest = max(largest, self._fit(step))
            else:
                self._move(step)
        return largest

    def calibrate(self) -> float:
        """Compute all tables again from the potentials; return the largest difference of a clique."""
        cliques = zip(self._counts.cliques, self.log_potentials(), strict=True)
        clusters = ((scope, np.zeros([self._sizes[v] for v in scope])) for scope in self._clusters)
        marginals = self._oracle.marginals(FactorGraph.build(self._sizes, [*cliques, *clusters]))
        self.log_partition = marginals.log_partition
        count = len(self._counts.cliques)
        self._tables = [np.array(table) for table in marginals.factor[count:]]
        self._separators = []
        for left, right in self._edges:
            scope = self._clusters[left]
            rest = tuple(axis for axis, v in enumerate(scope) if v not in self._clusters[right])
            self._separators.append(self._tables[left].sum(axis=rest))
        pairs = zip(self._counts.proportions(), marginals.factor[:count], strict=True)
        return max((float(np.abs(wanted - actual).max()) for wanted, actual in pairs), default=0.0)

    def log_potentials(self) -> list[Floats]:
        """Return the log-potentials of the cliques, with axes in the cliques' order."""
        tables = []
        for clique, aligned in zip(self._counts.cliques, self._log, strict=True):
            ascending = np.argsort(clique)
            table = aligned.reshape([self._sizes[clique[axis]] for axis in ascending])
            tables.append(table.transpose(np.argsort(ascending)))
        return tables

    def _add(self, index: int, cluster: int) -> None:
        clique, scope = self._counts.cliques[index], self._clusters[cluster]
        shape = [self._sizes[v] if v in clique else 1 for v in scope]
        wanted = self._counts.tables[index].transpose(np.argsort(clique)).reshape(shape) / self._counts.total
        rest = tuple(axis for axis, v in enumerate(scope) if v not in clique)
        self._inside[cluster].append(_Fit(index, cluster, rest, wanted, wanted > 0))
        self._log[index] = np.zeros(shape)

    def _round_trip(self) -> Iterator[_Fit | _Move]:
        """Visit each tree of clusters depth first, and fit the cliques of a cluster on arrival."""
        around: list[list[tuple[int, int]]] = [[] for _ in self._clusters]
        for edge, (left, right) in enumerate(self._edges):
            around[left].append((edge, right))
            around[right].append((edge, left))
        fresh = dict.fromkeys(range(len(self._clusters)))
        while fresh:
            root, _ = fresh.popitem()
            yield from self._inside[root]
            path = [(-1, root)]
            while path:
                back, current = path[-1]
                edge, neighbor = next((way for way in around[current] if way[1] in fresh), (-1, -1))
                if neighbor >= 0:
                    del fresh[neighbor]
                    path.append((edge, neighbor))
                    yield self._step(edge, current, neighbor)
                    yield from self._inside[neighbor]
                else:
                    path.pop()
                    if path:
                        yield self._step(back, current, path[-1][1])

    def _step(self, edge: int, source: int, target: int) -> _Move:
        left, arrived = self._clusters[source], self._clusters[target]
        rest = tuple(axis for axis, v in enumerate(left) if v not in arrived)
        shape = tuple(self._sizes[v] if v in left else 1 for v in arrived)
        return _Move(source, target, edge, rest, shape)

    def _fit(self, step: _Fit) -> float:
        table = self._tables[step.cluster]
        marginal = table.sum(axis=step.rest, keepdims=True)
        if bool((step.seen & (marginal == 0.0)).any()):
            raise CountsError(
                f"the counts of clique {self._counts.cliques[step.clique]} are above zero where the"
                " zeros of other cliques allow nothing: no distribution fits all these tables. Count"
                " all cliques on the same records."
            )
        ratio = _ratio(step.wanted, marginal)
        table *= ratio
        self._log[step.clique] += _log(ratio)
        return float(np.abs(step.wanted - marginal).max())

    def _move(self, step: _Move) -> None:
        new = self._tables[step.source].sum(axis=step.rest)
        ratio = _ratio(new, self._separators[step.edge])
        self._tables[step.target] *= ratio.reshape(step.shape)
        self._separators[step.edge] = new


def _junction_tree(
    order: EliminationOrder, whole: bool
) -> tuple[list[tuple[int, ...]], dict[int, int], list[tuple[int, int]]]:
    """Merge the cliques of an order that are contained in another.

    Return the clusters, each with its variables in ascending order; for each variable, in elimination order,
    the cluster that contains it and its remaining neighbors; and the pairs of neighboring clusters.

    whole
        Make one cluster of all variables.
    """
    index_of = {clique[0]: index for index, clique in enumerate(order.cliques)}
    if whole:
        return [tuple(sorted(index_of))] if index_of else [], dict.fromkeys(index_of, 0), []
    home = list(range(len(index_of)))
    parent = [index_of[clique[1]] if len(clique) > 1 else index for index, clique in enumerate(order.cliques)]
    for index, clique in enumerate(order.cliques):
        above = parent[index]
        if home[above] == above != index and len(order.cliques[above]) == len(clique) - 1:
            home[above] = home[index]
    kept = {index: number for number, index in enumerate(sorted(set(home)))}
    edges = {(home[index], home[above]) for index, above in enumerate(parent) if home[index] != home[above]}
    clusters = [tuple(sorted(order.cliques[index])) for index in kept]
    numbers = {variable: kept[home[index]] for variable, index in index_of.items()}
    return clusters, numbers, sorted((kept[left], kept[right]) for left, right in edges)


def _ratio(wanted: Floats, actual: Floats) -> Floats:
    """Divide, where zero over zero is zero."""
    return np.divide(
        wanted, actual, out=np.zeros(np.broadcast_shapes(wanted.shape, actual.shape)), where=actual > 0
    )


def _log(ratio: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(ratio))
