"""Search for a best setting by repeatedly solving large parts exactly.

Each round holds a random cutset at the best setting so far, and sets everything else to its exact optimum
given that. The score never decreases. Hard zeros count as a penalty larger than all other scores together, so
a setting that violates fewer of them is always better, and one that violates none stays so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorwise.inference.exact.elimination import EliminationOrder
from factorwise.inference.exact.junction_tree import JunctionTree
from factorwise.inference.exact.orders import order_along
from factorwise.inference.message_passing.belief_propagation import score_of
from factorwise.inference.oracle.cutsets import hold, plan_with_cutset
from factorwise.model.grounding import FactorGraph

#: Rounds without a better setting after which the search restarts elsewhere, and how often it restarts.
PATIENCE = 8
RESTARTS = 12


def soften(graph: FactorGraph) -> FactorGraph:
    """Replace hard zeros by a penalty that is larger than all differences of the other scores together."""
    if not bool(np.isneginf(graph.tables).any()):
        return graph
    reach = 1.0
    for _, table in graph.factors():
        finite = table[table > -np.inf]
        reach += float(finite.max() - finite.min()) if finite.size else 0.0
    return replace(graph, tables=np.where(np.isneginf(graph.tables), -reach, graph.tables))


def search_best(
    graph: FactorGraph,
    starts: Sequence[NDArray[np.int64]],
    *,
    largest: int,
    memory: int,
    deadline: float,
    bound: float,
    seed: int,
) -> tuple[NDArray[np.int64], int]:
    """Return the best setting that rounds from the best of ``starts`` reach, and the number of rounds.

    largest
        Entries that a table may have while the rest is solved.
    memory
        Bytes that tables may take.
    deadline
        Value of ``time.perf_counter()`` at which to end.
    bound
        A score that no setting exceeds; the search ends when it is reached.
    """
    soft = soften(graph)
    rng = np.random.default_rng(seed)
    *waiting, values = sorted(starts, key=lambda start: score_of(soft, start))
    best = values
    best_score = score = score_of(soft, values)
    enough = bound - 1e-9 * max(1.0, abs(bound))
    neighbors = _neighbors(graph)
    rounds = idle = restarts = 0
    while best_score < enough and restarts <= RESTARTS and time.perf_counter() < deadline:
        order = order_along(graph, _sweep_from(neighbors, int(rng.integers(graph.n_variables)), rng))
        candidate = _solve_part(soft, values, order, largest, memory, rng)
        reached = score_of(soft, candidate)
        idle = 0 if reached > score + 1e-12 * max(1.0, abs(score)) else idle + 1
        if reached >= score:
            values, score = candidate, reached
        rounds += 1
        if score > best_score:
            best, best_score, restarts = values, score, 0
        if idle == PATIENCE:
            values = waiting.pop() if waiting else _changed(best, graph, neighbors, rng)
            score, idle, restarts = score_of(soft, values), 0, restarts + 1
    return best, rounds


def _changed(
    values: NDArray[np.int64], graph: FactorGraph, neighbors: list[list[int]], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a setting with random labels in a region of random size, from a few variables to all."""
    region = _sweep_from(neighbors, int(rng.integers(graph.n_variables)), rng)
    region = region[: int(len(region) * rng.uniform(0.05, 1.0)) + 1]
    changed = values.copy()
    changed[region] = rng.integers(0, graph.cardinality[region])
    return changed


def _solve_part(
    soft: FactorGraph,
    values: NDArray[np.int64],
    order: EliminationOrder,
    largest: int,
    memory: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Hold a random cutset at its labels and return the optimum of the rest with it."""
    cutset, plan = plan_with_cutset(order, soft, largest, memory, rng)
    labels = {v: int(values[v]) for v in cutset}
    solution = JunctionTree(memory_limit=max(memory, plan.needed)).best(hold(soft, labels), plan=plan).values
    solution[cutset] = values[cutset]
    return solution


def _neighbors(graph: FactorGraph) -> list[list[int]]:
    """Return the variables that share a factor with each variable."""
    near: list[set[int]] = [set() for _ in range(graph.n_variables)]
    for factor in range(graph.n_factors):
        scope = graph.scope_of(factor)
        for v in scope:
            near[v].update(scope)
    return [sorted(known - {v}) for v, known in enumerate(near)]


def _sweep_from(neighbors: list[list[int]], root: int, rng: np.random.Generator) -> list[int]:
    """Return all variables, those near ``root`` first."""
    sequence: list[int] = []
    reached: set[int] = set()
    for start in (root, *rng.permutation(len(neighbors)).tolist()):  # the others begin other components
        if start in reached:
            continue
        reached.add(start)
        queue = [start]
        for v in queue:
            fresh = [w for w in neighbors[v] if w not in reached]
            reached.update(fresh)
            queue += fresh
        sequence += queue
    return sequence
