"""Forward, backward and Viterbi over many sentences, with a row of labels in registers at every token.

In the scaled domain, the scores of a token become weights, exp(score - largest), so that the largest is 1,
and the transition table likewise. In the forward pass, the weights of a token are divided by the sum at the
previous token; that sum is known before the product with the table, so the division is off the critical path.
Both passes use the same rescaled weights, so that the product of their rows is a marginal.

Single precision may underflow in two ways: a sum falls below FAINT; or the backward sum of a label exceeds
FAR times the whole, so that a path that vanished in the forward pass (below 1e-37) might be the one that
counts. Such a sentence is skipped and marked, and the caller computes it in the log domain.

Each kernel works on sentences ``first`` to ``last``.

"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.attribute_rows import Tokens, row_total
from factorwise.kernels.chains.rows import (
    Groups,
    Row,
    add_scaled,
    exponential,
    first_place,
    greater,
    largest,
    load_row,
    store_row,
    sum_of,
    zero_row,
)
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.types import Floats, Ints

FAINT = 1e-25
FAR = 1e28
FORBIDDEN = -1e30


class Steps(NamedTuple):
    """Transitions between labels in the forms that the kernels read, real[labels, columns].

    score
        Score of the transition from a label (row), minus the largest score; FORBIDDEN in the padding.
    arrival
        Its transpose, padded likewise.
    weight, reverse
        exp of both; zero in the padding.
    """

    score: Floats
    arrival: Floats
    weight: Floats
    reverse: Floats


class Known(NamedTuple):
    """What is known about the labels, and the weight of each sentence.

    truth : int32[tokens]
        The right label; -1 if it is unknown.
    allowed_row : int32[tokens] or empty
        For a token with -1: its row of ``allowed``.
    allowed : real[rows, columns]
        1 for labels that the token may have, else 0.
    emphasis : real[sentences] or empty
        The weight of each sentence.
    cost : real[labels] or empty
        Subtracted from the score of the right label, so that it must lead by that much (softmax margin).
    """

    truth: Ints
    allowed_row: Ints
    allowed: Floats
    emphasis: Floats
    cost: Floats


@hot
def token_row(groups: Groups, tokens: Tokens, token: int, begin: int, end: int) -> Row:
    """Return the scores of the labels of one token in the sentence from ``begin`` to ``end``."""
    place = (1 if token == begin else 0) + (2 if token == end - 1 else 0)
    row = load_row(groups, tokens.base, place)
    return row_total(groups, tokens.entries, tokens.table, tokens.unit, tokens.weights, token, row)


@hot
def _product(groups: Groups, row_table: Floats, row: int, labels: int, table: Floats) -> Row:
    """Return the product of a row with the table: the sum of the table's rows times the row's numbers."""
    even, odd = zero_row(groups, table), zero_row(groups, table)
    for label in range(0, labels - 1, 2):
        even = add_scaled(even, row_table[row, label], table, label)
        odd = add_scaled(odd, row_table[row, label + 1], table, label + 1)
    if labels % 2 == 1:
        even = add_scaled(even, row_table[row, labels - 1], table, labels - 1)
    return even + odd


@inner
def forward(
    groups: Groups, length: int, labels: int, transition: Floats, weight: Floats, alpha: Floats
) -> tuple[float, float]:
    """Write ``alpha`` and rescale the rows of ``weight``; return the log of the scale, and the last sum."""
    first = load_row(groups, weight, 0)
    store_row(alpha, 0, first)
    total = np.float64(sum_of(first))
    log_scale, product = 0.0, 1.0
    for token in range(1, length):
        if not total > FAINT:
            return log_scale, 0.0
        product *= total
        if product > 1e100 or product < 1e-100:
            log_scale += np.log(product)
            product = 1.0
        scaled = load_row(groups, weight, token) * (1.0 / total)
        store_row(weight, token, scaled)
        row = _product(groups, alpha, token - 1, labels, transition) * scaled
        store_row(alpha, token, row)
        total = np.float64(sum_of(row))
    if not total > FAINT:
        return log_scale, 0.0
    return log_scale + np.log(product), total


@inner
def backward(
    groups: Groups,
    length: int,
    labels: int,
    reverse: Floats,
    amount: float,
    alpha: Floats,
    weight: Floats,
    out: Floats,
    offset: int,
) -> float:
    """Add ``amount`` times the marginals to the rows of ``out``; return the total backward sum (see FAR).

    The rows of ``weight`` become those that the transition sums need; ``amount`` includes 1 / the last sum.
    """
    beta = zero_row(groups, weight) + amount
    reach = zero_row(groups, weight)
    for token in range(length - 1, -1, -1):
        marginal = load_row(groups, alpha, token) * beta
        store_row(out, offset + token, load_row(groups, out, offset + token) + marginal)
        onward = load_row(groups, weight, token) * beta
        store_row(weight, token, onward)
        if token > 0:
            reach = reach + (beta + onward)
            beta = _product(groups, weight, token, labels, reverse)
    return abs(np.float64(sum_of(reach + beta)))


@inner
def add_transitions(
    groups: Groups, length: int, labels: int, alpha: Floats, weight: Floats, edge: Floats
) -> None:
    """Add to ``edge`` the products of each alpha with the next row, without the table itself."""
    rest = labels - labels % 4
    for left in range(0, rest, 4):
        first, second = load_row(groups, edge, left), load_row(groups, edge, left + 1)
        third, fourth = load_row(groups, edge, left + 2), load_row(groups, edge, left + 3)
        for token in range(1, length):
            first = add_scaled(first, alpha[token - 1, left], weight, token)
            second = add_scaled(second, alpha[token - 1, left + 1], weight, token)
            third = add_scaled(third, alpha[token - 1, left + 2], weight, token)
            fourth = add_scaled(fourth, alpha[token - 1, left + 3], weight, token)
        store_row(edge, left, first)
        store_row(edge, left + 1, second)
        store_row(edge, left + 2, third)
        store_row(edge, left + 3, fourth)
    for left in range(rest, labels):
        only = load_row(groups, edge, left)
        for token in range(1, length):
            only = add_scaled(only, alpha[token - 1, left], weight, token)
        store_row(edge, left, only)


@hot
def centered_row(groups: Groups, tokens: Tokens, known: Known, token: int, begin: int, end: int) -> Row:
    """Return the scores of the labels of one token, minus the cost of the right one, minus the largest."""
    label = known.truth[token]
    row = token_row(groups, tokens, token, begin, end)
    if len(known.cost) > 0 and label >= 0:
        row = add_scaled(row, -known.cost[label], tokens.unit, label)
    return row - max(largest(row), FORBIDDEN / 2)  # all weights become zero if every label is forbidden


@hot
def read_weights(groups: Groups, tokens: Tokens, begin: int, end: int, weight: Floats) -> float:
    """Write the weights of a sentence's tokens, exp(score - largest); return the sum of the largest."""
    peak = 0.0
    for token in range(begin, end):
        row = token_row(groups, tokens, token, begin, end)
        top = max(largest(row), FORBIDDEN / 2)
        peak += top
        store_row(weight, token - begin, exponential(row - top))
    return peak


