"""Junction trees: all marginals of any graph whose treewidth the memory can bear.

The inward pass is variable elimination along a min-fill order, one clique per variable. The outward pass
multiplies the marginal of what a clique shares with the rest by the conditional of its own variable,
``bucket / message``: a probability, so it stays within range whatever the scores were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.inference.base import Best, Marginals
from factorwise.inference.exact.elimination import (
    GIBIBYTE,
    Buckets,
    EliminationOrder,
    collect,
    decode,
    draw,
    elimination_order,
    exact_marginals,
    graph_factors,
    label_factors,
    ranked,
)
from factorwise.model.factor import Factor
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.types import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree:
    """Exact marginals, best settings and samples of any graph that is not too densely connected.

    memory_limit
        Bytes that tables may take; a graph that needs more is refused before anything is allocated.
    """

    memory_limit: int = 2 * GIBIBYTE

    def __post_init__(self) -> None:
        require(self.memory_limit > 0, "memory_limit", self.memory_limit, "greater than zero")

    def treewidth(self, graph: FactorGraph) -> int:
        """Return the width of the order that would be used, without allocating any table."""
        return elimination_order(graph).treewidth

    def log_partition(self, graph: FactorGraph) -> float:
        """Return the log of the sum of exp(score) over all settings."""
        return self._summed(graph, self._order(graph)).total

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy."""
        order = self._order(graph)
        inward = self._summed(graph, order)
        beliefs = _distribute(order, inward, _conditional, np.multiply, np.sum)
        place = {clique[0]: index for index, clique in enumerate(order.cliques)}
        node = [np.ones(1)] * graph.n_variables
        for clique, belief in zip(order.cliques, beliefs, strict=True):
            node[clique[0]] = belief.reshape(len(belief), -1).sum(axis=1)
        factor = []
        sizes = graph.cardinality.tolist()
        for scope in map(graph.scope_of, range(graph.n_factors)):
            shape = [sizes[v] for v in scope]
            several = [v for v in scope if v in place]
            if not several:
                factor.append(np.ones(shape))
                continue
            index = min(place[v] for v in several)
            clique = order.cliques[index]
            rest = tuple(axis for axis, v in enumerate(clique) if v not in several)
            # What is left has the axes of the clique's order; the factor may name them in another.
            kept = [v for v in clique if v in several]
            joint = beliefs[index].sum(axis=rest).transpose([kept.index(v) for v in several])
            factor.append(joint.reshape(shape))
        return exact_marginals(graph, inward.total, node, factor)

    def best(self, graph: FactorGraph) -> Best:
        """Return a most probable setting."""
        order = self._order(graph)
        factors = [*graph_factors(graph), *label_factors(graph)]
        values = decode(graph, collect(factors, order, Factor.max_out).buckets)
        return Best(values, graph.score(values))

    def k_best(self, graph: FactorGraph, k: int) -> list[Best]:
        """Return the ``k`` most probable settings, best first; fewer if fewer are possible."""
        order, factors = self._order(graph), graph_factors(graph)

        def solve(scores: Floats) -> tuple[NDArray[np.int64], Floats]:
            inward = collect([*factors, *label_factors(graph, scores)], order, Factor.max_out)
            beliefs = _distribute(order, inward, _difference, np.add, np.max)
            peaks = [np.zeros(1)] * graph.n_variables
            for clique, belief in zip(order.cliques, beliefs, strict=True):
                peaks[clique[0]] = inward.total + belief.reshape(len(belief), -1).max(axis=1)
            return decode(graph, inward.buckets), np.concatenate(peaks)

        return ranked(graph, solve, k)

    def sample(self, graph: FactorGraph, stream: Stream, size: int) -> NDArray[np.int64]:
        """Draw independent settings, int64[size, variables]."""
        return draw(graph, self._summed(graph, self._order(graph)).buckets, stream, size)

    def _order(self, graph: FactorGraph) -> EliminationOrder:
        order = elimination_order(graph)
        order.require_memory(2, self.memory_limit)  # buckets and beliefs
        return order

    def _summed(self, graph: FactorGraph, order: EliminationOrder) -> Buckets:
        return collect([*graph_factors(graph), *label_factors(graph)], order, Factor.sum_out)


def _distribute(
    order: EliminationOrder,
    inward: Buckets,
    conditional: Callable[[Floats, Floats], Floats],
    combine: Callable[[Floats, Floats], Floats],
    reduce: Callable[..., Floats],
) -> list[Floats]:
    """Return the table of each clique given everything, last clique first."""
    place = {clique[0]: index for index, clique in enumerate(order.cliques)}
    beliefs: list[Floats] = [np.zeros(0)] * len(order.cliques)
    for index in reversed(range(len(order.cliques))):
        bucket, message = inward.buckets[index], inward.messages[index]
        belief = conditional(bucket.table, message.table)
        if message.scope:
            next_clique = place[message.scope[0]]
            scope = order.cliques[next_clique]
            rest = tuple(axis for axis, v in enumerate(scope) if v not in message.scope)
            belief = combine(belief, reduce(beliefs[next_clique], axis=rest))
        beliefs[index] = belief
    return beliefs


def _conditional(bucket: Floats, message: Floats) -> Floats:
    """Probability of the clique's own variable given the others, zero where they are impossible."""
    return np.asarray(np.exp(_difference(bucket, message)))


def _difference(bucket: Floats, message: Floats) -> Floats:
    return np.asarray(bucket - np.where(message == -np.inf, 0.0, message))
