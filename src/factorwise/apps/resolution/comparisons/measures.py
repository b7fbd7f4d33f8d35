"""What two records have in common in one normal form: a number for each pair, NaN where one is missing.

Each measure is prepared once for all rows of a form and then asked about many pairs. Measures depend on how
rare a value is as a share of the rows, not on how many rows there are: weights that were learned on a
thousand records mean the same on a million.
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

_FARTHEST = float(np.finfo(np.float32).max)  # distances of huge numbers stay finite


class Measure(Protocol):
    """A prepared measure."""

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        ...


def rows_of_pairs(first: Ints, second: Ints) -> tuple[Rows, Rows]:
    """Return the rows of pairs as kernels take them."""
    return np.ascontiguousarray(first, np.int32), np.ascontiguousarray(second, np.int32)


class Rarity:
    """Zero for different strings; for the same one, how rare it is: the -log of its share of the rows."""

    def __init__(self, form: Strings) -> None:
        self.codes = form.codes
        counts, present = form.frequencies()
        share = np.maximum(counts, 1) / max(present, 1)
        self.rarity = np.maximum((-np.log(share)).astype(np.float32), np.float32(1e-3))

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        one, two = rows_of_pairs(first, second)
        found = np.empty(len(one), np.float32)
        shared_rarities(self.codes, self.rarity, one, two, found)
        return found


class Likeness:
    """How alike two strings are, from 0 to 1: what is the same for all ways to compare them."""

    def __init__(self, codes: NDArray[np.int32], values: pa.Array) -> None:
        self.codes = codes
        self.column = Letters.of(values)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        one, two = rows_of_pairs(first, second)
        found = np.empty(len(one), np.float32)
        self.compare(one, two, found)
        return found

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows into ``found``."""
        raise NotImplementedError

    def masks(self) -> NDArray[np.uint64]:
        """Return scratch of a kernel: for each letter as many bits as the longest string has letters."""
        return np.zeros(self.column.n_letters * self.column.n_words, np.uint64)


class JaroWinkler(Likeness):
    """The similarity of Jaro and Winkler, for names."""

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows into ``found``."""
        column = self.column
        flags, matched = np.zeros(column.n_words, np.uint64), np.zeros(column.longest, np.uint32)
        text = column.start, column.letters, self.codes
        jaro_winkler(*text, first, second, self.masks(), flags, matched, found)


class Edits(Likeness):
    """One less the edits between two strings, transpositions among them, as a share of the longer one."""

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows into ``found``."""
        column = self.column
        last_row, table = np.full(column.n_letters, -1, np.int32), np.zeros((3, column.longest + 2), np.int32)
        edit_likeness(column.start, column.letters, self.codes, first, second, last_row, table, found)


class SortedWords(Likeness):
    """The longest common subsequence of two texts whose words are sorted, as a share of both."""

    def compare(self, first: Rows, second: Rows, found: Values) -> None:
        """Compare rows into ``found``."""
        column = self.column
        text = column.start, column.letters, self.codes
        common_subsequences(*text, first, second, self.masks(), np.zeros(column.n_words, np.uint64), found)


class Distance:
    """How far two numbers are apart."""

    def __init__(self, form: Numbers) -> None:
        self.values = form.values

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        apart = np.abs(self.values[first] - self.values[second])
        return np.minimum(apart, _FARTHEST).astype(np.float32)


class LogRatio:
    """How far the logs of two numbers are apart, each made larger by one first and keeping its sign.

    For numbers much larger than one that is the log of their ratio, for numbers near zero their difference;
    of numbers of different sign both logs add up.
    """

    def __init__(self, form: Numbers) -> None:
        size = np.abs(form.values)
        self.logs = np.sign(form.values) * np.log1p(size)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        return np.asarray(np.abs(self.logs[first] - self.logs[second]), np.float32)


class GivenNames:
    """How two first names stand to each other, as one of six numbers.

    The same; the same but for a nickname; alike in sound; one is an initial of the other; the same initial
    and another name; another initial.
    """

    def __init__(self, field: NormalField) -> None:
        forms = ("first", "root", "first_sound", "first_initial")
        self.first, self.root, self.sound, self.initial = (field.strings(form).codes for form in forms)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
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

#: Measures that give one of a few kinds of relation, and what these are, from 1 on.
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

#: Measures whose lower levels are more alike.
FALLING = frozenset({"distance", "ratio", *RELATIONS})


def with_sorted_words(values: pa.Array) -> pa.Array:
    """Return texts with their words in order."""
    texts = [" ".join(sorted(text.split())) if text else "" for text in values.to_pylist()]
    return pa.array(texts, pa.string())


def string_measure(form: Strings, measure: str) -> Measure:
    """Prepare a measure for a form of strings."""
    return _OF_STRINGS[measure](form)


def number_measure(form: Numbers, measure: str) -> Measure:
    """Prepare a measure for a form of numbers."""
    return _OF_NUMBERS[measure](form)
