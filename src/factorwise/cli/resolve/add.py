"""``factorwise resolve add``: new records put into a store."""

from __future__ import annotations

from typing import Any

import click

from factorwise.cli.files import speaking_of
from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit
from factorwise.cli.resolve.data import read_records, record_options


@verb(example="factorwise resolve add people.duckdb new.csv --id id")
@click.argument("store", metavar="STORE")
@click.argument("files", nargs=-1, required=True, metavar="RECORDS...")
@record_options
def command(options: Options, store: str, files: tuple[str, ...], **reading: Any) -> None:
    """Add the records of RECORDS to STORE: into entities that are there, or as new ones.

    They need ids of their own. Only the new records, those that share something with them and the other
    records of their entities are weighed; what people decided stays.
    """
    records = read_records(files, **reading)
    from factorwise.apps.resolution.curation.curator import Curator
    from factorwise.store import Store

    with Store.open(store) as opened, speaking_of(records.name):
        curator = Curator(opened, random_state=options.seed, n_jobs=options.threads)
        added = curator.add(records.table, records.ids, source=records.origin)
    document = {
        "new_records": added.records,
        "in_known_entities": added.joined,
        "old_records_moved": added.moved,
        "change": added.change,
    }
    lines = [
        f"{added.records:,} records added: {added.joined:,} to entities that were there,"
        f" {added.records - added.joined:,} as new ones; {added.moved:,} old records moved"
    ]
    emit(document, lines, as_json=options.json)
