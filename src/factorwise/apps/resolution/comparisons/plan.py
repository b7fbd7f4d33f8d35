"""Which comparisons the fields of each kind get, and the levels of many pairs in all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.levels import Cuts
from factorwise.apps.resolution.comparisons.measures import FALLING, RELATIONS, prepared
from factorwise.apps.resolution.forms import NormalField, NormalTable
from factorwise.kernels.compile.threads import Team
from factorwise.types import Ints

#: For each kind the forms that are compared, and by which measure.
COMPARED: dict[str, tuple[tuple[str, str], ...]] = {
    "name": (
        ("first", "given names"),
        ("given", "jaro-winkler"),
        ("middle_initial", "rarity"),
        ("middle", "jaro-winkler"),
        ("last", "rarity"),
        ("last", "jaro-winkler"),
        ("full", "rarity"),
        ("tokens", "cosine"),
    ),
    "text": (("text", "rarity"), ("text", "words"), ("tokens", "shared"), ("tokens", "cosine")),
    "category": (("text", "rarity"), ("text", "jaro-winkler")),
    "identifier": (("code", "rarity"), ("code", "edits")),
    "list": (("items", "shared"), ("items", "cosine"), ("keys", "shared"), ("keys", "cosine")),
    "number": (("number", "distance"), ("number", "ratio")),
    "date": (("digits", "edits"), ("days", "distance"), ("year", "distance")),
    "address": (
        ("text", "words"),
        ("number", "rarity"),
        ("street", "words"),
        ("tokens", "cosine"),
        ("postcode", "rarity"),
        ("postcode", "edits"),
    ),
    "email": (("email", "rarity"), ("local", "edits"), ("domain", "rarity")),
    "phone": (("tail", "rarity"), ("phone", "edits")),
    "location": (
        ("latitude", "distance"),
        ("longitude", "distance"),
        ("text", "rarity"),
        ("text", "words"),
        ("tokens", "cosine"),
    ),
}
#: Comparisons left out where there are many pairs: slow ones, and ones that tell little beside others.
LEFT_OUT: dict[str, tuple[tuple[str, str], ...]] = {
    "name": (("tokens", "cosine"), ("middle", "jaro-winkler")),
    "text": (("text", "words"), ("tokens", "shared")),
    "list": (("items", "shared"), ("items", "cosine")),
    "number": (("number", "ratio"),),
    "address": (("text", "words"), ("tokens", "cosine")),
    "location": (("text", "words"),),
}
MANY_PAIRS = 1_000_000
CHUNK = 1 << 18  # pairs that are compared at a time


@dataclass(frozen=True, slots=True)
class Comparison:
    """One form of one field, how it is compared, and where its levels are cut."""

    field: str
    form: str
    measure: str
    cuts: Cuts

    @property
    def name(self) -> str:
        """What it is called where weights are listed."""
        return f"{self.field}: {self.measure} of {self.form}"

    def level_text(self, level: int) -> str:
        """Say what a level holds."""
        if level > 0 and self.measure in RELATIONS:
            return RELATIONS[self.measure][level - 1]
        return self.cuts.text(level)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for a model file."""
        cuts = {"edges": list(self.cuts.edges), "size": self.cuts.size}
        return {"field": self.field, "form": self.form, "measure": self.measure, **cuts}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Comparison:
        """Read what `as_dict` gave."""
        cuts = Cuts(tuple(saved["edges"]), saved["size"])
        return cls(saved["field"], saved["form"], saved["measure"], cuts)


def compared_forms(normal: NormalTable, n_pairs: int) -> Iterator[tuple[NormalField, str, str]]:
    """Name the forms of all fields that are compared where there are so many pairs, with the measure."""
    for field in normal.values():
        for form, measure in COMPARED[field.kind]:
            # a list of words has no keys, as one of names has, that could stand in for its items
            spared = field.kind == "list" and "keys" not in field
            if n_pairs > MANY_PAIRS and (form, measure) in LEFT_OUT.get(field.kind, ()) and not spared:
                continue
            if form in field and (measure not in RELATIONS or "first_initial" in field):
                yield field, form, measure


def planned(normal: NormalTable, first: Ints, second: Ints, n_pairs: int | None = None) -> list[Comparison]:
    """Choose the comparisons, cut by what these pairs (candidates, or a sample of them) are like.

    A form that tells no two pairs apart is left out.

    n_pairs
        How many pairs will be compared; None for these alone.
    """
    found = []
    for field, form, measure in compared_forms(normal, len(first) if n_pairs is None else n_pairs):
        values = prepared(field, form, measure)(first, second)
        if measure in RELATIONS:
            cuts = Cuts.of_relation(len(RELATIONS[measure]))
        else:
            cuts = Cuts.by_quantiles(values, falling=measure in FALLING)
        if len(np.unique(cuts.levels(values))) > 1:
            found.append(Comparison(field.name, form, measure, cuts))
    return found


class Comparer:
    """Comparisons prepared for the rows of a table."""

    def __init__(self, normal: NormalTable, comparisons: Sequence[Comparison]) -> None:
        self.comparisons = list(comparisons)
        self._measures = [prepared(normal[c.field], c.form, c.measure) for c in self.comparisons]

    def levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        """Return the levels of some pairs, a row for each."""
        found = np.empty((len(first), len(self.comparisons)), np.uint8)
        for column, (comparison, measure) in enumerate(zip(self.comparisons, self._measures, strict=True)):
            found[:, column] = comparison.cuts.levels(measure(first, second))
        return found

    def all_levels(self, first: Ints, second: Ints, team: Team) -> NDArray[np.uint8]:
        """Return the levels of many pairs, compared in parts."""
        found = np.empty((len(first), len(self.comparisons)), np.uint8)

        def part(low: int, high: int) -> None:
            for a, b in chunks(low, high):
                found[a:b] = self.levels(first[a:b], second[a:b])

        team.share(len(first), part)
        return found

    def scores(
        self, weights: Iterable[NDArray[np.float64]], first: Ints, second: Ints, team: Team
    ) -> NDArray[np.float32]:
        """Return the sum of the weights of the levels of many pairs, compared in parts.

        weights
            For each comparison those of its levels, level 0 included.
        """
        tables = [np.asarray(table, np.float32) for table in weights]
        found = np.zeros(len(first), np.float32)

        def part(low: int, high: int) -> None:
            for a, b in chunks(low, high):
                for comparison, measure, table in zip(self.comparisons, self._measures, tables, strict=True):
                    found[a:b] += table[comparison.cuts.levels(measure(first[a:b], second[a:b]))]

        team.share(len(first), part)
        return found


def chunks(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Cut a range of pairs into parts that fit into the caches well enough."""
    for a in range(low, high, CHUNK):
        yield a, min(a + CHUNK, high)
