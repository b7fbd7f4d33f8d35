"""Map byte strings to codes in order of first appearance, thousands at a time.

A table of strings consists of three arrays. ``text`` holds the concatenated strings, ``offsets`` the start of
each and the end of the last one, and ``slots`` is a hash table with linear probing: the upper half of a slot
is the upper half of a hash, its lower half the code plus one; zero is a free slot. There must always be one.

Strings are given as segments of one byte array, ``data``: the first begins at ``begin``, each ends where
``ends`` says, and the next begins ``gap`` bytes later. Words of eight bytes are read without checking the
length of the string, so `PADDING` bytes must follow the strings, in ``data`` and in ``text``.

Looking up one string after another would wait for memory three times each: for the slot, the offset and the
text. Here, the strings of a batch are hashed first, then all slots are prefetched, and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from factorwise.kernels.compile.compiler import inlined_kernel, kernel
from factorwise.types import Bools, Int32s, Int64s, UInt8s, UInt64s

PADDING = 16
UNKNOWN = -1

_WORD = 8
_BATCH = 64
_HALF = np.uint64(32)
_CODE = np.uint64(0xFFFF_FFFF)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_FIRST_FACTOR, _NEXT_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(0xD6E8_FEB8_6659_FD93)
_LOW_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)

Codes = Int32s


def _instruction(generate: Any) -> Any:
    """Make a processor instruction available in kernels; they call it without the first argument."""
    return intrinsic(generate)


def _place(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any) -> Any:
    """Return a pointer of type ``kind`` to ``array[position]``."""
    view = context.make_array(signature.args[0])(context, builder, arguments[0])
    position = context.cast(builder, arguments[1], signature.args[1], types.int64)
    return builder.bitcast(builder.gep(view.data, [position]), kind.as_pointer())


@_instruction
def _word_at(typing_context: Any, array: Any, position: Any) -> Any:
    """Load eight bytes from ``array[position]`` on, without bounds checks."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature, arguments, ir.IntType(64)), align=1)

    return types.uint64(array, position), code


