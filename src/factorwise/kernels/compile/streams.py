"""Seeding a stream inside compiled loops: the same state as `factorwise.rng.Stream` of a seed and a key."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import inlined

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@inlined
def split_mix(value: np.uint64) -> np.uint64:
    """Return the SplitMix64 output that follows ``value``."""
    value = value + _GOLDEN
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))


@inlined
def seed_stream(state: NDArray[np.uint64], seed: np.uint64, key: int) -> None:
    """Set ``state`` to that of ``Stream(seed, key)``, for a seed of 64 bits."""
    word = split_mix(seed)
    word = split_mix((word + _GOLDEN) ^ split_mix(np.uint64(0)))  # what lies beyond the 64 bits: nothing
    word = split_mix((word + _GOLDEN) ^ split_mix(np.uint64(key)))
    state[0] = word
    state[1] = split_mix(word)
