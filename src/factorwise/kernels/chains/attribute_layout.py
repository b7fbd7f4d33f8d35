"""Arrange the entries of a sparse matrix for the kernels of `attribute_rows`, once before training."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Bools, Floats, Ints

UNSEEN = -2


@kernel
def transpose(indptr: Ints, indices: Ints, column_start: Ints, row: Ints, entry: Ints) -> None:
    """Transpose compressed rows: list the ``row`` (int32) and the ``entry`` number of each column's entries.

    ``column_start`` (int64[columns + 1]) holds the start of each column; it is changed and restored.
    ``entry`` may be empty.
    """
    for at in range(len(indptr) - 1):
        for position in range(indptr[at], indptr[at + 1]):
            column = indices[position]
            place = column_start[column]
            row[place] = at
            if len(entry) > 0:
                entry[place] = position
            column_start[column] = place + 1
    for column in range(len(column_start) - 1, 0, -1):
        column_start[column] = column_start[column - 1]
    column_start[0] = 0


@kernel
def observed(
    column_start: Ints,
    row: Ints,
    value: Floats,
    truth: Ints,
    lowest: float,
    times: Ints,
    amount: Floats,
    feature_start: Ints,
    feature_label: Ints,
) -> int:
    """Find the labels that occur with each column; return the number of pairs.

    lowest
        If above zero, a pair is kept only if its values add up to at least this.
    times : int64[labels], amount : float64[labels]
        Scratch space, all zero.
    feature_label
        The labels of each column, in order; not written if empty, so that a first call can count.
    """
    found = 0
    for column in range(len(column_start) - 1):
        feature_start[column] = found
        lowest_label, highest_label = len(amount), -1
        for place in range(column_start[column], column_start[column + 1]):
            label = truth[row[place]]
            if label >= 0:
                times[label] += 1
                amount[label] += value[place] if len(value) > 0 else 1.0
                lowest_label, highest_label = min(lowest_label, label), max(highest_label, label)
        for label in range(lowest_label, highest_label + 1):
            if times[label] > 0 and (lowest <= 0.0 or amount[label] >= lowest):
                if len(feature_label) > 0:
                    feature_label[found] = label
                found += 1
            times[label] = 0
            amount[label] = 0.0
    feature_start[len(column_start) - 1] = found
    return found


@kernel
def codes_by_slot(indptr: Ints, indices: Ints, slot: Ints, code: Ints, crowded: Bools) -> None:
    """Write the column of each row in each slot to ``code`` (int32[slots, rows], initially -1).

    ``crowded`` (bool[slots]) marks slots in which some row has more than one column.
    """
    for row in range(len(indptr) - 1):
        for position in range(indptr[row], indptr[row + 1]):
            column = indices[position]
            which = slot[column]
            if code[which, row] >= 0:
                crowded[which] = True
            code[which, row] = column


@kernel
def determines(key: Ints, other: Ints, image: Ints) -> bool:
    """Return whether ``other`` is a function of ``key``; codes start at -1, and ``image`` gets the function.

    ``image`` (int32[codes + 1]), which is indexed by code plus one, must be UNSEEN everywhere at first.
    """
    for row in range(len(key)):
        known = image[key[row] + 1]
        if known == UNSEEN:
            image[key[row] + 1] = other[row]
        elif known != other[row]:
            return False
    return True


@kernel
def replace_slots(
    indptr: Ints, indices: Ints, slot: Ints, covered: Bools, bundle: Ints, start: Ints, column: Ints
) -> None:
    """Copy the rows without the columns of covered slots, then add each row's ``bundle``.

    ``bundle`` is int32[groups, rows], -1 where a row has none.
    """
    done = 0
    for row in range(len(indptr) - 1):
        for position in range(indptr[row], indptr[row + 1]):
            if not covered[slot[indices[position]]]:
                column[done] = indices[position]
                done += 1
        for group in range(len(bundle)):
            if bundle[group, row] >= 0:
                column[done] = bundle[group, row]
                done += 1
        start[row + 1] = done


@kernel
def split(
    indptr: Ints,
    indices: Ints,
    value: Floats,
    place: Ints,
    single_label_of: Ints,
    dense_start: Ints,
    dense_column: Ints,
    dense_value: Floats,
    single_start: Ints,
    single_weight: Ints,
    single_label: Ints,
    single_value: Floats,
) -> None:
    """Split the entries of each row into those with a row of weights and those with a single weight.

    place : int32[columns]
        Row of the table; or -2 - w for the single weight w; or -1 for a column without weights.

    Lists with room are written; for empty lists, entries are only counted.
    """
    dense = single = 0
    for row in range(len(indptr) - 1):
        for position in range(indptr[row], indptr[row + 1]):
            where = place[indices[position]]
            if where >= 0:
                if len(dense_column) > 0:
                    dense_column[dense] = where
                    if len(dense_value) > 0:
                        dense_value[dense] = value[position]
                dense += 1
            elif where < -1:
                if len(single_weight) > 0:
                    single_weight[single] = -2 - where
                    single_label[single] = single_label_of[-2 - where]
                    if len(single_value) > 0:
                        single_value[single] = value[position]
                single += 1
        dense_start[row + 1] = dense
        single_start[row + 1] = single


@kernel
def block_members(
    start: Ints,
    column: Ints,
    value: Floats,
    block_size: int,
    edges: Ints,
    count: Ints,
    touched: Ints,
    pair_start: Ints,
    pair_column: Ints,
    pair_end: Ints,
    member: NDArray[np.uint16],
    member_value: Floats,
) -> int:
    """Regroup compressed rows as members of columns, in blocks of rows; return the number of pairs.

    edges : int64[segments + 1]
        The start of each segment of columns, and the number of columns.
    count : int64[columns], touched : int32[columns]
        Scratch space; ``count`` all zero.
    pair_column
        If it is empty, nothing is written, so that a first call can count.
    """
    rows = len(start) - 1
    pairs = 0
    done = 0
    for block in range((rows + block_size - 1) // block_size):
        first, last = block * block_size, min(rows, (block + 1) * block_size)
        distinct = 0
        for position in range(start[first], start[last]):
            where = column[position]
            if count[where] == 0:
                touched[distinct] = where
                distinct += 1
            count[where] += 1
        if len(pair_column) > 0:
            ordered = np.sort(touched[:distinct])
            segment = 0
            for index in range(distinct):
                where = ordered[index]
                while edges[segment] <= where:
                    pair_start[block, segment] = pairs + index
                    segment += 1
                pair_column[pairs + index] = where
                size = count[where]
                count[where] = done
                done += size
                pair_end[pairs + index] = done
            while segment < len(edges):
                pair_start[block, segment] = pairs + distinct
                segment += 1
            for row in range(first, last):
                for position in range(start[row], start[row + 1]):
                    where = count[column[position]]
                    member[where] = row - first
                    if len(member_value) > 0:
                        member_value[where] = value[position]
                    count[column[position]] = where + 1
        for index in range(distinct):
            count[touched[index]] = 0
        pairs += distinct
    return pairs
