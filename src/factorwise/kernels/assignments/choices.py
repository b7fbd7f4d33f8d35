"""Among which labels a variable chooses in a Gibbs step, and how it chooses.

Where as many labels are offered as the variable has, they are offered in order: templates rely on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import overload

from factorwise.kernels.assignments.lookahead import look_ahead
from factorwise.kernels.chains.rows import GROUP, exponential, largest, load_row, store_row, sum_of
from factorwise.kernels.compile.compiler import shared, two_forms
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below, tempered, uniform

_FLAT: Any = {"forceinline": True, "_nrt": False}
FEW = 3  # numbers that are exponentiated one by one: eight at a time would take longer


@shared
def offer_random(world: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer a random variable all its labels."""
    if len(world.movable) == 0:
        return STAY
    offer_labels(world, move, choice, np.int64(world.movable[below(random, len(world.movable))]))
    return 1.0


def offer_fetched(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer a random variable all its labels, as `offer_random` does; ``mine`` is that of `look_ahead`."""
    look_ahead(world, mine, random, move)
    return offer_random(world, random, move, choice)


def offer_next(world: Any, mine: Any, move: Any, choice: Any) -> float:
    """Offer the next variable all its labels, the first one after the last; ``mine`` has ``at`` int64[1]."""
    if len(world.movable) == 0:
        return STAY
    at = mine.at[0]
    mine.at[0] = at + 1 if at + 1 < len(world.movable) else 0
    offer_labels(world, move, choice, np.int64(world.movable[at]))
    return 1.0


@shared
def offer_labels(world: Any, move: Any, choice: Any, variable: Any) -> None:
    """Let ``variable`` choose among all its labels."""
    labels = np.int64(world.cardinality[variable])
    move.item, move.source, move.choices = variable, np.int64(world.value[variable]), labels
    for label in range(labels):
        choice.targets[label] = label
        choice.place[label] = label + 1


def choose_label(mine: Any, random: Any, move: Any, choice: Any) -> Any:
    """Choose with probability proportional to exp(score / temperature); stay where everything is forbidden.

    ``mine`` has ``share`` float64[`room_for` labels], scratch.
    """
    chance = uniform(random)
    total = take_shares(mine.share, choice.out, move.choices, tempered(1.0, move.temperature), -1)
    if total == 0.0:
        return np.int64(choice.place[move.source] - 1)
    return pick_share(mine.share, move.choices, chance * total)


def room_for(count: int) -> int:
    """Return how long an array of shares or scores of ``count`` choices is: eight are taken at a time."""
    return -(-count // GROUP) * GROUP


@two_forms
def take_shares(share: Any, scores: Any, count: int, scale: float, without: int) -> float:
    """Set shares to exp(scale * scores), relative to the largest, and to 0 at ``without``; return their sum.

    Where all others are forbidden, the sum is 0 and the shares are left as they are. Both arrays have
    `room_for` their choices.
    """
    kept = [k for k in range(count) if k != without]
    best = max((float(scores[k]) for k in kept), default=-math.inf)
    if best == -math.inf:
        return 0.0
    share[:count] = 0.0
    for k in kept:
        share[k] = math.exp(scale * (scores[k] - best))
    return float(sum(share[k] for k in kept))


@overload(take_shares, jit_options=_FLAT)
def _take_shares_compiled(
    share: Any, scores: Any, count: Any, scale: Any, without: Any
) -> Callable[..., float]:
    def compiled(share: Any, scores: Any, count: Any, scale: Any, without: Any) -> float:
        left_out = 0.0
        if without >= 0:
            left_out = scores[without]
            scores[without] = -math.inf
        whole = count // GROUP
        best = -math.inf
        for group in range(whole):
            best = max(best, largest(load_row((0,), scores, group)))
        for k in range(whole * GROUP, count):
            best = max(best, scores[k])
        total = 0.0
        if best > -math.inf:
            for group in range(whole):
                row = exponential((load_row((0,), scores, group) - best) * scale)
                store_row(share, group, row)
                total += sum_of(row)
            if count - whole * GROUP > FEW:
                store_row(share, whole, exponential((load_row((0,), scores, whole) - best) * scale))
                for k in range(whole * GROUP, count):
                    total += share[k]
            else:
                for k in range(whole * GROUP, count):
                    share[k] = 1.0 if scores[k] == best else math.exp(scale * (scores[k] - best))
                    total += share[k]
        if without >= 0:
            scores[without] = left_out
        return total

    return compiled


@shared
def pick_share(share: Any, count: int, threshold: Any) -> Any:
    """Return the position at which the running sum of the shares passes ``threshold``."""
    chosen = np.int64(0)
    for k in range(count):
        if share[k] > 0.0:  # rounding may leave a rest for the last, which must be possible
            chosen = np.int64(k)
            threshold -= share[k]
            if threshold < 0.0:
                break
    return chosen