@hot
def subtract_observed(
    groups: Groups, tokens: Tokens, known: Known, amount: float, begin: int, end: int, residual: Floats
) -> None:
    """Subtract the right label of each token from the expected labels."""
    for token in range(begin, end):
        row = load_row(groups, residual, token)
        store_row(residual, token, add_scaled(row, -amount, tokens.unit, known.truth[token]))


@hot
def read_scores(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    transition_score: Floats,
    begin: int,
    end: int,
    weight: Floats,
    residual: Floats,
) -> tuple[bool, float]:
    """Write the weights of a sentence's tokens, exp(score - largest), and clear their residuals.

    Returns whether a label is unknown, and the score of the known path relative to the largest scores (mostly
    below zero).
    """
    partial, lead = False, 0.0
    for token in range(begin, end):
        label = known.truth[token]
        row = centered_row(groups, tokens, known, token, begin, end)
        store_row(weight, token - begin, row)
        if label < 0:
            partial = True
        else:
            lead += weight[token - begin, label]
            if token > begin and known.truth[token - 1] >= 0:
                lead += transition_score[known.truth[token - 1], label]
        store_row(weight, token - begin, exponential(row))
        store_row(residual, token, zero_row(groups, weight))
    return partial, lead


@hot
def keep_allowed(
    groups: Groups, tokens: Tokens, known: Known, begin: int, end: int, weight: Floats, masked: Floats
) -> None:
    """Write the weights of the labels that agree with what is known, and zero for the others."""
    for token in range(begin, end):
        label = known.truth[token]
        row = load_row(groups, weight, token - begin)
        if label >= 0:
            row = row * load_row(groups, tokens.unit, label)
        else:
            row = row * load_row(groups, known.allowed, known.allowed_row[token])
        store_row(masked, token - begin, row)


@hot
def clear_rows(groups: Groups, table: Floats, first: int, last: int) -> None:
    """Set rows ``first`` to ``last`` to zero."""
    for row in range(first, last):
        store_row(table, row, zero_row(groups, table))


