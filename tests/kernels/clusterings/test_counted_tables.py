"""Tables of counts against dictionaries."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from factorwise.kernels.clusterings.counted_tables import (
    EMPTY,
    ENTRY,
    KNOWN,
    MATES,
    SIZE,
    SLOT,
    SPARE,
    SPLITTABLE,
    VALUE,
    CountArrays,
    CountWeights,
    ValueArrays,
    count_down,
    count_members,
    count_of,
    count_up,
    lay_out_values,
)
from factorwise.kernels.compile.compiler import exposed
from factorwise.kernels.compile.streams import seed_stream
from factorwise.rng import Stream
from reference import counted_tables as reference

up, down, how_many = exposed(count_up), exposed(count_down), exposed(count_of)
seeded = exposed(seed_stream)


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=120), st.integers(3, 5))
def test_a_table_counts_like_a_dictionary(changes, bits):
    slots = np.zeros((1 << bits) + 3, SLOT)
    slots["cluster"] = EMPTY
    start, shift = 2, 64 - bits
    counts = Counter()
    for cluster, more in changes:
        if more and (cluster in counts or len(counts) < (1 << bits) // 2):
            assert up(slots, start, shift, cluster) == counts[cluster]
            counts[cluster] += 1
        elif counts[cluster]:
            down(slots, start, shift, cluster)
            counts[cluster] -= 1
        counts += Counter()  # drops what has come down to zero
        table = slots[start : start + (1 << bits)]
        kept = {int(slot["cluster"]): int(slot["count"]) for slot in table if slot["cluster"] != EMPTY}
        assert kept == counts
        assert all(how_many(slots, start, shift, other) == counts[other] for other, _ in changes)
    assert (slots["cluster"][[0, 1, -1]] == EMPTY).all()


@st.composite
def worlds(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    n, columns = sum(sizes), draw(st.integers(0, 4))
    codes = draw(st.lists(st.integers(0, 3), min_size=n * columns, max_size=n * columns))
    keys = sorted(draw(st.lists(st.integers(0, 2), min_size=columns, max_size=columns)))
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    block = np.repeat(np.arange(len(sizes)), sizes)
    labels = [int(start[b]) + draw(st.integers(0, int(sizes[b]) - 1)) for b in block]
    known = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return np.array(codes, np.int32).reshape(n, columns), np.array(keys, np.uint8), start, labels, known


def laid_out(codes, keys, start, known):
    n = len(codes)
    first, slot_start = np.zeros(n + 1, np.int64), np.zeros(len(start), np.int64)
    entries = np.zeros(codes.size, ENTRY)
    slots = lay_out_values(codes, keys, start, slot_start, np.zeros(256, VALUE), first, entries)
    of = np.repeat(np.arange(len(start) - 1), np.diff(start)).astype(np.int32)
    bits = np.array(known, np.uint32)
    return ValueArrays(start, slot_start, of, first, entries[: first[-1]], bits), slots


@given(worlds())
def test_values_have_a_table_where_two_items_of_a_block_share_them(world):
    codes, keys, start, _, known = world
    v, slots = laid_out(codes, keys, start, known)
    expected = reference.lay_out_values(codes.tolist(), keys.tolist(), start.tolist())
    tables = {}
    for position, own in enumerate(expected):
        found = v.entries[v.first[position] : v.first[position + 1]]
        assert sorted(found["key"].tolist()) == sorted(key for _, key, _ in own)
        for value in own:
            candidates = {
                int(e["start"]) for e in found if e["key"] == value[1]
            }  # a value has one table, whoever asks
            tables[value] = tables.get(value, candidates) & candidates
    starts = [next(iter(found)) for found in tables.values() if len(found) == 1]
    having = Counter(value for own in expected for value in own)
    assert all(tables.values())
    assert len(set(starts)) == len(starts)
    assert slots == v.slot_start[-1]
    capacity = {int(e["start"]): 1 << (64 - int(e["shift"])) for e in v.entries}
    assert sum(capacity.values()) == slots
    assert all(capacity[next(iter(found))] >= 2 * having[v] for v, found in tables.items() if len(found) == 1)


@given(worlds())
def test_members_are_counted_and_scored(world):
    codes, keys, start, labels, known = world
    v, slots = laid_out(codes, keys, start, known)
    n = len(labels)
    c = CountArrays(
        labels=np.array(labels, np.int32),
        clusters=np.zeros((n, KNOWN + 2), np.int32),
        slots=np.zeros(slots, SLOT),
        spare=np.zeros(n, np.int32),
        blocks=np.zeros((len(start) - 1, 2), np.int64),
    )
    c.slots["cluster"] = EMPTY
    w = CountWeights(np.array([1.5, -0.5, 0.25]), np.array([-2.0, 3.0]), 0.125, 10.0, 0.5)
    scores = np.zeros(len(start) - 1)
    count_members(v, c, w, scores, 0, len(start) - 1)
    values = reference.lay_out_values(codes.tolist(), keys.tolist(), start.tolist())
    counts = reference.count_members(values, labels)
    assert sorted(c.slots["count"][c.slots["cluster"] != EMPTY].tolist()) == sorted(counts.values())
    members = {label: [i for i in range(n) if labels[i] == label] for label in labels}
    expected = sum(10.0 + (0.5 if len(own) == 1 else 0.0) for own in members.values())
    for own in members.values():
        pairs = [(i, j) for i in own for j in own if i < j]
        expected += 0.125 * len(pairs)
        expected += sum(w.equal[key] for i, j in pairs for _, key, _ in values[i] & values[j])
        expected += sum(w.conflict[k] for i, j in pairs for k in (0, 1) if known[i] & known[j] & (1 << k))
    assert np.isclose(scores.sum(), expected)
    for label, own in members.items():
        assert c.clusters[label, SIZE] == len(own)
        assert c.clusters[label, MATES] == np.bitwise_xor.reduce(own)
    unused = sorted(set(range(n)) - set(members))
    spare = [c.spare[start[b] : start[b] + c.blocks[b, SPARE]] for b in range(len(start) - 1)]
    assert sorted(np.concatenate(spare).tolist()) == unused
    assert c.blocks[:, SPLITTABLE].sum() == sum(len(own) > 1 for own in members.values())


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_streams_are_seeded_in_compiled_code_as_in_python(seed, key):
    state = np.zeros(2, np.uint64)
    seeded(state, np.uint64(seed), key)
    np.testing.assert_array_equal(state, Stream(seed, key).state)
