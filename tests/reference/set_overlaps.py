"""What two sets share, from the definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def set_overlaps(
    offsets: NDArray[np.int64],
    codes: NDArray[np.int32],
    weight: NDArray[np.float32],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    shared: NDArray[np.float32],
) -> None:
    """Sum the weights of the values that two rows share, for each pair of rows."""
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        one = set(codes[offsets[a] : offsets[a + 1]].tolist())
        two = set(codes[offsets[b] : offsets[b + 1]].tolist())
        shared[k] = sum((weight[value] for value in sorted(one & two)), start=np.float32(0.0))


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
    """Sum either weight by itself."""
    set_overlaps(offsets, codes, weight, first, second, shared)
    set_overlaps(offsets, codes, other_weight, first, second, other_shared)
