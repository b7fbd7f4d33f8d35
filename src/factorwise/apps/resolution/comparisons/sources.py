"""Which two sources the records of a pair are from: a comparison for each two sources, or one twice.

So links between two catalogs, or within one, may count for more or for less than others, as labels say.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from factorwise.apps.resolution.comparisons.levels import Cuts
from factorwise.apps.resolution.comparisons.measures import Values
from factorwise.apps.resolution.normalize.forms import Strings
from factorwise.types import Ints

PAIR, YES = "pair", Cuts((0.5,), 2)  # the measure, and its levels, of which the first is never met
MOST_SOURCES = 6  # the most frequent ones that are told apart


def source_pair_forms(form: Strings) -> list[str]:
    """Name the pairs of the most frequent sources, each with itself too."""
    counts = form.frequencies().counts
    names = form.values.to_pylist()
    frequent = [names[place] for place in np.argsort(-counts, kind="stable")[:MOST_SOURCES].tolist()]
    return [_name(one, two) for one, two in combinations_with_replacement(sorted(frequent), 2)]


class SourcePair:
    """One for pairs of records that are from the two named sources; NaN, which says nothing, for others."""

    def __init__(self, form: Strings, name: str) -> None:
        names = form.values.to_pylist()
        ends = sorted(
            (one, two)
            for one, two in combinations_with_replacement(range(len(names)), 2)
            if _name(*sorted((names[one], names[two]))) == name
        )
        self.codes = form.codes
        self.ends = ends[0] if ends else (-2, -2)  # sources that are not there

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare rows."""
        one, two = self.codes[first], self.codes[second]
        a, b = self.ends
        fits = ((one == a) & (two == b)) | ((one == b) & (two == a))
        return np.where(fits, np.float32(1.0), np.float32(np.nan))


def _name(one: str, two: str) -> str:
    return f"sources {one} & {two}"
