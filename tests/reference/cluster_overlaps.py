"""What two clusters share, from the definition."""

from __future__ import annotations

from math import lgamma

import numpy as np
from numpy.typing import NDArray


def cluster_overlaps(
    first: dict[int, int], second: dict[int, int], weight: NDArray[np.float64], base: NDArray[np.float64]
) -> list[float]:
    """Return the first three sums of the kernel, from the counts of the values of two clusters."""
    shared = sorted(set(first) & set(second))
    return [
        sum(first[value] * second[value] for value in shared),
        sum(weight[value] for value in shared),
        urn(merged(first, second), base) - urn(first, base) - urn(second, base),
    ]


def merged(first: dict[int, int], second: dict[int, int]) -> dict[int, int]:
    """Return the counts of two clusters together."""
    return {value: first.get(value, 0) + second.get(value, 0) for value in {*first, *second}}


def urn(counts: dict[int, int], base: NDArray[np.float64]) -> float:
    """Return the part of the log probability of draws from an urn that depends on which values they are."""
    return sum(lgamma(base[value] + count) - lgamma(base[value]) for value, count in counts.items())
