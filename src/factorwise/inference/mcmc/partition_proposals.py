r"""Proposals over clusterings: relocate, merge, split, split-merge, retype, and mixtures of them.

Every move is a transfer of m items from a cluster of s to a cluster of t (t = 0: a new one). A move says with
what probability it draws one *literal* transfer, as a function of a few counts. Two different transfers can
give the same world: a split may move either part, a merge either cluster. The probability of proposing a
*world* therefore adds up the literal transfers that give it, over all moves of the mixture:

.. math:: q(w' \mid w) = \frac{\sum_c \beta_c \sum_{r \to w'} p_c(r)}{\sum_{c\ \text{available}} \beta_c}

so that merge and split balance each other, and relocating a singleton balances against merging it. The way
back is the reverse transfer seen from the other side; its counts follow from the forward ones by arithmetic,
so nothing is applied to find them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.kernels.partitions import SPLITTABLE
from factorwise.rng import Stream
from factorwise.world.diff import NEW, PartitionDiff, Retype, Transfer
from factorwise.world.partition import Partition


class Counts(NamedTuple):
    """What the probability of a transfer depends on.

    items, clusters, splittable, types
        Of the world it starts from: n, number of clusters, of clusters of two or more, of type labels.
    source, moving, target
        Sizes s, m and t; a target of 0 is a new cluster.
    links
        For a single item that moves: the share of its candidates that are in the target.
    """

    items: int
    clusters: int
    splittable: int
    types: int
    source: int
    moving: int
    target: int
    links: float = 0.0


class PartitionMove(Protocol):
    """One way to draw transfers."""

    def available(self, counts: Counts) -> bool:
        """Whether there is anything to propose in a world with these counts."""
        ...

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw one literal transfer; None where the draw hits one that changes nothing."""
        ...

    def log_probability(self, counts: Counts) -> float:
        """Log-probability of drawing one literal transfer with these counts."""
        ...


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0.0 else -math.inf


class _AnyWorld:
    def available(self, counts: Counts) -> bool:
        return counts.items >= 2


@dataclass(frozen=True, slots=True)
class RelocateToCluster:
    """Move a random item to one of the other clusters, all equally likely."""

    def available(self, counts: Counts) -> bool:
        """Two clusters are needed."""
        return counts.clusters >= 2

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw an item, then a cluster that is not its own."""
        item = stream.below(world.n_items)
        source = int(world.arrays.labels[item])
        position = stream.below(world.n_clusters - 1)
        position += position >= world.arrays.live_at[source]  # the clusters without its own, in order
        return Transfer((item,), source, int(world.arrays.live[position]))

    def log_probability(self, counts: Counts) -> float:
        """1 / n times 1 / (clusters - 1)."""
        if counts.moving != 1 or counts.target == 0:
            return -math.inf
        return -math.log(counts.items) - math.log(counts.clusters - 1)


@dataclass(frozen=True, slots=True)
class RelocateToItem(_AnyWorld):
    """Move a random item to the cluster of another random item: large clusters attract."""

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw two different items; nothing changes if they are together already."""
        item, other = _two_items(stream, world.n_items)
        source, target = int(world.arrays.labels[item]), int(world.arrays.labels[other])
        return None if source == target else Transfer((item,), source, target)

    def log_probability(self, counts: Counts) -> float:
        """1 / n times t / (n - 1)."""
        if counts.moving != 1 or counts.target == 0:
            return -math.inf
        return _log(counts.target / (counts.items * (counts.items - 1.0)))


