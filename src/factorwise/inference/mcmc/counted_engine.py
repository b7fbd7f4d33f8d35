"""The compiled walk over clusterings whose pair scores are read off counts, whatever the cluster sizes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, require
from factorwise.inference.mcmc.evaluators.exact import Exact
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.partition_engine import check_start
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import (
    Blocks,
    RelocateToCandidate,
    RelocateToItem,
    RelocateToNew,
)
from factorwise.kernels.clusterings.counted_tables import (
    EMPTY,
    ENTRY,
    KNOWN,
    SLOT,
    VALUE,
    CountArrays,
    ValueArrays,
    count_members,
    lay_out_values,
)
from factorwise.kernels.clusterings.counted_walks import (
    ACCEPTED,
    FACTORS,
    LOOK_UPS,
    CountedMoves,
    counted_sweep,
)
from factorwise.kernels.clusterings.partition_moves import CHOICE, TO_CANDIDATE, TO_ITEM, TO_NEW
from factorwise.model.counted_program import CountedProgram, is_counted
from factorwise.rng import Stream
from factorwise.world.partition import Partition

_KINDS = {RelocateToItem: TO_ITEM, RelocateToCandidate: TO_CANDIDATE, RelocateToNew: TO_NEW}
_PARTS_PER_THREAD = 8  # more parts than threads, so that one slow part does not hold up the rest


def can_count(kernel: Any, world: Partition) -> bool:
    """Whether a kernel walks over ``world`` by relocations whose gains can be read off counts."""
    mixture = getattr(kernel, "proposer", None)
    return (
        isinstance(kernel, Metropolis)
        and isinstance(kernel.evaluator, Exact)
        and isinstance(mixture, PartitionMixture)
        and all(type(move) in _KINDS for move in mixture.moves)
        and world.n_types == 1
        and is_counted(kernel.model)
    )


class CountedLayout:
    """The values of all items, block by block, for walks of one kernel from one world.

    order, place : int32[n], int64[n]
        Items by position and positions by item; the items of a block stand next to each other.
    """

    def __init__(self, kernel: Metropolis, world: Partition) -> None:
        n_items = world.n_items
        self.program = CountedProgram(kernel.model, n_items)
        mixture = kernel.proposer
        if not isinstance(mixture, PartitionMixture) or any(type(m) not in _KINDS for m in mixture.moves):
            raise NoCompiledFormError(
                f"{type(mixture).__name__} cannot be walked by counts: give a PartitionMixture of"
                " RelocateToItem, RelocateToCandidate and RelocateToNew."
            )
        blocks = _blocks(mixture, world)
        self.order = blocks.item
        self.place = np.empty(n_items, np.int64)
        self.place[self.order] = np.arange(n_items)
        self.moves = self._moves(mixture)
        program = self.program
        codes = program.codes[self.order]
        first = np.zeros(n_items + 1, np.int64)
        entries = np.zeros(np.count_nonzero(codes), ENTRY)
        largest = int(np.diff(blocks.start).max()) * codes.shape[1]
        scratch = np.zeros(1 << max(1, (2 * largest - 1).bit_length()), VALUE)
        slot_start = np.zeros(len(blocks.start), np.int64)
        self.n_slots = lay_out_values(
            codes, program.column_key, blocks.start, slot_start, scratch, first, entries
        )
        if self.n_slots >= 2**32:
            raise NoCompiledFormError(
                f"the values that items share need {self.n_slots} counts, more than 2^32: give blocks"
                " (RelocateToItem(blocks)), so that fewer items can be together."
            )
        self.values = ValueArrays(
            block_start=blocks.start,
            slot_start=slot_start,
            block_of=blocks.of[self.order],
            first=first,
            entries=entries[: first[-1]],
            known=program.known[self.order],
        )

    def _moves(self, mixture: PartitionMixture) -> CountedMoves:
        choices = np.zeros(len(mixture.moves), CHOICE)
        choices["kind"] = [_KINDS[type(move)] for move in mixture.moves]
        choices["weight"] = mixture.weights
        rates = np.zeros(TO_NEW + 1)
        np.add.at(rates, choices["kind"], choices["weight"])
        candidates = mixture.candidates
        start, candidate = np.zeros(len(self.order) + 1, np.int64), np.zeros(0, np.int64)
        if candidates is not None:
            start, others = _permuted(candidates.start, self.order)
            candidate = self.place[candidates.candidate[others]]
        if len(candidate) == 0:
            rates[TO_CANDIDATE] = 0.0
        edge_start, edges_at = _permuted(self.program.edge_start, self.order)
        edges = self.program.edges[edges_at]
        edges["neighbor"] = self.place[edges["neighbor"]]
        return CountedMoves(choices, rates, start, candidate, edge_start, edges, self.place)


class CountedEngine:
    """One chain over clusterings that reads the gains of relocations off counts.

    The model has `CountedTemplate` and, beside them, `EdgeTemplate` and `ClusterSize`; the moves are
    `RelocateToItem`, `RelocateToCandidate` and `RelocateToNew`.

    look_ups
        Counts that were read.
    factors_seen
        Pair factors that an exact loop over members would have looked at for the same gains.
    """

    def __init__(
        self,
        kernel: Metropolis,
        world: Partition,
        *,
        layout: CountedLayout | None = None,
    ) -> None:
        check_start(kernel, world)
        if not isinstance(kernel.evaluator, Exact):
            raise NoCompiledFormError(
                f"counts give exact gains, but the kernel asks for {type(kernel.evaluator).__name__}: leave"
                " the evaluator out."
            )
        if world.n_types > 1:
            raise NoCompiledFormError(
                "clusters with types cannot be walked by counts: use PartitionEngine(kernel, world)."
            )
        self.kernel = kernel
        self.layout = layout or CountedLayout(kernel, world)
        if self.layout.program.model is not kernel.model or self.layout.program.n_items != world.n_items:
            raise InvalidArgumentError(
                f"the layout is for {self.layout.program.n_items} items and a model of its own, the world has"
                f" {world.n_items}: build CountedLayout(kernel, world)."
            )
        n, values = world.n_items, self.layout.values
        self._weights = self.layout.program.weights()
        self._counts = CountArrays(
            labels=_labels_by_position(world, self.layout),
            clusters=np.zeros((n, KNOWN + len(self._weights.conflict)), np.int32),
            slots=np.zeros(self.layout.n_slots, SLOT),
            spare=np.zeros(n, np.int32),
            blocks=np.zeros((self.n_blocks, 2), np.int64),
        )
        self._counts.slots["cluster"] = EMPTY
        self._scores = np.zeros(self.n_blocks)
        self._tally = np.zeros(4, np.int64)
        self._view: Partition | None = None
        count_members(values, self._counts, self._weights, self._scores, 0, self.n_blocks)
        self._constant = self.layout.program.constant() + self.layout.program.edges_within(world.labels)

    @property
    def n_blocks(self) -> int:
        """Blocks that no cluster reaches across: of the moves, or what candidates connect."""
        return len(self.layout.values.block_start) - 1

    @property
    def score(self) -> float:
        """Score of the current world."""
        return float(self._scores.sum() + self._constant)

    @property
    def look_ups(self) -> int:
        """Counts read so far."""
        return int(self._tally[LOOK_UPS])

    @property
    def factors_seen(self) -> int:
        """Pair factors that those counts stood for."""
        return int(self._tally[FACTORS])

    @property
    def labels(self) -> NDArray[np.int32]:
        """Cluster of each item (a copy); the numbers mean nothing but which items are together."""
        return self._counts.labels[self.layout.place]

    @property
    def view(self) -> Partition:
        """The current world: to look at, until the next step."""
        if self._view is None:
            labels = self.labels
            used = np.zeros(len(labels), np.int32)
            used[labels] = 1
            self._view = Partition((np.cumsum(used, dtype=np.int32) - 1)[labels])
        return self._view

    @property
    def world(self) -> Partition:
        """The current world (a copy)."""
        return self.view.copy()

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps over all items; return how many changed the world."""
        require(steps >= 0, "steps", steps, "zero or more")
        require(temperature > 0.0, "temperature", temperature, "greater than zero")
        before = int(self._tally[ACCEPTED])
        self._sweep(self._tally, stream.state, 0, temperature, steps, 0, 0)
        return int(self._tally[ACCEPTED]) - before

    def advance_blocks(
        self,
        stream: Stream,
        temperature: float,
        first: int = 0,
        last: int | None = None,
        *,
        sweeps: int = 1,
        threads: int = 1,
    ) -> int:
        """Visit blocks in turn, with ``sweeps`` steps for each of its items; return how many changed it.

        A visit is the walk over the block's items alone. Its random numbers come from the stream of one
        number drawn here and of the block, so the result is the same for any number of threads.
        """
        require(sweeps >= 1, "sweeps", sweeps, "at least 1")
        require(threads >= 1, "threads", threads, "at least 1")
        require(temperature > 0.0, "temperature", temperature, "greater than zero")
        last = self.n_blocks if last is None else last
        require(0 <= first <= last <= self.n_blocks, "blocks", (first, last), f"within 0 to {self.n_blocks}")
        root = stream.bits()
        parts = self._parts(first, last, threads)
        tallies = np.zeros((len(parts), 64), np.int64)  # rows far apart: threads do not share a cache line

        def visit(number: int) -> None:
            begin, end = parts[number]
            state = np.zeros(2, np.uint64)
            self._sweep(tallies[number], state, root, temperature, sweeps, begin, end)

        if threads == 1:
            for number in range(len(parts)):
                visit(number)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(visit, range(len(parts))))
        total = tallies[:, : len(self._tally)].sum(axis=0)
        self._tally += total
        return int(total[ACCEPTED])

    def _parts(self, first: int, last: int, threads: int) -> list[tuple[int, int]]:
        """Cut a range of blocks into parts of about as many items each."""
        if first == last:
            return []
        start = self.layout.values.block_start[first : last + 1]
        cuts = np.linspace(start[0], start[-1], threads * _PARTS_PER_THREAD + 1 if threads > 1 else 2)
        edges = np.unique(np.searchsorted(start, cuts)) + first
        return list(pairwise(edges.tolist()))

    def _sweep(
        self,
        tally: NDArray[np.int64],
        state: NDArray[np.uint64],
        root: int,
        temperature: float,
        steps: int,
        first: int,
        last: int,
    ) -> None:
        self._view = None
        counted_sweep(
            self.layout.values,
            self._counts,
            self._weights,
            self.layout.moves,
            tally,
            self._scores,
            state,
            np.uint64(root),
            float(temperature),
            self.kernel.hastings,
            steps,
            first,
            last,
        )


