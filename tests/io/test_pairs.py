"""Self joins of blocks, against pairs made in Python."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorwise.errors import InvalidArgumentError
from factorwise.io import pairs as module
from factorwise.io.pairs import ITEM_BITS, TAG_BITS, BlockRows, PairJoins


def block_rows(blocks, tags):
    block = np.repeat(np.arange(len(blocks)), [len(members) for members in blocks])
    item = np.array([item for members in blocks for item in members], np.int32)
    return BlockRows(block, item, np.asarray(tags, np.int32)[block])


def unpacked(words):
    mask = (1 << ITEM_BITS) - 1
    return [
        (int(w) >> (ITEM_BITS + TAG_BITS), int(w) >> TAG_BITS & mask, int(w) & (1 << TAG_BITS) - 1)
        for w in words
    ]


def joined(joins):
    return [row for words in joins.sorted_pairs() for row in unpacked(words)]


def sizes(blocks):
    return np.array([len(members) for members in blocks], np.int64)


blocks_of_items = st.lists(st.sets(st.integers(0, 30), min_size=2, max_size=8).map(sorted), max_size=6)


@settings(deadline=None, max_examples=12)
@given(blocks_of_items)
def test_blocks_joined_whole_give_every_pair_of_members_with_the_tag_of_the_block(blocks):
    tags = [4_095 - k for k in range(len(blocks))]
    with PairJoins(31) as joins:
        joins.complete(block_rows(blocks, tags), sizes(blocks))
        found = joined(joins)
    assert found == sorted(
        (a, b, tag) for members, tag in zip(blocks, tags, strict=True) for a, b in combinations(members, 2)
    )


@settings(deadline=None, max_examples=12)
@given(blocks_of_items, st.integers(1, 4))
def test_windows_give_the_pairs_that_are_at_most_the_reach_apart(blocks, reach):
    rows = block_rows(blocks, [64 * k for k in range(len(blocks))])
    place = np.arange(len(rows.item)) + rows.block * (reach + 1)
    with PairJoins(31) as joins:
        joins.windowed(rows, place, reach, near_tag=63)
        found = joined(joins)
    assert found == sorted(
        (members[a], members[b], 64 * k + (63 if b - a == 1 else 0))
        for k, members in enumerate(blocks)
        for a, b in combinations(range(len(members)), 2)
        if b - a <= reach
    )


def test_the_largest_items_and_tags_lose_no_bits():
    last = (1 << ITEM_BITS) - 1
    with PairJoins(1 << ITEM_BITS) as joins:
        joins.complete(block_rows([[last - 1, last]], [4_095]), np.array([2]))
        rows = block_rows([[last - 3, last - 2]], [4_032])
        joins.windowed(rows, np.arange(2), 1, near_tag=63)
        assert joined(joins) == [(last - 3, last - 2, 4_095), (last - 1, last, 4_095)]


def test_pairs_of_one_source_are_left_out_if_sources_are_given():
    blocks = [[0, 1, 2, 3]]
    with PairJoins(4, sources=np.array([0, 0, 1, 1])) as joins:
        joins.complete(block_rows(blocks, [7]), sizes(blocks))
        assert joined(joins) == [(0, 2, 7), (0, 3, 7), (1, 2, 7), (1, 3, 7)]
    with PairJoins(4, sources=np.array([0, 0, 1, 1])) as joins:
        joins.windowed(block_rows(blocks, [0]), np.arange(4), 2, near_tag=1)
        assert joined(joins) == [(0, 2, 0), (1, 2, 1), (1, 3, 0)]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_result_is_the_same_in_pieces_on_disk_with_little_memory_and_any_threads(
    monkeypatch, tmp_path, threads
):
    draws = np.random.default_rng(0)
    blocks = [sorted(draws.choice(2_000, 40, replace=False).tolist()) for _ in range(60)]
    rows = block_rows(blocks, np.arange(60))
    place = np.arange(len(rows.item)) + rows.block * 6

    def pairs(**given):
        with PairJoins(2_000, folder=tmp_path, **given) as joins:
            joins.complete(rows, sizes(blocks))
            joins.windowed(rows, place, 5, near_tag=63)
            return [unpacked(words) for words in joins.sorted_pairs()]

    whole = pairs()
    assert len(whole) == 1
    monkeypatch.setattr(module, "AT_ONCE", 2_000)
    pieces = pairs(memory_limit="50MB", threads=threads)
    assert len(pieces) > 5
    assert [row for piece in pieces for row in piece] == whole[0]
    assert all(left[-1][0] < right[0][0] for left, right in pairwise(pieces))


def test_nothing_is_left_in_the_folder_even_after_an_error(tmp_path):
    def interrupted():
        with PairJoins(10, folder=tmp_path) as joins:
            joins.complete(block_rows([[0, 1]], [0]), np.array([2]))
            assert list(Path(tmp_path).iterdir())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(Path(tmp_path).iterdir()) == []


def test_no_blocks_give_no_pairs():
    with PairJoins(0) as joins:
        joins.complete(block_rows([], []), np.zeros(0, np.int64))
        joins.windowed(block_rows([], []), np.zeros(0, np.int64), 3, near_tag=1)
        assert joined(joins) == []


def test_more_items_than_a_word_can_hold_are_refused():
    with pytest.raises(InvalidArgumentError, match="at most"):
        PairJoins((1 << ITEM_BITS) + 1)
