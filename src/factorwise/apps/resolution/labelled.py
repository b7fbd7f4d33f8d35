"""Labelled pairs of records: each pair belongs to the same entity or to two different ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.constraints import Constraints
from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some
from factorwise.io.tables.ids import rows_of_pairs
from factorwise.io.tables.reading import read_table
from factorwise.types import Bools

COLUMNS = ("id", "other", "same")


class LabelledPairs(NamedTuple):
    """The rows of the two records of each pair, and whether they belong to the same entity."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    same: Bools

    @classmethod
    def none(cls) -> LabelledPairs:
        """Return no pairs: a model fitted with these has comparison levels for answers that come later."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))


class ComparedLabels(NamedTuple):
    """Labelled pairs with their comparison levels."""

    pairs: LabelledPairs
    levels: NDArray[np.uint8]

    def part(self, chosen: Bools) -> ComparedLabels:
        """Return the pairs of chosen records; their rows are counted among the chosen records alone."""
        (first, second, same), number = self.pairs, np.cumsum(chosen) - 1
        inside = chosen[first] & chosen[second]
        pairs = LabelledPairs(number[first[inside]], number[second[inside]], same[inside])
        return ComparedLabels(pairs, self.levels[inside])


def with_constraints(pairs: LabelledPairs | None, limits: Constraints) -> LabelledPairs | None:
    """Return the labelled pairs together with the must-link and cannot-link pairs; None if there are none."""
    certain = np.concatenate([limits.must, limits.cannot]).reshape(-1, 2)
    if not len(certain):
        return pairs
    same = np.arange(len(certain)) < len(limits.must)
    if pairs is None:
        return LabelledPairs(certain[:, 0], certain[:, 1], same)
    return LabelledPairs(
        np.append(pairs.first, certain[:, 0]),
        np.append(pairs.second, certain[:, 1]),
        np.append(pairs.same, same),
    )


def labelled_pairs(pairs: Any, ids: pa.Array) -> LabelledPairs:
    """Look up the rows of labelled pairs by their ids.

    pairs
        A table (as `factorwise.io.tables.reading.read_table` takes) with the columns ``id``, ``other`` and
        ``same``, or a list of such triples; ``same`` is a truth value: true and false, or 1 and 0.
        `LabelledPairs` are returned unchanged.
    ids
        The ids of all records.
    """
    if isinstance(pairs, LabelledPairs):
        return pairs
    table = _as_table(pairs)
    first, second = (
        rows_of_pairs(table.column(name), ids, f"labelled pairs, {name!r}") for name in COLUMNS[:2]
    )
    alone = np.flatnonzero(first == second)
    if len(alone):
        given = ids[int(first[alone[0]])].as_py()
        raise InvalidArgumentError(
            f"labelled pair {alone[0] + 1} is of record {given!r} and itself: take it out."
        )
    return LabelledPairs(first, second, _truth(table.column(COLUMNS[2])))


def _as_table(pairs: Any) -> pa.Table:
    listed = isinstance(pairs, Sequence) and not isinstance(pairs, str)
    if not listed or not pairs or isinstance(pairs[0], Mapping):
        return read_table(pairs, columns=COLUMNS)
    if any(len(pair) != len(COLUMNS) for pair in pairs):
        raise InvalidArgumentError(
            "labelled pairs must have three parts each: an id, another, and whether they are the same."
        )
    return pa.table({name: [pair[part] for pair in pairs] for part, name in enumerate(COLUMNS)})


def _truth(values: pa.ChunkedArray) -> Bools:
    try:
        found = values.cast(pa.string()).cast(pa.bool_())
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(
            f"labelled pairs, {COLUMNS[2]!r}: holds {some(values.to_pylist())}, not all of them truth values."
            " Write true or 1 for pairs of one entity, false or 0 for others."
        ) from error
    if found.null_count:
        row = int(np.flatnonzero(np.asarray(found.is_null()))[0]) + 1
        raise InvalidArgumentError(
            f"labelled pair {row} does not say whether it is the same: write true or false, or take it out."
        )
    return np.asarray(found, dtype=np.bool_)
