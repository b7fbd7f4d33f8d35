"""SampleRank over linked records: learn the weights of links and of user-defined templates.

A proposal moves a random record to the cluster of a linked record, or to a new cluster. The true entities
determine how the move changes B-cubed F1, and the weights are updated if they rank the move differently.
Links either have a score that was learned before, with a slope as their only weight, or comparison levels
with cumulative weights, so that an update of one level also moves the levels above it.
Implements: wick2009samplerank, Alg. 1, with passive-aggressive updates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.record_items import LINKS
from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.distributed.mixing import Mixer, TrainingShard, mix_weights, split_items
from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.inference.mcmc.proposals.partition_moves import Relocate, RelocateToCandidate
from factorwise.learning.samplerank.learner import PassRecord, SampleRank
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.learning.updates import PassiveAggressive
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.model.clusterings.link_templates import LinkTemplate
from factorwise.model.model import Model
from factorwise.validation import check_number
from factorwise.world.partition import Partition

EACH = 5  # least steps per record in a walk, even beyond `LinkTraining.most`


SLOPE = (1,)  # level sizes of links that have a score: the slope takes the place of one level
LEAST_SLOPE = 0.05


class Weights(NamedTuple):
    """Weights of links, and the concatenated weights of user-defined templates."""

    links: LevelWeights
    further: NDArray[np.float64]

    @classmethod
    def of_scores(cls, unlinked: float, further: NDArray[np.float64]) -> Weights:
        """Return weights of links that have a score, with a slope of 1 and no shift."""
        return cls(LevelWeights(SLOPE, np.array([unlinked, 0.0, 0.0, 1.0])), further)

    def in_units_of_scores(self) -> Weights:
        """Return weights that rank clusterings in the same way, divided so that the slope is 1."""
        slope = max(float(self.links.values[-1]), LEAST_SLOPE)
        return Weights(LevelWeights(SLOPE, self.links.values / slope), self.further / slope)


@dataclass(frozen=True, slots=True)
class LinkTraining:
    """Settings of SampleRank over linked records.

    passes, steps, fewest, most
        Each pass takes two walks, from singletons and from the true entities, with ``steps`` steps per
        record, but at least ``fewest`` and at most ``most`` in all, or five per record if that is more.
    cap, margin
        The largest step size of an update, and the required score margin of a move that gains one record's
        worth of B-cubed F1.
    temperature
        Temperature of the walk, which uses the current weights.
    alone
        Probability that a move to a new cluster is proposed.
    """

    passes: int = 2
    steps: int = 25
    cap: float = 0.003
    margin: float = 1.0
    temperature: float = 0.3
    alone: float = 0.1
    fewest: int = 5_000
    most: int = 100_000

    def __post_init__(self) -> None:
        for name in ("passes", "steps", "cap", "margin", "temperature", "fewest"):
            require(getattr(self, name) > 0, name, getattr(self, name), "greater than zero")
        check_number("alone", self.alone, above=0, below=1)
        require(self.most >= self.fewest, "most", self.most, f"at least fewest, {self.fewest}")

    def fit(
        self,
        data: TrainingData,
        start: Weights,
        *,
        fixed: tuple[str, ...] = (),
        seed: int = 0,
        mixer: Mixer | None = None,
        on_pass: Callable[[PassRecord], None] | None = None,
    ) -> Weights:
        """Run SampleRank from the given weights, and return the mean of the weights over all steps.

        data
            Training data; links have scores if ``offset`` is given, and comparison levels otherwise.
        fixed
            Names of templates whose weights are not changed.
        mixer
            Runs the walks in shards; None to run them here, one after the other.
        """
        if len(data.entity) != data.graph.n_items:
            raise ShapeError(
                f"{data.graph.n_items} records need an entity each, but {len(data.entity)} have one."
            )
        if not (data.entity >= 0).any():
            raise InvalidArgumentError("nothing can be learned: no record's entity is known.")
        sizes = start.links.sizes
        first = np.concatenate([start.links.steps().values, start.further])
        if mixer is None:
            shard = self.shard(data, sizes, fixed)
            learned = shard.learner.fit(
                shard.worlds,
                passes=self.passes,
                steps=shard.steps,
                seed=seed,
                weights=first,
                progress=False,
                callback=None if on_pass is None else lambda record, _: on_pass(record),
            )
            if learned.interrupted:
                raise KeyboardInterrupt
            values = learned.weights
        else:
            parts = split_items(data.graph, data.entity, mixer.shards, seed)
            shards = [self.shard(data.part(items), sizes, fixed) for items in parts]
            values = mix_weights(
                mixer.executor, shards, first, passes=self.passes, seed=seed, on_pass=on_pass
            )
        size = len(start.links.values)
        return Weights(LevelWeights(sizes, values[:size]).cumulated(), values[size:])

    def shard(self, data: TrainingData, sizes: tuple[int, ...], fixed: tuple[str, ...] = ()) -> TrainingShard:
        """Return a training shard, with walks from singletons and from the true entities."""
        graph, entity = data.graph, data.entity
        n, known = graph.n_items, int((entity >= 0).sum())
        rule = PassiveAggressive(cap=self.cap, margin=self.margin * known, scale_by_gain=True)
        learner = SampleRank(update=rule, accept="unbalanced", temperature=self.temperature, fixed=fixed)
        if data.offset is None:
            links = LinkTemplate(LINKS, n, graph, levels=data.levels, sizes=sizes, cumulative=True)
        else:
            links = LinkTemplate(LINKS, n, graph, features=data.offset[:, None], statistics=["score"])
        candidates = RelocateToCandidate(graph.start, graph.neighbor)
        proposer = Relocate(to_candidate=1.0 - self.alone, to_new=self.alone, candidates=candidates)
        model, preference = Model([links, *data.templates]), TruthPreference(entity, "b-cubed")
        truth = Partition.from_keys(np.where(entity >= 0, entity, entity.max() + 1 + np.arange(n)))
        worlds = [
            TrainingWorld(model=model, proposer=proposer, start=start, preference=preference, truth=truth)
            for start in (Partition.singletons(n), truth)
        ]
        return TrainingShard(worlds, learner, self.walk_length(n))

    def walk_length(self, n_items: int) -> int:
        """Return the number of steps of a walk over ``n_items`` records."""
        return int(np.clip(self.steps * n_items, self.fewest, max(self.most, EACH * n_items)))
