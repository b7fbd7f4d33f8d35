"""The memory layout of the attributes and weights of a chain CRF.

A weight belongs to an attribute and a label (state features), or to two consecutive labels (transition
features). State weights are packed: only pairs seen in training have one, ordered by attribute, then label.
For work on tokens they are laid out again (`WeightLayout`): attributes seen with several labels have a row of
a table, the others are single weights.

Attributes that are functions of one another are summed once for each distinct value instead of once for each
token. For example, the word, its lower case, its affixes and its shape are all functions of the word, so that
one row for each distinct word, a *bundle*, replaces all of them. `Bundles.find` looks for such slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factorwise.kernels.chains import attribute_layout
from factorwise.kernels.chains.attribute_rows import AHEAD, Entries, Members
from factorwise.types import Bools, Floats, Int32s, Int64s, Ints
from factorwise.variables.sparse_rows import SparseRows

BLOCK = 1 << 16  # tokens summed at a time: 16-bit numbers suffice, and rows still fit the last-level cache
SEGMENTS = 32  # parts of the columns that threads share
NOTHING = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class StateFeatures:
    """The labels for which each attribute has a weight.

    start : int64[attributes + 1]
        The weights of attribute ``a`` are ``start[a]:start[a + 1]``.
    label : int32[weights]
        The label of each weight.
    """

    start: Int64s
    label: Int32s

    @classmethod
    def observed(cls, rows: SparseRows, truth: Ints, labels: int, lowest: float = 0.0) -> StateFeatures:
        """Find the pairs of attribute and label that occur at least ``lowest`` times."""
        column_start, row, value = _transposed(rows)
        times, amount = np.zeros(labels, dtype=np.int64), np.zeros(labels)
        start = np.zeros(rows.width + 1, dtype=np.int64)
        arguments = (column_start, row, value, truth, float(lowest), times, amount, start)
        pairs = attribute_layout.observed(*arguments, np.zeros(0, dtype=np.int32))
        label = np.zeros(pairs, dtype=np.int32)
        if pairs:
            attribute_layout.observed(*arguments, label)
        return cls(start, label)

    @classmethod
    def all_pairs(cls, attributes: int, labels: int) -> StateFeatures:
        """Give every attribute a weight with every label."""
        start = np.arange(attributes + 1, dtype=np.int64) * labels
        return cls(start, np.tile(np.arange(labels, dtype=np.int32), attributes))

    def __len__(self) -> int:
        return len(self.label)

    @cached_property
    def per_attribute(self) -> Int64s:
        """The number of weights of each attribute."""
        return np.diff(self.start)


@dataclass(frozen=True, eq=False)
class Bundles:
    """Sets of attributes that always occur together, and tokens described by them.

    tokens
        Rows over the attributes and, numbered after them, the bundles.
    contents
        The attributes of each bundle.
    """

    tokens: SparseRows
    contents: SparseRows

    @classmethod
    def none(cls, rows: SparseRows) -> Bundles:
        """Return the tokens unchanged."""
        nothing = SparseRows(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), None, rows.width)
        return cls(rows, nothing)

    @classmethod
    def find(cls, rows: SparseRows, slot: Ints | None) -> Bundles:
        """Look for slots whose attribute is a function of another slot's, and bundle them if that saves work.

        slot : int32[attributes]
            The kind of each attribute; only kinds of which no token has more than one are bundled.
        """
        if slot is None or rows.values is not None or len(rows) == 0:
            return cls.none(rows)
        count = int(slot.max(initial=-1)) + 1
        # slots are mostly empty, so they are not from templates
        if count * len(rows) > 40 * max(rows.n_entries, 1):
            return cls.none(rows)
        code = np.full((count, len(rows)), -1, dtype=np.int32)
        crowded = np.zeros(count, dtype=bool)
        attribute_layout.codes_by_slot(rows.indptr, rows.indices, slot, code, crowded)
        groups = _dependent_slots(code, crowded, slot)
        if not groups:
            return cls.none(rows)
        return _bundled(rows, slot, code, groups)


def _dependent_slots(code: Ints, crowded: Bools, slot: Ints) -> list[tuple[int, list[int]]]:
    """Choose keys and the slots that each determines, starting with the key that saves most entries."""
    tokens = code.shape[1]
    kinds, present = np.bincount(slot, minlength=len(code)), (code >= 0).sum(axis=1)
    image = np.empty(int(slot.size) + 1, dtype=np.int32)

    def depends(candidate: int, key: int) -> bool:
        if kinds[candidate] > kinds[key]:
            return False
        image[:] = attribute_layout.UNSEEN
        return attribute_layout.determines(code[key], code[candidate], image)

    free = [s for s in range(len(code)) if not crowded[s] and kinds[s] > 0]
    keys = [s for s in free if kinds[s] * 4 <= tokens]
    determined = {key: [s for s in free if s != key and depends(s, key)] for key in keys}
    groups: list[tuple[int, list[int]]] = []
    while determined:
        saving = {
            key: int(present[dependents].sum()) - int(kinds[key]) * (len(dependents) + 1)
            for key, dependents in determined.items()
        }
        key = max(saving, key=lambda s: saving[s])
        if saving[key] <= 0:
            break
        taken = {key, *determined[key]}
        groups.append((key, sorted(determined[key])))
        determined = {
            other: [s for s in dependents if s not in taken]
            for other, dependents in determined.items()
            if other not in taken
        }
    return groups


def _bundled(rows: SparseRows, slot: Ints, code: Int32s, groups: list[tuple[int, list[int]]]) -> Bundles:
    """Write each token with a bundle in place of the slots that it covers."""
    covered = np.zeros(len(code), dtype=bool)
    bundle = np.empty((len(groups), len(rows)), dtype=np.int32)
    contents: list[Int32s] = []
    total = rows.width
    for number, (key, dependents) in enumerate(groups):
        covered[[key, *dependents]] = True
        _, first, which = np.unique(code[key], return_index=True, return_inverse=True)
        table = code[[key, *dependents]][:, first].T
        filled = (table >= 0).any(axis=1)  # a token with none of the slots has no bundle either
        bundle[number] = np.where(filled, total + np.arange(len(first)), -1)[which]
        contents.append(table)
        total += len(first)
    size = np.concatenate([(table >= 0).sum(axis=1) for table in contents])
    inside = SparseRows(
        np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        np.concatenate([table[table >= 0] for table in contents]),
        None,
        rows.width,
    )
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    column = np.empty(rows.n_entries, dtype=np.int32)
    attribute_layout.replace_slots(rows.indptr, rows.indices, slot, covered, bundle, start, column)
    return Bundles(SparseRows(start, column[: start[-1]].copy(), None, total), inside)


@dataclass(frozen=True, eq=False)
class WeightLayout:
    """Where the attributes' weights lie while tokens are scored.

    features
        The weights that exist.
    rows : int32[rows]
        The attribute of each row of the table.
    place : int32[attributes]
        Row of the table, or -2 - w for the single weight w, or -1 for an attribute without weights.
    """

    features: StateFeatures
    rows: Int32s
    place: Int32s

    @classmethod
    def of(cls, features: StateFeatures) -> WeightLayout:
        """Give a row to each attribute with several weights."""
        weights = features.per_attribute
        rows = np.flatnonzero(weights > 1).astype(np.int32)
        position = np.where(weights == 1, -2 - features.start[:-1], -1).astype(np.int32)
        position[rows] = np.arange(len(rows), dtype=np.int32)
        return cls(features, rows, position)

    def entries(self, rows: SparseRows, bundles: int = 0) -> Entries:
        """Split the entries of tokens; columns after the attributes are bundles, rows after the rows."""
        beyond = len(self.rows) + np.arange(bundles, dtype=np.int32)
        position = np.concatenate([self.place, beyond]) if bundles else self.place
        value = NOTHING if rows.values is None else rows.values
        count = len(rows) + 1
        dense_start, single_start = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        none = np.zeros(0, dtype=np.int32)
        source = (rows.indptr, rows.indices, value, position, self.features.label)
        attribute_layout.split(
            *source, dense_start, none, NOTHING, single_start, none, none.astype(np.int16), NOTHING
        )
        dense, single = int(dense_start[-1]), int(single_start[-1])
        valued = rows.values is not None
        entries = Entries(
            dense_start,
            np.zeros(dense + AHEAD, dtype=np.int32),
            np.zeros(dense if valued else 0, dtype=np.float32),
            single_start,
            np.zeros(single, dtype=np.int32),
            np.zeros(single, dtype=np.int16),
            np.zeros(single if valued else 0, dtype=np.float32),
        )
        attribute_layout.split(
            *source,
            entries.dense_start,
            entries.dense_column,
            entries.dense_value,
            entries.single_start,
            entries.single_weight,
            entries.single_label,
            entries.single_value,
        )
        return entries

    def members(self, entries: Entries, columns: int) -> Members:
        """Return the same entries by attribute; ``columns`` is the number of table rows and bundles."""
        dense, single = int(entries.dense_start[-1]), len(entries.single_weight)
        column = entries.dense_column[:dense]
        size = np.bincount(column, minlength=columns)
        edges = np.searchsorted(np.cumsum(size), np.linspace(0, dense, SEGMENTS + 1)[1:-1])
        edges = np.concatenate([[0], edges, [columns]]).astype(np.int64)
        blocks = -(-(len(entries.dense_start) - 1) // BLOCK)
        none = np.zeros(0, dtype=np.int32)
        scratch = (np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int32))
        pair_start = np.zeros((blocks, SEGMENTS + 1), dtype=np.int64)
        source = (entries.dense_start, column, entries.dense_value, BLOCK, edges, *scratch, pair_start)
        nothing = (none, none.astype(np.int64), none.astype(np.uint16), NOTHING)
        pairs = attribute_layout.block_members(*source, *nothing)
        pair_column, pair_end = np.zeros(pairs, dtype=np.int32), np.zeros(pairs, dtype=np.int64)
        member = np.zeros(dense, dtype=np.uint16)
        value = np.zeros(len(entries.dense_value), dtype=np.float32)
        if pairs:
            attribute_layout.block_members(*source, pair_column, pair_end, member, value)
        return Members(
            pair_start, pair_column, pair_end, member, value, *self._single_members(entries, single)
        )

    def _single_members(self, entries: Entries, single: int) -> tuple[Ints, Ints, Floats, Ints, Ints]:
        """Sort single entries by weight.

        Return start, token, value, weight and label for each weight that occurs.
        """
        weights, compact = np.unique(entries.single_weight, return_inverse=True)
        start = np.concatenate([[0], np.cumsum(np.bincount(compact, minlength=len(weights)))]).astype(
            np.int64
        )
        token, entry = np.zeros(single, dtype=np.int32), np.zeros(single, dtype=np.int32)
        attribute_layout.transpose(entries.single_start, compact.astype(np.int32), start, token, entry)
        value = entries.single_value[entry] if len(entries.single_value) else NOTHING
        return start, token, value, weights.astype(np.int64), self.features.label[weights].astype(np.int64)


def _transposed(rows: SparseRows) -> tuple[Int64s, Int32s, Floats]:
    """Return where each column begins, the row of each entry in that order, and its value."""
    start = np.concatenate([[0], np.cumsum(np.bincount(rows.indices, minlength=rows.width))]).astype(np.int64)
    row = np.zeros(rows.n_entries, dtype=np.int32)
    entry = np.zeros(0 if rows.values is None else rows.n_entries, dtype=np.int32)
    attribute_layout.transpose(rows.indptr, rows.indices, start, row, entry)
    return start, row, NOTHING if rows.values is None else rows.values[entry]
