"""Pairs of the members of blocks, from the definition."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.records.pair_joins import ALWAYS, ITEM_BITS, NEXT, RARITY_BITS, SHARED, TAG_BITS

Codes = NDArray[np.int32]


def levels_of(columns: NDArray[np.uint8], masks: NDArray[np.uint64], one: int, two: int) -> list[int]:
    """Return which weight of each column and of each mask applies to two items."""
    levels = [
        0 if 0 in (a, b) else 1 + int(a == b)
        for a, b in zip(columns[one].tolist(), columns[two].tolist(), strict=True)
    ]
    for a, b in zip(masks[one].tolist(), masks[two].tolist(), strict=True):
        levels.append(0 if 0 in (a, b) else 1 + min((a & b).bit_count(), SHARED - 1))
    return levels


def pair_levels(
    columns: NDArray[np.uint8],
    masks: NDArray[np.uint64],
    first: Codes,
    second: Codes,
    found: NDArray[np.uint8],
) -> None:
    """Write the levels of each pair."""
    for k, (one, two) in enumerate(zip(first, second, strict=True)):
        found[k] = levels_of(columns, masks, one, two)


def join_blocks(
    item: Codes,
    start: NDArray[np.int64],
    tag: Codes,
    reach: int,
    sources: Codes,
    columns: NDArray[np.uint8],
    weights: Codes,
    masks: NDArray[np.uint64],
    mask_weights: Codes,
    least: int,
    groups: Codes,
) -> list[int]:
    """Return the words of all pairs that pass the test, or do not and are of one group, in their order."""
    words = []
    tables = [*weights.T.tolist(), *mask_weights.T.tolist()]
    for block, (low, high) in enumerate(pairwise(start)):
        for a, b in combinations(range(low, high), 2):
            one, two = int(item[a]), int(item[b])
            if (reach and b - a > reach) or (len(sources) and sources[one] == sources[two]):
                continue
            levels = levels_of(columns, masks, one, two) if tables else []
            passes = sum(table[level] for table, level in zip(tables, levels, strict=True)) >= least
            kept = not passes and groups[one] == groups[two] >= 0 if len(groups) else passes
            if kept:
                near = NEXT if reach and b == a + 1 else 0
                pair = min(one, two) << ITEM_BITS | max(one, two)
                words.append(pair << TAG_BITS | int(tag[block]) | near)
    return words


def merge_pairs(
    words: NDArray[np.uint64],
    first: Codes,
    second: Codes,
    weight: NDArray[np.uint8],
    pairs: NDArray[np.int64],
    new: NDArray[np.int64],
) -> int:
    """Write each pair once, with the sum of its rarities, and count pairs by rule."""
    tags: dict[int, list[int]] = {}
    for word in words.tolist():
        tags.setdefault(word >> TAG_BITS, []).append(word & (1 << TAG_BITS) - 1)
    for k, (pair, met) in enumerate(sorted(tags.items())):
        rules = {tag >> RARITY_BITS for tag in met}
        rarities = [tag & NEXT for tag in met]
        for rule in rules:
            pairs[rule] += 1
        new[min(rules)] += 1
        first[k], second[k] = pair >> ITEM_BITS, pair & (1 << ITEM_BITS) - 1
        weight[k] = ALWAYS if NEXT in rarities else min(sum(rarities), ALWAYS - 1)
    return len(tags)
