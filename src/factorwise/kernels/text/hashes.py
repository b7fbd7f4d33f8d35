"""Hash sums of texts, and sorting of the codes of rows."""

from __future__ import annotations

import numpy as np

from factorwise.kernels.compile.compiler import kernel
from factorwise.types import Int32s, Int64s, UInt8s, UInt64s

BASE = np.uint64(0x9E3779B97F4A7C15)  # base of the polynomial hash; it must be odd
_ONE = np.uint64(1)


@kernel
def sum_letters(start: Int64s, letters: UInt8s, sums: UInt64s) -> None:
    """Write the polynomial hash of each text: the sum of (byte + 1) times ascending powers of the base.

    start
        The first byte of each text, and the end of the last one.
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
