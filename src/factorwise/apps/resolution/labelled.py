"""Pairs of records that someone has judged: of one entity, or of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.io.tables import read_table
from factorwise.types import Bools

COLUMNS = ("id", "other", "same")
_SHOWN = 3  # ids named in an error


class LabelledPairs(NamedTuple):
    """Rows of two records each, and whether they are of one entity."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    same: Bools


class ComparedLabels(NamedTuple):
    """Labelled pairs with their levels in some comparisons."""

    pairs: LabelledPairs
    levels: NDArray[np.uint8]

    def plus(self, other: ComparedLabels) -> ComparedLabels:
        """Return the pairs of both."""
        pairs = LabelledPairs(*(np.concatenate(two) for two in zip(self.pairs, other.pairs, strict=True)))
        return ComparedLabels(pairs, np.concatenate([self.levels, other.levels]))

    def part(self, chosen: Bools) -> ComparedLabels:
        """Return the pairs of which both records are chosen, in the rows of those alone."""
        (first, second, same), number = self.pairs, np.cumsum(chosen) - 1
        inside = chosen[first] & chosen[second]
        pairs = LabelledPairs(number[first[inside]], number[second[inside]], same[inside])
        return ComparedLabels(pairs, self.levels[inside])


def labelled_pairs(pairs: Any, ids: pa.Array) -> LabelledPairs:
    """Find the records of labelled pairs.

    pairs
        A table (as `factorwise.io.tables.read_table` takes) with the columns ``id``, ``other`` and ``same``,
        or a list of such triples; ``same`` is a truth value: true and false, 1 and 0.
    ids
        Of all records.
    """
    table = _as_table(pairs)
    first, second = (_rows(table.column(name), ids, name) for name in COLUMNS[:2])
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


def _rows(values: pa.ChunkedArray, ids: pa.Array, name: str) -> NDArray[np.int64]:
    texts = values.cast(pa.string()), ids.cast(pa.string())
    rows = np.asarray(pc.index_in(texts[0], value_set=texts[1]).fill_null(-1), dtype=np.int64)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        some = ", ".join(f"{values[k].as_py()!r} (pair {k + 1})" for k in unknown[:_SHOWN].tolist())
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        there = ", ".join(map(repr, ids[:_SHOWN].to_pylist()))
        raise InvalidArgumentError(
            f"labelled pairs, {name!r}: no record has the id {some}{more}; ids are such as {there}. Correct"
            " it, or take the pair out."
        )
    return rows


def _truth(values: pa.ChunkedArray) -> Bools:
    try:
        found = values.cast(pa.string()).cast(pa.bool_())
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(
            f"labelled pairs, {COLUMNS[2]!r}: {error}. Write true or 1 for pairs of one entity, false or 0"
            " for others."
        ) from error
    if found.null_count:
        row = int(np.flatnonzero(np.asarray(found.is_null()))[0]) + 1
        raise InvalidArgumentError(
            f"labelled pair {row} does not say whether it is the same: write true or false, or take it out."
        )
    return np.asarray(found, dtype=np.bool_)
