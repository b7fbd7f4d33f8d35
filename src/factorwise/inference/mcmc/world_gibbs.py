"""Gibbs sampling over worlds in which every item has a target: one item chooses given all the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factorwise.inference.mcmc.kernel import Step, tempered
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.assignment_proposals import pick
from factorwise.kernels.compile.programs import Interpreted, Program
from factorwise.kernels.walks.acceptances import choose_by_score
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.targets import TargetWorld


@dataclass(frozen=True)
class WorldGibbs:
    """Draw a random item, then its target among those that the world offers it (``world.choices()``)."""

    model: Model

    changes = "one"
    walks_over = ("choices",)

    def programs(self, parts: Surroundings) -> dict[str, Program]:
        """Offer what the world offers; choose by score."""
        return {"support": parts.world.choices(), "choose": Program(choose=choose_by_score, name="Gibbs")}

    def step(self, stream: Stream, world: TargetWorld, temperature: float = 1.0) -> Step:
        """Decide one step."""
        frame = world.frame(np.zeros(2, np.uint64))
        if np.isnan(Interpreted(world.choices(), frame, stream).entry("support")(0)):
            return Step(None, 0.0, 0.0, False)
        item, source, count = (int(frame.step[name][0]) for name in ("item", "source", "choices"))
        diffs = [world.diff_to(item, source, target) for target in frame.choice.targets[:count].tolist()]
        moved = frame.choice.targets[:count] != source
        gains = np.array(
            [self.model.gain(world, diff) if away else 0.0 for diff, away in zip(diffs, moved, strict=True)]
        )
        chosen = pick(stream.uniform(), tempered(gains, temperature))
        return Step(diffs[chosen], float(gains[chosen]), 0.0, bool(moved[chosen]))
