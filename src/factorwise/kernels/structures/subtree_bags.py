"""Similarity of children and parents in a hierarchy, from sums of vectors stored per node.

``mine`` has ``vector`` float64[items, numbers]; ``total`` float64[nodes, numbers], the sums over the items
below each node; ``square`` and ``inner`` float64[nodes], inner products of a total with itself and with the
parent's total; ``cosine`` float64[nodes], between a node and the rest of its parent, 0 for roots; ``change``
int64[nodes + 1], scratch space that is zero between calls: 1 for nodes that gain the moved vector, -1 for
those that lose it; ``weights`` and ``offset`` int64[1]. A move affects the ancestors of both positions, up to
their first common ancestor, and the factors of the ancestors' children.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.structures.hierarchies import n_leaves, parent_left
from factorwise.kernels.walks.library import put

NOTHING = 1e-9  # relative to the parent's squared norm: a smaller rest is rounding noise and counts as zero


@shared
def dot(mine: Any, first: Any, second: Any) -> float:
    """Return the inner product of the totals of two nodes."""
    total = 0.0
    for k in range(mine.total.shape[1]):
        total += mine.total[first, k] * mine.total[second, k]
    return total


@shared
def cosine_of_rest(inner: float, child: float, parent: float) -> float:
    """Return the cosine between a child and its parent minus the child; 0 if either is zero."""
    rest = parent - 2.0 * inner + child
    if rest <= NOTHING * parent or child <= 0.0:
        return 0.0
    return (inner - child) / math.sqrt(child * rest)


@shared
def set_total(mine: Any, node: Any, source: Any, amount: float, onto: Any) -> None:
    """Set the total of ``node`` to that of ``onto`` plus ``amount`` times that of ``source``."""
    square = 0.0
    for k in range(mine.total.shape[1]):
        value = mine.total[onto, k] + amount * mine.total[source, k]
        mine.total[node, k] = value
        square += value * value
    mine.square[node] = square


@shared
def refresh(world: Any, mine: Any, node: Any) -> None:
    """Recompute the factor of a node and its parent."""
    parent = np.int64(world.target[node])
    mine.inner[node], mine.cosine[node] = 0.0, 0.0
    if parent != len(world.target):
        mine.inner[node] = dot(mine, node, parent)
        mine.cosine[node] = cosine_of_rest(mine.inner[node], mine.square[node], mine.square[parent])


def begin_totals(world: Any, mine: Any) -> None:
    """Sum the vectors below every node, and compute all factors."""
    top, leaves = len(world.target), n_leaves(world)
    mine.total[:] = 0.0
    mine.square[:] = 0.0
    mine.change[:] = 0
    for item in range(leaves):
        node = np.int64(item)
        while node != top:
            for k in range(mine.total.shape[1]):
                mine.total[node, k] += mine.vector[item, k]
            node = np.int64(world.target[node])
    for node in range(top):
        if world.target[node] >= 0:
            mine.square[node] = dot(mine, node, node)
    for node in range(top):
        if world.target[node] >= 0:
            refresh(world, mine, node)


@shared
def mark_path(world: Any, mine: Any, node: Any, skipped: Any, amount: Any) -> None:
    """Add ``amount`` to the change of a node and its ancestors, except one."""
    while node != len(world.target):
        if node != skipped:
            mine.change[node] += amount
        node = np.int64(world.target[node])


@shared
def clear_path(world: Any, mine: Any, node: Any) -> None:
    """Reset the changes of a node and its ancestors."""
    while node != len(world.target):
        mine.change[node] = 0
        node = np.int64(world.target[node])


@shared
def cosine_then(
    mine: Any, move: Any, child: Any, more: Any, parent: Any, gained: Any, inner: float, with_parent: float
) -> float:
    """Return the cosine of a child and a parent after each gains a multiple of the moved vector.

    inner, with_parent
        Inner products of the two before the move, and of the parent and the vector.
    """
    own, vector = dot(mine, child, move.item), mine.square[move.item]
    move.factors += 1
    then = inner + more * with_parent + gained * own + more * gained * vector
    square = mine.square[child] + 2.0 * more * own + more * more * vector
    whole = mine.square[parent] + 2.0 * gained * with_parent + gained * gained * vector
    return cosine_of_rest(then, square, whole)


@shared
def child_then(
    world: Any, mine: Any, move: Any, child: Any, parent: Any, dropped: Any, with_parent: float
) -> float:
    """Return the gain of the factor of one child of a parent; the child may be replaced or removed."""
    top, gained = len(world.target), mine.change[parent]
    if child == move.item:
        return -mine.cosine[child]
    now, inner, more = child, mine.inner[child], mine.change[child]
    if child == dropped:
        now = move.source - top - 1
        inner, more = dot(mine, now, parent), mine.change[now]
    elif move.target == top + 1 + child:
        more += 1
    return cosine_then(mine, move, now, more, parent, gained, inner, with_parent) - mine.cosine[child]


@shared
def children_then(world: Any, mine: Any, move: Any, start: Any, dropped: Any) -> float:
    """Return the gain of the factors of the children of nodes from ``start`` up to an unchanged node."""
    gain, node = 0.0, start
    while node != len(world.target) and mine.change[node] != 0:
        with_parent, child = dot(mine, node, move.item), np.int64(world.first[node])
        while child >= 0:
            gain += child_then(world, mine, move, child, node, dropped, with_parent)
            child = np.int64(world.following[child])
        node = parent_left(world, node, dropped)
    return gain


@shared
def shared_ancestor(world: Any, mine: Any, node: Any, dropped: Any) -> Any:
    """Return the first node from ``node`` upward that does not change."""
    while node != len(world.target) and mine.change[node] != 0:
        node = parent_left(world, node, dropped)
    return node


@shared
def child_towards(world: Any, node: Any, ancestor: Any) -> Any:
    """Return the child of ``ancestor`` that is ``node`` or an ancestor of it."""
    while world.target[node] != ancestor:
        node = np.int64(world.target[node])
    return node


def change_of_cosines(world: Any, mine: Any, move: Any) -> float:
    """Return the change of the sum of all cosines by the current move."""
    top, node, beside = len(world.target), move.item, move.target - len(world.target) - 1
    parent = np.int64(world.target[node])
    dropped = parent if move.source > top else np.int64(-1)
    old = np.int64(world.target[parent]) if dropped >= 0 else parent
    new = np.int64(world.target[beside]) if beside >= 0 else np.int64(move.target)
    mark_path(world, mine, old, np.int64(-1), -1)
    mark_path(world, mine, new, dropped, 1)
    gain = children_then(world, mine, move, old, dropped) + children_then(world, mine, move, new, dropped)
    if dropped >= 0:
        gain -= mine.cosine[node] + mine.cosine[move.source - top - 1]
    if beside >= 0:  # the new inner node and its two children
        more, own, vector = mine.change[beside], dot(mine, beside, node), mine.square[node]
        child = mine.square[beside] + 2.0 * more * own + more * more * vector
        inner = own + more * vector
        whole = child + 2.0 * inner + vector
        move.factors += 2
        gain += cosine_of_rest(child + inner, child, whole) + cosine_of_rest(inner + vector, vector, whole)
    elif new != top:
        with_new = dot(mine, node, new)
        gain += cosine_then(mine, move, node, 0, new, mine.change[new], with_new, with_new)
    ancestor = shared_ancestor(world, mine, old, dropped)
    if ancestor != top:  # the ancestor is unchanged, but its children on the two paths change
        first = child_towards(world, node, ancestor)
        with_ancestor = dot(mine, ancestor, node)
        gain += child_then(world, mine, move, first, ancestor, dropped, with_ancestor)
        if beside >= 0 or new != ancestor:
            second = child_towards(world, beside if beside >= 0 else new, ancestor)
            if second != first:
                gain += child_then(world, mine, move, second, ancestor, dropped, with_ancestor)
    clear_path(world, mine, old)
    clear_path(world, mine, new)
    return gain


def gain_of_cosines(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of the current move."""
    return mine.weights[mine.offset[0]] * change_of_cosines(world, mine, move)


