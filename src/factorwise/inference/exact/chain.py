"""Chains: forward-backward, Viterbi, the k best and exact samples, for dense arrays and for factor graphs.

The functions take the arrays of a conditional random field: ``node_scores`` float64[T, K], one row of label
scores per position, and ``transition_scores`` float64[K, K] for all positions or float64[T - 1, K, K] for
each pair of neighbors, from the label on the left (row) to the label on the right (column). Scores are
natural logs; ``-inf`` forbids.

Sums run in the probability domain, scaled at each position; if scores are so large that a product might
underflow (about 230 nats), they are repeated in the log domain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import InvalidArgumentError, ShapeError, StructureError
from factorwise.inference.base import Best, Marginals
from factorwise.inference.exact.elimination import exact_marginals, require_possible
from factorwise.kernels.chains import chains
from factorwise.model.grounding import FactorGraph
from factorwise.rng import Stream
from factorwise.types import Floats, Int64s
from factorwise.validation import check_count


@dataclass(frozen=True, slots=True)
class ChainMarginals:
    """Probabilities of a chain.

    log_partition
        Log of the sum over all paths of exp(score).
    node : float64[T, K]
    edge : float64[T - 1, K, K]
    """

    log_partition: float
    node: Floats
    edge: Floats


def chain_marginals(node_scores: ArrayLike, transition_scores: ArrayLike) -> ChainMarginals:
    """Return the marginals of all positions and of all neighboring pairs."""
    node, edge = _checked(node_scores, transition_scores)
    scaled = _scaled_forward(node, edge)
    if scaled is not None:
        node_weight, edge_weight, alpha, log_partition = scaled
        beta, onward, node_marginal = np.empty((3, *node.shape))
        if chains.backward(node_weight, edge_weight, beta, onward) == chains.DONE:
            edge_marginal = np.empty((len(node) - 1, *edge.shape[1:]))
            chains.join(edge_weight, alpha, beta, onward, node_marginal, edge_marginal)
            return ChainMarginals(log_partition, node_marginal, edge_marginal)
    alpha, log_partition = _log_forward(node, edge)
    beta = np.empty_like(node)
    chains.backward_log(node, edge, np.empty(node.shape[1]), beta)
    joint = alpha[:-1, :, None] + edge + (node + beta)[1:, None, :]
    return ChainMarginals(log_partition, _softmax(alpha + beta, (1,)), _softmax(joint, (1, 2)))


def chain_log_partition(node_scores: ArrayLike, transition_scores: ArrayLike) -> float:
    """Return the log of the sum of exp(score) over all paths."""
    node, edge = _checked(node_scores, transition_scores)
    scaled = _scaled_forward(node, edge)
    return _log_forward(node, edge)[1] if scaled is None else scaled[3]


def chain_best(node_scores: ArrayLike, transition_scores: ArrayLike) -> Best:
    """Return a best path by Viterbi's algorithm."""
    node, edge = _checked(node_scores, transition_scores)
    length, labels = node.shape
    path = np.zeros(length, dtype=np.int64)
    back = np.empty((length, labels), dtype=np.int64)
    require_possible(chains.viterbi(node, edge, np.empty((2, labels)), back, path))
    return Best(path, _path_score(node, edge, path))


def chain_k_best(node_scores: ArrayLike, transition_scores: ArrayLike, k: int) -> list[Best]:
    """Return the ``k`` best paths, best first; fewer if fewer are possible."""
    check_count("k", k)
    node, edge = _checked(node_scores, transition_scores)
    length, labels = node.shape
    paths = np.zeros((k, length), dtype=np.int64)
    lists, back = np.zeros((2, labels, k)), np.zeros((length, labels, k), dtype=np.int64)
    head, end = np.zeros(labels, dtype=np.int64), np.zeros((labels, 1))
    count = chains.k_best(node, edge, lists, back, head, end, paths)
    require_possible(0.0 if count else -np.inf)
    return [Best(path.copy(), _path_score(node, edge, path)) for path in paths[:count]]


def chain_sample(node_scores: ArrayLike, transition_scores: ArrayLike, stream: Stream, size: int) -> Int64s:
    """Draw independent paths, int64[size, T]; one uniform number per position, last position first."""
    check_count("size", size, 0)
    node, edge = _checked(node_scores, transition_scores)
    scaled = _scaled_forward(node, edge)
    if scaled is None:
        alpha = _log_forward(node, edge)[0]
    else:
        with np.errstate(divide="ignore"):
            alpha = np.log(scaled[2])
    paths = np.zeros((size, len(node)), dtype=np.int64)
    chains.sample(edge, alpha, stream.state, np.empty(node.shape[1]), paths)
    return paths


