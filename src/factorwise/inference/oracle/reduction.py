"""Remove labels that hard zeros rule out, before any method runs.

A label is ruled out if some factor forbids it together with every setting of its other variables that is
still possible. Removing all such labels does not change any probability. Observed variables keep a single
label and then cost nothing; pedigrees and other networks with hard zeros shrink a great deal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import ImpossibleError
from factorwise.inference.base import Marginals
from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats


@dataclass(frozen=True, slots=True)
class Reduced:
    """A factor graph without impossible labels, and the way back.

    original
        The graph with all labels.
    graph
        The same variables and factors over the remaining labels.
    kept
        The original numbers of the remaining labels of each variable.
    """

    original: FactorGraph
    graph: FactorGraph
    kept: tuple[NDArray[np.int64], ...]

    def restore_values(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a setting in the label numbers of the original graph."""
        labels = zip(self.kept, values.tolist(), strict=True)
        return np.array([kept[value] for kept, value in labels], dtype=np.int64)

    def restore_marginals(self, marginals: Marginals) -> Marginals:
        """Return the same probabilities over all labels, zero where a label is impossible."""
        if self.graph is self.original:
            return marginals
        sizes = self.original.cardinality.tolist()
        node = tuple(
            _spread(table, (kept,), (sizes[v],))
            for v, (table, kept) in enumerate(zip(marginals.node, self.kept, strict=True))
        )
        factor = []
        for number, table in enumerate(marginals.factor):
            scope = self.original.scope_of(number)
            factor.append(_spread(table, tuple(self.kept[v] for v in scope), tuple(sizes[v] for v in scope)))
        return replace(marginals, node=node, factor=tuple(factor))


def reduce_labels(graph: FactorGraph) -> Reduced:
    """Remove the labels that hard zeros rule out; raise `ImpossibleError` if a variable has none left."""
    if not bool(np.isneginf(graph.tables).any()):
        return Reduced(graph, graph, tuple(np.arange(size) for size in graph.cardinality.tolist()))
    allowed = [np.ones(size, dtype=np.bool_) for size in graph.cardinality.tolist()]
    hard = {
        number: (scope, table > -np.inf)
        for number, (scope, table) in enumerate(graph.factors())
        if scope and bool(np.isneginf(table).any())
    }
    start, touching = graph.touching
    waiting = dict.fromkeys(hard)
    while waiting:
        number, _ = waiting.popitem()
        scope, possible = hard[number]
        possible = possible[np.ix_(*(allowed[v] for v in scope))]
        for axis, variable in enumerate(scope):
            supported = possible.any(axis=tuple(other for other in range(len(scope)) if other != axis))
            if bool(supported.all()):
                continue
            if not bool(supported.any()):
                raise ImpossibleError(
                    f"every label of variable {variable} is ruled out by the hard zeros of factor {number}"
                    " and others near it, so every setting has probability zero: relax a -inf."
                )
            allowed[variable][np.flatnonzero(allowed[variable])[~supported]] = False
            possible = np.compress(supported, possible, axis=axis)
            others = touching[start[variable] : start[variable + 1]].tolist()
            waiting.update(dict.fromkeys(other for other in others if other in hard and other != number))
    kept = tuple(np.flatnonzero(labels) for labels in allowed)
    sizes = np.array([len(labels) for labels in kept], dtype=np.int64)
    if bool((sizes == graph.cardinality).all()):
        return Reduced(graph, graph, kept)
    factors = (
        (scope, table[np.ix_(*(kept[v] for v in scope))] if scope else table)
        for scope, table in graph.factors()
    )
    return Reduced(graph, FactorGraph.build(sizes, factors), kept)


def _spread(table: Floats, kept: tuple[NDArray[np.int64], ...], shape: tuple[int, ...]) -> Floats:
    """Write a table over the remaining labels into an array of zeros over all labels."""
    if table.shape == shape:
        return table
    whole = np.zeros(shape)
    whole[np.ix_(*kept)] = table
    return whole
