"""Searching for the best clustering of linked items, under any model: rounds of cooling sweeps over shards.

A round places the current clusters into shards, those that share a key into one, and sweeps over each. The
key of an item is the part of the graph that it lies in, by links worth following (`parts`). The number of
shards is a matter of the data, not of the threads. In the end items that would rather be elsewhere may go
there, whatever the shard.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require
from factorwise.inference.mcmc.schedules import Geometric
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.graphs.components import component_numbers
from factorwise.types import Ints

ITEMS_PER_SHARD = 20_000  # below it all is one shard, and every link can be followed in every round
LARGEST_PART = 8  # no part shall be more than one in so many items
WEAK = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # scores of links that are cut, if need be
MENDING = 3  # sweeps over what lies in the wrong place when all rounds are done
LEAST_GAIN = 3e-4  # a round that gains less than this share of the score and per item ends the search


class SearchState(NamedTuple):
    """Where a search stands after a round: enough to go on from, bit by bit.

    round, settled
        Rounds done, and whether the last one gained next to nothing.
    score
        Of the clustering, by adding up gains.
    label
        The clustering: the smallest member of each item's cluster.
    """

    round: int
    settled: bool
    score: float
    label: NDArray[np.int32]


class SearchStanding(NamedTuple):
    """Rounds done, whether the last one gained next to nothing, and the score of the clustering."""

    round: int
    settled: bool
    score: float


class Rounds(Protocol):
    """Where rounds are taken: on a walk in memory, or over shards on many machines."""

    @property
    def n_items(self) -> int:
        """Number of items."""
        ...

    @property
    def n_clusters(self) -> int:
        """Number of clusters after the last round."""
        ...

    @property
    def proposals(self) -> int:
        """Clusters that were weighed so far."""
        ...

    @property
    def score(self) -> float:
        """Score of the clustering, added up afresh."""
        ...

    def round(self, number: int, temperature: float) -> float:
        """Take a round; return what was gained."""
        ...


class SearchProgress(NamedTuple):
    """What is told of a search after each round, or after each group of items that are searched apart.

    round, of
        How many rounds or groups are done, and how many there are at most.
    unit
        What is counted: "round" or "group". Proposals are counted in rounds alone.
    """

    round: int
    of: int
    temperature: float
    score: float
    clusters: int
    proposals: int
    seconds: float
    unit: str = "round"


class Found(NamedTuple):
    """How a search ended: the rounds it took, and why it stopped (settled, rounds, time, interrupted)."""

    rounds: int
    reason: str
    score: float


@dataclass(frozen=True, slots=True)
class LinkSearch:
    """How a clustering is searched for.

    rounds, sweeps
        Rounds with falling temperature, and sweeps in each.
    hot, cold
        Temperatures of the first and of the last of them.
    jumps
        Splits and merges proposed in a sweep, per item.
    extra
        Rounds that may follow at the last temperature until nothing is gained.
    seconds
        Time after which no further round begins; None for any time.
    """

    rounds: int = 12
    sweeps: int = 2
    hot: float = 0.5
    cold: float = 0.02
    jumps: float = 0.2
    extra: int = 12
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "sweeps"):
            require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("hot", "cold"):
            warm = 0.0 < getattr(self, name) < math.inf
            require(warm, name, getattr(self, name), "greater than zero, and finite")
        for name in ("jumps", "extra"):
            require(
                0 <= getattr(self, name) < math.inf, name, getattr(self, name), "zero or more, and finite"
            )
        limited = self.seconds is None or self.seconds >= 0.0
        require(limited, "seconds", self.seconds, "zero or more, or None for any time")

    def run(
        self,
        walk: ShardedWalk,
        key: Ints | None = None,
        *,
        seed: int,
        team: Team,
        resume: SearchState | None = None,
        watch: Callable[[SearchProgress], None] | None = None,
        keep: Callable[[SearchState], None] | None = None,
    ) -> Found:
        """Search from where ``walk`` is, or from where an earlier search stopped; an interrupt ends it early.

        key
            Of each item, negative for none: clusters with the same one meet in a shard. None for the parts of
            the graph.
        watch, keep
            Called after each round: to show how it goes, and to keep what is needed to resume.
        """
        stage = _WalkRounds(self, walk, key, seed, team)
        if resume is None:
            begin = SearchStanding(0, False, walk.score)
        else:
            begin = SearchStanding(resume.round, resume.settled, resume.score)
            walk.place_items(resume.label)

        def note(standing: SearchStanding) -> None:
            if keep is not None:
                keep(SearchState(*standing, walk.labels))

        found = self.follow(stage, begin=begin, watch=watch, keep=note)
        if found.reason not in ("settled", "rounds"):
            return found
        return found._replace(score=found.score + stage.mend())

    def follow(
        self,
        stage: Rounds,
        *,
        begin: SearchStanding,
        watch: Callable[[SearchProgress], None] | None = None,
        keep: Callable[[SearchStanding], None] | None = None,
    ) -> Found:
        """Take rounds wherever they are taken, with falling temperature, until it is time to stop."""
        schedule = Geometric(self.hot, self.cold)
        begun = time.monotonic()
        done, settled, score = begin
        limit, reason = self.rounds + self.extra, "rounds"
        try:
            while done < limit:
                if settled:
                    reason = "settled"
                    break
                if self.seconds is not None and time.monotonic() - begun > self.seconds:
                    reason = "time"
                    break
                temperature = schedule.temperature(min(1.0, done / max(1, self.rounds - 1)))
                gain = stage.round(done, temperature)
                done, score = done + 1, score + gain
                if not np.isfinite(score):  # the start had pairs together that may not be
                    score = stage.score
                settled = done >= self.rounds and gain <= LEAST_GAIN * (abs(score) + stage.n_items)
                if watch is not None:
                    spent = time.monotonic() - begun
                    watch(
                        SearchProgress(
                            done, limit, temperature, score, stage.n_clusters, stage.proposals, spent
                        )
                    )
                if keep is not None:
                    keep(SearchStanding(done, settled, score))
        except KeyboardInterrupt:
            reason, score = "interrupted", stage.score
        return Found(done, reason, score)


class _WalkRounds:
    """Rounds over one walk in memory: clusters with the same key meet in a shard, shards run in threads."""

    def __init__(
        self, search: LinkSearch, walk: ShardedWalk, key: Ints | None, seed: int, team: Team
    ) -> None:
        self.search, self.walk, self.seed, self.team = search, walk, seed, team
        many = shard_count(walk.n_items) > 1
        self.key = (walk_parts(walk) if key is None else key) if many else None
        self.n_items = walk.n_items

    def round(self, number: int, temperature: float) -> float:
        """Place the clusters in shards, and sweep over each."""
        walk, search = self.walk, self.search
        if self.key is not None:
            walk.place_shards(shards_by_key(walk, self.key))
        else:
            walk.lay_out()
        first = number * search.sweeps
        return walk.sweep(
            self.seed, first, temperature, team=self.team, jumps=search.jumps, sweeps=search.sweeps
        )

    def mend(self) -> float:
        """Move the items that a step would not leave where they are; return what was gained.

        Parts that were searched apart may be tied by many links, each of which is weak.
        """
        if self.key is None:
            return 0.0
        gain, cold = 0.0, self.search.cold
        first = (self.search.rounds + self.search.extra) * self.search.sweeps
        for turn in range(MENDING):
            items = np.flatnonzero(self.walk.home_chances(cold, team=self.team) < 0.5)
            if not len(items):
                break
            gain += self.walk.sweep_some(items, self.seed, first + turn, cold)
        return gain

    @property
    def score(self) -> float:
        """Score of the clustering, added up afresh."""
        return self.walk.score

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.walk.n_clusters

    @property
    def proposals(self) -> int:
        """Clusters that were weighed so far."""
        return self.walk.proposals


def parts(n: int, first: Ints, second: Ints, link_scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Number the parts that n linked items can be searched in, one by one.

    Links with a score above zero connect them: where not being linked does not speak for a pair, a best
    clustering has no cluster across two parts. Where one part would be most of the graph, weak links are cut
    as well.
    """
    largest = max(ITEMS_PER_SHARD, n // LARGEST_PART)
    part = np.zeros(n, np.int32)
    for threshold in WEAK:
        worth = link_scores > threshold
        part = component_numbers(n, first[worth], second[worth])
        if np.bincount(part).max(initial=0) <= largest:
            break
    return part


def walk_parts(walk: ShardedWalk) -> NDArray[np.int32]:
    """Number the parts of a walk's graph."""
    return parts(walk.n_items, walk.links.first, walk.links.second, walk.link_worth)


def shards_by_key(walk: ShardedWalk, key: Ints) -> NDArray[np.int32]:
    """Return the shard of each cluster, by its id: clusters with the same key lie in the same shard.

    The key of a cluster is the largest that its items have; clusters without any are spread evenly.
    """
    n, label = walk.n_items, walk.shards.label
    ids = len(walk.shards.world.arrays.size)
    of_cluster = np.full(ids, -1, np.int64)
    np.maximum.at(of_cluster, label, key)
    of_cluster = np.where(of_cluster < 0, int(key.max(initial=0)) + 1 + np.arange(ids), of_cluster)
    sizes = np.bincount(label, minlength=ids)
    groups, place = np.unique(of_cluster, return_inverse=True)
    before = np.cumsum(np.bincount(place, weights=sizes, minlength=len(groups)))
    shards = np.minimum(before * shard_count(walk.n_items) / max(n, 1), shard_count(walk.n_items) - 1).astype(
        np.int32
    )
    return np.asarray(shards[place], np.int32)


def shard_count(n_items: int) -> int:
    """Return into how many shards so many items go."""
    return max(1, n_items // ITEMS_PER_SHARD)
