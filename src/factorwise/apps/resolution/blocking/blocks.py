"""Blocks of a rule, and sort orders in which similar items are close to each other.

A block consists of the items that share a key. The items of a block that is too large to be joined whole are
sorted, and each is paired only with its neighbors, so that the number of pairs is linear in the block size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.keys import KeyRows
from factorwise.apps.resolution.normalize.forms import Form, Lists, NormalTable, Numbers, Strings
from factorwise.types import Bools, Floats, Ints
from factorwise.variables.sparse_rows import starts_of

_KEY_BITS = 38  # least bits of a key; shorter keys would collide too often
_COLUMNS = 4  # most columns of a sort key, which must fit into one word

# The forms by which items of a block are sorted, by kind of field, and the priority of kinds in two orders.
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


class RecordBlocks(NamedTuple):
    """Blocks of at least two items.

    item : int32[rows]
        Members of the blocks, block by block, ascending within a block.
    size : int64[blocks]
        Number of members of each block.
    """

    item: NDArray[np.int32]
    size: NDArray[np.int64]

    @property
    def block(self) -> NDArray[np.int64]:
        """Index of the block of each row."""
        return np.repeat(np.arange(len(self.size)), self.size)

    def select(self, chosen: Bools) -> RecordBlocks:
        """Return the chosen blocks."""
        return RecordBlocks(self.item[np.repeat(chosen, self.size)], self.size[chosen])


def blocks_of(rows: KeyRows, n_items: int) -> RecordBlocks:
    """Group items by key; keys of only one item are left out."""
    bits = np.uint64(int(n_items).bit_length())
    if 64 - int(bits) >= _KEY_BITS:
        # Sorting words is many times faster than sorting indices.
        packed = rows.key >> bits
        packed <<= bits
        packed |= rows.item.view(np.uint32)
        packed.sort()
        packed = packed[np.append(True, packed[1:] != packed[:-1])] if len(packed) else packed
        item = (packed.view(np.int64) & ((1 << int(bits)) - 1)).astype(np.int32)
        packed >>= bits
        key = packed
    else:
        order = np.lexsort((rows.item, rows.key))
        key, item = rows.key[order], rows.item[order]
        fresh = np.append(True, (key[1:] != key[:-1]) | (item[1:] != item[:-1])) if len(key) else key > 0
        key, item = key[fresh], item[fresh]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if len(key) else np.zeros(0, np.int64)
    size = np.diff(np.append(starts, len(key)))
    return RecordBlocks(item, size).select(size > 1)


def drawn_pairs(blocks: RecordBlocks, weight: Floats, count: int, seed: int) -> NDArray[np.int64]:
    """Return int64[count, 2]: random pairs of members of blocks, drawn in proportion to ``weight``."""
    draws = np.random.default_rng(seed)
    total = np.cumsum(weight)
    block = np.searchsorted(total, draws.random(count) * total[-1], side="right")
    start, size = starts_of(blocks.size)[block], blocks.size[block]
    left = (draws.random(count) * size).astype(np.int64)
    right = (left + 1 + (draws.random(count) * (size - 1)).astype(np.int64)) % size
    places = start[:, None] + np.stack([left, right], axis=1)
    return np.asarray(blocks.item[places], np.int64)


def neighbor_ranks(normal: NormalTable) -> list[NDArray[np.int64]]:
    """Return the ranks of all items in one or two orders that place similar items close together."""
    ranks = []
    seen: list[list[tuple[str, str]]] = []
    for kinds in _BY_NAME:
        columns = [
            (field.name, form)
            for kind in kinds
            for field in normal.values()
            if field.kind == kind
            for form in _FORMS[kind]
            if form in set(field)
        ][:_COLUMNS]
        if not columns or columns in seen:
            continue
        seen.append(columns)
        ranks.append(_order_rank([_ranked(normal[name][form]) for name, form in columns]))
    return ranks or [np.arange(normal.n_rows)]


def _order_rank(columns: Sequence[Ints]) -> NDArray[np.int64]:
    """Return the rank of every item, sorted by columns of numbers from -1 on in turn, and then by item.

    The columns are packed into one word, as far as its bits suffice, because sorting words is many times
    faster than sorting indices.
    """
    n_items = len(columns[0])
    bits = n_items.bit_length()
    word, room = np.zeros(n_items, np.uint64), 64 - bits
    for column in columns:
        width = (int(column.max(initial=0)) + 1).bit_length()
        kept = min(width, room)
        word = word << np.uint64(kept) | (column + 1).astype(np.uint64) >> np.uint64(width - kept)
        room -= kept
        if not room:
            break
    word = np.sort(word << np.uint64(bits) | np.arange(n_items, dtype=np.uint64))
    rank = np.empty(n_items, np.int64)
    rank[(word & np.uint64((1 << bits) - 1)).astype(np.int64)] = np.arange(n_items)
    return rank


def _ranked(form: Form) -> Ints:
    """Return a sort key per row that places rows with similar values close together."""
    if isinstance(form, Numbers):
        different, codes = np.unique(np.where(form.missing, -np.inf, form.values), return_inverse=True)
        return codes - int(len(different) > 0 and np.isneginf(different[0]))
    if isinstance(form, Lists):
        return _rarest_item(form)
    assert isinstance(form, Strings)  # vectors have no order
    order = np.asarray(pc.sort_indices(form.values))
    rank = np.full(len(order) + 1, -1, np.int64)
    rank[order] = np.arange(len(order))
    return rank[form.codes]


def _rarest_item(lists: Lists) -> Ints:
    """Return the code of each row's rarest item that other rows have too, or -1 if it has none."""
    counts = np.bincount(lists.codes, minlength=len(lists.values)).astype(np.int64)
    shared = counts[lists.codes] > 1
    offsets = starts_of(shared.view(np.int8))[lists.offsets]
    codes = lists.codes[shared]
    found = np.full(len(lists), -1, np.int64)
    filled = np.diff(offsets) > 0
    if filled.any():
        packed = counts[codes] << 32 | codes
        found[filled] = np.minimum.reduceat(packed, offsets[:-1][filled]) & 0xFFFFFFFF
    return found
