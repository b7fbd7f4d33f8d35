"""Texts and sets of values as they are stored: sums that texts are hashed by, and codes in order."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Int32s, Int64s, UInt8s, UInt64s

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd: sums of its powers tell texts apart
_ONE = np.uint64(1)


@kernel
def sum_letters(start: Int64s, letters: UInt8s, sums: UInt64s) -> None:
    """Write for each text the sum of its bytes, each one larger, times ascending powers of the base.

    start
        Where each text begins among the bytes of all, and where the last one ends.
    """
    for k in range(len(sums)):
        total, power = np.uint64(0), BASE
        for place in range(start[k], start[k + 1]):
            total += (np.uint64(letters[place]) + _ONE) * power
            power *= BASE
        sums[k] = total


@kernel
def sort_rows(offsets: Int64s, codes: Int32s) -> None:
    """Sort the codes ``offsets[r]:offsets[r + 1]`` of each row, in place."""
    for r in range(len(offsets) - 1):
        low, high = offsets[r], offsets[r + 1]
        gap = 1
        while gap < (high - low) // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for k in range(low + gap, high):
                code, at = codes[k], k
                while at - gap >= low and codes[at - gap] > code:
                    codes[at] = codes[at - gap]
                    at -= gap
                codes[at] = code
            gap //= 3
