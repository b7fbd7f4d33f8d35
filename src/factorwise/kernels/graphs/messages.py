"""Messages between factors and variables in the log domain: any arity, any cardinality, hard zeros.

With ``appearance`` r(f) of factor f, message m(f, v) and node total

    t(v) = unary(v) + sum over f at v of r(f) m(f, v),

the message of f to v sums (or maximizes) ``table(f) / r(f) + sum over u != v of t(u) - m(f, u)`` over the
other variables u of f. Belief propagation has appearance one for all factors; lower appearances weigh the
entropy of each factor and give the tree-reweighted family. The total without the message of one factor,
``t(u) - m(f, u)``, is called its cavity. A label with total ``-inf`` is impossible in every setting, so its
cavity is ``-inf`` for every factor, its own included; this avoids ``inf - inf`` and only ever removes labels.

Messages are defined up to a constant: a change is measured by its span (largest minus smallest) over labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.types import Float64s, Int64s

NEVER = -np.inf


class Wiring(NamedTuple):
    """A factor graph as flat arrays, with unary and constant factors folded into other arrays.

    An edge is one variable of one factor; its message has one entry per label of the variable.

    cardinality : int64[variables]
    label_start : int64[variables + 1]
        Where the labels of each variable begin in arrays with one entry per label.
    unary : float64[labels]
        Sum of the unary tables.
        Sum of the unary tables.
    scope_start, scope : int64[factors + 1], int64[edges]
        The variables of each factor with two or more variables.
    table_start, tables : int64[factors], float64[entries]
        The tables, as in the factor graph.
    message_start : int64[edges + 1]
        Where the message of each edge begins in arrays with one entry per edge and label.
    owner : int64[edges]
        The factor of each edge.
    touch_start, touch : int64[variables + 1], int64[edges]
        The edges of each variable.
    appearance : float64[factors]
        The weight of each factor's entropy.
    walk : int64[factors]
        The factors in breadth-first order.
    """

    cardinality: Int64s
    label_start: Int64s
    unary: Float64s
    scope_start: Int64s
    scope: Int64s
    table_start: Int64s
    tables: Float64s
    message_start: Int64s
    owner: Int64s
    touch_start: Int64s
    touch: Int64s
    appearance: Float64s
    walk: Int64s


class MessageWorkspace(NamedTuple):
    """The arrays to which message passing writes.

    messages, fresh, cavity : float64[message entries]
        Messages from factors to variables, current and new; messages from variables to factors.
    totals : float64[labels]
    digits : int64[largest arity]
        Labels of the current table entry.
    """

    messages: Float64s
    fresh: Float64s
    cavity: Float64s
    totals: Float64s
    digits: Int64s


@kernel
def node_totals(wiring: Wiring, messages: Float64s, totals: Float64s) -> int:
    """Fill ``totals``; return a variable that has no possible label, or -1."""
    empty = -1
    for variable in range(len(wiring.cardinality)):
        size = wiring.cardinality[variable]
        start = wiring.label_start[variable]
        for label in range(size):
            totals[start + label] = wiring.unary[start + label]
        for place in range(wiring.touch_start[variable], wiring.touch_start[variable + 1]):
            edge = wiring.touch[place]
            weight = wiring.appearance[wiring.owner[edge]]
            message = wiring.message_start[edge]
            for label in range(size):
                totals[start + label] += weight * messages[message + label]
        top = NEVER
        for label in range(size):
            top = max(top, totals[start + label])
        if top == NEVER and empty < 0:
            empty = variable
    return empty


@inlined_kernel
def fill_cavity(wiring: Wiring, work: MessageWorkspace, factor: int) -> None:
    """Write the messages from the variables of ``factor`` to it into ``cavity``."""
    for edge in range(wiring.scope_start[factor], wiring.scope_start[factor + 1]):
        variable = wiring.scope[edge]
        start = wiring.label_start[variable]
        message = wiring.message_start[edge]
        for label in range(wiring.cardinality[variable]):
            total = work.totals[start + label]
            if total == NEVER:
                work.cavity[message + label] = NEVER
            else:
                work.cavity[message + label] = total - work.messages[message + label]


@inlined_kernel
def _log_add(first: float, second: float) -> float:
    if first < second:
        first, second = second, first
    if second == NEVER:
        return first
    return float(first + np.log1p(np.exp(second - first)))


@inlined_kernel
def next_entry(wiring: Wiring, digits: Int64s, first: int, last: int) -> None:
    """Advance ``digits`` to the next table entry in C order over edges ``first`` to ``last - 1``."""
    for edge in range(last - 1, first - 1, -1):
        digits[edge - first] += 1
        if digits[edge - first] < wiring.cardinality[wiring.scope[edge]]:
            break
        digits[edge - first] = 0


@inlined_kernel
def _send_pair(wiring: Wiring, work: MessageWorkspace, factor: int, maximize: bool) -> None:
    edge = wiring.scope_start[factor]
    rows = wiring.cardinality[wiring.scope[edge]]
    columns = wiring.cardinality[wiring.scope[edge + 1]]
    left = wiring.message_start[edge]
    right = wiring.message_start[edge + 1]
    table = wiring.table_start[factor]
    scale = 1.0 / wiring.appearance[factor]
    cavity = work.cavity
    fresh = work.fresh
    for column in range(columns):
        top = NEVER
        for row in range(rows):
            top = max(top, scale * wiring.tables[table + row * columns + column] + cavity[left + row])
        if not maximize and top > NEVER:
            total = 0.0
            for row in range(rows):
                entry = scale * wiring.tables[table + row * columns + column]
                total += np.exp(entry + cavity[left + row] - top)
            top += np.log(total)
        fresh[right + column] = top
    for row in range(rows):
        top = NEVER
        for column in range(columns):
            top = max(top, scale * wiring.tables[table + row * columns + column] + cavity[right + column])
        if not maximize and top > NEVER:
            total = 0.0
            for column in range(columns):
                entry = scale * wiring.tables[table + row * columns + column]
                total += np.exp(entry + cavity[right + column] - top)
            top += np.log(total)
        fresh[left + row] = top


@inlined_kernel
def _send_many(wiring: Wiring, work: MessageWorkspace, factor: int, maximize: bool) -> None:
    first = wiring.scope_start[factor]
    last = wiring.scope_start[factor + 1]
    scale = 1.0 / wiring.appearance[factor]
    entries = 1
    for edge in range(first, last):
        entries *= wiring.cardinality[wiring.scope[edge]]
        work.digits[edge - first] = 0
    for message in range(wiring.message_start[first], wiring.message_start[last]):
        work.fresh[message] = NEVER
    for entry in range(entries):
        own = scale * wiring.tables[wiring.table_start[factor] + entry]
        if own > NEVER:
            for target in range(first, last):
                value = own
                for edge in range(first, last):
                    if edge != target:
                        value += work.cavity[wiring.message_start[edge] + work.digits[edge - first]]
                message = wiring.message_start[target] + work.digits[target - first]
                if maximize:
                    work.fresh[message] = max(work.fresh[message], value)
                else:
                    work.fresh[message] = _log_add(work.fresh[message], value)
        next_entry(wiring, work.digits, first, last)


@inlined_kernel
def send(wiring: Wiring, work: MessageWorkspace, factor: int, maximize: bool) -> bool:
    """Write new messages of ``factor``, with maximum 0, to ``fresh``; False if one has no possible label."""
    fill_cavity(wiring, work, factor)
    if wiring.scope_start[factor + 1] - wiring.scope_start[factor] == 2:
        _send_pair(wiring, work, factor, maximize)
    else:
        _send_many(wiring, work, factor, maximize)
    for edge in range(wiring.scope_start[factor], wiring.scope_start[factor + 1]):
        top = NEVER
        for message in range(wiring.message_start[edge], wiring.message_start[edge + 1]):
            top = max(top, work.fresh[message])
        if top == NEVER:
            return False
        for message in range(wiring.message_start[edge], wiring.message_start[edge + 1]):
            work.fresh[message] -= top
    return True


@inlined_kernel
def pending_change(wiring: Wiring, work: MessageWorkspace, factor: int) -> float:
    """Return the largest span over labels of ``fresh`` minus ``messages`` among a factor's messages."""
    change = 0.0
    for edge in range(wiring.scope_start[factor], wiring.scope_start[factor + 1]):
        low = np.inf
        high = -np.inf
        for message in range(wiring.message_start[edge], wiring.message_start[edge + 1]):
            old = work.messages[message]
            new = work.fresh[message]
            if old == NEVER and new == NEVER:
                continue
            low = min(low, new - old)
            high = max(high, new - old)
        change = max(change, high - low)
    return change


