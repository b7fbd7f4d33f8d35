"""Names of authors, which collide as often as in real bibliographies, whatever the number of authors.

Within a culture the r-th most frequent name has probability ~ (r + offset)^-s, independently for given and
family names. With a fixed exponent, ten times as many authors would share names far more often. Data of any
size should be equally hard, so the targets are the same for all sizes, and more authors have flatter
distributions; this is a design choice, not a finding about bibliographies. The two exponents are solved for,
given the number of authors: first that of family names, from the share of authors who share last name and
initial with somebody, then that of given names, from the share who share the full name. Both shares follow in
closed form: an author with a name of probability p is the only one with it among N authors with probability
exp(-N p).
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

# Shares of authors with shared names, tuned so that mentions as written meet their targets.
SHARED_INITIAL = 0.49
SHARED_NAME = 0.12  # higher than for mentions: hyphens and further spellings distinguish authors
# flatten the head: the most frequent names are about equally frequent
_OFFSET_FAMILY, _OFFSET_GIVEN = 6.0, 10.0
_STEEPEST = 3.0
_HALVINGS = 13
_LOWEST = -30.0  # log-probability below which names count as equally rare
_BINS = 200


class Laws(NamedTuple):
    """Exponents of the distributions of names."""

    family: float
    given: float


class NameTable(NamedTuple):
    """All names of all cultures in two columns, the lists of the cultures one after the other.

    given_start, family_start
        Where the list of each culture begins, and the end of the last: int64[cultures + 1].
    initial
        Number of the first letter of each given name.
    family_key
        Equal for family names that differ only in accents and case.
    """

    lists: Sequence[NameLists]
    given: pa.StringArray
    family: pa.StringArray
    given_start: Ints
    family_start: Ints
    initial: Ints
    family_key: Ints


class Names(NamedTuple):
    """The usual names of authors, as rows of a `NameTable`: int64[authors] each.

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
    given_names = pa.array([name for names in lists for name in names.given], pa.string())
    family = pa.array([name for names in lists for name in names.family], pa.string())
    initials = folded(pc.utf8_slice_codeunits(given_names, 0, 1))
    return NameTable(
        lists,
        given_names,
        family,
        np.cumsum([0, *(len(names.given) for names in lists)]),
        np.cumsum([0, *(len(names.family) for names in lists)]),
        _codes(initials),
        _codes(folded(family)),
    )


def solve_laws(table: NameTable, authors: int) -> Laws:
    """Find the exponents at which names are shared as often as they should be."""

    def initial_shared(exponent: float) -> float:
        # the exponent of given names hardly changes the frequencies of their initials
        return sum(
            expected_sharing(authors, names.culture.share, _family(names, exponent), _initials(table, number))
            for number, names in enumerate(table.lists)
        )

    family = _solved(initial_shared, SHARED_INITIAL)

    def name_shared(exponent: float) -> float:
        total = 0.0
        for number, names in enumerate(table.lists):
            middle = names.culture.middle
            families, given_probability = _family(names, family), _given(names, exponent)
            share = names.culture.share
            total += expected_sharing(authors, share * (1 - middle), families, given_probability)
            if middle:
                alike = float((_initials(table, number) ** 2).sum())
                total += expected_sharing(authors * alike, share * middle, families, given_probability)
        return total

    return Laws(family, _solved(name_shared, SHARED_NAME))


def expected_sharing(authors: float, share: float, first: Floats, second: Floats) -> float:
    """Return the share of all authors who are in this part and share both name halves with another.

    Names are binned by the logarithm of their probability, because there are too many pairs.
    """
    (mass, log), (other_mass, other_log) = _gathered(first), _gathered(second)
    expected = authors * share * np.exp(log[:, None] + other_log[None, :])
    return share * float((mass[:, None] * other_mass[None, :] * -np.expm1(-expected)).sum())


