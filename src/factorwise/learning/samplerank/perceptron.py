"""Structured perceptron with annealing: correct the weights by the best world minus the truth.

Before each correction, simulated annealing searches for a world with the highest score; if it is not the
truth, the weights move by the difference of the two worlds' statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from factorwise.inference.mcmc.acceptances import METROPOLIS
from factorwise.inference.mcmc.engine import EngineName
from factorwise.inference.mcmc.schedules import Geometric, Schedule
from factorwise.kernels.walks.loops import CLOCK, STEPS, UPDATES
from factorwise.learning.samplerank.learner import Course, WalkLearner, free_weights
from factorwise.learning.samplerank.walkers import (
    TrainingWorld,
    Walker,
    check_worlds,
    distance_from_truth,
    make_walkers,
)
from factorwise.learning.updates import Unit
from factorwise.rng import Stream
from factorwise.validation import check_count, check_number

LOOKS = 50  # temperatures of one annealing


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredPerceptron(WalkLearner):
    """Learner that compares the truth with the world in which annealing ends.

    rate
        Multiple of the difference of the statistics that is added.
    schedule
        Temperatures of the annealing; by default geometric from 2 to 0.02.
    average, fixed
        As in every `WalkLearner`, where each search counts as a step.
    """

    rate: float = 1.0
    schedule: Schedule = field(default_factory=Geometric)

    def __post_init__(self) -> None:
        check_number("rate", self.rate, above=0)

    def _course(self, worlds: Sequence[TrainingWorld], steps: int, engine: EngineName) -> Course:
        """Return how to search with ``steps`` steps of annealing in each world."""
        check_worlds(worlds, "truth")
        check_count("steps", steps)
        arrays = Unit().arrays(worlds[0].model.blocks.size)
        free = free_weights(worlds[0].model, self.fixed)
        searching = np.zeros(CLOCK, np.int64)  # the clock of the rule counts searches
        walkers = make_walkers(worlds, engine, acceptance=METROPOLIS, weights=arrays.weights, clock=searching)
        ends = np.linspace(0, steps, min(LOOKS, steps) + 1).astype(int).tolist()

        def search(walker: Walker, stream: Stream) -> int:
            walker.reset(walker.training.start)
            changed = 0
            for begin, end in pairwise(ends):
                temperature = self.schedule.temperature((begin + end) / 2 / steps)
                changed += walker.advance(stream, temperature, end - begin)
            distance = free * distance_from_truth(walker.training, walker.walk.view)
            if distance.any():
                arrays.weights[:] -= self.rate * distance
                arrays.drift[:] -= arrays.clock[STEPS] * self.rate * distance
                arrays.clock[UPDATES] += 1
                arrays.largest[0] = max(arrays.largest[0], float(distance @ distance))
            arrays.clock[STEPS] += 1
            return changed

        return Course(search, walkers, arrays, steps)
