"""Proposals of new labels: uniform, by the scores of the labels, for spans of chains, and by exchange."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.assignments.blocks import set_label
from factorwise.kernels.assignments.choices import offer_labels
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import (
    add_change,
    below,
    end_changes,
    pick_share,
    take_shares,
    uniform,
)

FORBIDDEN = -1024.0  # replaces minus infinity in a proposal, so that differences stay finite


def draw_label(world: Any, random: Any, move: Any) -> float:
    """Give a random variable another label, chosen uniformly."""
    if len(world.movable) == 0:
        return STAY
    variable = np.int64(world.movable[below(random, len(world.movable))])
    source = np.int64(world.value[variable])
    target = np.int64(below(random, world.cardinality[variable] - 1))
    move.item, move.source, move.target = variable, source, target + (target >= source)
    return 1.0


def draw_scored_label(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Give a random variable another label, with probability proportional to exp(sharpness * score).

    ``mine`` has ``templates`` int64[k, 2], the ``gains`` functions of the model's templates, and
    ``sharpness`` float64[1]. The gain of the move is known afterwards.
    """
    if len(world.movable) == 0:
        return STAY
    offer_labels(world, move, choice, np.int64(world.movable[below(random, len(world.movable))]))
    chance = uniform(random)
    score_labels(mine, move, choice)
    labels, source, sharpness = move.choices, move.source, mine.sharpness[0]
    total = take_shares(choice.share, choice.out, labels, sharpness, source)
    if total == 0.0:
        return STAY
    target = pick_share(choice.share, labels, chance * total)
    forward = math.log(choice.share[target] / total)
    move.target, move.known = target, 1
    if choice.out[source] == -math.inf:  # any move out of a forbidden state is accepted
        move.gain = math.inf
        return 1.0
    move.gain = choice.out[target] - choice.out[source]
    move.log_ratio = log_share(choice.out, labels, sharpness, target, source) - forward
    return 1.0


@shared
def score_labels(mine: Any, move: Any, choice: Any) -> None:
    """Score the offered labels with all templates, and clear the offer.

    ``mine.templates`` has ``gains`` functions in its first column and contexts in its last.
    """
    context = mine.templates.shape[1] - 1
    for k in range(move.choices):
        choice.out[k] = 0.0
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, 0] != 0:
            call(mine.templates[k, 0], mine.templates[k, context])
    for k in range(move.choices):
        choice.place[choice.targets[k]] = 0


@shared
def log_share(scores: Any, count: int, scale: float, without: int, wanted: int) -> float:
    """Return the log-probability of drawing ``wanted`` from exp(scale * scores), excluding one position."""
    best = -math.inf
    for k in range(count):
        if k != without:
            best = max(best, scores[k])
    total = 0.0
    for k in range(count):
        if k != without:
            total += math.exp(scale * (scores[k] - best))
    return scale * (scores[wanted] - best) - math.log(total)


