"""Mean field: independent variables, or independent blocks of them, fitted by coordinate ascent.

The expected score plus the entropy of any distribution is at most log Z. Each update sets one variable or
block to its optimum given the others, so the bound never decreases from one sweep to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from scipy.special import entr

from factorwise.errors import ImpossibleError, InvalidArgumentError, TreewidthError, require
from factorwise.inference.base import Convergence, Marginals
from factorwise.inference.message_passing.belief_propagation import best_decoding, run_messages, score_of
from factorwise.inference.message_passing.bethe import expected_score, wired_score
from factorwise.inference.message_passing.wiring import Wired, wire
from factorwise.kernels.graphs.mean_field import product_beliefs, run_mean_field
from factorwise.model.grounding import FactorGraph
from factorwise.types import Float64s, Floats, Int64s
from factorwise.validation import check_count, check_number


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanField:
    """A lower bound on log Z from the best product distribution near the start.

    The start is uniform. In a graph with hard zeros it is a possible setting that max-product finds, because
    a uniform start would give mass to forbidden settings.

    blocks
        Groups of variables with joint tables; variables in no group are independent. None means no groups:
        naive mean field.
    max_table
        Largest number of entries of the joint table of a block.
    max_iterations
        Largest number of sweeps.
    tolerance
        Largest change of a probability that counts as converged.
    """

    blocks: Sequence[Sequence[int]] | None = None
    max_table: int = 1 << 16
    max_iterations: int = 500
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        check_count("max_table", self.max_table)
        check_count("max_iterations", self.max_iterations)
        check_number("tolerance", self.tolerance, least=0)
        members = [variable for group in self._groups() for variable in group]
        require(min(members, default=0) >= 0, "blocks", self.blocks, "groups of variable numbers from 0 up")
        if len(set(members)) < len(members):
            twice = next(variable for variable in members if members.count(variable) > 1)
            raise InvalidArgumentError(
                f"blocks name variable {twice} more than once: blocks must not overlap, so keep it in one."
            )

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return product beliefs, the lower bound on log Z, and the entropy of the product."""
        wired = wire(graph)
        if self.blocks is None:
            return self._naive(wired)
        return self._structured(wired, self._tractable(graph))

    def _groups(self) -> list[tuple[int, ...]]:
        blocks = () if self.blocks is None else self.blocks
        return [tuple(sorted(int(variable) for variable in block)) for block in blocks if len(block)]

    def _naive(self, wired: Wired) -> Marginals:
        wiring = wired.wiring
        labels = 1.0 / np.repeat(wiring.cardinality, wiring.cardinality)
        start = _possible_start(wired)
        if start is not None:
            labels[:] = 0.0
            labels[wiring.label_start[:-1] + start] = 1.0
        digits = wired.workspace().digits
        trace = np.zeros(self.max_iterations)
        scores = np.zeros(wiring.cardinality.max())
        sweeps = run_mean_field(wiring, labels, digits, scores, self.tolerance, trace)
        entries = np.zeros(wired.entry_start[-1])
        product_beliefs(wiring, labels, wired.entry_start, digits, entries)
        node = wired.split_labels(labels)
        factor = wired.split_factors(entries, node)
        score = wired_score(wired, labels, entries)
        return self._result(score, node, factor, float(entr(labels).sum()), trace[:sweeps])

    def _tractable(self, graph: FactorGraph) -> list[tuple[int, ...]]:
        groups = self._groups()
        grouped = {variable for group in groups for variable in group}
        if max(grouped, default=0) >= graph.n_variables:
            raise InvalidArgumentError(
                f"blocks name variable {max(grouped)}, but the graph has {graph.n_variables}:"
                f" use numbers from 0 to {graph.n_variables - 1}."
            )
        for group in groups:
            size = prod(graph.cardinality[list(group)].tolist())
            if size > self.max_table:
                raise TreewidthError(
                    f"the block of {len(group)} variables {group[:8]} has a joint table of {size} entries,"
                    f" more than the {self.max_table} allowed: split it, or raise MeanField(max_table=...)."
                )
        return groups + [(variable,) for variable in range(graph.n_variables) if variable not in grouped]

    def _structured(self, wired: Wired, groups: list[tuple[int, ...]]) -> Marginals:
        graph = wired.graph
        product = _BlockProduct(wired, groups, _possible_start(wired))
        trace: list[float] = []
        while len(trace) < self.max_iterations and not (trace and trace[-1] <= self.tolerance):
            trace.append(max(product.update(block) for block in range(len(groups))))
        node = tuple(product.margin((variable,)) for variable in range(graph.n_variables))
        factor = tuple(product.margin(graph.scope_of(index)) for index in range(graph.n_factors))
        entropy = float(sum(entr(belief).sum() for belief in product.beliefs))
        return self._result(expected_score(graph, factor), node, factor, entropy, np.array(trace))

    def _result(
        self,
        score: float,
        node: tuple[Floats, ...],
        factor: tuple[Floats, ...],
        entropy: float,
        trace: Float64s,
    ) -> Marginals:
        last = float(trace[-1])
        convergence = Convergence(last <= self.tolerance, len(trace), last, trace)
        return Marginals(score + entropy, node, factor, entropy, convergence)


