"""Gibbs sampling over clusterings: one item placed anew given all the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

from factorwise.arguments import check_types
from factorwise.inference.mcmc.kernel import Step, tempered
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.acceptances import choose_by_score
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.diff import NEW, PartitionDiff, Retype, Transfer
from factorwise.world.partition import Partition


@check_types
@dataclass(frozen=True)
class PartitionGibbs:
    """Draw a random item, then its place among all clusters and a cluster of its own of each type."""

    model: Model

    changes = "one"
    walks_over = ("n_clusters",)

    def programs(self, parts: Surroundings) -> dict[str, Program]:
        """Offer a random item every cluster and new ones; choose by score."""
        return {"support": parts.world.choices(), "choose": Program(choose=choose_by_score, name="Gibbs")}

    def choices(self, world: Partition, item: int) -> list[PartitionDiff | None]:
        """Every place for ``item``: the clusters in storage order (None is where it is), then new ones."""
        source = world.cluster_of(item)
        places: list[PartitionDiff | None] = [
            None if target == source else Transfer((item,), source, target)
            for target in world.cluster_ids().tolist()
        ]
        if world.size_of(source) > 1:
            places += [Transfer((item,), source, NEW, kind) for kind in range(world.n_types)]
        else:
            old = world.type_of(source)
            places += [Retype(source, old, kind) for kind in range(world.n_types) if kind != old]
        return places

    def _chances(
        self, world: Partition, item: int, temperature: float
    ) -> list[tuple[PartitionDiff | None, float, float]]:
        places = self.choices(world, item)
        gains = [0.0 if diff is None else self.model.gain(world, diff) for diff in places]
        top = max(gains)
        return [
            (diff, gain, math.exp(tempered(gain - top, temperature)))
            for diff, gain in zip(places, gains, strict=True)
        ]

    def step(self, stream: Stream, world: Partition, temperature: float = 1.0) -> Step:
        """Draw an item and its place."""
        weighed = self._chances(world, stream.below(world.n_items), temperature)
        threshold = stream.uniform() * sum(weight for _, _, weight in weighed)
        diff, gain, _ = weighed[-1]
        for diff, gain, weight in weighed:  # noqa: B007  # the last one tried is the one drawn
            threshold -= weight
            if threshold < 0.0:
                break
        return Step(diff, gain, 0.0, diff is not None)
