"""The random stream of `factorwise.rng` in compiled code: the same state array and the same numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import inlined


@inlined
def random_bits(state: NDArray[np.uint64]) -> np.uint64:
    """Advance ``state`` in place and return 64 random bits."""
    low = state[0]
    high = state[1]
    total = low + high
    result = ((total << np.uint64(17)) | (total >> np.uint64(47))) + low
    high ^= low
    state[0] = ((low << np.uint64(49)) | (low >> np.uint64(15))) ^ high ^ (high << np.uint64(21))
    state[1] = (high << np.uint64(28)) | (high >> np.uint64(36))
    return result


@inlined
def random_uniform(state: NDArray[np.uint64]) -> float:
    """Draw from [0, 1) with 53 bits."""
    return np.float64(random_bits(state) >> np.uint64(11)) * 2.0**-53


@inlined
def random_below(state: NDArray[np.uint64], bound: int) -> int:
    """Draw an integer from 0 to ``bound - 1``."""
    return np.int64(random_uniform(state) * bound)
