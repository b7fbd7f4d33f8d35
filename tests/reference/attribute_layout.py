"""Sparse rows regrouped from the definitions: a row is a list of its entries, (column, value).

The functions return lists and dictionaries; the kernels write the same into flat arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Entry: TypeAlias = tuple[int, float]
Rows: TypeAlias = Sequence[Sequence[Entry]]


def transpose(rows: Rows, columns: int) -> list[list[tuple[int, int]]]:
    """For each column: the row and the number of each of its entries, in order."""
    numbered = [(row, column) for row, entries in enumerate(rows) for column, _ in entries]
    return [
        [(row, entry) for entry, (row, column) in enumerate(numbered) if column == wanted]
        for wanted in range(columns)
    ]


def observed(rows: Rows, truth: Sequence[int], columns: int, labels: int, lowest: float) -> list[list[int]]:
    """For each column: the labels it is seen with; if ``lowest`` > 0, with values that add up to as much."""

    def is_kept(column: int, label: int) -> bool:
        values = [
            value
            for entries, right in zip(rows, truth, strict=True)
            for other, value in entries
            if other == column and right == label
        ]
        return len(values) > 0 and (lowest <= 0 or sum(values) >= lowest)

    return [[label for label in range(labels) if is_kept(column, label)] for column in range(columns)]


def codes_by_slot(rows: Rows, slot: Sequence[int], slots: int) -> tuple[list[list[int]], list[bool]]:
    """Return the last column that each row has of each slot, -1 if none, and which slots a row has twice."""
    of_slot = [
        [[column for column, _ in entries if slot[column] == wanted] for entries in rows]
        for wanted in range(slots)
    ]
    code = [[columns[-1] if columns else -1 for columns in found] for found in of_slot]
    return code, [any(len(columns) > 1 for columns in found) for found in of_slot]


def determines(key: Sequence[int], other: Sequence[int]) -> bool:
    """Whether rows of the same key always have the same other code."""
    return len(set(zip(key, other, strict=True))) == len(set(key))


def replace_slots(
    rows: Rows, slot: Sequence[int], covered: Sequence[bool], bundle: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return the columns of uncovered slots, then the row's bundles."""
    return [
        [column for column, _ in entries if not covered[slot[column]]]
        + [group[row] for group in bundle if group[row] >= 0]
        for row, entries in enumerate(rows)
    ]


def split(
    rows: Rows, place: Sequence[int], label_of: Sequence[int]
) -> tuple[list[list[Entry]], list[list[tuple[int, int, float]]]]:
    """Return for each row its (table row, value), and its (single weight, label, value)."""
    dense = [[(place[column], value) for column, value in entries if place[column] >= 0] for entries in rows]
    single = [
        [
            (-2 - place[column], label_of[-2 - place[column]], value)
            for column, value in entries
            if place[column] <= -2
        ]
        for entries in rows
    ]
    return dense, single


def block_members(rows: Rows, block_size: int) -> list[dict[int, list[Entry]]]:
    """For each block of rows: its columns in order, each with the rows that have it and their values."""
    blocks = []
    for first in range(0, len(rows), block_size):
        block = rows[first : first + block_size]
        columns = sorted({column for entries in block for column, _ in entries})
        blocks.append(
            {
                wanted: [
                    (row, value)
                    for row, entries in enumerate(block)
                    for column, value in entries
                    if column == wanted
                ]
                for wanted in columns
            }
        )
    return blocks
