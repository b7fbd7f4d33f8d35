"""Residual schedule: always update the factor whose messages would change most.

Built on `factorwise.kernels.graphs.messages`. The queue is a binary heap of factors by pending change; ties
go to the factor with the lower number, so that runs are reproducible.
"""

from __future__ import annotations

from typing import NamedTuple

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.kernels.graphs.messages import (
    MessageWorkspace,
    Wiring,
    absorb,
    node_totals,
    pending_change,
    send,
)
from factorwise.types import Float64s, Int64s


class Queue(NamedTuple):
    """A heap of factors: ``heap[0]`` has the largest ``change``, ``place[f]`` is the position of factor f."""

    heap: Int64s
    place: Int64s
    change: Float64s


@inlined_kernel
def _before(queue: Queue, first: int, second: int) -> bool:
    a = queue.heap[first]
    b = queue.heap[second]
    return bool(queue.change[a] > queue.change[b] or (queue.change[a] == queue.change[b] and a < b))


@inlined_kernel
def _swap(queue: Queue, first: int, second: int) -> None:
    a = queue.heap[first]
    b = queue.heap[second]
    queue.heap[first] = b
    queue.heap[second] = a
    queue.place[b] = first
    queue.place[a] = second


@inlined_kernel
def reprioritize(queue: Queue, factor: int, change: float) -> None:
    """Set the pending change of ``factor`` and restore the heap order."""
    queue.change[factor] = change
    spot = queue.place[factor]
    while spot > 0 and _before(queue, spot, (spot - 1) // 2):
        _swap(queue, spot, (spot - 1) // 2)
        spot = (spot - 1) // 2
    size = len(queue.heap)
    while True:
        child = 2 * spot + 1
        if child >= size:
            return
        if child + 1 < size and _before(queue, child + 1, child):
            child += 1
        if not _before(queue, child, spot):
            return
        _swap(queue, spot, child)
        spot = child


@kernel
def run_residual(
    wiring: Wiring,
    work: MessageWorkspace,
    queue: Queue,
    maximize: bool,
    damping: float,
    tolerance: float,
    trace: Float64s,
) -> tuple[int, int]:
    """Update the factor with the largest change until none exceeds ``tolerance`` or ``trace`` is full.

    One entry of ``trace`` is one round of as many updates as there are factors. Returns the number of rounds
    begun and a variable that has no possible label, or -1.
    """
    factors = len(wiring.table_start)
    empty = node_totals(wiring, work.messages, work.totals)
    if empty >= 0:
        return 0, empty
    for factor in range(factors):
        queue.heap[factor] = factor
        queue.place[factor] = factor
        queue.change[factor] = -1.0
    for factor in range(factors):
        if not send(wiring, work, factor, maximize):
            return 0, wiring.scope[wiring.scope_start[factor]]
        reprioritize(queue, factor, pending_change(wiring, work, factor))
    for done in range(len(trace)):
        for _ in range(factors):
            best = queue.heap[0]
            if queue.change[best] <= tolerance:
                break
            absorb(wiring, work, best, damping, True)
            for edge in range(wiring.scope_start[best], wiring.scope_start[best + 1]):
                variable = wiring.scope[edge]
                for spot in range(wiring.touch_start[variable], wiring.touch_start[variable + 1]):
                    factor = wiring.owner[wiring.touch[spot]]
                    if not send(wiring, work, factor, maximize):
                        return done, variable
                    reprioritize(queue, factor, pending_change(wiring, work, factor))
        trace[done] = queue.change[queue.heap[0]] if factors else 0.0
        empty = node_totals(wiring, work.messages, work.totals)
        if empty >= 0 or trace[done] <= tolerance:
            return done + 1, empty
    return len(trace), -1
