"""Chains in which a label depends on the two labels before it.

The score of a sentence is the sum of its tokens' scores, of the weights of consecutive pairs of labels and of
the weights of three consecutive labels. A triple that contains a forbidden pair is forbidden, whatever its
weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from factorwise.inference.base import Best
from factorwise.inference.exact.chain import chain_k_best, chain_sample
from factorwise.inference.exact.elimination import require_possible
from factorwise.kernels.chains import second_order_rows
from factorwise.kernels.chains.chain_rows import FORBIDDEN
from factorwise.kernels.chains.second_order_rows import LongSteps
from factorwise.learning.chains.structure import FirstOrder, Supervision, label_tuples, rounded
from factorwise.rng import Stream
from factorwise.types import Bools, Floats, Int32s, Int64s, Ints


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """A chain in which a label depends on the two labels before it.

    In the weight vector, the weights of pairs follow the state weights, and those of triples follow the
    pairs. Transitions are counted as in the kernels, float64[rows + labels, labels]: each pair that begins a
    triple with a weight has a row of its own, which counts the labels that follow; the last rows, one per
    label, count what follows all other pairs and the first labels of sentences.

    first
        The labels, which pairs have a weight, and what is forbidden.
    triples : int32[n, 3]
        Three consecutive labels that have a weight.
    """

    first: FirstOrder
    triples: Int32s

    kernels: ClassVar[Any] = second_order_rows

    @classmethod
    def free(cls, labels: int, pairs: Ints | None = None, triples: Ints | None = None) -> SecondOrder:
        """Return a chain that forbids nothing; by default all pairs and all triples have a weight."""
        return cls.extending(FirstOrder.free(labels, pairs), triples)

    @classmethod
    def extending(cls, first: FirstOrder, triples: Ints | None = None) -> SecondOrder:
        """Give weights to triples, by default to all that are not forbidden."""
        if triples is None:
            follows = ~first.forbidden
            triples = np.argwhere(follows[:, :, None] & follows)
        return cls(first, np.asarray(triples, dtype=np.int32).reshape(-1, 3))

    @classmethod
    def seen(
        cls, first: FirstOrder, truth: Ints, start: Int64s, *, every: bool, lowest: float = 0.0
    ) -> SecondOrder:
        """Give a weight to the triples that occur, or to ``every`` one that is not forbidden.

        lowest
            Leave out triples that occur less often than this.
        """
        seen_only = not every or lowest > 0
        return cls.extending(
            first, observed_triples(truth, start, first.labels, lowest) if seen_only else None
        )

    def transitions(self) -> list[tuple[int, ...]]:
        """Return the two or three labels of each transition weight."""
        return [*self.first.transitions(), *map(tuple, self.triples.tolist())]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `from_arrays` makes the chain again."""
        return {**self.first.to_arrays(), "triples": self.triples}

    @classmethod
    def from_arrays(cls, labels: int, arrays: Mapping[str, NDArray[Any]]) -> SecondOrder:
        """Restore the result of `to_arrays`."""
        return cls(FirstOrder.from_arrays(labels, arrays), label_tuples(arrays["triples"], labels, 3))

    @property
    def labels(self) -> int:
        """Number of labels."""
        return self.first.labels

    @property
    def not_first(self) -> Bools:
        """Labels that must not begin a sentence."""
        return self.first.not_first

    @property
    def not_last(self) -> Bools:
        """Labels that must not end a sentence."""
        return self.first.not_last

    @property
    def size(self) -> int:
        """Number of weights of pairs and triples."""
        return self.first.size + len(self.triples)

    @cached_property
    def _own(self) -> _OwnRows:
        """The pairs that have rows of their own."""
        return _OwnRows.of(self.triples, self.labels)

    def tables(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the scores of a sentence's first pair and of each label after two others.

        They are float64[K, K] and [K, K, K]. The second include the weights of the pair and of the triple;
        ``-inf`` if forbidden.
        """
        pair, own = self._rows(weights)
        after = np.repeat(pair[None], self.labels, axis=0)
        after[self._own.left, self._own.middle] = own
        after[self.first.forbidden] = -np.inf
        return pair, after

    def _rows(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the shared and the own rows of scores; -inf if forbidden."""
        own = self._own
        pair = self.first.table(weights[: self.first.size])
        scores = pair[own.middle]
        scores[own.of_triple, self.triples[:, 2]] += weights[self.first.size :]
        scores[self.first.forbidden[own.left, own.middle]] = -np.inf
        return pair, scores

    def steps(self, weights: Floats, columns: int, dtype: DTypeLike) -> tuple[LongSteps, float]:
        """Return the transitions in the kernels' layout, and the score that was subtracted from each."""
        pair, scores = self._rows(weights)
        peak = max(float(rows.max(initial=-np.inf)) for rows in (pair, scores))
        shift = peak if np.isfinite(peak) else 0.0
        shared = np.where(self._own.shares & ~self.first.forbidden, 0.0, FORBIDDEN)
        forms: list[Floats] = []
        for rows in (np.concatenate([scores, pair]) - shift, shared):
            lowered = rounded(np.maximum(rows, FORBIDDEN), dtype)
            forms.append(_padded(lowered, columns, FORBIDDEN, dtype))
            forms.append(_padded(np.exp(lowered), columns, 0.0, dtype))
        return LongSteps(self._own.start, self._own.left, self._own.row, *forms), shift

    def base(self, columns: int, dtype: DTypeLike) -> Floats:
        """Return the initial scores of a token: inside a sentence, first, last, or both."""
        return self.first.base(columns, dtype)

    def edge(self, chunks: int, columns: int, dtype: DTypeLike) -> Floats:
        """Return an array for the products from which `gradient` computes expected transitions."""
        return np.zeros((chunks, len(self._own.left) + self.labels, columns), dtype=dtype)

    def scratch(self, forms: int, longest: int, columns: int, dtype: DTypeLike) -> Floats:
        """Return an array for the rows of one sentence."""
        return np.empty((forms, longest * (self.labels + 2), columns), dtype=dtype)

    def gradient(self, edge: Floats, steps: LongSteps, observed: Floats) -> Floats:
        """Return expected minus observed pairs and triples that have a weight, from products and counts."""
        excess = edge[:, : self.labels] * steps.weight[:, : self.labels].astype(np.float64) - observed
        pairs = excess[-self.labels :].copy()
        np.add.at(pairs, self._own.middle, excess[: -self.labels])
        return np.concatenate([self.first.at_pairs(pairs), excess[self._own.of_triple, self.triples[:, 2]]])

    def observed(self, start: Int64s, supervision: Supervision) -> Floats:
        """Count what follows pairs and first labels, in sentences with known labels only."""
        truth = supervision.truth
        sentence = np.repeat(np.arange(len(start) - 1), np.diff(start))
        known = (np.minimum.reduceat(truth, start[:-1]) >= 0)[sentence]
        amount = supervision.emphasis[sentence] if len(supervision.emphasis) else np.ones(len(truth))
        third = np.flatnonzero((sentence[2:] == sentence[:-2]) & known[2:]) + 2
        second = start[:-1][np.diff(start) > 1] + 1
        second = second[known[second]]
        own = self._own
        counts = np.zeros((len(own.left) + self.labels, self.labels))
        np.add.at(counts, (own.row[truth[third - 2], truth[third - 1]], truth[third]), amount[third])
        np.add.at(counts, (len(own.left) + truth[second - 1], truth[second]), amount[second])
        return counts

    def in_logs(self, node: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return log Z, label probabilities and expected transitions of a sentence, without underflow."""
        first, after = self.tables(weights)
        alpha = _log_forward(node, first, after)
        log_partition = require_possible(float(np.logaddexp.reduce(alpha[-1], axis=None)))
        expected, probability = np.zeros((self.labels,) * 3), np.empty(node.shape)
        begun = np.zeros((self.labels, self.labels))
        beta = np.zeros((self.labels, self.labels))
        for position in range(len(node) - 1, 0, -1):
            probability[position] = np.exp(alpha[position] + beta - log_partition).sum(axis=0)
            onward = node[position] + beta
            if position > 1:
                expected += np.exp(alpha[position - 1][:, :, None] + after + onward - log_partition)
                beta = np.logaddexp.reduce(after + onward, axis=2)
            else:
                begun = np.exp(alpha[0][:, None] + first + onward - log_partition)
        probability[0] = begun.sum(axis=1) if len(node) > 1 else np.exp(node[0] - log_partition)
        shared = begun + (expected * self._own.shares[:, :, None]).sum(axis=0)
        return (
            log_partition,
            probability,
            np.concatenate([expected[self._own.left, self._own.middle], shared]),
        )

    def log_partition(self, node: Floats, weights: Floats) -> float:
        """Return log Z of one sentence; ``-inf`` if no path is possible."""
        return float(np.logaddexp.reduce(_log_forward(node, *self.tables(weights))[-1], axis=None))

    def k_best(self, node: Floats, weights: Floats, k: int) -> list[Best]:
        """Return the k best paths of one sentence, best first; `as_label_pairs` states the cost."""
        paths = chain_k_best(*as_label_pairs(node, *self.tables(weights)), k)
        return [Best(best.values % self.labels, best.score) for best in paths]

    def sample(self, node: Floats, weights: Floats, stream: Stream, size: int) -> Int64s:
        """Draw independent paths, int64[size, tokens]; `as_label_pairs` states the cost."""
        return chain_sample(*as_label_pairs(node, *self.tables(weights)), stream, size) % self.labels


@dataclass(frozen=True, eq=False)
class _OwnRows:
    """Pairs (left, middle) that begin a triple with a weight; ordered by middle, then left.

    start : int64[labels + 1]
        The first row of the pairs with each middle label.
    left, middle : int64[rows]
    of_triple : int64[triples]
        The row that contains each triple.
    row : int64[labels, labels]
        Row of each pair (left, middle) among the own rows and, after them, the shared ones.
    shares : bool[labels, labels]
        Whether that row is shared.
    """

    start: Int64s
    left: Int64s
    middle: Int64s
    of_triple: Int64s
    row: Int64s
    shares: Bools

    @classmethod
    def of(cls, triples: Int32s, labels: int) -> _OwnRows:
        """Give a row to each pair that begins a triple."""
        code = triples[:, 1].astype(np.int64) * labels + triples[:, 0]
        pairs, of_triple = np.unique(code, return_inverse=True)
        middle, left = pairs // labels, pairs % labels
        start = np.searchsorted(middle, np.arange(labels + 1)).astype(np.int64)
        shares = np.ones((labels, labels), dtype=bool)
        shares[left, middle] = False
        row = np.tile(len(pairs) + np.arange(labels), (labels, 1))
        row[left, middle] = np.arange(len(pairs))
        return cls(start, left, middle, of_triple, row, shares)


def observed_triples(truth: Ints, start: Int64s, labels: int, lowest: float = 0.0) -> Int32s:
    """Find the triples of known labels that are consecutive in some sentence, int32[n, 3] in order.

    lowest
        Leave out triples that occur less often than this.
    """
    sentence = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rows = np.stack([truth[:-2], truth[1:-1], truth[2:]], axis=1)
    rows = rows[(sentence[2:] == sentence[:-2]) & (rows >= 0).all(axis=1)]
    times = np.zeros((labels,) * 3, dtype=np.int64)
    np.add.at(times, tuple(rows.T), 1)
    return np.argwhere((times > 0) & (times >= lowest)).astype(np.int32)


def as_label_pairs(node: Floats, first: Floats, after: Floats) -> tuple[Floats, Floats]:
    """Return scores of a first-order chain whose states are pairs of labels, for `inference.exact.chain`.

    State ``labels * before + label`` stands for a label and the one before it; the last ``labels`` states
    stand for the label of the first token. So the label of a state is its remainder by ``labels``. There are
    K (K + 1) states: for K = 22 labels the table takes 2 MB and a token 256,036 products, against at most
    10,648 in the kernels of `SecondOrder`.

    node : float64[tokens, K]
    first : float64[K, K]
        Scores of the first two labels.
    after : float64[K, K, K]
        Scores of each label after two others.
    """
    labels = node.shape[1]
    states = np.full((len(node), labels + 1, labels), -np.inf)
    states[0, labels] = node[0]
    states[1:, :labels] = node[1:, None, :]
    transition = np.full((labels + 1, labels, labels + 1, labels), -np.inf)
    for middle in range(labels):
        transition[:labels, middle, middle] = after[:, middle]
        transition[labels, middle, middle] = first[middle]
    count = labels * (labels + 1)
    return states.reshape(len(node), count), transition.reshape(count, count)


def _log_forward(node: Floats, first: Floats, after: Floats) -> list[Floats]:
    """Return the log of the sum over paths that end in each pair of labels, [K, K] per token.

    [K] for the first.
    """
    alpha = [node[0]]
    for position in range(1, len(node)):
        if position == 1:
            arrival = node[0][:, None] + first
        else:
            arrival = np.logaddexp.reduce(alpha[-1][:, :, None] + after, axis=0)
        alpha.append(arrival + node[position])
    return alpha


def _padded(values: Floats, columns: int, empty: float, dtype: DTypeLike) -> Floats:
    rows = np.full((len(values), columns), empty, dtype=dtype)
    rows[:, : values.shape[1]] = values
    return rows