def draw_names(rng: np.random.Generator, table: NameTable, authors: int, laws: Laws) -> Names:
    """Draw the usual names of authors, in an order that spreads shared names evenly.

    The few prolific authors have many mentions, so the number of mentions with shared names would depend on
    chance. With an even spread, every stretch of authors has its share: assign the names to authors by size.
    """
    shares = np.array([one.culture.share for one in table.lists])
    counts = np.diff(np.round(np.cumsum(shares) / shares.sum() * authors).astype(np.int64), prepend=0)
    parts = []
    for number, one in enumerate(table.lists):
        count = int(counts[number])
        given_probability = _given(one, laws.given)
        start = table.given_start[number]
        middle = np.where(
            rng.random(count) < one.culture.middle, start + _draw(rng, given_probability, count), -1
        )
        parts.append(
            Names(
                np.full(count, number, dtype=np.int64),
                start + _draw(rng, given_probability, count),
                middle,
                table.family_start[number] + _draw(rng, _family(one, laws.family), count),
            )
        )
    names = Names(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return names.take(_dealt(rng, _sharing(table, names)))


def draw_families(rng: np.random.Generator, table: NameTable, culture: Ints, laws: Laws) -> Ints:
    """Draw a family name for each of these cultures."""
    family = np.empty(len(culture), dtype=np.int64)
    for number in np.unique(culture):
        rows = np.flatnonzero(culture == number)
        law = _family(table.lists[number], laws.family)
        family[rows] = table.family_start[number] + _draw(rng, law, len(rows))
    return family


def _sharing(table: NameTable, names: Names) -> Ints:
    """Return 1 for authors who share last name and initial with another, 2 if the full name, else 0."""
    key = table.family_key[names.family] * (table.initial.max() + 1) + table.initial[names.given]
    same_initial = _repeated(key)
    middle = np.where(names.middle >= 0, table.initial[names.middle] + 1, 0)
    full = (names.given * len(table.family) + names.family) * (table.initial.max() + 2) + middle
    return np.where(_repeated(full), 2, same_initial.astype(np.int64))


def _dealt(rng: np.random.Generator, kind: Ints) -> Ints:
    """Return an order in which each kind occurs at even distances."""
    position = np.empty(len(kind))
    for value in np.unique(kind):
        rows = rng.permutation(np.flatnonzero(kind == value))
        position[rows] = (np.arange(len(rows)) + rng.random(len(rows))) / len(rows)
    return np.argsort(position, kind="stable")


def _repeated(key: Ints) -> Bools:
    _, group, count = np.unique(key, return_inverse=True, return_counts=True)
    shared: Bools = count[group] > 1
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
    """Return the probability of each first letter, as if given names followed Zipf's law."""
    rows = slice(table.given_start[place], table.given_start[place + 1])
    probability: Floats = np.bincount(table.initial[rows], _given(table.lists[place], 1.0)).astype(np.float64)
    return probability


def _draw(rng: np.random.Generator, probability: Floats, count: int) -> Ints:
    rows = np.searchsorted(np.cumsum(probability), rng.random(count), side="right")
    return np.minimum(rows, len(probability) - 1)


def _gathered(probability: Floats) -> tuple[Floats, Floats]:
    """Return mass and mean log-probability of the names in each bin."""
    positive = probability[probability > 0]
    log = np.maximum(np.log(positive), _LOWEST)
    bin_of = np.minimum((log / _LOWEST * _BINS).astype(np.int64), _BINS - 1)
    mass = np.bincount(bin_of, positive, _BINS).astype(np.float64)
    used = mass > 0
    return mass[used], (np.bincount(bin_of, positive * log, _BINS)[used] / mass[used])


def _solved(share: Callable[[float], float], wanted: float) -> float:
    """Return the exponent at which an increasing share reaches its target, or the nearer end of the range."""
    low, high = 0.0, _STEEPEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if share(middle) < wanted else (low, middle)
    return (low + high) / 2
