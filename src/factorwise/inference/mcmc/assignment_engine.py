"""The compiled form of the samplers for assignments: the same trace from the same stream.

The model is unrolled once, except for counts, which are kept up to date; a chunk of steps then runs without
the interpreter lock. What cannot be compiled is refused when the engine is built, so that a caller can step
the plain kernel instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError, require
from factorwise.inference.mcmc.assignment_gibbs import BlockGibbs, Gibbs
from factorwise.inference.mcmc.assignment_proposals import LocalRelabel, Mixture, Swap, UniformRelabel
from factorwise.inference.mcmc.kernel import TransitionKernel, tempered
from factorwise.inference.mcmc.metropolis import Metropolis, require_exact
from factorwise.kernels.assignments.assignment_code import TouchedTerm, touched_module
from factorwise.kernels.assignments.assignment_gains import (
    CountedFactors,
    LocalFactors,
    TouchedFactors,
    TouchedScore,
    WholeFactors,
)
from factorwise.kernels.assignments.assignment_metropolis import (
    LOCAL,
    SWAP,
    UNIFORM,
    Components,
    Pools,
    metropolis_steps,
)
from factorwise.kernels.assignments.assignment_sweeps import LOOKAHEAD, Blocks, block_gibbs_steps, gibbs_steps
from factorwise.kernels.compile.composition import source_of
from factorwise.model.assignment_base import ranges
from factorwise.model.custom_assignment import DynamicTemplate
from factorwise.model.grounding import FactorGraph
from factorwise.model.model import Model
from factorwise.model.unrolling import CountFactors, unroll_counts
from factorwise.rng import Stream
from factorwise.variables.variable import Variables
from factorwise.world.assignment import Assignment

Int64s = NDArray[np.int64]


class Run(Protocol):
    """Some steps of a compiled sampler: returns how many changed the world, and the total gain."""

    def __call__(self, state: NDArray[np.uint64], *, scale: float, steps: int) -> tuple[int, float]:
        """Advance the chain."""
        ...


class AssignmentEngine:
    """A chain over assignments in compiled code.

    kernel
        `Gibbs`, `BlockGibbs`, or `Metropolis` with `UniformRelabel`, `LocalRelabel`, `Swap` or a `Mixture`
        of them.
    world
        Where the chain starts; it is copied.
    """

    def __init__(self, kernel: TransitionKernel, world: Assignment) -> None:
        if not isinstance(kernel, (Metropolis, Gibbs, BlockGibbs)):
            raise NoCompiledFormError(
                f"{type(kernel).__name__} has no compiled form: step it as it is, or use Metropolis, Gibbs or"
                " BlockGibbs."
            )
        require_exact(kernel)
        self.kernel = kernel
        self._world = world
        self._model: Model = kernel.model
        self._touched_score = _touched_score(self._model)
        self.refresh()

    def refresh(self) -> None:
        """Read the model's weights again, after they have changed."""
        graph, self._counts = unroll_counts(self._model, self._world.variables)
        if isinstance(self.kernel, BlockGibbs):
            self._prepared = _block_arrays(self.kernel, self._world.variables, graph, self._counts)
        else:
            self._prepared = _single_arrays(self.kernel, self._world.variables, graph)
        self._touched = _touched_factors(self._model)
        self._prepared |= {"touched_score": self._touched_score, "touched": self._touched}
        self.restart(self._world)

    def restart(self, world: Assignment) -> None:
        """Go on from another world over the same variables; it is copied."""
        if world.variables is not self._world.variables:
            raise InvalidArgumentError(
                "the engine was built for other variables: build a new one, AssignmentEngine(kernel, world)."
            )
        self._world = world.copy()
        state: dict[str, Any] = {
            "values": self._world.values,
            "counted": counted_factors(self._counts, self._world),
        }
        if isinstance(self.kernel, Metropolis):
            state["pools"] = pools_of(self._world)
        self._run: Run = partial(_steps_of(self.kernel), **self._prepared, **state)
        self._score: float | None = None

    @property
    def score(self) -> float:
        """Score of the current world: computed once, then kept up by the gains."""
        if self._score is None:
            self._score = self._model.score(self._world)
        return self._score

    @property
    def view(self) -> Assignment:
        """The current world itself: to look at, until the next step."""
        return self._world

    @property
    def world(self) -> Assignment:
        """The current world; a copy."""
        return self._world.copy()

    def advance(self, stream: Stream, temperature: float, steps: int) -> int:
        """Make ``steps`` steps and return how many of them changed the world."""
        require(temperature > 0.0, "temperature", temperature, "greater than zero")
        require(steps >= 0, "steps", steps, "zero or more")
        changed, gain = self._run(stream.state, scale=tempered(1.0, temperature), steps=steps)
        if self._score is not None:
            kept = self._score + gain
            self._score = kept if math.isfinite(kept) else None  # a forbidden world was left
        if self._touched.keys[-1, 0]:
            raise TemplateError(
                "touched of a DynamicTemplate claimed more keys than max_touched: raise max_touched and"
                " build the engine again."
            )
        return int(changed)


