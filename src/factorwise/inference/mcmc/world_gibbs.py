"""Gibbs sampling over worlds of any kind that offer choices: one item chooses given all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from factorwise.inference.mcmc.kernel import Step
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.assignment_proposals import pick
from factorwise.kernels.compile.binding import Interpreted
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.acceptances import choose_by_score
from factorwise.kernels.walks.guards import check_faults
from factorwise.kernels.walks.library import tempered
from factorwise.model.model import Model
from factorwise.rng import Stream


@dataclass(frozen=True)
class WorldGibbs:
    """Draw a random item, then its target among those that the world offers it (``world.choices()``)."""

    model: Model

    changes = "one"
    walks_over = ("choices",)

    def programs(self, parts: Surroundings) -> dict[str, Program]:
        """Return the programs that offer what the world offers, and choose by score."""
        return {"support": parts.world.choices(), "choose": Program(choose=choose_by_score, name="Gibbs")}

    def step(self, stream: Stream, world: Any, temperature: float = 1.0) -> Step:
        """Decide one step; draws the item, then the number that picks its target."""
        frame = world.frame(np.zeros(2, np.uint64))
        stays = np.isnan(Interpreted(world.choices(), frame, stream).entry("support")(0))
        check_faults(int(frame.step["overflow"][0]))
        if stays:
            return Step(None, 0.0, 0.0, False)
        source, targets = int(frame.step["source"][0]), frame.choice.targets[: frame.step["choices"][0]]
        diffs: list[Any] = []
        for target in targets.tolist():
            frame.step["changes"], frame.step["target"] = 1, target
            diffs.append(world.diff_of(frame) if target != source else None)
        moved = targets != source
        gains = np.array(
            [self.model.gain(world, diff) if away else 0.0 for diff, away in zip(diffs, moved, strict=True)]
        )
        chosen = pick(stream.uniform(), tempered(gains, temperature))
        return Step(diffs[chosen], float(gains[chosen]), 0.0, bool(moved[chosen]))


@dataclass(frozen=True)
class PartitionGibbs(WorldGibbs):
    """Draw a random item, then its cluster among all clusters and a new one of each type."""

    walks_over = ("n_clusters",)
