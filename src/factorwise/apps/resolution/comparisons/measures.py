"""What two records have in common in one normal form: a number for each pair, NaN where one is missing.

Each measure is prepared once for all rows of a form and then asked about many pairs. Measures depend on how
rare a value is as a share of the rows, not on how many rows there are: weights that were learned on a
thousand records mean the same on a million.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler

from factorwise.apps.resolution.forms import NormalField, Numbers, Strings
from factorwise.types import Ints

Values = NDArray[np.float32]

_FARTHEST = float(np.finfo(np.float32).max)  # distances of huge numbers stay finite


class Measure(Protocol):
    """A prepared measure."""

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        ...


class Rarity:
    """Zero for different strings; for the same one, how rare it is: the -log of its share of the rows."""

    def __init__(self, form: Strings) -> None:
        self.codes = form.codes
        counts = np.bincount(form.codes[form.codes >= 0], minlength=len(form.values))
        share = np.maximum(counts, 1) / max(int(counts.sum()), 1)
        self.rarity = np.append(-np.log(share), 0.0).astype(np.float32)

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        one, two = self.codes[first], self.codes[second]
        found = np.where(one == two, np.maximum(self.rarity[one], 1e-3), np.float32(0.0))
        found[(one < 0) | (two < 0)] = np.nan
        return found.astype(np.float32)


class Likeness:
    """How alike two strings are, from 0 to 1, to a scorer of rapidfuzz; each two are compared once.

    highest
        What the scorer gives equal strings.
    """

    def __init__(self, form: Strings, scorer: Callable[..., float], highest: float = 1.0) -> None:
        self.codes = form.codes
        self.values = form.values
        self.scorer = scorer
        self.highest = highest

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        one, two = self.codes[first].astype(np.int64), self.codes[second].astype(np.int64)
        found = np.ones(len(one), np.float32)
        found[(one < 0) | (two < 0)] = np.nan
        differ = np.flatnonzero((one != two) & (one >= 0) & (two >= 0))
        if len(differ):
            low, high = np.minimum(one, two)[differ], np.maximum(one, two)[differ]
            keys, place = np.unique(low * len(self.values) + high, return_inverse=True)
            left = self.values.take(keys // len(self.values)).to_pylist()
            right = self.values.take(keys % len(self.values)).to_pylist()
            alike = process.cpdist(left, right, scorer=self.scorer, dtype=np.float32, workers=1)
            found[differ] = np.minimum(alike / np.float32(self.highest), np.float32(0.999))[place]
        return found


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


#: How two given names stand to each other: the levels of `GivenNames`.
SAME, SAME_ROOT, SAME_SOUND, SAME_INITIAL, OTHER_NAME, OTHER_INITIAL = range(1, 7)


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
        same = {name: self._same(codes, first, second) for name, codes in vars(self).items()}
        spelled = (self.first[first] >= 0) & (self.first[second] >= 0)
        found = np.where(same["initial"], np.where(spelled, OTHER_NAME, SAME_INITIAL), OTHER_INITIAL)
        found = np.where(same["sound"], SAME_SOUND, found)
        found = np.where(same["root"], SAME_ROOT, found)
        found = np.where(same["first"], SAME, found).astype(np.float32)
        found[(self.initial[first] < 0) | (self.initial[second] < 0)] = np.nan
        return found

    @staticmethod
    def _same(codes: NDArray[np.int32], first: Ints, second: Ints) -> NDArray[np.bool_]:
        one = codes[first]
        return np.asarray((one == codes[second]) & (one >= 0))


_OF_STRINGS: dict[str, Callable[[Strings], Measure]] = {
    "rarity": Rarity,
    "jaro-winkler": lambda form: Likeness(form, JaroWinkler.normalized_similarity),
    "edits": lambda form: Likeness(form, DamerauLevenshtein.normalized_similarity),
    "words": lambda form: Likeness(form, fuzz.token_sort_ratio, 100.0),
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


def string_measure(form: Strings, measure: str) -> Measure:
    """Prepare a measure for a form of strings."""
    return _OF_STRINGS[measure](form)


def number_measure(form: Numbers, measure: str) -> Measure:
    """Prepare a measure for a form of numbers."""
    return _OF_NUMBERS[measure](form)
