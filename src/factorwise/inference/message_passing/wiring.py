"""The flat arrays on which message passing runs, and the way back to results.

Constant factors are added, unary factors are folded into one potential per variable, and factors of two or
more variables are wired to their edges, all with array operations over the whole graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from factorwise.errors import ImpossibleError
from factorwise.kernels.graphs.forests import breadth_first
from factorwise.kernels.graphs.messages import MessageWorkspace, Wiring
from factorwise.model.grounding import FactorGraph
from factorwise.types import Float64s, Floats, Int64s
from factorwise.variables.sparse_rows import starts_of

# Largest span of logarithms at one variable or in one table for which the probability domain is used:
# the product of two such numbers still fits a double (its logarithms go from -708 to 709).
SAFE_SPAN = 300.0


@dataclass(frozen=True, slots=True)
class Wired:
    """A factor graph ready for messages.

    wiring
        What the kernels read.
    factor : int64[wired factors]
        Number in the graph of each factor of two or more variables.
    entry_start : int64[wired factors + 1]
        Where the joint beliefs of each wired factor begin in an array of all.
    constant
        Sum of the factors without variables.
    forest
        Whether variables and wired factors form no cycle.
    """

    graph: FactorGraph
    wiring: Wiring
    factor: Int64s
    entry_start: Int64s
    constant: float
    forest: bool

    def weighted(self, appearance: Float64s) -> Wired:
        """Return the same graph with other weights of the factors' entropies."""
        return replace(self, wiring=self.wiring._replace(appearance=appearance))

    def workspace(self) -> MessageWorkspace:
        """Allocate messages of zero and all other arrays of a run."""
        wiring = self.wiring
        size = int(wiring.message_start[-1])
        arity = int(np.diff(wiring.scope_start).max(initial=0))
        return MessageWorkspace(
            np.zeros(size),
            np.zeros(size),
            np.zeros(size),
            wiring.unary.copy(),
            np.zeros(arity, dtype=np.int64),
        )

    def order(self) -> Int64s:
        """Return the factors in the order of a sequential schedule.

        The order is breadth-first on a forest, which makes one sweep exact; elsewhere it is that of the
        factors, because a walk through memory in order is several times faster.
        """
        return self.wiring.walk if self.forest else np.arange(len(self.factor))

    def entries(self) -> Int64s:
        """Return the position in ``tables`` of each entry of the wired factors."""
        return ragged(self.wiring.table_start, np.diff(self.entry_start))

    def check_possible(self, variable: int) -> None:
        """Raise `ImpossibleError` if ``variable`` names a variable that has no possible label left."""
        if variable < 0:
            return
        start, owners = self.graph.touching
        at = owners[start[variable] : start[variable + 1]].tolist()
        raise ImpossibleError(
            f"every label of variable {variable} is ruled out, so the graph gives probability zero to every"
            f" setting: relax a -inf in one of the factors near it (those that touch it: {at[:8]})."
        )

    def split_labels(self, beliefs: Float64s) -> tuple[Floats, ...]:
        """Return one array per variable."""
        sizes = self.graph.cardinality
        return tuple(_pieces(beliefs, np.arange(len(sizes) + 1), sizes))

    def split_factors(self, beliefs: Float64s, node: tuple[Floats, ...]) -> tuple[Floats, ...]:
        """Return one array per factor of the graph, shaped by its scope.

        Unary factors share their variable's.
        """
        graph, wiring = self.graph, self.wiring
        pool = [
            *_pieces(beliefs, wiring.scope_start, graph.cardinality[wiring.scope]),
            *node,
            np.ones(()),
        ]
        single = np.flatnonzero(np.diff(graph.scope_start) == 1)
        position = np.full(graph.n_factors, len(pool) - 1)
        position[self.factor] = np.arange(len(self.factor))
        position[single] = len(self.factor) + graph.scope[graph.scope_start[single]]
        return tuple(map(pool.__getitem__, position.tolist()))


def wire(graph: FactorGraph) -> Wired:
    """Fold and wire ``graph``; every appearance is one."""
    arity = np.diff(graph.scope_start)
    label_start = starts_of(graph.cardinality)
    constant = float(graph.tables[graph.table_start[arity == 0]].sum())
    if constant == -np.inf:
        raise ImpossibleError(
            "a factor without variables is -inf, so the graph gives probability zero to every setting:"
            " remove that factor or make it finite."
        )

    unary = np.zeros(label_start[-1])
    single = np.flatnonzero(arity == 1)
    alone = graph.scope[graph.scope_start[single]]
    sizes = graph.cardinality[alone]
    np.add.at(
        unary, ragged(label_start[alone], sizes), graph.tables[ragged(graph.table_start[single], sizes)]
    )

    factor = np.flatnonzero(arity >= 2)
    scope = graph.scope[np.repeat(arity >= 2, arity)]
    scope_start = starts_of(arity[factor])
    owner = np.repeat(np.arange(len(factor)), arity[factor])
    touch = np.argsort(scope, kind="stable")
    touch_start = starts_of(np.bincount(scope, minlength=graph.n_variables))
    walk = np.zeros(len(factor), dtype=np.int64)
    forest = breadth_first(
        scope_start,
        scope,
        owner,
        touch_start,
        touch,
        walk,
        np.zeros(graph.n_variables, dtype=np.int64),
        np.zeros(graph.n_variables, dtype=np.bool_),
        np.zeros(len(factor), dtype=np.bool_),
    )
    sizes = graph.cardinality[scope]
    entries = np.multiply.reduceat(sizes, scope_start[:-1]) if len(factor) else sizes
    wiring = Wiring(
        graph.cardinality,
        label_start,
        unary,
        scope_start,
        scope,
        graph.table_start[factor],
        graph.tables,
        starts_of(sizes),
        owner,
        touch_start,
        touch,
        np.ones(len(factor)),
        walk,
    )
    return Wired(graph, wiring, factor, starts_of(entries), constant, bool(forest))


def ragged(first: Int64s, sizes: Int64s) -> Int64s:
    """Return ``first[i], ..., first[i] + sizes[i] - 1`` for each i, concatenated."""
    offsets = starts_of(sizes)
    return np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], sizes)


def spans(values: Float64s, offsets: Int64s) -> Float64s:
    """Return largest minus smallest value of each piece; infinite if it contains a hard zero."""
    if len(offsets) == 1:
        return np.zeros(0)
    low = np.minimum.reduceat(values, offsets[:-1])
    high = np.maximum.reduceat(values, offsets[:-1])
    return np.where(np.isneginf(low), np.inf, high - np.where(np.isneginf(low), 0.0, low))


def _pieces(flat: Float64s, scope_start: Int64s, sizes: Int64s) -> Iterator[Floats]:
    """Cut ``flat`` into shaped views, one run of equal shapes at a time."""
    arity = np.diff(scope_start)
    begin, offset = 0, 0
    while begin < len(arity):
        width = int(arity[begin])
        changes = np.flatnonzero(arity[begin:] != width)
        end = begin + int(changes[0]) if len(changes) else len(arity)
        rows = sizes[scope_start[begin] : scope_start[end]].reshape(-1, width)
        borders = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
        for first, last in zip([0, *borders.tolist()], [*borders.tolist(), len(rows)], strict=True):
            shape = rows[first].tolist()
            count = (last - first) * int(np.prod(shape))
            yield from flat[offset : offset + count].reshape(last - first, *shape)
            offset += count
        begin = end
