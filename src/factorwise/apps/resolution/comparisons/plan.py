"""Plan the comparisons of each kind of field, and compute the comparison levels of many pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.derived import RECORD, form_of, has_form
from factorwise.apps.resolution.comparisons.levels import Cuts
from factorwise.apps.resolution.comparisons.measures import (
    FALLING,
    GIVEN_NAMES,
    RELATIONS,
    GivenNames,
    Measure,
    Values,
    number_measure,
    string_measure,
)
from factorwise.apps.resolution.comparisons.overlaps import (
    COSINE,
    LARGER_LEAD,
    LEADS,
    SMALLER_LEAD,
    HasPairs,
    Leads,
    OverlapPairs,
    Overlaps,
    VectorCosines,
)
from factorwise.apps.resolution.comparisons.sources import PAIR, YES, SourcePair, source_pair_forms
from factorwise.apps.resolution.normalize.forms import Lists, NormalTable, Numbers, Strings
from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.errors import InvalidArgumentError
from factorwise.io.columns import release
from factorwise.kernels.compile.threads import Team
from factorwise.types import Ints
from factorwise.validation import as_number, as_text, as_whole

PAIR_SCORE = "log odds"  # the measure for pairs that another tool has scored

#: The forms that are compared for each kind of field, with their measures.
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
    "text": (("text", "rarity"), ("tokens", "cosine"), ("grams", "cosine"), ("codes", "containment")),
    "category": (("text", "rarity"), ("text", "jaro-winkler")),
    "identifier": (("code", "rarity"), ("code", "edits")),
    "list": (("items", "shared"), ("items", "cosine"), ("keys", "shared"), ("keys", "cosine")),
    "number": (("number", "distance"), ("number", "ratio")),
    "date": (("digits", "edits"), ("days", "distance"), ("year", "distance")),
    "address": (
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
    "vector": tuple(("vector", measure) for measure in (COSINE, SMALLER_LEAD, LARGER_LEAD)),
    "scores": (("pairs", PAIR_SCORE),),
    "source": (),  # see `source_pair_forms`
    RECORD: tuple(("grams", measure) for measure in (COSINE, SMALLER_LEAD, LARGER_LEAD)),
}
#: Replacements for learning without labels, for the kinds listed: a mixture assumes that comparisons of
#: different fields are independent, which comparisons of whole records are not.
WITHOUT_LABELS: dict[str, tuple[tuple[str, str], ...]] = {
    "text": (("text", "rarity"), ("text", "words"), ("tokens", "shared"), ("tokens", "cosine")),
    "address": (("text", "words"), *COMPARED["address"]),
    "vector": (("vector", COSINE),),
    "scores": (),
    RECORD: (),
}
#: Comparisons left out if there are many pairs: slow ones, and ones that add little to others.
LEFT_OUT: dict[str, tuple[tuple[str, str], ...]] = {
    "name": (("tokens", "cosine"), ("middle", "jaro-winkler")),
    "text": (("grams", "cosine"), ("text", "words"), ("tokens", "shared")),
    "list": (("items", "shared"), ("items", "cosine")),
    "number": (("number", "ratio"),),
    "address": (("text", "words"), ("tokens", "cosine")),
    "location": (("text", "words"),),
}
#: Forms that replace others if there are many pairs.
STAND_INS = {(RECORD, "grams"): "tokens"}
MANY_PAIRS = 1_000_000
FEWEST_CODES = 0.1  # least share of pairs that have codes, for a text to be compared by codes
LARGEST_LEVEL = 255  # levels are stored as bytes
CHUNK = 1 << 18  # pairs compared at a time

LeadsOfForms = Mapping[tuple[str, str], Leads]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A form of a field, the measure that compares it, and the thresholds of its levels."""

    field: str
    form: str
    measure: str
    cuts: Cuts

    @property
    def name(self) -> str:
        """The name of the comparison in lists of weights."""
        return f"{self.field}: {self.measure} of {self.form}"

    def level_text(self, level: int) -> str:
        """Describe a level as text."""
        if level > 0 and self.measure == PAIR:
            return "yes"
        if level > 0 and self.measure in RELATIONS:
            return RELATIONS[self.measure][level - 1]
        return self.cuts.text(level)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values, for a model file."""
        cuts = {"edges": list(self.cuts.edges), "size": self.cuts.size}
        return {"field": self.field, "form": self.form, "measure": self.measure, **cuts}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Comparison:
        """Restore a comparison from the result of `as_dict`."""
        field, form, measure = (as_text(name, saved[name]) for name in ("field", "form", "measure"))
        edges = tuple(as_number("edges", edge) for edge in saved["edges"])
        size = as_whole("size", saved["size"], 1, LARGEST_LEVEL)
        if list(edges) != sorted(edges) or size != (len(edges) + 1 if edges else len(RELATIONS[measure])):
            raise InvalidArgumentError(f"edges must ascend and part {size} levels, but {edges} was given.")
        return cls(field, form, measure, Cuts(edges, size))


def compared_forms(
    normal: NormalTable, n_pairs: int, *, labels: bool = True
) -> Iterator[tuple[str, str, str]]:
    """Yield field, form and measure of the comparisons that are used for ``n_pairs`` pairs."""
    compared = COMPARED if labels else COMPARED | WITHOUT_LABELS
    kinds = {field.name: field.kind for field in normal.values()}
    if RECORD not in kinds:
        kinds[RECORD] = RECORD
    for field, kind in kinds.items():
        if kind == "source" and labels:
            yield from ((field, form, PAIR) for form in source_pair_forms(normal[field].strings("source")))
        for form, measure in compared[kind]:
            # only a list of names has keys, which can replace its items
            spared = kind == "list" and "keys" not in normal[field]
            many = n_pairs > MANY_PAIRS and not spared
            if many and (form, measure) in LEFT_OUT.get(kind, ()):
                continue
            used = STAND_INS.get((kind, form), form) if many else form
            if has_form(normal, field, used) and (
                measure not in RELATIONS or "first_initial" in normal[field]
            ):
                yield field, used, measure


def planned(
    normal: NormalTable, first: Ints, second: Ints, among: HasPairs | None = None, *, labels: bool = True
) -> list[Comparison]:
    """Choose the comparisons, with thresholds from the values of these pairs, a sample of the candidates.

    A comparison that has the same level for all of these pairs is left out.

    among
        All candidates; None if these pairs are all.
    labels
        Whether weights will be learned from labels: then there are more comparisons, which include those
        made without labels, and levels are finer.
    """
    candidates = OverlapPairs(first, second) if among is None else among
    plans = (labels, False)  # with labels, learning starts from the weights without labels
    each = (compared_forms(normal, len(candidates.first), labels=plan) for plan in plans)
    wanted = list(dict.fromkeys(form for forms in each for form in forms))
    found: list[Comparison] = []
    for witness in witnesses(normal, wanted, candidates):
        for place, values in zip(witness.places, witness.measure(first, second), strict=True):
            field, form, measure = wanted[place]
            if measure in RELATIONS:
                cuts = Cuts.of_relation(len(RELATIONS[measure]))
            elif measure == PAIR:
                cuts = YES
            elif measure == PAIR_SCORE:
                cuts = Cuts.by_shares(values)
            else:
                cuts = Cuts.by_quantiles(values, falling=measure in FALLING, fine=labels)
            if len(np.unique(cuts.levels(values))) > 1 and not (form == "codes" and _hardly_any(values)):
                found.append(Comparison(field, form, measure, cuts))
    return found


def _hardly_any(values: Values) -> bool:
    """Return whether a measure has values for too few pairs to be of use."""
    return bool(np.isnan(values).mean() > 1.0 - FEWEST_CODES)


class Witness(NamedTuple):
    """Measures that are computed together.

    places
        Their positions among the wanted measures.
    measure
        Returns an array for each of them.
    known
        Values of all candidates, in order, that ``measure`` takes as a third argument; None without any.
    """

    places: tuple[int, ...]
    measure: Callable[..., Sequence[Values]]
    known: Values | None = None


def witnesses(
    normal: NormalTable,
    wanted: Sequence[tuple[str, str, str]],
    among: HasPairs | LeadsOfForms | None = None,
) -> Iterator[Witness]:
    """Prepare measures, given by field, form and measure; those of one form of lists share a witness.

    among
        All candidates, if a measure depends on them, or their leads by field and form.
    """
    together: dict[tuple[str, str], list[int]] = {}
    for place, (field, form, _) in enumerate(wanted):
        together.setdefault((field, form), []).append(place)
    for place, (field, form, measure) in enumerate(wanted):
        places: tuple[int, ...] = (place,)
        try:
            if measure == GIVEN_NAMES:
                yield Witness(places, _alone(GivenNames(normal[field])))
                continue
            if measure == PAIR:
                yield Witness(places, _alone(SourcePair(normal[field].strings("source"), form)))
                continue
            values = form_of(normal, field, form)
            if isinstance(values, PairValues):
                yield Witness(places, _alone(values.lookup))
            elif isinstance(values, Strings):
                yield Witness(places, _alone(string_measure(values, measure)))
            elif isinstance(values, Numbers):
                yield Witness(places, _alone(number_measure(values, measure)))
            elif place == together[field, form][0]:
                places = tuple(together[field, form])
                measures = [wanted[each][2] for each in places]
                best: Leads | None = None
                if isinstance(among, Mapping):
                    best = among.get((field, form))
                elif among is not None and not LEADS.isdisjoint(measures):
                    best = Leads.among(values, among, normal.columns)
                of_form = Overlaps if isinstance(values, Lists) else VectorCosines
                known = None if best is None else best.cosine
                yield Witness(places, of_form(values, measures, best), known)  # type: ignore[arg-type]
        except LookupError as error:
            raise InvalidArgumentError(
                f"field {field!r} has no form {form!r} that can be compared by {measure!r}: the comparisons"
                " are of other fields, or were changed. Train again, or restore the model from a copy."
            ) from error


def _alone(measure: Measure) -> Callable[[Ints, Ints], Sequence[Values]]:
    return lambda first, second: [measure(first, second)]


class Comparer:
    """Comparisons prepared for the rows of a table.

    among
        All candidates, if a comparison depends on the other candidates of a record, or their leads by
        field and form.
    """

    def __init__(
        self,
        normal: NormalTable,
        comparisons: Sequence[Comparison],
        among: HasPairs | LeadsOfForms | None = None,
    ) -> None:
        self.comparisons = list(comparisons)
        self.normal, self.among = normal, among
        self._kept = None if normal.columns.in_files else list(self._prepare())

    def _prepare(self) -> Iterator[Witness]:
        wanted = [(one.field, one.form, one.measure) for one in self.comparisons]
        return witnesses(self.normal, wanted, self.among)

    def _witnesses(self) -> Iterable[Witness]:
        """Return the measures; if forms are stored in files, they are prepared again, one at a time."""
        return self._prepare() if self._kept is None else self._kept

    def values(self, first: Ints, second: Ints) -> list[Values]:
        """Return the measured values of some pairs, as an array for each comparison."""
        found = dict(self._measured(first, second))
        return [found[place] for place in range(len(self.comparisons))]

    def levels(self, first: Ints, second: Ints) -> NDArray[np.uint8]:
        """Return the levels of some pairs, with a row for each pair."""
        found = np.empty((len(first), len(self.comparisons)), np.uint8)
        for place, values in self._measured(first, second):
            found[:, place] = self.comparisons[place].cuts.levels(values)
        return found

    def _measured(self, first: Ints, second: Ints) -> Iterator[tuple[int, Values]]:
        for witness in self._witnesses():
            yield from zip(witness.places, witness.measure(first, second), strict=True)

    def all_levels(self, first: Ints, second: Ints, team: Team) -> NDArray[np.uint8]:
        """Return the levels of many pairs, computed in parts by several threads."""
        found = np.empty((len(first), len(self.comparisons)), np.uint8)

        def part(low: int, high: int) -> None:
            for a, b in chunks(low, high):
                found[a:b] = self.levels(first[a:b], second[a:b])

        team.share(len(first), part)
        return found

    def scores(
        self, weights: Iterable[NDArray[np.float64]], first: Ints, second: Ints, team: Team
    ) -> NDArray[np.float32]:
        """Return the sum of the level weights of many pairs, computed in parts by several threads.

        weights
            The weights of the levels of each comparison, including level 0.
        """
        tables = [np.asarray(table, np.float32) for table in weights]
        found = self.normal.columns.make(len(first), np.float32)
        scores = np.asarray(found)
        candidates = getattr(self.among, "first", None) is first
        for witness in self._witnesses():
            known = witness.known if candidates else None

            def part(low: int, high: int, witness: Witness = witness, known: Values | None = known) -> None:
                for a, b in chunks(low, high):
                    more = () if known is None else (known[a:b],)
                    measured = witness.measure(np.asarray(first[a:b]), np.asarray(second[a:b]), *more)
                    for place, values in zip(witness.places, measured, strict=True):
                        self.comparisons[place].cuts.add_weights(values, tables[place], scores[a:b])
                    release(first, second, found, known)

            team.share(len(first), part)
        return found


def chunks(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of parts of a range of pairs that about fit into the CPU caches."""
    for a in range(low, high, CHUNK):
        yield a, min(a + CHUNK, high)
