"""Moves over clusterings: relocate, merge, split, split-merge, retype.

Moves that can undo each other are combined into one proposer whose ratio adds up all ways: the relocations,
and merges with splits. `PartitionMixture` does this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError
from factorwise.inference.mcmc.parts import ProgramProposer, Surroundings
from factorwise.kernels.clusterings import jumps, relocations
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.graphs.components import component_numbers
from factorwise.types import Int32s, Int64s, Ints
from factorwise.validation import as_ints, check_permutation, check_range, check_starts
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition


class PartitionMove(ProgramProposer):
    """A way to draw transfers, by itself or in a `PartitionMixture`.

    Moves of one ``family`` can undo each other: a mixture combines them into one proposer, with their method
    ``mixed(other, weight, other_weight)``. A move that may join any two items sets ``crosses_blocks``.
    """

    family: str = ""
    crosses_blocks: bool = False
    worlds = (Partition,)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of items; clusters must lie within a block.

    start, item, of : int64[blocks + 1], int32[n], int32[n]
        The items of block b are ``item[start[b]:start[b + 1]]``; ``of[i]`` is the block of item i.
    """

    start: Int64s
    item: Int32s
    of: Int32s

    def __post_init__(self) -> None:
        for name, dtype in (("start", np.int64), ("item", np.int32), ("of", np.int32)):
            object.__setattr__(self, name, as_ints(name, getattr(self, name), dtype=dtype))
        check_starts("start", self.start, len(self.item))
        check_permutation("item", self.item)
        blocks = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        if len(self.of) != len(self.item) or (self.of[self.item] != blocks).any():
            raise ShapeError(
                "of must be the block of each item, in agreement with start and item: use"
                " Blocks.from_keys(keys)."
            )

    @classmethod
    def from_keys(cls, keys: ArrayLike) -> Blocks:
        """Put items with equal keys into one block."""
        of = np.unique(np.asarray(keys), return_inverse=True)[1].astype(np.int32)
        start = np.zeros(int(of.max()) + 2, dtype=np.int64)
        np.cumsum(np.bincount(of), out=start[1:])
        return cls(start, np.argsort(of, kind="stable").astype(np.int32), of)

    def check(self, world: Partition) -> None:
        """Refuse a world with a cluster that spans several blocks."""
        if len(self.of) != world.n_items:
            raise ShapeError(f"the blocks cover {len(self.of)} items, but the world has {world.n_items}.")
        ids = len(world.arrays.size)
        lowest = np.full(ids, len(self.start), dtype=np.int32)
        highest = np.zeros(ids, dtype=np.int32)
        np.minimum.at(lowest, world.labels, self.of)
        np.maximum.at(highest, world.labels, self.of)
        across = np.flatnonzero(lowest < highest)
        if len(across):
            raise InvalidArgumentError(
                f"a cluster of {world.size_of(int(across[0]))} items spans several blocks: start from a"
                " world whose clusters lie within blocks, such as Partition.singletons(n)."
            )


