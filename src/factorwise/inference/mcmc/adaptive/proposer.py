"""The adaptive split-merge proposer in plain Python: its definition, for worlds of moderate size.

`JumpEngine` is the compiled form, which keeps all odds in step with the world. Both draw the same jumps from
the same stream.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, product

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.law import (
    JumpWeights,
    Parts,
    available,
    check_law,
    log_kind,
    log_moved_part,
    log_share,
    log_uniform_part,
    odds_of,
)
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.kernels.clusterings.jump_draws import ONE_MEMBER
from factorwise.kernels.clusterings.jump_odds import MERGE, MOVE, SPLIT
from factorwise.rng import Stream
from factorwise.world.diff import NEW, Transfer
from factorwise.world.partition import Partition

Members = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class AdaptiveSplitMerge:
    """Splits clusters that look mixed, merges pairs that look alike, by weights of its own.

    features
        What it sees of clusters and of pairs of clusters.
    weights
        What it has learned; None for nothing yet, which is the uniform split-merge proposer.
    explore
        Share of the choices of clusters and pairs that are made uniformly.
    parts
        How a cluster is split: ``uniform``, all ways equally likely; or ``guided``, where two members are
        drawn to be apart and the others join one side or the other, one by one, by their affinity with it.

    Its weights stay as they are while it proposes, so that Metropolis-Hastings with it is exact.
    Implements: rohanimanesh2009inference, Eq. 10, 11.
    """

    features: JumpFeatures
    weights: JumpWeights | None = None
    explore: float = 0.1
    parts: Parts = "uniform"

    def __post_init__(self) -> None:
        check_law(self.explore, self.parts)
        if not isinstance(self.features, JumpFeatures):
            raise InvalidArgumentError(
                f"an adaptive proposer sees features, but {type(self.features).__name__} was given: build"
                " AdaptiveSplitMerge(JumpFeatures(model))."
            )
        if self.weights is None:
            object.__setattr__(self, "weights", JumpWeights.zero(self.features.names))
        elif self.weights.names != self.features.names:
            raise InvalidArgumentError(
                f"the weights are for features {list(self.weights.names)[:5]} and so on, but the proposer has"
                f" {list(self.features.names)[:5]}: choose the same features of models built alike."
            )

    @property
    def learned(self) -> JumpWeights:
        """The weights, which are always set."""
        assert self.weights is not None
        return self.weights

    def with_weights(self, weights: JumpWeights) -> AdaptiveSplitMerge:
        """Return the same proposer with other weights."""
        return replace(self, weights=weights)

    def check(self, world: Partition) -> None:
        """Refuse a world whose clusters have types: a merge would have to choose one."""
        if world.n_types > 1:
            raise InvalidArgumentError(
                f"adaptive jumps are for clusters without types, but the world has {world.n_types}: mix"
                " Merge, Split and RetypeCluster in a PartitionMixture."
            )

    def draw(self, stream: Stream, world: Partition) -> Proposal:
        """Draw a jump with the probability of drawing it and of drawing the way back."""
        self.check(world)
        view = _View(self, world)
        able = available(len(view.clusters), len(view.splittable))
        kinds = [odds if ok else 0.0 for odds, ok in zip(self.learned.kinds, able, strict=True)]
        threshold = stream.uniform() * sum(kinds)
        if sum(kinds) == 0.0:
            return Proposal(None, 0.0, 0.0)
        kind = _first_above(kinds, threshold)
        if kind == MERGE:
            return self._draw_merge(stream, view)
        source = view.splittable[_choose(stream, view.split_odds, self.explore)]
        if kind == SPLIT:
            return self._draw_split(stream, view, source)
        return self._draw_move(stream, view, source)

    def _draw_merge(self, stream: Stream, view: _View) -> Proposal:
        first, second = _choose_pair(stream, view.merge_odds, self.explore)
        anchors = None
        if self.parts == "guided":
            a, b = (first, second) if stream.uniform() < 0.5 else (second, first)
            anchors = _one_of(stream, view.clusters[a]), _one_of(stream, view.clusters[b])
        return self._merge(view, first, second, anchors)

    def _merge(self, view: _View, first: int, second: int, anchors: tuple[int, int] | None) -> Proposal:
        """Merge the clusters at two positions; the smaller one moves, of equal ones the first."""
        if len(view.clusters[first]) > len(view.clusters[second]):
            first, second = second, first
        moving, staying = view.clusters[first], view.clusters[second]
        diff = Transfer(moving, view.ids[first], view.ids[second])
        there = _View(self, view.world.after(diff))
        sides = 0.0 if anchors is None else self._log_anchors_apart(view, *anchors)
        back = self._log_allocation(view, moving, staying, anchors)
        return Proposal(diff, view.log_merge(first, second) + sides, there.log_split(moving + staying) + back)

    def _draw_split(self, stream: Stream, view: _View, source: int) -> Proposal:
        members = view.clusters[source]
        if self.parts == "uniform":
            return self._split(view, source, _coins(stream, members), None)
        stays = stream.below(len(members))
        moves = stream.below(len(members) - 1)
        moves += moves >= stays
        anchors = members[stays], members[moves]
        part, _ = self._allocate(stream, view, members, anchors)
        return self._split(view, source, part, anchors)

    def _split(self, view: _View, source: int, part: Members, anchors: tuple[int, int] | None) -> Proposal:
        members = view.clusters[source]
        rest = tuple(item for item in members if item not in part)
        diff = Transfer(part, view.ids[source], NEW)
        there = _View(self, view.world.after(diff))
        forward = view.log_split(members) + self._log_allocation(view, part, rest, anchors)
        back = there.log_merge(there.position(part), there.position(rest))
        sides = 0.0 if anchors is None else self._log_anchors_apart(there, *anchors)
        return Proposal(diff, forward, back + sides)

    def _log_anchors_apart(self, view: _View, first: int, second: int) -> float:
        """Log-probability of drawing these two members of two clusters, in this order."""
        sizes = [len(cluster) for cluster in view.clusters if first in cluster or second in cluster]
        return -math.log(2.0) - sum(math.log(size) for size in sizes)

    def _log_allocation(
        self, view: _View, part: Members, rest: Members, anchors: tuple[int, int] | None
    ) -> float:
        """Log-probability that a cluster, once chosen, is split into these two parts."""
        size = len(part) + len(rest)
        if anchors is None:
            return log_uniform_part(size)
        sides = dict.fromkeys(part, anchors[1] in part) | dict.fromkeys(rest, anchors[1] in rest)
        _, log_sides = self._allocate(None, view, part + rest, anchors, sides)
        return -math.log(size) - math.log(size - 1) + log_sides

    def _allocate(
        self,
        stream: Stream | None,
        view: _View,
        members: Members,
        anchors: tuple[int, int],
        forced: dict[int, bool] | None = None,
    ) -> tuple[Members, float]:
        """Let members in ascending order join one of two anchors, the first stays and the second moves.

        Returns those who move, and the log-probability of that; ``forced`` says who must.
        """
        sides: tuple[list[int], list[int]] = ([anchors[0]], [anchors[1]])
        log_sides = 0.0
        for item in sorted(set(members) - set(anchors)):
            rows = np.array([self.features.between([item], side, view.world.n_items) for side in sides])
            stay, move = odds_of(rows, self.learned.merge)
            chances = [
                (1.0 - self.explore) * odds / (stay + move) + self.explore / 2.0 for odds in (stay, move)
            ]
            moves = forced[item] if forced is not None else bool(_asked(stream).uniform() < chances[1])
            log_sides += math.log(chances[moves])
            sides[moves].append(item)
        return tuple(sides[1]), log_sides

    def _draw_move(self, stream: Stream, view: _View, source: int) -> Proposal:
        members = view.clusters[source]
        if stream.uniform() < ONE_MEMBER:
            part: Members = (_one_of(stream, members),)
        else:
            part = _coins(stream, members)
        odds = view.odds_with(part)
        odds[source] = 0.0
        if stream.uniform() < self.explore:
            target = stream.below(len(odds) - 1)
            target += target >= source
        else:
            target = _first_above(odds, stream.uniform() * math.fsum(odds))
        return self._move(view, source, part, target)

    def _move(self, view: _View, source: int, part: Members, target: int) -> Proposal:
        members = view.clusters[source]
        diff = Transfer(part, view.ids[source], view.ids[target])
        there = _View(self, view.world.after(diff))
        rest = tuple(item for item in members if item not in part)
        forward = view.log_move(members, part, view.clusters[target])
        return Proposal(diff, forward, there.log_move(view.clusters[target] + part, part, rest))

    def support(self, world: Partition) -> Iterator[Proposal]:
        """Enumerate all jumps; with guided parts, once for each two members that may be drawn."""
        self.check(world)
        view = _View(self, world)
        if len(world.labels) == 1:
            yield Proposal(None, 0.0, 0.0)
        for first, second in combinations(range(len(view.clusters)), 2):
            for anchors in self._anchors(view.clusters[first], view.clusters[second]):
                yield self._merge(view, first, second, anchors)
        for source in view.splittable:
            members = view.clusters[source]
            for part in _proper_parts(members):
                rest = tuple(item for item in members if item not in part)
                if self.learned.kinds[MOVE] > 0:
                    for target in range(len(view.clusters)):
                        if target != source:
                            yield self._move(view, source, part, target)
                if self.parts == "guided":
                    for anchors in product(rest, part):
                        yield self._split(view, source, part, anchors)
                elif members[0] not in part:  # the same split as that of the other part
                    yield self._split(view, source, part, None)

    def _anchors(self, first: Members, second: Members) -> list[tuple[int, int] | None]:
        if self.parts == "uniform":
            return [None]
        return [*product(first, second), *product(second, first)]


class _View:
    """The odds of one world: clusters in the order of its storage, which a compiled walk shares."""

    def __init__(self, proposer: AdaptiveSplitMerge, world: Partition) -> None:
        self.proposer = proposer
        self.world = world
        self.ids = world.cluster_ids().tolist()
        self.clusters: list[Members] = [tuple(world.members(c).tolist()) for c in self.ids]
        large = world.arrays.clusters["splittable"][: world.n_splittable].tolist()
        self.splittable = [self.ids.index(cluster) for cluster in large]
        features, n_items = proposer.features, world.n_items
        rows = [features.within(self.clusters[position], n_items) for position in self.splittable]
        self.split_odds = odds_of(np.array(rows).reshape(-1, features.size), proposer.learned.split)
        self.merge_odds = np.zeros((len(self.ids), len(self.ids)))
        for a, b in combinations(range(len(self.ids)), 2):
            row = features.between(self.clusters[a], self.clusters[b], n_items)
            self.merge_odds[a, b] = self.merge_odds[b, a] = odds_of(row, proposer.learned.merge)

    def position(self, members: Sequence[int]) -> int:
        """Where the cluster with these members stands."""
        wanted = set(members)
        return next(at for at, cluster in enumerate(self.clusters) if set(cluster) == wanted)

    def _log_kind(self, kind: int) -> float:
        return log_kind(self.proposer.learned.kinds, kind, len(self.clusters), len(self.splittable))

    def log_split(self, members: Sequence[int]) -> float:
        """Log-probability of a split of this cluster, in whichever way."""
        return self._log_kind(SPLIT) + self._log_mixed(members)

    def _log_mixed(self, members: Sequence[int]) -> float:
        """Log-probability that this cluster is the one to be split, or to give a part away."""
        at = self.splittable.index(self.position(members))
        total = math.fsum(self.split_odds)
        return log_share(self.split_odds[at], total, len(self.split_odds), self.proposer.explore)

    def log_merge(self, first: int, second: int) -> float:
        """Log-probability of merging the clusters at two positions."""
        pairs = len(self.clusters) * (len(self.clusters) - 1) // 2
        total = math.fsum(self.merge_odds.ravel()) / 2.0
        share = log_share(self.merge_odds[first, second], total, pairs, self.proposer.explore)
        return self._log_kind(MERGE) + share

    def odds_with(self, part: Members) -> NDArray[np.float64]:
        """Odds of each cluster as a target of ``part``; of its own cluster, as if it had left it."""
        others = [tuple(item for item in cluster if item not in part) for cluster in self.clusters]
        between = self.proposer.features.between
        rows = [between(part, other, self.world.n_items) for other in others]
        return odds_of(np.array(rows), self.proposer.learned.merge)

    def log_move(self, members: Sequence[int], part: Members, target: Members) -> float:
        """Log-probability of moving ``part`` of one cluster to another."""
        odds = self.odds_with(part)
        odds[self.position(members)] = 0.0
        to = log_share(
            odds[self.position(target)], math.fsum(odds), len(self.clusters) - 1, self.proposer.explore
        )
        return self._log_kind(MOVE) + self._log_mixed(members) + log_moved_part(len(members), len(part)) + to


def _choose(stream: Stream, odds: NDArray[np.float64], explore: float) -> int:
    if stream.uniform() < explore:
        return stream.below(len(odds))
    return _first_above(odds, stream.uniform() * float(odds.sum()))


def _choose_pair(stream: Stream, odds: NDArray[np.float64], explore: float) -> tuple[int, int]:
    if stream.uniform() < explore:
        first = stream.below(len(odds))
        second = stream.below(len(odds) - 1)
        return first, second + (second >= first)
    rows = odds.sum(axis=1)
    first = _first_above(rows, stream.uniform() * float(rows.sum()))
    return first, _first_above(odds[first], stream.uniform() * float(rows[first]))


def _first_above(odds: Sequence[float] | NDArray[np.float64], threshold: float) -> int:
    """Return the first position where the running sum of odds passes ``threshold``."""
    sums = list(accumulate(odds))
    last = max(at for at, one in enumerate(odds) if one > 0.0)  # where rounding leaves the threshold on top
    return min(bisect_right(sums, threshold), last)


def _one_of(stream: Stream, members: Members) -> int:
    return members[stream.below(len(members))]


def _coins(stream: Stream, members: Members) -> Members:
    """Draw a part that is neither empty nor all, a coin for each member."""
    part: list[int] = []
    while not 0 < len(part) < len(members):
        part = [item for item in members if stream.uniform() < 0.5]
    return tuple(part)


def _proper_parts(members: Members) -> Iterator[Members]:
    for size in range(1, len(members)):
        yield from combinations(members, size)


def _asked(stream: Stream | None) -> Stream:
    assert stream is not None
    return stream