def draw_span(world: Any, mine: Any, random: Any, move: Any, choice: Any, changes: Any) -> float:
    """Draw new labels for a span of a chain, all at once.

    They are drawn as if the labels of the span depended on each other as in a chain; if they do, the draw is
    exactly in proportion to exp(sharpness * score). ``mine`` has

    start, variable, chain : int64[chains + 1], int32[.], int32[.]
        The movable variables of each chain, and the chain of each position.
    length : int64[2]
        Minimum and maximum length of a span.
    templates : int64[k, 3]
        ``gains`` and ``applied`` functions of the model's templates, and their contexts.
    lead : float64[longest * labels, labels]
        Score of a label minus that of the first label, by position and previous label.
    tail : float64[longest, labels]
        Log of the sum over the labels after a position.
    sharpness, score, old : float64[1], float64[labels], int64[longest]
        Scratch space, except for the first.
    """
    if len(mine.variable) == 0:
        return STAY
    place = np.int64(below(random, len(mine.variable)))
    length = mine.length[0] + np.int64(below(random, mine.length[1] - mine.length[0] + 1))
    begin, end = mine.start[mine.chain[place]], mine.start[mine.chain[place] + 1]
    first = max(begin, min(place, end - length))
    length = min(length, end - first)
    for at in range(length):
        mine.old[at] = world.value[mine.variable[first + at]]
        set_label(world, mine, move, mine.variable[first + at], 0)
    for at in range(length):
        lead_at(world, mine, move, choice, first, at)
    for at in range(length):
        set_label(world, mine, move, mine.variable[first + at], mine.old[at])
    add_tails(world, mine, first, length)
    sharpness, many, was, now = mine.sharpness[0], mine.lead.shape[1], np.int64(0), np.int64(0)
    move.changes, move.log_ratio = 0, 0.0
    for at in range(length):
        variable = np.int64(mine.variable[first + at])
        labels = np.int64(world.cardinality[variable])
        for k in range(labels):
            mine.score[k] = sharpness * mine.lead[at * many + now, k] + mine.tail[at, k]
        chance = uniform(random)
        drawn = pick_share(
            choice.share, labels, chance * take_shares(choice.share, mine.score, labels, 1.0, -1)
        )
        move.log_ratio += sharpness * (
            mine.lead[at * many + was, mine.old[at]] - mine.lead[at * many + now, drawn]
        )
        was, now = mine.old[at], drawn
        if was != now:
            add_change(move, changes, variable, was, now)
    if move.changes == 0:
        return STAY
    end_changes(move, changes)
    return 1.0


@shared
def lead_at(world: Any, mine: Any, move: Any, choice: Any, first: int, at: int) -> None:
    """Fill ``lead`` for one position of a span whose labels are 0, and leave them at 0."""
    variable = np.int64(mine.variable[first + at])
    before = np.int64(mine.variable[first + at - 1]) if at > 0 else np.int64(-1)
    for label in range(world.cardinality[before] if at > 0 else 1):
        if at > 0:
            set_label(world, mine, move, before, label)
        offer_labels(world, move, choice, variable)
        labels, row = move.choices, at * mine.lead.shape[1] + label
        score_labels(mine, move, choice)
        best = -math.inf
        for k in range(labels):
            best = max(best, choice.out[k])
        for k in range(labels):
            behind = choice.out[k] - best if best > -math.inf else 0.0
            mine.lead[row, k] = max(behind, FORBIDDEN)
        base = mine.lead[row, 0]
        for k in range(labels):
            mine.lead[row, k] -= base
    if at > 0:
        set_label(world, mine, move, before, 0)


@shared
def add_tails(world: Any, mine: Any, first: int, length: int) -> None:
    """Fill ``tail`` from the last position of a span to its first."""
    for back in range(length):
        at = length - 1 - back
        labels = world.cardinality[mine.variable[first + at]]
        after = np.int64(world.cardinality[mine.variable[first + at + 1]]) if back > 0 else np.int64(0)
        for label in range(labels):
            if back == 0:
                mine.tail[at, label] = 0.0
                continue
            for k in range(after):
                mine.score[k] = (
                    mine.sharpness[0] * mine.lead[(at + 1) * mine.lead.shape[1] + label, k]
                    + mine.tail[at + 1, k]
                )
            mine.tail[at, label] = mine.score[0] - log_share(mine.score, after, 1.0, -1, 0)


def draw_exchange(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Exchange the labels of two variables of one domain.

    ``mine`` has ``start`` int64[pools + 1] and ``member`` int32[members], the variables of each domain, and
    ``pool`` int32[variables], the domain of each variable.
    """
    if len(mine.member) == 0:
        return STAY
    place = below(random, len(mine.member))
    pool = mine.pool[mine.member[place]]
    first = mine.start[pool]
    partner = first + below(random, mine.start[pool + 1] - first - 1)
    partner += partner >= place
    lower, higher = mine.member[min(place, partner)], mine.member[max(place, partner)]
    if world.value[lower] == world.value[higher]:
        return STAY
    move.changes = 0
    add_change(move, changes, lower, world.value[lower], world.value[higher])
    add_change(move, changes, higher, world.value[higher], world.value[lower])
    return 1.0
