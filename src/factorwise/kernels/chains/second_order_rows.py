"""Forward, backward and Viterbi where a label depends on the two before: rows as in `chain_rows`.

A sum of paths is kept for every pair of adjacent labels, so a token has a row for each previous label and a
column for each of its own labels. The scores after a pair (left, middle) are in the pair's own row if some
triple that begins with it has a weight, and otherwise in a row shared by all pairs with that middle label.
Each own row takes one step; pairs that share a row are summed first. The first label of a sentence, which has
no left label, uses the shared row. Few triples of labels have weights, so most pairs share.

The scratch space of a sentence, real[longest * (labels + 2), columns], has a row for each token with its
weights; then a row for each token with the sums of the paths that share a row; then ``labels`` rows for each
token with the sums of all paths, in row ``labels * token + before``. Scaling and underflow are handled as in
`chain_rows`. Each kernel works on sentences ``first`` to ``last``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.attribute_rows import Tokens
from factorwise.kernels.chains.chain_rows import (
    FAINT,
    FAR,
    FORBIDDEN,
    Known,
    centered_row,
    clear_rows,
    keep_allowed,
    read_weights,
    subtract_observed,
    token_row,
)
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


class LongSteps(NamedTuple):
    """Scores of a label after two others, in the forms that the kernels read.

    start : int64[labels + 1]
        The own rows of pairs with middle label ``m`` are ``start[m]:start[m + 1]``.
    left : int64[own rows]
        The left label of each own row, ascending for each middle label.
    row : int64[labels, labels]
        The row of each pair (left, middle): its own row or, after the own rows, the shared row of ``middle``.
    score : real[own rows + labels, columns]
        Score of a label (column) after a pair, minus the largest score; FORBIDDEN in the padding.
    weight : real[own rows + labels, columns]
        exp of it; zero in the padding.
    share_score : real[labels, columns]
        Zero if a left (row) and a middle label (column) use a shared row and are allowed, else FORBIDDEN.
    share : real[labels, columns]
        exp of it.
    """

    start: Ints
    left: Ints
    row: Ints
    score: Floats
    weight: Floats
    share_score: Floats
    share: Floats


@hot
def _row(begin: int, offset: int) -> np.uint64:
    """Return the number of a row as unsigned, which saves the compiler the check for negative indices."""
    return np.uint64(begin + offset)


@hot
def _arrivals(groups: Groups, steps: LongSteps, alpha: Floats, shared: int, before: int, middle: int) -> Row:
    """Return the sums of paths from a middle label; the previous token's rows start at ``before``."""
    even = load_row(groups, steps.weight, len(steps.left) + middle) * alpha[shared, middle]
    odd = zero_row(groups, alpha)
    begin, end = steps.start[middle], steps.start[middle + 1]
    if (end - begin) % 2 == 1:
        end -= 1
        odd = add_scaled(odd, alpha[_row(before, steps.left[end]), middle], steps.weight, end)
    for row in range(begin, end, 2):
        even = add_scaled(even, alpha[_row(before, steps.left[row]), middle], steps.weight, row)
        odd = add_scaled(odd, alpha[_row(before, steps.left[row + 1]), middle], steps.weight, row + 1)
    return even + odd


@inner
def forward(groups: Groups, length: int, steps: LongSteps, alpha: Floats) -> tuple[float, float]:
    """Write the sums of paths and rescale the weights; return the log of the scale, and the last sum."""
    labels, own_rows = len(steps.share), len(steps.left)
    longest = len(alpha) // (labels + 2)
    sums = load_row(groups, alpha, 0)
    total = np.float64(sum_of(sums))
    log_scale, product = 0.0, 1.0
    for token in range(1, length):
        if not total > FAINT:
            return log_scale, 0.0
        product *= total
        if product > 1e100 or product < 1e-100:
            log_scale += np.log(product)
            product = 1.0
        scaled = load_row(groups, alpha, token) * (1.0 / total)
        store_row(alpha, token, scaled)
        here = 2 * longest + labels * token
        before = here - labels
        if token > 1:
            sums = zero_row(groups, alpha)
            for left in range(labels):
                sums = sums + load_row(groups, alpha, before + left) * load_row(groups, steps.share, left)
        store_row(alpha, longest + token, sums)
        sums = zero_row(groups, alpha)
        for middle in range(labels):
            if token == 1:
                row = load_row(groups, steps.weight, own_rows + middle) * alpha[longest + token, middle]
            else:
                row = _arrivals(groups, steps, alpha, longest + token, before, middle)
            row = row * scaled
            store_row(alpha, here + middle, row)
            sums = sums + row
        total = np.float64(sum_of(sums))
    if not total > FAINT:
        return log_scale, 0.0
    return log_scale + np.log(product), total


