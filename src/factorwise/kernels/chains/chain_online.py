"""Online updates of chain weights after mistakes: perceptron, passive-aggressive, AROW.

Each sentence is decoded with the current weights. If the best path is not the right one, the weights move
along the difference of their features, right minus predicted. Only tokens and transitions where the two paths
differ contribute, and only pairs of attribute and label that have a weight.

The weight vector is the master copy. The rows of the table and the transition table, from which scores are
read, are updated with it. The average over all sentences comes from a second vector, which sums every change
times the number of the sentence at which it was made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.attribute_rows import Tokens
from factorwise.kernels.chains.chain_rows import FORBIDDEN, Known, best_arrival, token_row
from factorwise.kernels.chains.rows import (
    Groups,
    add_scaled,
    first_place,
    largest,
    load_row,
    prefetch_row,
    store_row,
)
from factorwise.kernels.compile.compiler import hot, inner, lean_kernel
from factorwise.kernels.compile.random import random_below
from factorwise.kernels.walks.rules import arow_step, passive_aggressive_step, shrunk_variance
from factorwise.types import Floats, Ints, UInt64s

LINE: Groups = (0,)  # rows of eight integers, which are one cache line or half of it
PERCEPTRON, AGGRESSIVE, AGGRESSIVE_I, AGGRESSIVE_II, ADAPTIVE = range(5)


class WeightStore(NamedTuple):
    """Where the weights are stored while they change.

    span : int64[rows, 2]
        The weights of a row of the table are ``span[row, 0]:span[row, 1]``.
    label : int32[state weights]
        The column of each state weight.
    pairs : int32[transitions, 2]
        The labels of the transition weights, which follow the state weights.
    pair : int32[labels, labels]
        The index of each transition weight; -1 if it has none, or is forbidden.
    score : real[labels, columns]
        Score of the transition from a label (row) to another (column); FORBIDDEN in the padding.
    arrival : real[labels, columns]
        Its transpose, padded likewise.
    weights : float64[weights]
    sums : float64[weights]
        Sum of the changes, each times the number of its sentence.
    variance : float64[weights] or empty
        For AROW: the variance of each weight.
    """

    span: Ints
    label: Ints
    pairs: Ints
    pair: Ints
    score: Floats
    arrival: Floats
    weights: Floats
    sums: Floats
    variance: Floats


class OnlineStep(NamedTuple):
    """Settings of the update.

    kind
        PERCEPTRON, AGGRESSIVE (with _I, _II) or ADAPTIVE.
    bound
        The aggressiveness C, or AROW's gamma.
    by_errors
        Whether the required margin is the square root of the number of wrong labels, instead of 1.
    """

    kind: int
    bound: float
    by_errors: bool


class Difference(NamedTuple):
    """A sparse vector over the weights, in which each weight is listed once.

    slot : int32[weights]
        The position of a weight in the list; -1 if it is not listed.
    weight, row : int32[room]
        The listed weights, and the table row of each; -1 for those without a row.
    amount : float64[room]
    """

    slot: Ints
    weight: Ints
    row: Ints
    amount: Floats


class Paths(NamedTuple):
    """Scratch space for one sentence.

    score, best : real[longest, columns]
    guess, target : int64[longest]
    """

    score: Floats
    best: Floats
    guess: Ints
    target: Ints


@lean_kernel
def shuffle(order: Ints, state: UInt64s) -> None:
    """Shuffle the numbers."""
    for last in range(len(order) - 1, 0, -1):
        other = random_below(state, last + 1)
        order[last], order[other] = order[other], order[last]


@hot
def _fetch(array: Ints, first: int, last: int) -> None:
    """Prefetch the cache lines of entries ``first`` to ``last``, of four bytes each."""
    for line in range(first >> 4, (last >> 4) + 1):
        prefetch_row(LINE, array, 2 * line)


@hot
def fetch_ahead(tokens: Tokens, order: Ints, position: int) -> None:
    """Prefetch the entries of the next sentence, and the starts of the entries of the one after it.

    The hardware cannot predict them, because the order is random.
    """
    entries = tokens.entries
    if position + 2 < len(order):
        after = order[position + 2]
        for token in range(tokens.start[after], tokens.start[after + 1], 8):
            prefetch_row(LINE, entries.dense_start, token >> 3)
            prefetch_row(LINE, entries.single_start, token >> 3)
    if position + 1 < len(order):
        begin, end = tokens.start[order[position + 1]], tokens.start[order[position + 1] + 1]
        _fetch(entries.dense_column, entries.dense_start[begin], entries.dense_start[end])
        _fetch(entries.single_weight, entries.single_start[begin], entries.single_start[end])


@inner
def _trace_back(groups: Groups, length: int, arrival: Floats, best: Floats, path: Ints) -> float:
    """Write the best path and return its score; ties go to the lowest labels."""
    row = load_row(groups, best, length - 1)
    label = first_place(row, largest(row))
    path[length - 1] = label
    score = best[length - 1, label]
    for place in range(length - 2, -1, -1):
        row = load_row(groups, best, place) + load_row(groups, arrival, label)
        label = first_place(row, largest(row))
        path[place] = label
    return np.float64(score)


@hot
def _guess(
    groups: Groups, tokens: Tokens, known: Known, store: WeightStore, begin: int, end: int, paths: Paths
) -> bool:
    """Write the scores, the best path, and the right path; return whether a label is unknown."""
    partial = False
    for token in range(begin, end):
        place, label = token - begin, known.truth[token]
        row = token_row(groups, tokens, token, begin, end)
        if len(known.cost) > 0 and label >= 0:
            row = add_scaled(row, -known.cost[label], tokens.unit, label)
        store_row(paths.score, place, row)
        if place > 0:
            row = row + best_arrival(groups, store.score, paths.best, place)
        store_row(paths.best, place, row)
        paths.target[place] = label
        partial = partial or label < 0
    _trace_back(groups, end - begin, store.arrival, paths.best, paths.guess)
    return partial


@inner
def _complete(
    groups: Groups, tokens: Tokens, known: Known, store: WeightStore, begin: int, end: int, paths: Paths
) -> float:
    """Write the best path that agrees with the known labels; return its score, FORBIDDEN if there is none."""
    for token in range(begin, end):
        place, right = token - begin, known.truth[token]
        row = load_row(groups, paths.score, place)
        if place > 0:
            row = row + best_arrival(groups, store.score, paths.best, place)
        store_row(paths.best, place, row)
        for label in range(len(store.score)):
            fits = label == right if right >= 0 else known.allowed[known.allowed_row[token], label] != 0.0
            if not fits:
                paths.best[place, label] = FORBIDDEN
    return _trace_back(groups, end - begin, store.arrival, paths.best, paths.target)


@hot
def _lead(store: WeightStore, length: int, paths: Paths) -> tuple[int, float]:
    """Return the number of wrong labels, and the score of the predicted path minus that of the right path."""
    wrong, lead = 0, 0.0
    guess, target, score = paths.guess, paths.target, paths.score
    for place in range(length):
        other = guess[place] != target[place]
        if other:
            wrong += 1
            lead += np.float64(score[place, guess[place]]) - np.float64(score[place, target[place]])
        if place > 0 and (other or guess[place - 1] != target[place - 1]):
            lead += np.float64(store.score[guess[place - 1], guess[place]])
            lead -= np.float64(store.score[target[place - 1], target[place]])
    return wrong, lead


@hot
def _note(difference: Difference, size: int, weight: int, row: int, amount: float) -> int:
    """Add an amount to one weight of the sparse vector; return the number of listed weights."""
    if weight < 0:
        return size
    slot = difference.slot[weight]
    if slot >= 0:
        difference.amount[slot] += amount
        return size
    difference.slot[weight] = size
    difference.weight[size] = weight
    difference.row[size] = row
    difference.amount[size] = amount
    return size + 1


@inner
def _weight_of(store: WeightStore, row: int, label: int) -> int:
    """Return the index of the weight of a row and a label; -1 if the pair has none."""
    low, end = store.span[row, 0], store.span[row, 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if store.label[middle] < label:
            low = middle + 1
        else:
            high = middle
    return low if low < end and store.label[low] == label else -1


@inner
def _features(
    tokens: Tokens, store: WeightStore, begin: int, length: int, paths: Paths, difference: Difference
) -> int:
    """Write the features of the right path minus those of the predicted path; return their number."""
    entries, size = tokens.entries, 0
    for place in range(length):
        token, right, wrong = begin + place, paths.target[place], paths.guess[place]
        if right != wrong:
            for entry in range(entries.dense_start[token], entries.dense_start[token + 1]):
                row = entries.dense_column[entry]
                value = 1.0 if len(entries.dense_value) == 0 else np.float64(entries.dense_value[entry])
                size = _note(difference, size, _weight_of(store, row, right), row, value)
                size = _note(difference, size, _weight_of(store, row, wrong), row, -value)
            for entry in range(entries.single_start[token], entries.single_start[token + 1]):
                label = entries.single_label[entry]
                value = 1.0 if len(entries.single_value) == 0 else np.float64(entries.single_value[entry])
                if label == right:
                    size = _note(difference, size, entries.single_weight[entry], -1, value)
                elif label == wrong:
                    size = _note(difference, size, entries.single_weight[entry], -1, -value)
        if place > 0:
            before, guessed = paths.target[place - 1], paths.guess[place - 1]
            if right != wrong or before != guessed:
                size = _note(difference, size, store.pair[before, right], -1, 1.0)
                size = _note(difference, size, store.pair[guessed, wrong], -1, -1.0)
    return size


@inner
def _change(
    table: Floats,
    store: WeightStore,
    difference: Difference,
    size: int,
    amount: float,
    gamma: float,
    count: float,
) -> None:
    """Add ``amount`` times the difference, scaled by the variance if there is one, and clear the list."""
    states = len(store.label)
    for place in range(size):
        weight, delta = difference.weight[place], difference.amount[place]
        difference.slot[weight] = -1
        change = amount * delta
        if len(store.variance) > 0:
            variance = store.variance[weight]
            change *= variance
            store.variance[weight] = shrunk_variance(variance, delta, 1.0 / gamma)
        store.weights[weight] += change
        store.sums[weight] += change * count
        if difference.row[place] >= 0:
            table[difference.row[place], store.label[weight]] = store.weights[weight]
        elif weight >= states:
            left, right = store.pairs[weight - states, 0], store.pairs[weight - states, 1]
            store.score[left, right] = store.weights[weight]
            store.arrival[right, left] = store.weights[weight]


@hot
def _squared_norm(store: WeightStore, difference: Difference, size: int) -> float:
    """Return the squared norm of the difference, weighted by the variance if there is one."""
    total = 0.0
    for place in range(size):
        square = difference.amount[place] ** 2
        if len(store.variance) > 0:
            square *= store.variance[difference.weight[place]]
        total += square
    return total


@hot
def _length_of(step: OnlineStep, loss: float, norm: float) -> float:
    """Return the step size, a multiple of the difference."""
    if step.kind == PERCEPTRON:
        return 1.0
    if step.kind == ADAPTIVE:
        return arow_step(loss, norm, step.bound)
    cap = step.bound if step.kind == AGGRESSIVE_I else np.inf
    pad = 0.5 / step.bound if step.kind == AGGRESSIVE_II else 0.0
    return passive_aggressive_step(loss, norm, cap, pad) if norm + pad > 0.0 else 0.0


@lean_kernel
def correct_mistakes(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    store: WeightStore,
    step: OnlineStep,
    order: Ints,
    count: int,
    paths: Paths,
    difference: Difference,
) -> tuple[int, float, int]:
    """Process the sentences in the given order, updating the weights after each mistake.

    ``count`` is the number of the first sentence, which the average needs. Returns the number of processed
    sentences, the sum of losses and the number of wrong labels. It stops early at a sentence in which no path
    agrees with both its known labels and the constraints.

    The loss of a sentence is the share of wrong labels (perceptron), or the amount by which its right path
    misses the required margin.
    """
    total, mistakes = 0.0, 0
    for position in range(len(order)):
        sentence = order[position]
        fetch_ahead(tokens, order, position)
        begin, end = tokens.start[sentence], tokens.start[sentence + 1]
        length = end - begin
        if _guess(groups, tokens, known, store, begin, end, paths):
            score = _complete(groups, tokens, known, store, begin, end, paths)
            if score < FORBIDDEN / 2:
                return position, total, mistakes
        wrong, loss = _lead(store, length, paths)
        if wrong == 0:
            continue
        if loss > -FORBIDDEN / 2:
            return position, total, mistakes
        if step.kind == PERCEPTRON:
            loss = wrong / length
        elif step.kind == ADAPTIVE:
            loss += wrong
        else:
            loss += np.sqrt(wrong) if step.by_errors else 1.0
        size = _features(tokens, store, begin, length, paths, difference)
        emphasis = 1.0 if len(known.emphasis) == 0 else np.float64(known.emphasis[sentence])
        amount = emphasis * _length_of(step, loss, _squared_norm(store, difference, size))
        _change(tokens.table, store, difference, size, amount, step.bound, np.float64(count + position))
        total += emphasis * loss
        mistakes += wrong
    return len(order), total, mistakes