@dataclass(frozen=True, slots=True)
class ChainOracle:
    """Exact answers for a factor graph that is a chain, or several: paths of pairwise factors.

    Variables may be numbered in any order and have different numbers of labels; shorter rows are padded.
    """

    def log_partition(self, graph: FactorGraph) -> float:
        """Return the log of the sum of exp(score) over all settings."""
        chain = _Chain(graph)
        return chain.constant + chain_log_partition(chain.node, chain.edge)

    def marginals(self, graph: FactorGraph) -> Marginals:
        """Return node and factor marginals, the log partition function and the entropy."""
        chain = _Chain(graph)
        marginals = chain_marginals(chain.node, chain.edge)
        sizes, position = graph.cardinality.tolist(), chain.place
        node = [marginals.node[position[v], : sizes[v]] for v in range(graph.n_variables)]
        factor: list[Floats] = []
        for scope in map(graph.scope_of, range(graph.n_factors)):
            if len(scope) < 2:
                factor.append(node[scope[0]] if scope else np.ones(()))
                continue
            left, right = sorted(scope, key=position.__getitem__)
            joint = marginals.edge[position[left], : sizes[left], : sizes[right]]
            factor.append(joint if scope == (left, right) else joint.T)
        return exact_marginals(graph, marginals.log_partition + chain.constant, node, factor)

    def best(self, graph: FactorGraph) -> Best:
        """Return a most probable setting."""
        chain = _Chain(graph)
        return chain.setting(chain_best(chain.node, chain.edge))

    def k_best(self, graph: FactorGraph, k: int) -> list[Best]:
        """Return the ``k`` most probable settings, best first; fewer if fewer are possible."""
        chain = _Chain(graph)
        settings = [chain.setting(path) for path in chain_k_best(chain.node, chain.edge, k)]
        return sorted(settings, key=lambda best: -best.score)

    def sample(self, graph: FactorGraph, stream: Stream, size: int) -> Int64s:
        """Draw independent settings, int64[size, variables]."""
        chain = _Chain(graph)
        return chain_sample(chain.node, chain.edge, stream, size)[:, chain.place]


class _Chain:
    """A graph as dense arrays; separate paths are laid end to end, joined by tables of zeros.

    place
        Position of each variable along the chain.
    constant
        Sum of the factors without variables.
    """

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.place = _places(graph)
        labels = int(graph.cardinality.max())
        self.node = np.full((graph.n_variables, labels), -np.inf)
        self.edge = np.zeros((graph.n_variables - 1, labels, labels))
        for variable, size in enumerate(graph.cardinality.tolist()):
            self.node[self.place[variable], :size] = 0.0
        constant = 0.0
        for scope, table in graph.factors():
            positions = [self.place[v] for v in scope]
            if not positions:
                constant += float(table)
            elif len(positions) == 1:
                self.node[positions[0], : len(table)] += table
            else:
                block = table if positions[0] < positions[1] else table.T
                self.edge[min(positions), : block.shape[0], : block.shape[1]] += block
        self.constant = require_possible(constant)

    def setting(self, path: Best) -> Best:
        """Turn a path into a setting of the graph."""
        values = path.values[self.place]
        return Best(values, self.graph.score(values))


def _places(graph: FactorGraph) -> list[int]:
    """Walk along every path from its lower end; return each variable's position in the result."""
    neighbors: list[dict[int, int]] = [{} for _ in range(graph.n_variables)]  # and the factor between
    for factor in range(graph.n_factors):
        scope = graph.scope_of(factor)
        if len(scope) > 2:
            raise StructureError(
                f"the graph is not a chain: factor {factor} connects the {len(scope)} variables {scope}."
                " Use TreeOracle() or JunctionTree(), which take larger factors."
            )
        if len(scope) == 2:
            neighbors[scope[0]][scope[1]] = factor
            neighbors[scope[1]][scope[0]] = factor
    for variable, known in enumerate(neighbors):
        if len(known) > 2:
            raise StructureError(
                f"the graph is not a chain: variable {variable} has {len(known)} neighbors,"
                f" {', '.join(map(str, known))}. Use TreeOracle() for trees, JunctionTree() for loops."
            )
    position = [-1] * graph.n_variables
    count = 0
    for end in range(graph.n_variables):
        here = end if len(neighbors[end]) < 2 and position[end] < 0 else -1
        while here >= 0:
            position[here] = count
            count += 1
            here = next((v for v in neighbors[here] if position[v] < 0), -1)
    if count < graph.n_variables:
        start = position.index(-1)
        loop = [start, next(iter(neighbors[start]))]
        while loop[-1] != start:
            loop.append(next(v for v in neighbors[loop[-1]] if v != loop[-2]))
        factor = neighbors[loop[-2]][start]
        raise StructureError(
            f"the graph is not a chain: factor {factor} over variables {graph.scope_of(factor)} closes the"
            f" loop {' - '.join(map(str, loop))}. Use JunctionTree(), which takes loops."
        )
    return position


