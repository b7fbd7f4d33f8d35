"""Counts per cluster and value, from the definition: dictionaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

Value = tuple[int, int, int]  # block, key, code


def lay_out_values(
    codes: Sequence[Sequence[int]], column_key: Sequence[int], block_start: Sequence[int]
) -> list[set[Value]]:
    """Return the values of the item at each position that another item of its block has, too."""
    values: list[set[Value]] = []
    for block, (lo, hi) in enumerate(pairwise(block_start)):
        values += [
            {(block, key, code) for key, code in zip(column_key, row, strict=True) if code > 0}
            for row in codes[lo:hi]
        ]
    having = Counter(value for own in values for value in own)
    return [{value for value in own if having[value] > 1} for own in values]


def count_members(values: Sequence[set[Value]], labels: Sequence[int]) -> Counter[tuple[int, Value]]:
    """Return how many members of each cluster have each value."""
    return Counter((label, value) for label, own in zip(labels, values, strict=True) for value in own)
