"""Log-domain messages from their definition: sums over full tables, totals added up afresh every time.

A message is kept under ``(factor, variable)`` with the factor's number among those of two or more variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats

Messages = dict[tuple[int, int], list[float]]
NEVER = -math.inf


def joint_factors(graph: FactorGraph) -> list[tuple[tuple[int, ...], Floats]]:
    """Scope and table of the factors of two or more variables."""
    return [(scope, table) for scope, table in graph.factors() if len(scope) >= 2]


def silence(graph: FactorGraph) -> Messages:
    """Messages of zero."""
    return {
        (index, variable): [0.0] * int(graph.cardinality[variable])
        for index, (scope, _) in enumerate(joint_factors(graph))
        for variable in scope
    }


def node_totals(graph: FactorGraph, messages: Messages, appearance: Sequence[float]) -> list[list[float]]:
    """Unary tables plus weighted messages, for each variable and label."""
    totals = [[0.0] * int(size) for size in graph.cardinality]
    for scope, table in graph.factors():
        if len(scope) == 1:
            for label, score in enumerate(table.tolist()):
                totals[scope[0]][label] += score
    for (factor, variable), message in messages.items():
        for label, value in enumerate(message):
            totals[variable][label] += appearance[factor] * value
    return totals


def fill_cavity(total: Sequence[float], message: Sequence[float]) -> list[float]:
    """Return the total without the message; a label that is impossible stays impossible."""
    return [NEVER if t == NEVER else t - m for t, m in zip(total, message, strict=True)]


def entries(
    scope: Sequence[int], table: Floats, share: float, cavities: dict[int, list[float]]
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Labels and value of each table entry: its score over ``share`` plus the cavities given."""
    for labels in product(*(range(size) for size in table.shape)):
        value = float(table[labels]) / share
        for variable, label in zip(scope, labels, strict=True):
            if variable in cavities:
                value += cavities[variable][label]
        yield labels, value


def log_sum(values: Sequence[float]) -> float:
    """Log of the sum of exponentials."""
    top = max(values, default=NEVER)
    return top if top == NEVER else top + math.log(math.fsum(math.exp(value - top) for value in values))


def send(
    graph: FactorGraph,
    messages: Messages,
    totals: Sequence[Sequence[float]],
    factor: int,
    share: float,
    maximize: bool,
) -> dict[int, list[float]]:
    """New message to each variable of ``factor``, its largest entry 0."""
    scope, table = joint_factors(graph)[factor]
    cavities = {v: fill_cavity(totals[v], messages[factor, v]) for v in scope}
    found = {}
    for place, target in enumerate(scope):
        others = {v: cavity for v, cavity in cavities.items() if v != target}
        groups: list[list[float]] = [[] for _ in range(table.shape[place])]
        for labels, value in entries(scope, table, share, others):
            groups[labels[place]].append(value)
        fresh = [max(group) if maximize else log_sum(group) for group in groups]
        top = max(fresh)
        found[target] = [value - top if top > NEVER else NEVER for value in fresh]
    return found


def pending_change(old: Sequence[float], new: Sequence[float]) -> float:
    """Span over labels of the difference; labels impossible before and after do not count."""
    moves = [b - a for a, b in zip(old, new, strict=True) if a > NEVER or b > NEVER]
    return max(moves) - min(moves) if moves else 0.0


def absorb(old: Sequence[float], new: Sequence[float], damping: float) -> list[float]:
    """Return the damped message."""
    if damping == 0.0:
        return list(new)
    return [damping * a + (1.0 - damping) * b for a, b in zip(old, new, strict=True)]


def run_sweeps(
    graph: FactorGraph,
    sweeps: int,
    *,
    maximize: bool = False,
    order: Sequence[int] | None = None,
    damping: float = 0.0,
    appearance: Sequence[float] | None = None,
) -> tuple[Messages, list[float]]:
    """Messages after ``sweeps`` and the largest change in each.

    All at once or, given an ``order`` of factors, one after the other through it backwards and forwards.
    """
    shares = [1.0] * len(joint_factors(graph)) if appearance is None else list(appearance)
    messages = silence(graph)
    trace = []
    for _ in range(sweeps):
        frozen = dict(messages)
        change = 0.0
        turns = range(len(shares)) if order is None else [*reversed(order), *order]
        for factor in turns:
            seen = frozen if order is None else messages
            totals = node_totals(graph, seen, shares)
            for variable, fresh in send(graph, seen, totals, factor, shares[factor], maximize).items():
                old = seen[factor, variable]
                change = max(change, pending_change(old, fresh))
                messages = {**messages, (factor, variable): absorb(old, fresh, damping)}
        trace.append(change)
    return messages, trace


def label_beliefs(totals: Sequence[Sequence[float]]) -> list[list[float]]:
    """Normalized exponentials of each variable's totals."""
    return [[math.exp(value - log_sum(total)) for value in total] for total in totals]


def factor_beliefs(graph: FactorGraph, messages: Messages, appearance: Sequence[float]) -> list[Floats]:
    """Normalized joint beliefs of the factors of two or more variables."""
    totals = node_totals(graph, messages, appearance)
    found = []
    for factor, (scope, table) in enumerate(joint_factors(graph)):
        cavities = {v: fill_cavity(totals[v], messages[factor, v]) for v in scope}
        values = np.array([value for _, value in entries(scope, table, appearance[factor], cavities)])
        found.append(np.exp(values - log_sum(values.tolist())).reshape(table.shape))
    return found