@inner
def backward(
    groups: Groups,
    length: int,
    steps: LongSteps,
    amount: float,
    alpha: Floats,
    onward: Floats,
    out: Floats,
    offset: int,
) -> float:
    """Add ``amount`` times the marginals to the rows of ``out``; return the total backward sum (see FAR).

    The rows of ``onward`` become those that the transition sums need; ``amount`` includes 1 / the last sum.
    """
    labels, own_rows = len(steps.share), len(steps.left)
    longest = len(alpha) // (labels + 2)
    beta = zero_row(groups, alpha) + amount
    reach = zero_row(groups, alpha)
    store_row(onward, 0, zero_row(groups, onward))
    for token in range(length - 1, 0, -1):
        here = 2 * longest + labels * token
        weight = load_row(groups, alpha, token)
        marginal = zero_row(groups, alpha)
        for middle in range(labels):
            if token < length - 1:
                beta = load_row(groups, onward, here + middle)
            marginal = marginal + load_row(groups, alpha, here + middle) * beta
            row = weight * beta
            reach = reach + (beta + row)
            store_row(onward, here + middle, row)
            onward[0, middle] = sum_of(load_row(groups, steps.weight, own_rows + middle) * row)
        store_row(out, offset + token, load_row(groups, out, offset + token) + marginal)
        if token > 1:
            _step_back(groups, steps, here, onward)
        else:
            beta = load_row(groups, onward, 0)
    marginal = load_row(groups, alpha, 0) * beta
    store_row(out, offset, load_row(groups, out, offset) + marginal)
    return abs(np.float64(sum_of(reach + beta)))


@hot
def _step_back(groups: Groups, steps: LongSteps, here: int, onward: Floats) -> None:
    """Write the backward sums of the previous token; those of pairs that share a row come from row 0."""
    labels = len(steps.share)
    before = here - labels
    shared = load_row(groups, onward, 0)
    for left in range(labels):
        store_row(onward, before + left, load_row(groups, steps.share, left) * shared)
    for middle in range(labels):
        after = load_row(groups, onward, here + middle)
        for row in range(steps.start[middle], steps.start[middle + 1]):
            place = _row(before, steps.left[row])
            onward[place, middle] = sum_of(load_row(groups, steps.weight, row) * after)


@inner
def add_transitions(
    groups: Groups, length: int, steps: LongSteps, alpha: Floats, onward: Floats, edge: Floats
) -> None:
    """Add to ``edge`` the products of sums before and after; the caller multiplies by the weights later."""
    labels = len(steps.share)
    longest = len(alpha) // (labels + 2)
    begin, end = 2 * longest + 2 * labels, 2 * longest + labels * length
    for middle in range(labels):
        shared = load_row(groups, edge, len(steps.left) + middle)
        for token in range(1, length):
            here = 2 * longest + labels * token + middle
            shared = add_scaled(shared, alpha[longest + token, middle], onward, here)
        store_row(edge, len(steps.left) + middle, shared)
        row, last = steps.start[middle], steps.start[middle + 1]
        while row + 4 <= last:
            a, b = steps.left[row] - labels, steps.left[row + 1] - labels
            c, d = steps.left[row + 2] - labels, steps.left[row + 3] - labels
            first, second = load_row(groups, edge, row), load_row(groups, edge, row + 1)
            third, fourth = load_row(groups, edge, row + 2), load_row(groups, edge, row + 3)
            for here in range(begin, end, labels):
                first = add_scaled(first, alpha[_row(here, a), middle], onward, here + middle)
                second = add_scaled(second, alpha[_row(here, b), middle], onward, here + middle)
                third = add_scaled(third, alpha[_row(here, c), middle], onward, here + middle)
                fourth = add_scaled(fourth, alpha[_row(here, d), middle], onward, here + middle)
            store_row(edge, row, first)
            store_row(edge, row + 1, second)
            store_row(edge, row + 2, third)
            store_row(edge, row + 3, fourth)
            row += 4
        while row < last:
            before = steps.left[row] - labels
            only = load_row(groups, edge, row)
            for here in range(begin, end, labels):
                only = add_scaled(only, alpha[_row(here, before), middle], onward, here + middle)
            store_row(edge, row, only)
            row += 1


