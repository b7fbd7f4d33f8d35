"""The compiled walk over clusterings that takes the atomic gradient of every step.

It samples models with tables of pair features, and it is what SampleRank and its rivals learn with: the
weights enter through their product with the gradient alone, so they may change between any two steps.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, ShapeError, require
from factorwise.inference.mcmc.metropolis import Metropolis, require_exact
from factorwise.inference.mcmc.partition_engine import (
    check_start,
    move_arrays,
    only_relocations,
    storage_arrays,
    work_arrays,
)
from factorwise.kernels.clusterings import gradient_walks as codes
from factorwise.kernels.clusterings.gradient_walks import WalkArrays, contrastive_walk, samplerank_walk
from factorwise.kernels.clusterings.pair_tables import count_pairs
from factorwise.kernels.clusterings.partition_moves import RESTRICTED_GIBBS
from factorwise.kernels.clusterings.truth_gains import RAND, TruthArrays, truth_arrays
from factorwise.kernels.clusterings.updates import UpdateArrays
from factorwise.model.partition_program import PartitionProgram
from factorwise.rng import Stream
from factorwise.world.partition import Partition

Acceptance = Literal["metropolis", "unbalanced", "greedy", "always", "truth"]

ACCEPTANCE_CODES: dict[Acceptance, int] = dict(zip(get_args(Acceptance), range(5), strict=True))


class Manner(NamedTuple):
    """How a walk goes about its steps.

    accept
        ``metropolis``: a valid chain. ``unbalanced``: the same without the proposer's Hastings ratio.
        ``greedy``: whatever scores higher. ``always``: everything. ``truth``: whatever is better by the
        preference, and of equally good worlds the one that scores higher.
    temperature
        Of the two Metropolis rules.
    best_of
        Draw so many proposals and consider the one of highest gain: a proposer informed by the model, whose
        Hastings ratio is not known.
    """

    accept: Acceptance = "metropolis"
    temperature: float = 1.0
    best_of: int = 1

    def check(self) -> None:
        """Refuse what no walk can do."""
        require(self.accept in ACCEPTANCE_CODES, "accept", self.accept, f"one of {list(ACCEPTANCE_CODES)}")
        require(self.temperature > 0, "temperature", self.temperature, "greater than zero")
        require(self.best_of >= 1, "best_of", self.best_of, "at least 1")
        require(
            self.best_of == 1 or self.accept != "metropolis",
            "accept",
            self.accept,
            "another than 'metropolis' with best_of > 1: its Hastings ratio is not known; use 'unbalanced'",
        )


class GradientEngine:
    """One chain over clusterings that walks compiled, on a copy of the world it starts from.

    score
        Score of the current world under the kernel's model, as long as nothing was learned.
    factors_seen
        Pairs of items that the steps so far joined or separated.
    """

    def __init__(
        self, kernel: Metropolis, world: Partition, *, program: PartitionProgram | None = None
    ) -> None:
        require_exact(kernel)
        check_start(kernel, world)
        if not isinstance(kernel, Metropolis):
            raise NoCompiledFormError(
                f"{type(kernel).__name__} has no compiled form for models with tables: use Metropolis, or run"
                " with engine='plain'."
            )
        self.kernel = kernel
        self.program = program or PartitionProgram(kernel.model, world.n_items)
        if self.program.model is not kernel.model or self.program.n_items != world.n_items:
            raise InvalidArgumentError(
                f"the program is for {self.program.n_items} items and a model of its own, the world has"
                f" {world.n_items}: build PartitionProgram(kernel.model, world.n_items)."
            )
        self._pair = self.program.statistics.pair_statistics
        self._cluster = self.program.statistics.cluster_statistics
        self._edges = self.program.edge_arrays()
        self._tables = self.program.table_arrays()
        self._storage = storage_arrays(self.program, len(world.arrays.members))
        self._work = work_arrays(world)
        self._walk = _walk_arrays(world.n_items, kernel.model.blocks.size)
        self._lay_out_moves(world)
        self._no_truth = _no_truth()
        self._resting = _resting(kernel.model.weights)
        self._n_types = world.n_types
        self.reset(world)

    def _lay_out_moves(self, world: Partition) -> None:
        self._moves = move_arrays(self.kernel, world)
        if RESTRICTED_GIBBS in self._moves.choices["kind"]:
            raise NoCompiledFormError(
                "RestrictedGibbs has no compiled form for models with tables or for learning: leave it out of"
                " the mixture, or run with engine='plain'."
            )
        self._walk.settings[codes.RELOCATIONS] = only_relocations(self._moves)

    def reset(self, world: Partition) -> None:
        """Stand in a copy of ``world``."""
        if (world.n_items, world.n_types) != (self.program.n_items, self._n_types):
            raise ShapeError(
                f"the walk is over {self.program.n_items} items and {self._n_types} types, but the world has"
                f" {world.n_items} and {world.n_types}: give a world of the same items and types."
            )
        self._world = world.copy()
        self._work.score[0] = 0.0
        self._start_score: float | None = None
        slot = self._world.arrays.items["slot"]
        self._storage.ints[:, slot] = self.program.ints.T
        self._storage.reals[:, slot] = self.program.reals.T
        self._storage.rows[slot] = self.program.rows
        if self.program.has_tables:
            count_pairs(self._tables, self._world.arrays)

    @property
    def score(self) -> float:
        """Score of the current world."""
        gained = float(self._work.score[0])
        if self._start_score is None:  # learners, who walk with other weights, never ask
            self._start_score = self.kernel.model.statistics(self._world).dot(self._resting.weights) - gained
        return self._start_score + gained

    @property
    def factors_seen(self) -> int:
        """Pairs joined or separated so far, by proposals whether accepted or not."""
        return int(self._work.tally[1])

    @property
    def view(self) -> Partition:
        """The current world itself: to look at, until the next step."""
        return self._world

    @property
    def world(self) -> Partition:
        """The current world (a copy)."""
        return self._world.copy()

    @property
    def path(self) -> NDArray[np.float64]:
        """Sum of the gradients of accepted steps since it was last set (a view, to be set by learners)."""
        return self._walk.path

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps of Metropolis-Hastings; return how many changed the world."""
        require(temperature > 0.0, "temperature", temperature, "greater than zero")
        require(steps >= 0, "steps", steps, "zero or more")
        return self.learn(
            stream, Manner("metropolis", temperature), self._resting, self._no_truth, steps, learning=False
        )

    def learn(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        truth: TruthArrays | None,
        steps: int,
        *,
        free: NDArray[np.float64] | None = None,
        learning: bool = True,
    ) -> int:
        """Walk ``steps`` steps of SampleRank, with the weights of ``update``; return how many changed it."""
        self._set(manner, free, learning)
        before = int(self._work.tally[0])
        self._run(stream, manner.temperature, update, self._no_truth if truth is None else truth, steps)
        return int(self._work.tally[0]) - before

    def _run(
        self, stream: Stream, temperature: float, update: UpdateArrays, truth: TruthArrays, steps: int
    ) -> None:
        samplerank_walk(
            self._pair,
            self._cluster,
            self._world.arrays,
            self._storage,
            self._edges,
            self._tables,
            truth,
            update,
            self._moves,
            self._work,
            self._walk,
            stream.state,
            float(temperature),
            steps,
        )

    def contrast(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        rate: float,
        length: int,
        rounds: int,
        *,
        persistent: bool,
        free: NDArray[np.float64] | None = None,
    ) -> int:
        """Walk ``rounds`` times ``length`` steps of contrastive divergence; return how many were accepted."""
        self._set(manner, free, True)
        if not persistent and len(self._walk.undo_drawn) < length:
            n = self._world.n_items
            self._walk = self._walk._replace(
                undo_items=np.empty(length * n, np.int32), undo_drawn=np.zeros((length, 4), np.int64)
            )
        before = int(self._work.tally[0])
        contrastive_walk(
            self._pair,
            self._cluster,
            self._world.arrays,
            self._storage,
            self._edges,
            self._tables,
            update,
            self._moves,
            self._work,
            self._walk,
            stream.state,
            float(manner.temperature),
            float(rate),
            length,
            rounds,
            persistent,
        )
        return int(self._work.tally[0]) - before

    def _set(self, manner: Manner, free: NDArray[np.float64] | None, learning: bool) -> None:
        manner.check()
        self._walk.settings[codes.ACCEPTANCE] = ACCEPTANCE_CODES[manner.accept]
        self._walk.settings[codes.TRIES] = manner.best_of
        self._walk.settings[codes.LEARNING] = learning
        self._walk.free[:] = 1.0 if free is None else free


def _walk_arrays(n_items: int, size: int) -> WalkArrays:
    return WalkArrays(
        settings=np.zeros(4, np.int64),
        free=np.ones(size),
        gradient=np.zeros(size),
        lesson=np.zeros(size),
        path=np.zeros(size),
        items=np.empty(n_items, np.int32),
        drawn=np.zeros(4, np.int64),
        undo_items=np.empty(0, np.int32),
        undo_drawn=np.zeros((0, 4), np.int64),
    )


def _no_truth() -> TruthArrays:
    return truth_arrays(np.zeros(0, np.int32), RAND)


def _resting(weights: NDArray[np.float64]) -> UpdateArrays:
    """Weights that nothing learns."""
    nothing = np.zeros(0)
    return UpdateArrays(weights.copy(), nothing, nothing, np.zeros(8), np.zeros(4, np.int64), np.zeros(1))
