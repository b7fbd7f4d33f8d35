"""Decoding by adaptive jumps: climb to the best world while learning which jumps improve it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from factorwise.errors import InvalidArgumentError, require
from factorwise.inference.mcmc.adaptive.family import Lesson
from factorwise.inference.mcmc.adaptive.jumps import Jump, Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import By, Tuning, tune, value_of
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.run import PROGRESS_AFTER
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.binding import Bound
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import run
from factorwise.model.model import Model
from factorwise.rng import Stream, as_stream
from factorwise.types import Float64s
from factorwise.validation import check_count, check_number
from factorwise.world.partition import Partition


class DecodingTruth(Protocol):
    """The truth about a world's items, such as `learning.TruthPreference`."""

    def program(self, parts: Surroundings) -> Program:
        """Return the program with ``judge`` and ``value``, and the functions that update what these read."""
        ...


@dataclass(frozen=True)
class Decoded:
    """The result of decoding by adaptive jumps.

    world, score
        The best world and its score; the walk only climbs, so it is the last world.
    value
        Its metric against the truth, if there is one; else NaN.
    weights
        The weights of the proposer at the end, from which another document may start.
    trace : float64[jumps + 1]
        The score or metric that was climbed, before and after each jump.
    factors_seen, odds_seen
        Number of factors examined to judge jumps, and of pairs of items examined for their odds.
    converged
        Whether jumps stopped improving the world before all ``jumps`` were made.
    """

    world: Partition
    score: float
    value: float
    weights: JumpWeights
    trace: Float64s
    factors_seen: int
    odds_seen: int
    converged: bool

    @property
    def jumps(self) -> int:
        """Number of jumps that were proposed, whether accepted or not."""
        return len(self.trace) - 1


def decode(
    model: Model,
    start: Partition,
    proposer: AdaptiveSplitMerge,
    *,
    tuning: Tuning | None = None,
    samples: int = 5,
    by: By = "score",
    truth: DecodingTruth | None = None,
    jumps: int = 10_000,
    until: float = math.inf,
    tolerance: float = 0.0,
    patience: int = 50,
    seed: int | np.random.Generator | Stream = 0,
    progress: bool = True,
) -> Decoded:
    """Climb from ``start``: repeatedly draw jumps and make the best of them if it improves the world.

    tuning
        How the proposer is tuned on the way; None keeps its weights. The jump of a tuning round is the best
        of all that the round drew.
    samples
        How many jumps are drawn for each jump between tuning rounds.
    by, truth
        What to climb: the model's ``score``, or the metric against the ``truth``, for example a
        `learning.TruthPreference`. A truth that is not climbed is only reported in the result.
    jumps, until
        Stop after this many jumps, or as soon as the score or metric reaches ``until``.
    tolerance, patience
        Stop when ``patience`` jumps in a row improved by no more than ``tolerance``. The published algorithm
        tunes before every jump and has a patience of one.

    Implements: rohanimanesh2009inference, Alg. 3 and the schedule of Sec. 5.
    """
    check_count("samples", samples)
    check_count("jumps", jumps, 0)
    check_number("tolerance", tolerance, least=0)
    check_count("patience", patience)
    require(by in ("score", "truth"), "by", by, "'score' or 'truth'")
    require(not math.isnan(until), "until", until, "a number")
    climb = Climb(model, proposer, start, by, truth, as_stream(seed))
    with tqdm(total=jumps, unit="jump", delay=PROGRESS_AFTER, disable=None if progress else True) as bar:
        idle = climb.run(
            samples, tuning, jumps=jumps, until=until, tolerance=tolerance, patience=patience, bar=bar
        )
    walk = climb.jumps.walk
    return Decoded(
        world=walk.world,
        score=walk.score,
        value=climb.value,
        weights=climb.jumps.weights,
        trace=np.array(climb.trace),
        factors_seen=walk.factors_seen,
        odds_seen=climb.jumps.odds_seen,
        converged=idle >= patience,
    )


class Climb:
    """A walk that only climbs.

    trace
        The score or metric that is climbed, before and after each jump.
    lessons
        The good jumps of each tuning round, if ``keep_lessons`` is set; each holds the features of a whole
        world.
    """

    def __init__(
        self,
        model: Model,
        proposer: AdaptiveSplitMerge,
        start: Partition,
        by: By,
        truth: DecodingTruth | None,
        stream: Stream,
        *,
        keep_lessons: bool = False,
    ) -> None:
        judge = None if truth is None else truth.program(Surroundings(start, model))
        roles: dict[str, Any] = {} if judge is None else {"judge": judge}
        self.jumps = Jumps(Walk(Metropolis(model, proposer, acceptance="greedy"), start, **roles))
        self._by: By = by
        self._judge = None if judge is None else Bound(judge, self.jumps.walk.frame)
        self._stream = stream
        self._keep_lessons = keep_lessons
        if by == "truth" and math.isnan(self.value):
            raise InvalidArgumentError(
                "there is no truth to climb: give truth=, with the entities of at least some items."
            )
        self.trace = [self.height]
        self.lessons: list[Lesson] = []

    @property
    def value(self) -> float:
        """The metric against the truth; NaN without one."""
        if self._judge is None:
            return math.nan
        run(self._judge, "begin")
        return run(self._judge, "value")

    @property
    def height(self) -> float:
        """The score or metric that is climbed."""
        return self.value if self._by == "truth" else self.jumps.walk.score

    def run(
        self,
        samples: int,
        tuning: Tuning | None,
        *,
        jumps: int,
        patience: int,
        until: float = math.inf,
        tolerance: float = 0.0,
        bar: tqdm[Any] | None = None,
    ) -> int:
        """Climb; return the number of jumps at the end that improved nothing."""
        idle = 0
        while len(self.trace) <= jumps and idle < patience and self.trace[-1] < until:
            tuned = tuning if tuning is not None and (len(self.trace) - 1) % tuning.every == 0 else None
            idle = 0 if self._jump(samples, tuned, tolerance) else idle + 1
            self.trace.append(self.height)
            if bar is not None:
                bar.update()
                bar.set_postfix(height=f"{self.trace[-1]:.6g}", refresh=False)
        return idle

    def _jump(self, samples: int, tuning: Tuning | None, tolerance: float) -> bool:
        """Make one jump; return whether it improved the world."""
        best = self._best_of(samples) if tuning is None else self._tuned(tuning)
        if best is None or value_of(best, self._by) <= tolerance:
            return False
        self.jumps.take(best)
        return True

    def _best_of(self, samples: int) -> Jump | None:
        drawn = self.jumps.draw(self._stream, samples)
        return max(drawn, key=lambda jump: value_of(jump, self._by), default=None)

    def _tuned(self, tuning: Tuning) -> Jump | None:
        best, lesson = tune(self.jumps, tuning, self._stream, by=self._by)
        if self._keep_lessons and best is not None and value_of(best, self._by) > 0.0:
            self.lessons.append(lesson)
        return best
