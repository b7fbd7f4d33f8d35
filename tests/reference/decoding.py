"""Settings from max-product messages, scored by rescoring the whole graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

from factorwise.model.grounding import FactorGraph
from reference.messages import Messages, entries, fill_cavity, joint_factors, node_totals


def decode(graph: FactorGraph, messages: Messages, walk: Sequence[int]) -> list[int]:
    """Set the variables of each factor in turn to its best entry that agrees with those already set."""
    factors = joint_factors(graph)
    totals = node_totals(graph, messages, [1.0] * len(factors))
    known: dict[int, int] = {}
    for factor in walk:
        scope, table = factors[factor]
        cavities = {v: fill_cavity(totals[v], messages[factor, v]) for v in scope if v not in known}
        fitting = [
            (value, labels)
            for labels, value in entries(scope, table, 1.0, cavities)
            if all(known.get(v, label) == label for v, label in zip(scope, labels, strict=True))
        ]
        best = max(value for value, _ in fitting)
        if best > -math.inf:
            labels = next(labels for value, labels in fitting if value == best)
            known.update(zip(scope, labels, strict=True))
    return [known.get(v, totals[v].index(max(totals[v]))) for v in range(graph.n_variables)]


def setting_score(graph: FactorGraph, values: Sequence[int]) -> float:
    """Score of a full setting."""
    return graph.score(values)


def climb(graph: FactorGraph, values: Sequence[int]) -> list[int]:
    """Best label for each variable in turn given the rest, until nothing improves."""
    setting = list(values)
    improved = True
    while improved:
        improved = False
        for variable in range(graph.n_variables):
            settings = [
                [*setting[:variable], label, *setting[variable + 1 :]]
                for label in range(int(graph.cardinality[variable]))
            ]
            best = max(settings, key=lambda candidate: _rank(graph, candidate))
            if _rank(graph, best) > _rank(graph, setting):
                setting, improved = best, True
    return setting


def _rank(graph: FactorGraph, values: Sequence[int]) -> tuple[int, float]:
    """Fewest forbidden factors first, then the highest sum of the others.

    Hard zeros of one variable's unary tables together count once, as they do when tables are added up.
    """
    forbidden, score = set(), 0.0
    for index, (scope, table) in enumerate(graph.factors()):
        entry = float(table[tuple(values[v] for v in scope)])
        if entry > -math.inf:
            score += entry
        else:
            forbidden.add(("variable", scope[0]) if len(scope) == 1 else ("factor", index))
    return -len(forbidden), score
