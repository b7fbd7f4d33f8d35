"""Matchings, permutations and trees as flat arrays that compiled walks read and change.

In each, ``target[item]`` says where an item is: its partner, its position, its parent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.types import Int32s, Int64s


class Matched(NamedTuple):
    """Pairs of items on the left with items on the right, each in one pair at most.

    target : int32[left]
        The partner of each item on the left; the number of items on the right where it has none.
    holder : int32[right]
        The partner of each item on the right; the number of items on the left where it has none.
    start, candidate : int64[left + 1], int32[.]
        The partners that each item on the left may have, ascending.
    """

    target: Int32s
    holder: Int32s
    start: Int64s
    candidate: Int32s


class Ordered(NamedTuple):
    """Items in an order.

    target : int32[items]
        The position of each item.
    holder : int32[items]
        The item at each position.
    """

    target: Int32s
    holder: Int32s


class Rooted(NamedTuple):
    """Items in a tree, below a root that is none of them.

    target : int32[items]
        The parent of each item; the number of items where that is the root.
    degree : int32[items + 1]
        How many children each item has, and the root.
    """

    target: Int32s
    degree: Int32s


def apply_match(world: Any, move: Any) -> None:
    """Make the change at hand: an item leaves its partner for one that is free, or for none."""
    alone = len(world.holder)
    if move.source < alone:
        world.holder[move.source] = len(world.target)
    if move.target < alone:
        world.holder[move.target] = move.item
    world.target[move.item] = move.target


def apply_exchange(world: Any, move: Any) -> None:
    """Make the change at hand: an item goes to a position, and the one that was there takes its place."""
    other = world.holder[move.target]
    world.target[other], world.holder[move.source] = move.source, other
    world.target[move.item], world.holder[move.target] = move.target, move.item


def apply_parent(world: Any, move: Any) -> None:
    """Make the change at hand: an item, and all below it, goes to another parent."""
    world.degree[move.source] -= 1
    world.degree[move.target] += 1
    world.target[move.item] = move.target


@shared
def is_candidate(world: Any, item: Any, partner: Any) -> bool:
    """Whether a matching may pair the two."""
    low, high = world.start[item], world.start[item + 1]
    while low < high:
        middle = (low + high) // 2
        if world.candidate[middle] < partner:
            low = middle + 1
        else:
            high = middle
    return low < world.start[item + 1] and world.candidate[low] == partner


@shared
def is_below(world: Any, node: Any, item: Any) -> bool:
    """Whether ``node`` is ``item`` or lies below it in the tree."""
    root = len(world.target)
    while node != root and node != item:
        node = np.int64(world.target[node])
    return bool(node == item)
