"""The clusters among which an item chooses in a Gibbs step.

The same set must be offered from every cluster to which it may lead, so that the step leaves the distribution
invariant. A cluster that the item leaves empty is the empty one of its type, and is offered once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.clusterings.arrays import LIVE
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.library import below


def offer_all(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer a random item every cluster, and an empty one of each type; ``mine`` has ``types`` int64[1]."""
    item = below(random, len(world.label))
    begin_choice(world, move, item)
    clusters = world.counters[LIVE]
    for position in range(clusters):
        offer(move, choice, world.live[position])
    alone = world.size[move.source] == 1
    for kind in range(mine.types[0]):
        if not (alone and world.type[move.source] == kind):
            empty = world.live[clusters + kind]
            world.type[empty] = kind
            offer(move, choice, empty)
    return 1.0


@shared
def begin_choice(world: Any, move: Any, item: int) -> None:
    """Let ``item`` choose; nothing is offered yet."""
    move.item, move.source, move.choices = item, np.int64(world.label[item]), 0


@shared
def offer(move: Any, choice: Any, cluster: int) -> None:
    """Add a cluster to the targets."""
    choice.targets[move.choices] = cluster
    move.choices += 1
    choice.place[cluster] = move.choices
