"""Naive mean field: coordinate ascent over one distribution per variable."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.kernels.graphs.messages import NEVER, Wiring, next_entry
from factorwise.types import Float64s, Int64s


@inlined_kernel
def expected_tables(
    wiring: Wiring, beliefs: Float64s, variable: int, digits: Int64s, scores: Float64s
) -> None:
    """Fill ``scores[label]`` with the expected score of each label of ``variable``, unary entry included.

    The other variables are independent with ``beliefs``; a forbidden entry counts only if it has probability.
    """
    start = wiring.label_start[variable]
    for label in range(wiring.cardinality[variable]):
        scores[label] = wiring.unary[start + label]
    for place in range(wiring.touch_start[variable], wiring.touch_start[variable + 1]):
        own = wiring.touch[place]
        factor = wiring.owner[own]
        table = wiring.table_start[factor]
        first, last = wiring.scope_start[factor], wiring.scope_start[factor + 1]
        if last - first == 2:
            other = wiring.scope[first + last - 1 - own]
            own_step = wiring.cardinality[other] if own == first else 1
            other_step = 1 if own == first else wiring.cardinality[variable]
            for there in range(wiring.cardinality[other]):
                mass = beliefs[wiring.label_start[other] + there]
                if mass > 0.0:
                    for label in range(wiring.cardinality[variable]):
                        scores[label] += mass * wiring.tables[table + label * own_step + there * other_step]
            continue
        entries = 1
        for edge in range(first, last):
            entries *= wiring.cardinality[wiring.scope[edge]]
            digits[edge - first] = 0
        for entry in range(entries):
            mass = 1.0
            for edge in range(first, last):
                if edge != own:
                    mass *= beliefs[wiring.label_start[wiring.scope[edge]] + digits[edge - first]]
            if mass > 0.0:
                scores[digits[own - first]] += mass * wiring.tables[table + entry]
            next_entry(wiring, digits, first, last)


@kernel
def run_mean_field(
    wiring: Wiring, beliefs: Float64s, digits: Int64s, scores: Float64s, tolerance: float, trace: Float64s
) -> int:
    """Update each variable in turn until no belief changes by more than ``tolerance``; return the sweeps.

    ``beliefs`` must give forbidden entries probability zero; every update preserves this.
    """
    for sweep in range(len(trace)):
        change = 0.0
        for variable in range(len(wiring.cardinality)):
            size = wiring.cardinality[variable]
            start = wiring.label_start[variable]
            expected_tables(wiring, beliefs, variable, digits, scores)
            top = NEVER
            for label in range(size):
                top = max(top, scores[label])
            total = 0.0
            for label in range(size):
                scores[label] = np.exp(scores[label] - top)
                total += scores[label]
            for label in range(size):
                fresh = scores[label] / total
                change = max(change, abs(fresh - beliefs[start + label]))
                beliefs[start + label] = fresh
        trace[sweep] = change
        if change <= tolerance:
            return sweep + 1
    return len(trace)


@kernel
def product_beliefs(
    wiring: Wiring, beliefs: Float64s, entry_start: Int64s, digits: Int64s, joint: Float64s
) -> None:
    """Write the joint beliefs of each factor, from ``entry_start[f]`` on, as products of variable beliefs."""
    for factor in range(len(wiring.table_start)):
        first, last = wiring.scope_start[factor], wiring.scope_start[factor + 1]
        for edge in range(first, last):
            digits[edge - first] = 0
        for entry in range(entry_start[factor], entry_start[factor + 1]):
            mass = 1.0
            for edge in range(first, last):
                mass *= beliefs[wiring.label_start[wiring.scope[edge]] + digits[edge - first]]
            joint[entry] = mass
            next_entry(wiring, digits, first, last)
