"""Tables of counts against dictionaries."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.clusterings.counts import (
    BITS,
    EMPTY,
    add_count,
    clear_slots,
    count_of,
    empty_slots,
    table_bits,
    take_count,
)
from factorwise.kernels.compile.compiler import lean_kernel
from factorwise.kernels.walks.layouts import WalkRecords


@lean_kernel
def compiled_add(slots, start, shift, cluster, amount):
    return add_count(slots, start, shift, cluster, amount)


@lean_kernel
def compiled_take(slots, start, shift, cluster, amount):
    return take_count(slots, start, shift, cluster, amount)


@lean_kernel
def compiled_count(slots, start, shift, cluster):
    return count_of(slots, start, shift, cluster)


@lean_kernel
def compiled_clear(slots):
    clear_slots(slots)


CHANGES = st.lists(st.tuples(st.integers(0, 2**31 - 1) | st.integers(0, 30), st.integers(-5, 5)), max_size=80)


@given(CHANGES, st.integers(3, 5), st.booleans())
def test_a_table_counts_like_a_dictionary(changes, bits, compiled):
    slots = empty_slots((1 << bits) + 3)
    given_slots = slots if compiled else WalkRecords(slots)
    add = compiled_add if compiled else add_count
    take = compiled_take if compiled else take_count
    how_many = compiled_count if compiled else count_of
    start, shift = 2, BITS - bits
    counts = Counter()
    for cluster, change in changes:
        if change > 0 and (cluster in counts or len(counts) < (1 << bits) // 2):
            assert add(given_slots, start, shift, cluster, change) == counts[cluster]
            counts[cluster] += change
        elif change < 0 and counts[cluster] >= -change:
            assert take(given_slots, start, shift, cluster, -change) == counts[cluster]
            counts[cluster] += change
        counts += Counter()  # drops what has come down to zero
        table = slots[start : start + (1 << bits)]
        kept = {int(slot["cluster"]): int(slot["count"]) for slot in table if slot["cluster"] != EMPTY}
        assert kept == counts
        assert (table["count"][table["cluster"] == EMPTY] == 0).all()
        assert all(how_many(given_slots, start, shift, other) == counts[other] for other, _ in changes)
    assert (slots["cluster"][[0, 1, -1]] == EMPTY).all()
    (compiled_clear if compiled else clear_slots)(given_slots)
    np.testing.assert_array_equal(slots, empty_slots(len(slots)))


def test_tables_have_at_least_twice_as_many_slots_as_items():
    holders = np.arange(1, 5_000)
    capacity = 1 << table_bits(holders)
    assert (capacity >= 2 * holders).all()
    assert (capacity < np.maximum(4 * holders, 5)).all()
