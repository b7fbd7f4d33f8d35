"""String similarities for many pairs of rows at a time, on the characters of a column of values.

A column is ``start`` and ``letters``: value ``v`` is ``letters[start[v]:start[v + 1]]``, with characters
numbered from 0 within the column. Rows have the codes of their values, which are negative if missing. Equal
codes give 1, different ones at most 0.999, and a missing value NaN. The string with the smaller code is
always first, so that a pair has the same value in either order.

Implements: hyyro2004bit (the longest common subsequence, 64 characters at a time), zhao2019string (edits with
transpositions in two rows of the table), winkler1990string (Jaro's similarity and the bonus for a prefix).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.types import Float32s, Int32s, Int64s, UInt32s, UInt64s

Codes = Int32s
Letters = UInt32s
Values = Float32s

_ZERO, _ONE, _ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_HIGHEST = np.float32(0.999)  # maximum similarity of different strings
_BITS = 64  # number of bits of a word
_PREFIX, _BONUS, _LEAST = 4, 0.1, 0.7  # prefix length, bonus per letter, and minimum Jaro similarity


@inlined_kernel
def _count_ones(word: Any) -> Any:
    word = word - ((word >> _ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined_kernel
def _lowest_ones(count: int) -> Any:
    """Return a word whose lowest ``count`` bits are one."""
    if count >= _BITS:
        return _ALL
    return (_ONE << np.uint64(max(count, 0))) - _ONE


@inlined_kernel
def _mark_places(letters: Letters, begin: int, length: int, masks: UInt64s, size: int) -> None:
    """Set the bits of the positions of each character of a string, in ``size`` words per character."""
    for place in range(length):
        slot = np.int64(letters[begin + place]) * size + (place >> 6)
        masks[slot] |= _ONE << np.uint64(place & 63)


@inlined_kernel
def _clear_places(letters: Letters, begin: int, length: int, masks: UInt64s, size: int) -> None:
    for place in range(length):
        masks[np.int64(letters[begin + place]) * size + (place >> 6)] = _ZERO


@kernel
def jaro_winkler(
    start: Int64s,
    letters: Letters,
    codes: Codes,
    first: Codes,
    second: Codes,
    masks: UInt64s,
    flags: UInt64s,
    matched: Letters,
    found: Values,
) -> None:
    """Write the Jaro-Winkler similarity of the strings of rows ``first[k]`` and ``second[k]``.

    masks
        Zeros, for each character as many words as the longest string needs bits; zeros again afterwards.
    flags, matched
        Scratch space: as many words, and as many characters as the longest string has.
    """
    for k in range(len(first)):
        low, high = codes[first[k]], codes[second[k]]
        if low < 0 or high < 0 or low == high:
            found[k] = 1.0 if low == high >= 0 else np.nan
            continue
        if low > high:
            low, high = high, low
        one, two = start[low], start[high]
        length, other = start[low + 1] - one, start[high + 1] - two
        if length == 0 or other == 0:
            found[k] = _HIGHEST if length == other else np.float32(0.0)
            continue
        size = (length + 63) >> 6
        reach = max(max(length, other) // 2 - 1, 0)
        _mark_places(letters, one, length, masks, size)
        for word in range(size):
            flags[word] = _ZERO
        common = 0
        for place in range(other):
            begin, end = max(place - reach, 0), min(place + reach + 1, length)
            if begin >= end:
                continue
            base = np.int64(letters[two + place]) * size
            for word in range(begin >> 6, ((end - 1) >> 6) + 1):
                shift = word << 6
                near = _lowest_ones(end - shift) & ~_lowest_ones(begin - shift)
                free = masks[base + word] & near & ~flags[word]
                if free != _ZERO:
                    flags[word] |= free & (~free + _ONE)
                    matched[common] = letters[two + place]
                    common += 1
                    break
        _clear_places(letters, one, length, masks, size)
        if common == 0:
            found[k] = 0.0
            continue
        met, crossed = 0, 0
        for place in range(length):
            if (flags[place >> 6] >> np.uint64(place & 63)) & _ONE:
                crossed += letters[one + place] != matched[met]
                met += 1
        alike = common / length + common / other + (common - crossed // 2) / common
        alike /= 3.0
        if alike > _LEAST:
            prefix = 0
            while prefix < min(_PREFIX, length, other) and letters[one + prefix] == letters[two + prefix]:
                prefix += 1
            alike += prefix * _BONUS * (1.0 - alike)
        found[k] = min(np.float32(alike), _HIGHEST)


@kernel
def common_subsequences(
    start: Int64s,
    letters: Letters,
    codes: Codes,
    first: Codes,
    second: Codes,
    masks: UInt64s,
    rows: UInt64s,
    found: Values,
) -> None:
    """Write twice the length of the longest common subsequence divided by the sum of both lengths.

    masks
        Zeros, for each character as many words as the longest string needs bits; zeros again afterwards.
    rows
        Scratch space, as many words as the longest string needs bits.
    """
    for k in range(len(first)):
        low, high = codes[first[k]], codes[second[k]]
        if low < 0 or high < 0 or low == high:
            found[k] = 1.0 if low == high >= 0 else np.nan
            continue
        one, two = start[low], start[high]
        length, other = start[low + 1] - one, start[high + 1] - two
        if length > other:
            one, two = two, one
            length, other = other, length
        size = (length + 63) >> 6
        _mark_places(letters, one, length, masks, size)
        for word in range(size):
            rows[word] = _ALL
        for place in range(other):
            base = np.int64(letters[two + place]) * size
            carry = _ZERO
            for word in range(size):
                row = rows[word]
                here = row & masks[base + word]
                total = row + here
                more = np.uint64(total < row)
                sum_ = total + carry
                carry = more | np.uint64(sum_ < total)
                rows[word] = sum_ | (row - here)
        _clear_places(letters, one, length, masks, size)
        common = 0
        for word in range(size):
            common += _count_ones(~rows[word] & _lowest_ones(length - (word << 6)))
        both = length + other
        apart = (both - 2 * common) / both if both else 0.0
        percent = np.float32((1.0 - apart) * 100.0)
        found[k] = min(percent / np.float32(100.0), _HIGHEST)


@kernel
def edit_likeness(
    start: Int64s,
    letters: Letters,
    codes: Codes,
    first: Codes,
    second: Codes,
    last_row: Codes,
    table: Codes,
    found: Values,
) -> None:
    """Write one minus the edit distance of the strings of rows, divided by the longer string's length.

    An edit inserts, deletes or replaces a character, or transposes two that become neighbors (unrestricted
    Damerau-Levenshtein distance).

    last_row
        -1 for each character; -1 again afterwards.
    table
        Scratch space, int32[3, longest string + 2].
    """
    for k in range(len(first)):
        low, high = codes[first[k]], codes[second[k]]
        if low < 0 or high < 0 or low == high:
            found[k] = 1.0 if low == high >= 0 else np.nan
            continue
        one, two = start[low], start[high]
        length, other = start[low + 1] - one, start[high + 1] - two
        longest = max(length, other)
        while length and other and letters[one] == letters[two]:
            one, two, length, other = one + 1, two + 1, length - 1, other - 1
        while length and other and letters[one + length - 1] == letters[two + other - 1]:
            length, other = length - 1, other - 1
        if length == 0 or other == 0:
            edits = max(length, other)
        else:
            edits = _count_edits(letters, one, length, two, other, last_row, table)
        found[k] = min(np.float32(1.0 - edits / longest if longest else 1.0), _HIGHEST)


@inlined_kernel
def _count_edits(
    letters: Letters, one: int, length: int, two: int, other: int, last_row: Codes, table: Codes
) -> Any:
    """Return the number of edits between two nonempty strings.

    Rows of the table are shifted by one: entry ``j + 1`` is for ``j`` characters, and entry 0 is infinite.
    """
    far = np.int32(max(length, other) + 1)
    now, before, kept = 0, 1, 2
    for j in range(other + 2):
        table[now, j] = max(j - 1, 0)
        table[before, j] = table[kept, j] = far
    table[now, 0] = far
    for i in range(1, length + 1):
        now, before = before, now
        letter = letters[one + i - 1]
        last_column = -1
        corner = table[now, 1]  # two rows up, in the previous column
        table[now, 1] = i
        exchanged = far
        for j in range(1, other + 1):
            same = letter == letters[two + j - 1]
            least = min(table[before, j] + np.int32(not same), table[now, j] + 1, table[before, j + 1] + 1)
            if same:
                last_column = j
                table[kept, j + 1] = table[before, j - 1]
                exchanged = corner
            else:
                above = last_row[letters[two + j - 1]]
                if j - last_column == 1:
                    least = min(least, table[kept, j + 1] + (i - above))
                elif i - above == 1:
                    least = min(least, exchanged + (j - last_column))
            corner = table[now, j + 1]
            table[now, j + 1] = least
        last_row[letter] = i
    for i in range(length):
        last_row[letters[one + i]] = -1
    return np.int64(table[now, other + 1])
