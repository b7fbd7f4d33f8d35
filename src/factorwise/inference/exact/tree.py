"""Trees and forests: exact inference in two passes, in time linear in the tables.

A factor graph qualifies if it is a forest once every factor is merged into one that covers its scope: unary
factors into pairs, duplicates into one another. Factors may have any number of variables, as long as two of
them share at most one and no loop closes.

Sums run in the probability domain, scaled at each step; if scores are so large that a product might underflow
(more than about 230 nats for pairs), they are repeated in the log domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from factorwise.errors import StructureError
from factorwise.inference.base import Best, Marginals
from factorwise.inference.exact.elimination import exact_marginals, ranked, require_possible
from factorwise.kernels.graphs import trees
from factorwise.model.factor import log_sum_exp
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.types import Float64s, Floats, Int64s
from factorwise.validation import check_count
from factorwise.variables.sparse_rows import starts_of

_SMALLEST_PRODUCT = 1e-300  # products down to this keep their full precision


@dataclass(frozen=True, slots=True)
class TreeOracle:
    """Exact marginals, best settings and samples of a forest."""

    def log_partition(self, graph: FactorGraph) -> float:
        """Return the log of the sum of exp(score) over all settings."""
        return RootedForest(graph).log_partition()

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy."""
        return RootedForest(graph).marginals()

    def best(self, graph: FactorGraph) -> Best:
        """Return a most probable setting."""
        values = RootedForest(graph).best()
        return Best(values, graph.score(values))

    def k_best(self, graph: FactorGraph, k: int) -> list[Best]:
        """Return the ``k`` most probable settings, best first; fewer if fewer are possible."""
        return ranked(graph, RootedForest(graph).solve, k)

    def sample(self, graph: FactorGraph, stream: Stream, size: int) -> Int64s:
        """Draw independent settings, int64[size, variables]."""
        check_count("size", size, 0)
        return RootedForest(graph).sample(stream, size)