@inlined_kernel
def absorb(wiring: Wiring, work: MessageWorkspace, factor: int, damping: float, immediate: bool) -> None:
    """Replace the messages of ``factor`` by ``fresh``, damped; if ``immediate``, update the totals, too."""
    weight = wiring.appearance[factor]
    for edge in range(wiring.scope_start[factor], wiring.scope_start[factor + 1]):
        start = wiring.label_start[wiring.scope[edge]]
        first = wiring.message_start[edge]
        for message in range(first, wiring.message_start[edge + 1]):
            old = work.messages[message]
            new = work.fresh[message]
            if damping > 0.0:
                new = damping * old + (1.0 - damping) * new
            work.messages[message] = new
            if immediate and work.totals[start + message - first] > NEVER:
                work.totals[start + message - first] += weight * (new - old)


@inlined_kernel
def scheduled(order: Int64s, step: int, immediate: bool) -> int:
    """Return the factor of a step: ``order`` backward and then forward if ``immediate``, else by number."""
    if not immediate:
        return step
    factors = len(order)
    return order[factors - 1 - step] if step < factors else order[step - factors]


@kernel
def run_sweeps(
    wiring: Wiring,
    work: MessageWorkspace,
    order: Int64s,
    maximize: bool,
    immediate: bool,
    damping: float,
    tolerance: float,
    trace: Float64s,
) -> tuple[int, int]:
    """Make sweeps until the largest change is at most ``tolerance`` or ``trace`` is full.

    All messages are updated from the same totals or, if ``immediate``, factor by factor through ``order``
    backward and then forward, which is exact after one sweep of a forest in breadth-first order. Returns the
    number of sweeps and a variable that has no possible label, or -1.
    """
    factors = len(wiring.table_start)
    sweeps = 0
    while sweeps < len(trace):
        empty = node_totals(wiring, work.messages, work.totals)
        if empty >= 0:
            return sweeps, empty
        change = 0.0
        for step in range(2 * factors if immediate else factors):
            factor = scheduled(order, step, immediate)
            if not send(wiring, work, factor, maximize):
                return sweeps, wiring.scope[wiring.scope_start[factor]]
            change = max(change, pending_change(wiring, work, factor))
            absorb(wiring, work, factor, damping, immediate)
        trace[sweeps] = change
        sweeps += 1
        if change <= tolerance:
            break
    return sweeps, node_totals(wiring, work.messages, work.totals)


