"""Counts of a population by time and place: read, checked and laid out, one array for each sequence."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from factorwise.errors import CountsError, ShapeError
from factorwise.io.listing import some
from factorwise.io.tables.keyed_rows import KeyedRows, in_order, read_keyed_rows
from factorwise.io.tables.reading import TableSource
from factorwise.types import Floats

ONLY = "1"  # name of the sequence where there is but one


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Counts of one population.

    name
        Of the sequence: a day, a year.
    times
    counts : float64[times, places]
        NaN where nothing was counted.
    """

    name: str
    times: tuple[str, ...]
    counts: Floats

    @property
    def complete(self) -> list[int]:
        """Times at which every place was counted."""
        return np.flatnonzero(~np.isnan(self.counts).any(axis=1)).tolist()

    def filled(self) -> Floats:
        """Return the counts with those that were not made taken to be the mean of their place."""
        made = ~np.isnan(self.counts)
        usual = np.where(made, self.counts, 0.0).sum(axis=0) / np.maximum(made.sum(axis=0), 1)
        return np.where(made, self.counts, usual)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts of several populations, or of one at different times, at the same places."""

    places: tuple[str, ...]
    series: tuple[Series, ...]

    @classmethod
    def of(
        cls, counts: ArrayLike, *, places: Sequence[str] | None = None, times: Sequence[str] | None = None
    ) -> Counts:
        """Take one array [times, places], or one for all sequences [sequences, times, places]."""
        array = np.array(counts, dtype=np.float64)
        if array.ndim not in (2, 3) or 0 in array.shape:
            raise ShapeError(
                f"counts must have shape (times, places) or (sequences, times, places), but {array.shape} was"
                " given."
            )
        blocks = array[None] if array.ndim == 2 else array
        named = tuple(map(str, range(array.shape[-1]) if places is None else places))
        dated = tuple(map(str, range(array.shape[-2]) if times is None else times))
        if (len(dated), len(named)) != array.shape[-2:]:
            raise ShapeError(
                f"counts of shape {array.shape} were given with {len(dated)} times and {len(named)} places:"
                " name each."
            )
        made = cls(named, tuple(Series(str(k + 1), dated, block) for k, block in enumerate(blocks)))
        for series in made.series:
            bad = np.argwhere((series.counts < 0) | np.isinf(series.counts))
            if len(bad):
                time, place = bad[0].tolist()
                where = f"sequence {series.name}, time {dated[time]!r}, place {named[place]!r}"
                raise _refused(where, series.counts[time, place])
        return made

    @classmethod
    def read(cls, source: TableSource, places: Sequence[str] | None = None) -> Counts:
        """Read a table with columns ``time``, ``place``, ``count`` and, if there are several, ``sequence``.

        An empty count, or a record that is not there, is a count that was not made. A sequence has the times
        of all sequences that lie between its first and its last.

        places
            All places that there are, if the table need not name all; others are refused.
        """
        rows = read_keyed_rows(
            source,
            keys=("time", "place"),
            optional_keys=("sequence",),
            numbers=("count",),
            may_be_empty=True,
        )
        count = rows.numbers["count"]
        for row in np.flatnonzero((count < 0) | np.isinf(count)).tolist():
            raise _refused(_where(rows, row), count[row])
        known = in_order(rows.keys["place"]) if places is None else tuple(places)
        place = places_of(rows, "place", known)
        times = in_order(rows.keys["time"])
        names = rows.keys.get("sequence") or [ONLY] * len(rows)
        order = {label: number for number, label in enumerate(times)}
        time = np.array([order[label] for label in rows.keys["time"]])
        series = []
        for name in in_order(names):
            own = np.array([row for row, other in enumerate(names) if other == name])
            first, last = int(time[own].min()), int(time[own].max())
            block = np.full((last + 1 - first, len(known)), np.nan)
            seen = np.full(block.shape, -1)
            for row in own.tolist():
                entry = (time[row] - first, place[row])
                if seen[entry] >= 0:
                    raise CountsError(
                        f"{_where(rows, row)}: this count stands in record {seen[entry] + 1} already. Give"
                        " one for each time and place."
                    )
                seen[entry] = row
                block[entry] = count[row]
            series.append(Series(name, times[first : last + 1], block))
        return cls(known, tuple(series))

    def uncounted(self) -> list[str]:
        """Return the places at which nothing was ever counted."""
        never = np.all([np.isnan(one.counts).all(axis=0) for one in self.series], axis=0)
        return [place for place, none in zip(self.places, never.tolist(), strict=True) if none]

    def at(self, places: Sequence[str]) -> Counts:
        """Return the counts at other places: those without counts have none that were made."""
        if self.places == tuple(places):
            return self
        number = {label: index for index, label in enumerate(places)}
        unknown = [label for label in self.places if label not in number]
        if unknown:
            raise CountsError(_unknown("place", unknown, tuple(places)))
        order = [number[label] for label in self.places]
        series = []
        for one in self.series:
            block = np.full((len(one.times), len(number)), np.nan)
            block[:, order] = one.counts
            series.append(Series(one.name, one.times, block))
        return Counts(tuple(places), tuple(series))


def places_of(
    rows: KeyedRows, column: str, known: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of each record's place; refuse places that are not known."""
    number = {label: index for index, label in enumerate(known)}
    unknown = [row for row, label in enumerate(rows.keys[column]) if label not in number]
    if unknown:
        labels = [rows.keys[column][row] for row in unknown]
        raise CountsError(f"{_where(rows, unknown[0])}: {_unknown(column, labels, known)}")
    return np.array([number[label] for label in rows.keys[column]], dtype=np.int64)


def _unknown(column: str, labels: Sequence[str], known: Sequence[str]) -> str:
    close = difflib.get_close_matches(labels[0], known, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    others = [label for label in labels if label != labels[0]]
    more = f" Unknown are {some(others)}, too." if others else ""
    return (
        f"{column} {labels[0]!r} is none of the {len(known)} places that are known, which are {some(known)}."
        f"{guess}{more} Leave it out, or fit a model with features for that place."
    )


def _where(rows: KeyedRows, row: int) -> str:
    names = ", ".join(f"{name} {column[row]!r}" for name, column in rows.keys.items())
    return f"{rows.where(row)} ({names})"


def _refused(where: str, count: float) -> CountsError:
    return CountsError(
        f"{where}: the count is {count:g}. A count is finite and zero or more; leave it empty (NaN) where"
        " nothing was counted."
    )
