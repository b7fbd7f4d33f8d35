"""Pairs of items, looked up from either end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorwise.types import Int64s, Ints

_DENSE = 4  # numbers that a table may have for each item


class PairsAmong(NamedTuple):
    """Pairs of which both ends are among some items, numbered anew.

    first, second : int64[pairs]
        Places of the two in the list of items.
    place : int64[pairs]
        Where each pair stands among those that the items' rows list.
    """

    first: Int64s
    second: Int64s
    place: Int64s


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


def places_among(items: Ints, sought: Ints) -> Int64s:
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
