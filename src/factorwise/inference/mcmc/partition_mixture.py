r"""Mixtures of moves over clusterings, with exact proposal probabilities.

Two different transfers can give the same world: a split may move either part, a merge either cluster, and
relocating a singleton is merging it. The probability of proposing a *world* adds up the literal transfers r
that give it, over all moves c of the mixture:

.. math:: q(w' \mid w) = \frac{\sum_c \beta_c \sum_{r \to w'} p_c(r)}{\sum_{c\ \text{available}} \beta_c}

so that merge and split balance each other. The way back is the reverse transfer seen from the other side; its
counts follow from the forward ones by arithmetic, so nothing is applied to find them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.kernel import Proposal
from factorwise.inference.mcmc.partition_moves import (
    Blocks,
    Counts,
    Merge,
    PartitionMove,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    SplitMerge,
)
from factorwise.inference.mcmc.restricted_gibbs import RestrictedGibbs
from factorwise.rng import Stream
from factorwise.world.diff import NEW, PartitionDiff, Retype, Transfer
from factorwise.world.partition import Partition

_ACROSS_BLOCKS = (Merge, RelocateToCandidate, RelocateToCluster, RestrictedGibbs, SplitMerge)


@dataclass(frozen=True)
class PartitionMixture:
    """A weighted mixture of moves, whose probabilities add up over all moves and all literal transfers.

    Where a move has nothing to propose, the weights of the others are renormalised.
    """

    moves: Sequence[PartitionMove]
    weights: Sequence[float] = field(default=())

    def __post_init__(self) -> None:
        if not self.moves:
            raise InvalidArgumentError("a mixture needs a move: give PartitionMixture([Merge(), ...]).")
        strangers = [move for move in self.moves if not hasattr(move, "log_probability")]
        if strangers:
            raise InvalidArgumentError(
                f"{type(strangers[0]).__name__} is not a move that can be mixed: a mixture adds up the"
                " probabilities of moves that depend on sizes alone. Use it as the proposer by itself."
            )
        weights = tuple(float(w) for w in self.weights) or (1.0,) * len(self.moves)
        if len(weights) != len(self.moves) or not all(w > 0 and math.isfinite(w) for w in weights):
            raise InvalidArgumentError(
                f"{len(self.moves)} moves need as many positive weights, but {self.weights!r} was given."
            )
        across = [m for m in self.moves if isinstance(m, _ACROSS_BLOCKS) or m == RelocateToItem(None)]
        if self.blocks is not None and across:
            raise InvalidArgumentError(
                f"{type(across[0]).__name__} may join items of different blocks, which blocks forbid:"
                " use RelocateToItem(blocks), RelocateToNew, Split and RetypeCluster."
            )
        for kind in (RelocateToCandidate, RestrictedGibbs):
            if sum(isinstance(move, kind) for move in self.moves) > 1:
                raise InvalidArgumentError(
                    f"a mixture has one {kind.__name__} at most, because the chances of two do not add up:"
                    " put all candidate pairs, or the larger number of scans, into one."
                )
        if len({id(move.blocks) for move in self.moves if isinstance(move, RelocateToItem)}) > 1:
            raise InvalidArgumentError("a mixture has one set of blocks: give all moves the same Blocks.")
        object.__setattr__(self, "moves", tuple(self.moves))
        object.__setattr__(self, "weights", weights)

    def check(self, world: Partition) -> None:
        """Refuse a world that the blocks or candidates were not made for."""
        if self.blocks is not None:
            self.blocks.check(world)
        made_for = world.n_items if self.candidates is None else len(self.candidates.start) - 1
        if made_for != world.n_items:
            raise ShapeError(
                f"the candidates are for {made_for} items, but the world has {world.n_items}:"
                " give RelocateToCandidate.from_pairs(world.n_items, pairs)."
            )

    def draw(self, stream: Stream, world: Partition) -> Proposal:
        """Draw a move among those available, then a transfer from it."""
        counts = counts_of(world)
        able = [move.available(counts) for move in self.moves]
        total = sum(w for w, ok in zip(self.weights, able, strict=True) if ok)
        threshold = stream.uniform() * total
        if total == 0.0:
            return Proposal(None, 0.0, 0.0)
        chosen = self.moves[_pick(self.weights, able, threshold)]
        if isinstance(chosen, RestrictedGibbs):
            return self._with_shares(world, chosen.propose(stream, world))
        diff = chosen.draw(stream, world)
        if diff is None:
            return Proposal(None, 0.0, 0.0)
        return Proposal(diff, *self.log_probabilities(world, diff))

    def log_probabilities(self, world: Partition, diff: PartitionDiff) -> tuple[float, float]:
        """Log-probability of proposing the world ``diff`` leads to, and of proposing the way back."""
        if isinstance(diff, Retype):
            counts = counts_of(world)
            there = self._log_total([counts])
            return there, there
        ways, back = ways_and_back(world, diff, self.candidates, self.blocks)
        return self._log_total(ways), self._log_total(back)

    def _with_shares(self, world: Partition, proposal: Proposal) -> Proposal:
        """Add the chance that restricted Gibbs is chosen at all, here and on the other side."""
        ways, back = ways_and_back(world, proposal.diff, None, None)
        here, there = (
            math.log(own / total) for own, total in (self._restricted_share(c[0]) for c in (ways, back))
        )
        return Proposal(proposal.diff, proposal.log_forward + here, proposal.log_backward + there)

    def _restricted_share(self, counts: Counts) -> tuple[float, float]:
        able = [(m, w) for m, w in zip(self.moves, self.weights, strict=True) if m.available(counts)]
        return sum(w for m, w in able if isinstance(m, RestrictedGibbs)), sum(w for _, w in able)

    @property
    def blocks(self) -> Blocks | None:
        """The blocks that keep items apart, where a move has them."""
        return next((m.blocks for m in self.moves if isinstance(m, RelocateToItem) and m.blocks), None)

    @property
    def candidates(self) -> RelocateToCandidate | None:
        """The move to candidates, where the mixture has it."""
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
            if self.blocks is not None and _joins_blocks(world, diff, self.blocks):
                continue
            key = world.after(diff).canonical()
            forward, backward = self.log_probabilities(world, diff)
            if key not in seen and forward > -math.inf:
                seen.add(key)
                moved += math.exp(forward)
                yield Proposal(diff, forward, backward)
        for move in self.moves:
            if isinstance(move, RestrictedGibbs) and move.available(counts_of(world)):
                for proposal in move.support(world):
                    shared = self._with_shares(world, proposal)
                    moved += math.exp(shared.log_forward)
                    yield shared
        stay = math.log(1.0 - moved) if moved < 1.0 else -math.inf
        yield Proposal(None, stay, stay)


def counts_of(world: Partition) -> Counts:
    """Return the counts of a world, with no transfer yet."""
    return Counts(world.n_items, world.n_clusters, world.n_splittable, world.n_types, 0, 0, 0, world.n_items)


def ways_and_back(
    world: Partition, diff: Transfer, candidates: RelocateToCandidate | None, blocks: Blocks | None
) -> tuple[list[Counts], list[Counts]]:
    """Counts of every literal transfer that gives the same world as ``diff``, and of those that lead back."""
    s, m = world.size_of(diff.source), len(diff.items)
    t = 0 if diff.target == NEW else world.size_of(diff.target)
    same_type = world.type_of(diff.source) == (diff.new_type if t == 0 else world.type_of(diff.target))
    here = counts_of(world)
    if blocks is not None:
        here = here._replace(peers=int(np.diff(blocks.start)[blocks.of[diff.items[0]]]))
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

    def linked(
        counts: list[Counts], parts: list[tuple[NDArray[np.int32], NDArray[np.int32]]]
    ) -> list[Counts]:
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


def _joins_blocks(world: Partition, diff: PartitionDiff, blocks: Blocks) -> bool:
    """Whether a transfer brings items of different blocks together."""
    if isinstance(diff, Retype) or diff.target == NEW:
        return False
    return bool(blocks.of[diff.items[0]] != blocks.of[world.members(diff.target)[0]])


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