def _checked(node_scores: ArrayLike, transition_scores: ArrayLike) -> tuple[Floats, Floats]:
    """Return both as contiguous arrays, transitions with an axis for the position."""
    node = np.ascontiguousarray(node_scores, dtype=np.float64)
    edge = np.ascontiguousarray(transition_scores, dtype=np.float64)
    if node.ndim != 2 or 0 in node.shape:
        raise ShapeError(
            f"node_scores must have shape (places, labels), at least one of each, but {node.shape} was given."
        )
    length, labels = node.shape
    if edge.shape not in ((labels, labels), (length - 1, labels, labels)):
        raise ShapeError(
            f"transition_scores must have shape {(labels, labels)}, the same for all places, or"
            f" {(length - 1, labels, labels)}, one table for each pair of neighbors, to go with node_scores"
            f" of shape {node.shape}, but {edge.shape} was given."
        )
    for name, scores in (("node_scores", node), ("transition_scores", edge)):
        if not bool((scores < np.inf).all()):
            raise InvalidArgumentError(f"{name} holds +inf or NaN: scores must be finite, or -inf to forbid.")
    tables = edge.reshape(-1, labels, labels)
    return node, tables if length > 1 else tables[:0]


def _scaled_forward(node: Floats, edge: Floats) -> tuple[Floats, Floats, Floats, float] | None:
    """Return node and edge weights, ``alpha`` and log Z, or None if the probability domain is unsafe."""
    node_peak = node.max(axis=1, keepdims=True)
    edge_peak = edge.max(axis=(1, 2), keepdims=True)
    require_possible(min(float(node_peak.min()), float(edge_peak.min(initial=0.0))))
    node_weight, edge_weight = np.exp(node - node_peak), np.exp(edge - edge_peak)
    for weight, scores in ((node_weight, node), (edge_weight, edge)):
        if np.count_nonzero(weight >= chains.TINY) != np.count_nonzero(scores > -np.inf):
            return None
    alpha, scale = np.empty_like(node), np.empty(len(node))
    status = chains.forward(node_weight, edge_weight, alpha, scale)
    if status == chains.UNDERFLOW:
        return None
    require_possible(-np.inf if status == chains.IMPOSSIBLE else 0.0)
    between = float(edge_peak.sum()) * (len(node) - 1 if len(edge) == 1 else 1)
    log_partition = float(node_peak.sum() + np.log(scale).sum() + np.log(alpha[-1].sum())) + between
    return node_weight, edge_weight, alpha, log_partition


def _log_forward(node: Floats, edge: Floats) -> tuple[Floats, float]:
    """Return the log of ``alpha``, each row minus its largest entry, and log Z."""
    alpha, shift = np.empty_like(node), np.empty(len(node))
    status = chains.forward_log(node, edge, np.empty(node.shape[1]), alpha, shift)
    require_possible(-np.inf if status == chains.IMPOSSIBLE else 0.0)
    return alpha, float(shift.sum() + np.log(np.exp(alpha[-1]).sum()))


def _softmax(scores: Floats, axes: tuple[int, ...]) -> Floats:
    weight = np.exp(scores - scores.max(axis=axes, keepdims=True, initial=-np.inf))
    return np.asarray(weight / weight.sum(axis=axes, keepdims=True))


def _path_score(node: Floats, edge: Floats, path: Int64s) -> float:
    tables = np.arange(len(path) - 1) if len(edge) > 1 else np.zeros(len(path) - 1, dtype=np.int64)
    between = edge[tables, path[:-1], path[1:]].sum()
    return float(node[np.arange(len(path)), path].sum() + between)
