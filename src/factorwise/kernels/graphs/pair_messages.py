"""Sum-product messages of pairwise factors in the probability domain, for tables of moderate range.

These kernels need graphs without hard zeros and with log-potentials so bounded that no product here overflows
or underflows a double. The caller checks this once per graph, from the tables alone, and otherwise uses
`factorwise.kernels.graphs.messages`. The schedules, and the messages after each sweep up to rounding, are
those of that module with appearance one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from factorwise.kernels.compile.compiler import fast_kernel, inlined
from factorwise.kernels.graphs.messages import MessageWorkspace, Wiring, scheduled
from factorwise.types import Float64s, Int64s

ALMOST_ONE = 1.0 - 2.0**-53


class BinaryPairs(NamedTuple):
    """Pairwise factors between binary variables; a message is the ratio of label 1 to label 0.

    left, right : int64[factors]
        The two variables.
    left_one, right_one, both_one : float64[factors]
        Table entries (1, 0), (0, 1) and (1, 1) divided by entry (0, 0).
    prior : float64[variables]
        Ratio of the unary potentials.
    to_left, to_right : float64[factors]
        Messages, updated in place.
    totals, fresh_totals : float64[variables]
        Product of the prior and the messages of each variable.
    """

    left: Int64s
    right: Int64s
    left_one: Float64s
    right_one: Float64s
    both_one: Float64s
    prior: Float64s
    to_left: Float64s
    to_right: Float64s
    totals: Float64s
    fresh_totals: Float64s


@inlined
def _geometric(old: float, new: float, damping: float) -> float:
    return math.exp(damping * math.log(old) + (1.0 - damping) * math.log(new))


@inlined
def _ratio(message: float, total: float, near: float, far: float, both: float) -> float:
    """Return (far + both q) / (1 + near q) at the cavity ratio q = total / message, with one division."""
    return (far * message + both * total) / (message + near * total)


@inlined
def _wider(gap: float, width: float, old: float, new: float) -> tuple[float, float]:
    """Return the larger of gap / width and |new - old| / (new + old), tanh of half a change, undivided."""
    if abs(new - old) * width > gap * (new + old):
        return abs(new - old), new + old
    return gap, width


@inlined
def _fresh_messages(
    pairs: BinaryPairs, factor: int, total_left: float, total_right: float
) -> tuple[float, float]:
    """Return new messages of a factor from its current ones and the totals of its variables."""
    left_one, right_one = pairs.left_one[factor], pairs.right_one[factor]
    both_one = pairs.both_one[factor]
    return (
        _ratio(pairs.to_right[factor], total_right, right_one, left_one, both_one),
        _ratio(pairs.to_left[factor], total_left, left_one, right_one, both_one),
    )


@inlined
def _replace_messages(
    pairs: BinaryPairs, factor: int, new_left: float, new_right: float, damping: float
) -> tuple[float, float]:
    """Write both messages of a factor, damped, and return them."""
    if damping > 0.0:
        new_left = _geometric(pairs.to_left[factor], new_left, damping)
        new_right = _geometric(pairs.to_right[factor], new_right, damping)
    pairs.to_left[factor] = new_left
    pairs.to_right[factor] = new_right
    return new_left, new_right


@fast_kernel
def run_binary(pairs: BinaryPairs, damping: float, tolerance: float, trace: Float64s) -> int:
    """Update all messages at once until changes are at most ``tolerance`` or ``trace`` is full.

    Returns the number of sweeps.
    """
    factors = len(pairs.left)
    totals = pairs.totals
    fresh = pairs.fresh_totals
    totals[:] = pairs.prior
    for factor in range(factors):
        totals[pairs.left[factor]] *= pairs.to_left[factor]
        totals[pairs.right[factor]] *= pairs.to_right[factor]
    for sweep in range(len(trace)):
        gap, width = 0.0, 1.0
        fresh[:] = pairs.prior
        for factor in range(factors):
            left, right = np.uint64(pairs.left[factor]), np.uint64(pairs.right[factor])
            old_left, old_right = pairs.to_left[factor], pairs.to_right[factor]
            new_left, new_right = _fresh_messages(pairs, factor, totals[left], totals[right])
            gap, width = _wider(gap, width, old_left, new_left)
            gap, width = _wider(gap, width, old_right, new_right)
            new_left, new_right = _replace_messages(pairs, factor, new_left, new_right, damping)
            fresh[left] *= new_left
            fresh[right] *= new_right
        totals, fresh = fresh, totals
        trace[sweep] = 2.0 * math.atanh(min(gap / width, ALMOST_ONE))
        if trace[sweep] <= tolerance:
            return sweep + 1
    return len(trace)


@fast_kernel
def run_binary_in_order(
    pairs: BinaryPairs, order: Int64s, damping: float, tolerance: float, trace: Float64s
) -> int:
    """Run like `run_binary`, but factor by factor through ``order`` backward and then forward."""
    factors = len(order)
    totals = pairs.totals
    for sweep in range(len(trace)):
        gap, width = 0.0, 1.0
        totals[:] = pairs.prior
        for factor in range(factors):
            totals[pairs.left[factor]] *= pairs.to_left[factor]
            totals[pairs.right[factor]] *= pairs.to_right[factor]
        for step in range(2 * factors):
            factor = scheduled(order, step, True)
            left, right = pairs.left[factor], pairs.right[factor]
            old_left, old_right = pairs.to_left[factor], pairs.to_right[factor]
            new_left, new_right = _fresh_messages(pairs, factor, totals[left], totals[right])
            gap, width = _wider(gap, width, old_left, new_left)
            gap, width = _wider(gap, width, old_right, new_right)
            new_left, new_right = _replace_messages(pairs, factor, new_left, new_right, damping)
            totals[left] *= new_left / old_left
            totals[right] *= new_right / old_right
        trace[sweep] = 2.0 * math.atanh(min(gap / width, ALMOST_ONE))
        if trace[sweep] <= tolerance:
            return sweep + 1
    return len(trace)


@fast_kernel
def _send_probabilities(wiring: Wiring, work: MessageWorkspace, factor: int) -> None:
    """Write both messages of a pairwise ``factor`` to ``fresh``, with maximum 1, in one table pass."""
    edge = wiring.scope_start[factor]
    left, right = wiring.message_start[edge], wiring.message_start[edge + 1]
    rows, columns = right - left, wiring.message_start[edge + 2] - right
    left_label = wiring.label_start[wiring.scope[edge]]
    right_label = wiring.label_start[wiring.scope[edge + 1]]
    table = wiring.table_start[factor]
    for column in range(columns):
        work.cavity[right + column] = work.totals[right_label + column] / work.messages[right + column]
        work.fresh[right + column] = 0.0
    for row in range(rows):
        cavity = work.totals[left_label + row] / work.messages[left + row]
        total = 0.0
        for column in range(columns):
            potential = wiring.tables[table + row * columns + column]
            total += potential * work.cavity[right + column]
            work.fresh[right + column] += potential * cavity
        work.fresh[left + row] = total
    for start, end in ((left, right), (right, right + columns)):
        top = 0.0
        for message in range(start, end):
            top = max(top, work.fresh[message])
        for message in range(start, end):
            work.fresh[message] /= top


@fast_kernel
def _products(wiring: Wiring, messages: Float64s, totals: Float64s) -> None:
    totals[:] = wiring.unary
    for edge in range(len(wiring.scope)):
        start = wiring.label_start[wiring.scope[edge]]
        first = wiring.message_start[edge]
        for label in range(wiring.message_start[edge + 1] - first):
            totals[start + label] *= messages[first + label]


@fast_kernel
def run_pairs(
    wiring: Wiring,
    work: MessageWorkspace,
    order: Int64s,
    immediate: bool,
    damping: float,
    tolerance: float,
    trace: Float64s,
) -> int:
    """Make sweeps like `messages.run_sweeps`; ``unary``, ``tables`` and ``messages`` are probabilities.

    Unary potentials and messages have largest entry 1 at each variable and edge.
    """
    factors = len(wiring.table_start)
    for sweep in range(len(trace)):
        _products(wiring, work.messages, work.totals)
        widest = 1.0
        for step in range(2 * factors if immediate else factors):
            factor = scheduled(order, step, immediate)
            _send_probabilities(wiring, work, factor)
            for edge in range(wiring.scope_start[factor], wiring.scope_start[factor + 1]):
                start = wiring.label_start[wiring.scope[edge]]
                first = wiring.message_start[edge]
                low, high = np.inf, 0.0
                for message in range(first, wiring.message_start[edge + 1]):
                    old = work.messages[message]
                    new = work.fresh[message]
                    low = min(low, new / old)
                    high = max(high, new / old)
                    if damping > 0.0:
                        new = _geometric(old, new, damping)
                    work.messages[message] = new
                    if immediate:
                        work.totals[start + message - first] *= new / old
                widest = max(widest, high / low)
        trace[sweep] = math.log(widest)
        if trace[sweep] <= tolerance:
            return sweep + 1
    return len(trace)
