"""Counts of a population by time and place, read and checked; each sequence is one array."""

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

ONLY = "1"  # name of the sequence if the table has only one


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Counts of one population.

    name
        Name of the sequence, such as a day or a year.
    times
        Names of the times, in order.
    counts : float64[times, places]
        NaN where no count was made.
    """

    name: str
    times: tuple[str, ...]
    counts: Floats

    @property
    def complete_times(self) -> list[int]:
        """Indices of the times at which every place has a count."""
        return np.flatnonzero(~np.isnan(self.counts).any(axis=1)).tolist()

    def fill_missing(self) -> Floats:
        """Return the counts, with the mean of its place in place of each missing count."""
        present = ~np.isnan(self.counts)
        mean = np.where(present, self.counts, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        return np.where(present, self.counts, mean)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Counts at the same places, of one or several populations, as one or several sequences of times."""

    places: tuple[str, ...]
    series: tuple[Series, ...]

    @classmethod
    def of(
        cls, counts: ArrayLike, *, places: Sequence[str] | None = None, times: Sequence[str] | None = None
    ) -> Counts:
        """Build counts from an array [times, places], or [sequences, times, places] for several sequences."""
        array = np.array(counts, dtype=np.float64)
        if array.ndim not in (2, 3) or 0 in array.shape:
            raise ShapeError(
                f"counts must have shape (times, places) or (sequences, times, places), but the shape is"
                f" {array.shape}."
            )
        blocks = array[None] if array.ndim == 2 else array
        place_names = tuple(map(str, range(array.shape[-1]) if places is None else places))
        time_names = tuple(map(str, range(array.shape[-2]) if times is None else times))
        if (len(time_names), len(place_names)) != array.shape[-2:]:
            raise ShapeError(
                f"counts have shape {array.shape}, but there are names for {len(time_names)} times and"
                f" {len(place_names)} places: give one name for each."
            )
        sequences = tuple(Series(str(k + 1), time_names, block) for k, block in enumerate(blocks))
        for series in sequences:
            bad = np.argwhere((series.counts < 0) | np.isinf(series.counts))
            if len(bad):
                time, place = bad[0].tolist()
                where = f"sequence {series.name}, time {time_names[time]!r}, place {place_names[place]!r}"
                raise _invalid_count(where, series.counts[time, place])
        return cls(place_names, sequences)

    @classmethod
    def read(cls, source: TableSource, places: Sequence[str] | None = None) -> Counts:
        """Read a table with columns ``time``, ``place``, ``count`` and, if there are several, ``sequence``.

        An empty count, or a record that is absent, is a missing count. A sequence has all times of the table
        that lie between its own first and last time.

        places
            All places, if the table need not name every one; other places are an error.
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
            raise _invalid_count(_where(rows, row), count[row])
        known = in_order(rows.keys["place"]) if places is None else tuple(places)
        place = places_of(rows, "place", known)
        times = in_order(rows.keys["time"])
        names = rows.keys.get("sequence") or [ONLY] * len(rows)
        order = {label: number for number, label in enumerate(times)}
        time = np.array([order[label] for label in rows.keys["time"]])
        series = []
        for name in in_order(names):
            own = np.array([row for row, sequence in enumerate(names) if sequence == name])
            first, last = int(time[own].min()), int(time[own].max())
            block = np.full((last + 1 - first, len(known)), np.nan)
            seen = np.full(block.shape, -1)
            for row in own.tolist():
                entry = (time[row] - first, place[row])
                if seen[entry] >= 0:
                    raise CountsError(
                        f"{_where(rows, row)}: record {seen[entry] + 1} already has this count. Give one"
                        " record for each time and place."
                    )
                seen[entry] = row
                block[entry] = count[row]
            series.append(Series(name, times[first : last + 1], block))
        return cls(known, tuple(series))

    def places_without_counts(self) -> list[str]:
        """Return the places that have no count at any time."""
        empty = np.all([np.isnan(series.counts).all(axis=0) for series in self.series], axis=0)
        return [place for place, is_empty in zip(self.places, empty.tolist(), strict=True) if is_empty]

    def reorder_places(self, places: Sequence[str]) -> Counts:
        """Return the counts with exactly these places as columns; places that are new have no counts."""
        if self.places == tuple(places):
            return self
        number = {label: index for index, label in enumerate(places)}
        unknown = [label for label in self.places if label not in number]
        if unknown:
            raise CountsError(_unknown("place", unknown, tuple(places)))
        order = [number[label] for label in self.places]
        reordered = []
        for series in self.series:
            block = np.full((len(series.times), len(number)), np.nan)
            block[:, order] = series.counts
            reordered.append(Series(series.name, series.times, block))
        return Counts(tuple(places), tuple(reordered))


def places_of(
    rows: KeyedRows, column: str, known: Sequence[str]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the index of each record's place; raise an error for places that are not in ``known``."""
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
    more = f" {some(others)} are unknown, too." if others else ""
    return (
        f"{column} {labels[0]!r} is not among the {len(known)} known places, which are {some(known)}."
        f"{guess}{more} Leave it out, or fit a model with features for that place."
    )


def _where(rows: KeyedRows, row: int) -> str:
    names = ", ".join(f"{name} {column[row]!r}" for name, column in rows.keys.items())
    return f"{rows.where(row)} ({names})"


def _invalid_count(where: str, count: float) -> CountsError:
    return CountsError(
        f"{where}: the count is {count:g}. A count must be finite and at least zero; leave it empty (NaN)"
        " where nothing was counted."
    )
