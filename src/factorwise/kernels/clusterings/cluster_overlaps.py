"""Overlaps of counted values between two clusters, for many pairs of clusters at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import kernel


@kernel
def cluster_overlaps(
    start: NDArray[np.int64],
    value: NDArray[np.int32],
    count: NDArray[np.int32],
    other_start: NDArray[np.int64],
    other_value: NDArray[np.int32],
    other_count: NDArray[np.int32],
    weight: NDArray[np.float64],
    base: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    inside: bool,
    gains: bool,
    overlap: NDArray[np.float64],
) -> None:
    """Write the overlap of row ``first[k]`` with row ``second[k]`` of the others to ``overlap[k]``.

    start, value, count
        The values of each row, ascending and each once, with their counts.
    other_start, other_value, other_count
        The same for the rows that ``second`` names.
    weight, base
        For each value: a weight, and its share of all values, which is the base of an urn.
    inside
        Whether the first row is a part of the second one and must be subtracted from it.
    gains
        Whether to compute the gains in an urn, which take long; otherwise they stay zero.
    overlap : float64[pairs, 4]
        Products of counts; weights of the shared values; the gain of sharing them in an urn; and weights of
        the values that the second row has only from the first.
    """
    for k in range(len(first)):
        a, a_end = start[first[k]], start[first[k] + 1]
        b, b_end = other_start[second[k]], other_start[second[k] + 1]
        agree, shared, gain, lost = 0.0, 0.0, 0.0, 0.0
        while a < a_end and b < b_end:
            left, right = value[a], other_value[b]
            if left == right:
                x, y = float(count[a]), float(other_count[b])
                if inside:
                    y -= x
                if y > 0.0:
                    agree += x * y
                    shared += weight[left]
                    if gains:
                        p = base[left]
                        both = math.lgamma(p + x + y) + math.lgamma(p)
                        gain += both - math.lgamma(p + x) - math.lgamma(p + y)
                else:
                    lost += weight[left]
            a += left <= right
            b += right <= left
        overlap[k, 0], overlap[k, 1], overlap[k, 2], overlap[k, 3] = agree, shared, gain, lost
