"""Pairs of blocks as they are made, tested and merged, against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.apps.resolution.blocking.filters import (
    Signatures,
    pack_signatures,
    packed_weights,
    sums_needed,
)
from factorwise.apps.resolution.blocking.joins import PairTest
from factorwise.kernels.records.pair_joins import (
    ITEM_BITS,
    SHARED,
    TAG_BITS,
    join_blocks,
    merge_pairs,
    pair_levels,
)
from reference import pair_joins as reference

N = 12
BLOCKS = st.lists(
    st.permutations(range(N)).flatmap(lambda p: st.integers(2, 8).map(lambda k: p[:k])), max_size=5
)


def drawn(seed, columns, masks):
    draws = np.random.default_rng(seed)
    return (
        draws.integers(0, 4, (N, columns)).astype(np.uint8),
        draws.integers(-9, 9, (3, columns)).astype(np.int32),
        draws.integers(0, 16, (N, masks)).astype(np.uint64),
        draws.integers(-9, 9, (1 + SHARED, masks)).astype(np.int32),
    )


@settings(deadline=None, max_examples=60)
@given(BLOCKS, st.integers(0, 3), st.booleans(), st.booleans(), st.integers(0, 99), st.integers(8, 40))
def test_pairs_that_pass_are_those_of_the_definition_however_little_room_there_is(
    blocks, reach, apart, grouped, seed, room
):
    item = np.array([each for block in blocks for each in block], np.int32)
    start = np.cumsum([0, *map(len, blocks)]).astype(np.int64)
    tag = (np.arange(len(blocks)) * 64 + 5).astype(np.int32)
    columns, weights, masks, mask_weights = drawn(seed, seed % 19, seed % 3)
    sources = np.arange(N, dtype=np.int32) % 3 if apart else np.zeros(0, np.int32)
    groups = np.arange(N, dtype=np.int32) % 3 - 1 if grouped else np.zeros(0, np.int32)
    packed = (
        pack_signatures(Signatures(columns, masks)),
        *packed_weights(weights.T.tolist()),
        mask_weights.T.copy(),
        sums_needed(weights.T.tolist(), mask_weights.T.tolist(), 2),
    )
    rows = (item, start, tag, reach, sources)
    found, block, row = [], 0, 0
    while block < len(blocks):
        words = np.empty(room, np.uint64)
        block, row, count = join_blocks(
            *rows, *packed, groups[item] if grouped else groups, block, row, words
        )
        found += words[:count].tolist()
    assert found == reference.join_blocks(*rows, columns, weights, masks, mask_weights, 2, groups)


@settings(deadline=None)
@given(st.integers(0, 999))
def test_levels_of_pairs_are_those_of_the_definition(seed):
    columns, _, masks, _ = drawn(seed, 3, 2)
    first, second = np.random.default_rng(seed).integers(0, N, (2, 9)).astype(np.int32)
    found, expected = np.full((2, 9, 5), 99, np.uint8)
    pair_levels(columns, masks, first, second, found)
    reference.pair_levels(columns, masks, first, second, expected)
    assert found.tolist() == expected.tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(5, 9), st.integers(0, 255)), max_size=30))
def test_merged_pairs_are_those_of_the_definition(met):
    words = [(a << ITEM_BITS | b) << TAG_BITS | tag for a, b, tag in met]
    words = np.sort(np.array(words, np.uint64))
    results = []
    for merge in (merge_pairs, reference.merge_pairs):
        first, second = np.zeros((2, len(words)), np.int32)
        weight, counts = np.zeros(len(words), np.uint8), np.zeros((2, 4), np.int64)
        count = merge(words, first, second, weight, *counts)
        results.append([count, first.tolist(), second.tolist(), weight.tolist(), counts.tolist()])
    assert results[0] == results[1]


@pytest.mark.parametrize("reach", [0, 1])
def test_the_largest_items_and_tags_lose_no_bits(reach):
    last = (1 << ITEM_BITS) - 1
    words = np.empty(2, np.uint64)
    item, start = np.array([last, last - 1], np.int32), np.array([0, 2], np.int64)
    tag = np.array([4_095 if reach == 0 else 4_032], np.int32)
    assert join_blocks(item, start, tag, reach, *PairTest.of_sources(), 0, 0, words) == (1, 2, 1)
    assert int(words[0]) == ((last - 1) << ITEM_BITS | last) << TAG_BITS | 4_095
