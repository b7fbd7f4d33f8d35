"""Sums that texts are hashed by, and codes in order, against the definition."""

import numpy as np
import pyarrow as pa

import reference.hashes
from factorwise.io.text_hashes import all_differ, text_hashes
from factorwise.kernels.text.hashes import sort_rows, sum_letters
from factorwise.rng import split_mix_words

TEXTS = ["", "a", "aa", "Müller", "x" * 300, "a"]


def test_texts_are_summed_letter_by_letter():
    letters = np.frombuffer("".join(TEXTS).encode(), np.uint8).copy()
    start = np.append(0, np.cumsum([len(text.encode()) for text in TEXTS]))
    sums, expected = np.empty((2, len(TEXTS)), np.uint64)
    sum_letters(start, letters, sums)
    reference.hashes.sum_letters(start, letters, expected)
    assert sums.tolist() == expected.tolist()
    values = pa.array(["before", *TEXTS, None]).slice(1)
    hashes = text_hashes(values)
    assert hashes.tolist() == split_mix_words(np.append(sums, np.uint64(0))).tolist()
    assert hashes[1] == hashes[5]
    assert len(set(hashes.tolist())) == len(TEXTS) - 1


def test_codes_are_sorted_within_their_rows_only():
    draws = np.random.default_rng(3)
    offsets = np.append(0, np.cumsum(draws.integers(0, 90, 50)))
    codes = draws.integers(0, 1000, offsets[-1]).astype(np.int32)
    expected = codes.copy()
    sort_rows(offsets, codes)
    reference.hashes.sort_rows(offsets, expected)
    assert codes.tolist() == expected.tolist()


def test_ids_that_occur_twice_are_found_by_their_hashes():
    assert all_differ(pa.array(["a", "b", "c"]))
    assert not all_differ(pa.array(["a", "b", "a"]))
    assert all_differ(pa.array([3, 1, 2]))
    assert not all_differ(pa.array([3, 1, 3]))
    assert not all_differ(pa.array([0.5, 1.5]))  # which is looked at value by value
