"""Sums that texts are hashed by, and codes in order within rows, from the definition."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

BASE = 0x9E3779B97F4A7C15


def sum_letters(start: NDArray[np.int64], letters: NDArray[np.uint8], sums: NDArray[np.uint64]) -> None:
    """Sum the bytes of each text, each one larger, times the powers of the base from the first on."""
    for k, (low, high) in enumerate(pairwise(start.tolist())):
        text = letters[low:high].tolist()
        total = sum((byte + 1) * pow(BASE, place, 1 << 64) for place, byte in enumerate(text, 1))
        sums[k] = total % (1 << 64)


def sort_rows(offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    """Put the codes of each row in order."""
    for low, high in pairwise(offsets.tolist()):
        codes[low:high] = sorted(codes[low:high].tolist())
