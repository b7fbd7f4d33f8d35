"""Names for authors, shared as often as in real bibliographies, however many authors there are.

Within a culture the r-th most frequent name has probability ~ (r + offset)^-s, given and family names
independently. With a fixed exponent ten times as many authors would share names far more often. Draws of
any size are wanted to be equally hard, so the targets are the same for all, and the more authors there are,
the flatter the laws: a choice, not a finding about bibliographies. The two exponents are solved for, given
the number of authors: first that of family names, from the share of authors who have last name and initial
in common with somebody, then that of given names, from the share who have the full name in common. Both
shares follow in closed form from the laws: somebody with a name of probability p has it to himself among N
authors with probability exp(-N p).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.datasets.inventory import NameLists
from factorwise.datasets.texts import folded
from factorwise.types import Bools, Floats, Ints

# Of authors, by the names they commonly use; set by trial so that mentions as written meet their targets.
SHARED_INITIAL = 0.49
SHARED_NAME = 0.12  # more than of mentions: hyphens and further spellings set authors apart
_OFFSET_FAMILY, _OFFSET_GIVEN = 6.0, 10.0  # flatten the head: the most frequent names are about equal
_STEEPEST = 3.0
_HALVINGS = 13
_LOWEST = -30.0  # log-probability below which names count as equally rare
_BINS = 200


class Laws(NamedTuple):
    """Exponents of the laws of names."""

    family: float
    given: float


class NameTable(NamedTuple):
    """All names of all cultures in two columns, the lists of the cultures one after the other.

    given_start, family_start
        Where the list of each culture begins, and the end of the last: int64[cultures + 1].
    initial
        Number of the first letter of each given name.
    family_key
        Equal for family names that are the same but for accents and case.
    """

    lists: Sequence[NameLists]
    given: pa.StringArray
    family: pa.StringArray
    given_start: Ints
    family_start: Ints
    initial: Ints
    family_key: Ints


class Names(NamedTuple):
    """The common names of authors, as rows of a `NameTable`: int64[authors] each.

    middle
        Row of a given name; -1 for none.
    """

    culture: Ints
    given: Ints
    middle: Ints
    family: Ints

    def take(self, rows: Ints) -> Names:
        """Return the names in these rows."""
        return Names(*(column[rows] for column in self))


def name_table(lists: Sequence[NameLists]) -> NameTable:
    """Lay the names of all cultures out in columns."""
    given = pa.array([name for one in lists for name in one.given], pa.string())
    family = pa.array([name for one in lists for name in one.family], pa.string())
    initials = folded(pc.utf8_slice_codeunits(given, 0, 1))
    return NameTable(
        lists,
        given,
        family,
        np.cumsum([0, *(len(one.given) for one in lists)]),
        np.cumsum([0, *(len(one.family) for one in lists)]),
        _codes(initials),
        _codes(folded(family)),
    )


def solve_laws(table: NameTable, authors: int) -> Laws:
    """Find the exponents at which names are shared as often as they should be."""

    def initial_shared(exponent: float) -> float:
        # the exponent of given names hardly moves the frequencies of their initials
        return sum(
            expected_sharing(authors, one.culture.share, _family(one, exponent), _initials(table, place))
            for place, one in enumerate(table.lists)
        )

    family = _solved(initial_shared, SHARED_INITIAL)

    def name_shared(exponent: float) -> float:
        total = 0.0
        for place, one in enumerate(table.lists):
            middle = one.culture.middle
            families, given = _family(one, family), _given(one, exponent)
            share = one.culture.share
            total += expected_sharing(authors, share * (1 - middle), families, given)
            if middle:
                alike = float((_initials(table, place) ** 2).sum())
                total += expected_sharing(authors * alike, share * middle, families, given)
        return total

    return Laws(family, _solved(name_shared, SHARED_NAME))


def expected_sharing(authors: float, share: float, first: Floats, second: Floats) -> float:
    """Share of all authors who are in this part and have both halves of a name in common with another.

    Names are gathered by the logarithm of their probability, as there are too many pairs to go through.
    """
    (mass, log), (other_mass, other_log) = _gathered(first), _gathered(second)
    expected = authors * share * np.exp(log[:, None] + other_log[None, :])
    return share * float((mass[:, None] * other_mass[None, :] * -np.expm1(-expected)).sum())


def draw_names(rng: np.random.Generator, table: NameTable, authors: int, laws: Laws) -> Names:
    """Draw the common names of authors, in an order in which sharing is spread evenly.

    Prolific authors are few and hold many mentions, so chance would decide how many mentions have shared
    names. Dealt out evenly, every stretch of authors has its part: give the names to authors by size.
    """
    shares = np.array([one.culture.share for one in table.lists])
    counts = np.diff(np.round(np.cumsum(shares) / shares.sum() * authors).astype(np.int64), prepend=0)
    parts = []
    for place, one in enumerate(table.lists):
        count = int(counts[place])
        given = _given(one, laws.given)
        start = table.given_start[place]
        middle = np.where(rng.random(count) < one.culture.middle, start + _draw(rng, given, count), -1)
        parts.append(
            Names(
                np.full(count, place, dtype=np.int64),
                start + _draw(rng, given, count),
                middle,
                table.family_start[place] + _draw(rng, _family(one, laws.family), count),
            )
        )
    names = Names(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return names.take(_dealt(rng, _sharing(table, names)))


def draw_families(rng: np.random.Generator, table: NameTable, culture: Ints, laws: Laws) -> Ints:
    """Draw a family name for each of these cultures."""
    family = np.empty(len(culture), dtype=np.int64)
    for place in np.unique(culture):
        rows = np.flatnonzero(culture == place)
        law = _family(table.lists[place], laws.family)
        family[rows] = table.family_start[place] + _draw(rng, law, len(rows))
    return family


def _sharing(table: NameTable, names: Names) -> Ints:
    """0 for authors alone with their last name and initial, 1 for those who share these, 2 the full name."""
    key = table.family_key[names.family] * (table.initial.max() + 1) + table.initial[names.given]
    same_initial = _repeated(key)
    middle = np.where(names.middle >= 0, table.initial[names.middle] + 1, 0)
    full = (names.given * len(table.family) + names.family) * (table.initial.max() + 2) + middle
    return np.where(_repeated(full), 2, same_initial.astype(np.int64))


def _dealt(rng: np.random.Generator, kind: Ints) -> Ints:
    """Order in which each kind stands at even distances."""
    position = np.empty(len(kind))
    for one in np.unique(kind):
        rows = rng.permutation(np.flatnonzero(kind == one))
        position[rows] = (np.arange(len(rows)) + rng.random(len(rows))) / len(rows)
    return np.argsort(position, kind="stable")


def _repeated(key: Ints) -> Bools:
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    shared: Bools = count[place] > 1
    return shared


def _codes(texts: pa.StringArray) -> Ints:
    codes: Ints = texts.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _law(names: int, offset: float, exponent: float) -> Floats:
    weight = (np.arange(names) + offset) ** -exponent
    probability: Floats = weight / weight.sum()
    return probability


def _family(lists: NameLists, exponent: float) -> Floats:
    return _law(len(lists.family), _OFFSET_FAMILY, exponent)


def _given(lists: NameLists, exponent: float) -> Floats:
    return _law(len(lists.given), _OFFSET_GIVEN, exponent)


def _initials(table: NameTable, place: int) -> Floats:
    """Probability of each first letter, as if given names followed Zipf's law."""
    rows = slice(table.given_start[place], table.given_start[place + 1])
    probability: Floats = np.bincount(table.initial[rows], _given(table.lists[place], 1.0)).astype(np.float64)
    return probability


def _draw(rng: np.random.Generator, probability: Floats, count: int) -> Ints:
    places = np.searchsorted(np.cumsum(probability), rng.random(count), side="right")
    return np.minimum(places, len(probability) - 1)


def _gathered(probability: Floats) -> tuple[Floats, Floats]:
    """Mass and mean log-probability of the names in each bin."""
    positive = probability[probability > 0]
    log = np.maximum(np.log(positive), _LOWEST)
    place = np.minimum((log / _LOWEST * _BINS).astype(np.int64), _BINS - 1)
    mass = np.bincount(place, positive, _BINS).astype(np.float64)
    used = mass > 0
    return mass[used], (np.bincount(place, positive * log, _BINS)[used] / mass[used])


def _solved(share: Callable[[float], float], wanted: float) -> float:
    """Exponent at which a share that grows with it is as wanted, or the end of the range that is nearest."""
    low, high = 0.0, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < wanted else (low, middle)
    return (low + high) / 2
