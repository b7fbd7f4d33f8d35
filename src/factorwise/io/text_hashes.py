"""Hashes of texts, the same in every table and in every run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from factorwise.kernels.text.hashes import sum_letters
from factorwise.rng import split_mix_words
from factorwise.types import UInt64s

_TEXTS = 1 << 17  # texts that are hashed at a time


def text_hashes(values: pa.Array) -> UInt64s:
    """Return a hash of each text, the same in every table; that of a missing one is that of an empty one."""
    sums = np.empty(len(values), np.uint64)
    for low in range(0, len(values), _TEXTS):
        texts = values.slice(low, _TEXTS).cast(pa.large_binary())
        _, bounds, letters = texts.buffers()
        start = np.frombuffer(bounds, np.int64, count=len(texts) + 1, offset=8 * texts.offset)
        # copies, because kernels take no arrays that cannot be written to
        part = np.frombuffer(letters if letters is not None else b"", np.uint8)[start[0] : start[-1]].copy()
        sum_letters(start - start[0], part, sums[low : low + _TEXTS])
    return split_mix_words(sums)


def all_differ(values: pa.Array) -> bool:
    """Return whether all of many texts or whole numbers are different; false where this cannot be told."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        words = text_hashes(values)
    elif pa.types.is_integer(values.type):
        words = np.array(values)
    else:
        return False
    words.sort()
    return bool((words[1:] != words[:-1]).all())