@hot
def _read_scores(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    steps: LongSteps,
    begin: int,
    end: int,
    weight: Floats,
    residual: Floats,
) -> tuple[bool, float]:
    """Compute `chain_rows.read_scores` for triples; the lead is valid only if all labels are known."""
    partial, lead = False, 0.0
    for token in range(begin, end):
        label = known.truth[token]
        row = centered_row(groups, tokens, known, token, begin, end)
        store_row(weight, token - begin, row)
        if label < 0:
            partial = True
        if not partial:
            lead += weight[token - begin, label]
            if token == begin + 1:
                lead += steps.score[len(steps.left) + known.truth[token - 1], label]
            elif token > begin:
                lead += steps.score[steps.row[known.truth[token - 2], known.truth[token - 1]], label]
        store_row(weight, token - begin, exponential(row))
        store_row(residual, token, zero_row(groups, weight))
    return partial, lead


@lean_kernel
def expectations(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    steps: LongSteps,
    first: int,
    last: int,
    scratch: Floats,
    residual: Floats,
    edge: Floats,
    loss: Floats,
) -> None:
    """Compute the loss of the sentences, and the expected minus observed labels of their tokens.

    scratch : real[4, longest * (labels + 2), columns]
    residual : real[tokens, columns]
        Expected minus observed, overwritten; zero for a sentence that underflows.
    edge : real[own rows + labels, columns]
        Products for the expected transitions are added to it; for sentences with an unknown label, those of
        the paths that agree with what is known are subtracted.
    loss : float64[sentences]
        Negative log-likelihood; NaN for a sentence that underflows or has no path.
    """
    alpha, onward, alpha_known, onward_known = scratch[0], scratch[1], scratch[2], scratch[3]
    for sentence in range(first, last):
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        partial, lead = _read_scores(groups, tokens, known, steps, begin, end, alpha, residual)
        if partial:
            keep_allowed(groups, tokens, known, begin, end, alpha, alpha_known)
        loss[sentence] = np.nan
        log_scale, total = forward(groups, length, steps, alpha)
        if total == 0.0 or lead < FORBIDDEN / 2:
            continue
        log_total = log_scale + np.log(total)
        total_known = 1.0
        if partial:
            log_scale, total_known = forward(groups, length, steps, alpha_known)
            if total_known == 0.0:
                continue
            lead = log_scale + np.log(total_known)
        amount = 1.0 if len(known.emphasis) == 0 else np.float64(known.emphasis[sentence])
        reach = backward(groups, length, steps, amount / total, alpha, onward, residual, begin)
        if partial:
            share = -amount / total_known
            reach += backward(groups, length, steps, share, alpha_known, onward_known, residual, begin)
        if not reach <= FAR * amount:
            clear_rows(groups, residual, begin, end)
            continue
        loss[sentence] = amount * (log_total - lead)
        add_transitions(groups, length, steps, alpha, onward, edge)
        if partial:
            add_transitions(groups, length, steps, alpha_known, onward_known, edge)
        else:
            subtract_observed(groups, tokens, known, amount, begin, end, residual)


