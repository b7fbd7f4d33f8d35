r"""Split-merge with restricted Gibbs scans, the proposal of Jain and Neal.

Two items are drawn. If they are together, their cluster is split between them; if not, their clusters are
merged. A split is not blind: from a random *launch* allocation of the other members to the two sides, a few
Gibbs scans between the two sides lead to a sensible one, and one last scan makes the proposal, with known
probability. A merge needs the probability with which the same procedure would have led back, so it makes the
same launch and forces the last scan to the present clusters. The launch is made alike in both directions and
cancels.
Implements: jain2004split, with items in ascending order inside a scan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.partition_moves import Counts
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.world.diff import NEW, PartitionDiff, Transfer
from factorwise.world.partition import Partition

Sides = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RestrictedGibbs:
    """Split or merge the clusters of two random items, the split guided by the model.

    model
        Whose scores guide the scans (at temperature 1: the Hastings ratio makes up for any other).
    scans
        Scans between the random launch and the last one.
    """

    model: Model
    scans: int = 3

    def available(self, counts: Counts) -> bool:
        """Two items are needed."""
        return counts.items >= 2

    def log_probability(self, counts: Counts) -> float:
        """Never adds to other moves: its way there is conditional on its launch."""
        return -math.inf

    def draw(self, stream: Stream, world: Partition) -> PartitionDiff | None:
        """Draw a transfer without its probabilities."""
        return self.propose(stream, world).diff  # type: ignore[no-any-return]

    def propose(self, stream: Stream, world: Partition) -> Proposal:
        """Draw a split or a merge with the probabilities of both ways, given the launch."""
        stays = stream.below(world.n_items)
        mover = stream.below(world.n_items - 1)
        mover += mover >= stays
        problem = _Sides.between(world, stays, mover, self.model)
        if problem.splits and world.n_types > 1:
            problem = problem.with_type(stream.below(world.n_types))
        sides: Sides = tuple(1 if stream.uniform() < 0.5 else 0 for _ in problem.items)
        for _ in range(self.scans):
            sides, _ = problem.scanned(sides, stream, None)
        present = None if problem.splits else problem.present()
        sides, log_scan = problem.scanned(sides, stream, present)
        return problem.proposal(sides, log_scan)

    def support(self, world: Partition) -> Iterator[Proposal]:
        """Enumerate pair, type, launch and last scan; forward probabilities include the launch."""
        log_pair = -math.log(world.n_items * (world.n_items - 1))
        for stays, mover in product(range(world.n_items), repeat=2):
            if stays == mover:
                continue
            drawn = _Sides.between(world, stays, mover, self.model)
            problems = [drawn.with_type(kind) for kind in range(world.n_types)] if drawn.splits else [drawn]
            for problem in problems:
                for launch, chance in problem.launches(self.scans).items():
                    log_launch = log_pair + math.log(chance)
                    if problem.splits:
                        finals = [(sides, problem.log_scan(launch, sides)) for sides in problem.all_sides()]
                    else:
                        finals = [(problem.present(), problem.log_scan(launch, problem.present()))]
                    for sides, log_scan in finals:
                        diff, forward, backward = problem.proposal(sides, log_scan)
                        yield Proposal(diff, forward + log_launch, backward + log_launch)


@dataclass(frozen=True, slots=True)
class _Sides:
    """Everything about one pair of anchors: the two clusters, the other items, the model.

    World has the anchors in different clusters: the present ones before a merge, provisional ones before a
    split.
    """

    original: Partition
    world: Partition
    model: Model
    stays: int
    mover: int
    items: tuple[int, ...]
    splits: bool
    new_type: int

    @classmethod
    def between(cls, world: Partition, stays: int, mover: int, model: Model) -> _Sides:
        target, source = world.cluster_of(stays), world.cluster_of(mover)
        members = {*world.members(target).tolist(), *world.members(source).tolist()} - {stays, mover}
        problem = cls(world, world, model, stays, mover, tuple(sorted(members)), source == target, 0)
        return problem.with_type(0) if source == target else problem

    def with_type(self, new_type: int) -> _Sides:
        """Let the mover's side be a new cluster of this type."""
        apart = self.original.after(
            Transfer((self.mover,), self.original.cluster_of(self.mover), NEW, new_type)
        )
        return _Sides(self.original, apart, self.model, self.stays, self.mover, self.items, True, new_type)

    def present(self) -> Sides:
        """Return the sides of the items as they are now."""
        side = self.original.cluster_of(self.mover)
        return tuple(int(self.original.cluster_of(item) == side) for item in self.items)

    def all_sides(self) -> Iterator[Sides]:
        """Every allocation of the items."""
        return product((0, 1), repeat=len(self.items))

    def placed(self, sides: Sides) -> Partition:
        """Return the world with the items on these sides."""
        world = self.world.copy()
        anchors = (self.stays, self.mover)
        for item, side in zip(self.items, sides, strict=True):
            here, there = world.cluster_of(item), world.cluster_of(anchors[side])
            if here != there:
                world.apply(Transfer((item,), here, there))
        return world

    def log_one(self, sides: Sides, index: int) -> tuple[float, float]:
        """Log-probability that one item goes to side 1, and to side 0, given all the others."""
        world = self.placed(sides)
        item = self.items[index]
        anchor = self.mover if sides[index] == 0 else self.stays
        move = Transfer((item,), world.cluster_of(item), world.cluster_of(anchor))
        gain = self.model.gain(world, move)
        gain = gain if sides[index] == 0 else -gain
        log_one = -math.log1p(math.exp(-gain)) if gain > 0 else gain - math.log1p(math.exp(gain))
        return log_one, log_one - gain

    def scanned(self, sides: Sides, stream: Stream | None, forced: Sides | None) -> tuple[Sides, float]:
        """Place every item anew in turn, at random or as ``forced``; return the log-probability too."""
        log_scan = 0.0
        for index in range(len(self.items)):
            log_one, log_zero = self.log_one(sides, index)
            if forced is not None:
                side = forced[index]
            else:
                assert stream is not None
                side = 1 if stream.uniform() < math.exp(log_one) else 0
            log_scan += log_one if side == 1 else log_zero
            sides = (*sides[:index], side, *sides[index + 1 :])
        return sides, log_scan

    def log_scan(self, start: Sides, end: Sides) -> float:
        """Log-probability that one scan leads from ``start`` to ``end``."""
        return self.scanned(start, None, end)[1]

    def launches(self, scans: int) -> dict[Sides, float]:
        """Distribution of the launch allocation after the intermediate scans."""
        everything = list(self.all_sides())
        chances = dict.fromkeys(everything, 1.0 / len(everything))
        steps = (
            {(a, b): math.exp(self.log_scan(a, b)) for a in everything for b in everything} if scans else {}
        )
        for _ in range(scans):
            chances = {b: sum(chances[a] * steps[a, b] for a in everything) for b in everything}
        return chances

    def proposal(self, sides: Sides, log_scan: float) -> Proposal:
        """Return the transfer and the probabilities of the last scan and of the type, either way."""
        source = self.original.cluster_of(self.mover)
        log_split = log_scan - math.log(self.original.n_types)
        if self.splits:
            part = [self.mover, *(item for item, side in zip(self.items, sides, strict=True) if side)]
            return Proposal(Transfer(tuple(sorted(part)), source, NEW, self.new_type), log_split, 0.0)
        members = tuple(self.original.members(source).tolist())
        return Proposal(Transfer(members, source, self.original.cluster_of(self.stays)), 0.0, log_split)
