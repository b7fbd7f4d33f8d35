"""The rankings that a walk passes, gathered: what the bounds of `ranking_bounds` are computed from.

A walk's constraints are not independent draws: each pair of worlds begins where the last one ended. The
sample sizes of `ranking_bounds.sample_size` assume that they are, so they say what to expect, not what is
guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from factorwise.errors import require
from factorwise.inference.mcmc.engine import EngineName
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.loops import CLOCK
from factorwise.kernels.walks.rules import keep_ranking
from factorwise.learning.samplerank.walkers import (
    Accept,
    TrainingWorld,
    check_walk,
    check_worlds,
    make_walkers,
)
from factorwise.rng import Stream, as_stream

ENTRIES = 1_000_000  # of the rows that are gathered before they are put away


def collect_constraints(
    worlds: Sequence[TrainingWorld],
    *,
    steps: int = 2_000,
    accept: Accept = "truth",
    weights: ArrayLike | None = None,
    capacity: int = 100_000,
    seed: int | np.random.Generator | Stream = 0,
    engine: EngineName = "auto",
) -> Any:
    """Walk ``steps`` steps in each world and return better minus worse statistics.

    A sparse row for each step.

    accept, weights
        How the walk decides, and by which weights; zero by default. Nothing is learned on the way.
    capacity
        Most constraints to keep; a uniform sample of them, in their order, if there are more.

    Implements: wick2009samplerank, Sec. 3.2 (the constraints sampled along a local search).
    """
    check_worlds(worlds, "preference")
    require(steps >= 1, "steps", steps, "at least 1")
    require(capacity >= 1, "capacity", capacity, "at least 1")
    size = worlds[0].model.blocks.size
    root = as_stream(seed).bits()
    rows = min(steps, max(1, ENTRIES // max(size, 1)))
    arrays: dict[str, Any] = {
        "start": np.zeros(rows + 1, np.int64),
        "filled": np.zeros(1, np.int64),
        "index": np.zeros(rows * size, np.int32),
        "value": np.zeros(rows * size),
    }
    rule = Program(update=keep_ranking, arrays=arrays, name="gathering of rankings")
    walkers = make_walkers(
        worlds,
        engine,
        acceptance=check_walk(accept, 1.0, 1),
        weights=worlds[0].model.blocks.flat(weights),
        clock=np.zeros(CLOCK, np.int64),
        roles=lambda training: {"update": rule},
        judged=True,
    )
    found = [csr_array((0, size))]
    for number, walker in enumerate(walkers):
        stream = Stream(root, number)
        for first in range(0, steps, rows):
            arrays["filled"][0] = 0
            walker.advance(stream, 1.0, min(rows, steps - first))
            start = arrays["start"][: arrays["filled"][0] + 1].copy()
            entries = (arrays["value"][: start[-1]].copy(), arrays["index"][: start[-1]].copy(), start)
            found.append(csr_array(entries, shape=(len(start) - 1, size)))
    constraints = csr_array(vstack(found))
    if constraints.shape[0] > capacity:
        chosen = np.random.default_rng(Stream(root, len(worlds)).bits()).choice(
            constraints.shape[0], capacity, replace=False
        )
        constraints = constraints[np.sort(chosen)]
    return constraints
