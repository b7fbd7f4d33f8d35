"""The characters of a column of strings, encoded as numbers for compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.variables.sparse_rows import starts_of

_ASCII = 128
_WORD = 64  # bits in a machine word, each for one character


@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """The characters of distinct strings, concatenated.

    start : int64[strings + 1]
        Start of each string in ``letters``.
    letters : uint32[characters]
        Codes below ``n_letters``, equal for equal characters.
    longest
        Number of characters in the longest string.
    """

    start: NDArray[np.int64]
    letters: NDArray[np.uint32]
    n_letters: int
    longest: int

    @property
    def n_words(self) -> int:
        """Number of machine words that hold one bit per character of the longest string."""
        return max(1, -(-self.longest // _WORD))

    @classmethod
    def of(cls, values: pa.Array) -> Letters:
        """Encode the characters of strings; missing strings count as empty."""
        texts = values.fill_null("") if values.null_count else values
        lengths = np.asarray(pc.utf8_length(texts), np.int64)
        start, n_letters = starts_of(lengths), _ASCII
        if int(start[-1]) == (pc.sum(pc.binary_length(texts)).as_py() or 0):
            letters = _bytes_of(texts).astype(np.uint32)
        else:
            text = "".join(texts.to_pylist()).encode("utf-32-le")
            points = np.frombuffer(text, np.uint32)
            seen = np.zeros(int(points.max()) + 1, bool)
            seen[points] = True
            letters = (np.cumsum(seen, dtype=np.uint32) - np.uint32(1))[points]
            n_letters = int(seen.sum())
        return cls(start, letters, n_letters, int(lengths.max(initial=0)))


def _bytes_of(texts: pa.Array) -> NDArray[np.uint8]:
    """Return the concatenated bytes of strings."""
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, bounds, data = texts.buffers()
    if data is None or not len(texts):
        return np.zeros(0, np.uint8)
    ends = np.frombuffer(bounds, kind, count=texts.offset + len(texts) + 1)[texts.offset :]
    return np.frombuffer(data, np.uint8)[int(ends[0]) : int(ends[-1])]
