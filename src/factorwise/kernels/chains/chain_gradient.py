"""Gradient of the loss of one sentence of a chain: expected minus observed labels and transitions.

This is like `chain_rows.expectations` for a single sentence whose weights have just changed: the transitions
are read again, and weights may be stored divided by a scale.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.kernels.chains.attribute_rows import Tokens
from factorwise.kernels.chains.chain_rows import (
    FAR,
    FORBIDDEN,
    Known,
    add_transitions,
    backward,
    clear_rows,
    forward,
    keep_allowed,
    token_row,
)
from factorwise.kernels.chains.rows import (
    Groups,
    add_scaled,
    exponential,
    first_place,
    largest,
    load_row,
    store_row,
)
from factorwise.kernels.compile.compiler import hot, inner
from factorwise.types import Floats


class Room(NamedTuple):
    """Scratch space for one sentence, and its gradient.

    alpha, weight, alpha_known, masked : real[longest, columns]
    step, reverse : real[labels, columns]
    residual : real[longest, columns]
        Expected minus observed labels.
    edge : real[labels, columns]
        Expected minus observed transitions.
    """

    alpha: Floats
    weight: Floats
    alpha_known: Floats
    masked: Floats
    step: Floats
    reverse: Floats
    residual: Floats
    edge: Floats


@hot
def _read_transitions(groups: Groups, score: Floats, scale: float, room: Room) -> float:
    """Write exp(transition - largest) and its transpose; return the largest transition score."""
    labels = len(score)
    top = FORBIDDEN
    for left in range(labels):
        top = max(top, np.float64(largest(load_row(groups, score, left))))
    if top < FORBIDDEN / 2:
        top = 0.0
    for left in range(labels):
        store_row(room.step, left, exponential((load_row(groups, score, left) - top) * scale))
        for right in range(labels):
            room.reverse[right, left] = room.step[left, right]
    return top


@hot
def _read_tokens(
    groups: Groups,
    tokens: Tokens,
    known: Known,
    score: Floats,
    scale: float,
    top: float,
    begin: int,
    end: int,
    weight: Floats,
) -> tuple[bool, float]:
    """Write exp(score - largest) for the tokens.

    Returns whether a label is unknown, and the score of the known path minus the sum of the largest scores.
    """
    partial, lead = False, 0.0
    for token in range(begin, end):
        label = known.truth[token]
        row = token_row(groups, tokens, token, begin, end) * scale
        if len(known.cost) > 0 and label >= 0:
            row = add_scaled(row, -known.cost[label], tokens.unit, label)
        row = row - max(largest(row), FORBIDDEN / 2 * scale)
        store_row(weight, token - begin, row)
        if label < 0:
            partial = True
        else:
            lead += weight[token - begin, label]
            if token > begin and known.truth[token - 1] >= 0:
                lead += (np.float64(score[known.truth[token - 1], label]) - top) * scale
        store_row(weight, token - begin, exponential(row))
    return partial, lead


@hot
def _count_wrong(groups: Groups, known: Known, begin: int, end: int, marginal: Floats) -> int:
    """Count the tokens whose most probable label contradicts the known labels."""
    wrong = 0
    for token in range(begin, end):
        row = load_row(groups, marginal, token - begin)
        label = first_place(row, largest(row))
        if known.truth[token] >= 0:
            wrong += label != known.truth[token]
        else:
            wrong += known.allowed[known.allowed_row[token], label] == 0.0
    return wrong


@hot
def _multiply(groups: Groups, table: Floats, rows: int, factor: float) -> None:
    """Multiply the first rows of a table by a number."""
    for row in range(rows):
        store_row(table, row, load_row(groups, table, row) * factor)


@inner
def sentence_gradient(
    groups: Groups, tokens: Tokens, known: Known, score: Floats, scale: float, sentence: int, room: Room
) -> tuple[float, int]:
    """Write the gradient of a sentence; return its loss and the number of its wrong labels.

    The loss is NaN if the sentence underflows, or has no path that agrees with the known labels.
    """
    labels = len(score)
    begin, end = tokens.start[sentence], tokens.start[sentence + 1]
    length = end - begin
    top = _read_transitions(groups, score, scale, room)
    partial, lead = _read_tokens(groups, tokens, known, score, scale, top, begin, end, room.weight)
    if partial:
        keep_allowed(groups, tokens, known, begin, end, room.weight, room.masked)
    log_scale, total = forward(groups, length, labels, room.step, room.weight, room.alpha)
    if total == 0.0 or lead < FORBIDDEN / 2 * scale:
        return np.nan, 0
    log_total = log_scale + np.log(total)
    clear_rows(groups, room.residual, 0, length)
    clear_rows(groups, room.edge, 0, labels)
    share = 1.0 / total
    reach = backward(groups, length, labels, room.reverse, share, room.alpha, room.weight, room.residual, 0)
    if not reach <= FAR:
        return np.nan, 0
    wrong = _count_wrong(groups, known, begin, end, room.residual)
    add_transitions(groups, length, labels, room.alpha, room.weight, room.edge)
    if partial:
        log_scale, total = forward(groups, length, labels, room.step, room.masked, room.alpha_known)
        if total == 0.0:
            return np.nan, 0
        lead = log_scale + np.log(total)
        share = -1.0 / total
        reach = backward(
            groups, length, labels, room.reverse, share, room.alpha_known, room.masked, room.residual, 0
        )
        if not reach <= FAR:
            return np.nan, 0
        add_transitions(groups, length, labels, room.alpha_known, room.masked, room.edge)
    amount = 1.0 if len(known.emphasis) == 0 else np.float64(known.emphasis[sentence])
    for left in range(labels):
        store_row(room.edge, left, load_row(groups, room.edge, left) * load_row(groups, room.step, left))
    if not partial:
        for token in range(begin, end):
            label = known.truth[token]
            room.residual[token - begin, label] -= 1.0
            if token > begin:
                room.edge[known.truth[token - 1], label] -= 1.0
    if amount != 1.0:
        _multiply(groups, room.residual, length, amount)
        _multiply(groups, room.edge, labels, amount)
    return amount * (log_total - lead), wrong
