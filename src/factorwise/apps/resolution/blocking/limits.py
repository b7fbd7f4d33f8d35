"""Count the pairs of blocks, and limit the blocks that are joined whole to keep to the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking.blocks import RecordBlocks, drawn_pairs
from factorwise.apps.resolution.blocking.keys import KeyMaker, share_key
from factorwise.apps.resolution.blocking.rules import Rule
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.types import Ints

_DRAWN = 2_000  # random pairs that are looked up in all rules


class Limits(NamedTuple):
    """Blocks up to ``largest`` are joined whole; in others an item is paired with about ``per_item``."""

    largest: int
    per_item: int


def pair_count(sizes: NDArray[np.int64], limits: Limits | None = None, times: Ints | int = 1) -> int:
    """Return the number of pairs in blocks of these sizes, each of which occurs ``times`` times."""
    return int(np.sum(_pairs(sizes, limits) * times))


def fitting_limits(sizes: Sequence[NDArray[np.int64]], wanted: Limits, budget: int) -> Limits:
    """Lower both limits to the same number until blocks of these sizes have at most ``budget`` pairs.

    Small blocks, whose keys are rare, are the last to be limited.
    """
    different, times = np.unique(np.concatenate([np.zeros(0, np.int64), *sizes]), return_counts=True)

    def lowered(number: int) -> Limits:
        return Limits(min(wanted.largest, number), min(wanted.per_item, number))

    low, high = 2, int(different.max(initial=2))
    if pair_count(different, wanted, times) <= budget:
        return wanted
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if pair_count(different, lowered(middle), times) <= budget else (low, middle)
        )
    return lowered(low)


def overlap(
    normal: NormalTable, rules: Sequence[Rule], blocks: Sequence[RecordBlocks], limits: Limits
) -> float:
    """Estimate the mean number of times that a distinct pair is generated, as rules overlap."""
    weights = [_pairs(found.size, limits).astype(float) for found in blocks]
    totals = np.array([weight.sum() for weight in weights])
    if not totals.sum():
        return 1.0
    shares = np.round(_DRAWN * totals / totals.sum()).astype(int)
    drawn = [
        drawn_pairs(found, weight, int(count), number)
        for number, (found, weight, count) in enumerate(zip(blocks, weights, shares, strict=True))
        if count
    ]
    items, places = np.unique(np.concatenate(drawn), return_inverse=True)
    maker = KeyMaker(normal, items)
    pairs = places.reshape(-1, 2)
    made = sum(share_key(maker.keys(rule), pairs, len(items)).astype(int) for rule in rules)
    return float(1.0 / np.mean(1.0 / np.maximum(made, 1)))


def _pairs(sizes: NDArray[np.int64], limits: Limits | None) -> NDArray[np.int64]:
    whole = sizes * (sizes - 1) // 2
    return whole if limits is None else np.where(sizes <= limits.largest, whole, sizes * limits.per_item // 2)
