"""Contrastive divergence: learn from where a few steps lead away from the truth.

The gradient of the likelihood is the statistics of the truth minus their mean under the model. Contrastive
divergence replaces the mean by the statistics of one world: the one that ``length`` steps of a chain reach
from the truth or, in the persistent form, the current world of a chain that never restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.inference.mcmc.acceptances import BETTER
from factorwise.inference.mcmc.engine import EngineName
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.rules import add_to_path, learn_from_path
from factorwise.learning.samplerank.learner import Course, WalkLearner, free_weights
from factorwise.learning.samplerank.walkers import (
    Accept,
    TrainingWorld,
    Walker,
    check_walk,
    check_worlds,
    distance_from_truth,
    make_walkers,
)
from factorwise.learning.updates import Unit, UpdateArrays
from factorwise.rng import Stream
from factorwise.types import Float64s
from factorwise.validation import check_count, check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastiveDivergence(WalkLearner):
    """Learner that pulls the model from the worlds to which its chain drifts towards the truth.

    length
        Steps of the chain between two corrections: k of CD-k.
    persistent
        Let the chain continue from its current world instead of the truth.
    rate, decay
        Each correction is ``rate / (1 + decay * pass)`` times the difference of the statistics.
    accept, temperature, best_of
        How the chain walks: see `SampleRank`. The method is derived for valid chains only.
    average, fixed
        As in every `WalkLearner`. Persistent chains begin at the start of their world in the first pass.
    """

    length: int = 1
    persistent: bool = False
    rate: float = 0.1
    decay: float = 0.0
    accept: Accept = "metropolis"
    temperature: float = 1.0
    best_of: int = 1

    def __post_init__(self) -> None:
        check_count("length", self.length)
        check_number("rate", self.rate, above=0)
        check_number("decay", self.decay, least=0)
        acceptance = check_walk(self.accept, self.temperature, self.best_of)
        require(acceptance != BETTER, "accept", self.accept, "a rule that does not look at the truth")

    def _course(self, worlds: Sequence[TrainingWorld], steps: int, engine: EngineName) -> Course:
        """Return how to learn from worlds with a truth."""
        check_worlds(worlds, "truth")
        require(steps >= self.length, "steps", steps, f"at least the length {self.length}")
        arrays = Unit().arrays(worlds[0].model.blocks.size)
        arrays.free[:] = free_weights(worlds[0].model, self.fixed)
        paths = [path_from_truth(arrays, persistent=self.persistent) for _ in worlds]
        waiting = iter(paths)
        walkers = make_walkers(
            worlds,
            engine,
            acceptance=check_walk(self.accept, self.temperature, self.best_of),
            best_of=self.best_of,
            weights=arrays.weights,
            clock=arrays.clock,
            roles=lambda training: path_programs(next(waiting)),
            journal=0 if self.persistent else self.length,
        )
        path_of = {id(walker): path for walker, path in zip(walkers, paths, strict=True)}
        rounds = steps // self.length
        walks = 0

        def walk(walker: Walker, stream: Stream) -> int:
            nonlocal walks
            path = path_of[id(walker)]
            path["rate"][0] = self.rate / (1.0 + self.decay * (walks // len(worlds)))
            if not self.persistent:
                walker.reset(walker.training.truth)
            elif walks < len(worlds):  # from then on the walk adds up the changes of its steps
                enter_path(path, distance_from_truth(walker.training, walker.walk.view))
            walks += 1
            return walker.advance(stream, self.temperature, rounds * self.length, episode=self.length)

        return Course(walk, walkers, arrays, rounds * self.length)


def path_from_truth(arrays: UpdateArrays, *, persistent: bool) -> dict[str, NDArray[Any]]:
    """Return the arrays of `factorwise.kernels.walks.rules.add_to_path` for a walk that starts at the truth.

    persistent
        Whether the chain continues from its current world.
    """
    size = len(arrays.weights)
    return {
        **arrays._asdict(),
        "path": np.zeros(size),
        "rate": np.zeros(1),
        "stays": np.array([persistent], np.int64),
        "named": np.zeros(size, np.int32),
        "many": np.zeros(1, np.int64),
        "known": np.zeros(size, np.uint8),
    }


def enter_path(path: dict[str, NDArray[Any]], distance: Float64s) -> None:
    """Set the distance from the truth of the walk of a path."""
    far = np.flatnonzero(distance)
    path["path"][:], path["known"][:] = distance, distance != 0.0
    path["named"][: len(far)], path["many"][0] = far, len(far)


def path_programs(path: dict[str, NDArray[Any]]) -> dict[str, Program]:
    """Return the rule as programs, by role."""
    return {
        "kept": Program(kept=add_to_path, arrays=path, name="the path"),
        "episode": Program(episode=learn_from_path, arrays=path, name="contrastive divergence"),
    }
