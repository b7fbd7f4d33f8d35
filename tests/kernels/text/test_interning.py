"""Tables of strings in arrays against dictionaries."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.text import interning
from factorwise.kernels.text.interning import PADDING
from reference import interning as reference

# Lengths on both sides of one, two and three words, and bytes that look like ends and flags.
strings = st.lists(
    st.one_of(
        st.binary(max_size=3),
        st.sampled_from(
            [b"", b"\0", b"\0\0", b"\x80\x01", b"1234567", b"12345678", b"123456789", b"x" * 16, b"x" * 17]
        ),
        st.integers(0, 40).map(lambda length: b"ab\0" * 14 + b"z" * length),
    ),
    max_size=200,
)


def readable(data):
    array = np.frombuffer(data + bytes(PADDING), dtype=np.uint8)
    assert not array.flags.writeable
    return array


def laid_out(parts, gap):
    """The strings one after another with ``gap`` bytes of something else between them."""
    data = b"".join(part + b"#" * gap for part in parts)
    ends = np.cumsum([len(part) + gap for part in parts], dtype=np.int64) - gap
    return readable(data), ends


def empty_table(room, length, slots):
    return np.zeros(slots, np.uint64), np.zeros(length + PADDING, np.uint8), np.zeros(room + 1, np.int64)


def interned(parts, table, known, gap):
    data, ends = laid_out(parts, gap)
    codes = np.empty(len(parts), np.int32)
    known = interning.intern_segments(data, 0, ends, gap, *table, known, codes)
    return codes.tolist(), known


def found(parts, table, gap):
    data, ends = laid_out(parts, gap)
    codes = np.empty(len(parts), np.int32)
    interning.find_segments(data, 0, ends, gap, *table, codes)
    return codes.tolist()


@given(strings, strings, strings, st.integers(0, 2))
def test_strings_are_numbered_in_the_order_in_which_a_dictionary_meets_them(first, second, asked, gap):
    table = empty_table(400, 64 * 400, 512)
    plain = {}
    codes, known = interned(first, table, 0, gap)
    assert codes == reference.intern_segments(first, plain)
    codes, known = interned(second, table, known, gap)
    assert codes == reference.intern_segments(second, plain)
    assert known == len(plain)
    assert found(asked, table, gap) == reference.find_segments(asked, plain)
    text, offsets = table[1], table[2]
    kept = [text[offsets[code] : offsets[code + 1]].tobytes() for code in range(known)]
    assert kept == list(plain)


def test_an_almost_full_table_still_finds_everything_and_nothing_else():
    parts = [str(number).encode() for number in range(255)]
    table = empty_table(255, 1_000, 256)
    codes, known = interned(parts, table, 0, 1)
    assert codes == list(range(255)) == found(parts, table, 1)
    assert known == 255
    assert set(found([b"-" + part for part in parts], table, 1)) == {-1}


def test_strings_with_equal_hash_tags_are_told_apart_by_their_text():
    """All slots get the tag of the string asked for, so that only the comparison of texts can tell."""
    slots, text, offsets = empty_table(8, 100, 16)
    parts = [b"one", b"two", b"three"]
    interned(parts, (slots, text, offsets), 0, 0)
    for asked in [b"two", b"tow", b"three!", b"thre", b"onetwo", b""]:
        lone = empty_table(1, 100, 16)
        interned([asked], lone, 0, 0)
        home = int(np.flatnonzero(lone[0])[0])
        tag = lone[0][home] >> np.uint64(32) << np.uint64(32)
        crowded = np.zeros(16, np.uint64)
        for step in range(3):
            crowded[(home + step) % 16] = tag | np.uint64(step + 1)
        expected = parts.index(asked) if asked in parts else -1
        assert found([asked], (crowded, text, offsets), 0) == [expected]
        codes, known = interned([asked], (crowded, text.copy(), offsets.copy()), 3, 0)
        assert (codes, known) == (([expected], 3) if asked in parts else ([3], 4))


@given(st.binary(max_size=60), st.integers(0, 60))
def test_separators_are_found_where_they_are(data, room):
    expected = reference.segment_ends(data)
    ends = np.full(room, -1, np.int64)
    padded = np.frombuffer(data + bytes(PADDING), dtype=np.uint8)
    assert interning.segment_ends(padded[: len(data)], ends) == len(expected)
    assert ends[: len(expected)].tolist() == expected[:room]
    assert (ends[len(expected) :] == -1).all()


def test_a_byte_of_one_after_a_zero_is_no_separator():
    data = readable(b"\0\1\1\0\1\x80\x81\0")
    ends = np.empty(8, np.int64)
    assert interning.segment_ends(data[:-PADDING], ends) == 3
    assert ends[:3].tolist() == [0, 3, 7]


@given(st.lists(st.lists(st.integers(-1, 3), max_size=4), max_size=8))
def test_unknown_entries_leave_no_gap(rows):
    codes = np.array([code for row in rows for code in row], dtype=np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    kept = interning.keep_known(codes, indptr)
    expected = reference.keep_known(rows)
    assert [codes[a:b].tolist() for a, b in pairwise(indptr)] == expected
    assert kept == sum(map(len, expected))


@st.composite
def template_cases(draw):
    width = draw(st.integers(1, 3))
    values = st.lists(st.integers(-1, 2), min_size=width, max_size=width)
    sentences = draw(st.lists(st.lists(values, min_size=1, max_size=5), max_size=4))
    flags = draw(st.lists(st.booleans(), min_size=width, max_size=width))
    part = st.tuples(st.integers(0, width - 1), st.integers(-3, 3))
    templates = draw(st.lists(st.lists(part, max_size=3), min_size=1, max_size=4))
    return sentences, flags, templates


@given(template_cases())
def test_keys_of_attributes_are_those_of_the_definition(case):
    sentences, flags, templates = case
    tokens = sum(map(len, sentences))
    parts = [part for template in templates for part in template]
    values = np.array([token for sentence in sentences for token in sentence], dtype=np.int32)
    keys = np.zeros(tokens * (len(templates) + len(parts)) + 4, np.int32)
    ends = np.empty(tokens * len(templates), np.int64)
    indptr = np.full(tokens + 1, -1, np.int64)
    count = interning.template_keys(
        values.reshape(tokens, len(flags)),
        np.array(flags),
        np.cumsum([0, *map(len, sentences)], dtype=np.int64),
        np.cumsum([0, *map(len, templates)], dtype=np.int64),
        np.array([value for value, _ in parts], dtype=np.int32),
        np.array([offset for _, offset in parts], dtype=np.int32),
        keys,
        ends,
        indptr,
    )
    bounds = np.concatenate([[0], ends[:count] // 4])
    made = [tuple(keys[bounds[entry] : bounds[entry + 1]].tolist()) for entry in range(count)]
    rows = [made[a:b] for a, b in pairwise(indptr)]
    assert rows == reference.template_keys(sentences, flags, templates)
