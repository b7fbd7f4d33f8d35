"""Proposers made of other proposers, whatever their worlds."""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import copy_change, uniform
from factorwise.kernels.walks.loops import Weighing, begin_move, take_back, weigh_move


def draw_mixture(mine: Any, random: Any) -> float:
    """Draw from one of several proposers, each of which brings its own ratio.

    ``mine`` has ``shares`` float64[k], the running sums of their probabilities, and ``parts`` int64[k, 2],
    their draws. The probabilities do not depend on the world, so that each proposer balances by itself.
    """
    threshold = uniform(random)
    chosen = 0
    while chosen < len(mine.shares) - 1 and threshold >= mine.shares[chosen]:
        chosen += 1
    return call(mine.parts[chosen, 0], mine.parts[chosen, 1])


def draw_best(mine: Any, move: Any, changes: Any, gradient: Any) -> float:
    """Draw several times from one proposer, weigh each move, and propose the one of highest gain.

    The probability of proposing it, and so the ratio, is not known.

    ``mine`` has ``inner`` int64[1, 2], the proposer's draw; ``tries`` int64[1]; ``learning`` int64[1], 1
    where gains are taken from gradients; ``apply``, ``templates``, ``weights`` and an empty ``plan`` as a
    `Walk` has them; ``best`` STEP[1] and ``best_changes`` CHANGE[.] for the best move so far; and ``kinds``
    int32[targets], where a proposer enters what a target that is not in use would be, empty where targets
    have no kinds.
    """
    found, kind, learning = False, 0, mine.learning[0] != 0
    best = mine.best[0]
    weighing = Weighing(mine.plan, mine.apply, mine.templates, changes, gradient, mine.weights)
    for _ in range(mine.tries[0]):
        begin_move(move)
        if math.isnan(call(mine.inner[0, 0], mine.inner[0, 1])):
            continue
        several = move.changes > 1
        target = changes[0].target if several else move.target
        if learning or move.known == 0:
            take_back(weighing, move, changes, weigh_move(weighing, move, learning))
        if found and not move.gain > best.gain:
            continue
        found = True
        best.gain, best.target = move.gain, target
        best.changes, best.world, best.item, best.source = move.changes, move.world, move.item, move.source
        if len(mine.kinds) > 0 and move.world == 0:
            kind = mine.kinds[target]
        if several:
            copy_changes(changes, mine.best_changes, move.changes)
    begin_move(move)
    if not found:
        return STAY
    move.changes, move.world, move.item, move.source = best.changes, best.world, best.item, best.source
    move.target = best.target
    if len(mine.kinds) > 0 and move.world == 0:
        mine.kinds[best.target] = kind
    if move.changes > 1:  # gains of several changes are never estimates: the loop need not weigh them again
        copy_changes(mine.best_changes, changes, move.changes)
        move.gain, move.known = best.gain, 1
    return 1.0


@shared
def copy_changes(changes: Any, to: Any, count: int) -> None:
    """Copy the first changes of a list."""
    for at in range(count):
        copy_change(changes[at], to[at])
