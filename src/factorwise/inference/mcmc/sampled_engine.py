"""The compiled walk over clusterings whose gains are estimated from a sample of the pair factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, require
from factorwise.inference.mcmc.evaluators.exact import Exact
from factorwise.inference.mcmc.evaluators.sampled import ConfidenceSample, UniformSample
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.partition_engine import check_start, move_arrays, only_relocations, work_arrays
from factorwise.kernels.clusterings.partition_code import PairTerm
from factorwise.kernels.clusterings.row_code import rows_module
from factorwise.kernels.clusterings.sampled_walks import (
    ALL,
    CONFIDENCE,
    SHARE,
    SampleArrays,
    SampleRule,
    sampled_sweep,
)
from factorwise.model.partition_program import PartitionProgram
from factorwise.rng import Stream
from factorwise.world.partition import Partition


def can_sample(kernel: Any) -> bool:
    """Whether a kernel's evaluator has a compiled form that samples pair factors."""
    evaluator = getattr(kernel, "evaluator", None)
    return isinstance(evaluator, UniformSample) or (
        isinstance(evaluator, ConfidenceSample) and evaluator.pooled
    )


class SampledEngine:
    """One chain over clusterings that gathers the rows of the members it examines, one by one.

    The kernel's evaluator is `UniformSample`, `ConfidenceSample` of one population, or `Exact`, which then
    examines all pairs in rows: what the samples are to be compared with. The model has pair functions only,
    the moves relocate one item.

    factors_seen
        Pair factors examined so far.
    """

    def __init__(
        self, kernel: Metropolis, world: Partition, *, program: PartitionProgram | None = None
    ) -> None:
        check_start(kernel, world)
        self.kernel = kernel
        self._rule = _rule(kernel)
        self.program = program or PartitionProgram(kernel.model, world.n_items)
        if self.program.model is not kernel.model or self.program.n_items != world.n_items:
            raise InvalidArgumentError(
                f"the program is for {self.program.n_items} items and a model of its own, the world has"
                f" {world.n_items}: build PartitionProgram(kernel.model, world.n_items)."
            )
        terms = [term for term in self.program.terms if isinstance(term, PairTerm)]
        if len(terms) < len(kernel.model.templates):
            raise NoCompiledFormError(
                "factors are sampled in compiled walks where all templates are PairTemplate or"
                " CountedTemplate: leave the others out, or run with engine='plain'."
            )
        self._world = world.copy()
        self._moves = move_arrays(kernel, world)
        if not only_relocations(self._moves):
            raise NoCompiledFormError(
                "factors are sampled in compiled walks for moves of one item: give RelocateToItem,"
                " RelocateToCandidate, RelocateToCluster and RelocateToNew, or run with engine='plain'."
            )
        self._work = work_arrays(world)
        n = world.n_items
        self._arrays = SampleArrays(
            ints=self.program.ints,
            reals=self.program.reals,
            weights=kernel.model.weights.copy(),
            order=np.arange(n, dtype=np.int32),
            swapped=np.zeros(n, np.int32),
            others=np.zeros(n, np.int32),
            scores=np.zeros(n),
        )
        self._row_scores = rows_module(terms).row_scores
        self._score: float | None = None

    @property
    def score(self) -> float:
        """Score of the current world: added up when asked for, because samples do not know it."""
        if self._score is None:
            self._score = self.kernel.model.score(self._world)
        return self._score

    @property
    def factors_seen(self) -> int:
        """Pair factors examined so far."""
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
        return self._run(stream, temperature, steps, 0, 0)

    def advance_blocks(
        self, stream: Stream, temperature: float, first: int = 0, last: int | None = None
    ) -> int:
        """Visit blocks in turn, with as many steps in each as it has items; return how many changed it."""
        blocks = len(self._moves.block_start) - 1
        if blocks < 2:
            raise InvalidArgumentError("there are no blocks to visit: give RelocateToItem(blocks).")
        return self._run(stream, temperature, 0, first, blocks if last is None else last)

    def _run(self, stream: Stream, temperature: float, steps: int, first: int, last: int) -> int:
        require(temperature > 0.0, "temperature", temperature, "greater than zero")
        before = int(self._work.tally[0])
        sampled_sweep(
            self._row_scores,
            self._world.arrays,
            self._arrays,
            self._rule,
            self._moves,
            self._work,
            stream.state,
            float(temperature),
            steps,
            first,
            last,
        )
        changed = int(self._work.tally[0]) - before
        if changed:
            self._score = None
        return changed


def _rule(kernel: Metropolis) -> SampleRule:
    evaluator, hastings = kernel.evaluator, kernel.hastings
    if isinstance(evaluator, Exact):
        return SampleRule(ALL, 1.0, 0.0, 0.0, 0, 1.0, False, hastings)
    if isinstance(evaluator, UniformSample):
        scaled = evaluator.estimate == "mean"
        return SampleRule(SHARE, float(evaluator.share), 0.0, 0.0, 0, 1.0, scaled, hastings)
    if isinstance(evaluator, ConfidenceSample) and evaluator.pooled:
        return SampleRule(
            CONFIDENCE,
            1.0,
            float(evaluator.interval),
            float(evaluator.z),
            int(evaluator.minimum),
            float(evaluator.growth),
            evaluator.estimate == "mean",
            hastings,
        )
    raise NoCompiledFormError(
        f"{evaluator!r} has no compiled form: give UniformSample or ConfidenceSample with pooled=True, or"
        " run with engine='plain'."
    )
