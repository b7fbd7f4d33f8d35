"""A walk that makes the merges of a tree in turn, so that a model's templates compute the gain of each.

Arrays that the two functions share:

left, right : int64[nodes]
    The two children of each node, -1 for items.
item : int64[nodes]
    An item below each node: known for items, and for other nodes from their merge on.
blocked : bool[nodes]
    On entry, nodes that are impossible; on exit, also those that the model forbids and the nodes above them.
gain : float64[nodes]
    The gain of each merge.
turn : int64[1]
    The next node.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.clusterings.jumps import move_all
from factorwise.kernels.walks.layouts import STAY


def draw_tree_merge(world: Any, mine: Any, move: Any, changes: Any) -> float:
    """Propose the merge of the next node, in which its smaller part joins the larger one."""
    node = mine.turn[0]
    mine.turn[0] = node + 1
    one, two = mine.left[node], mine.right[node]
    mine.item[node] = mine.item[one]
    if mine.blocked[node] or mine.blocked[one] or mine.blocked[two]:
        mine.blocked[node] = True
        return STAY
    move_all(world, move, changes, world.label[mine.item[one]], world.label[mine.item[two]])
    return 1.0


def keep_gain(mine: Any, move: Any) -> bool:
    """Record the gain of the merge, and make it unless the model forbids it."""
    node = mine.turn[0] - 1
    if move.gain == -math.inf:
        mine.blocked[node] = True
        return False
    mine.gain[node] = move.gain
    return True
