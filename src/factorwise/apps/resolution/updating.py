"""Assign new records to known entities.

Only some records are resolved again: the new records, the records linked to them, and the other records of
their entities, as well as the entities of records with constraints. The walk starts at the known entities at
its final temperature, so an old record moves only if the new evidence or a constraint outweighs the evidence
for its entity. Normal forms and blocking keys of all records are computed again; apart from that, the work
grows with the number of new records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import FirstPass, Linked, joined, score_in_context, score_pairs
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.record_items import TemplateMaker
from factorwise.apps.resolution.repeats import count_different
from factorwise.errors import require
from factorwise.inference.mcmc.shards.search import Found, LinkSearch
from factorwise.io.tables.reading import SOURCE_COLUMN, stack_tables
from factorwise.kernels.compile.threads import Team
from factorwise.types import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """The entities after an update.

    labels : int32[records]
        The entity of each record, old and new, as numbers.
    weighed : int64[.]
        Rows of the records that were resolved again, including the new ones.
    linked, found
        The links of these records, in the same order, and the result of the search.
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
    constraints: Constraints | None = None,
    templates: Sequence[TemplateMaker] = (),
    seed: int,
    team: Team,
) -> Placed:
    """Assign the records that have no entity yet.

    table
        All records, old and new.
    known : int[records]
        The entity of each record, a number from 0 on; -1 for new ones.
    constraints
        Hard constraints, in rows of ``table``.
    templates
        The user-defined templates that the weights were learned with.
    """
    limits = constraints or Constraints()
    limits.check()
    require(len(known) == table.num_rows, "known", len(known), f"one for each of {table.num_rows} records")
    new = np.asarray(known) < 0
    require(bool(new.any()), "known", "an entity for every record", "-1 for the new ones")
    beyond = int(known.max()) + 1  # no entity has this number or a larger one
    knowledge = knowledge.for_size(count_different(table, knowledge, constraints))
    normal = normalize(table, knowledge.fields)
    # Pairs of old records are left out: all old records share one source, and each new record has its own.
    source = np.where(new, np.cumsum(new), 0).astype(np.int32)
    fresh = knowledge.candidates(normal, sources=source, within=False, threads=team.threads)
    touched = np.zeros(beyond + 1, bool)
    constrained = _constrained(limits, known)
    touched[known[np.concatenate([fresh.first, fresh.second, constrained])]] = True
    touched[-1] = True  # new records have -1
    rows = np.flatnonzero(touched[known])
    part = normal.rows(rows)
    sources, limits = limits.sources, _within(limits, rows, table.num_rows)
    candidates = knowledge.candidates(
        part, sources=limits.sources, within=not limits.one_per_source, threads=team.threads
    )
    pairs = rows[candidates.first], rows[candidates.second]
    scores = score_pairs(normal, knowledge, *pairs, team, sources=sources)
    start = np.where(known[rows] >= 0, known[rows], beyond + np.arange(len(rows)))
    if knowledge.context is not None:  # the known entities replace the clusters of a first pass
        first = FirstPass(scores, start)
        scores = score_in_context(part, candidates, first, knowledge.context)
    linked = joined(table.take(rows), part, candidates, scores, knowledge, limits, templates)
    linked.place_items(start_labels(start, linked.unit, linked.links.n_items, limits))
    found = replace(search, hot=search.cold).run(linked.walk, seed=seed, team=team)
    labels = known.astype(np.int64)
    labels[rows] = beyond + linked.rows_of_units(linked.labels)
    numbers = np.unique(labels, return_inverse=True)[1]
    return Placed(numbers.astype(np.int32), rows, linked, found)


def _constrained(limits: Constraints, known: Ints) -> NDArray[np.int64]:
    """Return the rows that have constraints, and those that repeat a source within a known entity."""
    pairs = np.concatenate([limits.must.ravel(), limits.cannot.ravel()])
    if not limits.one_per_source or limits.sources is None:
        return pairs
    old = np.flatnonzero(known >= 0)
    old = old[np.lexsort((limits.sources[old], known[old]))]
    entity, source = known[old], limits.sources[old]
    again = (entity[1:] == entity[:-1]) & (source[1:] == source[:-1])
    return np.concatenate([pairs, old[1:][again]])


def _within(limits: Constraints, rows: Ints, n: int) -> Constraints:
    """Return the constraints in positions among ``rows``, which contains every row with a constraint."""
    place = np.full(n, -1, np.int64)
    place[rows] = np.arange(len(rows))
    sources = None if limits.sources is None else limits.sources[rows]
    return replace(limits, must=place[limits.must], cannot=place[limits.cannot], sources=sources)


def start_labels(start: Ints, unit: Ints, n_items: int, limits: Constraints) -> NDArray[np.int64]:
    """Return the initial label of each item, which is a known entity if one of its records has one.

    If two items of a cannot-link pair have the same label, the second starts as a singleton.
    """
    labels = np.full(n_items, np.iinfo(np.int64).max)
    np.minimum.at(labels, unit, start)
    beyond = int(start.max(initial=0)) + 1
    for one, two in unit[limits.cannot].tolist():
        if labels[one] == labels[two]:
            labels[two] = beyond + two
    return labels


def below(old: pa.Table, new: pa.Table, columns: Sequence[str], id_column: str | None) -> pa.Table:
    """Stack new records below old ones, with some columns; raise an error if ids repeat across both."""
    parts = [("old", old), ("new", new)]
    if id_column is not None:
        columns = [*columns, id_column]
    wanted = [
        (name, table.select([one for one in dict.fromkeys(columns) if one in table.column_names]))
        for name, table in parts
    ]
    return stack_tables(wanted, id_column=id_column).drop_columns([SOURCE_COLUMN])
