"""Look up pairs of items among a subset of the items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.types import Int64s, Ints

_DENSE = 4  # a lookup table may have this many entries per item


class PairsAmong(NamedTuple):
    """Pairs whose two items are both in a list of items.

    first, second : int64[pairs]
        Positions of the two items in the list.
    place : int64[pairs]
        Position of each pair among all the pairs that were looked through.
    """

    first: Int64s
    second: Int64s
    place: Int64s


def pairs_among(items: Ints, start: Ints, neighbor: Ints) -> PairsAmong:
    """Return the pairs between ``items``, each once.

    items
        Some items, ascending.
    start, neighbor
        For each of them a row of the items that it is paired with, whether or not these are among ``items``.
    """
    owner = np.repeat(np.arange(len(items)), np.diff(start))
    second = places_among(items, neighbor)
    position = np.flatnonzero(owner < second)
    return PairsAmong(owner[position], second[position], position)


def places_among(items: Ints, sought: Ints) -> Int64s:
    """Return the position of each item in the ascending list ``items``; -1 if it is not in the list."""
    if not len(items):
        return np.full(len(sought), -1, np.int64)
    lowest, span = int(items[0]), int(items[-1]) - int(items[0]) + 1
    # a lookup table of all numbers is much faster than a search
    if span <= _DENSE * (len(items) + len(sought)):
        table = np.full(span + 1, -1, np.int64)
        table[items - lowest] = np.arange(len(items))
        within = np.asarray(sought, np.int64) - lowest
        return table[np.where((within >= 0) & (within < span), within, span)]
    position = np.searchsorted(items, sought)
    position[position == len(items)] = 0
    return np.where(items[position] == sought, position, -1)
