"""Sums over attributes and over tokens from the definition, entry by entry.

A token has dense entries, (row of the table, value), and single ones, (weight, label, value).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Numbers: TypeAlias = Sequence[float]
Table: TypeAlias = Sequence[Numbers]
Dense: TypeAlias = Sequence[Sequence[tuple[int, float]]]
Single: TypeAlias = Sequence[Sequence[tuple[int, int, float]]]


def expand(
    start: Sequence[int], label: Sequence[int], rows: Sequence[int], weights: Numbers, columns: int
) -> list[list[float]]:
    """Return a row for each attribute of ``rows``: its weights in their columns, zero elsewhere."""
    return [
        [
            sum(weights[w] for w in range(start[attribute], start[attribute + 1]) if label[w] == column)
            for column in range(columns)
        ]
        for attribute in rows
    ]


def collect(
    start: Sequence[int], label: Sequence[int], rows: Sequence[int], table: Table
) -> dict[int, float]:
    """Return the number in the table for each weight that has a place in it."""
    return {
        weight: table[row][label[weight]]
        for row, attribute in enumerate(rows)
        for weight in range(start[attribute], start[attribute + 1])
    }


def sum_rows(
    dense: Dense, single: Single, table: Table, weights: Numbers, base: Numbers
) -> list[list[float]]:
    """Return for each token ``base`` plus the rows and single weights of its entries."""
    return [
        [
            base[column]
            + sum(value * table[row][column] for row, value in rows)
            + sum(value * weights[weight] for weight, label, value in singles if label == column)
            for column in range(len(base))
        ]
        for rows, singles in zip(dense, single, strict=True)
    ]


def sum_members(dense: Dense, source: Table, rows: int, columns: int) -> list[list[float]]:
    """Return for each row of the table the sum of the source rows of the tokens that have it."""
    return [
        [
            sum(
                value * source[token][column]
                for token, entries in enumerate(dense)
                for row, value in entries
                if row == wanted
            )
            for column in range(columns)
        ]
        for wanted in range(rows)
    ]


def sum_single_members(single: Single, source: Table) -> dict[int, float]:
    """Return for each single weight that occurs what its tokens have in its column, added up."""
    total: dict[int, float] = {}
    for token, entries in enumerate(single):
        for weight, label, value in entries:
            total[weight] = total.get(weight, 0.0) + value * source[token][label]
    return total