@dataclass(frozen=True, slots=True)
class RelocateToCandidate:
    """Move a random item to the cluster of one of its candidates, as blocking found them.

    start, candidate
        The candidates of item i are ``candidate[start[i]:start[i + 1]]``.
    """

    start: NDArray[np.int64]
    candidate: NDArray[np.int64]

    @classmethod
    def from_pairs(cls, n_items: int, pairs: ArrayLike) -> RelocateToCandidate:
        """Make the two items of each pair candidates of each other."""
        given = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if len(given) and (given.min() < 0 or given.max() >= n_items or (given[:, 0] == given[:, 1]).any()):
            raise ShapeError(f"candidate pairs must be two different items between 0 and {n_items - 1}.")
        both = np.concatenate([given[:, 0], given[:, 1]])
        order = np.argsort(both, kind="stable")
        start = np.zeros(n_items + 1, dtype=np.int64)
        np.cumsum(np.bincount(both, minlength=n_items), out=start[1:])
        return cls(start, np.concatenate([given[:, 1], given[:, 0]])[order])

    def available(self, counts: Counts) -> bool:
        """At least one candidate pair is needed."""
        return len(self.candidate) > 0

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw an item and one of its candidates."""
        item = stream.below(world.n_items)
        degree = int(self.start[item + 1] - self.start[item])
        choice = stream.below(degree) if degree else 0
        if degree == 0:
            return None
        source = int(world.arrays.labels[item])
        target = int(world.arrays.labels[self.candidate[self.start[item] + choice]])
        return None if source == target else Transfer((item,), source, target)

    def links(self, world: Partition, item: int, members: NDArray[np.int32]) -> float:
        """Share of the item's candidates among ``members``."""
        own = self.candidate[self.start[item] : self.start[item + 1]]
        return float(np.isin(own, members).mean()) if len(own) else 0.0

    def log_probability(self, counts: Counts) -> float:
        """1 / n times the share of the candidates that are in the target."""
        if counts.moving != 1 or counts.target == 0:
            return -math.inf
        return _log(counts.links / counts.items)


@dataclass(frozen=True, slots=True)
class RelocateToNew:
    """Move a random item to a cluster of its own, with a random type."""

    def available(self, counts: Counts) -> bool:
        """Some cluster must have two members."""
        return counts.splittable >= 1

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw an item; nothing changes for one that is alone."""
        item = stream.below(world.n_items)
        new_type = stream.below(world.n_types) if world.n_types > 1 else 0
        source = int(world.arrays.labels[item])
        return None if world.arrays.size[source] == 1 else Transfer((item,), source, NEW, new_type)

    def log_probability(self, counts: Counts) -> float:
        """1 / n times 1 / types."""
        if counts.moving != 1 or counts.target != 0:
            return -math.inf
        return -math.log(counts.items) - math.log(counts.types)


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge two random clusters, all ordered pairs equally likely; the second one's type is kept."""

    def available(self, counts: Counts) -> bool:
        """Two clusters are needed."""
        return counts.clusters >= 2

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw two different clusters."""
        first, second = _two_items(stream, world.n_clusters)
        source, target = int(world.arrays.live[first]), int(world.arrays.live[second])
        return Transfer(tuple(world.members(source).tolist()), source, target)

    def log_probability(self, counts: Counts) -> float:
        """1 / (clusters (clusters - 1))."""
        if counts.moving != counts.source or counts.target == 0:
            return -math.inf
        return -math.log(counts.clusters) - math.log(counts.clusters - 1)


@dataclass(frozen=True, slots=True)
class Split:
    """Split a random cluster of two or more into two parts, all bipartitions equally likely."""

    def available(self, counts: Counts) -> bool:
        """Some cluster must have two members."""
        return counts.splittable >= 1

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw a cluster, then a part that is neither empty nor all of it."""
        count = int(world.arrays.counters[SPLITTABLE])
        source = int(world.arrays.splittable[stream.below(count)])
        new_type = stream.below(world.n_types) if world.n_types > 1 else 0
        members = world.members(source).tolist()
        moving: list[int] = []
        while not 0 < len(moving) < len(members):  # two of the 2^s subsets are no split: draw again
            moving = [item for item in members if stream.uniform() < 0.5]
        return Transfer(tuple(moving), source, NEW, new_type)

    def log_probability(self, counts: Counts) -> float:
        """1 / splittable times 1 / (2^s - 2) times 1 / types: either part may be the one that moves."""
        if counts.target != 0 or counts.moving >= counts.source:
            return -math.inf
        subsets = counts.source * math.log(2.0) + math.log1p(-(2.0 ** (1 - counts.source)))
        return -math.log(counts.splittable) - subsets - math.log(counts.types)