def _blocks(mixture: PartitionMixture, world: Partition) -> Blocks:
    """Group the items that moves may bring together."""
    n, candidates = world.n_items, mixture.candidates
    if mixture.blocks is not None:
        return mixture.blocks
    if candidates is None or any(isinstance(move, RelocateToItem) for move in mixture.moves):
        return Blocks.from_keys(np.zeros(n, np.int8))
    # candidates, and the clusters to begin with: each item with one member of its own
    member = np.zeros(n, np.int64)
    member[world.labels] = np.arange(n)
    rows = np.concatenate([np.repeat(np.arange(n), np.diff(candidates.start)), np.arange(n)])
    columns = np.concatenate([candidates.candidate, member[world.labels]])
    links = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n, n))
    return Blocks.from_keys(connected_components(links, directed=False)[1])


def _permuted(
    start: NDArray[np.int64], order: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lists of items in another order: where each starts, and which elements they are made of."""
    lengths = np.diff(start)[order]
    fresh = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    within = np.arange(fresh[-1]) - np.repeat(fresh[:-1], lengths)
    return fresh, np.repeat(start[:-1][order], lengths) + within


def _labels_by_position(world: Partition, layout: CountedLayout) -> NDArray[np.int32]:
    """Number every cluster by the first position at which it has a member."""
    labels = world.labels[layout.order]
    lowest = np.zeros(len(labels), np.int32)
    lowest[labels[::-1]] = np.arange(len(labels) - 1, -1, -1, dtype=np.int32)  # the last to be written stays
    return lowest[labels]
