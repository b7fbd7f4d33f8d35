"""Pairs in order, in memory and on disk."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError
from factorwise.io.pairs import PairSorter
from factorwise.kernels.records.pair_joins import ITEM_BITS, TAG_BITS


def some_words(count, seed=0):
    draws = np.random.default_rng(seed)
    pair = draws.integers(0, 200, count, dtype=np.uint64) << np.uint64(ITEM_BITS)
    pair |= draws.integers(200, 400, count, dtype=np.uint64)
    return pair << np.uint64(TAG_BITS) | draws.integers(0, 64, count, dtype=np.uint64)


@pytest.mark.parametrize("at_once", [None, 100_000, 700, 64])
def test_pairs_come_back_in_order_however_few_fit_into_memory(tmp_path, at_once):
    words = some_words(5_000)
    with PairSorter(400, at_once=at_once, folder=tmp_path) as sorter:
        sorter.add(words[:1_000])
        for begin in range(1_000, 5_000, 50):
            room = sorter.room(50)
            assert len(room) >= 50
            room[:50] = words[begin : begin + 50]
            sorter.keep(50)
        assert bool(list(Path(tmp_path).iterdir())) == (at_once in (700, 64))
        stretches = [stretch.copy() for stretch in sorter.sorted_pairs()]
    assert np.concatenate(stretches).tolist() == np.sort(words).tolist()
    shift = np.uint64(TAG_BITS + ITEM_BITS)
    assert all(left[-1] >> shift < right[0] >> shift for left, right in pairwise(stretches))
    assert (len(stretches) > 5) == (at_once in (700, 64))


def test_what_is_gathered_can_be_taken_as_it_came():
    words = some_words(100)
    with PairSorter(400) as sorter:
        sorter.add(words)
        assert sorter.gathered().tolist() == words.tolist()


def test_nothing_is_left_in_the_folder_even_after_an_error(tmp_path):
    def interrupted():
        with PairSorter(400, at_once=10, folder=tmp_path) as sorter:
            sorter.add(some_words(100))
            assert list(Path(tmp_path).iterdir())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(Path(tmp_path).iterdir()) == []


def test_no_words_give_no_pairs():
    with PairSorter(0) as sorter:
        assert list(sorter.sorted_pairs()) == []


def test_more_items_than_a_word_can_hold_are_refused():
    with pytest.raises(InvalidArgumentError, match="at most"):
        PairSorter((1 << ITEM_BITS) + 1)
