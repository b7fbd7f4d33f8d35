"""Drawing new labels: blindly, by the scores of the labels, and by exchange."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.assignments.choices import offer_labels, pick_share, take_shares
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import add_change, below, uniform


def draw_label(world: Any, random: Any, move: Any) -> float:
    """Give a random variable another label, all others alike."""
    if len(world.movable) == 0:
        return STAY
    variable = np.int64(world.movable[below(random, len(world.movable))])
    source = np.int64(world.value[variable])
    target = np.int64(below(random, world.cardinality[variable] - 1))
    move.item, move.source, move.target = variable, source, target + (target >= source)
    return 1.0


def draw_scored_label(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Give a random variable another label, with probability proportional to exp(sharpness * score).

    ``mine`` has ``templates`` int64[k, 2], the ``gains`` of the model's templates, ``sharpness`` float64[1],
    and ``share``, scratch. The gain of the move is then known.
    """
    if len(world.movable) == 0:
        return STAY
    offer_labels(world, move, choice, np.int64(world.movable[below(random, len(world.movable))]))
    chance = uniform(random)
    score_labels(mine, move, choice)
    labels, source, sharpness = move.choices, move.source, mine.sharpness[0]
    total = take_shares(mine.share, choice.out, labels, sharpness, source)
    if total == 0.0:
        return STAY
    target = pick_share(mine.share, labels, chance * total)
    forward = math.log(mine.share[target] / total)
    move.target, move.known = target, 1
    if choice.out[source] == -math.inf:  # out of a forbidden world, whatever the way back
        move.gain = math.inf
        return 1.0
    move.gain = choice.out[target] - choice.out[source]
    move.log_ratio = log_share(choice.out, labels, sharpness, target, source) - forward
    return 1.0


@shared
def score_labels(mine: Any, move: Any, choice: Any) -> None:
    """Score the labels on offer by all templates, and withdraw the offer."""
    for k in range(move.choices):
        choice.out[k] = 0.0
    for k in range(mine.templates.shape[0]):
        if mine.templates[k, 0] != 0:
            call(mine.templates[k, 0], mine.templates[k, 1])
    for k in range(move.choices):
        choice.place[choice.targets[k]] = 0


@shared
def log_share(scores: Any, count: int, scale: float, without: int, wanted: int) -> float:
    """Log-probability of ``wanted`` when drawing from exp(scale * scores), leaving out one position."""
    best = -math.inf
    for k in range(count):
        if k != without:
            best = max(best, scores[k])
    total = 0.0
    for k in range(count):
        if k != without:
            total += math.exp(scale * (scores[k] - best))
    return scale * (scores[wanted] - best) - math.log(total)


def draw_exchange(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Let two variables of one domain exchange their labels.

    ``mine`` has ``start`` int64[pools + 1] and ``member`` int32[members], the variables of each domain, and
    ``pool`` int32[variables].
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
