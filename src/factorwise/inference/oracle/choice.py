"""Choose an inference method that fits the time and memory limits."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from factorwise.errors import ImpossibleError, StructureError, require
from factorwise.inference.base import Best, Marginals
from factorwise.inference.exact.elimination import GIBIBYTE
from factorwise.inference.exact.junction_tree import JunctionTree
from factorwise.inference.exact.passes import Plan
from factorwise.inference.exact.tree import TreeOracle
from factorwise.inference.message_passing import BeliefPropagation, MeanField, TreeReweighted
from factorwise.inference.oracle.answer import Answer
from factorwise.inference.oracle.cutsets import condition_on_cutset, plan_with_cutset
from factorwise.inference.oracle.local_search import search_best, soften
from factorwise.inference.oracle.mini_buckets import mini_bucket_bound, mini_bucket_setting
from factorwise.inference.oracle.reduction import reduce_labels
from factorwise.model.grounding import FactorGraph
from factorwise.validation import check_number

Query = Literal["all", "marginals", "best"]
QUERIES = ("all", "marginals", "best")

#: Seconds per entry of the tables, estimated generously, to predict whether a method fits the time.
SUM_SECONDS = 1.0e-7
MAX_SECONDS = 3.0e-8
MESSAGE_SECONDS = 2.0e-8
#: Factors per second of the search for an elimination order; if it would exceed the time, it is not tried.
ORDERED_FACTORS = 1_000
#: Number of table entries that take as long as the bookkeeping of a factor.
FACTOR_ENTRIES = 1_000
#: Table entries while a part of the graph is solved in the search for a best setting.
PART_ENTRIES = 1 << 16
#: Table entries in mini-buckets.
BOUND_ENTRIES = 1 << 18


def infer(
    graph: FactorGraph,
    *,
    query: Query = "all",
    budget: float = 60.0,
    memory: int = 2 * GIBIBYTE,
    seed: int = 0,
) -> Answer:
    """Answer a query about a factor graph by the best method that fits.

    Labels that hard zeros rule out are removed first. Then exact inference is used if it fits: on a forest,
    by a junction tree, or summed over the settings of a cutset. Otherwise marginals come from belief
    propagation, with bounds of log Z from mean field, tree-reweighted propagation and mini-buckets, and the
    best setting from max-product, improved by solving large parts of the graph exactly until the time is
    over, with a bound by mini-buckets. A setting of probability zero is never returned as the best.

    query
        "marginals" (with log Z), "best", or "all" for both.
    budget
        Seconds that may be spent. Exact inference is chosen by an estimate of its time, so it may take
        longer.
    memory
        Bytes that tables may take.
    seed
        Seed of the search for a best setting.
    """
    require(query in QUERIES, "query", query, f"one of {', '.join(map(repr, QUERIES))}")
    check_number("budget", budget, above=0)
    check_number("memory", memory, above=0)
    begun = time.perf_counter()
    reduced = reduce_labels(graph)
    choice = _Choice(reduced.graph, begun + budget, memory, seed)
    answer = Answer()
    if query != "best":
        answer = choice.add_marginals(answer)
    if query != "marginals":
        answer = choice.add_best(answer)
    if answer.marginals is not None:
        answer = replace(answer, marginals=reduced.restore_marginals(answer.marginals))
    if answer.best is not None:
        values = reduced.restore_values(answer.best.values)
        answer = replace(answer, best=replace(answer.best, values=values, score=graph.score(values)))
    return replace(answer, notes=tuple(choice.notes), seconds=time.perf_counter() - begun)


@dataclass(slots=True)
class _Choice:
    """A graph and its time and memory limits.

    deadline
        Value of ``time.perf_counter()`` when the time is over.
    """

    graph: FactorGraph
    deadline: float
    memory: int
    seed: int
    notes: list[str]
    forest: bool
    plan: Plan | None

    def __init__(self, graph: FactorGraph, deadline: float, memory: int, seed: int) -> None:
        self.graph, self.deadline, self.memory, self.seed = graph, deadline, memory, seed
        self.notes = []
        self.forest = _is_forest(graph)
        self.plan = None
        if not self.forest and graph.n_factors <= ORDERED_FACTORS * self._left():
            self.plan = JunctionTree(memory_limit=memory).plan(graph)

    def add_marginals(self, answer: Answer) -> Answer:
        """Add marginals and log Z by the first method that fits."""
        beliefs, method = self._exact_marginals()
        if beliefs is not None:
            bounds = (beliefs.log_partition, beliefs.log_partition)
            return replace(answer, marginals=beliefs, log_partition_bounds=bounds, marginals_method=method)
        iterations = self._iterations()
        beliefs = BeliefPropagation(damping=0.1, max_iterations=iterations).marginals(self.graph)
        if beliefs.convergence is not None and not beliefs.convergence.converged:
            self.notes.append(
                "belief propagation did not converge: messages change by"
                f" {beliefs.convergence.residual:.3g} after {beliefs.convergence.iterations} sweeps."
            )
        bounds = (self._lower_bound(), self._upper_bound(iterations))
        return replace(
            answer, marginals=beliefs, log_partition_bounds=bounds, marginals_method="belief propagation"
        )

    def add_best(self, answer: Answer) -> Answer:
        """Add a best setting by the first method that fits; raise the lower bound of log Z to its score."""
        if self.forest:
            best = TreeOracle().best(self.graph)
            return replace(
                answer, best=best, score_bound=best.score, best_method="exact inference on a forest"
            )
        if self.plan is not None and self._fits(self.plan, MAX_SECONDS):
            best = JunctionTree(memory_limit=self.memory).best(self.graph, plan=self.plan)
            method = _junction_tree_method(self.plan)
            return replace(answer, best=best, score_bound=best.score, best_method=method)
        bound = self._score_bound()
        values, method = self._searched(bound)
        score = self.graph.score(values)
        if score == -np.inf:
            self.notes.append(
                "every setting that the search found has probability zero: give it a larger budget."
            )
            return replace(answer, score_bound=bound, best_method=method)
        exact = score >= bound - 1e-9 * max(1.0, abs(bound))
        if answer.log_partition_bounds is not None:
            low, high = answer.log_partition_bounds
            answer = replace(
                answer, log_partition_bounds=(max(low, score), high) if low < high else (low, high)
            )
        best = Best(values, score, exact)
        return replace(answer, best=best, score_bound=max(bound, score), best_method=method)

    def _exact_marginals(self) -> tuple[Marginals | None, str]:
        if self.forest:
            return TreeOracle().marginals(self.graph), "exact inference on a forest"
        if self.plan is None:
            self.notes.append("the graph is too large for the search for an elimination order in the time.")
            return None, ""
        oracle = JunctionTree(memory_limit=self.memory)
        if self._fits(self.plan, SUM_SECONDS):
            return oracle.marginals(self.graph, plan=self.plan), _junction_tree_method(self.plan)
        self.notes.append(
            f"a junction tree of treewidth {self.plan.order.treewidth} needs {self.plan.needed / 1e9:.3g} GB"
            f" and about {SUM_SECONDS * sum(self.plan.order.entries):.3g} seconds."
        )
        cutset, plan = plan_with_cutset(self.plan.order, self.graph, self.memory // 32, self.memory)
        settings = math.prod(int(self.graph.cardinality[v]) for v in cutset)
        work = sum(plan.order.entries) + FACTOR_ENTRIES * self.graph.n_factors
        if settings * SUM_SECONDS * work <= self._left():
            conditioned = condition_on_cutset(self.graph, cutset, plan, self.memory)
            return conditioned, f"conditioning on a cutset of {len(cutset)} variables"
        return None, ""

    def _fits(self, plan: Plan, seconds: float) -> bool:
        """Whether exact inference by a plan fits the memory and, by an estimate, the remaining time."""
        passes = 1.0 if len(plan.borders) == 2 else 1.5
        return plan.needed <= self.memory and passes * seconds * sum(plan.order.entries) <= self._left()

    def _left(self) -> float:
        return self.deadline - time.perf_counter()

    def _iterations(self) -> int:
        """Return the number of message-passing sweeps that take a quarter of the remaining time."""
        sweep = MESSAGE_SECONDS * (len(self.graph.tables) + 10 * len(self.graph.scope))
        return int(np.clip(0.25 * self._left() / sweep, 10, 500))

    def _lower_bound(self) -> float:
        try:
            return MeanField(max_iterations=50).marginals(self.graph).log_partition
        except ImpossibleError:  # it found no possible setting to start from
            return -np.inf

    def _upper_bound(self, iterations: int) -> float:
        bounds = [np.inf]
        if self.plan is not None:
            bounds.append(
                mini_bucket_bound(self.graph, self.plan.order, self._bound_entries(), maximize=False)
            )
        reweighted = TreeReweighted(max_iterations=iterations, tolerance=1e-6).marginals(self.graph)
        if reweighted.convergence is not None and reweighted.convergence.converged:
            bounds.append(reweighted.log_partition)
        return float(min(bounds))

    def _bound_entries(self) -> int:
        """Return the number of entries that a table of mini-buckets may have."""
        return min(BOUND_ENTRIES, self.memory // 256)

    def _score_bound(self) -> float:
        if self.plan is None:
            return float(sum(table.max() for _, table in self.graph.factors()))
        return mini_bucket_bound(self.graph, self.plan.order, self._bound_entries(), maximize=True)

    def _searched(self, bound: float) -> tuple[np.ndarray, str]:
        """Return the best setting of max-product and the search from it."""
        starts = []
        for graph in dict.fromkeys((self.graph, soften(self.graph))):
            for damping in (0.0, 0.5):
                oracle = BeliefPropagation(damping=damping, max_iterations=min(100, self._iterations()))
                try:
                    starts.append(oracle.best(graph).values)
                except ImpossibleError:  # messages detected a contradiction of hard zeros
                    continue
        if self.plan is None:
            return max(starts, key=self.graph.score), "max-product belief propagation"
        entries = min(BOUND_ENTRIES, self.memory // (64 * self.graph.n_variables))
        starts.append(mini_bucket_setting(soften(self.graph), self.plan.order, entries))
        values, rounds = search_best(
            self.graph,
            starts,
            largest=PART_ENTRIES,
            memory=self.memory,
            deadline=self.deadline,
            bound=bound,
            seed=self.seed,
        )
        return values, f"max-product belief propagation and {rounds} rounds of exact search in large parts"


def _is_forest(graph: FactorGraph) -> bool:
    """Whether the factors form no loop."""
    try:
        TreeOracle().log_partition(graph)
    except StructureError:
        return False
    return True


def _junction_tree_method(plan: Plan) -> str:
    return f"a junction tree of treewidth {plan.order.treewidth}"
