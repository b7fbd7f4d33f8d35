"""Update rules: how a better world that leads by too little corrects the weights.

A rule is a plain function ``update(mine, move, gradient)`` that returns 1.0 if it changed the weights and 0.0
if not. The loop calls it for moves that make the world better or worse. It finds ``move.gain`` and
``move.better``, the list of statistics that change in ``gradient``, and in ``mine``:

weights : float64[weights]
    Changed in place.
second : float64[weights]
    What a rule keeps of each weight beside it: a variance, or the sum of squared gradients.
drift : float64[weights]
    Sum over updates of the steps before it times its change. With T steps made, the mean of the weights at
    the ends of all steps is ``weights - drift / T``: averaging costs nothing at weights that do not change.
free : float64[weights]
    1 for weights that may be learned, 0 for those that are held fixed.
clock : int64[3]
    Steps so far, updates so far (the loop counts both), and how often the better world did not score higher.
largest : float64[1]
    Largest sum of squares of a gradient that led to an update.
settings
    The settings of the rule, one record: ``mine.settings[0].cap``.

The same text serves twenty weights that are all in the gradient's head and hundreds of thousands of which a
move names a few. Formulas are written so that no two nearly equal numbers are subtracted.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.compile.compiler import shared, strict
from factorwise.kernels.walks.library import merge
from factorwise.kernels.walks.loops import STEPS, UPDATES

TINY = 1e-200  # squares that sum to less are taken for zero: their products would be


@shared
def lead_of(move: Any) -> float:
    """Score of the better world minus that of the worse one."""
    return move.gain if move.better > 0.0 else -move.gain


@shared
def free_squares(mine: Any, move: Any, gradient: Any) -> float:
    """Sum of the squares of the gradient, of weights that may be learned; merges the list."""
    merge(gradient, move)
    total = 0.0
    for k in range(move.entries):
        value = mine.free[gradient.index[k]] * gradient.value[k]
        total += value * value
    return total


@shared
def free_spread(mine: Any, move: Any, gradient: Any) -> float:
    """Variance of the lead: the squares of a merged gradient, each times the variance of its weight."""
    total = 0.0
    for k in range(move.entries):
        value = mine.free[gradient.index[k]] * gradient.value[k]
        total += mine.second[gradient.index[k]] * (value * value)
    return total


@shared
def is_usable(total: float) -> bool:
    """Whether a sum of squares is a finite number that can be divided by."""
    return TINY < total < math.inf


@shared
def change_weight(mine: Any, weight: int, change: float) -> None:
    """Add to one weight, and keep its mean in step."""
    mine.weights[weight] += change
    mine.drift[weight] += mine.clock[STEPS] * change


@shared
def add_gradient(mine: Any, move: Any, gradient: Any, step: float, squares: float) -> float:
    """Add ``step`` times the gradient toward the better world.

    Nothing where that is no positive finite number.

    squares
        Of the gradient, as `free_squares` found them.
    """
    if not (is_usable(squares) and 0.0 < step < math.inf):
        return 0.0
    signed = step if move.better > 0.0 else -step
    for k in range(move.entries):
        weight = gradient.index[k]
        change_weight(mine, weight, signed * (mine.free[weight] * gradient.value[k]))
    mine.largest[0] = max(mine.largest[0], squares)
    return 1.0


@shared
def add_by_variance(
    mine: Any, move: Any, gradient: Any, step: float, shrink: float, floor: float, squares: float
) -> float:
    """Add ``step`` times the gradient scaled by the variances, which shrink.

    Their inverses grow by its squares.

    shrink
        Multiple of the squares that is added to the inverse variances.
    floor
        Smallest variance.
    """
    if not (0.0 < step < math.inf and shrink < math.inf):
        return 0.0
    signed = step if move.better > 0.0 else -step
    for k in range(move.entries):
        weight = gradient.index[k]
        value, variance = mine.free[weight] * gradient.value[k], mine.second[weight]
        change_weight(mine, weight, signed * (variance * value))
        mine.second[weight] = max(floor, shrunk_variance(variance, value, shrink))
    mine.largest[0] = max(mine.largest[0], squares)
    return 1.0


@strict
def passive_aggressive_step(loss: float, squares: float, cap: float, pad: float) -> float:
    """Multiple of the gradient that makes up for a loss: at most ``cap``, damped by ``pad``.

    Implements: crammer2006online (PA, PA-I by ``cap``, PA-II by ``pad``).
    """
    return min(cap, loss / (squares + pad))


@strict
def arow_step(loss: float, spread: float, regularization: float) -> float:
    """Multiple of the scaled gradient that AROW adds to make up for a loss.

    Implements: crammer2009adaptive.
    """
    return loss / (spread + regularization)


@strict
def shrunk_variance(variance: float, value: float, shrink: float) -> float:
    """Variance of a weight whose inverse grows by ``shrink`` times the square of ``value``."""
    return variance / (1.0 + shrink * (variance * value * value))


@strict
def variance_form_step(lead: float, spread: float, phi: float) -> float:
    """The root a of lead + a v = phi v / (1 + 2 a phi v), where v is the spread.

    Zero where the lead is enough.
    """
    missing, slope = max(0.0, phi * spread - lead), 1.0 + 2.0 * phi * lead
    root = math.sqrt(slope * slope + 8.0 * phi * missing)
    if slope > 0.0:
        return 2.0 * missing / (spread * (slope + root))
    return (root - slope) / (4.0 * phi * spread)


@strict
def deviation_form_step(lead: float, spread: float, phi: float) -> float:
    """The root a of lead + a v = phi sqrt(u), where u = v / (1 + a phi v / sqrt(u)).

    Zero where the lead is enough.
    """
    square = phi * phi
    needed, half = phi * math.sqrt(spread), (1.0 + 0.5 * square) * lead
    root = math.sqrt(0.25 * square * square * lead * lead + square * (1.0 + square) * spread)
    if lead > 0.0:
        return max(0.0, needed - lead) * (needed + lead) / (spread * (half + root))
    return (root - half) / (spread * (1.0 + square))


@strict
def deviation_form_shrink(step: float, spread: float, phi: float) -> float:
    """What the squares are multiplied by that the inverse variances grow by, in the deviation form."""
    return 0.5 * phi * step * (phi * step + math.sqrt(phi * phi * step * step + 4.0 / spread))


@strict
def adagrad_pace(rate: float, squares: float, pad: float) -> float:
    """Multiple of the gradient of one weight, whose gradients so far have squares that sum to ``squares``.

    Implements: duchi2011adaptive, the diagonal form.
    """
    return rate / (math.sqrt(squares) + pad)


def update_unit(mine: Any, move: Any, gradient: Any) -> float:
    """Add the gradient itself, times a rate that may fall with the number of updates."""
    settings = mine.settings[0]
    if not lead_of(move) <= settings.limit:
        return 0.0
    step = settings.rate / (1.0 + settings.decay * mine.clock[UPDATES])
    return add_gradient(mine, move, gradient, step, free_squares(mine, move, gradient))


def update_passive_aggressive(mine: Any, move: Any, gradient: Any) -> float:
    """Add as small a multiple of the gradient as gives the better world its margin."""
    settings, lead = mine.settings[0], lead_of(move)
    margin = settings.margin * abs(move.better) if settings.scaled != 0.0 else settings.margin
    if not lead <= min(margin, settings.limit):
        return 0.0
    squares = free_squares(mine, move, gradient)
    if not is_usable(squares):
        return 0.0
    step = passive_aggressive_step(max(0.0, margin - lead), squares, settings.cap, settings.pad)
    return add_gradient(mine, move, gradient, step, squares)


def update_confidence_weighted(mine: Any, move: Any, gradient: Any) -> float:
    """Lead as many variances as the confidence asks for or, in the other form, standard deviations."""
    settings, lead = mine.settings[0], lead_of(move)
    if not lead <= settings.limit:
        return 0.0
    squares = free_squares(mine, move, gradient)
    spread = free_spread(mine, move, gradient)
    if not (is_usable(squares) and is_usable(spread)):
        return 0.0
    if settings.deviation != 0.0:
        step = deviation_form_step(lead, spread, settings.phi)
        shrink = deviation_form_shrink(step, spread, settings.phi)
    else:
        step = variance_form_step(lead, spread, settings.phi)
        shrink = 2.0 * settings.phi * step
    return add_by_variance(mine, move, gradient, step, shrink, settings.floor, squares)


def update_arow(mine: Any, move: Any, gradient: Any) -> float:
    """Confidence weighting that does not insist: adaptive regularization of weights."""
    settings, lead = mine.settings[0], lead_of(move)
    if not lead <= 1.0:
        return 0.0
    squares = free_squares(mine, move, gradient)
    spread = free_spread(mine, move, gradient)
    if not (is_usable(squares) and is_usable(spread)):
        return 0.0
    step = arow_step(max(0.0, 1.0 - lead), spread, settings.regularization)
    return add_by_variance(mine, move, gradient, step, 1.0 / settings.regularization, 0.0, squares)


def update_adagrad(mine: Any, move: Any, gradient: Any) -> float:
    """Add the gradient, each entry divided by the root of the sum of its squares so far."""
    settings = mine.settings[0]
    if not lead_of(move) <= settings.margin:
        return 0.0
    squares = free_squares(mine, move, gradient)
    if not is_usable(squares):
        return 0.0
    signed = settings.rate if move.better > 0.0 else -settings.rate
    for k in range(move.entries):
        weight = gradient.index[k]
        value = mine.free[weight] * gradient.value[k]
        mine.second[weight] += value * value
        change_weight(mine, weight, value * adagrad_pace(signed, mine.second[weight], settings.epsilon))
    mine.largest[0] = max(mine.largest[0], squares)
    return 1.0


# Contrastive divergence: its rule learns from whole episodes ------------------------------------------------


def add_to_path(mine: Any, move: Any, gradient: Any) -> None:
    """Add the gradient of an accepted move to the path: statistics of the world minus those of the truth.

    ``mine`` has the arrays of a rule, ``path`` float64[weights], ``rate`` float64[1], ``stays`` int64[1], 1
    for a chain that goes on from where it is, and the weights that the path has ever named: ``named``
    int32[weights], ``many`` int64[1] of them, and ``known`` uint8[weights].
    """
    for k in range(move.entries):
        weight = gradient.index[k]
        mine.path[weight] += gradient.value[k]
        if mine.known[weight] == 0:
            mine.known[weight] = 1
            mine.named[mine.many[0]] = weight
            mine.many[0] += 1


def learn_from_path(mine: Any) -> None:
    """Move the weights against the path; a chain that starts anew from the truth forgets it.

    Implements: wick2009samplerank, Sec. 4 (contrastive divergence and its persistent form, compared there).
    """
    squares = 0.0
    for k in range(mine.many[0]):
        weight = mine.named[k]
        value = mine.free[weight] * mine.path[weight]
        squares += value * value
        change_weight(mine, weight, -mine.rate[0] * value)
        if mine.stays[0] == 0:
            mine.path[weight] = 0.0
            mine.known[weight] = 0
    if mine.stays[0] == 0:
        mine.many[0] = 0
    if squares > 0.0:
        mine.clock[UPDATES] += 1
        mine.largest[0] = max(mine.largest[0], squares)
