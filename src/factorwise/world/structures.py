"""Matchings, permutations and trees over given items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import EmptyWorldError, InvalidArgumentError, ShapeError
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.structures import moves
from factorwise.kernels.structures.arrays import (
    Matched,
    Ordered,
    Rooted,
    apply_exchange,
    apply_match,
    apply_parent,
    is_below,
    is_candidate,
)
from factorwise.types import Int32s, Int64s
from factorwise.world.targets import TargetWorld, whole_numbers


class Matching(TargetWorld):
    """Pairs of a left and a right item, where each item is in one pair at most.

    n_left, n_right
        Number of items on each side.
    pairs
        The pairs that are made, as (left, right).
    candidates : int[., 2]
        The pairs that may be made; all by default. Give them if there are many items.

    >>> world = Matching(2, 3, pairs=[(0, 2)])
    >>> world.partner(0), world.partner(1)
    (2, None)
    """

    arrays: Matched
    change = staticmethod(apply_match)

    def __init__(
        self,
        n_left: int,
        n_right: int,
        pairs: Iterable[tuple[int, int]] = (),
        *,
        candidates: ArrayLike | None = None,
    ) -> None:
        if n_left < 1 or n_right < 1:
            raise EmptyWorldError(f"a matching needs items on both sides, but has {n_left} and {n_right}.")
        if candidates is None:
            start = np.arange(n_left + 1, dtype=np.int64) * n_right
            candidate = np.tile(np.arange(n_right, dtype=np.int32), n_left)
        else:
            allowed = np.unique(checked_pairs("candidates", candidates, n_left, n_right), axis=0)
            start = np.searchsorted(allowed[:, 0], np.arange(n_left + 1)).astype(np.int64)
            candidate = allowed[:, 1].astype(np.int32)
        target, holder = np.full(n_left, n_right, np.int32), np.full(n_right, n_left, np.int32)
        self.arrays = Matched(target, holder, start, candidate)
        for left, right in checked_pairs("pairs", list(pairs), n_left, n_right).tolist():
            if not self.allows(left, right) or target[left] != n_right:
                raise InvalidArgumentError(
                    f"the pair ({left}, {right}) cannot be made: it is not a candidate, or one of its"
                    " items is in another pair."
                )
            target[left], holder[right] = right, left

    @property
    def n_targets(self) -> int:
        """Number of items on the right, plus one for having no partner."""
        return len(self.arrays.holder) + 1

    def allows(self, item: int, target: int) -> bool:
        """Whether the item may take the target: a candidate that is free, or no partner."""
        if target == len(self.arrays.holder):
            return True
        return bool(is_candidate(self.arrays, item, target) and self.arrays.holder[target] == self.n_items)

    def partner(self, item: int) -> int | None:
        """Return the partner of a left item; None if it has none."""
        right = int(self.values[item])
        return right if right < len(self.arrays.holder) else None

    def pairs(self) -> Int64s:
        """Return all pairs: int64[pairs, 2]."""
        left = np.flatnonzero(self.values < len(self.arrays.holder))
        return np.column_stack([left, self.values[left]]).astype(np.int64)

    def choices(self) -> Program:
        """Return the program with which a left item chooses among free candidates, its partner, and none."""
        return Program(support=moves.offer_free, name="free partners")


class Permutation(TargetWorld):
    """An order of items.

    order
        The items from first to last: 0 to n - 1, each once.

    >>> Permutation([2, 0, 1]).values.tolist()
    [1, 2, 0]
    """

    arrays: Ordered
    change = staticmethod(apply_exchange)
    exchanges = True

    def __init__(self, order: ArrayLike) -> None:
        items = whole_numbers("order", order)
        if not len(items) or not np.array_equal(np.sort(items), np.arange(len(items))):
            raise InvalidArgumentError(
                f"an order must name the items 0 to n - 1 once each, but {items[:20].tolist()} was given."
            )
        self.arrays = Ordered(np.argsort(items).astype(np.int32), items.astype(np.int32))

    @classmethod
    def identity(cls, n: int) -> Permutation:
        """Put each item at the position of its own number."""
        return cls(np.arange(n))

    def order(self) -> Int32s:
        """Return the items from first to last (a copy)."""
        return self.arrays.holder.copy()

    def choices(self) -> Program:
        """Return the program with which two random items may exchange their positions."""
        return Program(support=moves.offer_exchange, name="an exchange")


class Tree(TargetWorld):
    """A rooted tree of items: the parent of each is another item or the root, which is not an item itself.

    parents
        The parent of each item; None or -1 for the root.

    >>> tree = Tree([None, 0, 0])
    >>> tree.children(0)
    [1, 2]
    >>> tree.parent(0) is None
    True
    """

    arrays: Rooted
    change = staticmethod(apply_parent)

    def __init__(self, parents: Iterable[int | None]) -> None:
        parents_or_root = [-1 if parent is None else parent for parent in parents]
        target = whole_numbers("parents", parents_or_root)
        n = len(target)
        if not n:
            raise EmptyWorldError("a tree needs at least one item, but no parents were given.")
        if target.min() < -1 or target.max() >= n:
            raise InvalidArgumentError(
                f"parents must be items from 0 to {n - 1}, or None for the root, but run from"
                f" {target.min()} to {target.max()}."
            )
        target = np.where(target < 0, n, target)
        reached, frontier = np.zeros(n, bool), np.append(np.zeros(n, bool), True)
        while frontier.any():
            below = frontier[target] & ~reached
            reached |= below
            frontier = np.append(below, False)
        if not reached.all():
            item = int(np.flatnonzero(~reached)[0])
            raise InvalidArgumentError(f"item {item} is its own ancestor: remove the cycle from the parents.")
        degree = np.bincount(target, minlength=n + 1).astype(np.int32)
        self.arrays = Rooted(target.astype(np.int32), degree)

    @classmethod
    def flat(cls, n: int) -> Tree:
        """Put every item directly below the root."""
        return cls([None] * n)

    @property
    def n_targets(self) -> int:
        """Number of items, plus one for the root."""
        return self.n_items + 1

    def allows(self, item: int, target: int) -> bool:
        """Whether the item may move below the target, which must not lie below the item."""
        return not is_below(self.arrays, target, item)

    def parent(self, item: int) -> int | None:
        """Return the parent of an item; None if that is the root."""
        target = int(self.values[item])
        return target if target < self.n_items else None

    def children(self, item: int | None = None) -> list[int]:
        """Return the children of an item; without one, the children of the root."""
        return np.flatnonzero(self.values == (self.n_items if item is None else item)).tolist()

    def choices(self) -> Program:
        """Return the program with which an item chooses among all parents that are not below it."""
        return Program(support=moves.offer_parents, name="parents")


def checked_pairs(name: str, values: Any, n_left: int, n_right: int) -> Int64s:
    """Return pairs of a left and a right item as int64[pairs, 2], or raise an error."""
    pairs = np.asarray(values)
    if pairs.size == 0:
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ShapeError(
            f"{name} must be whole numbers of shape (pairs, 2), but have shape {pairs.shape} and dtype"
            f" {pairs.dtype}: give [(0, 1), ...]."
        )
    outside = pairs[((pairs < 0) | (pairs >= [n_left, n_right])).any(axis=1)]
    if len(outside):
        raise InvalidArgumentError(
            f"{name} must name items 0 to {n_left - 1} and 0 to {n_right - 1}, but"
            f" {tuple(outside[0].tolist())} is among them."
        )
    return pairs.astype(np.int64)