class RootedForest:
    """A graph as a rooted forest of cliques, ready for any number of passes.

    clique_of : int64[factors]
        The clique each factor is merged into, -1 for constants.
    place : int64[edges]
        For each variable of each factor, its edge in that clique.
    table : float64[entries of all cliques]
    """

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        host = np.empty(graph.n_factors, dtype=np.int64)
        touch_start, touch = graph.touching
        visited = np.full(graph.n_variables, -1, dtype=np.int64)
        trees.find_hosts(graph.scope_start, graph.scope, touch_start, touch, visited, host)
        hosts = np.flatnonzero(host == np.arange(graph.n_factors))
        self.clique_of = np.where(host >= 0, np.searchsorted(hosts, host), -1)
        self.forest = _rooted(graph, hosts)
        self.place = _places(graph, self.clique_of, self.forest)
        self.labels = np.zeros(len(self.forest.scope), dtype=np.int64)
        self.table = np.zeros(self.forest.table_start[-1])
        self._merge()
        constants = graph.table_start[host < 0]
        self.constant = require_possible(float(graph.tables[constants].sum()))

    def log_partition(self) -> float:
        """Return log Z from the inward pass alone."""
        scaled = self._inward_scaled()
        return self._inward_log(False, self._free())[2] if scaled is None else scaled[3]

    def marginals(self) -> Marginals:
        """Run both passes, in the probability domain if that is safe."""
        forest, joint = self.forest, np.empty_like(self.table)
        scaled = self._inward_scaled()
        if scaled is not None:
            weight, up, message, log_partition = scaled
            node = np.zeros_like(up)
            for root in self._root_slices():
                node[root] = up[root] / up[root].sum()
            trees.outward_scaled(forest, weight, self.labels, up, message, node, joint)
        else:
            up, message, log_partition = self._inward_log(False, self._free())
            log_node = np.full_like(up, -np.inf)
            for root in self._root_slices():
                log_node[root] = up[root] - log_sum_exp(up[root], (0,))
            trees.outward_log(forest, self.table, False, self.labels, up, message, log_node, joint)
            node, joint = np.exp(log_node), np.exp(joint)
        nodes = np.split(node, forest.node_start[1:-1])
        return exact_marginals(self.graph, log_partition, nodes, self._factor_marginals(joint))

    def best(self) -> Int64s:
        """Maximize inward, then choose labels outward."""
        return self._decoded(self._inward_log(True, self._free())[0])

    def solve(self, scores: Floats) -> tuple[Int64s, Floats]:
        """Return a best setting and all max-marginals, with ``scores`` added to the labels."""
        up, message, total = self._inward_log(True, scores)
        peaks, joint = np.full_like(up, -np.inf), np.empty_like(self.table)
        for root in self._root_slices():
            peaks[root] = up[root] + (total - up[root].max())
        trees.outward_log(self.forest, self.table, True, self.labels, up, message, peaks, joint)
        return self._decoded(up), peaks

    def sample(self, stream: Stream, size: int) -> Int64s:
        """Draw the roots, then outward."""
        up, message, _ = self._inward_log(False, self._free())
        values = np.zeros((size, self.graph.n_variables), dtype=np.int64)
        uniform = np.empty(size)
        for variable, root in zip(self.forest.roots, self._root_slices(), strict=True):
            ladder = np.exp(up[root] - up[root].max()).cumsum()
            trees.fill_uniforms(stream.state, uniform)
            values[:, variable] = np.searchsorted(ladder, uniform * ladder[-1], side="right")
        trees.sample(self.forest, self.table, stream.state, self.labels, up, message, values)
        return values

    def _inward_scaled(self) -> tuple[Floats, Floats, Floats, float] | None:
        """Return weights, ``up``, messages and log Z, or None if the probability domain is unsafe."""
        forest = self.forest
        arity = int(np.diff(forest.scope_start).max(initial=0))
        tiny = _SMALLEST_PRODUCT ** (1.0 / (arity + 1))  # of a table, its children and a message before it
        entries = np.diff(forest.table_start)
        shift = np.maximum.reduceat(self.table, forest.table_start[:-1]) if len(entries) else np.zeros(0)
        require_possible(float(shift.min(initial=0.0)))
        weight = np.exp(self.table - np.repeat(shift, entries))
        if np.count_nonzero(weight >= tiny) != np.count_nonzero(self.table > -np.inf):
            return None
        up, message, scale = self._free(), np.empty(forest.message_start[-1]), np.empty(len(entries))
        status = trees.inward_scaled(forest, weight, tiny, self.labels, up, message, scale)
        if status == trees.UNDERFLOW:
            return None
        require_possible(-np.inf if status == trees.IMPOSSIBLE else 0.0)
        at_roots = sum(float(np.log(up[root].sum())) for root in self._root_slices())
        return weight, up, message, float(shift.sum() + scale.sum()) + at_roots + self.constant

    def _inward_log(self, maximize: bool, scores: Floats) -> tuple[Floats, Floats, float]:
        """Return ``up``, the messages, and log Z or the best score."""
        up, message = scores.copy(), np.empty(self.forest.message_start[-1])
        trees.inward_log(self.forest, self.table, maximize, self.labels, up, message)
        total = self.constant
        for root in self._root_slices():
            total += float(up[root].max() if maximize else log_sum_exp(up[root], (0,)))
        return up, message, require_possible(total)

    def _decoded(self, up: Floats) -> Int64s:
        values = np.zeros(self.graph.n_variables, dtype=np.int64)
        for variable, root in zip(self.forest.roots, self._root_slices(), strict=True):
            values[variable] = up[root].argmax()
        trees.decode(self.forest, self.table, self.labels, up, values)
        return values

    def _factor_marginals(self, joint: Floats) -> list[Floats]:
        sizes = self.graph.cardinality.tolist()
        scopes = map(self.graph.scope_of, range(self.graph.n_factors))
        shapes = [[sizes[v] for v in scope] for scope in scopes]
        start = np.cumsum([0, *map(math.prod, shapes)], dtype=np.int64)
        out = np.zeros(start[-1])
        trees.share_joints(
            self.forest, self.clique_of, self.graph.scope_start, self.place, start, joint, self.labels, out
        )
        pieces = np.split(out, start[1:-1]) if shapes else []
        return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]

    def _merge(self) -> None:
        graph = self.graph
        trees.merge_tables(
            self.forest,
            self.clique_of,
            graph.scope_start,
            self.place,
            graph.table_start,
            graph.tables,
            self.labels,
            self.table,
        )

    def _free(self) -> Float64s:
        return np.zeros(self.forest.node_start[-1])

    def _root_slices(self) -> list[slice]:
        start = self.forest.node_start
        return [slice(start[root], start[root + 1]) for root in self.forest.roots]


