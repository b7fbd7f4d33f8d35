"""Pairs of items, looked up from either end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class BothEnds(NamedTuple):
    """Given pairs by item.

    start, neighbor, pair : int64[n + 1], int64[2 pairs], int64[2 pairs]
        The pairs of item i are at ``start[i]`` to ``start[i + 1]``: the other item, and which pair it is.
    """

    start: NDArray[np.int64]
    neighbor: NDArray[np.int64]
    pair: NDArray[np.int64]


def both_ends(n_items: int, pairs: NDArray[np.int64]) -> BothEnds:
    """List ``pairs``, int64[pairs, 2], from both ends."""
    both = np.concatenate([pairs[:, 0], pairs[:, 1]])
    order = np.argsort(both, kind="stable")
    start = np.zeros(n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(both, minlength=n_items), out=start[1:])
    other = np.concatenate([pairs[:, 1], pairs[:, 0]])[order]
    return BothEnds(start, other, np.concatenate([np.arange(len(pairs))] * 2)[order])