@lean_kernel
def expectations(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    steps: Steps,
    first: int,
    last: int,
    scratch: Floats,
    residual: Floats,
    edge: Floats,
    loss: Floats,
) -> None:
    """Compute the loss of the sentences, and the expected minus observed labels of their tokens.

    scratch : real[4, longest, columns]
    residual : real[tokens, columns]
        Expected minus observed, overwritten; zero for a sentence that underflows.
    edge : real[labels, columns]
        Products for the expected transitions are added to it; for sentences with an unknown label, those of
        the paths that agree with what is known are subtracted.
    loss : float64[sentences]
        Negative log-likelihood; NaN for a sentence that underflows or has no path.
    """
    labels = len(steps.weight)
    alpha, weight, alpha_known, masked = scratch[0], scratch[1], scratch[2], scratch[3]
    for sentence in range(first, last):
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        partial, lead = read_scores(groups, tokens, known, steps.score, begin, end, weight, residual)
        if partial:
            keep_allowed(groups, tokens, known, begin, end, weight, masked)
        loss[sentence] = np.nan
        log_scale, total = forward(groups, length, labels, steps.weight, weight, alpha)
        if total == 0.0 or lead < FORBIDDEN / 2:
            continue
        log_total = log_scale + np.log(total)
        total_known = 1.0
        if partial:
            log_scale, total_known = forward(groups, length, labels, steps.weight, masked, alpha_known)
            if total_known == 0.0:
                continue
            lead = log_scale + np.log(total_known)
        amount = 1.0 if len(known.emphasis) == 0 else np.float64(known.emphasis[sentence])
        share = amount / total
        reach = backward(groups, length, labels, steps.reverse, share, alpha, weight, residual, begin)
        if partial:
            share = -amount / total_known
            reach += backward(
                groups, length, labels, steps.reverse, share, alpha_known, masked, residual, begin
            )
        if not reach <= FAR * amount:
            clear_rows(groups, residual, begin, end)
            continue
        loss[sentence] = amount * (log_total - lead)
        add_transitions(groups, length, labels, alpha, weight, edge)
        if partial:
            add_transitions(groups, length, labels, alpha_known, masked, edge)
        else:
            subtract_observed(groups, tokens, known, amount, begin, end, residual)


@lean_kernel
def marginals(
    groups: Groups,
    tokens: Tokens,
    steps: Steps,
    first: int,
    last: int,
    scratch: Floats,
    out: Floats,
    log_partition: Floats,
) -> None:
    """Write label probabilities of the tokens, and log Z of each sentence.

    log Z is NaN, and the probabilities are zero, for a sentence that underflows or has no path; it does not
    include the shift of the transitions. ``scratch`` is real[2, longest, columns].
    """
    labels = len(steps.weight)
    alpha, weight = scratch[0], scratch[1]
    for sentence in range(first, last):
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        peak = read_weights(groups, tokens, begin, end, weight)
        clear_rows(groups, out, begin, end)
        log_scale, total = forward(groups, length, labels, steps.weight, weight, alpha)
        log_partition[sentence] = np.nan
        if total == 0.0:
            continue
        if backward(groups, length, labels, steps.reverse, 1.0 / total, alpha, weight, out, begin) <= FAR:
            log_partition[sentence] = peak + log_scale + np.log(total)
        else:
            clear_rows(groups, out, begin, end)


@hot
def best_arrival(groups: Groups, score: Floats, best: Floats, place: int) -> Row:
    """Return, for each label, the best score of a path that arrives there from the previous place."""
    labels = len(score)
    even = load_row(groups, score, 0) + best[place - 1, 0]
    odd = even
    for label in range(1, labels - 1, 2):
        even = greater(even, load_row(groups, score, label) + best[place - 1, label])
        odd = greater(odd, load_row(groups, score, label + 1) + best[place - 1, label + 1])
    if labels % 2 == 0:
        even = greater(even, load_row(groups, score, labels - 1) + best[place - 1, labels - 1])
    return greater(even, odd)


@lean_kernel
def decode(
    groups: Groups,
    tokens: Tokens,
    steps: Steps,
    first: int,
    last: int,
    best: Floats,
    path: Ints,
    score: Floats,
) -> None:
    """Write a best path for each sentence, and its score; ties go to the lowest labels.

    ``best`` (real[longest, columns]) is scratch space. The score does not include the shift of the
    transitions.
    """
    for sentence in range(first, last):
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        total = 0.0
        for token in range(begin, end):
            row = token_row(groups, tokens, token, begin, end)
            if token > begin:
                row = row + best_arrival(groups, steps.score, best, token - begin)
            top = np.float64(largest(row))  # subtracted to avoid rounding errors in a long text
            total += top
            store_row(best, token - begin, row - top)
        row = load_row(groups, best, length - 1)
        label = first_place(row, largest(row))
        score[sentence] = total
        path[end - 1] = label
        for place in range(length - 2, -1, -1):
            row = load_row(groups, best, place) + load_row(groups, steps.arrival, label)
            label = first_place(row, largest(row))
            path[begin + place] = label
