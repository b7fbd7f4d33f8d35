"""Passes over the sentences of a chain, which change its weights as they go.

`Corrections` changes them after mistakes (perceptron, passive-aggressive, AROW); `Descent` and
`SquaredDescent` take a step down the gradient of every sentence's loss. They share the memory layout of the
weights.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike

from factorwise.errors import ImpossibleError, WeightError
from factorwise.kernels.chains import attribute_rows, chain_descent, chain_online
from factorwise.kernels.chains.attribute_rows import Tokens
from factorwise.kernels.chains.chain_descent import Gathered, Pace, Squares, TransitionWeights
from factorwise.kernels.chains.chain_gradient import Room
from factorwise.kernels.chains.chain_online import Difference, OnlineStep, Paths, WeightStore
from factorwise.kernels.chains.chain_rows import FORBIDDEN
from factorwise.kernels.chains.rows import GROUP, groups_of
from factorwise.learning.chains.layout import StateFeatures, WeightLayout
from factorwise.learning.chains.structure import FirstOrder, Supervision
from factorwise.types import Float64s, Floats, Int64s, Ints, UInt8s
from factorwise.variables.sparse_rows import SparseRows


class Passes(Protocol):
    """Weights, and a way to improve them by a pass over sentences."""

    def run(self, order: Ints) -> tuple[float, int]:
        """Make a pass over the sentences; return the sum of their losses and the number of wrong labels."""
        ...

    def weights(self) -> Float64s:
        """Return the weights after the passes so far."""
        ...


class LaidOut:
    """Sentences and weights in the layout that the kernels read.

    score : real[labels, columns]
        Transition scores; FORBIDDEN for forbidden transitions, and in the padding.
    movable : bool[transitions]
        Which transition weights matter: those that are not forbidden.
    """

    def __init__(
        self,
        rows: SparseRows,
        start: Int64s,
        supervision: Supervision,
        features: StateFeatures,
        structure: FirstOrder,
        weights: Float64s | None,
        dtype: DTypeLike,
    ) -> None:
        size = len(features) + structure.size
        supervision.check(rows, start)
        if weights is not None and (weights.shape != (size,) or not np.isfinite(weights).all()):
            raise WeightError(f"start_weights has shape {weights.shape}: give {size} finite numbers.")
        self.rows, self.supervision, self.features, self.structure = rows, supervision, features, structure
        self.groups, self.dtype = groups_of(structure.labels), np.dtype(dtype)
        self.columns = GROUP * len(self.groups)
        self.layout = WeightLayout.of(features)
        self.longest = int(np.diff(start).max(initial=1))
        self.most_entries = int(np.diff(rows.indptr[start]).max(initial=1))
        self.tokens = Tokens(
            start,
            self.layout.entries(rows),
            self.zeros(len(self.layout.rows)),
            np.eye(structure.labels, self.columns, dtype=self.dtype),
            np.zeros(size),
            structure.base(self.columns, self.dtype),
        )
        self.known = supervision.padded(structure.labels, self.columns, self.dtype)
        self.score = np.full((structure.labels, self.columns), FORBIDDEN, dtype=self.dtype)
        self.movable = ~structure.forbidden[structure.pairs[:, 0], structure.pairs[:, 1]]
        self.write(np.zeros(size) if weights is None else weights)

    def zeros(self, rows: int) -> Floats:
        """Return a table of zeros with the same number of rows."""
        return np.zeros((rows, self.columns), dtype=self.dtype)

    def write(self, weights: Float64s) -> None:
        """Lay out the weights."""
        features, rows = self.features, self.layout.rows
        self.tokens.weights[:] = weights
        attribute_rows.expand(features.start, features.label, rows, 0, len(rows), weights, self.tokens.table)
        table = self.structure.table(weights[len(features) :])
        self.score[:, : self.structure.labels] = np.maximum(table, FORBIDDEN)

    def read(self) -> Float64s:
        """Return the current weights."""
        features, rows = self.features, self.layout.rows
        weights = np.array(self.tokens.weights, dtype=np.float64)
        attribute_rows.collect(features.start, features.label, rows, 0, len(rows), self.tokens.table, weights)
        tail = weights[len(features) :]
        tail[self.movable] = self.structure.at_pairs(self.score)[self.movable]
        return weights

    def row_bits(self) -> UInt8s:
        """Return as bits which columns of each row of the table have a weight."""
        rows, features = self.layout.rows, self.features
        bits = np.zeros((len(rows), len(self.groups)), dtype=np.uint8)
        row = np.repeat(np.arange(len(rows)), features.per_attribute[rows])
        label = features.label[np.repeat(features.per_attribute > 1, features.per_attribute)]
        np.bitwise_or.at(bits, (row, label >> 3), (1 << (label & 7)).astype(np.uint8))
        return bits


def _impossible(sentence: int) -> ImpossibleError:
    return ImpossibleError(
        f"sentence {sentence} has labels that the constraints forbid. Correct the labels, or remove the"
        " constraint that they violate."
    )


class Corrections:
    """Passes that correct mistakes.

    averaging
        Return the mean of the weights after each sentence instead of the last weights.
    variance
        For AROW: the uncertainty of the weights before the first sentence.
    """

    def __init__(
        self, laid: LaidOut, step: OnlineStep, *, averaging: bool, variance: float | None = None
    ) -> None:
        self._laid, self._step, self._averaging = laid, step, averaging
        self._count = 1
        structure, features, rows = laid.structure, laid.features, laid.layout.rows
        weights = laid.tokens.weights
        pair = np.full((structure.labels, structure.labels), -1, dtype=np.int32)
        position = np.arange(len(features), len(weights), dtype=np.int32)
        pair[structure.pairs[:, 0], structure.pairs[:, 1]] = np.where(laid.movable, position, -1)
        arrival = np.full_like(laid.score, FORBIDDEN)
        arrival[:, : structure.labels] = laid.score[:, : structure.labels].T
        self._store = WeightStore(
            np.stack([features.start[rows], features.start[rows + 1]], axis=1),
            features.label,
            np.ascontiguousarray(structure.pairs, dtype=np.int32),
            pair,
            laid.score,
            arrival,
            weights,
            np.zeros(len(weights)),
            np.zeros(0) if variance is None else np.full(len(weights), variance),
        )
        room = 2 * (laid.most_entries + laid.longest)
        self._difference = Difference(
            np.full(len(weights), -1, dtype=np.int32),
            np.zeros(room, dtype=np.int32),
            np.zeros(room, dtype=np.int32),
            np.zeros(room),
        )
        self._paths = Paths(
            laid.zeros(laid.longest),
            laid.zeros(laid.longest),
            np.zeros(laid.longest, dtype=np.int64),
            np.zeros(laid.longest, dtype=np.int64),
        )

    def run(self, order: Ints) -> tuple[float, int]:
        """Make a pass over the sentences; return the sum of their losses and the number of wrong labels."""
        laid = self._laid
        done, loss, wrong = chain_online.correct_mistakes(
            laid.groups,
            laid.tokens,
            laid.known,
            self._store,
            self._step,
            order,
            self._count,
            self._paths,
            self._difference,
        )
        if done < len(order):
            raise _impossible(int(order[done]))
        self._count += len(order)
        return loss, wrong

    def weights(self) -> Float64s:
        """Return the weights after the passes so far."""
        weights = np.array(self._store.weights, dtype=np.float64)
        if self._averaging:
            weights -= self._store.sums / self._count
        return weights


class _Gradients:
    """What both kinds of descent need: a gradient array, and a slow way to compute the gradient."""

    def __init__(self, laid: LaidOut) -> None:
        self._laid = laid
        labels, longest = laid.structure.labels, laid.longest
        sizes = (longest, longest, longest, longest, labels, labels, longest, labels)
        self._room = Room(*(laid.zeros(size) for size in sizes))

    def _in_logs(self, sentence: int, scale: float) -> tuple[float, int]:
        """Compute the gradient of a sentence that underflows in the kernel; return its loss and wrong labels.

        The loss is infinite if the weights are.
        """
        laid, room, supervision = self._laid, self._room, self._laid.supervision
        structure, labels = laid.structure, laid.structure.labels
        begin, end = (int(laid.tokens.start[sentence + extra]) for extra in (0, 1))
        attribute_rows.sum_rows(laid.groups, laid.tokens, begin, end, -begin, room.alpha)
        node = room.alpha[: end - begin, :labels].astype(np.float64) * scale
        tail = structure.at_pairs(laid.score) * scale
        if not (np.isfinite(node).all() and np.isfinite(tail).all()):
            return np.inf, 0
        node[0, structure.not_first] = -np.inf
        node[-1, structure.not_last] = -np.inf
        supervision.charge(node, begin)
        may_be = np.array([supervision.may_be(token, labels) for token in range(begin, end)])
        try:
            log_total, expected, pairs = structure.in_logs(node, tail)
            log_known, known, known_pairs = structure.in_logs(np.where(may_be, node, -np.inf), tail)
        except ImpossibleError as error:
            raise _impossible(sentence) from error
        amount = float(supervision.emphasis[sentence]) if len(supervision.emphasis) else 1.0
        room.residual[: end - begin, :labels] = amount * (expected - known)
        room.edge[:, :labels] = amount * (pairs - known_pairs)
        wrong = int((~may_be[np.arange(end - begin), expected.argmax(axis=1)]).sum())
        return amount * (log_total - log_known), wrong


class Descent(_Gradients):
    """Passes that follow the gradient of each sentence's loss, and shrink all weights by the penalty.

    rate
        Length of the first step; the step after ``t`` sentences is ``1 / (1 / rate + shrink * t)``.
    shrink
        Twice the L2 penalty, for each sentence.
    """

    def __init__(self, laid: LaidOut, *, rate: float, shrink: float) -> None:
        super().__init__(laid)
        self._start = laid.read()
        self._bits = laid.row_bits()
        structure = laid.structure
        pair_bits = np.zeros((structure.labels, len(laid.groups)), dtype=np.uint8)
        left, right = structure.pairs[laid.movable].T
        np.bitwise_or.at(pair_bits, (left, right >> 3), (1 << (right & 7)).astype(np.uint8))
        self._transitions = TransitionWeights(laid.score, pair_bits)
        self._shrink = shrink
        self.begin_at(rate)

    def begin_at(self, rate: float) -> None:
        """Forget all passes and start again with this rate; zero makes no change."""
        self._slowness = np.inf if rate == 0.0 else 1.0 / rate
        self._done, self._scale = 0, 1.0
        self._laid.write(self._start)

    def run(self, order: Ints) -> tuple[float, int]:
        """Make a pass over the sentences; return the sum of their losses and the number of wrong labels."""
        laid, pace = self._laid, Pace(self._slowness, self._shrink, self._done)
        total, mistakes, position, ready = 0.0, 0, 0, False
        while True:
            position, self._scale, loss, wrong = chain_descent.descend(
                laid.groups,
                laid.tokens,
                laid.known,
                self._transitions,
                self._bits,
                pace,
                order,
                position,
                ready,
                self._scale,
                self._room,
            )
            total, mistakes = total + loss, mistakes + wrong
            if position == len(order):
                self._done += len(order)
                return total, mistakes
            loss, wrong = self._in_logs(int(order[position]), self._scale)
            if not np.isfinite(loss):
                return np.inf, mistakes
            total, mistakes, ready = total + loss, mistakes + wrong, True

    def weights(self) -> Float64s:
        """Return the weights after the passes so far."""
        return self._laid.read() * self._scale


class SquaredDescent(_Gradients):
    """AdaGrad: passes with a step per weight, which is shorter the larger its gradients were.

    offset
        Initial value of every weight's sum of squared gradients.
    """

    def __init__(self, laid: LaidOut, *, rate: float, l2: float, offset: float) -> None:
        super().__init__(laid)
        self._rate = rate
        rows, features, structure = laid.layout.rows, laid.features, laid.structure
        squares = np.full((len(rows), laid.columns), np.inf, dtype=laid.dtype)
        seen = np.unpackbits(laid.row_bits(), axis=1, bitorder="little").astype(bool)
        squares[seen] = offset
        edge = np.full(laid.score.shape, np.inf, dtype=laid.dtype)
        left, right = structure.pairs[laid.movable].T
        edge[left, right] = offset
        pull = 2.0 * l2 / self._sentences_with_attribute()
        long = int((np.diff(laid.tokens.start) > 1).sum())
        self._squares = Squares(
            squares,
            pull[rows].astype(laid.dtype),
            np.full(len(features), offset),
            np.repeat(pull, features.per_attribute),
            edge,
            2.0 * l2 / max(long, 1),
        )
        self._gathered = Gathered(
            np.full(len(rows) + len(features), -1, dtype=np.int32),
            np.zeros(laid.most_entries, dtype=np.int32),
            np.zeros(laid.most_entries, dtype=np.int32),
            laid.zeros(laid.most_entries),
            np.zeros(laid.most_entries),
        )

    def _sentences_with_attribute(self) -> Int64s:
        """Count the sentences that have each attribute; 1 for attributes that none has."""
        rows = self._laid.rows
        count = np.zeros(rows.width, dtype=np.int64)
        last = np.full(rows.width, -1, dtype=np.int64)
        chain_descent.sentences_with(self._laid.tokens.start, rows.indptr, rows.indices, last, count)
        return np.maximum(count, 1)

    def run(self, order: Ints) -> tuple[float, int]:
        """Make a pass over the sentences; return the sum of their losses and the number of wrong labels."""
        laid = self._laid
        total, mistakes, position, ready = 0.0, 0, 0, False
        while True:
            position, loss, wrong = chain_descent.descend_by_squares(
                laid.groups,
                laid.tokens,
                laid.known,
                laid.score,
                self._squares,
                self._rate,
                order,
                position,
                ready,
                self._room,
                self._gathered,
            )
            total, mistakes = total + loss, mistakes + wrong
            if position == len(order):
                return total, mistakes
            loss, wrong = self._in_logs(int(order[position]), 1.0)
            if not np.isfinite(loss):
                return np.inf, mistakes
            total, mistakes, ready = total + loss, mistakes + wrong, True

    def weights(self) -> Float64s:
        """Return the weights after the passes so far."""
        return self._laid.read()
