"""Clusterings of linked items in lists, with scores from the definition and steps that rescore everything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from factorwise.rng import Stream

Cluster = list[int]


class Draws(Protocol):
    """Random choices, as a step asks for them."""

    def below(self, bound: int) -> int:
        """Choose a number from 0 to ``bound - 1``."""
        ...

    def pick(self, odds: Sequence[float]) -> int:
        """Choose a place in ``odds``, each as likely as it says."""
        ...

    def happens(self, log_chance: float) -> bool:
        """Say whether something with this log-probability happens; certain if it is above zero."""
        ...


class StreamDraws:
    """Choices by a stream of random numbers, the same as compiled code makes from it."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def below(self, bound: int) -> int:
        """Choose by one number."""
        return self.stream.below(bound)

    def pick(self, odds: Sequence[float]) -> int:
        """Go along the odds until a uniform share of their sum is used up."""
        left = self.stream.uniform() * sum(odds) - odds[0]
        chosen = 0
        for k in range(1, len(odds)):
            if left < 0.0:
                break
            left -= odds[k]
            if odds[k] > 0.0:
                chosen = k
        return chosen

    def happens(self, log_chance: float) -> bool:
        """Compare with the log of one number."""
        return math.log(1.0 - self.stream.uniform()) < log_chance


@dataclass
class Linked:
    """Items with links, and a clustering.

    links
        For each item its neighbors and what the link adds beyond ``unlinked``, in the order given.
    clusters
        Members in order, the one that names the cluster first.
    """

    links: list[list[tuple[int, float]]]
    counts: list[int]
    sources: list[int]
    shard: list[int]
    unlinked: float
    cluster: float
    clusters: list[Cluster]

    def home(self, item: int) -> Cluster:
        """Return the cluster of an item."""
        return next(members for members in self.clusters if item in members)

    def near(self, item: int) -> dict[int, float]:
        """Return the neighbors of an item in its own shard, and what the links add."""
        return {other: add for other, add in self.links[item] if self.shard[other] == self.shard[item]}

    def pair(self, one: int, two: int) -> float:
        """Return the score of two items that are together."""
        if self.sources[one] & self.sources[two]:
            return -math.inf
        return self.unlinked * self.counts[one] * self.counts[two] + self.near(one).get(two, 0.0)

    def score(self, clusters: Iterable[Sequence[int]]) -> float:
        """Return the score of a clustering, leaving out what is the same for all: pairs within an item."""
        total = 0.0
        for members in clusters:
            total += self.cluster
            for place, one in enumerate(members):
                total += sum(self.pair(one, two) for two in members[:place])
        return total

    def relocated(self, item: int, target: Sequence[int]) -> list[Cluster]:
        """Return the clusters if ``item`` were with ``target``, which may be empty."""
        others = [[m for m in members if m != item] for members in self.clusters]
        kept = [members for members in others if members and set(members) != set(target)]
        return [*kept, [*target, item]]

    def leave(self, item: int) -> None:
        """Put an item by itself; who stood after the name of a cluster inherits it."""
        home = self.home(item)
        if len(home) > 1:
            home.remove(item)
            self.clusters.append([item])

    def join(self, item: int, target: Cluster) -> None:
        """Put an item that is by itself at the end of a cluster."""
        self.clusters.remove([item])
        target.append(item)


def gibbs_step(world: Linked, draws: Draws, item: int, temperature: float, strict: bool) -> float:
    """Draw the place of an item from exp(score / temperature) of all it can have; return the gain."""
    home = world.home(item)
    places = _linked_places(world, item)
    if len(home) > 1 and home not in places:
        if strict:
            return 0.0
        places.append(home)
    if len(places) == 1:
        return 0.0
    scores = [world.score(world.relocated(item, _without(item, place))) for place in places]
    best = max(scores)
    target = places[draws.pick([math.exp((score - best) / temperature) for score in scores])]
    if target is home or (len(home) == 1 and not target):
        return 0.0
    before = world.score(world.clusters)
    world.leave(item)
    if target:
        world.join(item, target)
    return world.score(world.clusters) - before


def _linked_places(world: Linked, item: int) -> list[Cluster]:
    """Return the clusters that an item has links into, in their order, after an empty one."""
    places: list[Cluster] = [[]]
    for other in world.near(item):
        if world.home(other) not in places:
            places.append(world.home(other))
    return places


def _without(item: int, members: Cluster) -> Cluster:
    return [member for member in members if member != item]


def gibbs_sweep(world: Linked, draws: Draws, items: Iterable[int], temperature: float, strict: bool) -> float:
    """Take a Gibbs step for each of some items; return the gain."""
    return sum(gibbs_step(world, draws, item, temperature, strict) for item in items)


def home_chances(world: Linked, temperature: float) -> list[float]:
    """Return for each item the share of its own place in exp(score / temperature) of all it can have."""
    chances = []
    now = world.score(world.clusters)
    for item in range(len(world.links)):
        places = _linked_places(world, item)
        if len(world.home(item)) > 1 and world.home(item) not in places:
            places.append(world.home(item))
        scores = [world.score(world.relocated(item, _without(item, place))) for place in places]
        chances.append(1.0 / sum(math.exp((score - now) / temperature) for score in scores))
    return chances
