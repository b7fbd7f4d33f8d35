"""Stochastic gradient descent and AdaGrad on the likelihood of a chain, sentence by sentence.

The gradient of a sentence is expected minus observed: a row of labels for each token, and a table of
transitions. `descend` applies it directly to the weights of the token's attributes. An L2 penalty shrinks all
weights at every step; the weights are stored divided by a scale, and only the scale shrinks.
`descend_by_squares` first sums the rows over the tokens of a sentence, because its steps depend on the square
of the sum.

A sentence that underflows is returned to the caller, which computes its gradient in the log domain, writes it
into `Room`, and continues with ``ready``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.attribute_rows import Tokens
from factorwise.kernels.chains.chain_gradient import Room, sentence_gradient
from factorwise.kernels.chains.chain_online import fetch_ahead
from factorwise.kernels.chains.chain_rows import Known
from factorwise.kernels.chains.rows import Groups, keep_where, load_row, square_root, store_row
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.walks.rules import adagrad_pace
from factorwise.types import Floats, Ints


class TransitionWeights(NamedTuple):
    """Weights of the transition from one label (row) to another (column).

    score : real[labels, columns]
        FORBIDDEN for forbidden transitions and in the padding.
    bits : uint8[labels, groups]
        Bit mask of the transitions that have a weight to be learned.
    """

    score: Floats
    bits: Ints


class Pace(NamedTuple):
    """The learning rate, which is ``1 / (slowness + shrink * t)`` after ``t`` sentences.

    slowness
        1 / the initial learning rate; infinite for no change.
    shrink
        The relative shrinkage of the weights by a step of rate 1: twice the L2 penalty, per sentence.
    done
        Number of sentences before the first one.
    """

    slowness: float
    shrink: float
    done: int


class Squares(NamedTuple):
    """AdaGrad's sums of squared gradients, and the strength of the L2 penalty on each weight.

    row : real[rows, columns]
        Sums for rows of the table; infinite where there is no weight, so that the step is zero.
    row_pull : real[rows]
    single, single_pull : float64[state weights]
        The same for single weights.
    edge : real[labels, columns]
        Sums for transitions; infinite where there is no weight.
    edge_pull
    """

    row: Floats
    row_pull: Floats
    single: Floats
    single_pull: Floats
    edge: Floats
    edge_pull: float


class Gathered(NamedTuple):
    """The gradient of one sentence by rows and single weights.

    slot : int32[rows + state weights]
        Position of a row (or, after the rows, of a single weight) in its list; -1 if it is not listed.
    row, single : int32[room]
    total : real[room, columns]
    amount : float64[room]
    """

    slot: Ints
    row: Ints
    single: Ints
    total: Floats
    amount: Floats


@inner
def _subtract(
    groups: Groups,
    tokens: Tokens,
    transitions: TransitionWeights,
    bits: Ints,
    begin: int,
    end: int,
    gain: float,
    room: Room,
) -> None:
    """Subtract ``gain`` times the gradient from the weights."""
    entries, table, score = tokens.entries, tokens.table, transitions.score
    for token in range(begin, end):
        place = token - begin
        change = load_row(groups, room.residual, place) * -gain
        for entry in range(entries.dense_start[token], entries.dense_start[token + 1]):
            row = entries.dense_column[entry]
            part = keep_where(change, bits, row)
            if len(entries.dense_value) > 0:
                part = part * entries.dense_value[entry]
            store_row(table, row, load_row(groups, table, row) + part)
        for entry in range(entries.single_start[token], entries.single_start[token + 1]):
            amount = gain * room.residual[place, entries.single_label[entry]]
            if len(entries.single_value) > 0:
                amount *= entries.single_value[entry]
            tokens.weights[entries.single_weight[entry]] -= amount
    for left in range(len(score)):
        change = load_row(groups, room.edge, left) * -gain
        store_row(score, left, load_row(groups, score, left) + keep_where(change, transitions.bits, left))


@lean_kernel
def descend(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    transitions: TransitionWeights,
    bits: Ints,
    pace: Pace,
    order: Ints,
    first: int,
    ready: bool,
    scale: float,
    room: Room,
) -> tuple[int, float, float, int]:
    """Take a gradient step on the loss of each sentence in ``order[first:]``.

    bits : uint8[rows, groups]
        Bit mask of the columns of each table row that have a weight.
    ready
        Whether the gradient of the first sentence is already in ``room``.
    scale
        The factor by which stored weights are multiplied.

    Returns the position of the first sentence that was not processed (because it underflows; the end if all
    were), the scale, the sum of losses and the number of wrong labels.
    """
    loss, wrong = 0.0, 0
    for position in range(first, len(order)):
        sentence = order[position]
        fetch_ahead(tokens, order, position)
        rate = 1.0 / (pace.slowness + pace.shrink * (pace.done + position))
        if position > first or not ready:
            scale *= 1.0 - rate * pace.shrink
            own_loss, own_wrong = sentence_gradient(
                groups, tokens, known, transitions.score, scale, sentence, room
            )
            if np.isnan(own_loss):
                return position, scale, loss, wrong
            loss += own_loss
            wrong += own_wrong
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        _subtract(groups, tokens, transitions, bits, begin, end, rate / scale, room)
    return len(order), scale, loss, wrong


@hot
def _gather(
    groups: Groups, tokens: Tokens, rows: int, begin: int, end: int, room: Room, gathered: Gathered
) -> tuple[int, int]:
    """Sum the gradient over tokens; return the number of rows and of single weights with a gradient."""
    entries, slot = tokens.entries, gathered.slot
    n_rows, n_singles = 0, 0
    for token in range(begin, end):
        place = token - begin
        residual = load_row(groups, room.residual, place)
        for entry in range(entries.dense_start[token], entries.dense_start[token + 1]):
            row = entries.dense_column[entry]
            part = residual if len(entries.dense_value) == 0 else residual * entries.dense_value[entry]
            at = slot[row]
            if at >= 0:
                part = part + load_row(groups, gathered.total, at)
            else:
                at = n_rows
                slot[row] = at
                gathered.row[at] = row
                n_rows += 1
            store_row(gathered.total, at, part)
        for entry in range(entries.single_start[token], entries.single_start[token + 1]):
            weight = entries.single_weight[entry]
            amount = np.float64(room.residual[place, entries.single_label[entry]])
            if len(entries.single_value) > 0:
                amount *= entries.single_value[entry]
            at = slot[rows + weight]
            if at >= 0:
                gathered.amount[at] += amount
            else:
                slot[rows + weight] = n_singles
                gathered.single[n_singles] = weight
                gathered.amount[n_singles] = amount
                n_singles += 1
    return n_rows, n_singles


@hot
def _step_row(
    groups: Groups,
    table: Floats,
    squares: Floats,
    index: int,
    gradient: Floats,
    place: int,
    rate: float,
    pull: float,
) -> None:
    """Take an AdaGrad step on one row of weights, then apply the penalty."""
    slope = load_row(groups, gradient, place)
    square = load_row(groups, squares, index) + slope * slope
    store_row(squares, index, square)
    pace = rate / square_root(square)
    moved = load_row(groups, table, index) - slope * pace
    store_row(table, index, moved / (pace * pull + 1.0))


@lean_kernel
def descend_by_squares(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    score: Floats,
    squares: Squares,
    rate: float,
    order: Ints,
    first: int,
    ready: bool,
    room: Room,
    gathered: Gathered,
) -> tuple[int, float, int]:
    """Take AdaGrad steps: like `descend`, with ``rate`` over the root of the sum of squared gradients.

    The penalty is applied by a proximal step only at the sentences that have the attribute, and is larger by
    the factor by which these are rarer than all sentences.
    """
    loss, wrong, rows = 0.0, 0, len(tokens.table)
    for position in range(first, len(order)):
        sentence = order[position]
        fetch_ahead(tokens, order, position)
        if position > first or not ready:
            own_loss, own_wrong = sentence_gradient(groups, tokens, known, score, 1.0, sentence, room)
            if np.isnan(own_loss):
                return position, loss, wrong
            loss += own_loss
            wrong += own_wrong
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        n_rows, n_singles = _gather(groups, tokens, rows, begin, end, room, gathered)
        for place in range(n_rows):
            row = gathered.row[place]
            gathered.slot[row] = -1
            pull = squares.row_pull[row]
            _step_row(groups, tokens.table, squares.row, row, gathered.total, place, rate, pull)
        for place in range(n_singles):
            weight, slope = gathered.single[place], gathered.amount[place]
            gathered.slot[rows + weight] = -1
            squares.single[weight] += slope * slope
            pace = adagrad_pace(rate, squares.single[weight], 0.0)
            moved = tokens.weights[weight] - slope * pace
            tokens.weights[weight] = moved / (1.0 + pace * squares.single_pull[weight])
        if end - begin > 1:
            for left in range(len(score)):
                _step_row(groups, score, squares.edge, left, room.edge, left, rate, squares.edge_pull)
    return len(order), loss, wrong


@lean_kernel
def sentences_with(start: Ints, indptr: Ints, indices: Ints, last: Ints, count: Ints) -> None:
    """Count the sentences in which each column occurs.

    ``start`` holds the first token of each sentence, ``indptr`` the first entry of each token; ``last`` (one
    number per column, initially -1) is scratch space.
    """
    for sentence in range(len(start) - 1):
        for entry in range(indptr[start[sentence]], indptr[start[sentence + 1]]):
            column = indices[entry]
            if last[column] != sentence:
                last[column] = sentence
                count[column] += 1
