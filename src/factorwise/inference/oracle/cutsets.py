"""Cutsets: variables that are held fixed, so that exact inference on the rest fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from factorwise.errors import ImpossibleError
from factorwise.inference.base import Marginals
from factorwise.inference.exact.elimination import EliminationOrder
from factorwise.inference.exact.junction_tree import JunctionTree
from factorwise.inference.exact.orders import order_along
from factorwise.inference.exact.passes import Plan, plan_passes
from factorwise.model.grounding import FactorGraph


def find_cutset(
    order: EliminationOrder,
    graph: FactorGraph,
    largest: int,
    rng: np.random.Generator | None = None,
) -> tuple[list[int], EliminationOrder]:
    """Return variables without which no clique of an order has a table of more than ``largest`` entries.

    It repeatedly takes the variable that occurs in most tables that are too large. The rest of the order is
    returned, too.

    rng
        Chooses among the variables with odds by these counts, for a different cutset each time.
    """
    sizes = graph.cardinality.tolist()
    entries = list(order.entries)
    at: dict[int, list[int]] = {}
    for number, clique in enumerate(order.cliques):
        if entries[number] > largest:
            for v in clique:
                at.setdefault(v, []).append(number)
    counts = Counter({v: len(numbers) for v, numbers in at.items()})
    large = {number for number, size in enumerate(entries) if size > largest}
    cutset: list[int] = []
    while large:
        candidates = [v for v, count in counts.items() if count > 0]
        weights = np.array([counts[v] for v in candidates], dtype=np.float64)
        # squares favor variables in many tables, and leave the others a chance
        odds = weights**2 / (weights**2).sum()
        position = int(weights.argmax()) if rng is None else int(rng.choice(len(odds), p=odds))
        chosen = candidates[position]
        cutset.append(chosen)
        counts[chosen] = 0
        for number in at[chosen]:
            entries[number] //= sizes[chosen]
            if number in large and entries[number] <= largest:
                large.discard(number)
                for v in order.cliques[number]:
                    counts[v] -= 1
    held = set(cutset)
    return cutset, order_along(graph, (clique[0] for clique in order.cliques if clique[0] not in held))


def hold(graph: FactorGraph, labels: Mapping[int, int]) -> FactorGraph:
    """Return the graph with variables held at one label each, which is the only label they keep."""
    sizes = graph.cardinality.copy()
    sizes[list(labels)] = 1
    factors = []
    for scope, table in graph.factors():
        if any(v in labels for v in scope):
            index = tuple(slice(labels[v], labels[v] + 1) if v in labels else slice(None) for v in scope)
            factors.append((scope, table[index]))
        else:
            factors.append((scope, table))
    return FactorGraph.build(sizes, factors)


def plan_with_cutset(
    order: EliminationOrder,
    graph: FactorGraph,
    largest: int,
    memory: int,
    rng: np.random.Generator | None = None,
) -> tuple[list[int], Plan]:
    """Return a cutset and a plan of exact inference on the rest that fits the memory.

    largest
        Entries that a table may have; if that does not fit ``memory`` bytes, it is reduced and more variables
        are held.
    """
    while True:
        cutset, rest = find_cutset(order, graph, largest, rng)
        sizes = graph.cardinality.copy()
        sizes[cutset] = 1
        plan = plan_passes(rest, sizes, memory)
        if plan.needed <= memory or largest <= 1:
            return cutset, plan
        largest //= 2


def condition_on_cutset(graph: FactorGraph, cutset: list[int], plan: Plan, memory: int) -> Marginals:
    """Return exact marginals as a mixture over all settings of the cutset."""
    oracle = JunctionTree(memory_limit=memory)
    sizes = [int(graph.cardinality[v]) for v in cutset]
    node = [np.zeros(size) for size in graph.cardinality.tolist()]
    factor = [np.zeros(table.shape) for _, table in graph.factors()]
    log_total = -np.inf
    expected = 0.0  # mean over settings of the entropy within a setting minus the log of its weight
    for setting in np.ndindex(*sizes):
        labels = dict(zip(cutset, setting, strict=True))
        part = _possible_marginals(oracle, hold(graph, labels), plan)
        if part is None:
            continue
        larger = float(np.logaddexp(log_total, part.log_partition))
        old, new = np.exp(log_total - larger), np.exp(part.log_partition - larger)
        for v, table in enumerate(part.node):
            node[v] *= old
            node[v][slice(labels[v], labels[v] + 1) if v in labels else slice(None)] += new * table
        for number, table in enumerate(part.factor):
            scope = graph.scope_of(number)
            index = tuple(slice(labels[v], labels[v] + 1) if v in labels else slice(None) for v in scope)
            factor[number] *= old
            factor[number][index] += new * table
        expected = old * expected + new * (part.entropy - part.log_partition)
        log_total = larger
    return Marginals(log_total, tuple(node), tuple(factor), max(0.0, expected + log_total))


def _possible_marginals(oracle: JunctionTree, graph: FactorGraph, plan: Plan) -> Marginals | None:
    """Return the marginals, or None if the graph has no possible setting."""
    try:
        return oracle.marginals(graph, plan=plan)
    except ImpossibleError:
        return None
