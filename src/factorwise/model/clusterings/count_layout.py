"""Layout of the counts of keys per cluster, for templates whose statistics are functions of counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.kernels.clusterings.counts import (
    BITS,
    ENTRY,
    MOST_AMOUNT,
    MOST_COUNT,
    MOST_SLOTS,
    SPAN,
    empty_slots,
    table_bits,
)
from factorwise.types import Bools, Int32s, Int64s

NAME_BITS = 63  # bits for a group and a key together


class CountLayout(NamedTuple):
    """The tables of all keys; several walks may share the layout, each with slots of its own.

    spans, entries : SPAN[n], ENTRY[.]
        The keys of each item that other items have, too; the items of a group are adjacent.
    slots
        Number of slots of all tables together.
    shared : bool[keys of all items]
        Which of the keys, as they were given, have a table.
    group_start, group_item : int64[groups + 1], int32[n]
        The items of each group.
    group_entries, group_slots : int64[groups + 1], int64[groups + 1]
        The entries and the tables of each group.
    """

    spans: NDArray[np.void]
    entries: NDArray[np.void]
    slots: int
    shared: Bools
    group_start: Int64s
    group_item: Int32s
    group_entries: Int64s
    group_slots: Int64s

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of a program, with empty slots of its own."""
        return {
            "spans": self.spans,
            "entries": self.entries,
            "slots": empty_slots(self.slots),
            "group_start": self.group_start,
            "group_item": self.group_item,
            "group_entries": self.group_entries,
            "group_slots": self.group_slots,
            "fetched": np.zeros(1, np.int64),
        }


def lay_out_counts(
    name: str,
    start: Int64s,
    key: Int64s,
    *,
    amount: Int64s | None = None,
    kind: Int64s | None = None,
    groups: Int32s | None = None,
) -> CountLayout:
    """Give a table to every key that two or more items of a group have.

    name
        Name of the template, for messages.
    start, key, amount
        As in `factorwise.variables.bags.Bags`; amounts are 1 by default. Keys may be numbered with gaps.
    kind : int64[keys of all items]
        Further information to store with each entry; 0 by default.
    groups : int32[n]
        Group numbers: only items of the same group can ever be together, so each group has tables of its own.
    """
    n, of = len(start) - 1, groups if groups is not None else np.zeros(len(start) - 1, np.int32)
    item = np.repeat(np.arange(n), np.diff(start))
    shift = int(key.max(initial=0)).bit_length()
    if int(of.max()).bit_length() + shift > NAME_BITS:
        key = np.unique(key, return_inverse=True)[1]
        shift = int(key.max(initial=0)).bit_length()
    named = key if groups is None else key | (of.astype(np.int64)[item] << shift)
    names, slot, holders = np.unique(named, return_inverse=True, return_counts=True)
    _check_amounts(name, slot, amount)
    bits = table_bits(holders)
    capacity = np.where(holders > 1, np.int64(1) << bits, 0)
    ends = np.cumsum(capacity)
    slots = int(ends[-1]) if len(ends) else 0
    if slots >= MOST_SLOTS:
        raise InvalidArgumentError(
            f"template {name!r} needs {slots} counts, more than 2^{BITS}: use fewer keys, or blocks"
            " (RelocateToItem(blocks)) within which items can be together."
        )
    shared = holders[slot] > 1
    lengths = np.bincount(item[shared], minlength=n)
    order = np.argsort(of, kind="stable").astype(np.int32)
    begin = np.zeros(n, np.int64)
    begin[order] = np.cumsum(lengths[order]) - lengths[order]
    spans: NDArray[np.void] = np.zeros(n, SPAN)
    spans["begin"], spans["end"] = begin, begin + lengths
    at = np.repeat(begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    entries: NDArray[np.void] = np.zeros(len(at), ENTRY)
    entries["start"][at] = (ends - capacity)[slot[shared]]
    entries["shift"][at] = BITS - bits[slot[shared]]
    entries["amount"][at] = 1 if amount is None else amount[shared]
    if kind is not None:
        entries["kind"][at] = kind[shared]
    many = int(of.max()) + 1
    of_table = np.zeros(len(names), np.int64) if groups is None else names >> shift
    return CountLayout(
        spans,
        entries,
        slots,
        shared,
        group_start=_running(np.bincount(of, minlength=many)),
        group_item=order,
        group_entries=_running(np.bincount(of, weights=lengths, minlength=many)),
        group_slots=_running(np.bincount(of_table, weights=capacity, minlength=many)),
    )


def _running(numbers: NDArray[Any]) -> Int64s:
    return np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)


def _check_amounts(name: str, slot: Int64s, amount: Int64s | None) -> None:
    """Refuse amounts that are too large for entries or counts."""
    if amount is None:
        return
    most, largest = int(np.bincount(slot, weights=amount).max(initial=0)), int(amount.max(initial=0))
    if most > MOST_COUNT or largest > MOST_AMOUNT:
        raise InvalidArgumentError(
            f"template {name!r} counts up to {most} of a key and {largest} for one item, but counts can"
            f" reach at most {MOST_COUNT} and amounts {MOST_AMOUNT}: use smaller amounts, or leave out"
            " keys that so many items have."
        )


class KeptLayout:
    """A layout that is computed again only when the groups change."""

    def __init__(self, name: str, start: Int64s, key: Int64s, **more: Any) -> None:
        self._given = (name, start, key, more)
        self._kept: tuple[Int32s | None, CountLayout] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the layout out when the object is sent or written, because it can be computed again."""
        return self.__dict__ | {"_kept": None}

    def of(self, groups: Int32s | None) -> CountLayout:
        """Return the layout for these groups."""
        kept = self._kept
        if kept is None or not _same(kept[0], groups):
            name, start, key, more = self._given
            kept = (
                (None if groups is None else groups.copy()),
                lay_out_counts(name, start, key, groups=groups, **more),
            )
            self._kept = kept
        return kept[1]


def _same(first: Int32s | None, second: Int32s | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)
