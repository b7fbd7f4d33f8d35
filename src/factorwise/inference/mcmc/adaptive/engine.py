"""Walks by adaptive jumps in compiled code: the odds of all jumps are kept in step with the world."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.gradient_engine import GradientEngine, Manner
from factorwise.kernels.clusterings import gradient_walks as codes
from factorwise.kernels.clusterings.jump_draws import allocate, no_allocation
from factorwise.kernels.clusterings.jump_features import ClusterModel, all_features, part_features
from factorwise.kernels.clusterings.jump_odds import (
    ADDITIVE,
    EXPLORE,
    GUIDED,
    MERGE,
    MOVE,
    JumpArrays,
    spread_odds,
)
from factorwise.kernels.clusterings.jump_ratios import jump_log_ratio, no_log_ratio
from factorwise.kernels.clusterings.jump_walks import JumpSamples, apply_jump, draw_jumps, jump_walk
from factorwise.kernels.clusterings.partition_gradients import transfer_gradient
from factorwise.kernels.clusterings.truth_gains import TruthArrays
from factorwise.kernels.clusterings.updates import UpdateArrays
from factorwise.kernels.compile.compiler import pointer_to
from factorwise.rng import Stream
from factorwise.world.partition import Partition

LARGEST_WORLD = 10_000  # items; two squares of numbers then take 1.6 GB
Pointer = Callable[..., None]

# kernels that may write features get this where they shall not: they make no arrays of their own
_NO_FEATURES = np.zeros((0, 0), np.float32)


class Jump(NamedTuple):
    """A jump that was drawn and judged.

    kind
        SPLIT, MERGE or MOVE.
    items, source, target
        Which items leave which cluster for which.
    row
        Where the pair of clusters, or the cluster to be split, stands among the features of its world.
    gain, better
        Change of the model's score, and of the metric against the truth.
    """

    kind: int
    items: tuple[int, ...]
    source: int
    target: int
    row: int
    gain: float
    better: float


class JumpEngine(GradientEngine):
    """One chain over clusterings whose jumps an `AdaptiveSplitMerge` draws, on a copy of its start.

    odds_seen
        Pairs of items that were looked at to keep the odds of jumps, beside those of `factors_seen`.
    """

    def _lay_out_moves(self, world: Partition) -> None:
        proposer = self.kernel.proposer
        if not isinstance(proposer, AdaptiveSplitMerge):
            raise NoCompiledFormError(f"{type(proposer).__name__} is no AdaptiveSplitMerge.")
        if proposer.features.model is not self.kernel.model:
            raise InvalidArgumentError(
                "the proposer's features are those of another model: build JumpFeatures(model) of the model"
                " that is sampled. Templates with weights of zero add features without a score."
            )
        if proposer.parts == "guided" and len(self._tables.links) > 0:
            raise NoCompiledFormError(
                "guided parts have no compiled form for a table aggregated by 'linked': leave it out, split"
                " uniformly, or run with engine='plain'."
            )
        proposer.check(world)
        if world.n_items > LARGEST_WORLD:
            raise InvalidArgumentError(
                f"adaptive jumps keep a square of odds, which {world.n_items} items would make too large:"
                f" take {LARGEST_WORLD} at the most, such as one document or block at a time."
            )
        n, width = world.n_items, proposer.features.size
        self.proposer = proposer
        self._jumps = JumpArrays(
            settings=np.zeros(6),
            columns=proposer.features.columns,
            split_weights=np.zeros(width),
            merge_weights=np.zeros(width),
            contents=np.zeros((n, width - 1)),
            split_odds=np.zeros(n),
            merge_odds=np.zeros((n, n)),
            between=np.zeros((n, n)),
            sums=np.zeros((n, 3)),
            gradient=np.zeros(self.kernel.model.blocks.size),
            other=np.zeros(self.kernel.model.blocks.size),
            items=np.empty(n, np.int32),
            drawn=np.zeros(4, np.int64),
            part_odds=np.zeros(n),
            sides=np.zeros((2, n), np.int32),
            side_sizes=np.zeros(2, np.int64),
            jump=np.zeros(3, np.int64),
            logs=np.zeros(2),
            tally=np.zeros(1, np.int64),
        )
        self._gradient = pointer_to(
            transfer_gradient,
            self._pair,
            self._cluster,
            world.arrays,
            self._storage,
            self._edges,
            self._tables,
            self._jumps.items,
            self._jumps.drawn,
            self._jumps.gradient,
        )
        self._seen = self._tables._replace(blocks=_needed(self._tables.blocks, proposer.features.columns))
        self._jumps.settings[EXPLORE] = proposer.explore
        self._jumps.settings[GUIDED] = proposer.parts == "guided"
        self._jumps.settings[ADDITIVE] = set(self._jumps.columns.tolist()) <= self.program.pair_sums()
        self._enter(proposer.learned)
        self._compiled: dict[bool, tuple[Pointer, Pointer, Pointer]] = {}

    @cached_property
    def _allocate(self) -> Pointer:
        o, jumps, state = ClusterModel(*self._inputs), self._jumps, Stream(0).state
        guided = self.proposer.parts == "guided"
        return pointer_to(allocate if guided else no_allocation, o, jumps, 1, True, state)

    def _parts_of_walk(self, *, ratio: bool) -> tuple[Pointer, Pointer, Pointer]:
        """Compile what the next walk needs, with or without the probabilities of the way back."""
        if ratio not in self._compiled:
            o, jumps = ClusterModel(*self._inputs), self._jumps
            scratch = jumps.items, jumps.drawn, jumps.gradient
            log_ratio = pointer_to(
                jump_log_ratio if ratio else no_log_ratio,
                self._allocate,
                o,
                jumps,
                *scratch,
                _NO_FEATURES,
                Stream(0).state,
            )
            application = pointer_to(apply_jump, o, jumps, self._work, jumps.gradient)
            self._compiled[ratio] = self._allocate, log_ratio, application
        return self._compiled[ratio]

    def _enter(self, weights: JumpWeights) -> None:
        jumps = self._jumps
        jumps.settings[: MOVE + 1] = weights.kinds
        jumps.split_weights[:] = weights.split
        jumps.merge_weights[:] = weights.merge

    @property
    def _inputs(self) -> tuple[Any, Any, Any, Any, Any, Any, Any, Any]:
        """What every kernel here is given first: a clustering and the factors that read it."""
        return (
            self._pair,
            self._cluster,
            self._gradient,
            self._world.arrays,
            self._storage,
            self._edges,
            self._tables,
            self._seen,
        )

    def reset(self, world: Partition) -> None:
        """Stand in a copy of ``world``."""
        super().reset(world)
        all_features(*self._inputs, self._jumps, _NO_FEATURES, _NO_FEATURES)

    @property
    def weights(self) -> JumpWeights:
        """The proposer's weights; assigning them brings all odds up to date."""
        return self.proposer.learned

    @weights.setter
    def weights(self, given: JumpWeights) -> None:
        self.proposer = self.proposer.with_weights(given)
        self._enter(given)
        all_features(*self._inputs, self._jumps, _NO_FEATURES, _NO_FEATURES)

    @property
    def odds_seen(self) -> int:
        """Pairs of items looked at for the odds of jumps."""
        return int(self._jumps.tally[0])

    def features(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the features of all pairs of clusters and of all clusters of two or more.

        The pair at positions (a, b) of the world's cluster ids, with a > b, is row a (a - 1) / 2 + b; the
        clusters are in the order of the world's splittable ones.
        """
        clusters, width = self._world.n_clusters, self.proposer.features.size
        between = np.empty((clusters * (clusters - 1) // 2, width), np.float32)
        within = np.empty((self._world.n_splittable, width), np.float32)
        all_features(*self._inputs, self._jumps, between, within)
        return between, within

    def part_features(self, jump: Jump) -> NDArray[np.float32]:
        """Return the features of a part of a cluster with each cluster, its own as if it had left it."""
        out = np.empty((self._world.n_clusters, self.proposer.features.size), np.float32)
        items = np.array(jump.items, np.int32)
        part_features(*self._inputs, self._jumps, items, jump.source, out)
        return out

    def spread(self, weights: JumpWeights, between: NDArray[np.float32], within: NDArray[np.float32]) -> None:
        """Try other weights: set all odds from features that this world has."""
        self._enter(weights)
        spread_odds(
            self._jumps,
            self._world.arrays,
            (between @ weights.merge.astype(np.float32)).astype(np.float64),
            (within @ weights.split.astype(np.float32)).astype(np.float64),
        )

    def draw(
        self,
        stream: Stream,
        count: int,
        *,
        model_weights: NDArray[np.float64] | None = None,
        truth: TruthArrays | None = None,
    ) -> list[Jump]:
        """Draw jumps and judge them; the world stays as it is. There may be none in a world of one item."""
        samples = JumpSamples(
            jumps=np.zeros((count, 5), np.int64),
            items=np.empty(count * self._world.n_items, np.int32),
            gains=np.zeros(count),
            better=np.zeros(count),
        )
        draw_jumps(
            *self._inputs,
            self._allocate,
            self._no_truth if truth is None else truth,
            self._resting.weights if model_weights is None else model_weights,
            self._jumps,
            self._work,
            self._walk,
            samples,
            _NO_FEATURES,
            stream.state,
        )
        return self._listed(samples)

    def _listed(self, samples: JumpSamples) -> list[Jump]:
        clusters = self._world.arrays.clusters
        found = []
        for row, gain, better in zip(
            samples.jumps.tolist(), samples.gains.tolist(), samples.better.tolist(), strict=True
        ):
            kind, source, target, begin, end = row
            if kind < 0:
                continue
            if kind == MERGE:
                a, b = sorted((int(clusters["live_at"][source]), int(clusters["live_at"][target])))
                place = b * (b - 1) // 2 + a
            else:
                place = int(clusters["splittable_at"][source])
            items = tuple(samples.items[begin:end].tolist())
            found.append(Jump(kind, items, source, target, place, gain, better))
        return found

    def take(self, jump: Jump, truth: TruthArrays | None = None) -> None:
        """Go where a jump leads that was drawn from the present world."""
        self._work.items[: len(jump.items)] = jump.items
        self._work.drawn[:] = len(jump.items), jump.source, jump.target, 0
        self._set(Manner("always"), None, False)
        self._walk.settings[codes.TRIES] = 0
        self._run(Stream(0), 1.0, self._resting, self._no_truth if truth is None else truth, 1)

    def _run(
        self, stream: Stream, temperature: float, update: UpdateArrays, truth: TruthArrays, steps: int
    ) -> None:
        jump_walk(
            *self._inputs,
            *self._parts_of_walk(ratio=bool(self._walk.settings[codes.ACCEPTANCE] == codes.METROPOLIS)),
            truth,
            update,
            self._jumps,
            self._work,
            self._walk,
            _NO_FEATURES,
            stream.state,
            float(temperature),
            steps,
        )

    def contrast(self, *arguments: object, **options: object) -> int:
        """Refuse: contrastive divergence walks by other moves."""
        raise NoCompiledFormError(
            "contrastive divergence by adaptive jumps has no compiled form: give a PartitionMixture, or learn"
            " with engine='plain'."
        )


def _needed(blocks: NDArray[np.void], columns: NDArray[np.int64]) -> NDArray[np.void]:
    """Aggregates of tables that write some of these statistics."""
    ends = blocks["offset"] + blocks["size"]
    needed = [
        bool(((columns >= lo) & (columns < hi)).any()) for lo, hi in zip(blocks["offset"], ends, strict=True)
    ]
    return np.asarray(blocks[np.array(needed, bool)])
