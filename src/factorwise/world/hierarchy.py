"""Hierarchies: worlds in which each entity is a tree over its items, with inner nodes for groups of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import EmptyWorldError, InvalidArgumentError
from factorwise.kernels.structures.arrays import is_below
from factorwise.kernels.structures.hierarchies import (
    Nested,
    apply_regraft,
    dropped_by,
    position_of,
)
from factorwise.types import Int32s, Int64s
from factorwise.validation import check_count
from factorwise.world.partition import Partition
from factorwise.world.targets import TargetWorld


class Hierarchy(TargetWorld):
    """Items in trees: the items below one root are an entity, those below an inner node are a group.

    An inner node has two children or more, and its number has no meaning: hierarchies with the same groups
    are equal. Nodes 0 to n - 1 are the items; the other n - 1 numbers suffice for all inner nodes that there
    can be. A change prunes a node and attaches it elsewhere, see `factorwise.kernels.structures.hierarchies`.

    entities
        The entities; each is an item or a list of items and lists.

    >>> world = Hierarchy([[0, [1, 2]], 3])
    >>> world.labels.tolist()
    [0, 0, 0, 1]
    >>> world.groups()
    [[0, 1, 2], [1, 2]]
    """

    arrays: Nested
    change = staticmethod(apply_regraft)

    def __init__(self, entities: Sequence[Any]) -> None:
        parents: dict[int, int] = {}
        inner = [0]

        def enter(node: Any, parent: int) -> None:
            if not isinstance(node, list | tuple):
                if isinstance(node, bool) or not isinstance(node, int | np.integer) or int(node) in parents:
                    raise InvalidArgumentError(
                        f"a hierarchy must name the items 0 to n - 1 once each, but contains {node!r}."
                    )
                parents[int(node)] = parent
                return
            if len(node) < 2:
                raise InvalidArgumentError(f"a group must have at least two members, but {node!r} was given.")
            inner[0] -= 1
            number, parents[number] = inner[0], parent
            for child in node:
                enter(child, number)

        for entity in entities:
            enter(entity[0] if isinstance(entity, list | tuple) and len(entity) == 1 else entity, 0)
        n = len(parents) + inner[0]
        if n < 1:
            raise EmptyWorldError("a hierarchy needs at least one item, but no entities were given.")
        if sorted(item for item in parents if item >= 0) != list(range(n)):
            raise InvalidArgumentError(
                f"a hierarchy must name the items 0 to n - 1 once each, but {sorted(parents)[-20:]}"
                " were given."
            )
        # numbers below zero are inner nodes in the order in which they were given; 0 is the top
        top = 2 * n - 1
        target = np.full(top, -1, np.int32)
        for node, parent in parents.items():
            target[node if node >= 0 else n - 1 - node] = n - 1 - parent if parent < 0 else top
        self.arrays = _arranged(target)

    @classmethod
    def singletons(cls, n: int) -> Hierarchy:
        """Make every item an entity of its own."""
        check_count("the number of items", n)
        return cls.from_labels(np.arange(n))

    @classmethod
    def from_labels(cls, labels: ArrayLike) -> Hierarchy:
        """Make items with equal labels an entity, without groups inside."""
        dense = Partition.from_keys(labels).dense_labels()
        n, size = len(dense), np.bincount(dense)
        root = np.where(size > 1, n + np.cumsum(size > 1) - 1, 2 * n - 1)
        target = np.full(2 * n - 1, -1, np.int32)
        target[:n] = root[dense]
        target[root[size > 1]] = 2 * n - 1
        world = object.__new__(cls)
        world.arrays = _arranged(target)
        return world

    @property
    def n_items(self) -> int:
        """Number of items."""
        return (len(self.values) + 1) // 2

    @property
    def n_targets(self) -> int:
        """Number of targets of a node: below the top or a node, or beside a node."""
        return 2 * len(self.values) + 1

    @property
    def n_clusters(self) -> int:
        """Number of entities."""
        return int(self.arrays.degree[-1])

    @property
    def n_groups(self) -> int:
        """Number of inner nodes, including the roots of entities of several items."""
        return int(self.arrays.used[0])

    @property
    def labels(self) -> Int64s:
        """Entity of each item: 0 to k - 1 by first appearance."""
        top = len(self.values)
        root, parent = np.arange(self.n_items), np.append(self.values, top)
        while (parent[root] != top).any():
            root = np.where(parent[root] == top, root, parent[root])
        return Partition.from_keys(root).dense_labels()

    def groups(self) -> list[list[int]]:
        """Return the items below each inner node, the largest groups first."""
        below: dict[int, list[int]] = {}
        for item in range(self.n_items):
            for node in self._ancestors(item):
                below.setdefault(node, []).append(item)
        return sorted(below.values(), key=lambda items: (-len(items), items))

    def _ancestors(self, node: int) -> list[int]:
        path, parent = [], int(self.values[node])
        while parent < len(self.values):
            path.append(parent)
            parent = int(self.values[parent])
        return path

    def position(self, item: int) -> int:
        """Return the target that would take a node back after it was pruned."""
        return int(position_of(self.arrays, item))

    def allows(self, item: int, target: int) -> bool:
        """Whether the node may move to the target, which must be in use and not below the node.

        A target that would vanish when the node is pruned is not allowed either.
        """
        top = len(self.values)
        near = target if target <= top else target - top - 1
        if self.values[item] < 0 or (near < top and self.values[near] < 0) or target < self.n_items:
            return False
        return near == top or not (near == dropped_by(self.arrays, item) or is_below(self.arrays, near, item))

    def canonical(self) -> bytes:
        """Return a hashable key that is equal for equal worlds."""
        number: dict[int, int] = {}
        for item in range(self.n_items):
            for node in self._ancestors(item):
                if node in number:
                    break
                number[node] = self.n_items + len(number)
        top = len(self.values)
        nodes = [*range(self.n_items), *number]
        parents = (int(self.values[node]) for node in nodes)
        return np.array([number.get(parent, top) for parent in parents], np.int32).tobytes()

    def __repr__(self) -> str:
        groups = ", ".join(map(str, self.groups()[:5]))
        return f"Hierarchy({self.n_items} items, {self.n_clusters} entities; groups: {groups})"


def _arranged(target: Int32s) -> Nested:
    """Make all arrays from the parents of nodes; -1 for inner nodes that are not in use."""
    top = len(target)
    n = (top + 1) // 2
    used = np.flatnonzero(target[n:] >= 0)
    inner = np.concatenate([used, np.setdiff1d(np.arange(top - n), used)]).astype(np.int32)
    at = np.argsort(inner).astype(np.int32)
    room = (np.zeros(1, np.int32),) if n == 1 else ()  # arrays of a walk must not be empty
    nodes = np.flatnonzero(target >= 0)
    order = nodes[np.argsort(target[nodes], kind="stable")]
    parent = target[order]
    begins, ends = np.append(True, parent[1:] != parent[:-1]), np.append(parent[1:] != parent[:-1], True)
    first, following, previous = (np.full(size, -1, np.int32) for size in (top + 1, top, top))
    first[parent[begins]] = order[begins]
    following[order[~ends]] = order[1:][~ends[:-1]]
    previous[order[~begins]] = order[:-1][~begins[1:]]
    return Nested(
        target,
        first,
        np.bincount(parent, minlength=top + 1).astype(np.int32),
        following,
        previous,
        np.concatenate([inner + np.int32(n), *room]).astype(np.int32),
        np.concatenate([at, *room]),
        np.array([len(used)], np.int64),
    )
