"""The labels among which a variable chooses in a Gibbs step.

If all labels of the variable are offered, they are offered in order; templates rely on this.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.assignments.lookahead import look_ahead
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below


@shared
def offer_random(world: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer all labels of a random variable."""
    if len(world.movable) == 0:
        return STAY
    offer_labels(world, move, choice, np.int64(world.movable[below(random, len(world.movable))]))
    return 1.0


def offer_fetched(world: Any, mine: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer all labels of a random variable, like `offer_random`; ``mine`` is that of `look_ahead`."""
    look_ahead(world, mine, random, move)
    return offer_random(world, random, move, choice)


def offer_next(world: Any, mine: Any, move: Any, choice: Any) -> float:
    """Offer all labels of the next variable, cyclically; ``mine`` has ``at`` int64[1]."""
    if len(world.movable) == 0:
        return STAY
    at = mine.at[0]
    mine.at[0] = at + 1 if at + 1 < len(world.movable) else 0
    offer_labels(world, move, choice, np.int64(world.movable[at]))
    return 1.0


@shared
def offer_labels(world: Any, move: Any, choice: Any, variable: Any) -> None:
    """Offer all labels of ``variable``."""
    labels = np.int64(world.cardinality[variable])
    move.item, move.source, move.choices = variable, np.int64(world.value[variable]), labels
    for label in range(labels):
        choice.targets[label] = label
        choice.place[label] = label + 1
