"""Features of the moves between pairs of places, the same at all times or different at each."""

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

#: The names of a sequence and of a step; None stands for any.
Step = tuple[str | None, str | None]
ANY: Step = (None, None)
BINS = 8  # classes of distance
LARGEST = 1e12  # largest feature or coordinate; beyond it, sums and squares lose precision or overflow
EARTH = 6371.0  # radius in kilometers
#: Allowed range of each coordinate; longitudes may start at -180 or at 0.
BOUNDS = {"x": (-LARGEST, LARGEST), "y": (-LARGEST, LARGEST), "lat": (-90.0, 90.0), "lon": (-180.0, 360.0)}


@dataclass(frozen=True, slots=True, eq=False)
class TransitionFeatures:
    """Features of each pair of places, and which pairs are possible.

    places
        Names of the places.
    names
        Names of the features.
    values : float64[tables, from, to, features]
    possible : bool[tables, from, to]
    table_of
        The table that applies to each sequence and step. A step is named by the time at which it begins, or,
        in a tree, by the time at which it ends.
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
                f" {len(self.names)} features, but their shape is {self.values.shape}."
            )
        stuck = np.argwhere(~self.possible.any(axis=2))
        if len(stuck):
            table, place = stuck[0].tolist()
            step = next(step for step, index in self.table_of.items() if index == table)
            raise InvalidArgumentError(
                f"{_step_text(step)}no move from place {self.places[place]!r} is possible, not even staying:"
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
        """Build features from an array [from, to, features] that applies at all times."""
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 3 or array.shape[0] != array.shape[1]:
            raise ShapeError(
                f"values must have shape (places, places, features), but their shape is {array.shape}."
            )
        if not (np.abs(array) <= LARGEST).all():
            wrong = array[~(np.abs(array) <= LARGEST)][0]
            raise InvalidArgumentError(
                f"values must lie between {-LARGEST:g} and {LARGEST:g}, but one is {wrong:g}: scale the"
                " features."
            )
        place_names = tuple(map(str, range(len(array)) if places is None else places))
        feature_names = tuple(names or (f"feature {k + 1}" for k in range(array.shape[2])))
        allowed = np.ones(array.shape[:2], bool) if possible is None else np.asarray(possible, dtype=bool)
        return cls(place_names, feature_names, array[None], allowed[None])

    @classmethod
    def read(cls, source: TableSource) -> TransitionFeatures:
        """Read a table with the columns ``from``, ``to`` and one for each feature.

        Pairs of places that the table does not contain are impossible moves. With a column ``time``, a record
        applies to the step of that name only; with a column ``sequence``, to that sequence only.
        """
        rows = read_keyed_rows(source, keys=("from", "to"), optional_keys=("time", "sequence"))
        if not rows.numbers:
            raise DataFileError(
                f"{rows.origin} has no column of features beside the places: add at least one."
            )
        for name, column in rows.numbers.items():
            for row in np.flatnonzero(~(np.abs(column) <= LARGEST)).tolist():
                value = "empty" if np.isnan(column[row]) else f"{column[row]:g}"
                raise DataFileError(
                    f"{rows.where(row)}: {name!r} is {value}. A feature must be a number between {-LARGEST:g}"
                    f" and {LARGEST:g}; to make a move impossible, leave out its record."
                )
        places = in_order(chain(rows.keys["from"], rows.keys["to"]))
        table, table_of = _tables(rows)
        source_place, target = (places_of(rows, column, places) for column in ("from", "to"))
        shape = (len(table_of), len(places), len(places))
        entry = np.ravel_multi_index((table, source_place, target), shape)
        _check_unique(rows, entry)
        values = np.zeros((*shape, len(rows.numbers)))
        values.reshape(-1, len(rows.numbers))[entry] = np.stack([*rows.numbers.values()], axis=1)
        possible = np.zeros(shape, dtype=bool)
        possible.ravel()[entry] = True
        return cls(places, tuple(rows.numbers), values, possible, table_of)

    @property
    def is_general(self) -> bool:
        """Whether no table is limited to one sequence."""
        return all(sequence is None for sequence, _ in self.table_of)

    def tables_for(self, steps: Iterable[tuple[str, str]]) -> Int64s:
        """Return the index of the table that applies to each (sequence, step)."""
        wanted = list(steps)
        tables = [_lookup(self, step) for step in wanted]
        missing = [step for step, table in zip(wanted, tables, strict=True) if table is None]
        if missing:
            sequence, _ = missing[0]
            lacking = some(time for name, time in missing if name == sequence)
            known = ", ".join(_step_text(step).removesuffix(": ") for step in list(self.table_of)[:3])
            raise InvalidArgumentError(
                f"there are no features for sequence {sequence!r}, time {lacking}, but the model needs them"
                f" at each step. There are features for {known}: give a table that has all times."
            )
        return np.array(tables, dtype=np.int64)

    def join(self, other: TransitionFeatures) -> TransitionFeatures:
        """Return the features of both; a move is possible if both say so."""
        if self.places != other.places:
            odd = sorted(set(self.places) ^ set(other.places)) or ["their order"]
            raise InvalidArgumentError(
                f"two tables of features have different places, such as {odd[0]!r}; in the second table"
                f" {difference(self.places, other.places)}. Give the same places in both."
            )
        steps = {
            step
            for mine in self.table_of
            for theirs in other.table_of
            if (step := _intersect(mine, theirs)) is not None
        }
        steps = {
            step for step in steps if _lookup(self, step) is not None and _lookup(other, step) is not None
        }
        if not steps:
            raise InvalidArgumentError(
                "two tables of features have no time in common: correct the times in one of them."
            )
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
    """Return one feature for places of which only the names are known: whether a member stays."""
    return TransitionFeatures.of(np.eye(len(places))[:, :, None], places=places, names=("stay",))


def by_distance(places: Sequence[str], distance: ArrayLike, bins: int = BINS) -> TransitionFeatures:
    """Return indicator features: whether a member stays, and in which quantile class the distance lies."""
    distances = np.asarray(distance, dtype=np.float64)
    moved = ~np.eye(len(places), dtype=bool)
    cuts = (
        np.unique(np.quantile(distances[moved], np.linspace(0, 1, bins + 1)[1:-1]))
        if moved.any()
        else np.zeros(0)
    )
    classes = np.searchsorted(cuts, distances, side="left")
    names = ["stay", *(f"distance up to {cut:.4g}" for cut in cuts), "farther"]
    values = np.concatenate(
        [~moved[:, :, None], (classes[:, :, None] == np.arange(len(cuts) + 1)) & moved[:, :, None]], axis=2
    )
    return TransitionFeatures.of(values, places=places, names=names)


def read_distances(source: TableSource) -> tuple[tuple[str, ...], Floats]:
    """Read a table of places with ``x`` and ``y``, or ``lat`` and ``lon``; return names and distances.

    Distances between latitudes and longitudes are great circles, in kilometers.
    """
    rows = read_keyed_rows(source, keys=("place",), optional_keys=("name",))
    axes = next((pair for pair in (("x", "y"), ("lat", "lon")) if set(pair) <= set(rows.numbers)), None)
    if axes is None:
        raise DataFileError(
            f"{rows.origin} has neither the columns x and y nor lat and lon: add one of these pairs."
        )
    first, second = (rows.numbers[axis] for axis in axes)
    for axis in axes:
        least, most = BOUNDS[axis]
        column = rows.numbers[axis]
        for row in np.flatnonzero(~((column >= least) & (column <= most))).tolist():
            value = "empty" if np.isnan(column[row]) else f"{column[row]:g}"
            raise DataFileError(
                f"{rows.where(row)} (place {rows.keys['place'][row]!r}): {axis!r} is {value}. Write a number"
                f" from {least:g} to {most:g}."
            )
    places = in_order(rows.keys["place"])
    order = places_of(rows, "place", places)
    _check_unique(rows, order)
    position = np.empty((len(places), 2))
    position[order] = np.stack([first, second], axis=1)
    if axes == ("x", "y"):
        return places, np.linalg.norm(position[:, None] - position[None], axis=2)
    angle = np.radians(position)
    apart = np.sin((angle[:, None] - angle[None]) / 2) ** 2
    widths = np.cos(angle[:, None, 0]) * np.cos(angle[None, :, 0])
    return places, 2 * EARTH * np.arcsin(np.sqrt(np.clip(apart[..., 0] + widths * apart[..., 1], 0, 1)))


def _tables(rows: KeyedRows) -> tuple[Int64s, dict[Step, int]]:
    """Number the (sequence, step) pairs of a table of features."""
    empty: list[str | None] = [None] * len(rows)
    steps = list(zip(rows.keys.get("sequence", empty), rows.keys.get("time", empty), strict=True))
    table_of = {step: number for number, step in enumerate(dict.fromkeys(steps))}
    return np.array([table_of[step] for step in steps]), table_of


def _check_unique(rows: KeyedRows, entry: Int64s) -> None:
    order = np.argsort(entry, kind="stable")
    again = np.flatnonzero(np.diff(entry[order]) == 0)
    if len(again):
        first, second = int(order[again[0]]), int(order[again[0] + 1])
        names = ", ".join(f"{name} {column[second]!r}" for name, column in rows.keys.items())
        raise DataFileError(
            f"{rows.where(second)} ({names}): record {first + 1} has the same key. Give one record for each."
        )


def _lookup(features: TransitionFeatures, step: Step) -> int | None:
    sequence, time = step
    options: tuple[Step, ...] = (step, (None, time), (sequence, None), ANY)
    return next((features.table_of[option] for option in options if option in features.table_of), None)


def _intersect(mine: Step, theirs: Step) -> Step | None:
    """Return the step to which both apply; None if there is none."""
    merged: list[str | None] = []
    for left, right in zip(mine, theirs, strict=True):
        if left is not None and right is not None and left != right:
            return None
        merged.append(right if left is None else left)
    return (merged[0], merged[1])


def _step_text(step: Step) -> str:
    sequence, time = step
    parts = [f"sequence {sequence!r}"] * (sequence is not None) + [f"time {time!r}"] * (time is not None)
    return f"{', '.join(parts)}: " if parts else ""
