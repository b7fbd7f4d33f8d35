"""``factorwise resolve apply --onto``: new records placed into entities that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from factorwise.cli.files import speaking_of
from factorwise.cli.resolve.data import (
    Records,
    given_table,
    numbered_sources,
    with_scores,
    without_scores,
)
from factorwise.errors import DataFileError
from factorwise.io.listing import some

if TYPE_CHECKING:
    import pyarrow as pa

    from factorwise.apps.resolution.constraints import Constraints
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.resolution.results.answers import Resolution


@dataclass(frozen=True, slots=True, eq=False)
class KnownRecords:
    """Old records, and what is known of them and of the new ones below them.

    name, table, entity
        Of the file with the old records, for messages; the records, and the entity of each.
    id_column
        Of both.
    ids, sources
        Of all records, the old ones first: ids as text, and numbers of sources where a column says them.
    """

    name: str
    table: pa.Table
    entity: pa.Array
    id_column: str
    ids: pa.Array
    sources: NDArray[np.int32] | None


def check_onto(onto: str | None, old: str | None, others: Mapping[str, object]) -> None:
    """Refuse options that do not go together."""
    if (onto is None) != (old is None):
        raise click.UsageError(
            "--onto FILE (entities found earlier: id, entity) and --old FILE (their records) go together."
        )
    clashing = [name for name, value in others.items() if value]
    if onto is not None and clashing:
        raise click.UsageError(f"{clashing[0]} cannot be given with --onto.")


def read_known(onto: str, old: str, records: Records, reading: Mapping[str, Any]) -> KnownRecords:
    """Read old records and their entities.

    reading
        How records are read: see `read_records`.
    """
    import pyarrow as pa

    from factorwise.io.tables.ids import rows_of
    from factorwise.io.tables.names import require_columns
    from factorwise.io.tables.reading import ids_of

    id_column, source, encoding = (reading[name] for name in ("id_column", "source", "encoding"))
    before = given_table(old, encoding=encoding)
    require_columns([id_column, *([] if source is None else [source])], before.column_names, old)
    with speaking_of(old):
        ids = ids_of(before, id_column).cast(pa.string())
    again = np.flatnonzero(rows_of(records.ids, ids) >= 0)
    if len(again):
        raise DataFileError(
            f"{old} and {records.name} have {len(again)} ids in common, the first of them"
            f" {records.ids[int(again[0])].as_py()!r}. Give records that are new, with ids of their own."
        )
    found = given_table(onto, ["id", "entity"], encoding)
    with speaking_of(old, onto):
        entity = known_entities(found, ids)
    sources = None
    if source is not None:
        columns = [table.column(source).cast(pa.string()) for table in (before, records.table)]
        both = pa.chunked_array([chunk for column in columns for chunk in column.chunks], pa.string())
        sources = numbered_sources(both, source, f"{old} and {records.name}")
    scored = {name: reading[name] for name in ("scores", "score_column", "score_kind")}
    before = with_scores(before, id_column, encoding, **scored)
    everyone = pa.concat_arrays([ids, records.ids.cast(pa.string())])
    return KnownRecords(old, before, entity, id_column, everyone, sources)


def placed(
    records: Records, known: KnownRecords, resolver: EntityResolver, limits: Constraints
) -> Resolution:
    """Place records into the entities of old ones; the answer is of all records, the old ones first."""
    with speaking_of(known.name, records.name):
        return resolver.update(
            records.table,
            known.table,
            known.entity,
            id=known.id_column,
            constraints=limits,
        )


def placements(known: KnownRecords, found: Resolution) -> dict[str, int]:
    """Count where new records went, and how many old ones have another entity now."""
    import pyarrow.compute as pc

    old = len(known.entity)
    before = known.entity.cast(found.entity.type)
    names = found.entity.slice(old)
    kept = pc.equal(found.entity.slice(0, old), before)
    return {
        "new_records": len(names),
        "in_known_entities": int(pc.sum(pc.is_in(names, value_set=before.drop_null())).as_py() or 0),
        "old_records_moved": int(pc.sum(pc.invert(kept)).as_py() or 0),
    }


def all_content(records: Records, known: KnownRecords, resolver: EntityResolver) -> pa.Table:
    """Return what all records say, the old ones first: columns that are compared, or that both have alike."""
    from factorwise.apps.resolution.updating import below

    compared = [field.name for field in resolver.knowledge_.fields if field.kind != "ignore"]
    new, old = records.content.schema, known.table.schema
    alike = [name for name in new.names if name in old.names and new.field(name).type == old.field(name).type]
    return without_scores(below(known.table, records.table, [*compared, *alike], None))


def known_entities(found: pa.Table, ids: pa.Array) -> pa.Array:
    """Return the entity of each record, joined by id as text; null where none is known."""
    import pyarrow as pa

    from factorwise.io.tables.ids import rows_of

    known = found.column("id").combine_chunks()
    rows = rows_of(ids, known)
    if (rows < 0).all():
        here, there = ids[0].as_py(), found.column("id")[0].as_py()
        raise DataFileError(
            "no old record has an entity: the ids of the two files have nothing in common; they are such as"
            f" {here!r} and {there!r}. Give the records that --onto speaks of with --old."
        )
    lost = np.setdiff1d(np.arange(len(known)), rows)
    if len(lost):
        named = some(known.take(pa.array(lost[:3])).to_pylist())
        raise DataFileError(
            f"{len(lost):,} records that have an entity are not among the old ones, such as {named}: they"
            " would be lost. Give all records that --onto speaks of with --old."
        )
    return found.column("entity").combine_chunks().take(pa.array(rows, mask=rows < 0))