def local_factors(graph: FactorGraph) -> LocalFactors:
    """Arrange the factors of ``graph`` by variable: singles summed, pairs and larger ones apart."""
    arity = np.diff(graph.scope_start)
    stride = scope_strides(graph)
    order = np.argsort(graph.scope, kind="stable")  # edges, variable after variable
    owner = np.repeat(np.arange(graph.n_factors, dtype=np.int64), arity)
    pair, large = order[arity[owner[order]] == 2], order[arity[owner[order]] > 2]
    partner = 2 * graph.scope_start[owner[pair]] + 1 - pair  # a pair's edges are neighbors
    others = arity[owner[large]] - 1
    other_start = np.zeros(len(large) + 1, dtype=np.int64)
    np.cumsum(others, out=other_start[1:])
    rank = np.arange(int(other_start[-1])) - np.repeat(other_start[:-1], others)
    edge = np.repeat(graph.scope_start[owner[large]], others) + rank
    edge += edge >= np.repeat(large, others)  # skip the variable's own edge
    label_start, unary = _unary(graph, arity)
    return LocalFactors(
        label_start,
        unary,
        _starts(graph.scope[pair], graph.n_variables),
        graph.table_start[owner[pair]],
        stride[pair].astype(np.int32),
        graph.scope[partner].astype(np.int32),
        stride[partner].astype(np.int32),
        _starts(graph.scope[large], graph.n_variables),
        graph.table_start[owner[large]],
        stride[large],
        other_start,
        graph.scope[edge],
        stride[edge],
        graph.tables,
    )


def _unary(graph: FactorGraph, arity: Int64s) -> tuple[Int64s, NDArray[np.float64]]:
    """Return the sum of the factors of single variables as ``(label_start[variables], score[labels])``."""
    start = np.concatenate([[0], np.cumsum(graph.cardinality)]).astype(np.int64)
    single = np.flatnonzero(arity == 1)
    variable = graph.scope[graph.scope_start[single]]
    labels = graph.cardinality[variable]
    within = np.arange(int(labels.sum())) - np.repeat(np.cumsum(labels) - labels, labels)
    scores = np.zeros(int(start[-1]))
    table = np.repeat(graph.table_start[single], labels) + within
    np.add.at(scores, np.repeat(start[variable], labels) + within, graph.tables[table])
    return start[:-1], scores


def _starts(variable: Int64s, n_variables: int) -> Int64s:
    start = np.zeros(n_variables + 1, dtype=np.int64)
    np.cumsum(np.bincount(variable, minlength=n_variables), out=start[1:])
    return start


def scope_strides(graph: FactorGraph) -> Int64s:
    """Return, for each edge, how far apart the variable's labels lie in its factor's table (C order)."""
    arity = np.diff(graph.scope_start)
    stride = np.ones(len(graph.scope), dtype=np.int64)
    for length in np.unique(arity[arity > 1]).tolist():
        edges = graph.scope_start[:-1][arity == length][:, None] + np.arange(length)
        after = np.cumprod(graph.cardinality[graph.scope[edges]][:, :0:-1], axis=1)[:, ::-1]
        stride[edges[:, :-1]] = after
    return stride


def counted_factors(counts: CountFactors, world: Assignment) -> CountedFactors:
    """Arrange the count factors by variable and count the labels in ``world``."""
    start, factor = _memberships(counts, len(world.values))
    owner = np.repeat(np.arange(len(counts.label), dtype=np.int64), np.diff(counts.start))
    has = world.values[counts.members] == counts.label[owner]
    present = np.bincount(owner[has], minlength=len(counts.label)).astype(np.int64)
    return CountedFactors(start, factor, counts.label, counts.table_start, present, counts.tables)


