"""The total weight of the values that two sets share, for many pairs of sets at a time.

The weights of the first row's values are written to an array, and kept while pairs have the same first row;
then the values of the second row are looked up in it.
"""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Float32s, Int32s, Int64s


@kernel
def set_overlaps(
    offsets: Int64s,
    codes: Int32s,
    weight: Float32s,
    first: Int32s,
    second: Int32s,
    marked: Float32s,
    shared: Float32s,
) -> None:
    """Sum the weights of the values that the rows ``first[k]`` and ``second[k]`` share, into ``shared``.

    offsets, codes
        The values of each row, ascending and unique.
    weight
        The weight of each value.
    marked
        Scratch space with a zero for each value; zeros again afterwards.
    """
    row = -1
    for k in range(len(first)):
        if first[k] != row:
            if row >= 0:
                for place in range(offsets[row], offsets[row + 1]):
                    marked[codes[place]] = 0.0
            row = first[k]
            for place in range(offsets[row], offsets[row + 1]):
                marked[codes[place]] = weight[codes[place]]
        total = np.float32(0.0)
        for place in range(offsets[second[k]], offsets[second[k] + 1]):
            total += marked[codes[place]]
        shared[k] = total
    if row >= 0:
        for place in range(offsets[row], offsets[row + 1]):
            marked[codes[place]] = 0.0


@kernel
def set_overlaps_by_two(
    offsets: Int64s,
    codes: Int32s,
    weights: Float32s,
    first: Int32s,
    second: Int32s,
    marked: Float32s,
    shared: Float32s,
    other_shared: Float32s,
) -> None:
    """Sum two weights of the values that rows share, each like `set_overlaps`, in one pass.

    weights, marked : float32[values, 2]
        Both weights of each value, and scratch space with zeros for them.
    """
    row = -1
    for k in range(len(first)):
        if first[k] != row:
            if row >= 0:
                for place in range(offsets[row], offsets[row + 1]):
                    marked[codes[place], 0] = marked[codes[place], 1] = 0.0
            row = first[k]
            for place in range(offsets[row], offsets[row + 1]):
                marked[codes[place], 0] = weights[codes[place], 0]
                marked[codes[place], 1] = weights[codes[place], 1]
        total, other_total = np.float32(0.0), np.float32(0.0)
        for place in range(offsets[second[k]], offsets[second[k] + 1]):
            total += marked[codes[place], 0]
            other_total += marked[codes[place], 1]
        shared[k] = total
        other_shared[k] = other_total
    if row >= 0:
        for place in range(offsets[row], offsets[row + 1]):
            marked[codes[place], 0] = marked[codes[place], 1] = 0.0
