"""Run kernels on several threads, with results that do not depend on their number."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np

from factorwise.errors import require

PARTS_PER_THREAD = 4  # more parts than threads, so that one slow part does not delay the rest


def thread_count(given: int | None) -> int:
    """Return the number of threads: as given, or one for each processor that this process may use."""
    if given is None or given == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    require(given >= 1, "n_jobs", given, "at least 1, or None or -1 for all processors")
    return given


class Team:
    """Threads that share ranges of independent work.

    stopping
        Set on an interrupt or an error of one part, so that long work in other threads can end early.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.stopping = False
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def share(self, count: int, work: Callable[[int, int], Any]) -> None:
        """Call ``work(first, last)`` on ranges that together make up ``0`` to ``count``."""
        if self._pool is None or count <= 1:
            work(0, count)
            return
        edges = np.linspace(0, count, min(count, self.threads * PARTS_PER_THREAD) + 1).astype(int).tolist()
        parts = [self._pool.submit(work, a, b) for a, b in pairwise(edges)]
        try:
            for part in parts:
                part.result()
        except BaseException:
            self.stopping = True
            for part in parts:
                part.cancel()
            raise
        finally:
            wait(parts)  # an interrupt reaches only this thread, and the others must not be left running
            self.stopping = False

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()