@_instruction
def _ask_for(typing_context: Any, array: Any, position: Any) -> Any:
    """Prefetch ``array[position]``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        reading, keep_near, as_data = (ir.Constant(number, setting) for setting in (0, 3, 1))
        place = _place(context, builder, signature, arguments, ir.IntType(8))
        builder.call(fetch, [place, reading, keep_near, as_data])
        return context.get_dummy_value()

    return types.void(array, position), code


@_instruction
def _lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the number of trailing zero bits."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


@inlined_kernel
def _first_bytes(word: Any, length: int) -> Any:
    """Keep the first ``length`` bytes of a word: all if it has fewer, none if ``length`` is negative."""
    return word & _FIRST_BYTES[min(max(length, 0), _WORD)]


@inlined_kernel
def _hash(data: UInt8s, begin: int, length: int) -> Any:
    """Return the hash of a string, without branches up to 16 bytes: lengths are hard to predict."""
    mixed = (_first_bytes(_word_at(data, begin), length) ^ np.uint64(length)) * _FIRST_FACTOR
    mixed ^= mixed >> _HALF
    mixed = (mixed ^ _first_bytes(_word_at(data, begin + _WORD), length - _WORD)) * _NEXT_FACTOR
    mixed ^= mixed >> _HALF
    done = 2 * _WORD
    while done < length:
        mixed = (mixed ^ _first_bytes(_word_at(data, begin + done), length - done)) * _NEXT_FACTOR
        mixed ^= mixed >> _HALF
        done += _WORD
    mixed *= _FIRST_FACTOR
    return mixed ^ (mixed >> _HALF)


@inlined_kernel
def _equal(data: UInt8s, begin: int, length: int, text: UInt8s, offset: int) -> bool:
    """Return whether the strings of ``length`` bytes at ``data[begin]`` and ``text[offset]`` are equal."""
    differing = _first_bytes(_word_at(data, begin) ^ _word_at(text, offset), length)
    second = _word_at(data, begin + _WORD) ^ _word_at(text, offset + _WORD)
    differing |= _first_bytes(second, length - _WORD)
    done = 2 * _WORD
    while done < length:
        word = _word_at(data, begin + done) ^ _word_at(text, offset + done)
        differing |= _first_bytes(word, length - done)
        done += _WORD
    return differing == _ZERO


@inlined_kernel
def _is_code(data: UInt8s, begin: int, length: int, text: UInt8s, offsets: Int64s, code: int) -> bool:
    offset = offsets[code]
    return offsets[code + 1] - offset == length and _equal(data, begin, length, text, offset)


@inlined_kernel
def _probe(
    data: UInt8s, begin: int, length: int, mixed: Any, slots: UInt64s, text: UInt8s, offsets: Int64s
) -> Any:
    """Return the code of a string; if it is not in the table, minus one minus the number of its free slot."""
    mask = np.uint64(len(slots) - 1)
    slot = mixed & mask
    while True:
        content = slots[slot]
        if content == _ZERO:
            return -1 - np.int64(slot)
        if content >> _HALF == mixed >> _HALF:
            code: Any = np.int64(content & _CODE) - 1
            if _is_code(data, begin, length, text, offsets, code):
                return code
        slot = (slot + _ONE) & mask


@inlined_kernel
def _likely_codes(
    data: UInt8s,
    begin: int,
    ends: Int64s,
    gap: int,
    slots: UInt64s,
    text: UInt8s,
    offsets: Int64s,
    mixed: UInt64s,
    begins: Int64s,
    codes: Codes,
) -> int:
    """Hash a batch of strings and write the first code with a matching tag, `UNKNOWN` if there is none.

    ``mixed`` and ``begins`` get the hashes and the starts. The texts to compare with are prefetched. Returns
    where the next batch begins.
    """
    mask = np.uint64(len(slots) - 1)
    for index in range(len(ends)):
        mixed[index] = _hash(data, begin, ends[index] - begin)
        begins[index] = begin
        begin = ends[index] + gap
        _ask_for(slots, mixed[index] & mask)
    for index in range(len(ends)):
        slot = mixed[index] & mask
        content = slots[slot]
        while content != _ZERO and content >> _HALF != mixed[index] >> _HALF:
            slot = (slot + _ONE) & mask
            content = slots[slot]
        code: Any = np.int64(content & _CODE) - 1
        _ask_for(offsets, max(code, 0))
        codes[index] = code
    for index in range(len(ends)):
        _ask_for(text, offsets[max(codes[index], 0)])
    return begin


@kernel
def segment_ends(data: UInt8s, ends: Int64s) -> int:
    """Write the positions of the zero bytes of ``data``, as far as ``ends`` has room; return their number.

    `PADDING` bytes that are not counted must follow ``data`` in memory.
    """
    count = 0
    for position in range(0, len(data), _WORD):
        word = _word_at(data, position)
        zeros = ~(((word & _LOW_BITS) + _LOW_BITS) | word | _LOW_BITS)  # the top bit of each zero byte
        while zeros != _ZERO:
            end = position + (_lowest_bit(zeros) >> 3)
            if end >= len(data):
                break
            if count < len(ends):
                ends[count] = end
            count += 1
            zeros &= zeros - _ONE
    return count


@inlined_kernel
def _code_segments(
    data: UInt8s,
    begin: int,
    ends: Int64s,
    gap: int,
    slots: UInt64s,
    text: UInt8s,
    offsets: Int64s,
    known: int,
    codes: Codes,
    grow: bool,
) -> int:
    """Write the code of each string; strings that are not in the table are `UNKNOWN`, or added to it."""
    mixed = np.empty(_BATCH, dtype=np.uint64)
    begins = np.empty(_BATCH, dtype=np.int64)
    for base in range(0, len(ends), _BATCH):
        batch, likely = ends[base : base + _BATCH], codes[base : base + _BATCH]
        begin = _likely_codes(data, begin, batch, gap, slots, text, offsets, mixed, begins, likely)
        for index in range(len(batch)):
            code: Any = np.int64(likely[index])
            length = batch[index] - begins[index]
            if code >= 0 and _is_code(data, begins[index], length, text, offsets, code):
                continue
            if code < 0 and not grow:
                continue
            code = _probe(data, begins[index], length, mixed[index], slots, text, offsets)
            if code < 0 and grow:  # it was not added earlier in this batch either
                slots[-1 - code] = ((mixed[index] >> _HALF) << _HALF) | np.uint64(known + 1)
                offset = offsets[known]
                for byte in range(length):
                    text[offset + byte] = data[begins[index] + byte]
                offsets[known + 1] = offset + length
                code = known
                known += 1
            likely[index] = max(code, UNKNOWN)
    return known


@kernel
def find_segments(
    data: UInt8s,
    begin: int,
    ends: Int64s,
    gap: int,
    slots: UInt64s,
    text: UInt8s,
    offsets: Int64s,
    codes: Codes,
) -> None:
    """Write the code of each string to ``codes``, `UNKNOWN` for those that are not in the table."""
    _code_segments(data, begin, ends, gap, slots, text, offsets, 0, codes, False)


@kernel
def intern_segments(
    data: UInt8s,
    begin: int,
    ends: Int64s,
    gap: int,
    slots: UInt64s,
    text: UInt8s,
    offsets: Int64s,
    known: int,
    codes: Codes,
) -> int:
    """Write the code of each string to ``codes``, adding new ones to the table; return the table's new size.

    ``known`` is the number of strings in the table. It must have room for all strings, in case all are new.
    """
    return _code_segments(data, begin, ends, gap, slots, text, offsets, known, codes, True)


@kernel
def keep_known(codes: Codes, indptr: Int64s) -> int:
    """Remove `UNKNOWN` entries from compressed rows, in place; return the number of remaining entries."""
    kept = 0
    begin = indptr[0]
    for row in range(len(indptr) - 1):
        end = indptr[row + 1]
        for entry in range(begin, end):
            if codes[entry] != UNKNOWN:
                codes[kept] = codes[entry]
                kept += 1
        begin = end
        indptr[row + 1] = kept
    return kept


@kernel
def template_keys(
    values: Int32s,
    flags: Bools,
    start: Int64s,
    part_start: Int64s,
    part_value: Codes,
    part_offset: Codes,
    keys: Codes,
    ends: Int64s,
    indptr: Int64s,
) -> int:
    """Write the key of each attribute of each token, token by token, with templates in order.

    values : int32[tokens, values]
        Codes of the values of each token; `UNKNOWN` where there is none.
    flags : bool[values]
        Which values are flags; these are `UNKNOWN` outside the sentence. All others have special codes
        there: ``-2 d`` at distance ``d`` before the first token, ``-2 d - 1`` at ``d`` after the last.
    start : int64[sentences + 1]
        Sentence ``s`` has the tokens ``start[s]:start[s + 1]``, counted from the first row of ``values``.
    part_start, part_value, part_offset
        Template ``t`` has the parts ``part_start[t]:part_start[t + 1]``, each a column of ``values`` and an
        offset from the token.
    keys, ends, indptr
        Output: the template and the codes of its parts; the end of each key, in bytes; the entries of each
        token. A template with an `UNKNOWN` part gives no attribute.

    Returns the number of attributes.
    """
    count = 0
    cursor = 0
    indptr[0] = 0
    for sentence in range(len(start) - 1):
        first, stop = start[sentence], start[sentence + 1]
        for token in range(first, stop):
            for template in range(len(part_start) - 1):
                begin = cursor
                keys[cursor] = template
                cursor += 1
                for part in range(part_start[template], part_start[template + 1]):
                    position = token + part_offset[part]
                    column = part_value[part]
                    if position < first:
                        code = UNKNOWN if flags[column] else -2 * (first - position)
                    elif position >= stop:
                        code = UNKNOWN if flags[column] else -2 * (position - stop + 1) - 1
                    else:
                        code = np.int64(values[position, column])
                    if code == UNKNOWN:
                        cursor = begin
                        break
                    keys[cursor] = code
                    cursor += 1
                if cursor > begin:
                    ends[count] = 4 * cursor
                    count += 1
            indptr[token + 1] = count
    return count
