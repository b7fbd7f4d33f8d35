"""Decode a setting from max-product messages, and improve it one variable at a time."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.kernels.graphs.messages import NEVER, MessageWorkspace, Wiring, fill_cavity, next_entry
from factorwise.types import Float64s, Int64s


@kernel
def decode(wiring: Wiring, work: MessageWorkspace, values: Int64s) -> None:
    """Set ``values`` factor by factor in breadth-first order, given the variables already set.

    Ties cannot lead to inconsistent labels, because labels are chosen jointly for a factor. On a forest with
    converged messages, the result is a most probable setting.
    """
    values[:] = -1
    for factor in wiring.walk:
        fill_cavity(wiring, work, factor)
        first, last = wiring.scope_start[factor], wiring.scope_start[factor + 1]
        scale = 1.0 / wiring.appearance[factor]
        entries = 1
        for edge in range(first, last):
            entries *= wiring.cardinality[wiring.scope[edge]]
            work.digits[edge - first] = 0
        best, chosen = NEVER, -1
        for entry in range(entries):
            value = scale * wiring.tables[wiring.table_start[factor] + entry]
            for edge in range(first, last):
                digit = work.digits[edge - first]
                known = values[wiring.scope[edge]]
                if known < 0:
                    value += work.cavity[wiring.message_start[edge] + digit]
                elif known != digit:
                    value = NEVER
            if value > best:
                best, chosen = value, entry
            next_entry(wiring, work.digits, first, last)
        if chosen >= 0:
            for edge in range(last - 1, first - 1, -1):
                size = wiring.cardinality[wiring.scope[edge]]
                values[wiring.scope[edge]] = chosen % size
                chosen //= size
    for variable in range(len(values)):
        if values[variable] < 0:
            start = wiring.label_start[variable]
            values[variable] = np.argmax(work.totals[start : start + wiring.cardinality[variable]])


@inlined_kernel
def _entry_at(
    cardinality: Int64s,
    scope_start: Int64s,
    scope: Int64s,
    table_start: Int64s,
    tables: Float64s,
    factor: int,
    values: Int64s,
) -> float:
    entry = 0
    for edge in range(scope_start[factor], scope_start[factor + 1]):
        variable = scope[edge]
        entry = entry * cardinality[variable] + values[variable]
    return float(tables[table_start[factor] + entry])


@kernel
def setting_score(
    cardinality: Int64s,
    scope_start: Int64s,
    scope: Int64s,
    table_start: Int64s,
    tables: Float64s,
    values: Int64s,
) -> float:
    """Return the sum of the table entries at ``values``, in the order of the factors."""
    total = 0.0
    for factor in range(len(table_start)):
        total += _entry_at(cardinality, scope_start, scope, table_start, tables, factor, values)
    return total


@kernel
def climb(wiring: Wiring, values: Int64s, max_sweeps: int) -> int:
    """Give each variable in turn its best label given the others until nothing improves; return the sweeps.

    The best label has the fewest forbidden factors, then the highest score; ties keep the current label.
    """
    for sweep in range(max_sweeps):
        moved = False
        for variable in range(len(values)):
            before = values[variable]
            best, best_forbidden, best_score = before, np.int64(0), 0.0
            for turn in range(-1, wiring.cardinality[variable]):
                label = before if turn < 0 else turn
                values[variable] = label
                own = wiring.unary[wiring.label_start[variable] + label]
                forbidden = np.int64(1) if own == NEVER else np.int64(0)
                score = 0.0 if own == NEVER else own
                for place in range(wiring.touch_start[variable], wiring.touch_start[variable + 1]):
                    entry = _entry_at(
                        wiring.cardinality,
                        wiring.scope_start,
                        wiring.scope,
                        wiring.table_start,
                        wiring.tables,
                        wiring.owner[wiring.touch[place]],
                        values,
                    )
                    if entry == NEVER:
                        forbidden += 1
                    else:
                        score += entry
                fewer = forbidden < best_forbidden
                higher = forbidden == best_forbidden and score > best_score
                if turn < 0 or fewer or higher:
                    best, best_forbidden, best_score = label, forbidden, score
            values[variable] = best
            moved = moved or best != before
        if not moved:
            return sweep + 1
    return max_sweeps
