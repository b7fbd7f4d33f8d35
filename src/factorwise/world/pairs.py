"""Pairs of items, looked up from either end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorwise.errors import ShapeError
from factorwise.types import Ints

_DENSE = 4  # numbers that a table may have for each item


class BothEnds(NamedTuple):
    """Given pairs by item.

    start, neighbor, pair : int64[n + 1], int64[2 pairs], int64[2 pairs]
        The pairs of item i are at ``start[i]`` to ``start[i + 1]``: the other item, and which pair it is.
    """

    start: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    pair: NDArray[np.int64]


class PairsAmong(NamedTuple):
    """Pairs of which both ends are among some items, numbered anew.

    first, second : int64[pairs]
        Places of the two in the list of items.
    place : int64[pairs]
        Where each pair stands among those that the items' rows list.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    place: NDArray[np.int64]


def pairs_among(items: Ints, start: Ints, neighbor: Ints) -> PairsAmong:
    """Return the pairs between ``items``, each once.

    items
        Some items, ascending.
    start, neighbor
        A row for each of them: the items that it is paired with, by their own numbers, whether or not they
        are among the items.
    """
    owner = np.repeat(np.arange(len(items)), np.diff(start))
    second = places_among(items, neighbor)
    place = np.flatnonzero(owner < second)
    return PairsAmong(owner[place], second[place], place)


def places_among(items: Ints, sought: Ints) -> NDArray[np.int64]:
    """Return where each of some items stands in the ascending list ``items``; -1 where it is not there."""
    if not len(items):
        return np.full(len(sought), -1, np.int64)
    lowest, span = int(items[0]), int(items[-1]) - int(items[0]) + 1
    if span <= _DENSE * (len(items) + len(sought)):  # a table of all numbers is much faster than a search
        table = np.full(span + 1, -1, np.int64)
        table[items - lowest] = np.arange(len(items))
        within = np.asarray(sought, np.int64) - lowest
        return table[np.where((within >= 0) & (within < span), within, span)]
    place = np.searchsorted(items, sought)
    place[place == len(items)] = 0
    return np.where(items[place] == sought, place, -1)


def both_ends(n_items: int, pairs: NDArray[np.int64]) -> BothEnds:
    """List ``pairs``, int64[pairs, 2], from both ends."""
    both = np.concatenate([pairs[:, 0], pairs[:, 1]])
    order = np.argsort(both, kind="stable")
    start = np.zeros(n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(both, minlength=n_items), out=start[1:])
    other = np.concatenate([pairs[:, 1], pairs[:, 0]])[order]
    return BothEnds(start, other, np.concatenate([np.arange(len(pairs))] * 2)[order])


def candidates_of(n_items: int, pairs: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Make the two items of each pair candidates of each other: where those of each item start, and which."""
    given = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if len(given) and (given.min() < 0 or given.max() >= n_items or (given[:, 0] == given[:, 1]).any()):
        raise ShapeError(f"candidate pairs must be two different items between 0 and {n_items - 1}.")
    start, candidate, _ = both_ends(n_items, given)
    return start, candidate
