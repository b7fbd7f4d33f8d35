"""What is known of the moves between places: features of pairs, for all times or for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike

from factorwise.apps.collective.counts import places_of
from factorwise.errors import DataFileError, InvalidArgumentError, ShapeError
from factorwise.io.listing import difference, some
from factorwise.io.tables.keyed_rows import KeyedRows, in_order, read_keyed_rows
from factorwise.io.tables.reading import TableSource
from factorwise.types import Bools, Floats, Int64s

#: A sequence and the name of a step; None for any.
Step = tuple[str | None, str | None]
ANY: Step = (None, None)
BINS = 8  # of distances
LARGEST = 1e12  # of features and coordinates: beyond, sums and squares lose all else, or are infinite
EARTH = 6371.0  # radius in kilometers
#: What a coordinate may be; degrees east are counted from -180 or from 0.
BOUNDS = {"x": (-LARGEST, LARGEST), "y": (-LARGEST, LARGEST), "lat": (-90.0, 90.0), "lon": (-180.0, 360.0)}


@dataclass(frozen=True, slots=True, eq=False)
class TransitionFeatures:
    """Numbers for each pair of places, and which pairs are possible.

    places
    names
        One for each feature.
    values : float64[tables, from, to, features]
    possible : bool[tables, from, to]
    table_of
        Which table holds for which sequence and step; a step is named by the time at which it begins, in a
        tree by that at which it ends.
    """

    places: tuple[str, ...]
    names: tuple[str, ...]
    values: Floats
    possible: Bools
    table_of: Mapping[Step, int] = field(default_factory=lambda: {ANY: 0})

    def __post_init__(self) -> None:
        size = len(self.places)
        if self.values.shape[1:] != (size, size, len(self.names)):
            raise ShapeError(
                f"values must have shape (tables, {size}, {size}, {len(self.names)}) for {size} places and"
                f" {len(self.names)} features, but {self.values.shape} was given."
            )
        stuck = np.argwhere(~self.possible.any(axis=2))
        if len(stuck):
            table, place = stuck[0].tolist()
            step = next(step for step, index in self.table_of.items() if index == table)
            raise InvalidArgumentError(
                f"{_step_text(step)}nothing is possible from place {self.places[place]!r}, not even to stay:"
                " give at least one pair that begins there."
            )

    @classmethod
    def of(
        cls,
        values: ArrayLike,
        *,
        places: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        possible: ArrayLike | None = None,
    ) -> TransitionFeatures:
        """Take an array [from, to, features] that holds at all times."""
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 3 or array.shape[0] != array.shape[1]:
            raise ShapeError(
                f"values must have shape (places, places, features), but {array.shape} was given."
            )
        if not (np.abs(array) <= LARGEST).all():
            wrong = array[~(np.abs(array) <= LARGEST)][0]
            raise InvalidArgumentError(
                f"values must be numbers of at most {LARGEST:g} in size, but {wrong:g} is among them: scale"
                " the features."
            )
        named = tuple(map(str, range(len(array)) if places is None else places))
        titles = tuple(names or (f"feature {k + 1}" for k in range(array.shape[2])))
        allowed = np.ones(array.shape[:2], bool) if possible is None else np.asarray(possible, dtype=bool)
        return cls(named, titles, array[None], allowed[None])

    @classmethod
    def read(cls, source: TableSource) -> TransitionFeatures:
        """Read a table with ``from``, ``to`` and a column for each feature; others are impossible.

        With a column ``time`` the records of a time hold for the step of that name, with one called
        ``sequence`` for that sequence alone.
        """
        rows = read_keyed_rows(source, keys=("from", "to"), optional_keys=("time", "sequence"))
        if not rows.numbers:
            raise DataFileError(f"{rows.origin}: there is no column of a feature beside the places.")
        for name, column in rows.numbers.items():
            for row in np.flatnonzero(~(np.abs(column) <= LARGEST)).tolist():
                given = "empty" if np.isnan(column[row]) else f"{column[row]:g}"
                raise DataFileError(
                    f"{rows.where(row)}: {name!r} is {given}. A feature is a number of at most {LARGEST:g} in"
                    " size: write one, or leave out the record of a pair that is impossible."
                )
        places = in_order(chain(rows.keys["from"], rows.keys["to"]))
        table, table_of = _tables(rows)
        source_place, target = (places_of(rows, column, places) for column in ("from", "to"))
        shape = (len(table_of), len(places), len(places))
        entry = np.ravel_multi_index((table, source_place, target), shape)
        _refuse_twice(rows, entry)
        values = np.zeros((*shape, len(rows.numbers)))
        values.reshape(-1, len(rows.numbers))[entry] = np.stack([*rows.numbers.values()], axis=1)
        possible = np.zeros(shape, dtype=bool)
        possible.ravel()[entry] = True
        return cls(places, tuple(rows.numbers), values, possible, table_of)

    @property
    def general(self) -> bool:
        """Whether they hold for any sequence."""
        return all(sequence is None for sequence, _ in self.table_of)

    def resolved(self, steps: Iterable[tuple[str, str]]) -> Int64s:
        """Return the table of each sequence and step."""
        wanted = list(steps)
        found = [_lookup(self, step) for step in wanted]
        missing = [step for step, table in zip(wanted, found, strict=True) if table is None]
        if missing:
            sequence, _ = missing[0]
            lacking = some(time for name, time in missing if name == sequence)
            there = ", ".join(_step_text(step).removesuffix(": ") for step in list(self.table_of)[:3])
            raise InvalidArgumentError(
                f"there are no features for sequence {sequence!r}, time {lacking}, but the model needs them"
                f" at each step. There are some for {there}: give a table that has all times."
            )
        return np.array(found, dtype=np.int64)

    def joined(self, other: TransitionFeatures) -> TransitionFeatures:
        """Return the features of both; possible is what is possible in both."""
        if self.places != other.places:
            odd = sorted(set(self.places) ^ set(other.places)) or ["their order"]
            raise InvalidArgumentError(
                f"two tables of features name different places, such as {odd[0]!r}; in the second,"
                f" {difference(self.places, other.places)}. Give each all places."
            )
        steps = {
            step
            for mine in self.table_of
            for theirs in other.table_of
            if (step := _both(mine, theirs)) is not None
        }
        steps = {
            step for step in steps if _lookup(self, step) is not None and _lookup(other, step) is not None
        }
        if not steps:
            raise InvalidArgumentError("two tables of features have no time in common: correct their times.")
        ordered = sorted(steps, key=lambda step: (step[0] or "", step[1] or ""))
        pairs = [(_lookup(self, step), _lookup(other, step)) for step in ordered]
        mine, theirs = (np.array(side) for side in zip(*pairs, strict=True))
        return TransitionFeatures(
            self.places,
            (*self.names, *other.names),
            np.concatenate([self.values[mine], other.values[theirs]], axis=3),
            self.possible[mine] & other.possible[theirs],
            {step: number for number, step in enumerate(ordered)},
        )


def staying(places: Sequence[str]) -> TransitionFeatures:
    """Return the one feature of a model that knows only the names of places: whether a member stays."""
    return TransitionFeatures.of(np.eye(len(places))[:, :, None], places=places, names=("stay",))


def by_distance(places: Sequence[str], distance: ArrayLike, bins: int = BINS) -> TransitionFeatures:
    """Return whether a member stays, and in which of ``bins`` classes of equal size the distance is."""
    far = np.asarray(distance, dtype=np.float64)
    moved = ~np.eye(len(places), dtype=bool)
    cuts = (
        np.unique(np.quantile(far[moved], np.linspace(0, 1, bins + 1)[1:-1])) if moved.any() else np.zeros(0)
    )
    classes = np.searchsorted(cuts, far, side="left")
    names = ["stay", *(f"distance up to {cut:.4g}" for cut in cuts), "farther"]
    values = np.concatenate(
        [~moved[:, :, None], (classes[:, :, None] == np.arange(len(cuts) + 1)) & moved[:, :, None]], axis=2
    )
    return TransitionFeatures.of(values, places=places, names=names)


def read_distances(source: TableSource) -> tuple[tuple[str, ...], Floats]:
    """Read places with ``x`` and ``y``, or with ``lat`` and ``lon``; return them and their distances.

    Distances on the globe are in kilometers.
    """
    rows = read_keyed_rows(source, keys=("place",), optional_keys=("name",))
    axes = next((pair for pair in (("x", "y"), ("lat", "lon")) if set(pair) <= set(rows.numbers)), None)
    if axes is None:
        raise DataFileError(
            f"{rows.origin} has neither columns x and y nor lat and lon: give one of the two."
        )
    first, second = (rows.numbers[axis] for axis in axes)
    for axis in axes:
        least, most = BOUNDS[axis]
        column = rows.numbers[axis]
        for row in np.flatnonzero(~((column >= least) & (column <= most))).tolist():
            given = "empty" if np.isnan(column[row]) else f"{column[row]:g}"
            raise DataFileError(
                f"{rows.where(row)} (place {rows.keys['place'][row]!r}): {axis!r} is {given}. Write a number"
                f" from {least:g} to {most:g}."
            )
    places = in_order(rows.keys["place"])
    order = places_of(rows, "place", places)
    _refuse_twice(rows, order)
    position = np.empty((len(places), 2))
    position[order] = np.stack([first, second], axis=1)
    if axes == ("x", "y"):
        return places, np.linalg.norm(position[:, None] - position[None], axis=2)
    angle = np.radians(position)
    apart = np.sin((angle[:, None] - angle[None]) / 2) ** 2
    widths = np.cos(angle[:, None, 0]) * np.cos(angle[None, :, 0])
    return places, 2 * EARTH * np.arcsin(np.sqrt(np.clip(apart[..., 0] + widths * apart[..., 1], 0, 1)))


def _tables(rows: KeyedRows) -> tuple[Int64s, dict[Step, int]]:
    """Number the steps that a table of features speaks of."""
    empty: list[str | None] = [None] * len(rows)
    steps = list(zip(rows.keys.get("sequence", empty), rows.keys.get("time", empty), strict=True))
    table_of = {step: number for number, step in enumerate(dict.fromkeys(steps))}
    return np.array([table_of[step] for step in steps]), table_of


def _refuse_twice(rows: KeyedRows, entry: Int64s) -> None:
    order = np.argsort(entry, kind="stable")
    again = np.flatnonzero(np.diff(entry[order]) == 0)
    if len(again):
        first, second = int(order[again[0]]), int(order[again[0] + 1])
        names = ", ".join(f"{name} {column[second]!r}" for name, column in rows.keys.items())
        raise DataFileError(
            f"{rows.where(second)} ({names}): record {first + 1} is about the same. Give one record for each."
        )


def _lookup(features: TransitionFeatures, step: Step) -> int | None:
    sequence, time = step
    options: tuple[Step, ...] = (step, (None, time), (sequence, None), ANY)
    return next((features.table_of[option] for option in options if option in features.table_of), None)


def _both(mine: Step, theirs: Step) -> Step | None:
    """Return what two steps have in common; None where they differ."""
    merged: list[str | None] = []
    for one, other in zip(mine, theirs, strict=True):
        if one is not None and other is not None and one != other:
            return None
        merged.append(other if one is None else one)
    return (merged[0], merged[1])


def _step_text(step: Step) -> str:
    sequence, time = step
    parts = [f"sequence {sequence!r}"] * (sequence is not None) + [f"time {time!r}"] * (time is not None)
    return f"{', '.join(parts)}: " if parts else ""