@dataclass(frozen=True)
class Relocate(PartitionMove):
    """Move a random item: to the cluster of another item, of a candidate, to any cluster, or to a new one.

    The kind of target is drawn with probabilities in proportion to the rates; a proposal that leaves the item
    where it is changes nothing. The ratio adds up all ways there and back.

    to_item
        Rate of moves to the cluster of another random item: large clusters attract.
    to_new
        Rate of moves to a new cluster, with a random type.
    to_cluster
        Rate of moves to one of the other clusters, all equally likely.
    to_candidate
        Rate of moves to the cluster of one of its ``candidates``.
    blocks
        Draw the other item from the same block.
    in_turn
        Visit the blocks one after the other, with as many steps in each as it has items: the data of a
        block's steps then stay in the cache. Every step leaves the distribution invariant, as in random
        order.
    """

    to_item: float = 0.0
    to_new: float = 0.0
    to_cluster: float = 0.0
    to_candidate: float = 0.0
    blocks: Blocks | None = None
    candidates: RelocateToCandidate | None = None
    in_turn: bool = False
    family = "relocations"

    def __post_init__(self) -> None:
        rates = (self.to_item, self.to_new, self.to_cluster, self.to_candidate)
        if min(rates) < 0.0 or not 0.0 < sum(rates) < np.inf:
            raise InvalidArgumentError(
                f"the rates of relocations must be zero or more, but {rates} were given."
            )
        if self.in_turn and self.blocks is None:
            raise InvalidArgumentError("in_turn needs blocks to visit: give blocks=Blocks.from_keys(...).")
        if self.blocks is not None and (self.to_cluster or self.to_candidate):
            raise InvalidArgumentError(
                "a relocation to a cluster or to a candidate may join items of different blocks: with"
                " blocks, use to_item and to_new only."
            )
        if (self.to_candidate > 0.0) != (self.candidates is not None):
            raise InvalidArgumentError("to_candidate and candidates belong together: give both or neither.")

    def check(self, world: Partition) -> None:
        """Refuse a world that the blocks or candidates do not fit."""
        super().check(world)
        if self.blocks is not None:
            self.blocks.check(world)
        made_for = world.n_items if self.candidates is None else len(self.candidates.start) - 1
        if made_for != world.n_items:
            raise ShapeError(
                f"the candidates are for {made_for} items, but the world has {world.n_items}: build"
                " them with RelocateToCandidate.from_pairs(world.n_items, pairs)."
            )
        if self.candidates is not None:
            check_range("candidate", self.candidates.candidate, world.n_items)

    def groups(self, world: Partition) -> Int32s | None:
        """Return group numbers, such that only items of one group can come together; None if any two may."""
        if self.blocks is not None:
            return self.blocks.of
        if self.candidates is None or self.to_item > 0.0 or self.to_cluster > 0.0:
            return None
        # items that candidates connect, and initial clusters, in which each item is connected with one member
        n, member = world.n_items, np.zeros(len(world.arrays.size), np.int64)
        member[world.labels] = np.arange(n)
        rows = np.concatenate([np.repeat(np.arange(n), np.diff(self.candidates.start)), np.arange(n)])
        columns = np.concatenate([self.candidates.candidate, member[world.labels]])
        return component_numbers(n, rows, columns)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws an item, a kind of target and the target."""
        world, blocks, candidates = parts.world, self.blocks, self.candidates
        start, candidate = np.zeros(1, np.int64), np.zeros(0, np.int32)
        if candidates is not None:
            start, candidate = candidates.start, candidates.candidate.astype(np.int32)
        to_candidate = self.to_candidate if len(candidate) else 0.0
        arrays = {
            "rates": [self.to_cluster, self.to_item, to_candidate, self.to_new],
            "types": [world.n_types],
            "block_start": np.zeros(0, np.int64) if blocks is None else blocks.start,
            "block_item": np.zeros(0, np.int32) if blocks is None else blocks.item,
            "block_of": np.zeros(0, np.int32) if blocks is None else blocks.of,
            "candidate_start": start,
            "candidate": candidate,
            "visit": np.array([-1, 0] if self.in_turn else [], np.int64),
            "told": Pointers(
                [p for p in parts.templates if self.in_turn and "visit" in p.functions], ("visit",)
            ),
            "fetched": np.zeros(1, np.int64),
            "ratio": [int(parts.ratio)],
        }
        return Program(draw=relocations.draw_relocation, arrays=arrays, name="relocations")

    def mixed(self, other: Relocate, weight: float, other_weight: float) -> Relocate:
        """Return the relocation that draws from this one and another.

        other
            The other relocation.
        weight, other_weight
            Probability of each.
        """
        if len({id(move.blocks) for move in (self, other) if move.to_item > 0.0}) > 1:
            raise InvalidArgumentError(
                "a mixture can have only one set of blocks: give all moves the same Blocks."
            )
        if self.candidates is not None and other.candidates is not None:
            raise InvalidArgumentError(
                "a mixture can have only one RelocateToCandidate, because the chances of two cannot be"
                " added: put all candidate pairs into one."
            )

        def rate(name: str) -> float:
            mine, theirs = self.shares(), other.shares()
            return weight * mine[name] + other_weight * theirs[name]

        return Relocate(
            to_item=rate("to_item"),
            to_new=rate("to_new"),
            to_cluster=rate("to_cluster"),
            to_candidate=rate("to_candidate"),
            blocks=self.blocks or other.blocks,
            candidates=self.candidates or other.candidates,
            in_turn=self.in_turn or other.in_turn,
        )

    def shares(self) -> dict[str, float]:
        """Return the probability of each kind of target."""
        rates = {name: getattr(self, name) for name in ("to_item", "to_new", "to_cluster", "to_candidate")}
        total = sum(rates.values())
        return {name: rate / total for name, rate in rates.items()}


class RelocateToCluster(Relocate):
    """Move a random item to one of the other clusters, all equally likely."""

    def __init__(self) -> None:
        super().__init__(to_cluster=1.0)


class RelocateToItem(Relocate):
    """Move a random item to the cluster of another random item: large clusters attract.

    blocks
        Draw the other item from the same block.
    in_turn
        Visit the blocks one after the other, with as many steps in each as it has items; see `Relocate`.
    """

    def __init__(self, blocks: Blocks | None = None, *, in_turn: bool = False) -> None:
        super().__init__(to_item=1.0, blocks=blocks, in_turn=in_turn)


class RelocateToNew(Relocate):
    """Move a random item to a cluster of its own, with a random type."""

    def __init__(self) -> None:
        super().__init__(to_new=1.0)


class RelocateToCandidate(Relocate):
    """Move a random item to the cluster of one of its candidates, for example from blocking.

    start, candidate
        The candidates of item i are ``candidate[start[i]:start[i + 1]]``.
    """

    def __init__(self, start: Int64s, candidate: Ints) -> None:
        object.__setattr__(self, "start", as_ints("start", start))
        candidates = np.asarray(candidate)  # there are many, so they keep their type
        kept = candidates.dtype if candidates.dtype.kind == "i" else np.int64
        object.__setattr__(self, "candidate", as_ints("candidate", candidates, dtype=kept))
        check_starts("start", self.start, len(self.candidate))
        super().__init__(to_candidate=1.0, candidates=self)

    start: Int64s
    candidate: Ints

    @classmethod
    def from_pairs(cls, n_items: int, pairs: ArrayLike) -> RelocateToCandidate:
        """Make the two items of each pair candidates of each other."""
        graph = LinkGraph.from_rows(n_items, pairs)
        return cls(graph.start, graph.neighbor)


@dataclass(frozen=True)
class MergeOrSplit(PartitionMove):
    """Merge two random clusters, or split a random one: each undoes the other.

    merge
        Rate of merges: all ordered pairs of clusters are equally likely; the type of the second is kept.
    split
        Rate of splits of a cluster of two or more: all bipartitions are equally likely.
    """

    merge: float = 1.0
    split: float = 1.0
    changes = "many"
    family = "merges and splits"

    @property
    def crosses_blocks(self) -> bool:  # type: ignore[override]
        """Whether the move may join any two items."""
        return self.merge > 0.0

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a merge or a split."""
        arrays = {"rates": [self.merge, self.split], "types": [parts.world.n_types]}
        return Program(draw=jumps.draw_merge_or_split, arrays=arrays, name="merges and splits")

    def mixed(self, other: MergeOrSplit, weight: float, other_weight: float) -> MergeOrSplit:
        """Return the move that draws from this one and another.

        other
            The other move.
        weight, other_weight
            Probability of each.
        """
        mine, theirs = weight / (self.merge + self.split), other_weight / (other.merge + other.split)
        return MergeOrSplit(
            mine * self.merge + theirs * other.merge, mine * self.split + theirs * other.split
        )


class Merge(MergeOrSplit):
    """Merge two random clusters.

    Without `Split` in the same mixture nothing can undo a merge, so none is accepted.
    """

    def __init__(self) -> None:
        super().__init__(1.0, 0.0)


class Split(MergeOrSplit):
    """Split a random cluster.

    Without `Merge` in the same mixture nothing can undo a split, so none is accepted.
    """

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)


@dataclass(frozen=True)
class SplitMerge(PartitionMove):
    """Draw two items, and split their cluster at random between them, or merge their two clusters."""

    changes = "many"
    crosses_blocks = True

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws the pair and a coin for each other member.

        The first item stays and the second moves.
        """
        return Program(
            draw=jumps.draw_split_merge, arrays={"types": [parts.world.n_types]}, name="splits and merges"
        )


@dataclass(frozen=True)
class RetypeCluster(PartitionMove):
    """Give a random cluster another type, all equally likely."""

    def program(self, parts: Surroundings) -> Program:
        """Return the program that draws a cluster and a type other than its own."""
        return Program(draw=jumps.draw_type, arrays={"types": [parts.world.n_types]}, name="types")