@dataclass(frozen=True, slots=True)
class SplitMerge(_AnyWorld):
    """Draw two items: split their cluster at random between them, or merge their two clusters."""

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw the pair; the first stays, the second moves, the other members toss a coin each."""
        stays, moves = _two_items(stream, world.n_items)
        source, target = int(world.arrays.labels[moves]), int(world.arrays.labels[stays])
        if source != target:
            return Transfer(tuple(world.members(source).tolist()), source, target)
        new_type = stream.below(world.n_types) if world.n_types > 1 else 0
        part = [
            item
            for item in world.members(source).tolist()
            if item == moves or (item != stays and stream.uniform() < 0.5)
        ]
        return Transfer(tuple(part), source, NEW, new_type)

    def log_probability(self, counts: Counts) -> float:
        """Sum over the pairs that lead there: m (s - m) for a split, s t for a merge, of n (n - 1)."""
        pairs = math.log(counts.items) + math.log(counts.items - 1)
        if counts.target == 0 and counts.moving < counts.source:
            ways = math.log(counts.moving) + math.log(counts.source - counts.moving)
            return ways - pairs - (counts.source - 2) * math.log(2.0) - math.log(counts.types)
        if counts.target > 0 and counts.moving == counts.source:
            return math.log(counts.source) + math.log(counts.target) - pairs
        return -math.inf


@dataclass(frozen=True, slots=True)
class RetypeCluster:
    """Give a random cluster another type, all others equally likely."""

    def available(self, counts: Counts) -> bool:
        """Two types are needed."""
        return counts.types >= 2

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw a cluster and a type that is not its own."""
        cluster = int(world.arrays.live[stream.below(world.n_clusters)])
        old = int(world.arrays.types[cluster])
        new = stream.below(world.n_types - 1)
        return Retype(cluster, old, new + (new >= old))

    def log_probability(self, counts: Counts) -> float:
        """1 / clusters times 1 / (types - 1), for a change of type: nothing moves."""
        if counts.moving != 0:
            return -math.inf
        return -math.log(counts.clusters) - math.log(counts.types - 1)


def _two_items(stream: Stream, count: int) -> tuple[int, int]:
    """Draw an ordered pair of different numbers below ``count``."""
    first = stream.below(count)
    second = stream.below(count - 1)
    return first, second + (second >= first)


@dataclass(frozen=True)
class PartitionMixture:
    """A weighted mixture of moves, whose probabilities add up over all moves and all literal transfers.

    Where a move has nothing to propose, the weights of the others are renormalised.
    """

    moves: Sequence[PartitionMove]
    weights: Sequence[float] = field(default=())

    def __post_init__(self) -> None:
        if not self.moves:
            raise InvalidArgumentError("a mixture needs at least one move: give PartitionMixture([Merge(), ...]).")
        weights = tuple(float(w) for w in self.weights) or (1.0,) * len(self.moves)
        if len(weights) != len(self.moves) or not all(w > 0 and math.isfinite(w) for w in weights):
            raise InvalidArgumentError(
                f"{len(self.moves)} moves need as many positive weights, but {self.weights!r} was given."
            )
        object.__setattr__(self, "moves", tuple(self.moves))
        object.__setattr__(self, "weights", weights)

    def draw(self, stream: Stream, world: Partition) -> Proposal:
        """Draw a move among those available, then a transfer from it."""
        counts = counts_of(world)
        able = [move.available(counts) for move in self.moves]
        total = sum(w for w, ok in zip(self.weights, able, strict=True) if ok)
        threshold = stream.uniform() * total
        if total == 0.0:
            return Proposal(None, 0.0, 0.0)
        chosen = self.moves[_pick(self.weights, able, threshold)]
        diff = chosen.draw(stream, world)
        if diff is None:
            return Proposal(None, 0.0, 0.0)
        return Proposal(diff, *self.log_probabilities(world, diff))

    def log_probabilities(self, world: Partition, diff: PartitionDiff) -> tuple[float, float]:
        """Log-probability of proposing the world ``diff`` leads to, and of proposing the way back."""
        if isinstance(diff, Retype):
            counts = counts_of(world)._replace(moving=0)
            there = self._log_total([counts])
            return there, there
        ways, back = ways_and_back(world, diff, self._candidates())
        return self._log_total(ways), self._log_total(back)

    def _candidates(self) -> RelocateToCandidate | None:
        return next((move for move in self.moves if isinstance(move, RelocateToCandidate)), None)

    def _log_total(self, ways: Sequence[Counts]) -> float:
        terms = []
        available = 0.0
        for move, weight in zip(self.moves, self.weights, strict=True):
            if move.available(ways[0]):
                available += weight
                terms += [math.log(weight) + move.log_probability(counts) for counts in ways]
        return _log_sum(terms) - math.log(available) if terms else -math.inf

    def support(self, world: Partition) -> Iterator[Proposal]:
        """Enumerate every world one transfer away, once each, and the chance to stay."""
        seen: set[tuple[bytes, bytes]] = set()
        moved = 0.0
        for diff in all_diffs(world):
            key = world.after(diff).canonical()
            forward, backward = self.log_probabilities(world, diff)
            if key not in seen and forward > -math.inf:
                seen.add(key)
                moved += math.exp(forward)
                yield Proposal(diff, forward, backward)
        stay = max(0.0, 1.0 - moved)
        yield Proposal(None, _log(stay), _log(stay))


