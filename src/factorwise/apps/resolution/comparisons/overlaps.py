"""Overlap measures of two sets of values, weighted by rarity, and the cosine of two vectors.

``shared``
    The sum of the rarities of the shared values.
``cosine``
    The cosine of the two sets, with values weighted by rarity, or the cosine of two vectors.
``containment``
    The share of the smaller set that is also in the other one, weighted by rarity.
``smaller lead``, ``larger lead``
    The lead of the pair over the other candidates of a record: the cosine of the pair, divided by the sum of
    this cosine and the highest cosine of the record with another candidate. The lead is one half if two
    candidates are equally close, more for the closest one, and less for others. Each pair has two leads, one
    for either record: one comparison uses the smaller, another the larger.

All measures of one form are computed in one pass over the pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.measures import Values
from factorwise.apps.resolution.normalize.forms import Lists
from factorwise.apps.resolution.normalize.vectors import Vectors
from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import IN_MEMORY, Columns, release
from factorwise.kernels.text.leads import best_two, leads
from factorwise.kernels.text.set_overlaps import set_overlaps, set_overlaps_by_two
from factorwise.types import Ints

Rows = NDArray[np.int32]

SHARED, COSINE, CONTAINMENT = "shared", "cosine", "containment"
SMALLER_LEAD, LARGER_LEAD = "smaller lead", "larger lead"

#: Measures of a pair that depend on the other candidates of its records.
LEADS = frozenset({SMALLER_LEAD, LARGER_LEAD})
_OF_SUMS = frozenset({SHARED, CONTAINMENT})
_BELOW_ONE = np.nextafter(np.float32(1.0), np.float32(0.0))  # highest cosine of sets that differ
_CHUNK = 1 << 18  # pairs processed at a time


class HasPairs(Protocol):
    """Pairs of rows, such as `Candidates`."""

    @property
    def first(self) -> Ints:
        """One row of each pair."""
        ...

    @property
    def second(self) -> Ints:
        """The other row of each pair."""
        ...


class OverlapPairs(NamedTuple):
    """Pairs of rows, without anything else."""

    first: Ints
    second: Ints


class Leads(NamedTuple):
    """The highest two cosines of each row of a form with its candidates; zero if there are fewer.

    cosine
        The cosines of all candidates, in order and not below zero; None to compute them again.
    """

    best: Values
    runner_up: Values
    cosine: Values | None = None

    @staticmethod
    def among(form: Lists | Vectors, pairs: HasPairs, columns: Columns = IN_MEMORY) -> Leads:
        """Compute the leads among all candidate pairs, and keep the cosines in columns."""
        of_form = Overlaps(form, (COSINE,)) if isinstance(form, Lists) else VectorCosines(form, (COSINE,))
        kept = columns.make(len(pairs.first), np.float32)
        best, runner_up = np.zeros((2, len(form)), np.float32)
        found = Leads(best, runner_up, kept)
        for low in range(0, len(pairs.first), _CHUNK):
            one = np.asarray(pairs.first[low : low + _CHUNK], np.int32)
            two = np.asarray(pairs.second[low : low + _CHUNK], np.int32)
            cosine = np.maximum(np.nan_to_num(of_form(one, two)[0]), np.float32(0.0))
            best_two(one, two, cosine, found.best, found.runner_up)
            kept[low : low + _CHUNK] = cosine
            release(pairs.first, pairs.second, kept)
        return found

    def rows(self, rows: Ints) -> Leads:
        """Return the leads of some rows, without cosines."""
        return Leads(self.best[rows], self.runner_up[rows])

    def add(self, rows: Ints, others: Leads) -> None:
        """Merge in the leads that other pairs gave for some rows, which must be distinct."""
        best, lower = self.best[rows], np.minimum(self.best[rows], others.best)
        self.best[rows] = np.maximum(best, others.best)
        self.runner_up[rows] = np.maximum(np.maximum(self.runner_up[rows], others.runner_up), lower)

    def measure(self, first: Rows, second: Rows, cosine: Values) -> dict[str, Values]:
        """Return the smaller and the larger lead of each pair, by name; cosines must not be negative."""
        smaller, larger = np.empty((2, len(first)), np.float32)
        leads(first, second, cosine, self.best, self.runner_up, smaller, larger)
        return {SMALLER_LEAD: smaller, LARGER_LEAD: larger}


class Overlaps:
    """Measures of sets, prepared for the rows of a form.

    best
        The highest cosines, which measures of leads need; None if there are no such measures.
    """

    def __init__(self, form: Lists, measures: Sequence[str], best: Leads | None = None) -> None:
        self.form = form
        self.measures = tuple(measures)
        self.missing = form.missing
        counts, present = form.frequencies()
        share = np.maximum(counts, 1) / max(present, 1)
        self.rarity = np.maximum(-np.log(share), 1e-3).astype(np.float32)
        self.squares = self.rarity * self.rarity
        self._needs_sums = not _OF_SUMS.isdisjoint(measures)
        self._needs_cosine = not _OF_SUMS.issuperset(measures)
        self.leads = _needed(best, measures)

    def __call__(self, first: Ints, second: Ints, cosine: Values | None = None) -> list[Values]:
        """Return an array for each measure; ``cosine`` is used if it is known, with zero for missing."""
        one, two = np.asarray(first, np.int32), np.asarray(second, np.int32)
        sums = squares = np.zeros(0, np.float32)
        if cosine is None or self._needs_sums:
            sums, squares = self._sums(one, two)
        nothing = self.missing[one] | self.missing[two]
        found: dict[str, Values] = {}
        if SHARED in self.measures:
            found[SHARED] = sums
        if CONTAINMENT in self.measures:
            found[CONTAINMENT] = np.divide(sums, np.minimum(self.total[one], self.total[two]))
        if self._needs_cosine:
            found[COSINE] = self._cosine(one, two, squares) if cosine is None else np.array(cosine)
        if self.leads is not None:
            found |= self.leads.measure(one, two, found[COSINE])
        for values in found.values():
            values[nothing] = np.nan
        return [found[measure] for measure in self.measures]

    @cached_property
    def total(self) -> Values:
        """Sum of the rarities of each row, rounded as for pairs, so that full containment is exactly 1."""
        rows = np.arange(len(self.form), dtype=np.int32)
        return np.where(self.missing, np.float32(1.0), self._shared(self.rarity, rows, rows))

    @cached_property
    def own_squares(self) -> Values:
        """Sum of the squared rarities of each row, rounded as for pairs."""
        rows = np.arange(len(self.form), dtype=np.int32)
        return self._shared(self.squares, rows, rows)

    @cached_property
    def norm(self) -> Values:
        """Norm of each row as a vector; one where a row is missing, so that it can be a divisor."""
        norms = np.sqrt(self.own_squares)
        return np.where(norms > 0.0, norms, np.float32(1.0))

    def _cosine(self, first: Rows, second: Rows, squares: Values) -> Values:
        """Return the cosine of rows, given the sums of the squares that they share."""
        cosine = np.minimum(squares / (self.norm[first] * self.norm[second]), _BELOW_ONE)
        own = self.own_squares
        cosine[(squares == own[first]) & (squares == own[second])] = 1.0  # equal sets, despite rounding
        return cosine

    def _sums(self, first: Rows, second: Rows) -> tuple[Values, Values]:
        """Sum rarities and squared rarities over shared values, if a measure needs them."""
        if self._needs_sums and self._needs_cosine:
            sums, squares = np.empty((2, len(first)), np.float32)
            both = np.stack([self.rarity, self.squares], axis=1)
            form = self.form
            set_overlaps_by_two(
                form.offsets, form.codes, both, first, second, np.zeros_like(both), sums, squares
            )
            return sums, squares
        found = self._shared(self.rarity if self._needs_sums else self.squares, first, second)
        return found, found

    def _shared(self, weight: Values, first: Rows, second: Rows) -> Values:
        """Sum a weight over the values that two rows share."""
        found = np.empty(len(first), np.float32)
        form = self.form
        set_overlaps(form.offsets, form.codes, weight, first, second, np.zeros_like(weight), found)
        return found


class VectorCosines:
    """The cosine of two vectors, and its leads, prepared for the rows of a form.

    best
        The highest cosines, which measures of leads need; None if there are no such measures.
    """

    def __init__(self, form: Vectors, measures: Sequence[str], best: Leads | None = None) -> None:
        self.form, self.measures = form, tuple(measures)
        self.leads = _needed(best, measures)

    def __call__(self, first: Ints, second: Ints, cosine: Values | None = None) -> list[Values]:
        """Return an array for each measure; cosines are computed even if they are given."""
        one, two = np.asarray(first, np.int32), np.asarray(second, np.int32)
        found: dict[str, Values] = {COSINE: self.form.cosines(one, two)}
        if self.leads is not None:
            found |= self.leads.measure(one, two, np.maximum(found[COSINE], np.float32(0.0)))
            for values in found.values():
                values[np.isnan(found[COSINE])] = np.nan
        return [found[measure] for measure in self.measures]


def _needed(best: Leads | None, measures: Sequence[str]) -> Leads | None:
    """Return the leads that the measures need; None if no measure is a lead."""
    if LEADS.isdisjoint(measures):
        return None
    if best is None:
        raise InvalidArgumentError(
            "a comparison with the other candidates of a record needs all candidates: give them as among."
        )
    return best
