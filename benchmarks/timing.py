"""What the benchmarks share: the smallest of several times, CPU beside wall, and tables that line up.

CPU time is what a busy machine distorts least; wall time is what a user waits for. Both are given.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Timed(NamedTuple, Generic[T]):
    """The fastest of several runs, by CPU time: its seconds and what it returned."""

    cpu: float
    wall: float
    result: T


def smallest(function: Callable[[], T], repeats: int) -> Timed[T]:
    """Call ``function`` ``repeats`` times and keep the run of least CPU time."""
    return min((_timed(function) for _ in range(repeats)), key=lambda run: run.cpu)


def _timed(function: Callable[[], T]) -> Timed[T]:
    began, begin = time.perf_counter(), time.process_time()
    result = function()
    return Timed(time.process_time() - begin, time.perf_counter() - began, result)


def smallest_process(
    command: Sequence[str], repeats: int, variables: Mapping[str, str] | None = None
) -> Timed[str]:
    """Run ``command`` in ``repeats`` new processes; keep the one of least CPU time and what it printed."""
    environment = {**os.environ, **(variables or {})}

    def once() -> Timed[str]:
        before, began = os.times(), time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - began, os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return Timed(cpu, wall, done.stdout)

    return min((once() for _ in range(repeats)), key=lambda run: run.cpu)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their heads: the first column to the left, numbers to the right."""
    lines = [head, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def verdict(measured: float, bar: float, *, at_most: bool = False) -> str:
    """Say whether a bar is met, and by what factor it is missed where it is not."""
    met = measured <= bar if at_most else measured >= bar
    miss = measured / bar if at_most else bar / measured
    return "met" if met else f"missed by a factor of {miss:.2f}"