@kernel
def label_beliefs(cardinality: Int64s, label_start: Int64s, totals: Float64s, beliefs: Float64s) -> None:
    """Write the beliefs of each variable, which are the normalized exponentials of its totals."""
    for variable in range(len(cardinality)):
        start = label_start[variable]
        end = start + cardinality[variable]
        top = NEVER
        for label in range(start, end):
            top = max(top, totals[label])
        total = 0.0
        for label in range(start, end):
            beliefs[label] = np.exp(totals[label] - top)
            total += beliefs[label]
        for label in range(start, end):
            beliefs[label] /= total


@kernel
def factor_beliefs(wiring: Wiring, work: MessageWorkspace, entry_start: Int64s, beliefs: Float64s) -> int:
    """Write the joint beliefs of each factor from ``entry_start[f]`` on; return one without any, or -1."""
    for factor in range(len(wiring.table_start)):
        fill_cavity(wiring, work, factor)
        first = wiring.scope_start[factor]
        last = wiring.scope_start[factor + 1]
        scale = 1.0 / wiring.appearance[factor]
        start = entry_start[factor]
        entries = 1
        for edge in range(first, last):
            entries *= wiring.cardinality[wiring.scope[edge]]
            work.digits[edge - first] = 0
        top = NEVER
        for entry in range(entries):
            value = scale * wiring.tables[wiring.table_start[factor] + entry]
            for edge in range(first, last):
                value += work.cavity[wiring.message_start[edge] + work.digits[edge - first]]
            beliefs[start + entry] = value
            top = max(top, value)
            next_entry(wiring, work.digits, first, last)
        if top == NEVER:
            return factor
        total = 0.0
        for entry in range(start, start + entries):
            beliefs[entry] = np.exp(beliefs[entry] - top)
            total += beliefs[entry]
        for entry in range(start, start + entries):
            beliefs[entry] /= total
    return -1
