"""Sum-product messages as plain probabilities: products of tables and of the other messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats
from reference.messages import joint_factors, run_sweeps


def run_pairs(graph: FactorGraph, sweeps: int, *, damping: float = 0.0) -> dict[tuple[int, int], Floats]:
    """Messages after ``sweeps`` of all at once, each summing to one, under ``(factor, variable)``."""
    factors = joint_factors(graph)
    messages = {(index, v): _uniform(graph, v) for index, (scope, _) in enumerate(factors) for v in scope}
    for _ in range(sweeps):
        fresh = {}
        for index, (scope, table) in enumerate(factors):
            for place, target in enumerate(scope):
                source = scope[1 - place]
                cavity = np.exp(_unary(graph, source))
                for (other, variable), message in messages.items():
                    if variable == source and other != index:
                        cavity = cavity * message
                potentials = np.exp(table)
                sent = cavity @ potentials if place == 1 else potentials @ cavity
                mixed = messages[index, target] ** damping * (sent / sent.sum()) ** (1.0 - damping)
                fresh[index, target] = mixed / mixed.sum()
        messages = fresh
    return messages


def run_binary(graph: FactorGraph, sweeps: int, *, damping: float = 0.0) -> dict[tuple[int, int], float]:
    """Ratios of label 1 to label 0 of the same messages."""
    return {
        key: float(message[1] / message[0])
        for key, message in run_pairs(graph, sweeps, damping=damping).items()
    }


def run_binary_in_order(
    graph: FactorGraph, order: Sequence[int], sweeps: int, *, damping: float = 0.0
) -> dict[tuple[int, int], float]:
    """The ratios where each factor in turn uses the newest messages, through ``order`` and back first."""
    messages, _ = run_sweeps(graph, sweeps, order=order, damping=damping)
    return {key: float(np.exp(message[1] - message[0])) for key, message in messages.items()}


def _uniform(graph: FactorGraph, variable: int) -> Floats:
    size = int(graph.cardinality[variable])
    return np.full(size, 1.0 / size)


def _unary(graph: FactorGraph, variable: int) -> Floats:
    total: Floats = np.zeros(int(graph.cardinality[variable]))
    for scope, table in graph.factors():
        if scope == (variable,):
            total = total + table
    return total
