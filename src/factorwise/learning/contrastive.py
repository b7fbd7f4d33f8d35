"""Contrastive divergence: learn from where a few steps lead, away from the truth.

The likelihood's gradient is the statistics of the truth minus their mean under the model. Contrastive
divergence puts the statistics of one world in place of the mean: the one that ``length`` steps of a chain
reach from the truth or, in the persistent form, the one where a chain stands that never starts anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import require
from factorwise.inference.mcmc.engine import EngineName
from factorwise.inference.mcmc.gradient_engine import Acceptance, Manner
from factorwise.learning.samplerank import Callback, Learned, free_weights, learn_by_passes
from factorwise.learning.updates import Unit
from factorwise.learning.walkers import TrainingWorld, Walker, check_worlds, make_walker
from factorwise.rng import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastiveDivergence:
    """Learner that pulls the model from the worlds its chain drifts to, towards the truth.

    length
        Steps of the chain between two corrections: k of CD-k.
    persistent
        Let the chain go on from where it was, not from the truth.
    rate, decay
        Each correction is ``rate / (1 + decay * pass)`` times the difference of the statistics.
    accept, temperature, best_of
        How the chain goes: see `Manner`. Only ``metropolis`` is what the method is derived for.
    average
        Return the mean of the weights over all steps, not the last ones.
    fixed
        Names of blocks of weights that are held as they are given.
    """

    length: int = 1
    persistent: bool = False
    rate: float = 0.1
    decay: float = 0.0
    accept: Acceptance = "metropolis"
    temperature: float = 1.0
    best_of: int = 1
    average: bool = True
    fixed: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        require(self.length >= 1, "length", self.length, "at least 1")
        require(self.rate > 0, "rate", self.rate, "greater than zero")
        require(self.decay >= 0, "decay", self.decay, "zero or more")
        require(self.accept != "truth", "accept", self.accept, "a rule that does not look at the truth")
        Manner(self.accept, self.temperature, self.best_of).check()

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
        """Walk about ``steps`` steps in each world, ``passes`` times over.

        Persistent chains begin at the start of their world in the first pass.
        """
        check_worlds(worlds, "truth")
        require(steps >= self.length, "steps", steps, f"at least the length {self.length}")
        arrays = Unit().arrays(worlds[0].model.blocks.size)
        free = free_weights(worlds[0].model, self.fixed)
        manner = Manner(self.accept, self.temperature, self.best_of)
        rounds = steps // self.length
        walks = 0

        def walk(walker: Walker, stream: Stream) -> int:
            nonlocal walks
            done = walks // len(worlds)
            walks += 1
            if not self.persistent:
                walker.reset(walker.training.truth)
            return walker.contrast(
                stream,
                manner,
                arrays,
                rate=self.rate / (1.0 + self.decay * done),
                length=self.length,
                rounds=rounds,
                persistent=self.persistent,
                free=free,
            )

        return learn_by_passes(
            walk,
            [make_walker(training, engine) for training in worlds],
            arrays,
            passes=passes,
            steps=rounds * self.length,
            seed=seed,
            weights=weights,
            average=self.average,
            progress=progress,
            callback=callback,
        )
