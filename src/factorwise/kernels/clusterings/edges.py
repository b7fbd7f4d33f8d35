"""Given pairs with features: what an item's own pairs add when it moves.

``mine`` of this program:

start, neighbor : int64[n + 1], int64[2 pairs]
    The pairs of item i stand at ``start[i]`` to ``start[i + 1]``: the other item of each.
score : float64[2 pairs]
    What each adds to the score while its two items are together.
pair, entry, index, value : int64[2 pairs], int64[pairs + 1], int64[entries], float64[entries]
    Which pair it is; the features of pair p are at ``entry[p]`` to ``entry[p + 1]``: where in the gradient's
    head, and how much.
"""

from __future__ import annotations

from typing import Any


def edges_gain(world: Any, mine: Any, move: Any) -> float:
    """Scores of pairs joined minus those of pairs separated."""
    total = 0.0
    for at in range(mine.start[move.item], mine.start[move.item + 1]):
        cluster = world.label[mine.neighbor[at]]
        if cluster == move.source:
            total -= mine.score[at]
        elif cluster == move.target:
            total += mine.score[at]
    return total


def edges_gains(world: Any, mine: Any, move: Any, choice: Any) -> None:
    """Scores of the item's pairs, by cluster of the other item."""
    for at in range(mine.start[move.item], mine.start[move.item + 1]):
        k = choice.place[world.label[mine.neighbor[at]]]
        if k > 0:
            choice.out[k - 1] += mine.score[at]


def edges_gradient(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Features of pairs joined minus those of pairs separated."""
    for at in range(mine.start[move.item], mine.start[move.item + 1]):
        cluster = world.label[mine.neighbor[at]]
        sign = 0.0
        if cluster == move.target:
            sign = 1.0
        elif cluster == move.source:
            sign = -1.0
        if sign != 0.0:
            pair = mine.pair[at]
            for k in range(mine.entry[pair], mine.entry[pair + 1]):
                gradient.value[mine.index[k]] += sign * mine.value[k]
