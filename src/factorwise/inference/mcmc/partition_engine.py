"""The compiled walk over clusterings: same steps as the plain transition kernels, from the same stream."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, require
from factorwise.inference.mcmc.metropolis import Metropolis, require_exact
from factorwise.inference.mcmc.partition_gibbs import PartitionGibbs
from factorwise.inference.mcmc.partition_mixture import PartitionMixture
from factorwise.inference.mcmc.partition_moves import (
    Merge,
    RelocateToCandidate,
    RelocateToCluster,
    RelocateToItem,
    RelocateToNew,
    RetypeCluster,
    Split,
    SplitMerge,
)
from factorwise.inference.mcmc.restricted_gibbs import RestrictedGibbs
from factorwise.kernels.clusterings import partition_moves as codes
from factorwise.kernels.clusterings.partition_gains import EDGE, StorageArrays, score_clusters
from factorwise.kernels.clusterings.partition_sweeps import gibbs_sweep, metropolis_sweep
from factorwise.kernels.numeric.sixteen import SIXTEEN
from factorwise.model.partition_program import PartitionProgram
from factorwise.rng import Stream
from factorwise.world.partition import Partition

_KINDS = {
    RelocateToCluster: codes.TO_CLUSTER,
    RelocateToItem: codes.TO_ITEM,
    RelocateToCandidate: codes.TO_CANDIDATE,
    RelocateToNew: codes.TO_NEW,
    Merge: codes.MERGE,
    Split: codes.SPLIT,
    SplitMerge: codes.SPLIT_MERGE,
    RetypeCluster: codes.RETYPE,
    RestrictedGibbs: codes.RESTRICTED_GIBBS,
}


class PartitionEngine:
    """One chain over clusterings that walks compiled, on a copy of the world it starts from.

    score
        Score of the current world: of the start as given, then by adding up gains.
    factors_seen
        Pair factors that the steps so far have looked at.
    """

    def __init__(
        self,
        kernel: Metropolis | PartitionGibbs,
        world: Partition,
        *,
        program: PartitionProgram | None = None,
        score: float | None = None,
    ) -> None:
        require_exact(kernel)
        check_start(kernel, world)
        self.kernel = kernel
        self._world = world.copy()
        self.program = program or PartitionProgram(kernel.model, world.n_items)
        if self.program.model is not kernel.model or self.program.n_items != world.n_items:
            raise InvalidArgumentError(
                f"the program is for {self.program.n_items} items and a model of its own, the world has"
                f" {world.n_items}: build PartitionProgram(kernel.model, world.n_items)."
            )
        self._moves = move_arrays(kernel, world)
        self._storage = storage_arrays(self.program, len(world.arrays.members))
        self._work = work_arrays(world)
        self._pair_gain = self.program.gains.pair_gain
        self._cluster_score = self.program.gains.cluster_score
        self._work.score[0] = kernel.model.score(world) if score is None else score
        slot = self._world.arrays.items["slot"]
        self._storage.ints[:, slot] = self.program.ints.T
        self._storage.reals[:, slot] = self.program.reals.T
        self._storage.rows[slot] = self.program.rows
        if self._cluster_score is not None:
            score_clusters(self._storage, self._world.arrays, self._cluster_score)

    @cached_property
    def _general(self) -> codes.SideArrays | None:
        """Scratch of the general sweep; None where all moves relocate one item: the smaller one will do."""
        return None if only_relocations(self._moves) else _side_arrays(self._world)

    @cached_property
    def _log_weights(self) -> NDArray[np.float64]:
        return np.empty(self._world.n_items + self._world.n_types + 1)

    @property
    def _linked(self) -> bool | None:
        """None where no item has candidates: what weighs them is left out."""
        return True if len(self._moves.candidate) else None

    @property
    def score(self) -> float:
        """Score of the current world."""
        return float(self._work.score[0])

    @property
    def factors_seen(self) -> int:
        """Pair factors looked at so far."""
        return int(self._work.tally[1])

    @property
    def view(self) -> Partition:
        """The current world itself: to look at, until the next step."""
        return self._world

    @property
    def world(self) -> Partition:
        """The current world (a copy)."""
        return self._world.copy()

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps; return how many changed the world."""
        require(steps >= 0, "steps", steps, "zero or more")
        if isinstance(self.kernel, Metropolis):
            return self._run(metropolis_sweep, stream, temperature, self._general, self._linked, steps, 0, 0)
        return self._run(gibbs_sweep, stream, temperature, self._log_weights, steps)

    def advance_blocks(
        self, stream: Stream, temperature: float, first: int = 0, last: int | None = None
    ) -> int:
        """Visit blocks in turn, with as many steps in each as it has items; return how many changed it.

        Staying in a block keeps its clusters in the cache; every step leaves the distribution invariant as it
        would in random order.
        """
        blocks = len(self._moves.block_start) - 1
        if not isinstance(self.kernel, Metropolis) or blocks < 2:
            raise InvalidArgumentError("there are no blocks to visit: give RelocateToItem(blocks).")
        if codes.SPLIT in self._moves.choices["kind"]:
            raise InvalidArgumentError(
                "Split draws clusters of all blocks, which the way back by items of one block does not"
                " balance: leave Split out, or walk over the whole world with advance."
            )
        last = blocks if last is None else last
        return self._run(metropolis_sweep, stream, temperature, self._general, self._linked, 0, first, last)

    def _run(self, sweep, stream: Stream, temperature: float, *limits: Any) -> int:  # type: ignore[no-untyped-def]
        require(temperature > 0.0, "temperature", temperature, "greater than zero")
        before = int(self._work.tally[0])
        sweep(
            self._pair_gain,
            self._cluster_score,
            self._world.arrays,
            self._storage,
            self._moves,
            self._work,
            stream.state,
            float(temperature),
            *limits,
        )
        return int(self._work.tally[0]) - before


