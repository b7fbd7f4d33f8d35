"""New records placed into known entities.

Only records that share something with a new one are weighed again: the new records, those linked to them, and
the other records of their entities. The walk begins with the known entities and is cold from the start, so an
old record moves only where the new evidence outweighs what held it. Normal forms and blocking keys of all
records are made anew; beyond that the work grows with the number of new records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import find_candidates
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.forms import NormalField, NormalTable
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import Linked, joined, score_pairs
from factorwise.apps.resolution.normal_forms import normalize
from factorwise.errors import require
from factorwise.inference.mcmc.linkage_search import Found, LinkSearch
from factorwise.io.tables import SOURCE_COLUMN, stack_tables
from factorwise.kernels.threads import Team
from factorwise.types import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The entities after an update.

    labels : int32[records]
        The entity of each record, old and new, as numbers.
    weighed : int64[.]
        Rows of the records that were weighed again; the new ones among them.
    linked, found
        Their links, in that order, and how the search ended.
    """

    labels: NDArray[np.int32]
    weighed: NDArray[np.int64]
    linked: Linked
    found: Found


def place(
    table: pa.Table,
    known: Ints,
    knowledge: Knowledge,
    search: LinkSearch,
    *,
    seed: int,
    team: Team,
) -> Placed:
    """Place the records without an entity.

    table
        All records, old and new.
    known : int[records]
        The entity of each record, a number from 0 on; -1 for new ones.
    """
    require(len(known) == table.num_rows, "known", len(known), f"one for each of {table.num_rows} records")
    new = np.asarray(known) < 0
    require(bool(new.any()), "known", "an entity for every record", "-1 for the new ones")
    beyond = int(known.max()) + 1  # a number that no entity has, nor those from it on
    normal = normalize(table, knowledge.fields)
    # A source of its own for each new record and one for all old ones leaves out what is known already.
    source = np.where(new, np.cumsum(new), 0).astype(np.int32)
    fresh = find_candidates(normal, knowledge.rules, sources=source, within=False, threads=team.threads)
    touched = np.zeros(beyond + 1, bool)
    touched[known[np.concatenate([fresh.first, fresh.second])]] = True
    touched[-1] = True  # new records have -1
    rows = np.flatnonzero(touched[known])
    part = _rows(normal, rows)
    candidates = find_candidates(part, knowledge.rules, threads=team.threads)
    scores = score_pairs(normal, knowledge, rows[candidates.first], rows[candidates.second], team)
    linked = joined(part, candidates, scores, knowledge, Constraints())
    start = np.where(known[rows] >= 0, known[rows], beyond + np.arange(len(rows)))
    by_unit = np.empty(len(rows), np.int64)
    by_unit[linked.unit] = start
    linked.walk.place_items(by_unit)
    found = replace(search, hot=search.cold).run(linked.walk, linked.keys, seed=seed, team=team)
    labels = known.astype(np.int64)
    labels[rows] = beyond + linked.rows_of_units(linked.walk.labels)
    numbers = np.unique(labels, return_inverse=True)[1]
    return Placed(numbers.astype(np.int32), rows, linked, found)


def below(old: pa.Table, new: pa.Table, columns: Sequence[str], id_column: str | None) -> pa.Table:
    """Put new records below old ones, as far as some columns go; ids must differ over both."""
    parts = [("old", old), ("new", new)]
    if id_column is not None:
        columns = [*columns, id_column]
    wanted = [
        (name, table.select([one for one in dict.fromkeys(columns) if one in table.column_names]))
        for name, table in parts
    ]
    return stack_tables(wanted, id_column=id_column).drop_columns([SOURCE_COLUMN])


def _rows(normal: NormalTable, rows: Ints) -> NormalTable:
    """Return the normal forms of some rows."""
    fields = {
        name: NormalField(name, field.kind, {form: column.rows(rows) for form, column in field.items()})
        for name, field in normal.items()
    }
    return NormalTable(len(rows), fields)
