"""Belief propagation: sum-product for marginals, max-product for a best setting.

It is exact on forests. On graphs with loops, a fixed point is a stationary point of the Bethe free energy:
beliefs agree with each other, but need not be the marginals of any distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from factorwise.errors import require
from factorwise.inference.base import Best, Convergence, Marginals
from factorwise.inference.message_passing.bethe import wired_entropy, wired_score
from factorwise.inference.message_passing.wiring import SAFE_SPAN, Wired, spans, wire
from factorwise.kernels.chains.decoding import climb, decode, setting_score
from factorwise.kernels.graphs.messages import (
    MessageWorkspace,
    factor_beliefs,
    label_beliefs,
    node_totals,
    run_sweeps,
)
from factorwise.kernels.graphs.pair_messages import BinaryPairs, run_binary, run_binary_in_order, run_pairs
from factorwise.kernels.graphs.residual_messages import Queue, run_residual
from factorwise.model.grounding import FactorGraph
from factorwise.types import Float64s, Int64s
from factorwise.validation import check_count, check_number

Schedule = Literal["sequential", "parallel", "residual"]
SCHEDULES = ("sequential", "parallel", "residual")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefPropagation:
    """Messages between factors and variables until they stop changing.

    schedule
        "sequential" goes through the factors backwards and then forwards, on a forest in breadth-first
        order, where one sweep is exact. "parallel" updates all messages at once from the last ones.
        "residual" always updates the factor whose messages would change most; a sweep is as many updates
        as there are factors.
    damping
        Share of the old message in the log domain, from 0 (none) to below 1; slows oscillation.
    max_iterations
        Largest number of sweeps.
    tolerance
        Largest change of a log-message, up to a constant, that counts as converged.
    """

    schedule: Schedule = "sequential"
    damping: float = 0.0
    max_iterations: int = 200
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        check_message_settings(self.schedule, self.damping, self.max_iterations, self.tolerance)

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return sum-product beliefs with the Bethe approximations of log Z and entropy; exact on forests.

        A contradiction of hard zeros that messages detect raises `ImpossibleError`; on a graph with loops
        there are contradictions that they cannot detect.
        """
        wired = wire(graph)
        return collected(wired, *run_messages(wired, **message_settings(self)))

    def best(self, graph: FactorGraph) -> Best:
        """Run max-product, decode along the graph and improve the setting one variable at a time.

        On a forest two sequential sweeps settle every message, so the schedule does not matter and the
        setting is a best one. Elsewhere it is a good one, with score ``-inf`` if hard zeros were not
        satisfied.
        """
        wired = wire(graph)
        work, convergence = run_messages(
            wired,
            schedule="sequential" if wired.forest else self.schedule,
            damping=0.0 if wired.forest else self.damping,
            max_iterations=2 if wired.forest else self.max_iterations,
            tolerance=self.tolerance,
            maximize=True,
        )
        values = best_decoding(wired, work)
        return Best(values, score_of(graph, values), wired.forest, convergence)


def message_settings(method: Any) -> dict[str, Any]:
    """Return the settings of a method that `run_messages` takes."""
    return {name: getattr(method, name) for name in ("schedule", "damping", "max_iterations", "tolerance")}


def check_message_settings(schedule: str, damping: float, max_iterations: int, tolerance: float) -> None:
    """Refuse settings with which no message-passing method can run."""
    require(schedule in SCHEDULES, "schedule", schedule, f"one of {', '.join(map(repr, SCHEDULES))}")
    check_number("damping", damping, least=0, below=1)
    check_count("max_iterations", max_iterations)
    check_number("tolerance", tolerance, least=0)


def run_messages(
    wired: Wired,
    *,
    schedule: Schedule,
    damping: float,
    max_iterations: int,
    tolerance: float,
    maximize: bool = False,
) -> tuple[MessageWorkspace, Convergence]:
    """Pass messages, which start at zero; return log-messages, their totals, and how the run ended.

    Sums over pairwise tables of moderate range are computed in the probability domain. This is decided from
    the tables, before the first message.
    """
    work = wired.workspace()
    trace = np.zeros(max_iterations)
    domain = "log" if maximize or schedule == "residual" else _domain(wired)
    if domain == "binary":
        sweeps = _run_binary(wired, work, schedule, damping, tolerance, trace)
        empty = -1
    elif domain == "probability":
        sweeps = _run_pairs(wired, work, schedule, damping, tolerance, trace)
        empty = -1
    elif schedule == "residual":
        factors = len(wired.factor)
        queue = Queue(np.zeros(factors, dtype=np.int64), np.zeros(factors, dtype=np.int64), np.zeros(factors))
        sweeps, empty = run_residual(wired.wiring, work, queue, maximize, damping, tolerance, trace)
    else:
        immediate = schedule == "sequential"
        sweeps, empty = run_sweeps(
            wired.wiring, work, wired.order(), maximize, immediate, damping, tolerance, trace
        )
    wired.check_possible(empty)
    residual = float(trace[sweeps - 1])
    return work, Convergence(residual <= tolerance, int(sweeps), residual, trace[:sweeps])


