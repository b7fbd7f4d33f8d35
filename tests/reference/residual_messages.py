"""Residual schedule by looking at every factor before each update."""

from __future__ import annotations

from factorwise.model.grounding import FactorGraph
from reference.messages import (
    Messages,
    absorb,
    joint_factors,
    node_totals,
    pending_change,
    send,
    silence,
)


def run_residual(
    graph: FactorGraph, updates: int, *, maximize: bool = False, damping: float = 0.0
) -> tuple[Messages, float]:
    """Messages after ``updates`` of the factor with the largest pending change, and the change left."""
    shares = [1.0] * len(joint_factors(graph))
    messages = silence(graph)
    for _ in range(updates):
        changes, fresh = _pending(graph, messages, shares, maximize)
        factor = changes.index(max(changes))
        for variable, message in fresh[factor].items():
            messages[factor, variable] = absorb(messages[factor, variable], message, damping)
    return messages, max(_pending(graph, messages, shares, maximize)[0])


def _pending(
    graph: FactorGraph, messages: Messages, shares: list[float], maximize: bool
) -> tuple[list[float], list[dict[int, list[float]]]]:
    totals = node_totals(graph, messages, shares)
    fresh = [send(graph, messages, totals, factor, 1.0, maximize) for factor in range(len(shares))]
    changes = [
        max(pending_change(messages[factor, variable], message) for variable, message in sent.items())
        for factor, sent in enumerate(fresh)
    ]
    return changes, fresh
