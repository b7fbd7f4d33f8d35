"""Scores of whole clusters, and their changes by a move, from a model's functions of the members.

The functions of a model are compiled once, as a pointer that scores the members at some slots (and one that
adds up their statistics); everything here calls it, and is compiled once for all models. A cluster after a
move is laid out in spare slots, or in place if one more item fits.

``mine`` of this program:

scorer, adder : int64[1, 2]
    The pointer that returns the score of the slots in ``span``, and the one that adds their statistics times
    ``sign``.
span, sign : int64[3], float64[1]
    First slot, the one behind the last, and the type.
value : float64[ids]
    Score of each cluster; 0 for ids that are not in use.
after, change : float64[2], int64[3]
    Scores of source and target after the change that was weighed last, and that change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE, place
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call


@shared
def score_slots(mine: Any, lo: int, hi: int, kind: int) -> float:
    """Return the score of the members at slots lo to hi as a cluster of this type; zero if there are none."""
    if hi == lo:
        return 0.0
    mine.span[0], mine.span[1], mine.span[2] = lo, hi, kind
    return call(mine.scorer[0, 0], mine.scorer[0, 1])


@shared
def add_slots(mine: Any, lo: int, hi: int, kind: int, sign: float) -> None:
    """Add the statistics of the members at slots lo to hi, times ``sign``, to the gradient."""
    if hi > lo:
        mine.span[0], mine.span[1], mine.span[2] = lo, hi, kind
        mine.sign[0] = sign
        call(mine.adder[0, 0], mine.adder[0, 1])


@shared
def lay_out_rest(world: Any, move: Any) -> int:
    """Lay out the source without the item, in place; return the slot after the last."""
    last = world.start[move.source] + world.size[move.source] - 1
    place(world, world.slot[move.item], world.members[last])
    return last


@shared
def lay_out_joined(world: Any, item: int, target: int) -> int:
    """Lay out a cluster with an additional item, in place if it fits; return the first slot."""
    lo, size = world.start[target], world.size[target]
    if size > 0 and size < 1 << world.order[target]:
        place(world, lo + size, item)
        return np.int64(lo)
    spare = np.int64(len(world.members))
    for index in range(size):
        place(world, spare + index, world.members[lo + index])
    place(world, spare + size, item)
    return spare


@shared
def score_cluster(world: Any, mine: Any, cluster: int) -> float:
    """Return the score of a cluster."""
    lo = world.start[cluster]
    return score_slots(mine, lo, lo + world.size[cluster], world.type[cluster])


@shared
def score_joined(world: Any, mine: Any, item: int, target: int) -> float:
    """Return the score of a cluster with an additional item."""
    lo = lay_out_joined(world, item, target)
    return score_slots(mine, lo, lo + world.size[target] + 1, world.type[target])


@shared
def score_rest(world: Any, mine: Any, move: Any) -> float:
    """Return the score of the source without the item."""
    last = lay_out_rest(world, move)
    value = score_slots(mine, world.start[move.source], last, world.type[move.source])
    place(world, world.slot[move.item], move.item)
    return value


def begin_clusters(world: Any, mine: Any) -> None:
    """Score every cluster."""
    mine.change[0] = -1
    for cluster in range(len(mine.value)):
        mine.value[cluster] = 0.0
    for position in range(world.counters[LIVE]):
        mine.value[world.live[position]] = score_cluster(world, mine, world.live[position])


def clusters_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the scores of the two clusters after the change minus those before it."""
    mine.after[0] = score_rest(world, mine, move)
    mine.after[1] = score_joined(world, mine, move.item, move.target)
    mine.change[0], mine.change[1], mine.change[2] = move.item, move.source, move.target
    return mine.after[0] + mine.after[1] - mine.value[move.source] - mine.value[move.target]


def clusters_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Compute what the item adds to the score of each target."""
    for k in range(move.choices):
        target = choice.targets[k]
        if target == move.source:
            choice.out[k] += mine.value[target] - score_rest(world, mine, move)
        else:
            choice.out[k] += score_joined(world, mine, move.item, target) - mine.value[target]


def clusters_gradient(world: Any, mine: Any, move: Any) -> None:
    """Add the statistics of the two clusters after the change minus those before it."""
    item, source, target = move.item, move.source, move.target
    lo, kind = world.start[source], world.type[source]
    add_slots(mine, lo, lo + world.size[source], kind, -1.0)
    last = lay_out_rest(world, move)
    add_slots(mine, lo, last, kind, 1.0)
    place(world, world.slot[item], item)
    lo, kind = world.start[target], world.type[target]
    add_slots(mine, lo, lo + world.size[target], kind, -1.0)
    lo = lay_out_joined(world, item, target)
    add_slots(mine, lo, lo + world.size[target] + 1, kind, 1.0)


def clusters_applied(world: Any, mine: Any, move: Any) -> None:
    """Update the scores of the two clusters after a change."""
    if mine.change[0] == move.item and mine.change[1] == move.source and mine.change[2] == move.target:
        mine.value[move.source], mine.value[move.target] = mine.after[0], mine.after[1]
    else:
        mine.value[move.source] = score_cluster(world, mine, move.source)
        mine.value[move.target] = score_cluster(world, mine, move.target)
    mine.change[0] = -1


def clusters_totals(world: Any, mine: Any) -> None:
    """Add up the statistics of all clusters."""
    for position in range(world.counters[LIVE]):
        cluster = world.live[position]
        lo = world.start[cluster]
        add_slots(mine, lo, lo + world.size[cluster], world.type[cluster], 1.0)


def type_gain(world: Any, mine: Any, move: Any) -> float:
    """Return the score of a cluster with another type minus that with its own."""
    lo = world.start[move.item]
    return score_slots(mine, lo, lo + world.size[move.item], move.target) - mine.value[move.item]


def type_gradient(world: Any, mine: Any, move: Any) -> None:
    """Add the statistics of a cluster with another type minus those with its own."""
    lo = world.start[move.item]
    hi = lo + world.size[move.item]
    add_slots(mine, lo, hi, move.source, -1.0)
    add_slots(mine, lo, hi, move.target, 1.0)


def type_applied(world: Any, mine: Any, move: Any) -> None:
    """Update the score of a cluster after a change of its type."""
    mine.value[move.item] = score_cluster(world, mine, move.item)
    mine.change[0] = -1
