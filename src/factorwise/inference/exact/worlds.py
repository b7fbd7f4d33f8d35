"""Every world of a few items: the reference for samplers over matchings, permutations, trees and others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.model.model import Model
from factorwise.types import Float64s
from factorwise.world.targets import TargetWorld

LIMIT = 50_000


def all_worlds(world: TargetWorld, limit: int = LIMIT) -> list[TargetWorld]:
    """Return every world that changes of one item at a time can reach, ``world`` first.

    limit
        The largest number of worlds.
    """
    known = {world.canonical()}
    worlds = [world.copy()]
    for current in worlds:  # the list grows
        for diff in current.single_changes():
            neighbor = current.after(diff)
            if neighbor.canonical() not in known:
                known.add(neighbor.canonical())
                worlds.append(neighbor)
        if len(worlds) > limit:
            raise InvalidArgumentError(
                f"there are more than {limit} worlds like {world!r}: use fewer items, or sample with MCMC."
            )
    return worlds


class WorldEnumeration:
    """The distribution of a model over all worlds.

    model
        The model that scores each of them.
    worlds
        Each world once.
    temperature
        Scores are divided by it.
    """

    def __init__(self, model: Model, worlds: Sequence[Any], *, temperature: float = 1.0) -> None:
        self.worlds = list(worlds)
        self.scores = np.array([model.score(world) for world in self.worlds])
        if not np.isfinite(self.scores).any():
            raise ImpossibleError(
                "the model gives probability zero to every world: check for constraints that"
                " contradict each other."
            )
        self.temperature = temperature

    @cached_property
    def log_partition(self) -> float:
        """Log of the sum over all worlds of exp(score / temperature)."""
        scaled = self.scores / self.temperature
        return float(scaled.max() + np.log(np.exp(scaled - scaled.max()).sum()))

    @cached_property
    def probabilities(self) -> Float64s:
        """Probability of each world, in the order of ``worlds``."""
        return np.exp(self.scores / self.temperature - self.log_partition)

    @property
    def best(self) -> Any:
        """A world with the highest score."""
        return self.worlds[int(self.scores.argmax())]

    def marginals(self) -> Float64s:
        """Return the probability of each target of each item: float64[items, targets]."""
        first = self.worlds[0]
        result = np.zeros((len(first.values), first.n_targets))
        for world, probability in zip(self.worlds, self.probabilities, strict=True):
            result[np.arange(len(result)), world.values] += probability
        return result
