"""The law of adaptive jumps, from the definition: every probability by features of sets of items."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import numpy as np

from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.kernels.clusterings.adaptive.jump_odds import (
    LARGEST_LOG_ODDS,
    MERGE,
    MOVE,
    ONE_MEMBER,
    SPLIT,
)
from factorwise.world.partition import Partition
from reference.jump_features import cluster_row, pair_row

Cluster = frozenset[int]
Clusters = frozenset[Cluster]


def clusters_of(world: Partition) -> Clusters:
    """The clusters of a world, as sets."""
    return frozenset(frozenset(members.tolist()) for members in world.clusters())


class JumpLaw:
    """What a proposer draws from a world of ``n_items``, with which probability."""

    def __init__(self, proposer: AdaptiveSplitMerge, n_items: int) -> None:
        features, weights = proposer.features, proposer.learned
        self.kinds, self.explore = weights.kinds, proposer.explore
        self.guided = proposer.parts == "guided"

        @cache
        def mixed(cluster: Cluster) -> float:
            return _odds(cluster_row(features, sorted(cluster), n_items) @ weights.split)

        @cache
        def alike(pair: frozenset[Cluster]) -> float:
            first, second = pair
            return _odds(pair_row(features, sorted(first), sorted(second), n_items) @ weights.merge)

        self.mixed = mixed
        self.alike = alike

    def log_kind(self, clusters: Clusters, kind: int) -> float:
        """Log-probability of a kind; those with nothing to do leave their share to the others."""
        large = any(len(cluster) > 1 for cluster in clusters)
        able = {SPLIT: large, MERGE: len(clusters) > 1, MOVE: large and len(clusters) > 1}
        return math.log(self.kinds[kind] / sum(self.kinds[k] for k in able if able[k]))

    def log_share(self, odds: dict, chosen: object) -> float:
        """Log-probability of one choice, by its odds or else uniformly."""
        by_odds = odds[chosen] / math.fsum(odds.values())
        return math.log((1.0 - self.explore) * by_odds + self.explore / len(odds))

    def log_mixed(self, clusters: Clusters, chosen: Cluster) -> float:
        """Of a cluster that is to be split or to give a part away."""
        return self.log_share({c: self.mixed(c) for c in clusters if len(c) > 1}, chosen)

    def log_pair(self, clusters: Clusters, first: Cluster, second: Cluster) -> float:
        """Of two clusters that are to be merged."""
        pairs = {frozenset(pair): self.alike(frozenset(pair)) for pair in combinations(clusters, 2)}
        return self.log_share(pairs, frozenset({first, second}))

    def log_merge(self, clusters: Clusters, first: Cluster, second: Cluster) -> float:
        """Of a merge; where parts are guided, with one member of each drawn, in one order."""
        ends = -math.log(2 * len(first) * len(second)) if self.guided else 0.0
        return self.log_kind(clusters, MERGE) + self.log_pair(clusters, first, second) + ends

    def log_split(self, clusters: Clusters, stays: Cluster, moves: Cluster, ends: tuple[int, ...]) -> float:
        """Of a split in these two parts, of which ``ends`` are the two members drawn to be apart."""
        whole = stays | moves
        total = self.log_kind(clusters, SPLIT) + self.log_mixed(clusters, whole)
        if not self.guided:
            return total - math.log(2 ** (len(whole) - 1) - 1)
        return total - math.log(len(whole) * (len(whole) - 1)) + self.log_sides(stays, moves, ends)

    def log_sides(self, stays: Cluster, moves: Cluster, ends: tuple[int, ...]) -> float:
        """Of all but two, in ascending order, joining one side or the other by their odds with it."""
        sides, total = [frozenset(ends[:1]), frozenset(ends[1:])], 0.0
        for item in sorted((stays | moves) - set(ends)):
            odds = {k: self.alike(frozenset({frozenset({item}), sides[k]})) for k in range(2)}
            total += self.log_share(odds, int(item in moves))
            sides[item in moves] |= {item}
        return total

    def log_move(self, clusters: Clusters, source: Cluster, part: Cluster, target: Cluster) -> float:
        """Of a part of one cluster going to another."""
        size = len(source)
        taken = (1.0 - ONE_MEMBER) / (2**size - 2) + (ONE_MEMBER / size if len(part) == 1 else 0.0)
        odds = {other: self.alike(frozenset({part, other})) for other in clusters - {source}}
        chosen = self.log_kind(clusters, MOVE) + self.log_mixed(clusters, source)
        return chosen + math.log(taken) + self.log_share(odds, target)

    def jumps(self, clusters: Clusters) -> Iterator[tuple[Clusters, float, float]]:
        """Yield where each jump leads, and the log-probabilities of drawing it and its way back."""
        for first, second in combinations(clusters, 2):
            there = clusters - {first, second} | {first | second}
            for stays, moves, ends in self._ordered(first, second):
                back = self.log_split(there, stays, moves, ends)
                yield there, self.log_merge(clusters, first, second), back
        for source in clusters:
            for count in range(1, len(source)):
                for part in map(frozenset, combinations(sorted(source), count)):
                    yield from self._partings(clusters, source, part)

    def _partings(
        self, clusters: Clusters, source: Cluster, part: Cluster
    ) -> Iterator[tuple[Clusters, float, float]]:
        rest = source - part
        if min(part) < min(rest):  # each split once
            there = clusters - {source} | {part, rest}
            for stays, moves, ends in self._ordered(part, rest):
                forward = self.log_split(clusters, stays, moves, ends)
                yield there, forward, self.log_merge(there, part, rest)
        for target in clusters - {source} if self.kinds[MOVE] > 0 else ():
            there = clusters - {source, target} | {rest, target | part}
            forward = self.log_move(clusters, source, part, target)
            yield there, forward, self.log_move(there, target | part, part, rest)

    def _ordered(self, first: Cluster, second: Cluster) -> Iterator[tuple[Cluster, Cluster, tuple[int, ...]]]:
        if not self.guided:
            yield first, second, ()
            return
        for a, b in product(first, second):
            yield first, second, (a, b)
            yield second, first, (b, a)


def _odds(log_odds: float) -> float:
    return math.exp(float(np.clip(log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)))
