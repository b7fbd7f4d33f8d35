"""Blocks of a rule, and which of them are joined whole.

A block is the items that share a key. Of a block that is too large to be joined whole, the items are put in
an order in which similar ones come close, and each is paired with its neighbors only: the number of pairs
stays linear in the size of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.keys import KeyRows
from factorwise.apps.resolution.forms import Form, Lists, NormalTable, Numbers, offsets_of
from factorwise.types import Bools, Ints

_KEY_BITS = 38  # keys cut to fewer bits would meet by chance
_COLUMNS = 4  # more columns hardly change an order

# What tells items of a block apart, by kind of field; and which kinds are looked at first, in two orders.
_FORMS = {
    "name": ("last", "given"),
    "text": ("text",),
    "category": ("text",),
    "identifier": ("code",),
    "list": ("keys", "items"),
    "number": ("number",),
    "date": ("date",),
    "address": ("street", "text"),
    "email": ("email",),
    "phone": ("phone",),
    "location": ("text", "latitude", "longitude"),
}
_BY_NAME = (
    (
        "name",
        "identifier",
        "email",
        "phone",
        "text",
        "address",
        "date",
        "location",
        "number",
        "list",
        "category",
    ),
    (
        "list",
        "text",
        "address",
        "date",
        "phone",
        "email",
        "location",
        "number",
        "identifier",
        "category",
        "name",
    ),
)


class Blocks(NamedTuple):
    """Blocks of at least two items.

    item : int32[rows]
        Members of the blocks, one block after the other, ascending within a block.
    size : int64[blocks]
        How many members each block has.
    """

    item: NDArray[np.int32]
    size: NDArray[np.int64]

    @property
    def block(self) -> NDArray[np.int64]:
        """The block of each row."""
        return np.repeat(np.arange(len(self.size)), self.size)

    def select(self, chosen: Bools) -> Blocks:
        """Return the chosen blocks."""
        return Blocks(self.item[np.repeat(chosen, self.size)], self.size[chosen])


class Limits(NamedTuple):
    """Blocks up to ``largest`` are joined whole; in others each item meets about ``per_item`` others."""

    largest: int
    per_item: int


def blocks_of(rows: KeyRows, n_items: int) -> Blocks:
    """Group items by their keys; keys that only one item has are left out."""
    bits = np.uint64(int(n_items).bit_length())
    if 64 - int(bits) >= _KEY_BITS:
        # Sorting words is many times faster than sorting indices.
        packed = (rows.key >> bits << bits) | rows.item.astype(np.uint64)
        packed.sort()
        packed = packed[np.append(True, packed[1:] != packed[:-1])] if len(packed) else packed
        key, item = packed >> bits, (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int32)
    else:
        order = np.lexsort((rows.item, rows.key))
        key, item = rows.key[order], rows.item[order]
        fresh = np.append(True, (key[1:] != key[:-1]) | (item[1:] != item[:-1])) if len(key) else key > 0
        key, item = key[fresh], item[fresh]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, np.int64)
    size = np.diff(np.append(starts, len(key)))
    return Blocks(item, size).select(size > 1)


def item_blocks(blocks: Blocks, n_items: int) -> NDArray[np.int64]:
    """Return for each item the number of its smallest block; -1 if it is in none."""
    found = np.full(n_items, -1, np.int64)
    if len(blocks.item) > n_items or len(np.unique(blocks.item)) < len(blocks.item):
        order = np.argsort(-np.repeat(blocks.size, blocks.size), kind="stable")
        found[blocks.item[order]] = blocks.block[order]  # of several the last one stays
    else:
        found[blocks.item] = blocks.block
    return found


def pair_count(sizes: NDArray[np.int64], limits: Limits | None = None) -> int:
    """Count the pairs in blocks of these sizes."""
    if limits is None:
        return int(np.sum(sizes * (sizes - 1) // 2))
    whole = sizes <= limits.largest
    return int(np.sum(sizes[whole] * (sizes[whole] - 1) // 2) + np.sum(sizes[~whole]) * limits.per_item / 2)


def fitting_limits(sizes: Sequence[NDArray[np.int64]], wanted: Limits, budget: int) -> Limits:
    """Lower the limits, both to one number, until blocks of these sizes have at most ``budget`` pairs.

    Small blocks, whose keys are rare, stay whole longest.
    """
    every = np.concatenate([np.zeros(0, np.int64), *sizes])
    different, times = np.unique(every, return_counts=True)

    def lowered(number: int) -> Limits:
        return Limits(min(wanted.largest, number), min(wanted.per_item, number))

    def total(number: int) -> int:
        return sum(
            int(pair_count(np.array([size]), lowered(number)) * count)
            for size, count in zip(different.tolist(), times.tolist(), strict=True)
        )

    low, high = 2, max(2, int(different[-1]) if len(different) else 2)
    if total(high) <= budget:
        return wanted
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle) <= budget else (low, middle)
    return lowered(low)


def neighbor_ranks(normal: NormalTable) -> list[NDArray[np.int64]]:
    """Return the rank of every item in one or two orders that bring similar items close."""
    ranks = []
    seen: list[list[tuple[str, str]]] = []
    for kinds in _BY_NAME:
        columns = [
            (field.name, form)
            for kind in kinds
            for field in normal.values()
            if field.kind == kind
            for form in _FORMS[kind]
            if form in field
        ][:_COLUMNS]
        if not columns or columns in seen:
            continue
        seen.append(columns)
        keys = [_ranked(normal[name][form]) for name, form in columns]
        order = np.lexsort(keys[::-1])
        rank = np.empty(normal.n_rows, np.int64)
        rank[order] = np.arange(normal.n_rows)
        ranks.append(rank)
    return ranks or [np.arange(normal.n_rows)]


def _ranked(form: Form) -> Ints:
    """A number per row by which rows with similar values come close."""
    if isinstance(form, Numbers):
        return np.where(form.missing, -np.inf, form.values).argsort(kind="stable").argsort(kind="stable")
    if isinstance(form, Lists):
        return _rarest_item(form)
    order = np.asarray(pc.sort_indices(form.values))
    rank = np.full(len(order) + 1, -1, np.int64)
    rank[order] = np.arange(len(order))
    return rank[form.codes]


def _rarest_item(lists: Lists) -> Ints:
    """Code of the rarest item of each row that other rows have too; -1 if there is none."""
    counts = np.bincount(lists.codes, minlength=len(lists.values)).astype(np.int64)
    shared = counts[lists.codes] > 1
    offsets = offsets_of(shared.view(np.int8))[lists.offsets]
    codes = lists.codes[shared]
    found = np.full(len(lists), -1, np.int64)
    filled = np.diff(offsets) > 0
    if filled.any():
        packed = counts[codes] << 32 | codes
        found[filled] = np.minimum.reduceat(packed, offsets[:-1][filled]) & 0xFFFFFFFF
    return found
