"""``factorwise resolve apply --onto``: new records placed into entities that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from factorwise.cli.files import speaking_of
from factorwise.cli.resolve_data import Records, given_table
from factorwise.errors import DataFileError

if TYPE_CHECKING:
    import pyarrow as pa

    from factorwise.apps.resolution.answers import Resolution
    from factorwise.apps.resolution.estimator import EntityResolver


def check_onto(onto: str | None, old: str | None, others: Mapping[str, object]) -> None:
    """Refuse options that do not go together."""
    if (onto is None) != (old is None):
        raise click.UsageError(
            "--onto FILE (entities found earlier: id, entity) and --old FILE (their records) go together."
        )
    clashing = [name for name, value in others.items() if value]
    if onto is not None and clashing:
        raise click.UsageError(f"{clashing[0]} cannot be given with --onto.")


def placed(
    records: Records, resolver: EntityResolver, onto: str, old: str, id_column: str, *, posterior: bool
) -> Resolution:
    """Place records into the entities of old ones; the answer is of all records, the old ones first."""
    before = given_table(old)
    with speaking_of(f"{old} and {onto}"):
        entity = known_entities(given_table(onto, ["id", "entity"]), before, id_column)
    with speaking_of(f"{old} and {records.name}"):
        return resolver.update(records.table, before, entity, id=id_column, posterior=posterior)


def known_entities(found: pa.Table, records: pa.Table, id_column: str) -> pa.Array:
    """Return the entity of each record, joined by id as text; null where none is known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from factorwise.io.table_columns import require_columns

    require_columns([id_column], records.column_names, "the old records")
    ids = records.column(id_column).cast(pa.string()).combine_chunks()
    known = found.column("id").cast(pa.string()).combine_chunks()
    place = pc.index_in(ids, value_set=known)
    if place.null_count == len(place):
        raise DataFileError("no old record has an entity: the ids of the two files have nothing in common.")
    return found.column("entity").combine_chunks().take(place)