def pools_of(world: Assignment) -> Pools:
    """Arrange the variables that may exchange labels and count the labels in ``world``."""
    variables = world.variables
    pools = variables.pools
    start = np.zeros(len(pools) + 1, dtype=np.int64)
    np.cumsum([len(pool) for pool in pools], out=start[1:])
    pool_of = np.full(len(variables), -1, dtype=np.int64)
    for number, pool in enumerate(pools):
        pool_of[pool] = number
    found = [np.bincount(world.values[p], minlength=int(variables.cardinality[p[0]])) for p in pools]
    present = np.array([np.count_nonzero(count) for count in found], dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    return Pools(
        start,
        np.concatenate([nothing, *pools]),
        pool_of,
        np.cumsum([0, *(len(count) for count in found)])[:-1].astype(np.int64),
        np.concatenate([nothing, *found]).astype(np.int64),
        present,
        np.array([np.count_nonzero(present > 1)], dtype=np.int64),
    )


def _steps_of(kernel: Metropolis | Gibbs | BlockGibbs) -> Callable[..., tuple[int, float]]:
    if isinstance(kernel, Gibbs):
        return gibbs_steps
    return block_gibbs_steps if isinstance(kernel, BlockGibbs) else metropolis_steps


def _single_arrays(kernel: Metropolis | Gibbs, variables: Variables, graph: FactorGraph) -> dict[str, Any]:
    """Return the arguments of a sampler that visits single variables, except for its state."""
    scratch = np.zeros((2, int(variables.cardinality.max())))
    arrays: dict[str, Any] = {
        "local": local_factors(graph),
        "movable": variables.movable,
        "cardinality": variables.cardinality,
        "scores": scratch[0],
        "weights": scratch[1],
    }
    if isinstance(kernel, Gibbs):
        return arrays | {
            "systematic": kernel.scan == "systematic",
            "ahead": np.zeros(LOOKAHEAD + 1, dtype=np.int64),
            "chances": np.zeros(LOOKAHEAD),
        }
    return arrays | {"components": _components(kernel)}


def _components(kernel: Metropolis) -> Components:
    proposer = kernel.proposer
    mixed = isinstance(proposer, Mixture)
    parts: tuple[object, ...] = proposer.components if isinstance(proposer, Mixture) else (proposer,)
    weights = proposer.weights if isinstance(proposer, Mixture) else (1.0,)
    kinds, sharpness = [], []
    for part in parts:
        if not isinstance(part, (UniformRelabel, LocalRelabel, Swap)):
            raise NoCompiledFormError(
                f"{type(part).__name__} has no compiled form: step the kernel as it is, or use"
                " UniformRelabel, LocalRelabel, Swap or a Mixture of them."
            )
        if isinstance(part, LocalRelabel) and part.model is not kernel.model:
            raise NoCompiledFormError(
                "the compiled LocalRelabel proposes by the scores of the sampled model, but another model was"
                " given: step the kernel as it is, or build LocalRelabel with the kernel's model."
            )
        kinds.append(
            UNIFORM if isinstance(part, UniformRelabel) else SWAP if isinstance(part, Swap) else LOCAL
        )
        sharpness.append(part.sharpness if isinstance(part, LocalRelabel) else 1.0)
    return Components(np.array(kinds, dtype=np.int64), np.array(weights), np.array(sharpness), mixed)


def _block_arrays(
    kernel: BlockGibbs, variables: Variables, graph: FactorGraph, counts: CountFactors
) -> dict[str, Any]:
    """Return the arguments of the sampler of blocks, except for its state."""
    members = [np.array(block, dtype=np.int64) for block in kernel.blocks_of(variables)]
    start, member = _joined(members)
    scratch = np.zeros((2, max(math.prod(variables.cardinality[block].tolist()) for block in members)))
    strides = scope_strides(graph)
    return {
        "whole": WholeFactors(graph.scope_start, graph.scope, strides, graph.table_start, graph.tables),
        "blocks": Blocks(
            start,
            member,
            *_touched_once(start, member, *graph.touching),
            *_touched_once(start, member, *_memberships(counts, len(variables))),
        ),
        "cardinality": variables.cardinality,
        "systematic": kernel.scan == "systematic",
        "scores": scratch[0],
        "weights": scratch[1],
        "before": np.zeros(len(variables), dtype=np.int32),
    }


def _touched_once(
    start: Int64s, member: Int64s, factor_start: Int64s, factor: Int64s
) -> tuple[Int64s, Int64s]:
    """Return the factors that each block touches, each once, as ``(start[blocks + 1], factor)``."""
    block = np.repeat(np.arange(len(start) - 1), np.diff(start))
    found = factor[ranges(factor_start, member)]
    owner = np.repeat(block, factor_start[member + 1] - factor_start[member])
    width = int(factor.max(initial=0)) + 1
    pairs = np.unique(owner * width + found)
    return _starts(pairs // width, len(start) - 1), pairs % width


def _memberships(counts: CountFactors, n_variables: int) -> tuple[Int64s, Int64s]:
    """Return the count factors at each variable as ``(start[variables + 1], factor[memberships])``."""
    owner = np.repeat(np.arange(len(counts.label), dtype=np.int64), np.diff(counts.start))
    order = np.argsort(counts.members, kind="stable")
    return _starts(counts.members, n_variables), owner[order]


def _dynamic(model: Model) -> list[tuple[DynamicTemplate, int]]:
    return [(t, offset) for t, offset in model.parts() if isinstance(t, DynamicTemplate)]


def _touched_score(model: Model) -> TouchedScore:
    """Compile the functions of the templates whose factors come and go; None where there are none."""
    terms = [
        TouchedTerm(
            source_of(template.touched),
            source_of(template.statistics_of),
            template.size,
            offset,
            template.key_width,
            template.max_touched,
        )
        for template, offset in _dynamic(model)
    ]
    return cast("TouchedScore", touched_module(terms).touched_score) if terms else None


def _touched_factors(model: Model) -> TouchedFactors:
    templates = [template for template, _ in _dynamic(model)]
    rows = max((template.max_touched for template in templates), default=0)
    width = max((template.key_width for template in templates), default=1)
    # spare rows, because compiled code writes before anyone can check what it claims
    return TouchedFactors(model.weights.copy(), np.zeros((2 * rows + 65, width), dtype=np.int64))


def _joined(parts: list[Int64s]) -> tuple[Int64s, Int64s]:
    start = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=start[1:])
    return start, np.concatenate(parts).astype(np.int64)
