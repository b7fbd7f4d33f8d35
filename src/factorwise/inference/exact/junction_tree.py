"""Junction trees: all marginals of any graph whose treewidth fits the memory.

The inward pass is variable elimination along a good order, one clique per variable. The outward pass
multiplies the marginal of what a clique shares with the rest by the conditional of its own variable,
``bucket / message``: a probability, so it stays within range whatever the scores were. Where the tables of
all cliques exceed the memory, the passes go segment by segment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from factorwise.inference.base import Best, Marginals
from factorwise.inference.exact.elimination import (
    SumOut,
    WithinMemory,
    decode,
    draw,
    exact_marginals,
    graph_factors,
    label_factors,
    ranked,
)
from factorwise.inference.exact.orders import search_orders
from factorwise.inference.exact.passes import Plan, TreePasses, plan_passes
from factorwise.model.factor import Factor
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.types import Floats, Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class JunctionTree(WithinMemory):
    """Exact marginals, best settings and samples of any graph that is not too densely connected.

    memory_limit
        Bytes that tables may take; a graph that needs more is refused before anything is allocated.
    """

    def treewidth(self, graph: FactorGraph) -> int:
        """Return the width of the order that would be used, without allocating any table."""
        return self.plan(graph).order.treewidth

    def plan(self, graph: FactorGraph) -> Plan:
        """Return the order that would be used and the memory it needs, without allocating any table."""
        plans = []
        for order in search_orders(graph):
            plans.append(plan_passes(order, graph.cardinality, self.memory_limit))
            if plans[-1].needed <= self.memory_limit:
                return plans[-1]
        return min(plans, key=lambda plan: plan.needed)

    def log_partition(self, graph: FactorGraph) -> float:
        """Return the log of the sum of exp(score) over all settings."""
        return self._inward(graph, Factor.sum_out).total

    def marginals(self, graph: FactorGraph, *, plan: Plan | None = None) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy.

        plan
            What `plan` returned for a graph of the same structure, which saves the search for an order.
        """
        inward = self._inward(graph, Factor.sum_out, plan)
        cliques = inward.plan.order.cliques
        place = {clique[0]: index for index, clique in enumerate(cliques)}
        node = [np.ones(1)] * graph.n_variables
        factor = [np.ones(table.shape) for _, table in graph.factors()]
        hosted: list[list[int]] = [[] for _ in cliques]
        for number in range(graph.n_factors):
            positions = [place[v] for v in graph.scope_of(number) if v in place]
            if positions:
                hosted[min(positions)].append(number)
        for index, belief in _beliefs(inward, _conditional, np.multiply, np.sum):
            clique = cliques[index]
            node[clique[0]] = belief.reshape(len(belief), -1).sum(axis=1)
            for number in hosted[index]:
                several = [v for v in graph.scope_of(number) if v in place]
                rest = tuple(axis for axis, v in enumerate(clique) if v not in several)
                # The result has the axes of the clique's order; the factor may have them in another order.
                kept = [v for v in clique if v in several]
                joint = belief.sum(axis=rest).transpose([kept.index(v) for v in several])
                factor[number] = joint.reshape(factor[number].shape)
        return exact_marginals(graph, inward.total, node, factor)

    def best(self, graph: FactorGraph, *, plan: Plan | None = None) -> Best:
        """Return a most probable setting.

        plan
            What `plan` returned for a graph of the same structure, which saves the search for an order.
        """
        tables = self._inward(graph, Factor.max_out, plan).outward()
        values = decode(graph, (table.bucket for table in tables))
        return Best(values, graph.score(values))

    def k_best(self, graph: FactorGraph, k: int) -> list[Best]:
        """Return the ``k`` most probable settings, best first; fewer if fewer are possible."""
        plan = self.plan(graph)
        plan.require_memory(self.memory_limit)
        factors, cliques = graph_factors(graph), plan.order.cliques

        def solve(scores: Floats) -> tuple[Int64s, Floats]:
            inward = TreePasses(plan, [*factors, *label_factors(graph, scores)], Factor.max_out)
            peaks = [np.zeros(1)] * graph.n_variables
            for index, belief in _beliefs(inward, _difference, np.add, np.max):
                peaks[cliques[index][0]] = inward.total + belief.reshape(len(belief), -1).max(axis=1)
            inward = TreePasses(plan, [*factors, *label_factors(graph, scores)], Factor.max_out)
            return decode(graph, (table.bucket for table in inward.outward())), np.concatenate(peaks)

        return ranked(graph, solve, k)

    def sample(self, graph: FactorGraph, stream: Stream, size: int) -> Int64s:
        """Draw independent settings, int64[size, variables]."""
        tables = self._inward(graph, Factor.sum_out).outward()
        return draw(graph, (table.bucket for table in tables), stream, size)

    def _inward(self, graph: FactorGraph, out: SumOut, plan: Plan | None = None) -> TreePasses:
        chosen = self.plan(graph) if plan is None else plan
        chosen.require_memory(self.memory_limit)
        return TreePasses(chosen, [*graph_factors(graph), *label_factors(graph)], out)


def _beliefs(
    inward: TreePasses,
    conditional: Callable[[Floats, Floats], Floats],
    combine: Callable[..., Floats],
    reduce: Callable[..., Floats],
) -> Iterator[tuple[int, Floats]]:
    """Yield the table of each clique given everything, last clique first."""
    cliques = inward.plan.order.cliques
    arriving: dict[int, Floats] = {}
    for index, bucket, message in inward.outward():
        belief = conditional(bucket.table, message.table)
        if index in arriving:
            combine(belief, arriving.pop(index), out=belief)
        for sender in inward.senders[index]:
            shared = cliques[sender][1:]
            rest = tuple(axis for axis, v in enumerate(cliques[index]) if v not in shared)
            arriving[sender] = reduce(belief, axis=rest)
        yield index, belief


def _conditional(bucket: Floats, message: Floats) -> Floats:
    """Return the probability of the clique's own variable given the others; zero if they are impossible."""
    return np.asarray(np.exp(_difference(bucket, message), out=bucket))


def _difference(bucket: Floats, message: Floats) -> Floats:
    """Subtract the message from the bucket, whose table is overwritten."""
    bucket -= np.where(message == -np.inf, 0.0, message)
    return bucket
