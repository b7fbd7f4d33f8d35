"""Hierarchies of items: trees whose inner nodes have two or more children, and prune-and-regraft moves.

The position for a pruned node is a number. A number up to the number of nodes is an inner node (or the top,
whose children are the roots) that becomes its parent. A larger one is 1 + the number of nodes + another node,
beside which it is put, below a new inner node. A parent that is left with one child is dropped.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.structures.arrays import is_below
from factorwise.kernels.structures.moves import set_change
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below
from factorwise.types import Int32s, Int64s


class Nested(NamedTuple):
    """Items, which are the first nodes, and space for inner nodes above them.

    target : int32[nodes]
        The parent of each node; the number of nodes for the top, -1 for unused inner nodes.
    first, degree : int32[nodes + 1]
        The first child of each node and of the top, -1 if there is none, and the number of children.
    following, previous : int32[nodes]
        The next and the previous child of the same parent; -1 if there is none.
    inner, at : int32[nodes - items]
        The inner nodes, used ones first, and the position of each in this list (index 0: first inner node).
    used : int64[1]
        The number of inner nodes in use.
    """

    target: Int32s
    first: Int32s
    degree: Int32s
    following: Int32s
    previous: Int32s
    inner: Int32s
    at: Int32s
    used: Int64s


@shared
def n_leaves(world: Any) -> Any:
    """Return the number of items."""
    return (len(world.target) + 1) // 2


@shared
def link(world: Any, node: Any, parent: Any) -> None:
    """Make a node the first child of a parent."""
    head = world.first[parent]
    world.following[node], world.previous[node] = head, -1
    if head >= 0:
        world.previous[head] = node
    world.first[parent], world.target[node] = node, parent
    world.degree[parent] += 1


@shared
def unlink(world: Any, node: Any) -> None:
    """Remove a node from the children of its parent."""
    before, after, parent = world.previous[node], world.following[node], world.target[node]
    if before >= 0:
        world.following[before] = after
    else:
        world.first[parent] = after
    if after >= 0:
        world.previous[after] = before
    world.degree[parent] -= 1


@shared
def drop_inner(world: Any, node: Any) -> None:
    """Release an inner node, which will be the next one to be used."""
    leaves, last = n_leaves(world), world.used[0] - 1
    moved, place = world.inner[last], world.at[node - leaves]
    world.inner[place], world.at[moved - leaves] = moved, place
    world.inner[last], world.at[node - leaves] = node, last
    world.used[0], world.target[node] = last, -1


def apply_regraft(world: Any, move: Any) -> None:
    """Apply the current move: a node and its subtree move to another position."""
    top, node = len(world.target), move.item
    parent = np.int64(world.target[node])
    unlink(world, node)
    if parent != top and world.degree[parent] == 1:
        sibling, above = np.int64(world.first[parent]), np.int64(world.target[parent])
        unlink(world, sibling)
        unlink(world, parent)
        link(world, sibling, above)
        drop_inner(world, parent)
    if move.target <= top:
        link(world, node, move.target)
    else:
        beside = move.target - top - 1
        above, new = np.int64(world.target[beside]), np.int64(world.inner[world.used[0]])
        world.used[0] += 1
        unlink(world, beside)
        link(world, new, above)
        link(world, beside, new)
        link(world, node, new)


@shared
def position_of(world: Any, node: Any) -> Any:
    """Return the position to which a node would have to return after being pruned."""
    top, parent = len(world.target), np.int64(world.target[node])
    if parent == top or world.degree[parent] != 2:
        return parent
    sibling = np.int64(world.first[parent])
    if sibling == node:
        sibling = np.int64(world.following[node])
    return sibling + top + 1


@shared
def parent_left(world: Any, node: Any, dropped: Any) -> Any:
    """Return the parent of a node after the inner node ``dropped`` is removed; -1 removes none."""
    parent = np.int64(world.target[node])
    return np.int64(world.target[parent]) if parent == dropped else parent


@shared
def dropped_by(world: Any, node: Any) -> Any:
    """Return the inner node that is dropped when a node is pruned; -1 if there is none."""
    parent = np.int64(world.target[node])
    return parent if parent != len(world.target) and world.degree[parent] == 2 else np.int64(-1)


@shared
def depth_left(world: Any, node: Any, dropped: Any) -> Any:
    """Return the number of ancestors of a node after ``dropped`` is removed; -1 for the top."""
    top, depth = len(world.target), -1
    while node != top:
        node = parent_left(world, node, dropped)
        depth += 1
    return depth


@shared
def set_regraft(move: Any, node: Any, source: Any, target: Any) -> None:
    """Set the move to a single change."""
    move.item, move.source, move.target = node, source, target


def draw_regraft(world: Any, random: Any, move: Any) -> float:
    """Prune a random node, and regraft it at a random position."""
    leaves, top, used = n_leaves(world), len(world.target), world.used[0]
    drawn, place = below(random, leaves + used), below(random, leaves + 2 * used + 1)
    node = drawn if drawn < leaves else np.int64(world.inner[drawn - leaves])
    if place < leaves:
        near, target = place, top + 1 + place
    elif place < leaves + used:
        near = np.int64(world.inner[place - leaves])
        target = top + 1 + near
    else:
        near = np.int64(top) if place == leaves + 2 * used else np.int64(world.inner[place - leaves - used])
        target = near
    source, dropped = position_of(world, node), dropped_by(world, node)
    if target == source or near == dropped or (near != top and is_below(world, near, node)):
        return STAY
    then = used + (target > top) - (dropped >= 0)
    move.ratio = (leaves + used) * (leaves + 2.0 * used + 1.0)
    move.ratio /= (leaves + then) * (leaves + 2.0 * then + 1.0)
    set_regraft(move, node, source, target)
    return 1.0


@shared
def share_of_paths(world: Any, mine: Any, item: Any, node: Any, dropped: Any, position: Any) -> float:
    """Return the sum, over candidates of ``item``, of the probability that it leads to a position."""
    top, total = len(world.target), 0.0
    for k in range(mine.start[item], mine.start[item + 1]):
        here = np.int64(mine.candidate[k])
        if is_below(world, here, node):
            continue
        positions, on_path = 2.0 * depth_left(world, here, dropped) + 1.0, False
        while here != top:
            if position == here or position == top + 1 + here:
                on_path = True
            here = parent_left(world, here, dropped)
        if on_path:
            total += 1.0 / positions
    return total + (1.0 if position == top else 0.0)


def draw_regraft_near(world: Any, mine: Any, random: Any, move: Any) -> float:
    """Prune a random item or ancestor of it, and regraft it above one of its candidates, or at the top.

    ``mine`` has ``start`` int64[items + 1] and ``candidate`` int32[.], the candidates of each item. A
    position can be drawn by way of any candidate below it, so its probability is a sum over them.
    """
    top, item = len(world.target), below(random, n_leaves(world))
    depth, node = depth_left(world, item, np.int64(-1)), item
    up = below(random, depth + 1)
    for _ in range(up):
        node = np.int64(world.target[node])
    source, dropped = position_of(world, node), dropped_by(world, node)
    options = mine.start[item + 1] - mine.start[item]
    drawn, target = below(random, options + 1), np.int64(top)
    if drawn < options:
        near = np.int64(mine.candidate[mine.start[item] + drawn])
        if is_below(world, near, node):
            return STAY
        place = below(random, 2 * depth_left(world, near, dropped) + 1)
        for _ in range((place + 1) // 2):
            near = parent_left(world, near, dropped)
        target = near if place % 2 == 1 else top + 1 + near
    if target == source:
        return STAY
    back = share_of_paths(world, mine, item, node, dropped, source)
    if back == 0.0:
        return STAY
    above = depth_left(world, target if target <= top else target - top - 1, dropped) + 1
    then = up + above
    move.ratio = back / share_of_paths(world, mine, item, node, dropped, target)
    move.ratio *= (depth + 1.0) / (then + 1.0)
    set_regraft(move, node, source, target)
    return 1.0


@shared
def log_choices(total: Any, chosen: Any) -> float:
    """Return the log of the binomial coefficient."""
    return math.lgamma(total + 1.0) - math.lgamma(chosen + 1.0) - math.lgamma(total - chosen + 1.0)


@shared
def keep_single(move: Any, changes: Any) -> None:
    """Store a move of one change in the form that the loop expects."""
    if move.changes == 1:
        change = changes[0]
        set_regraft(move, np.int64(change.item), np.int64(change.source), np.int64(change.target))


@shared
def drop_node(world: Any, random: Any, move: Any, changes: Any, most: Any) -> float:
    """Propose to drop a random inner node with at most ``most`` children, which move to its parent."""
    top, used = len(world.target), world.used[0]
    if used == 0:
        return STAY
    node = np.int64(world.inner[below(random, used)])
    children, parent = np.int64(world.degree[node]), np.int64(world.target[node])
    if children > most:
        return STAY
    siblings = world.degree[parent] - 1 + children
    largest = min(most, siblings - (parent != top))
    move.log_ratio = -math.log(largest - 1.0) - log_choices(siblings, children)
    move.changes, child = 0, np.int64(world.first[node])
    for left in range(children, 1, -1):
        after = np.int64(world.following[child])
        set_change(changes, move, child, node if left > 2 else after + top + 1, parent)
        child = after
    keep_single(move, changes)
    return 1.0


@shared
def add_node(world: Any, random: Any, move: Any, changes: Any, most: Any) -> float:
    """Propose a new inner node between a random inner node, or the top, and some of its children."""
    top, used = len(world.target), world.used[0]
    drawn = below(random, used + 1)
    parent = np.int64(top) if drawn == used else np.int64(world.inner[drawn])
    siblings = np.int64(world.degree[parent])
    largest = min(most, siblings - (parent != top))
    if largest < 2:
        return STAY
    chosen = 2 + below(random, largest - 1)
    move.log_ratio = math.log(largest - 1.0) + log_choices(siblings, chosen)
    move.changes, child, wanted, previous = 0, np.int64(world.first[parent]), chosen, np.int64(-1)
    for left in range(siblings, 0, -1):
        if wanted > 0 and below(random, left) < wanted:
            wanted -= 1
            if previous >= 0:
                new = np.int64(world.inner[used])
                target = previous + top + 1 if move.changes == 0 else new
                set_change(changes, move, child, parent, target)
            previous = child
        child = np.int64(world.following[child])
    keep_single(move, changes)
    return 1.0


def draw_regroup(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Drop an inner node, or insert one above some children of another; ``mine`` has ``most`` int64[1]."""
    if below(random, 2) == 0:
        return drop_node(world, random, move, changes, mine.most[0])
    return add_node(world, random, move, changes, mine.most[0])