def _rooted(graph: FactorGraph, hosts: Int64s) -> trees.Forest:
    """Orient the cliques (the factors ``hosts``) away from the lowest variable of each tree."""
    arity = np.diff(graph.scope_start)[hosts]
    scope_start = starts_of(arity)
    edges = np.arange(scope_start[-1]) + np.repeat(graph.scope_start[hosts] - scope_start[:-1], arity)
    scope = graph.scope[edges]
    touch = np.repeat(np.arange(len(hosts)), arity)[np.argsort(scope, kind="stable")]
    touch_start = starts_of(np.bincount(scope, minlength=graph.n_variables))
    queue, roots = np.empty((2, graph.n_variables), dtype=np.int64)
    above = np.full(graph.n_variables, -2, dtype=np.int64)
    parent, order = np.full(len(hosts), -2, dtype=np.int64), np.empty(len(hosts), dtype=np.int64)
    found, edge, clique = trees.orient(
        scope_start, scope, touch_start, touch, queue, above, parent, order, roots
    )
    if edge >= 0:
        loop = _loop(int(scope[edge]), int(scope[parent[clique]]), above, scope[parent])
        factor = int(hosts[clique])
        raise StructureError(
            f"the graph is not a tree: factor {factor} over variables {graph.scope_of(factor)} closes the"
            f" loop {' - '.join(map(str, loop))}. Use JunctionTree(), which takes loops."
        )
    node_start = starts_of(graph.cardinality)
    size = graph.cardinality[scope]
    entries = np.multiply.reduceat(size, scope_start[:-1]) if len(hosts) else arity
    return trees.Forest(
        node_start=node_start,
        roots=roots[:found],
        scope_start=scope_start,
        scope=scope,
        begin=node_start[scope],
        size=size,
        table_start=starts_of(entries),
        order=order,
        parent=parent,
        message_start=starts_of(size[parent]),
    )


def _places(graph: FactorGraph, clique_of: Int64s, forest: trees.Forest) -> Int64s:
    """Find for each variable of each factor its edge in the factor's clique."""
    owner = np.repeat(np.arange(len(forest.order)), np.diff(forest.scope_start))
    known = owner * graph.n_variables + forest.scope
    sorting = np.argsort(known)
    wanted = np.repeat(clique_of, np.diff(graph.scope_start)) * graph.n_variables + graph.scope
    return np.asarray(sorting[np.searchsorted(known[sorting], wanted)], dtype=np.int64)


def _loop(start: int, end: int, above: Int64s, parent_variable: Int64s) -> list[int]:
    """List the variables from ``start`` to ``end`` along the tree built so far, and ``start`` again."""
    lines = []
    for variable in (start, end):
        line = [variable]
        while above[line[-1]] >= 0:
            line.append(int(parent_variable[above[line[-1]]]))
        lines.append(line)
    meet = next(variable for variable in lines[0] if variable in lines[1])
    left, right = (line[: line.index(meet)] for line in lines)
    # Two branches of one clique meet in the clique, before its parent.
    top = [] if left and right and above[left[-1]] == above[right[-1]] else [meet]
    return [*left, *top, *reversed(right), start]
