"""A small random number generator that gives the same numbers in plain Python and in compiled code.

Users give a seed or a NumPy ``Generator``. Every chain, shard or round derives a stream of its own
by hashing (seed, keys), so results depend neither on the number of threads nor on the order of work.
The generator is xoroshiro128++ 1.0 of Blackman and Vigna with SplitMix64 for seeding;
`factorwise.kernels.compile.random` draws the same numbers from the same ``state`` array.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import require

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def split_mix(value: int) -> int:
    """Return the SplitMix64 output that follows ``value``: a bijective scrambling of 64 bits."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def split_mix_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply `split_mix` to every word of an array."""
    hashed = words + np.uint64(_GOLDEN)
    hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(hashed ^ (hashed >> np.uint64(31)), np.uint64)


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) & _MASK) | (value >> (64 - bits))


def _folded(value: int) -> int:
    """Hash a number of any length into 64 bits; zero stays zero."""
    word = 0
    while value:
        word = split_mix(word ^ (value & _MASK))
        value >>= 64
    return word


class Stream:
    """A stream of random numbers in two 64-bit words that compiled code can advance too."""

    __slots__ = ("state",)

    state: NDArray[np.uint64]

    def __init__(self, seed: int, *keys: int) -> None:
        require(isinstance(seed, int | np.integer), "seed", seed, "a whole number")
        require(seed >= 0, "seed", seed, "zero or more")
        seed = int(seed)
        word = split_mix(seed & _MASK)
        for part in (_folded(seed >> 64), *keys):
            # adding the key keeps two equal words, of the seed and of a key, from cancelling out
            word = split_mix((word + _GOLDEN) & _MASK ^ split_mix(part & _MASK))
        self.state = np.array([word, split_mix(word)], dtype=np.uint64)

    def bits(self) -> int:
        """Return 64 random bits."""
        low, high = int(self.state[0]), int(self.state[1])
        result = (_rotated((low + high) & _MASK, 17) + low) & _MASK
        high ^= low
        self.state[0] = _rotated(low, 49) ^ high ^ ((high << 21) & _MASK)
        self.state[1] = _rotated(high, 28)
        return result

    def uniform(self) -> float:
        """Draw from [0, 1) with 53 bits."""
        return (self.bits() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """Draw an integer from 0 to ``bound - 1``.

        It multiplies instead of dividing; the bias is less than ``bound`` / 2**53.
        """
        return int(self.uniform() * bound)

    def copy(self) -> Stream:
        """Return a stream that draws the same numbers from here on."""
        twin = Stream(0)
        twin.state[:] = self.state
        return twin


def as_stream(seed: int | np.random.Generator | Stream, *keys: int) -> Stream:
    """Derive the stream for ``keys`` (a chain, a shard, a round) from a seed or a generator."""
    if isinstance(seed, Stream):
        return Stream(seed.bits(), *keys)
    if isinstance(seed, np.random.Generator):
        return Stream(int(seed.integers(0, 2**63)), *keys)
    return Stream(seed, *keys)
