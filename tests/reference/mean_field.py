"""Naive mean field from its definition: each variable at the normalized exponential of its mean score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from factorwise.model.grounding import FactorGraph
from factorwise.types import Floats
from reference.messages import joint_factors, log_sum


def expected_tables(graph: FactorGraph, beliefs: Sequence[Sequence[float]], variable: int) -> list[float]:
    """Mean of the factors at ``variable`` given each of its labels; entries without mass do not count."""
    found = [0.0] * int(graph.cardinality[variable])
    for scope, table in graph.factors():
        if variable not in scope:
            continue
        for labels in product(*(range(size) for size in table.shape)):
            rest = [beliefs[v][label] for v, label in zip(scope, labels, strict=True) if v != variable]
            if math.prod(rest) > 0:
                found[labels[scope.index(variable)]] += math.prod(rest) * float(table[labels])
    return found


def run_mean_field(
    graph: FactorGraph, beliefs: Sequence[Sequence[float]], sweeps: int
) -> tuple[list[list[float]], list[float]]:
    """Beliefs after ``sweeps`` and the largest change in each."""
    current = [list(belief) for belief in beliefs]
    trace = []
    for _ in range(sweeps):
        change = 0.0
        for variable in range(graph.n_variables):
            scores = expected_tables(graph, current, variable)
            fresh = [math.exp(score - log_sum(scores)) for score in scores]
            change = max(change, *(abs(a - b) for a, b in zip(fresh, current[variable], strict=True)))
            current[variable] = fresh
        trace.append(change)
    return current, trace


def product_beliefs(graph: FactorGraph, beliefs: Sequence[Sequence[float]]) -> list[Floats]:
    """Outer products of the beliefs of each factor of two or more variables."""
    found = []
    for scope, _ in joint_factors(graph):
        joint: Floats = np.ones(())
        for variable in scope:
            joint = np.multiply.outer(joint, np.asarray(beliefs[variable]))
        found.append(joint)
    return found
