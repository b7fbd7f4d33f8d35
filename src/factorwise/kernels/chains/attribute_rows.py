"""Sums of attribute rows over tokens, and of token rows over attributes: the sparse part of a chain CRF.

An attribute seen with several labels has a row of weights, with one column per label, in a dense table. An
attribute seen with one label only (most rare words and pairs of words) has a single weight. A token's scores
are the sum of the rows of its attributes, plus its single weights in their columns.

The transposed sums, from token rows to attribute rows, process blocks of tokens, so that the rows that are
read stay in the cache. Within a block, the members of each attribute are contiguous.

Shared by the kernels:

groups
    The number of groups of eight columns per row, as a tuple (`rows.groups_of`).
table : float32 or float64[rows, columns]
    Rows of weights.
dense_start, dense_column, dense_value
    Compressed rows of indices into ``table``; without values if all are 1. ``dense_column`` ends with
    AHEAD additional entries that are only prefetched.
single_start, single_weight, single_label, single_value
    Compressed rows of indices of single weights, with the column of each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.chains.rows import (
    Groups,
    Row,
    add_scaled,
    load_row,
    prefetch_row,
    store_row,
    zero_row,
)
from factorwise.kernels.compile.compiler import hot, lean_kernel
from factorwise.types import Floats, Ints

AHEAD = 12  # number of entries between prefetching a row and reading it


class Entries(NamedTuple):
    """The attributes of each token (or of each bundle of attributes), as compressed rows."""

    dense_start: Ints
    dense_column: Ints
    dense_value: Floats
    single_start: Ints
    single_weight: Ints
    single_label: Ints
    single_value: Floats


class Tokens(NamedTuple):
    """Sentences of tokens with their attributes, and the weights that score them.

    start : int64[sentences + 1]
        Tokens of sentence ``s`` are ``start[s]:start[s + 1]``.
    table : real[rows, columns]
        Rows of weights.
    unit : real[labels, columns]
        The identity matrix, padded.
    weights : float64[weights]
        The vector that contains the single weights.
    base : real[4, columns]
        Initial scores of a token: row 0 inside a sentence, 1 at its first token, 2 at its last token, 3 for
        a token that is both. Zero, or FORBIDDEN for labels that are not allowed there and in the padding.
    """

    start: Ints
    entries: Entries
    table: Floats
    unit: Floats
    weights: Floats
    base: Floats


class Members(NamedTuple):
    """The transpose of the entries: the tokens of each attribute, in blocks of tokens.

    pair_start : int64[blocks, segments + 1]
        The pairs of block ``b`` that belong to segment ``s`` of the columns.
    pair_column : int32[pairs]
        The row of the table that a pair belongs to.
    pair_end : int64[pairs]
        The end of its members; they begin at the end of the previous pair.
    member : uint16[entries]
        Token number within the block.
    value : float32[entries] or empty
    single_start, single_token, single_value
        The tokens of each single weight.
    single_place, single_label : int64[singles]
        Its index in the weight vector, and its column.
    """

    pair_start: Ints
    pair_column: Ints
    pair_end: Ints
    member: NDArray[np.uint16]
    value: Floats
    single_start: Ints
    single_token: Ints
    single_value: Floats
    single_place: Ints
    single_label: Ints


@hot
def row_total(
    groups: Groups, entries: Entries, table: Floats, unit: Floats, weights: Floats, row: int, total: Row
) -> Row:
    """Return ``total`` plus the rows and single weights of one token; ``unit`` is the identity matrix."""
    begin, end = entries.dense_start[row], entries.dense_start[row + 1]
    if len(entries.dense_value) == 0:
        for entry in range(begin, end):
            prefetch_row(groups, table, entries.dense_column[entry + AHEAD])
            total = total + load_row(groups, table, entries.dense_column[entry])
    else:
        for entry in range(begin, end):
            prefetch_row(groups, table, entries.dense_column[entry + AHEAD])
            total = add_scaled(total, entries.dense_value[entry], table, entries.dense_column[entry])
    for entry in range(entries.single_start[row], entries.single_start[row + 1]):
        amount = weights[entries.single_weight[entry]]
        if len(entries.single_value) > 0:
            amount *= entries.single_value[entry]
        total = add_scaled(total, amount, unit, entries.single_label[entry])
    return total


@lean_kernel
def expand(
    feature_start: Ints,
    feature_label: Ints,
    rows: Ints,
    first: int,
    last: int,
    weights: Floats,
    table: Floats,
) -> None:
    """Write the weights of attributes into rows ``first`` to ``last`` of the table.

    ``rows`` (int32) holds the attribute of each row; ``feature_start`` holds where an attribute's weights
    begin, ``feature_label`` the column of each weight.
    """
    for row in range(first, last):
        table[row] = 0.0
        attribute = rows[row]
        for feature in range(feature_start[attribute], feature_start[attribute + 1]):
            table[row, feature_label[feature]] = weights[feature]


@lean_kernel
def collect(
    feature_start: Ints,
    feature_label: Ints,
    rows: Ints,
    first: int,
    last: int,
    table: Floats,
    gradient: Floats,
) -> None:
    """Copy rows ``first`` to ``last`` of a table back into a vector with one number per weight."""
    for row in range(first, last):
        attribute = rows[row]
        for feature in range(feature_start[attribute], feature_start[attribute + 1]):
            gradient[feature] = table[row, feature_label[feature]]


@lean_kernel
def sum_rows(groups: Groups, tokens: Tokens, first: int, last: int, offset: int, out: Floats) -> None:
    """Write the scores of tokens ``first`` to ``last`` into ``out``, starting at row ``offset + first``.

    Each starts from row 0 of ``base``. ``out`` may be the table itself if the rows do not overlap.
    """
    for row in range(first, last):
        total = load_row(groups, tokens.base, 0)
        total = row_total(groups, tokens.entries, tokens.table, tokens.unit, tokens.weights, row, total)
        store_row(out, offset + row, total)


@lean_kernel
def sum_members(
    groups: Groups,
    members: Members,
    source: Floats,
    offset: int,
    block_size: int,
    first: int,
    last: int,
    out: Floats,
) -> None:
    """Add the members' rows of ``source`` to the rows of ``out``, for segments ``first`` to ``last``.

    The members' rows of ``source`` begin at ``offset``.
    """
    for block in range(len(members.pair_start)):
        base = offset + block * block_size
        begin, stop = members.pair_start[block, first], members.pair_start[block, last]
        at = members.pair_end[begin - 1] if begin > 0 else 0
        for pair in range(begin, stop):
            column = members.pair_column[pair]
            total = zero_row(groups, out)  # not the sum so far: adding small numbers first is more accurate
            end = members.pair_end[pair]
            if len(members.value) == 0:
                for entry in range(at, end):
                    total = total + load_row(groups, source, base + members.member[entry])
            else:
                for entry in range(at, end):
                    value = members.value[entry]
                    total = add_scaled(total, value, source, base + members.member[entry])
            store_row(out, column, load_row(groups, out, column) + total)
            at = end


@lean_kernel
def sum_single_members(
    members: Members, source: Floats, offset: int, first: int, last: int, gradient: Floats
) -> None:
    """Add to the gradient of single weights ``first`` to ``last`` the entries of their tokens and column."""
    for single in range(first, last):
        label = members.single_label[single]
        total = 0.0
        for entry in range(members.single_start[single], members.single_start[single + 1]):
            amount = source[offset + members.single_token[entry], label]
            if len(members.single_value) > 0:
                amount *= members.single_value[entry]
            total += amount
        gradient[members.single_place[single]] += total