class _BlockProduct:
    """A product of joint tables, one per block, which is improved block by block."""

    def __init__(self, wired: Wired, groups: list[tuple[int, ...]], start: Int64s | None) -> None:
        graph = wired.graph
        self.groups = groups
        self.home = {variable: block for block, group in enumerate(groups) for variable in group}
        shapes = [tuple(graph.cardinality[list(group)].tolist()) for group in groups]
        self.beliefs = [np.full(shape, 1.0 / prod(shape)) for shape in shapes]
        if start is not None:
            for group, belief in zip(groups, self.beliefs, strict=True):
                belief[...] = 0.0
                belief[tuple(start[list(group)])] = 1.0
        self.factors: list[list[tuple[tuple[int, ...], Floats]]] = [[] for _ in groups]
        for scope, table in graph.factors():
            for block in sorted({self.home[variable] for variable in scope}):
                self.factors[block].append((scope, table))

    def margin(self, scope: Sequence[int]) -> Floats:
        """Return the joint belief of the variables in ``scope``, in that order."""
        parts = [
            self._within(block, [variable for variable in scope if self.home[variable] == block])
            for block in self._blocks(scope)
        ]
        listed = [v for block in self._blocks(scope) for v in scope if self.home[v] == block]
        joint: Floats = np.ones(())
        for part in parts:
            joint = np.multiply.outer(joint, part)
        return joint.transpose([listed.index(variable) for variable in scope])

    def update(self, block: int) -> float:
        """Set one block to its optimum given the rest; return the largest change of a probability."""
        group = self.groups[block]
        scores = np.zeros(self.beliefs[block].shape)
        for scope, table in self.factors[block]:
            inside = tuple(sorted((v for v in scope if v in group), key=group.index))
            outside = tuple(v for v in scope if v not in group)
            arranged = table.transpose([scope.index(v) for v in (*inside, *outside)])
            mass = self.margin(outside)
            weighted = np.where(mass > 0, arranged, 0.0) * mass
            mean = weighted.sum(axis=tuple(range(len(inside), len(scope))))
            scores += mean.reshape([scores.shape[axis] if v in inside else 1 for axis, v in enumerate(group)])
        fresh = np.exp(scores - scores.max())
        fresh /= fresh.sum()
        change = float(np.abs(fresh - self.beliefs[block]).max())
        self.beliefs[block] = fresh
        return change

    def _blocks(self, scope: Iterable[int]) -> list[int]:
        return sorted({self.home[variable] for variable in scope})

    def _within(self, block: int, variables: list[int]) -> Floats:
        group = self.groups[block]
        rest = tuple(axis for axis, variable in enumerate(group) if variable not in variables)
        kept = [variable for variable in group if variable in variables]
        margin: Floats = self.beliefs[block].sum(axis=rest)
        return margin.transpose([kept.index(variable) for variable in variables])


def _possible_start(wired: Wired) -> Int64s | None:
    """Return a possible setting if hard zeros require one, None if any start will do."""
    if not (np.isneginf(wired.wiring.unary).any() or np.isneginf(wired.wiring.tables).any()):
        return None
    work, _ = run_messages(
        wired, schedule="sequential", damping=0.1, max_iterations=100, tolerance=1e-6, maximize=True
    )
    values = best_decoding(wired, work)
    if score_of(wired.graph, values) == -np.inf:
        raise ImpossibleError(
            "no setting of nonzero probability was found to start mean field from. If there is one, an exact"
            " method such as JunctionTree().best(graph) will find it; otherwise relax a -inf."
        )
    return values
