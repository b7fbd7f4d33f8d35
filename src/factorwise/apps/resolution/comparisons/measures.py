"""Measures of the similarity of two records in one normal form; NaN where a value is missing.

Each measure is prepared once for all rows of a form and then applied to many pairs. Measures depend on the
relative frequency of values and not on the number of rows, so weights that were learned on a thousand records
remain valid on a million.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.letters import Letters
from factorwise.apps.resolution.normalize.forms import NormalField, Numbers, Strings
from factorwise.kernels.text.likeness import common_subsequences, edit_likeness, jaro_winkler
from factorwise.kernels.text.relations import name_relations, shared_rarities
from factorwise.types import Ints

Rows = NDArray[np.int32]
Values = NDArray[np.float32]

_FARTHEST = float(np.finfo(np.float32).max)  # keeps distances of huge numbers finite


class Measure(Protocol):
    """A prepared measure."""

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        ...


def rows_of_pairs(first: Ints, second: Ints) -> tuple[Rows, Rows]:
    """Return the rows of pairs as contiguous int32 arrays, as kernels need them."""
    return np.ascontiguousarray(first, np.int32), np.ascontiguousarray(second, np.int32)


class Rarity:
    """Zero for different strings; for equal ones, the rarity: -log of the share of rows with that string."""

    def __init__(self, form: Strings) -> None:
        self.codes = form.codes
        counts, present = form.frequencies()
        share = np.maximum(counts, 1) / max(present, 1)
        self.rarity = np.maximum((-np.log(share)).astype(np.float32), np.float32(1e-3))

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        one, two = rows_of_pairs(first, second)
        found = np.empty(len(one), np.float32)
        shared_rarities(self.codes, self.rarity, one, two, found)
        return found


class Likeness:
    """Base class of string similarities from 0 to 1."""

    def __init__(self, codes: NDArray[np.int32], values: pa.Array) -> None:
        self.codes = codes
        self.column = Letters.of(values)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        one, two = rows_of_pairs(first, second)
        found = np.empty(len(one), np.float32)
        self.compare(one, two, found)
        return found

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows, and write the similarities to ``found``."""
        raise NotImplementedError

    def masks(self) -> NDArray[np.uint64]:
        """Return scratch memory for a kernel: for each character, one bit per position of a string."""
        return np.zeros(self.column.n_letters * self.column.n_words, np.uint64)


class JaroWinkler(Likeness):
    """The Jaro-Winkler similarity, for names."""

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows, and write the similarities to ``found``."""
        column = self.column
        flags, matched = np.zeros(column.n_words, np.uint64), np.zeros(column.longest, np.uint32)
        text = column.start, column.letters, self.codes
        jaro_winkler(*text, first, second, self.masks(), flags, matched, found)


class Edits(Likeness):
    """One minus the edit distance, with transpositions, divided by the length of the longer string."""

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows, and write the similarities to ``found``."""
        column = self.column
        last_row, table = np.full(column.n_letters, -1, np.int32), np.zeros((3, column.longest + 2), np.int32)
        edit_likeness(column.start, column.letters, self.codes, first, second, last_row, table, found)


class SortedWords(Likeness):
    """The normalised longest common subsequence of two texts whose words are sorted."""

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows, and write the similarities to ``found``."""
        column = self.column
        text = column.start, column.letters, self.codes
        common_subsequences(*text, first, second, self.masks(), np.zeros(column.n_words, np.uint64), found)


class Distance:
    """The absolute difference of two numbers."""

    def __init__(self, form: Numbers) -> None:
        self.values = form.values

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        apart = np.abs(self.values[first] - self.values[second])
        return np.minimum(apart, _FARTHEST).astype(np.float32)


class LogRatio:
    """The absolute difference of two numbers after the transformation sign(x) log(1 + |x|).

    For numbers much larger than one, this is the log of their ratio, and for numbers near zero their
    difference. For numbers of different sign, the two logs add up.
    """

    def __init__(self, form: Numbers) -> None:
        size = np.abs(form.values)
        self.logs = np.sign(form.values) * np.log1p(size)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        return np.asarray(np.abs(self.logs[first] - self.logs[second]), np.float32)


class GivenNames:
    """The relation of two first names, as one of six numbers.

    The relations are: the same; the same except for a nickname; similar in sound; one is an initial of the
    other; a different name with the same initial; a different initial.
    """

    def __init__(self, field: NormalField) -> None:
        forms = ("first", "root", "first_sound", "first_initial")
        self.first, self.root, self.sound, self.initial = (field.strings(form).codes for form in forms)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        one, two = rows_of_pairs(first, second)
        found = np.empty(len(one), np.float32)
        name_relations(self.first, self.root, self.sound, self.initial, one, two, found)
        return found


_OF_STRINGS: dict[str, Callable[[Strings], Measure]] = {
    "rarity": Rarity,
    "jaro-winkler": lambda form: JaroWinkler(form.codes, form.values),
    "edits": lambda form: Edits(form.codes, form.values),
    "words": lambda form: SortedWords(form.codes, with_sorted_words(form.values)),
}
_OF_NUMBERS: dict[str, Callable[[Numbers], Measure]] = {"distance": Distance, "ratio": LogRatio}

GIVEN_NAMES = "given names"

#: Measures that return one of a few relations, and the names of these, numbered from 1 on.
RELATIONS = {
    GIVEN_NAMES: (
        "the same",
        "the same but for a nickname",
        "alike in sound",
        "one is an initial of the other",
        "the same initial, another name",
        "another initial",
    )
}

#: Measures for which a lower level means more similar.
FALLING = frozenset({"distance", "ratio", *RELATIONS})


def with_sorted_words(values: pa.Array) -> pa.Array:
    """Return texts with the words of each text sorted."""
    texts = [" ".join(sorted(text.split())) if text else "" for text in values.to_pylist()]
    return pa.array(texts, pa.string())


def string_measure(form: Strings, measure: str) -> Measure:
    """Prepare a measure for a form of strings."""
    return _OF_STRINGS[measure](form)


def number_measure(form: Numbers, measure: str) -> Measure:
    """Prepare a measure for a form of numbers."""
    return _OF_NUMBERS[measure](form)
