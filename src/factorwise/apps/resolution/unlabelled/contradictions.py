"""Find similar texts that name different things: each has its own rare word, and shared words are frequent.

"University of Stone, Department of Physics" is similar to "University of Harvest, Department of Physics", but
names another university. The rarest shared word is compared with the rarest word that only one text has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.normalize.forms import Lists
from factorwise.types import Bools, Ints

RARER = 4.0  # how many times rarer than the rarest shared word each text's own word must be
SIMILAR = 0.8  # least Jaro-Winkler similarity of two spellings of one word


class WordContradictions:
    """Find pairs of texts whose own words are rarer than the words that they share.

    tokens
        The set of words of each row.
    code : int64[rows]
        Id of the set of words; -1 where it is missing. Words are counted once per distinct set.
    """

    def __init__(self, tokens: Lists, code: NDArray[np.int64]) -> None:
        known = np.flatnonzero(code >= 0)
        _, place = np.unique(code[known], return_index=True)
        counted = tokens.rows(known[place])
        self.tokens = tokens
        self.counts = np.bincount(counted.codes, minlength=len(tokens.values) + 1).astype(np.float64)

    def __call__(self, first: Ints, second: Ints) -> Bools:
        """Return which pairs of rows contradict each other."""
        one, two = self._words(first), self._words(second)
        width = np.int64(len(self.tokens.values) + 1)
        in_two, in_one = np.isin(one.key(width), two.key(width)), np.isin(two.key(width), one.key(width))
        n = len(first)
        shared = _least(one.pair[in_two], self.counts[one.word[in_two]] - 1.0, n)[0]
        count_one, word_one = _least(one.pair[~in_two], self.counts[one.word[~in_two]], n, one.word[~in_two])
        count_two, word_two = _least(two.pair[~in_one], self.counts[two.word[~in_one]], n, two.word[~in_one])
        found: Bools = np.isfinite(np.maximum(count_one, count_two)) & np.isfinite(shared)
        found &= shared >= RARER * np.maximum(count_one, count_two)
        rows = np.flatnonzero(found)
        found[rows] = ~self._are_similar(word_one[rows], word_two[rows])
        return found

    def _words(self, rows: Ints) -> _WordsOfPairs:
        lists = self.tokens.rows(np.asarray(rows, np.int64))
        return _WordsOfPairs(np.repeat(np.arange(len(rows)), np.diff(lists.offsets)), lists.codes)

    def _are_similar(self, first: Ints, second: Ints) -> Bools:
        """Return which pairs of words are misspelled or abbreviated forms of one word."""
        from rapidfuzz.distance import JaroWinkler
        from rapidfuzz.process import cpdist

        if not len(first):
            return np.zeros(0, bool)
        one, two = (self.tokens.values.take(pa.array(words)).to_pylist() for words in (first, second))
        near = np.asarray(cpdist(one, two, scorer=JaroWinkler.similarity), np.float64) >= SIMILAR
        short = [_abbreviates(*sorted(pair, key=len)) for pair in zip(one, two, strict=True)]
        return np.asarray(near | np.array(short, bool), bool)


class _WordsOfPairs:
    """The words of one row of each pair."""

    def __init__(self, pair: NDArray[np.int64], word: Ints) -> None:
        self.pair, self.word = pair, word

    def key(self, width: np.int64) -> NDArray[np.int64]:
        return np.asarray(self.pair * width + self.word, np.int64)


def _least(
    pair: Ints, values: NDArray[np.float64], n: int, words: Ints | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the smallest value of each pair (infinite if it has none) and the word with that value."""
    least, chosen = np.full(n, np.inf), np.zeros(n, np.int64)
    np.minimum.at(least, pair, values)
    if words is not None:
        best = values == least[pair]
        chosen[pair[best]] = words[best]
    return least, chosen


def _abbreviates(short: str, long: str) -> bool:
    """Return whether the words start alike and ``long`` has the letters of ``short`` in the same order."""
    if short[:1] != long[:1]:
        return False
    letters = iter(long)
    return all(letter in letters for letter in short)
