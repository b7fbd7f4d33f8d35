"""SampleRank: learn from the atomic gradients of a walk which of two neighboring worlds is better.

A walk proposes a step. If the preference says that one of the two worlds is better and the model does not
rank it higher, by the margin of the update rule, the weights are corrected along the difference of their
statistics, and the walk continues with the new weights. No inference is ever run to convergence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from factorwise.inference.mcmc.engine import EngineName
from factorwise.inference.mcmc.run import PROGRESS_AFTER
from factorwise.kernels.walks.loops import MISRANKED, STEPS, UPDATES
from factorwise.learning.samplerank.walkers import (
    Accept,
    TrainingWorld,
    Walker,
    check_walk,
    check_worlds,
    make_walkers,
)
from factorwise.learning.updates import UpdateArrays, UpdateRule, as_rule, averaged
from factorwise.model.model import Model
from factorwise.rng import Stream, as_stream
from factorwise.types import Float64s
from factorwise.validation import check_count, check_number


class PassRecord(NamedTuple):
    """The record of one pass over the training worlds.

    number
        Number of the pass, from 1.
    steps, updates, misranked
        Number of steps, of corrections of the weights, and of better worlds that did not score higher than
        their neighbors.
    accepted
        Share of the steps that changed the world.
    value
        Mean metric of the worlds in which the walks ended; NaN without a metric.
    """

    number: int
    steps: int
    updates: int
    misranked: int
    accepted: float
    value: float


@dataclass(frozen=True, slots=True)
class Learned:
    """Learned weights, and a record of the learning.

    weights
        The weights to use: the mean over all steps if the learner averages, else the last weights.
    last, mean
        The last weights and the mean.
    radius
        Largest norm of a gradient that led to an update: R of the mistake bounds.
    history
        One record per pass.
    interrupted
        Whether Ctrl-C ended the learning early.
    """

    weights: Float64s
    last: Float64s
    mean: Float64s
    radius: float
    history: list[PassRecord]
    interrupted: bool

    @property
    def updates(self) -> int:
        """The number of corrections: the mistakes that the bounds count, for unit steps from zero weights."""
        return sum(record.updates for record in self.history)


Callback = Callable[[PassRecord, Float64s], object]


class Course(NamedTuple):
    """How a learner goes through its training worlds.

    walk
        Learns in one world and returns how many of its ``steps`` changed it.
    walkers, arrays
        The worlds, and the weights with what the rule keeps of them.
    """

    walk: Callable[[Walker, Stream], int]
    walkers: Sequence[Walker]
    arrays: UpdateArrays
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkLearner(ABC):
    """A learner that walks over training worlds, in passes.

    average
        Return the mean of the weights over all steps instead of the last weights.
    fixed
        Names of blocks of weights that do not change.
    """

    average: bool = True
    fixed: tuple[str, ...] = field(default=())

    @abstractmethod
    def _course(self, worlds: Sequence[TrainingWorld], steps: int, engine: EngineName) -> Course:
        """Return how to learn from worlds, after checking that they have what the learner needs."""

    def fit(
        self,
        worlds: Sequence[TrainingWorld],
        *,
        passes: int = 10,
        steps: int = 4_000,
        seed: int | np.random.Generator | Stream = 0,
        weights: ArrayLike | None = None,
        engine: EngineName = "auto",
        progress: bool = True,
        callback: Callback | None = None,
    ) -> Learned:
        """Walk about ``steps`` steps in each world, in ``passes`` passes with a new random order each.

        worlds
            The training worlds.
        passes, steps
            Number of passes, and of steps per world and pass.
        seed
            A whole number, or a NumPy ``Generator``.
        weights
            Initial weights; zero by default.
        engine
            "auto" (the default), "compiled" or "plain".
        progress
            Whether to show a progress bar.
        callback
            Called after each pass with its record and the current weights; learning stops if it returns True.

        The result depends only on the worlds, the settings and the seed.
        """
        return self._learn(self._course(worlds, steps, engine), passes, seed, weights, progress, callback)

    def _learn(
        self,
        course: Course,
        passes: int,
        seed: int | np.random.Generator | Stream,
        weights: ArrayLike | None,
        progress: bool,
        callback: Callback | None,
    ) -> Learned:
        """Visit every world once per pass.

        Each visit has its own stream, derived from seed, pass and world.
        """
        check_count("passes", passes)
        walk, walkers, arrays, steps = course
        arrays.weights[:] = walkers[0].training.model.blocks.flat(weights)
        root = as_stream(seed).bits()
        history: list[PassRecord] = []
        interrupted = False
        hidden = None if progress else True
        total = passes * steps * len(walkers)
        with tqdm(total=total, unit="step", unit_scale=True, delay=PROGRESS_AFTER, disable=hidden) as bar:
            try:
                for number in range(1, passes + 1):
                    before = arrays.clock.copy()
                    changed, values = 0, []
                    for index in _shuffled(len(walkers), Stream(root, number)):
                        changed += walk(walkers[index], Stream(root, number, index))
                        values.append(walkers[index].value)
                        bar.update(steps)
                    counts = arrays.clock - before
                    record = PassRecord(
                        number,
                        int(counts[STEPS]),
                        int(counts[UPDATES]),
                        int(counts[MISRANKED]),
                        float(changed / (steps * len(walkers))),
                        float(np.mean(values)),
                    )
                    history.append(record)
                    bar.set_postfix(updates=record.updates, value=f"{record.value:.3f}", refresh=False)
                    current = averaged(arrays) if self.average else arrays.weights.copy()
                    if callback is not None and callback(record, current) is True:
                        break
            except KeyboardInterrupt:
                interrupted = True
        mean, last = averaged(arrays), arrays.weights.copy()
        radius = float(np.sqrt(arrays.largest[0]))
        return Learned(mean if self.average else last, last, mean, radius, history, interrupted)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRank(WalkLearner):
    """Learner that corrects every wrong ranking on its walk.

    update
        The rule: a name ("unit", "mira", "pa", "pa-i", "pa-ii", "cw", "cw-deviation", "arow", "adagrad"), a
        rule from `factorwise.learning.updates`, or your own function (see `OwnRule` there).
    accept
        How the walk decides: a name, an `Acceptance` or a function of (random, move). ``metropolis``,
        ``barker``: a valid chain. ``unbalanced``: Metropolis without the proposer's Hastings ratio.
        ``greedy``: accept higher scores. ``always``: accept everything. ``truth``: accept what the preference
        finds better and, of equally good worlds, the one that scores higher. The theory does not require a
        valid chain.
    temperature
        For acceptances that use one.
    best_of
        Draw this many proposals and consider the one with the highest gain: a proposer informed by the model,
        whose Hastings ratio is unknown.
    average, fixed
        As in every `WalkLearner`.
    """

    update: str | UpdateRule | Callable[..., float] = "mira"
    accept: Accept = "metropolis"
    temperature: float = 1.0
    best_of: int = 1

    def __post_init__(self) -> None:
        check_walk(self.accept, self.temperature, self.best_of)
        as_rule(self.update)

    def fit(
        self,
        worlds: Sequence[TrainingWorld],
        *,
        passes: int = 10,
        steps: int = 4_000,
        restart: bool = True,
        truth_starts: float = 0.0,
        seed: int | np.random.Generator | Stream = 0,
        weights: ArrayLike | None = None,
        engine: EngineName = "auto",
        progress: bool = True,
        callback: Callback | None = None,
    ) -> Learned:
        """Walk ``steps`` steps in each world, in ``passes`` passes; further arguments as in `WalkLearner`.

        restart
            Start each walk again instead of where the last pass left it.
        truth_starts
            Share of the walks that start at the truth instead of the world's start: near the truth the model
            must rank finely, and a walk from afar may not reach these worlds.
        """
        course = self._course(worlds, steps, engine, restart=restart, truth_starts=truth_starts)
        return self._learn(course, passes, seed, weights, progress, callback)

    def _course(
        self,
        worlds: Sequence[TrainingWorld],
        steps: int,
        engine: EngineName,
        *,
        restart: bool = True,
        truth_starts: float = 0.0,
    ) -> Course:
        """Return how to learn from worlds with a preference."""
        check_worlds(worlds, "preference")
        check_count("steps", steps)
        check_number("truth_starts", truth_starts, least=0, most=1)
        if truth_starts > 0.0:
            check_worlds(worlds, "truth")
        rule = as_rule(self.update)
        arrays = rule.arrays(worlds[0].model.blocks.size)
        arrays.free[:] = free_weights(worlds[0].model, self.fixed)
        program = rule.program(arrays)
        walkers = make_walkers(
            worlds,
            engine,
            acceptance=check_walk(self.accept, self.temperature, self.best_of),
            best_of=self.best_of,
            weights=arrays.weights,
            clock=arrays.clock,
            roles=lambda training: {"update": program},
            judged=True,
        )

        def walk(walker: Walker, stream: Stream) -> int:
            if restart:
                at_truth = stream.uniform() < truth_starts
                walker.reset(walker.training.truth if at_truth else walker.training.start)
            return walker.advance(stream, self.temperature, steps)

        return Course(walk, walkers, arrays, steps)


def free_weights(model: Model, fixed: Sequence[str]) -> Float64s:
    """Return 1 for each weight that may be learned and 0 for those in ``fixed`` blocks."""
    free = np.ones(model.blocks.size)
    for name in fixed:
        free[model.blocks.slice_of(name)] = 0.0
    return free


def _shuffled(count: int, stream: Stream) -> list[int]:
    """Return the numbers below ``count`` in random order."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        chosen = stream.below(last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order
