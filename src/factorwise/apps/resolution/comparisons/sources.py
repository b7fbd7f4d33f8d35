"""Comparisons by the sources of a pair: one for each pair of sources, including a source with itself.

With labels, links between two catalogs, or within one, can so get a weight of their own.
"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

from factorwise.apps.resolution.comparisons.levels import Cuts
from factorwise.apps.resolution.comparisons.measures import Values
from factorwise.apps.resolution.normalize.forms import Strings
from factorwise.types import Ints

PAIR, YES = "pair", Cuts((0.5,), 2)  # the measure and its levels; level 1 never occurs
MOST_SOURCES = 6  # only the most frequent sources get comparisons


def source_pair_forms(form: Strings) -> list[str]:
    """Return the names of all pairs of the most frequent sources, including a source with itself."""
    counts = form.frequencies().counts
    names = form.values.to_pylist()
    frequent = [names[place] for place in np.argsort(-counts, kind="stable")[:MOST_SOURCES].tolist()]
    return [_name(one, two) for one, two in combinations_with_replacement(sorted(frequent), 2)]


class SourcePair:
    """One for pairs of records from the two named sources; NaN, which means missing, for others."""

    def __init__(self, form: Strings, name: str) -> None:
        names = form.values.to_pylist()
        ends = sorted(
            (one, two)
            for one, two in combinations_with_replacement(range(len(names)), 2)
            if _name(*sorted((names[one], names[two]))) == name
        )
        self.codes = form.codes
        self.ends = ends[0] if ends else (-2, -2)  # codes that no record has

    def __call__(self, first: Ints, second: Ints) -> Values:
        """Compare the rows ``first[k]`` and ``second[k]``."""
        one, two = self.codes[first], self.codes[second]
        a, b = self.ends
        fits = ((one == a) & (two == b)) | ((one == b) & (two == a))
        return np.where(fits, np.float32(1.0), np.float32(np.nan))


def _name(one: str, two: str) -> str:
    return f"sources {one} & {two}"