@lean_kernel
def marginals(
    groups: Groups,
    tokens: Tokens,
    steps: LongSteps,
    first: int,
    last: int,
    scratch: Floats,
    out: Floats,
    log_partition: Floats,
) -> None:
    """Write label probabilities of the tokens, and log Z of each sentence.

    log Z is NaN, and the probabilities are zero, for a sentence that underflows or has no path; it does not
    include the shift of the transitions. ``scratch`` is real[2, longest * (labels + 2), columns].
    """
    alpha, onward = scratch[0], scratch[1]
    for sentence in range(first, last):
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        peak = read_weights(groups, tokens, begin, end, alpha)
        clear_rows(groups, out, begin, end)
        log_scale, total = forward(groups, length, steps, alpha)
        log_partition[sentence] = np.nan
        if total > 0.0:
            reach = backward(groups, length, steps, 1.0 / total, alpha, onward, out, begin)
            if reach <= FAR:
                log_partition[sentence] = peak + log_scale + np.log(total)
            else:
                clear_rows(groups, out, begin, end)


@hot
def _best_arrival(groups: Groups, steps: LongSteps, best: Floats, before: int, middle: int) -> Row:
    """Return, for each label, the best score of a path that arrives there from a middle label."""
    arrival = load_row(groups, steps.score, len(steps.left) + middle) + best[0, middle]
    for row in range(steps.start[middle], steps.start[middle + 1]):
        from_left = best[_row(before, steps.left[row]), middle]
        arrival = greater(arrival, load_row(groups, steps.score, row) + from_left)
    return arrival


@hot
def _trace_back(groups: Groups, steps: LongSteps, best: Floats, begin: int, length: int, path: Ints) -> float:
    """Write the best path of a sentence of two or more tokens, from its end; return its score."""
    labels = len(steps.share)
    here = 1 + labels * (length - 2)
    row = load_row(groups, best, here)
    for label in range(1, labels):
        row = greater(row, load_row(groups, best, here + label))
    score = largest(row)
    right = first_place(row, score)
    middle = 0
    for label in range(1, labels):
        if best[here + label, right] > best[here + middle, right]:
            middle = label
    path[begin + length - 1] = right
    path[begin + length - 2] = middle
    for place in range(length - 3, -1, -1):
        before = 1 + labels * place
        left, top = 0, -np.inf
        for label in range(labels):
            value = best[before + label, middle] + steps.score[steps.row[label, middle], right]
            if value > top:
                left, top = label, value
        path[begin + place] = left
        middle, right = left, middle
    return score


@lean_kernel
def decode(
    groups: Groups,
    tokens: Tokens,
    steps: LongSteps,
    first: int,
    last: int,
    best: Floats,
    path: Ints,
    score: Floats,
) -> None:
    """Write a best path for each sentence, and its score; ties go to the lowest labels.

    ``best`` (real[longest * labels + 1, columns]) is scratch space. The score does not include the shift of
    the transitions.
    """
    labels = len(steps.share)
    for sentence in range(first, last):
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        shared = token_row(groups, tokens, begin, begin, end)
        score[sentence] = largest(shared)
        path[begin] = first_place(shared, largest(shared))
        for place in range(1, length):
            node = token_row(groups, tokens, begin + place, begin, end)
            here = 1 + labels * (place - 1)
            before = here - labels
            if place > 1:
                shared = load_row(groups, best, before) + load_row(groups, steps.share_score, 0)
                for left in range(1, labels):
                    row = load_row(groups, best, before + left)
                    shared = greater(shared, row + load_row(groups, steps.share_score, left))
            store_row(best, 0, shared)
            for middle in range(labels):
                if place == 1:
                    row = load_row(groups, steps.score, len(steps.left) + middle) + best[0, middle]
                else:
                    row = _best_arrival(groups, steps, best, before, middle)
                store_row(best, here + middle, row + node)
        if length > 1:
            score[sentence] = _trace_back(groups, steps, best, begin, length, path)
