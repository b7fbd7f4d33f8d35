"""The adaptive split-merge proposer, whose program keeps the odds of all jumps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import JumpWeights, Parts, check_law
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.clusterings.adaptive.jump_draws import allocate_members, draw_jump
from factorwise.kernels.clusterings.adaptive.jump_features import begin_odds, update_odds, weigh_aside
from factorwise.kernels.compile.binding import Framed
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.world.partition import Partition

LARGEST_WORLD = 10_000  # items; three squares of numbers then take 2.4 GB


@dataclass(frozen=True, eq=False)
class AdaptiveSplitMerge(ProgramProposer):
    """Split clusters that look mixed and merge pairs that look alike, by weights of its own.

    features
        The features of clusters and of pairs of clusters that it reads.
    weights
        Learned weights; None, the default, is the uniform split-merge proposer.
    explore
        Share of the choices of clusters and pairs that are made uniformly.
    parts
        How a cluster is split: with ``uniform``, all ways are equally likely; with ``guided``, two members
        are drawn to be separated, and the others join one side or the other, one by one, by their affinity
        with it.

    Its weights do not change while it proposes, so Metropolis-Hastings with it is exact. Implements:
    rohanimanesh2009inference, Eq. 10, 11.
    """

    features: JumpFeatures
    weights: JumpWeights | None = None
    explore: float = 0.1
    parts: Parts = "uniform"
    changes = "many"

    def __post_init__(self) -> None:
        check_law(self.explore, self.parts)
        if not isinstance(self.features, JumpFeatures):
            raise InvalidArgumentError(
                f"an adaptive proposer needs features, but {type(self.features).__name__} was given:"
                " use AdaptiveSplitMerge(JumpFeatures(model))."
            )
        if self.weights is None:
            object.__setattr__(self, "weights", JumpWeights.zero(self.features.names))
        elif self.weights.names != self.features.names:
            raise InvalidArgumentError(
                f"the weights are for features {list(self.weights.names)[:5]} and so on, but the"
                f" proposer has {list(self.features.names)[:5]}: choose the same features, of models"
                " with the same templates."
            )

    worlds = (Partition,)

    @property
    def learned(self) -> JumpWeights:
        """The weights; zero weights if none were given."""
        assert self.weights is not None
        return self.weights

    def with_weights(self, weights: JumpWeights) -> AdaptiveSplitMerge:
        """Return the proposer with other weights."""
        return replace(self, weights=weights)

    def check(self, world: Partition) -> None:
        """Refuse a world that is too large, or whose clusters have types.

        A merge of clusters with types would have to choose a type.
        """
        super().check(world)
        if world.n_types > 1:
            raise InvalidArgumentError(
                f"adaptive jumps need clusters without types, but the world has {world.n_types} types:"
                " use a PartitionMixture of Merge, Split and RetypeCluster."
            )
        if world.n_items > LARGEST_WORLD:
            raise InvalidArgumentError(
                "adaptive jumps keep tables with an entry per pair of items, which are too large for"
                f" {world.n_items} items: the limit is {LARGEST_WORLD}, so use one document or block at"
                " a time."
            )

    def program(self, parts: Surroundings) -> Program:
        """Draw a jump by its odds, in a clustering of its own that follows the walk's."""
        self.check(parts.world)
        own = parts.world.copy()
        n, ids = own.n_items, len(own.arrays.size)
        pairs = self.features.seen(Partition.singletons(n), pairwise=True)
        rest = self.features.seen(own, pairwise=False)
        arrays = {
            **rest.frame.world._asdict(),
            "settings": np.array([*self.learned.kinds, self.explore]),
            "state": np.array([self.parts == "guided", parts.ratio, 1, 0, 0, 0, 0, 0], np.int64),
            "kind": np.full(1, -1, np.int64),
            "split": self.learned.split.copy(),
            "merge": self.learned.merge.copy(),
            "affinity": np.zeros((n, n)),
            "content": np.zeros((n, n)),
            "pairs": Pointers(pairs.templates, ("gradient",)),
            "pair_step": pairs.frame.step,
            "pair_value": pairs.frame.gradient.value,
            "pair_index": pairs.at,
            "pair_place": pairs.place,
            "rest": Pointers(rest.templates, ("gradient", "applied", "begin")),
            "step": rest.frame.step,
            "value": rest.frame.gradient.value,
            "index": rest.at,
            "place": rest.place,
            "apply": Pointers([Framed(own.program(), rest.frame)], ("apply",)),
            "split_odds": np.zeros(ids),
            "merge_odds": np.zeros((ids, ids)),
            "sums": np.zeros((ids, 3)),
            "near": np.zeros(ids),
            "dirty": np.zeros(ids, np.int32),
            "changed": np.zeros(ids, np.int32),
            "before": np.zeros(n, np.int32),
            "ends": np.zeros(2, np.int64),
            "kept": np.zeros((2, ids + 1)),
            "sides": np.zeros(4, np.int64),
            "items": np.zeros(n, np.int32),
            "moved": np.zeros(n, np.int32),
        }
        functions = (begin_odds, update_odds, weigh_aside)
        odds = [Program(begin=function, arrays=arrays, name="odds of jumps") for function in functions]
        guide = (
            [Program(draw=allocate_members, arrays=arrays, name="guided parts")]
            if self.parts == "guided"
            else []
        )
        arrays |= {"odds": Pointers(odds, ("begin",)), "guide": Pointers(guide, ("draw",))}
        return JumpProgram(self, Program(draw=draw_jump, arrays=arrays, name="adaptive jumps"))


class JumpProgram(Program):
    """The program of an adaptive proposer, with a reference to the proposer."""

    proposer: AdaptiveSplitMerge

    def __init__(self, proposer: AdaptiveSplitMerge, program: Program) -> None:
        vars(self).update(vars(program), proposer=proposer)
