"""Matchings, permutations and trees as flat arrays that compiled walks read and modify.

In each, ``target[item]`` is the state of an item: its partner, its position, or its parent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.types import Int32s, Int64s


class Matched(NamedTuple):
    """A matching of items on the left with items on the right, each in at most one pair.

    target : int32[left]
        The partner of each item on the left; the number of items on the right if it has none.
    holder : int32[right]
        The partner of each item on the right; the number of items on the left if it has none.
    start, candidate : int64[left + 1], int32[.]
        The candidate partners of each item on the left, ascending.
    """

    target: Int32s
    holder: Int32s
    start: Int64s
    candidate: Int32s


class Ordered(NamedTuple):
    """A permutation of items.

    target : int32[items]
        The position of each item.
    holder : int32[items]
        The item at each position.
    """

    target: Int32s
    holder: Int32s


class Rooted(NamedTuple):
    """Items in a tree, below a root that is not an item.

    target : int32[items]
        The parent of each item; the number of items if it is the root.
    degree : int32[items + 1]
        The number of children of each item, and of the root.
    """

    target: Int32s
    degree: Int32s


def apply_match(world: Any, move: Any) -> None:
    """Apply the current move: an item leaves its partner for a free one, or for none."""
    alone = len(world.holder)
    if move.source < alone:
        world.holder[move.source] = len(world.target)
    if move.target < alone:
        world.holder[move.target] = move.item
    world.target[move.item] = move.target


def apply_exchange(world: Any, move: Any) -> None:
    """Apply the current move: an item moves to a position, and the item there takes its place."""
    other = world.holder[move.target]
    world.target[other], world.holder[move.source] = move.source, other
    world.target[move.item], world.holder[move.target] = move.target, move.item


def apply_parent(world: Any, move: Any) -> None:
    """Apply the current move: an item and its subtree move to another parent."""
    world.degree[move.source] -= 1
    world.degree[move.target] += 1
    world.target[move.item] = move.target


@shared
def is_candidate(world: Any, item: Any, partner: Any) -> bool:
    """Return whether a matching may contain the pair."""
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
    """Return whether ``node`` is ``item`` or below it in the tree."""
    root = len(world.target)
    while node != root and node != item:
        node = np.int64(world.target[node])
    return bool(node == item)
