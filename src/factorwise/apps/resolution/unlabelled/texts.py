"""Compare texts in six levels of similarity; level 0 means that one is missing."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.derived import codes_of, grams_of
from factorwise.apps.resolution.comparisons.measures import string_measure
from factorwise.apps.resolution.comparisons.overlaps import COSINE, Overlaps
from factorwise.apps.resolution.normalize.forms import Lists, NormalField, encoded
from factorwise.apps.resolution.normalize.word_sets import word_set
from factorwise.apps.resolution.unlabelled.contradictions import WordContradictions
from factorwise.types import Bools, Ints
from factorwise.variables.sparse_rows import starts_of

CUTS = (0.3, 0.5, 0.65, 0.8)  # thresholds of similarity between levels
TOP = len(CUTS) + 2
_SHORT = 80  # mean number of characters up to which texts are also compared by spelling
_TOUCHING = 0.15  # cosine up to which the spelling is not compared
_RARE = 6  # most records that share a rare code
_CODED = 0.3  # least share of texts with rare codes for codes to be used
_LONG = 4  # least number of characters of a code
_CHUNK = 1 << 18
_NO_CODE = r"\d\pL{4,}$"  # a number with the word after it, such as 40 and inches, is not a code
_ROMAN = word_set("ii iii iv vi vii viii ix xi xii xiii xiv")


class TextLevels:
    """Comparison levels of the texts of a field.

    code : int64[rows]
        Id of the set of words; -1 where it is missing.
    """

    def __init__(self, field: NormalField, *, is_identity: bool = False) -> None:
        tokens = field.lists("tokens")
        self.text, self.tokens, self.is_identity = field.strings("text"), tokens, is_identity
        self.code = set_codes(tokens)
        self.words = Overlaps(tokens, (COSINE,))
        self.grams = Overlaps(grams_of(tokens), (COSINE,))
        lengths = pc.mean(pc.utf8_length(self.text.values)).as_py() or 0.0
        self.spelled = string_measure(self.text, "words") if lengths <= _SHORT else None

    def levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        """Return the comparison levels of pairs of rows."""
        found = np.empty(len(first), np.uint8)
        for low in range(0, len(first), _CHUNK):
            part = slice(low, low + _CHUNK)
            found[part] = self._levels(first[part], second[part])
        return found

    def _levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        missing = (self.code[first] < 0) | (self.code[second] < 0)
        (words,), (grams,) = self.words(first, second), self.grams(first, second)
        alike = np.nan_to_num(np.maximum(words, grams))
        if self.spelled is not None:
            near = np.flatnonzero((alike > _TOUCHING) & (alike < 0.9999))
            alike[near] = (alike[near] + self.spelled(first[near], second[near])) / 2.0
        level = (1 + np.searchsorted(np.asarray(CUTS, np.float32), alike, side="right")).astype(np.uint8)
        shares_code = np.zeros(len(first), bool)
        if self._has_codes.any():
            both = self._has_codes[first] & self._has_codes[second]
            (share,) = self._codes(first, second)
            shares_code = both & (share > 0) & (level >= 2)
            level[shares_code] = np.maximum(level[shares_code], 5)
            level = np.where(both & (share == 0), np.minimum(level, 2), level).astype(np.uint8)
        if self.is_identity:
            # a code may be a number in only one of two texts, such as AB-1234 and AB1234
            one, two = self._numbers[first], self._numbers[second]
            differ = (one >= 0) & (two >= 0) & (one != two) & ~shares_code
            level[differ] = np.minimum(level[differ], 3)
            lacking = ((one >= 0) != (two >= 0)) & ~shares_code
            level[lacking] = np.minimum(level[lacking], 4)
            near = np.flatnonzero((level > 3) & (level < TOP) & ~shares_code)
            level[near[self._contradictions(first[near], second[near])]] = 3
        level[self.code[first] == self.code[second]] = TOP
        level[missing] = 0
        return level

    @cached_property
    def _rare_codes(self) -> Lists:
        """The codes of each row that few records share."""
        codes = codes_of(self.text)
        counts = np.bincount(codes.codes, minlength=len(codes.values))
        long = np.asarray(pc.utf8_length(codes.values)) >= _LONG
        is_code = ~np.asarray(pc.match_substring_regex(codes.values, _NO_CODE), bool)
        kept = (long & is_code & (counts <= _RARE))[codes.codes]
        rows = np.repeat(np.arange(len(codes)), np.diff(codes.offsets))[kept]
        offsets = starts_of(np.bincount(rows, minlength=len(codes)))
        return Lists(offsets, codes.codes[kept], codes.values)

    @cached_property
    def _has_codes(self) -> Bools:
        has = ~self._rare_codes.missing
        return has if has.mean() >= _CODED else np.zeros(len(has), bool)

    @cached_property
    def _codes(self) -> Overlaps:
        return Overlaps(self._rare_codes, ("shared",))

    @cached_property
    def _contradictions(self) -> WordContradictions:
        return WordContradictions(self.tokens, self.code)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        """Id of the set of numbers in each text; -1 if it has none."""
        values = self.tokens.values
        digits = np.asarray(pc.match_substring_regex(values, r"^\d+(st|nd|rd|th|e)?$"), bool)
        roman = np.asarray(pc.is_in(values, value_set=pa.array(sorted(_ROMAN), values.type)), bool)
        kept = (digits | roman)[self.tokens.codes]
        rows = np.repeat(np.arange(len(self.tokens)), np.diff(self.tokens.offsets))[kept]
        offsets = starts_of(np.bincount(rows, minlength=len(self.tokens)))
        return set_codes(Lists(offsets, self.tokens.codes[kept], values))


def set_codes(lists: Lists) -> NDArray[np.int64]:
    """Return an id for each set, the same for equal sets; -1 for empty ones."""
    words = lists.values.take(pa.array(lists.codes)).cast(pa.string())
    texts = pc.binary_join(pa.LargeListArray.from_arrays(pa.array(lists.offsets), words), " ")
    present = pc.if_else(pa.array(lists.missing), pa.scalar(None, pa.string()), texts.cast(pa.string()))
    return encoded(present).codes.astype(np.int64)
