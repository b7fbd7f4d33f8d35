"""Candidate pairs of items in the same block, which are tested as they are generated, then sorted and merged.

A pair is a 64-bit word: the two items, the smaller first, and a tag that says which rule found it. The test
is an integer sum, so that its result is the same on every machine. Its inputs are the *columns* of two items,
bytes in which 0 means that the value is missing, and their *masks*, words with a bit for each item of a list.
The join packs eight columns into a word and scores them at once, by the bits of those that are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.types import Int32s, Int64s, UInt8s, UInt64s

Codes = Int32s

TAG_BITS = 12
ITEM_BITS = (64 - TAG_BITS) // 2
RARITY_BITS = 6
NEXT = (1 << RARITY_BITS) - 1  # rarity that marks next neighbors in an order, which have the highest priority
ALWAYS = 255  # weight of pairs with this rarity
SHARED = 4  # number of distinguished counts of shared bits: none, one, two, more

_TAG, _ITEM = np.uint64(TAG_BITS), np.uint64(ITEM_BITS)
_ONE_ITEM = np.uint64((1 << ITEM_BITS) - 1)
_ONE, _BYTE = np.uint64(1), np.uint64(255)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_GATHER = np.uint64(0x0102040810204080)  # multiplier that gathers the lowest bits of eight bytes


@inlined_kernel
def _zero_bytes(word: Any) -> Any:
    """Return a bit mask of the zero bytes of a word, the lowest byte first."""
    high = ~(((word & _LOW_BITS) + _LOW_BITS) | word | _LOW_BITS)
    return ((high >> np.uint64(7)) * _GATHER) >> np.uint64(56)


@inlined_kernel
def _shared_bits(one: Any, two: Any) -> Any:
    """Return 0 if a mask is empty, else one plus the number of shared bits, at most `SHARED`."""
    if one == 0 or two == 0:
        return 0
    both = one & two
    shared = 1
    while both != 0 and shared < SHARED:
        both &= both - _ONE
        shared += 1
    return shared


@inlined_kernel
def _passes(
    records: UInt64s, equal: Codes, missing: Codes, shared: Codes, enough: Codes, first: int, second: int
) -> Any:
    """Return whether the score of two items from their columns and masks reaches the threshold."""
    total = np.int32(0)
    packed = equal.shape[0]
    for w in range(packed):
        none = ((records[first, packed] | records[second, packed]) >> np.uint64(8 * w)) & _BYTE
        same = _zero_bytes(records[first, w] ^ records[second, w]) & ~none
        total = np.int32(total + equal[w, same] + missing[w, none])
        if total < enough[w]:
            return False
    for m in range(shared.shape[0]):
        place = packed + 1 + m
        total = np.int32(total + shared[m, _shared_bits(records[first, place], records[second, place])])
    return total >= enough[packed]


@kernel
def join_blocks(
    item: Codes,
    start: Int64s,
    tag: Codes,
    reach: int,
    sources: Codes,
    records: UInt64s,
    equal: Codes,
    missing: Codes,
    shared: Codes,
    enough: Codes,
    groups: Codes,
    block: int,
    row: int,
    words: UInt64s,
) -> tuple[int, int, int]:
    """Write the pairs of blocks that pass the test, starting at a row of a block, as long as there is room.

    item, start, tag
        The concatenated members of the blocks, the start of each block, and the tag of its pairs.
    reach
        Maximum distance between two members; next neighbors are then tagged as such. 0 for no limit.
    sources
        Leave out pairs of items with the same source; empty to keep all pairs.
    records : uint64[items, words]
        Columns, eight per word; a word with a byte for each of those words, whose bits mark missing columns;
        then the masks. Empty if there is no test.
    equal, missing : int32[packed words, 256]
        Scores for the bit masks of equal columns, and of columns that are missing in either item.
    shared : int32[masks, 1 + SHARED]
        Scores if a mask is empty, and if two masks share no bit, one, two, or more.
    enough : int32[packed words + 1]
        The last entry is the threshold of the score. Before it, for each packed word, the score needed after
        it, because the rest cannot add more.
    groups : int32[rows]
        If given, write instead the pairs that do *not* pass and whose members have the same nonnegative
        group.

    Returns the block and the row at which to continue, and the number of words written; after the last block,
    the block equals the number of blocks.
    """
    count = 0
    within = len(groups) > 0
    while block < len(tag):
        stop = start[block + 1]
        for k in range(row, stop):
            last = stop if reach == 0 else min(stop, k + reach + 1)
            if count + last - k - 1 > len(words):
                return block, k, count
            one = item[k]
            if within and groups[k] < 0:
                continue
            for other in range(k + 1, last):
                if within and groups[k] != groups[other]:
                    continue
                two = item[other]
                if len(sources) and sources[one] == sources[two]:
                    continue
                if _passes(records, equal, missing, shared, enough, one, two) == within:
                    continue
                near = NEXT if reach > 0 and other == k + 1 else 0
                low, high = np.uint64(min(one, two)), np.uint64(max(one, two))
                words[count] = (low << (_TAG + _ITEM)) | (high << _TAG) | np.uint64(tag[block] | near)
                count += 1
        block += 1
        row = stop
    return block, row, count


@kernel
def pair_levels(columns: UInt8s, masks: UInt64s, first: Codes, second: Codes, found: UInt8s) -> None:
    """Write the comparison level of each column and mask for pairs: uint8[pairs, columns + masks]."""
    width = columns.shape[1]
    for k in range(len(first)):
        one, two = first[k], second[k]
        for c in range(width):
            left, right = columns[one, c], columns[two, c]
            found[k, c] = 0 if left == 0 or right == 0 else 2 if left == right else 1
        for m in range(masks.shape[1]):
            found[k, width + m] = _shared_bits(masks[one, m], masks[two, m])


@kernel
def merge_pairs(
    words: UInt64s, first: Codes, second: Codes, weight: UInt8s, pairs: Int64s, new: Int64s
) -> int:
    """Write each pair of the sorted words once; return the number of pairs.

    weight
        The sum of the rarities in the tags of its words, or `ALWAYS` if one of them is `NEXT`.
    pairs, new
        Counts to which are added, for each rule: its distinct pairs, and those that no lower rule found.
    """
    count, place = 0, 0
    while place < len(words):
        pair = words[place] >> _TAG
        total, before, always = np.int64(0), np.int64(-1), False
        while place < len(words) and words[place] >> _TAG == pair:
            tag = np.int64(words[place] & np.uint64((1 << TAG_BITS) - 1))
            rule, rarity = tag >> RARITY_BITS, tag & NEXT
            if rule != before:
                pairs[rule] += 1
                if before < 0:
                    new[rule] += 1
                before = rule
            always |= rarity == NEXT
            total += rarity
            place += 1
        first[count] = np.int32(pair >> _ITEM)
        second[count] = np.int32(pair & _ONE_ITEM)
        weight[count] = np.uint8(ALWAYS if always else min(total, np.int64(ALWAYS - 1)))
        count += 1
    return count
