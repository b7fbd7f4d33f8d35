"""Chains as base models: one table for all positions or one for each pair, a few labels or hundreds."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import ImpossibleError, InvalidArgumentError, ShapeError
from factorwise.inference.message_passing.projection.bases import Answer, check_shift
from factorwise.inference.message_passing.projection.layout import Layout
from factorwise.kernels.chains import chains, dense_chains
from factorwise.types import Floats, Int64s


class ChainBase:
    """A chain of T variables with S labels each.

    node_scores : float[T, S]
        Natural logs; ``-inf`` forbids.
    edge_scores : float[S, S] or float[T - 1, S, S]
        From the label on the left (row) to the label on the right (column), for all places or for each pair.
    single
        Keep the exp of the tables in single precision: half the memory to read, for scores that are off by
        6e-8. Sums stay in double precision. For gaps down to about 1e-6.

    The exponentials of the tables are computed once and kept. As long as shifts do not change the tables, an
    answer takes two passes over them.
    """

    def __init__(self, node_scores: ArrayLike, edge_scores: ArrayLike, *, single: bool = False) -> None:
        node = np.ascontiguousarray(node_scores, dtype=np.float64)
        edge = np.ascontiguousarray(edge_scores, dtype=np.float64)
        if node.ndim != 2 or 0 in node.shape:
            raise ShapeError(f"node_scores must have shape (places, labels), but {node.shape} was given.")
        length, labels = node.shape
        if edge.shape not in ((labels, labels), (length - 1, labels, labels)):
            raise ShapeError(
                f"edge_scores must have shape {(labels, labels)} or {(length - 1, labels, labels)} to go with"
                f" node_scores of shape {node.shape}, but {edge.shape} was given."
            )
        for name, scores in (("node_scores", node), ("edge_scores", edge)):
            if not bool((scores < np.inf).all()):
                raise InvalidArgumentError(
                    f"{name} holds +inf or NaN: scores must be finite, or -inf to forbid."
                )
        self.node = node
        self.edge = edge.reshape(-1, labels, labels) if length > 1 else np.zeros((0, labels, labels))
        self.layout = Layout.chain(length, labels)
        self._bounds = np.array([0, length])
        self._kind = np.float32 if single else np.float64

    def answer(self, shift: Floats) -> Answer:
        """Return the marginals that the shift covers."""
        check_shift(self.layout, shift)
        if len(shift) > self.layout.node_size:
            return self._whole(shift)
        node, edge = self._shifted(shift)
        edge_weight, edge_total = self._edge_weight
        marginal, (weight, alpha) = np.empty(node.shape), np.empty((2, *node.shape))
        scratch, log_partition = np.empty(len(node) + 2 * node.shape[1]), np.empty(1)
        dense_chains.chains_range(
            node, self._bounds, edge_weight, weight, alpha, scratch, marginal, log_partition, 0, 1
        )
        if np.isnan(log_partition[0]):
            flat, total = _in_logs(node, edge)
            return Answer(flat[: len(shift)], total)
        return Answer(marginal.ravel(), float(log_partition[0]) + edge_total)

    def marginals(self, shift: Floats) -> Floats:
        """Return all marginals, including those of neighboring pairs."""
        check_shift(self.layout, shift)
        return self._whole(shift).marginals

    def scores(self, shift: Floats) -> Floats:
        """Return the shifted scores of all variables and pairs."""
        check_shift(self.layout, shift)
        node, edge = self._shifted(shift)
        return np.concatenate([node.ravel(), self._spread(edge).ravel()])

    def best(self, shift: Floats) -> Int64s:
        """Return a best path at the shifted scores."""
        check_shift(self.layout, shift)
        node, edge = self._shifted(shift)
        length, labels = node.shape
        path = np.zeros(length, dtype=np.int64)
        back = np.empty((length, labels), dtype=np.int64)
        if chains.viterbi(node, edge, np.empty((2, labels)), back, path) == -np.inf:
            raise _impossible()
        return path

    def _whole(self, shift: Floats) -> Answer:
        node, edge = self._shifted(shift)
        weight, node_peak = _exponentiated(node)
        if len(shift) > self.layout.node_size:
            edge_weight, edge_peak = _exponentiated(edge, self._kind)
            edge_total = float(edge_peak.sum())
        else:
            edge_weight, edge_total = self._edge_weight
        alpha, peak = np.empty(node.shape), np.empty(len(node))
        beta, onward = np.empty((2, node.shape[1]))
        flat = np.empty(self.layout.size)
        marginal = flat[: node.size].reshape(node.shape)
        joint = flat[node.size :].reshape(len(node) - 1, *edge.shape[1:])
        log_partition = dense_chains.forward_pass(weight, edge_weight, alpha, peak)
        if log_partition > -np.inf and dense_chains.backward_with_edges(
            weight, edge_weight, alpha, peak, beta, onward, marginal, joint
        ):
            return Answer(flat, float(log_partition + node_peak.sum() + edge_total))
        return Answer(*_in_logs(node, self._spread(edge)))

    def _shifted(self, shift: Floats) -> tuple[Floats, Floats]:
        nodes = self.layout.node_size
        node = self.node - shift[:nodes].reshape(self.node.shape)
        if len(shift) == nodes:
            return node, self.edge
        return node, self.edge - shift[nodes:].reshape(len(node) - 1, *self.edge.shape[1:])

    def _spread(self, edge: Floats) -> Floats:
        """Return one table per pair of neighbors."""
        return np.broadcast_to(edge, (len(self.node) - 1, *edge.shape[1:]))

    @cached_property
    def _edge_weight(self) -> tuple[Floats, float]:
        weight, peak = _exponentiated(self.edge, self._kind)
        return weight, float(peak.sum()) * (len(self.node) - 1 if len(peak) == 1 else 1)


def _exponentiated(scores: Floats, kind: type[np.floating[Any]] = np.float64) -> tuple[Floats, Floats]:
    """Return exp of the scores minus the largest of each row or table, and the largest."""
    weight, peak = np.empty(scores.shape, dtype=kind), np.empty(len(scores))
    rows = (len(scores), -1) if len(scores) else (0, 1)
    dense_chains.exponentiated_rows(scores.reshape(rows), weight.reshape(rows), peak)
    if np.isneginf(peak).any():
        raise _impossible()
    return weight, peak


def _in_logs(node: Floats, edge: Floats) -> tuple[Floats, float]:
    """Return all marginals and log Z for scores that are too large for the probability domain."""
    terms, shift = np.empty(node.shape[1]), np.empty(len(node))
    alpha, beta = np.empty((2, *node.shape))
    if chains.forward_log(node, edge, terms, alpha, shift) == chains.IMPOSSIBLE:
        raise _impossible()
    chains.backward_log(node, edge, terms, beta)
    joint = alpha[:-1, :, None] + edge + (node + beta)[1:, None, :]
    log_partition = float(shift.sum() + np.log(np.exp(alpha[-1]).sum()))
    return np.concatenate([_softmax(alpha + beta, (1,)), _softmax(joint, (1, 2))]), log_partition


def _softmax(scores: Floats, axes: tuple[int, ...]) -> Floats:
    weight = np.exp(scores - scores.max(axis=axes, keepdims=True, initial=-np.inf))
    return np.ravel(weight / weight.sum(axis=axes, keepdims=True))


def _impossible() -> ImpossibleError:
    return ImpossibleError("the chain gives probability zero to every path: relax a -inf in its scores.")
