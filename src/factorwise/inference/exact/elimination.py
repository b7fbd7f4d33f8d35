"""Variable elimination, and what the methods built on it share.

The file has the order in which variables are eliminated, the inward pass along it, the two outward passes
that read a setting from it (a best one, a random one), the ranking of the next best ones, and the method.

Each variable has a bucket: the product of all factors and messages that mention it when its turn comes, over
itself and its neighbors at that moment. Summing it out leaves the message to the bucket of the neighbor that
is eliminated next. The buckets with these messages are a junction tree, one clique per variable.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from factorwise.errors import ImpossibleError, InvalidArgumentError, TreewidthError
from factorwise.inference.base import Best, Marginals
from factorwise.kernels.graphs.trees import fill_uniforms
from factorwise.model.factor import Factor, expectation, product
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.types import Floats, Int64s
from factorwise.validation import check_count, check_number

GIBIBYTE = 1 << 30

SumOut: TypeAlias = Callable[[Factor, int], Factor]
Solve: TypeAlias = "Callable[[Floats], tuple[Int64s, Floats]]"


@dataclass(frozen=True, slots=True)
class EliminationOrder:
    """The order in which variables are eliminated, and their neighbors at that moment.

    cliques
        One tuple per variable in elimination order: the variable, then those of its neighbors that remain, in
        elimination order.
    entries
        Size of the table of each clique.
    """

    cliques: tuple[tuple[int, ...], ...]
    entries: tuple[int, ...]

    @property
    def treewidth(self) -> int:
        """Size of the largest clique minus one: an upper bound of the treewidth."""
        return max((len(clique) for clique in self.cliques), default=1) - 1

    @property
    def largest(self) -> int:
        """Number of entries of the largest table."""
        return max(self.entries, default=1)

    def require_memory(self, tables: int, limit: int) -> None:
        """Refuse if ``tables`` copies of every clique and two of the largest exceed ``limit`` bytes."""
        needed = 8 * (tables * sum(self.entries) + 2 * self.largest)
        if needed > limit:
            raise TreewidthError(
                f"exact inference needs {needed} bytes ({needed / GIBIBYTE:.3g} GiB), more than"
                f" memory_limit={limit}: the best order found has treewidth {self.treewidth}, and its largest"
                f" clique a table of {self.largest} entries. Raise memory_limit, condition on some variables,"
                " or use an approximate method (belief propagation, sampling)."
            )


def elimination_order(
    graph: FactorGraph,
    last: Sequence[int] = (),
    *,
    priority: Sequence[int] | None = None,
    weighted: bool = False,
) -> EliminationOrder:
    """Choose an order by min-fill: next is the variable whose elimination connects the fewest new pairs.

    Ties go to the variable that lost a neighbor last (on grids this halves the tables), then to the lowest
    number. Variables with a single label are constants and are left out.

    last
        Variables to keep to the end, as one clique.
    priority
        A number for each variable that breaks ties instead of its own number, the lowest first.
    weighted
        Count a new pair by the number of its joint labels, not as one.
    """
    sizes = graph.cardinality.tolist()
    adjacent: dict[int, set[int]] = {v: set() for v, size in enumerate(sizes) if size > 1}
    for scope in (*(graph.scope_of(factor) for factor in range(graph.n_factors)), last):
        members = [v for v in scope if v in adjacent]
        for v in members:
            adjacent[v].update(members)
    for v, neighbors in adjacent.items():
        neighbors.discard(v)

    def fill(v: int) -> int:
        neighbors = adjacent[v]
        if weighted:
            return sum(
                sizes[w] * sum(sizes[u] for u in neighbors - adjacent[w]) - sizes[w] ** 2 for w in neighbors
            )
        return sum(len(neighbors) - 1 - len(neighbors & adjacent[w]) for w in neighbors) // 2

    held = set(last)
    prefer = range(len(sizes)) if priority is None else priority
    rank = {v: (v in held, fill(v), 0, prefer[v], v) for v in adjacent}
    queue = list(rank.values())
    heapq.heapify(queue)
    gone: dict[int, set[int]] = {}
    while queue:
        entry = heapq.heappop(queue)
        _, missing, _, _, v = entry
        if v in gone or entry != rank[v]:
            continue  # an entry that was replaced later
        neighbors = gone[v] = adjacent.pop(v)
        for w in neighbors:
            adjacent[w] |= neighbors
            adjacent[w] -= {v, w}
        # New pairs among the neighbors change the fill of variables that neighbor both.
        for w in neighbors.union(*(adjacent[w] for w in neighbors)) if missing else neighbors:
            age = -len(gone) if w in neighbors else rank[w][2]
            renewed = (w in held, fill(w), age, prefer[w], w)
            if renewed != rank[w]:
                rank[w] = renewed
                heapq.heappush(queue, renewed)
    position = {v: index for index, v in enumerate(gone)}
    cliques = tuple((v, *sorted(neighbors, key=position.__getitem__)) for v, neighbors in gone.items())
    return EliminationOrder(cliques, tuple(math.prod(sizes[v] for v in clique) for clique in cliques))


class Buckets(NamedTuple):
    """The result of the inward pass.

    buckets
        One factor per clique of the order, with the variable that is eliminated first on axis 0.
    messages
        Each bucket with its variable summed (or maximized) out.
    total
        What remains when all variables are eliminated: log Z, or the best score.
    """

    buckets: tuple[Factor, ...]
    messages: tuple[Factor, ...]
    total: float


def graph_factors(graph: FactorGraph) -> list[Factor]:
    """Return the factors of a graph without its single-label variables."""
    sizes = graph.cardinality.tolist()
    factors = []
    for scope, table in graph.factors():
        rest = tuple(v for v in scope if sizes[v] > 1)
        factors.append(Factor(rest, table.reshape([sizes[v] for v in rest])))
    return factors


def label_factors(graph: FactorGraph, scores: Floats | None = None) -> list[Factor]:
    """Return one factor per variable with several labels, so that each has at least one.

    scores : float64[labels of all variables, one after the other]
        Zero by default; ``-inf`` rules a label out.
    """
    starts = label_starts(graph)
    flat = np.zeros(starts[-1]) if scores is None else np.asarray(scores, dtype=np.float64)
    return [
        Factor((v,), flat[starts[v] : starts[v + 1]])
        for v in range(graph.n_variables)
        if graph.cardinality[v] > 1
    ]


def label_starts(graph: FactorGraph) -> list[int]:
    """Return where the labels of each variable begin when all are laid end to end, and their number."""
    return [0, *np.cumsum(graph.cardinality).tolist()]


def collect(factors: Iterable[Factor], order: EliminationOrder, out: SumOut) -> Buckets:
    """Eliminate all variables by ``out``: `Factor.sum_out` for log Z, `Factor.max_out` for the best."""
    position = {clique[0]: index for index, clique in enumerate(order.cliques)}
    waiting: list[list[Factor]] = [[] for _ in (*order.cliques, None)]

    def send(factor: Factor) -> None:
        waiting[min((position[v] for v in factor.scope), default=-1)].append(factor)

    for factor in factors:
        send(factor)
    buckets, messages = [], []
    for index, clique in enumerate(order.cliques):
        bucket = product(waiting[index], clique)
        message = out(bucket, clique[0])
        send(message)
        buckets.append(bucket)
        messages.append(message)
    return Buckets(tuple(buckets), tuple(messages), require_possible(float(product(waiting[-1]).table)))


def decode(graph: FactorGraph, buckets: Iterable[Factor]) -> Int64s:
    """Read a best setting from the buckets of a max-elimination, which are in reverse order."""
    values = np.zeros(graph.n_variables, dtype=np.int64)
    for bucket in buckets:
        variable, *rest = bucket.scope
        values[variable] = bucket.table[(slice(None), *values[rest])].argmax()
    return values


def draw(graph: FactorGraph, buckets: Iterable[Factor], stream: Stream, size: int) -> Int64s:
    """Draw settings from the buckets of a sum-elimination, which are in reverse order.

    Int64[size, variables].
    """
    check_count("size", size, 0)
    values = np.zeros((size, graph.n_variables), dtype=np.int64)
    uniform = np.empty(size)
    for bucket in buckets:
        variable, *rest = bucket.scope
        scores = bucket.table[(slice(None), *values[:, rest].T)] if rest else bucket.table[:, None]
        ladder = np.exp(scores - scores.max(axis=0)).cumsum(axis=0)
        fill_uniforms(stream.state, uniform)
        # The first label whose cumulative sum is larger: never one of probability zero, which adds nothing.
        values[:, variable] = (ladder > uniform * ladder[-1]).argmax(axis=0)
    return values


def ranked(graph: FactorGraph, solve: Solve, k: int) -> list[Best]:
    """Return the ``k`` best settings by splitting the space on max-marginals; fewer if fewer are possible.

    If the second best setting of a region differs from its best one at some variable, the region splits
    there: one part with the label of the second best, and the rest, which keeps the best. So two solutions of
    a restricted problem give one more setting, however many variables there are.

    solve
        From label scores (0, or ``-inf`` to rule a label out) to a best setting and the max-marginals of
        all labels, float64[labels of all variables]; it raises `ImpossibleError` if none is left.
    """
    check_count("k", k)
    starts = label_starts(graph)
    owner = np.repeat(np.arange(graph.n_variables), graph.cardinality)
    regions: list[tuple[float, int, int, Int64s, Floats]] = []
    serial = 0

    def add(values: Int64s, peaks: Floats, scores: Floats) -> None:
        nonlocal serial
        rivals = peaks.copy()
        rivals[np.array(starts[:-1]) + values] = -np.inf
        label = int(rivals.argmax())
        if rivals[label] > -np.inf:
            serial += 1
            heapq.heappush(regions, (-float(rivals[label]), serial, label, values, scores))

    free = np.zeros(starts[-1])
    values, peaks = solve(free)
    settings = [values]
    add(values, peaks, free)
    while regions and len(settings) < k:
        _, _, label, values, scores = heapq.heappop(regions)
        inside, outside = scores.copy(), scores.copy()
        inside[starts[owner[label]] : starts[owner[label] + 1]] = -np.inf
        inside[label] = scores[label]
        outside[label] = -np.inf
        runner_up, inner_peaks = solve(inside)
        settings.append(runner_up)
        add(runner_up, inner_peaks, inside)
        add(values, solve(outside)[1], outside)
    bests = [Best(setting, graph.score(setting)) for setting in settings]
    return sorted(bests, key=lambda best: -best.score)


def exact_marginals(
    graph: FactorGraph, log_partition: float, node: Sequence[Floats], factor: Sequence[Floats]
) -> Marginals:
    """Return marginals with the entropy, which is log Z minus the mean score."""
    sizes = np.array([np.size(p) for p in factor], dtype=np.int64)
    flat = np.concatenate([np.zeros(0), *(np.ravel(p) for p in factor)])
    entries = np.arange(len(flat)) + np.repeat(graph.table_start - np.cumsum(sizes) + sizes, sizes)
    mean = expectation(flat, graph.tables[entries])
    # Rounding may make the entropy of a certain outcome negative.
    return Marginals(log_partition, tuple(node), tuple(factor), max(0.0, log_partition - mean))


def require_possible(log_total: float) -> float:
    """Refuse a log Z or best score of ``-inf``."""
    if log_total == -np.inf:
        raise ImpossibleError(
            "every setting of the graph has probability zero: each meets a log-potential of -inf."
            " Replace some -inf by a large negative score."
        )
    return log_total


@dataclass(frozen=True, slots=True, kw_only=True)
class WithinMemory:
    """A method that refuses what takes too much memory.

    memory_limit
        Bytes that tables may take; a graph that needs more is refused before anything is allocated.
    """

    memory_limit: int = 2 * GIBIBYTE

    def __post_init__(self) -> None:
        check_number("memory_limit", self.memory_limit, above=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elimination(WithinMemory):
    """Exact answers to single questions: log Z, the joint of a few variables, the best setting.

    All marginals at once are answered question by question; `JunctionTree` shares the work.

    memory_limit
        Bytes that tables may take; a graph that needs more is refused before anything is allocated.
    """

    def log_partition(self, graph: FactorGraph) -> float:
        """Return the log of the sum of exp(score) over all settings."""
        return self._eliminated(graph, Factor.sum_out).total

    def joint(self, graph: FactorGraph, query: Sequence[int]) -> Factor:
        """Return the joint distribution of the ``query`` variables: a normalized factor over them."""
        return self._remaining(graph, query, Factor.sum_out).normalized()

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy."""
        log_partition = self.log_partition(graph)
        node = [self.joint(graph, (v,)).probabilities() for v in range(graph.n_variables)]
        factor = [self.joint(graph, scope).probabilities() for scope, _ in graph.factors()]
        return exact_marginals(graph, log_partition, node, factor)

    def best(self, graph: FactorGraph) -> Best:
        """Return a most probable setting."""
        values = decode(graph, reversed(self._eliminated(graph, Factor.max_out).buckets))
        return Best(values, graph.score(values))

    def k_best(self, graph: FactorGraph, k: int) -> list[Best]:
        """Return the ``k`` most probable settings, best first; fewer if fewer are possible."""

        def solve(scores: Floats) -> tuple[Int64s, Floats]:
            values = decode(graph, reversed(self._eliminated(graph, Factor.max_out, scores).buckets))
            peaks = [
                self._remaining(graph, (v,), Factor.max_out, scores).table for v in range(graph.n_variables)
            ]
            return values, np.concatenate(peaks)

        return ranked(graph, solve, k)

    def sample(self, graph: FactorGraph, stream: Stream, size: int) -> Int64s:
        """Draw independent settings, int64[size, variables]."""
        return draw(graph, reversed(self._eliminated(graph, Factor.sum_out).buckets), stream, size)

    def _eliminated(self, graph: FactorGraph, out: SumOut, scores: Floats | None = None) -> Buckets:
        order = elimination_order(graph)
        order.require_memory(1, self.memory_limit)
        return collect([*graph_factors(graph), *label_factors(graph, scores)], order, out)

    def _remaining(
        self, graph: FactorGraph, query: Sequence[int], out: SumOut, scores: Floats | None = None
    ) -> Factor:
        """Eliminate everything but ``query``."""
        queried = set(query)
        if len(queried) != len(query) or not queried <= set(range(graph.n_variables)):
            raise InvalidArgumentError(
                f"query must name different variables from 0 to {graph.n_variables - 1}, but"
                f" {tuple(query)} was given."
            )
        order = elimination_order(graph, query)
        order.require_memory(1, self.memory_limit)
        going = len(order.cliques) - sum(v in queried for v in (clique[0] for clique in order.cliques))
        kept = EliminationOrder(order.cliques[:going], order.entries[:going])
        factors = [*graph_factors(graph), *label_factors(graph, scores)]
        rest = _eliminated_in(factors, kept, out)
        sizes = graph.cardinality[list(query)].tolist()
        return Factor(tuple(query), rest.expanded(query, sizes).table)


def _eliminated_in(factors: list[Factor], order: EliminationOrder, out: SumOut) -> Factor:
    """Multiply what mentions a variable, take the variable out, and so on to the last of ``order``."""
    for variable, *_ in order.cliques:
        bucket = product(factor for factor in factors if variable in factor.scope)
        factors = [factor for factor in factors if variable not in factor.scope]
        factors.append(out(bucket, variable))
    return product(factors)