def gradient_of_cosines(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after the current move, minus those before it."""
    put(gradient, move, mine.offset[0], change_of_cosines(world, mine, move))


@shared
def update_path(world: Any, mine: Any, move: Any, start: Any) -> None:
    """Update the totals of changed nodes from ``start`` upward."""
    node = start
    while node != len(world.target):
        if mine.change[node] != 0:
            set_total(mine, node, move.item, float(mine.change[node]), node)
        node = np.int64(world.target[node])


@shared
def refresh_path(world: Any, mine: Any, start: Any) -> None:
    """Recompute the factors of changed nodes from ``start`` upward, and of their children."""
    node = start
    while node != len(world.target):
        if mine.change[node] != 0:
            refresh(world, mine, node)
            child = np.int64(world.first[node])
            while child >= 0:
                refresh(world, mine, child)
                child = np.int64(world.following[child])
        node = np.int64(world.target[node])


def applied_regraft(world: Any, mine: Any, move: Any) -> None:
    """Update totals and factors after a move."""
    top, node, beside = len(world.target), move.item, move.target - len(world.target) - 1
    parent = np.int64(world.target[node])
    made = parent if beside >= 0 else np.int64(-1)
    old = np.int64(world.target[move.source - top - 1]) if move.source > top else np.int64(move.source)
    new = np.int64(world.target[made]) if beside >= 0 else parent
    mark_path(world, mine, old, made, -1)
    mark_path(world, mine, new, np.int64(-1), 1)
    update_path(world, mine, move, old)
    update_path(world, mine, move, new)
    if beside >= 0:
        set_total(mine, made, node, 1.0, beside)
        refresh(world, mine, beside)
        refresh(world, mine, made)
    refresh_path(world, mine, old)
    refresh_path(world, mine, new)
    refresh(world, mine, node)
    if move.source > top:
        refresh(world, mine, move.source - top - 1)
    clear_path(world, mine, old)
    clear_path(world, mine, new)


# numbers of entities and inner nodes: ``mine`` has ``weights`` and ``offset``


@shared
def entities_then(world: Any, move: Any) -> Any:
    """Return the change of the number of roots by the current move."""
    top = len(world.target)
    return np.int64(move.target == top) - np.int64(move.source == top)


@shared
def inner_then(world: Any, move: Any) -> Any:
    """Return the change of the number of inner nodes by the current move."""
    top = len(world.target)
    return np.int64(move.target > top) - np.int64(move.source > top)


def gain_of_counts(world: Any, mine: Any, move: Any) -> float:
    """Return the gain of the current move."""
    at = mine.offset[0]
    return mine.weights[at] * entities_then(world, move) + mine.weights[at + 1] * inner_then(world, move)


def gradient_of_counts(world: Any, mine: Any, move: Any, gradient: Any) -> None:
    """Add the statistics after the current move, minus those before it."""
    put(gradient, move, mine.offset[0], entities_then(world, move))
    put(gradient, move, mine.offset[0] + 1, inner_then(world, move))
