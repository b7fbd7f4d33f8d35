"""SampleRank over linked records: weights of links and of further templates, from known entities.

A walk moves a random record to the cluster of one that it is linked with, or to one of its own. The truth
says what the move does to B-cubed F1, and a move that the weights rank the other way corrects them. Links
have a score that was learned before, with one weight, its slope; or they have comparison levels with
cumulative weights: what is learned of one level moves those above it along.
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

EACH = 5  # steps for a record in a walk, however many there are


SLOPE = (1,)  # sizes of the weights of links that have a score: the slope stands where a level would
LEAST_SLOPE = 0.05


class Weights(NamedTuple):
    """Weights of links, and of the further templates in turn."""

    links: LevelWeights
    further: NDArray[np.float64]

    @classmethod
    def of_scores(cls, unlinked: float, further: NDArray[np.float64]) -> Weights:
        """Return the weights under which links count as much as their scores say."""
        return cls(LevelWeights(SLOPE, np.array([unlinked, 0.0, 0.0, 1.0])), further)

    def in_units_of_scores(self) -> Weights:
        """Return weights that rank clusterings alike, with a slope of one: scores count as they are."""
        slope = max(float(self.links.values[-1]), LEAST_SLOPE)
        return Weights(LevelWeights(SLOPE, self.links.values / slope), self.further / slope)


@dataclass(frozen=True, slots=True)
class LinkTraining:
    """How weights are learned by walks.

    passes, steps, fewest, most
        Each pass walks twice, from every record by itself and from the truth, by ``steps`` steps per record,
        but by ``fewest`` at least and ``most`` at most, unless that were fewer than five per record.
    cap, margin
        Largest multiple of a gradient that one update adds, and the lead that a move which gains one record's
        worth of B-cubed F1 shall have.
    temperature
        Of the walk, which follows the weights as they are learned.
    alone
        How often a cluster of its own is proposed to a record.
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
        """Return the mean of the weights over all steps, from those given.

        data
            Links count by their scores where these are given (``offset``), and else by their levels.
        fixed
            Names of templates whose weights stay as they are.
        mixer
            Who takes the walks, in shards; None for one after the other here.
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
        """Return what is learned from: walks from every record by itself, and from the truth."""
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
        """Return how many steps a walk over so many records takes."""
        return int(np.clip(self.steps * n_items, self.fewest, max(self.most, EACH * n_items)))
