"""The rankings that a walk passes, gathered for a program that satisfies them all at once.

A walk's constraints are not independent draws: each pair of worlds begins where the last one ended. The
sample sizes of `ranking_bounds.sample_size` assume that they are, so they say what to expect, not what is
guaranteed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import require
from factorwise.inference.mcmc.gradient_engine import Acceptance, Manner
from factorwise.learning.sampled_program import ConstraintCollector
from factorwise.learning.updates import Unit
from factorwise.learning.walkers import PlainWalker, TrainingWorld, check_worlds
from factorwise.rng import Stream, as_stream


def collect_constraints(
    worlds: Sequence[TrainingWorld],
    *,
    steps: int = 2_000,
    accept: Acceptance = "truth",
    weights: ArrayLike | None = None,
    capacity: int = 100_000,
    seed: int | np.random.Generator | Stream = 0,
) -> ConstraintCollector:
    """Walk ``steps`` steps in each world, in plain Python, and keep better minus worse statistics of each.

    accept, weights
        How the walk decides, and by which weights; zero by default. Nothing is learned on the way.
    capacity
        Most constraints to keep; a uniform sample of them if there are more.

    Implements: wick2009samplerank, Sec. 3.2 (the constraints sampled along a local search).
    """
    check_worlds(worlds, "preference")
    require(steps >= 1, "steps", steps, "at least 1")
    blocks = worlds[0].model.blocks
    root = as_stream(seed).bits()
    collector = ConstraintCollector(blocks.size, capacity=capacity, seed=Stream(root, len(worlds)))
    resting = Unit().arrays(blocks.size)
    resting.weights[:] = blocks.flat(weights)
    for index, training in enumerate(worlds):
        walker = PlainWalker(training, observer=collector.append)
        walker.walk(
            Stream(root, index), Manner(accept), resting, steps, free=np.ones(blocks.size), learning=False
        )
    return collector
