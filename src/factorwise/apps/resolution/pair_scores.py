"""Pairs that another tool has scored, stored as a column of the records and used as one more comparison.

For each record, the column holds its id, the ids of the records that it was scored with, and the log odds. So
its rows can be selected and concatenated like those of any other column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factorwise.apps.resolution.normalize.pair_values import PairValues
from factorwise.apps.resolution.scored_pairs.tables import ScoredPairs, read_scored_pairs
from factorwise.errors import InvalidArgumentError
from factorwise.io.listing import some
from factorwise.io.tables.ids import rows_of
from factorwise.io.tables.names import require_columns
from factorwise.io.tables.reading import ids_of, read_table
from factorwise.variables.sparse_rows import starts_of

PAIR_SCORES = "pair scores"
_PARTS = ("id", "others", "log_odds")


def add_pair_scores(
    records: Any,
    pairs: Any,
    id: str,  # noqa: A002 - what the command line calls it too
    *,
    name: str = PAIR_SCORES,
) -> pa.Table:
    """Return the records with an added column of pair scores from another tool.

    The match weight of a score is learned from labelled entities, or estimated without labels. Scored pairs
    become candidate pairs. Pairs with a record that is not in the table are ignored.

    records
        A table of records, in any form that `EntityResolver` accepts.
    pairs
        `ScoredPairs`, or a table that `read_scored_pairs` reads.
    id
        The column of the records that holds the ids used in the pairs.
    name
        Name of the new column.
    """
    table = read_table(records)
    scored = pairs if isinstance(pairs, ScoredPairs) else read_scored_pairs(pairs)
    require_columns([id], table.column_names, "the table")
    if name in table.column_names:
        raise InvalidArgumentError(
            f"there is a column {name!r} already: give the scores of pairs another name."
        )
    ids = ids_of(table, id).cast(pa.string())
    known = scored.ids.cast(pa.string())
    row = rows_of(known, ids)
    if not (row >= 0).any():
        raise InvalidArgumentError(
            f"no scored pair is of these records: its ids are such as {some(known[:3].to_pylist())}, those of"
            f" records such as {some(ids[:3].to_pylist())}. Name the column of the records that has them."
        )
    owner = np.concatenate([row[scored.first], row[scored.second]])
    partner = np.concatenate([scored.second, scored.first])
    there = np.flatnonzero(owner >= 0)
    there = there[np.argsort(owner[there], kind="stable")]
    offsets = pa.array(starts_of(np.bincount(owner[there], minlength=table.num_rows)))
    odds = np.tile(scored.log_odds, 2)[there]
    lists = [
        pa.LargeListArray.from_arrays(offsets, known.take(pa.array(partner[there]))),
        pa.LargeListArray.from_arrays(offsets, pa.array(odds, pa.float32())),
    ]
    return table.append_column(name, pa.StructArray.from_arrays([ids, *lists], list(_PARTS)))


def is_pair_scores(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is that of a column made by `add_pair_scores`."""
    return bool(pa.types.is_struct(kind)) and tuple(field.name for field in kind) == _PARTS


def pair_score_forms(column: pa.ChunkedArray, name: str) -> Mapping[str, PairValues]:
    """Return the normal form of a column made by `add_pair_scores`."""
    n, nothing = len(column), np.zeros(0, np.int64)
    if column.null_count == n:
        return {"pairs": PairValues.of(n, nothing, nothing, np.zeros(0, np.float32))}
    if not is_pair_scores(column.type):
        raise InvalidArgumentError(
            f"column {name!r} is to hold scores of pairs, but its type is {column.type}: add_pair_scores, on"
            " the command line --scores, makes such a column."
        )
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    ids, others, odds = (array.field(part) for part in _PARTS)
    owner = np.asarray(pc.list_parent_indices(others), np.int64)
    partner = rows_of(pc.list_flatten(others).cast(pa.string()), ids)
    values = np.asarray(pc.list_flatten(odds).cast(pa.float32()), np.float32)
    if len(values) != len(owner) or not np.isfinite(values).all():
        raise InvalidArgumentError(f"column {name!r} has scores of pairs that are damaged. Make it again.")
    kept = partner >= 0
    return {"pairs": PairValues.of(n, owner[kept], partner[kept], values[kept])}
