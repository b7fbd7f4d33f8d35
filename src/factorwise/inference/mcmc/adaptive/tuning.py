"""Tune an adaptive proposer by rounds of the cross-entropy method over the jumps from one world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from factorwise.inference.cross_entropy import elite_of
from factorwise.inference.mcmc.adaptive.family import JumpFamily, Lesson
from factorwise.inference.mcmc.adaptive.jumps import Jump, Jumps
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.adaptive.jump_odds import MOVE
from factorwise.rng import Stream
from factorwise.types import Float64s
from factorwise.validation import check_count, check_number

By = Literal["score", "truth"]


SMALLEST_KIND = 0.05  # share that each kind of jump keeps, however rarely it is good


@dataclass(frozen=True)
class Tuning:
    """How a proposer is tuned.

    every
        Number of jumps from one round to the next.
    iterations, samples
        How often a round draws jumps and fits the weights, and how many jumps it draws each time.
    elite
        Share of an iteration's jumps to learn from.
    remember
        Once improving jumps were found, learn from all that the round has found, each once, instead of an
        iteration's elite: the weights then describe all that is left to improve, not only the best. False is
        the published method.
    smoothing
        How far the weights move towards the fitted ones.
    ridge
        Pulls the weights towards zero, in units of the features' variances.
    kinds
        Whether the odds of splits, merges and moves are learned, too.
    """

    every: int = 5
    iterations: int = 20
    samples: int = 50
    elite: float = 0.1
    remember: bool = True
    smoothing: float = 0.7
    ridge: float = 0.1
    kinds: bool = True

    def __post_init__(self) -> None:
        check_count("every", self.every)
        check_count("iterations", self.iterations)
        check_count("samples", self.samples)
        check_number("elite", self.elite, above=0, most=1)
        check_number("smoothing", self.smoothing, above=0, most=1)
        check_number("ridge", self.ridge, least=0)


class TuningRound(NamedTuple):
    """The result of a tuning round.

    best
        The best jump that was drawn; None if no jump is possible.
    lesson
        The jumps that it learned from last, for learning from many rounds.
    """

    best: Jump | None
    lesson: Lesson


def tune(walk: Walk | Jumps, tuning: Tuning, stream: Stream, *, by: By = "score") -> TuningRound:
    """Tune the proposer of a walk to the jumps from its current world, which does not change.

    by
        What makes a jump good: the model's ``score``, or ``truth``, which is how much better the walk's
        preference rates the new world.

    Implements: rohanimanesh2009inference, Alg. 2 as Alg. 3 calls it.
    """
    source = walk if isinstance(walk, Jumps) else Jumps(walk)
    family = JumpFamily(source)
    weights, best, elite = source.weights, None, list[Jump]()
    good: dict[tuple[object, ...], Jump] = {}
    for _ in range(tuning.iterations):
        source.weights = weights
        jumps = source.draw(stream, tuning.samples)
        if not jumps:
            break
        values = np.array([value_of(jump, by) for jump in jumps])
        if best is None or values.max() > value_of(best, by):
            best = jumps[int(values.argmax())]
        elite = [jumps[member] for member in elite_of(values, tuning.elite).members]
        if tuning.remember:
            good |= {_key(jump): jump for jump, value in zip(jumps, values, strict=True) if value > 0.0}
            elite = list(good.values()) or list({_key(jump): jump for jump in elite}.values())
        elif values.min() == values.max():
            continue  # nothing can be learned from jumps that are all equally good
        weights = _towards(weights, _fitted(family, weights, elite, tuning), tuning.smoothing)
    source.weights = weights
    return TuningRound(best, Lesson.of(family, elite))


def value_of(jump: Jump, by: By) -> float:
    """Return how good a jump is."""
    return jump.gain if by == "score" else jump.better


def _key(jump: Jump) -> tuple[object, ...]:
    return jump.kind, jump.source, jump.target, jump.items


def _fitted(family: JumpFamily, weights: JumpWeights, elite: Sequence[Jump], tuning: Tuning) -> JumpWeights:
    shares = np.full(len(elite), 1.0 / len(elite))
    fitted = weights.with_vector(family.fit(elite, shares, weights.vector, tuning.ridge))
    if not tuning.kinds:
        return fitted
    counts = np.bincount([jump.kind for jump in elite], minlength=MOVE + 1) / len(elite)
    return with_kinds(fitted, counts)


def with_kinds(weights: JumpWeights, shares: Float64s) -> JumpWeights:
    """Return the weights with kinds in the proportion in which they were good.

    Every kind that was possible keeps a minimum, and one that was never drawn stays impossible.
    """
    allowed = np.array(weights.kinds) > 0
    kinds = np.where(allowed, np.maximum(shares, SMALLEST_KIND), 0.0)
    return replace(weights, kinds=tuple(kinds.tolist()))


def _towards(old: JumpWeights, fitted: JumpWeights, smoothing: float) -> JumpWeights:
    """Move part of the way from one set of weights to another."""
    vector = smoothing * fitted.vector + (1.0 - smoothing) * old.vector
    before, after = (np.array(kinds) / sum(kinds) for kinds in (old.kinds, fitted.kinds))
    kinds = tuple((smoothing * after + (1.0 - smoothing) * before).tolist())
    return replace(old.with_vector(vector), kinds=kinds)