def collected(wired: Wired, work: MessageWorkspace, convergence: Convergence) -> Marginals:
    """Return beliefs, log Z and entropy from the messages of a run."""
    wiring = wired.wiring
    labels = np.zeros(wiring.label_start[-1])
    label_beliefs(wiring.cardinality, wiring.label_start, work.totals, labels)
    entries = np.zeros(wired.entry_start[-1])
    empty = factor_beliefs(wiring, work, wired.entry_start, entries)
    if empty >= 0:
        wired.check_possible(int(wiring.scope[wiring.scope_start[empty]]))
    entropy = wired_entropy(wired, labels, entries)
    log_partition = wired_score(wired, labels, entries) + entropy
    node = wired.split_labels(labels)
    return Marginals(log_partition, node, wired.split_factors(entries, node), entropy, convergence)


def best_decoding(wired: Wired, work: MessageWorkspace) -> Int64s:
    """Decode along the graph and variable by variable; improve both settings and return the better one."""
    wiring, totals = wired.wiring, work.totals
    along = np.zeros(len(wiring.cardinality), dtype=np.int64)
    decode(wiring, work, along)
    if wired.forest:
        return along
    alone = np.array(
        [totals[start:end].argmax() for start, end in pairwise(wiring.label_start.tolist())], dtype=np.int64
    )
    for values in (along, alone):
        climb(wiring, values, len(values) + 1)
    return max((along, alone), key=lambda values: score_of(wired.graph, values))


def score_of(graph: FactorGraph, values: Int64s) -> float:
    """Return the score of a setting, summed in the order of the factors as the graph does it."""
    return float(
        setting_score(
            graph.cardinality, graph.scope_start, graph.scope, graph.table_start, graph.tables, values
        )
    )


def _domain(wired: Wired) -> Literal["log", "probability", "binary"]:
    """Return the domain in which to compute.

    Products stay in range if log-potentials span little at each variable and in each table.
    """
    wiring = wired.wiring
    only_pairs = bool((np.diff(wiring.scope_start) == 2).all())
    if not len(wired.factor) or not only_pairs or not bool((wiring.appearance == 1.0).all()):
        return "log"
    scores = wiring.tables[wired.entries()]
    reach = spans(scores, wired.entry_start)
    at_variable = spans(wiring.unary, wiring.label_start) + np.bincount(
        wiring.scope, reach[wiring.owner], minlength=len(wiring.cardinality)
    )
    if not at_variable.max() <= SAFE_SPAN:
        return "log"
    if bool((wiring.cardinality[wiring.scope] == 2).all()):
        return "binary"
    return "probability" if scores.max() - scores.min() <= SAFE_SPAN else "log"


def _run_binary(
    wired: Wired,
    work: MessageWorkspace,
    schedule: Schedule,
    damping: float,
    tolerance: float,
    trace: Float64s,
) -> int:
    wiring = wired.wiring
    touched = np.unique(wiring.scope)
    prior = np.ones(len(wiring.cardinality))
    zero = wiring.label_start[touched]
    prior[touched] = np.exp(wiring.unary[zero + 1] - wiring.unary[zero])
    table = wiring.tables[wiring.table_start[:, None] + np.arange(4)]
    table = np.exp(table - table[:, :1])
    factors = len(table)
    pairs = BinaryPairs(
        left=np.ascontiguousarray(wiring.scope[0::2]),
        right=np.ascontiguousarray(wiring.scope[1::2]),
        left_one=np.ascontiguousarray(table[:, 2]),
        right_one=np.ascontiguousarray(table[:, 1]),
        both_one=np.ascontiguousarray(table[:, 3]),
        prior=prior,
        to_left=np.ones(factors),
        to_right=np.ones(factors),
        totals=np.ones(len(prior)),
        fresh_totals=np.ones(len(prior)),
    )
    if schedule == "sequential":
        sweeps = run_binary_in_order(pairs, wired.order(), damping, tolerance, trace)
    else:
        sweeps = run_binary(pairs, damping, tolerance, trace)
    messages = work.messages.reshape(factors, 2, 2)
    messages[:, 0, 1] = np.log(pairs.to_left)
    messages[:, 1, 1] = np.log(pairs.to_right)
    messages -= messages.max(axis=2, keepdims=True)
    node_totals(wiring, work.messages, work.totals)
    return sweeps


def _run_pairs(
    wired: Wired,
    work: MessageWorkspace,
    schedule: Schedule,
    damping: float,
    tolerance: float,
    trace: Float64s,
) -> int:
    wiring = wired.wiring
    top = np.repeat(np.maximum.reduceat(wiring.unary, wiring.label_start[:-1]), wiring.cardinality)
    shift = wiring.tables[wired.entries()].max()
    plain = wiring._replace(
        unary=np.exp(wiring.unary - top),
        tables=np.exp(np.clip(wiring.tables - shift, -2 * SAFE_SPAN, 0.0)),
    )
    work.messages[:] = 1.0
    sweeps = run_pairs(plain, work, wired.order(), schedule == "sequential", damping, tolerance, trace)
    np.log(work.messages, out=work.messages)
    node_totals(wiring, work.messages, work.totals)
    return sweeps