def check_start(kernel: Any, world: Any) -> None:
    """Refuse a world that the kernel's blocks or candidates do not fit."""
    proposer = getattr(kernel, "proposer", None)
    if isinstance(proposer, PartitionMixture):
        proposer.check(world)


def only_relocations(moves: codes.MoveArrays) -> bool:
    """Whether every move of a mixture relocates a single item."""
    relocations = {codes.TO_CLUSTER, codes.TO_ITEM, codes.TO_CANDIDATE, codes.TO_NEW}
    return set(moves.choices["kind"].tolist()) <= relocations


def move_arrays(kernel: Metropolis | PartitionGibbs, world: Partition) -> codes.MoveArrays:
    """Lay out the mixture of moves that a kernel proposes from."""
    mixture = getattr(kernel, "proposer", PartitionMixture([Merge()]))
    if not isinstance(mixture, PartitionMixture) or any(type(move) not in _KINDS for move in mixture.moves):
        raise NoCompiledFormError(
            f"{type(mixture).__name__} has no compiled form: give a PartitionMixture of the moves in"
            " factorwise.inference.mcmc, or run with engine='plain'."
        )
    blocks, candidates = mixture.blocks, mixture.candidates
    restricted = [move for move in mixture.moves if isinstance(move, RestrictedGibbs)]
    if any(move.model is not kernel.model for move in restricted):
        raise NoCompiledFormError(
            "RestrictedGibbs is guided by another model than the walk: build it with the kernel's model,"
            " or run with engine='plain'."
        )
    scans = [move.scans for move in restricted]
    choices = np.zeros(len(mixture.moves), codes.CHOICE)
    choices["kind"] = [_KINDS[type(move)] for move in mixture.moves]
    choices["weight"] = mixture.weights
    rates = np.append(np.bincount(choices["kind"], choices["weight"], minlength=4)[:4], 1.0 / world.n_types)
    if candidates is None or len(candidates.candidate) == 0:
        rates[codes.TO_CANDIDATE] = 0.0
    block_items = np.zeros(0 if blocks is None else world.n_items, codes.BLOCK)
    if blocks is not None:
        block_items["item"], block_items["of"] = blocks.item, blocks.of
    return codes.MoveArrays(
        choices=choices,
        candidate_start=np.zeros(world.n_items + 1, np.int64) if candidates is None else candidates.start,
        candidate=np.zeros(0, np.int64) if candidates is None else candidates.candidate,
        block_start=np.zeros(2, np.int64) if blocks is None else blocks.start,
        blocks=block_items,
        rates=rates,
        settings=np.array([world.n_types, scans[0] if scans else 0], np.int64),
    )


def storage_arrays(program: PartitionProgram, arena: int) -> StorageArrays:
    """Make room for the fields of the members at each of ``arena`` slots and in spare ones."""
    n = program.n_items
    slots = arena + 2 * n + 4 + SIXTEEN  # scans may read a few slots past the last
    edges = np.zeros(len(program.edge_neighbor), EDGE)
    edges["neighbor"], edges["score"] = program.edge_neighbor, program.edge_score
    return StorageArrays(
        item_ints=program.ints,
        item_reals=program.reals,
        item_rows=program.rows,
        ints=np.empty((program.ints.shape[1], slots), np.int32),
        reals=np.empty((program.reals.shape[1], slots), np.float32),
        rows=np.empty((slots, program.rows.shape[1]), np.float32),
        weights=program.model.weights.copy(),
        edge_start=program.edge_start,
        edges=edges,
        values=np.zeros(2),
    )


def work_arrays(world: Partition) -> codes.WorkArrays:
    """Scratch and results of a sweep over ``world``."""
    n = world.n_items
    return codes.WorkArrays(
        items=np.empty(n, np.int32),
        drawn=np.zeros(4, np.int64),
        score=np.zeros(1),
        tally=np.zeros(4, np.int64),
    )


def _side_arrays(world: Partition) -> codes.SideArrays:
    n = world.n_items
    return codes.SideArrays(
        order=np.empty(n, np.int32),
        places=np.zeros(n, codes.PLACE),
        spare=np.full(2 * n + 4, -1, np.int32),
        sizes=np.zeros(2, np.int64),
    )
