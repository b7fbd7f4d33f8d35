"""Search for the best clustering of linked items, under any model, by rounds of cooling sweeps over shards.

A round puts the current clusters into shards, those that share a key into the same one, and sweeps over each.
The key of an item is the part of the graph in which it lies, by links worth following (`parts`). The number
of shards depends on the data, not on the threads. At the end, items that would score higher in another
cluster may move there, whatever the shard.
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

# below this number there is one shard, and every link can be followed in every round
ITEMS_PER_SHARD = 20_000
LARGEST_PART = 8  # no part should contain more than one in so many items
WEAK = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # scores of links that are cut if a part is too large
MENDING = 3  # final sweeps over items that would score higher in another cluster
LEAST_GAIN = 3e-4  # a round that gains less than this share of the score, per item, ends the search


class SearchState(NamedTuple):
    """State of a search after a round, sufficient to resume with the same bits.

    round, settled
        Rounds done, and whether the last one gained almost nothing.
    score
        Score of the clustering, as the sum of all gains.
    label
        The clustering: the smallest member of each item's cluster.
    """

    round: int
    settled: bool
    score: float
    label: NDArray[np.int32]


class SearchStanding(NamedTuple):
    """Rounds done, whether the last one gained almost nothing, and the score of the clustering."""

    round: int
    settled: bool
    score: float


class Rounds(Protocol):
    """Where rounds run: on a walk in memory, or over shards on many machines."""

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
        """Number of clusters that were weighed so far."""
        ...

    @property
    def score(self) -> float:
        """Score of the clustering, computed again from scratch."""
        ...

    def round(self, number: int, temperature: float) -> float:
        """Run a round; return its gain."""
        ...


class SearchProgress(NamedTuple):
    """What a search reports after each round, or after each group of items that are searched separately.

    round, of
        How many rounds or groups are done, and how many there are at most.
    unit
        What is counted: "round" or "group". Proposals are counted for rounds only.
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
    """How a search ended: the number of rounds, and why it stopped (settled, rounds, time, interrupted)."""

    rounds: int
    reason: str
    score: float


@dataclass(frozen=True, slots=True)
class LinkSearch:
    """How to search for a clustering.

    rounds, sweeps
        Rounds with falling temperature, and sweeps in each.
    hot, cold
        Temperatures of the first and the last round.
    jumps
        Splits and merges proposed in a sweep, per item.
    extra
        Further rounds at the last temperature, which end when nothing is gained.
    seconds
        Time after which no further round starts; None for no limit.
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
        """Search from the current state of ``walk``, or from where an earlier search stopped.

        An interrupt ends it early.

        key
            Key of each item, negative for none: clusters with the same key meet in a shard. None for the
            parts of the graph.
        watch, keep
            Called after each round: to show progress, and to save what is needed to resume.
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

        outcome = self.follow(stage, begin=begin, watch=watch, keep=note)
        if outcome.reason not in ("settled", "rounds"):
            return outcome
        return outcome._replace(score=outcome.score + stage.mend())

    def follow(
        self,
        stage: Rounds,
        *,
        begin: SearchStanding,
        watch: Callable[[SearchProgress], None] | None = None,
        keep: Callable[[SearchStanding], None] | None = None,
    ) -> Found:
        """Run rounds with falling temperature until the search is to stop."""
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
                if not np.isfinite(score):  # the start had pairs together that are forbidden
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
        """Put the clusters into shards, and sweep over each."""
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
        """Move items that would score higher in another cluster; return the gain.

        Parts that were searched separately may be connected by many weak links.
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
        """Score of the clustering, computed again from scratch."""
        return self.walk.score

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.walk.n_clusters

    @property
    def proposals(self) -> int:
        """Number of clusters that were weighed so far."""
        return self.walk.proposals


def parts(n: int, first: Ints, second: Ints, link_scores: NDArray[np.float32]) -> NDArray[np.int32]:
    """Number the parts into which n linked items can be split for the search.

    Links with a score above zero connect them: if unlinked pairs do not score for being together, a best
    clustering has no cluster across two parts. If one part would be most of the graph, weak links are cut,
    too.
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

    The key of a cluster is the largest key of its items; clusters without a key are spread evenly.
    """
    n, label = walk.n_items, walk.shards.label
    ids = len(walk.shards.world.arrays.size)
    of_cluster = np.full(ids, -1, np.int64)
    np.maximum.at(of_cluster, label, key)
    of_cluster = np.where(of_cluster < 0, int(key.max(initial=0)) + 1 + np.arange(ids), of_cluster)
    sizes = np.bincount(label, minlength=ids)
    groups, position = np.unique(of_cluster, return_inverse=True)
    before = np.cumsum(np.bincount(position, weights=sizes, minlength=len(groups)))
    shards = np.minimum(before * shard_count(walk.n_items) / max(n, 1), shard_count(walk.n_items) - 1).astype(
        np.int32
    )
    return np.asarray(shards[position], np.int32)


def shard_count(n_items: int) -> int:
    """Return the number of shards for this many items."""
    return max(1, n_items // ITEMS_PER_SHARD)
