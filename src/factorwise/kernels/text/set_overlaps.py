"""What two sets of weighted values share, for many pairs of sets at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import kernel


@kernel
def set_overlaps(
    offsets: NDArray[np.int64],
    codes: NDArray[np.int32],
    weight: NDArray[np.float32],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    shared: NDArray[np.float32],
) -> None:
    """Sum the weights of the values that the rows ``first[k]`` and ``second[k]`` share, into ``shared``.

    offsets, codes
        The values of each row, ascending and each once.
    weight
        Of each value.
    """
    for k in range(len(first)):
        a, a_end = offsets[first[k]], offsets[first[k] + 1]
        b, b_end = offsets[second[k]], offsets[second[k] + 1]
        total = np.float32(0.0)
        while a < a_end and b < b_end:
            left, right = codes[a], codes[b]
            if left == right:
                total += weight[left]
            a += left <= right
            b += right <= left
        shared[k] = total


@kernel
def set_overlaps_by_two(
    offsets: NDArray[np.int64],
    codes: NDArray[np.int32],
    weight: NDArray[np.float32],
    other_weight: NDArray[np.float32],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    shared: NDArray[np.float32],
    other_shared: NDArray[np.float32],
) -> None:
    """Sum two weights of the values that rows share, each as `set_overlaps` does, in one pass."""
    for k in range(len(first)):
        a, a_end = offsets[first[k]], offsets[first[k] + 1]
        b, b_end = offsets[second[k]], offsets[second[k] + 1]
        total, other_total = np.float32(0.0), np.float32(0.0)
        while a < a_end and b < b_end:
            left, right = codes[a], codes[b]
            if left == right:
                total += weight[left]
                other_total += other_weight[left]
            a += left <= right
            b += right <= left
        shared[k] = total
        other_shared[k] = other_total