def counts_of(world: Partition) -> Counts:
    """Return the counts of a world, with no transfer yet."""
    splittable = int(world.arrays.counters[SPLITTABLE])
    return Counts(world.n_items, world.n_clusters, splittable, world.n_types, 0, 0, 0)


def ways_and_back(
    world: Partition, diff: Transfer, candidates: RelocateToCandidate | None
) -> tuple[list[Counts], list[Counts]]:
    """Counts of every literal transfer that gives the same world as ``diff``, and of those that lead back."""
    p = world.arrays
    s, m = int(p.size[diff.source]), len(diff.items)
    t = 0 if diff.target == NEW else int(p.size[diff.target])
    target_type = diff.new_type if t == 0 else int(p.types[diff.target])
    same_type = int(p.types[diff.source]) == target_type
    here = counts_of(world)
    there = here._replace(
        clusters=here.clusters + (t == 0) - (m == s),
        splittable=here.splittable - (s >= 2) - (t >= 2) + (s - m >= 2) + (t + m >= 2),
    )
    ways = [here._replace(source=s, moving=m, target=t)]
    back = [there._replace(source=t + m, moving=m, target=s - m)]
    if same_type and t == 0:  # a split may move the other part, and the merge back too
        ways.append(here._replace(source=s, moving=s - m, target=0))
        back.append(there._replace(source=s - m, moving=s - m, target=m))
    if same_type and m == s:  # a merge may move the other cluster, and the split back too
        ways.append(here._replace(source=t, moving=t, target=s))
        back.append(there._replace(source=s + t, moving=t, target=0))
    if candidates is not None:
        ways, back = _with_links(world, diff, candidates, ways, back)
    return ways, back


def _with_links(
    world: Partition,
    diff: Transfer,
    candidates: RelocateToCandidate,
    ways: list[Counts],
    back: list[Counts],
) -> tuple[list[Counts], list[Counts]]:
    """Fill in the shares of candidates for those transfers that move a single item."""
    source = world.members(diff.source)
    moving = np.array(diff.items, dtype=np.int32)
    staying = source[~np.isin(source, moving)]
    target = world.members(diff.target) if diff.target != NEW else moving[:0]
    # who moves and where to, in the order in which ways_and_back lists the transfers
    there = [(moving, target), (target, moving) if len(staying) == 0 else (staying, target)]
    home = [(moving, staying), (target, staying) if len(staying) == 0 else (staying, moving)]

    def linked(counts: list[Counts], parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]]) -> list[Counts]:
        return [
            c._replace(links=candidates.links(world, int(who[0]), to)) if len(who) == 1 and len(to) else c
            for c, (who, to) in zip(counts, parts, strict=False)
        ]

    return linked(ways, there), linked(back, home)


def all_diffs(world: Partition) -> Iterator[PartitionDiff]:
    """Every transfer and every change of type: exponential, for small worlds and exact tests."""
    ids = world.cluster_ids().tolist()
    for source in ids:
        members = world.members(source).tolist()
        for size in range(1, len(members) + 1):
            for part in combinations(members, size):
                for target in ids:
                    if target != source:
                        yield Transfer(part, source, target)
                if size < len(members):
                    yield from (Transfer(part, source, NEW, kind) for kind in range(world.n_types))
        old = world.type_of(source)
        yield from (Retype(source, old, new) for new in range(world.n_types) if new != old)


def _pick(weights: Sequence[float], able: Sequence[bool], threshold: float) -> int:
    """Return the index at which the running sum of the available weights passes ``threshold``."""
    last = 0
    for index, (weight, ok) in enumerate(zip(weights, able, strict=True)):
        if ok:
            last = index
            threshold -= weight
            if threshold < 0.0:
                break
    return last


def _log_sum(terms: Sequence[float]) -> float:
    top = max(terms)
    if top == -math.inf:
        return top
    return top + math.log(sum(math.exp(term - top) for term in terms))
