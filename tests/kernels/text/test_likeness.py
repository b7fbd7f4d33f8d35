"""Kernels that compare strings against their definitions, and against rapidfuzz."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import DamerauLevenshtein
from rapidfuzz.distance import JaroWinkler as RapidJaroWinkler

from factorwise.apps.resolution.comparisons.measures import Edits, JaroWinkler, SortedWords, with_sorted_words
from reference import likeness as reference

# few letters, so that strings have much in common; beyond ASCII; longer than one and than two words of bits
texts = st.one_of(
    st.text("abc ", max_size=8),
    st.text("ab\u00e9\u4e2d", max_size=6),
    st.builds(lambda text, times: text * times, st.text("ab cd", min_size=1, max_size=7), st.integers(9, 20)),
)
MEASURES = {
    "jaro_winkler": (JaroWinkler, RapidJaroWinkler.normalized_similarity, 1.0),
    "edit_likeness": (Edits, DamerauLevenshtein.normalized_similarity, 1.0),
    "common_subsequences": (SortedWords, fuzz.ratio, 100.0),
}


def compared(measure, one, two):
    """The measure's value of two strings that differ, the first one first."""
    prepared = measure(np.array([0, 1, -1], np.int32), pa.array([one, two]))
    found = prepared(np.array([0, 1, 0]), np.array([1, 1, 2]))
    assert found[1] == 1.0
    assert np.isnan(found[2])
    return found[0]


@pytest.mark.parametrize("name", MEASURES)
@given(one=texts, two=texts)
def test_a_kernel_gives_what_the_definition_and_rapidfuzz_give(name, one, two):
    measure, scorer, highest = MEASURES[name]
    found = compared(measure, one, two)
    assert found == pytest.approx(min(getattr(reference, name)(one, two), 0.999), abs=1e-6)
    expected = np.float32(scorer(one, two)) / np.float32(highest)
    assert found == min(expected, np.float32(0.999))


@given(one=texts, two=texts)
def test_a_pair_has_the_same_value_in_either_order(one, two):
    for measure, _, _ in MEASURES.values():
        prepared = measure(np.array([1, 0], np.int32), pa.array([one, two]))
        assert prepared(np.array([0]), np.array([1])) == prepared(np.array([1]), np.array([0]))


def test_words_are_sorted_once_per_value():
    assert with_sorted_words(pa.array(["b a", None, "c"])).to_pylist() == ["a b", "", "c"]


def test_scratch_is_clean_after_each_pair():
    texts = ["abab", "baba", "a" * 130, "b" * 70, "ab" * 64]
    pairs = np.array([(i, j) for i in range(5) for j in range(5) if i != j])
    for measure, _, _ in MEASURES.values():
        prepared = measure(np.arange(5, dtype=np.int32), pa.array(texts))
        together = prepared(pairs[:, 0], pairs[:, 1])
        alone = [prepared(pair[:1], pair[1:])[0] for pair in pairs]
        assert together.tolist() == alone
