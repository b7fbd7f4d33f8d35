"""``factorwise resolve init``: a store with records and the entities found in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from factorwise.cli.files import check_target, speaking_of
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.resolve.data import given_fields, read_records, record_options
from factorwise.cli.resolve.unlabelled import about_option, warn_of_thin_evidence


@verb(example="factorwise resolve init people.duckdb people.csv --id id")
@click.argument("store", metavar="STORE")
@click.argument("files", nargs=-1, required=True, metavar="RECORDS...")
@record_options
@path_option("--model", metavar="MODEL.fw", help="What was learned.")
@path_option("--fields", metavar="FIELDS.toml", help="Kinds of columns.")
@about_option
def command(
    options: Options,
    store: str,
    files: tuple[str, ...],
    model: Path | None,
    fields: Path | None,
    about: tuple[str, ...],
    **reading: Any,
) -> None:
    """Make the file STORE: the records of RECORDS, the entities found in them, and what adding needs later.

    Without --model, weights are found from what the records look like. `resolve add` adds further records,
    `factorwise review` asks about the doubtful ones, `resolve export` writes the entities.
    """
    document = make_store(options, Path(store), files, model, fields, about, reading)
    lines = [f"{document['records']:,} records of {document['entities']:,} entities in {document['store']}"]
    emit(document, lines, as_json=options.json)


def make_store(
    options: Options,
    target: Path,
    files: tuple[str, ...],
    model: Path | None,
    fields: Path | None,
    about: tuple[str, ...],
    reading: dict[str, Any],
) -> dict[str, Any]:
    """Make a store, whole or not at all, and return what is in it.

    about
        Columns that name the entity, without a model.
    reading
        How records are read: see `read_records`.
    """
    if model is not None and about:
        raise click.UsageError("--about is for stores without a --model, which knows what it compares.")
    from factorwise.apps.resolution.curation.curator import Curator
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.store import Store

    check_target("STORE", target, *files, model, fields)
    Store.refuse_existing(target)  # before the work
    records = read_records(files, **reading)
    kinds = given_fields(fields, records)
    settings: dict[str, Any] = {"random_state": options.seed, "n_jobs": options.threads}
    if model is not None:
        resolver = EntityResolver.load(model, **settings)
    else:
        resolver = EntityResolver(fields=kinds, about=about, **settings)
        with speaking_of(records.name):
            resolver.fit(records.table, leave_out=records.leave_out)
        warn_of_thin_evidence(options, resolver.knowledge_)
    opened = Store.create(target)
    try:
        with opened, speaking_of(records.name):
            curator = Curator(opened, **settings)
            found = curator.resolve(
                records.table,
                records.ids,
                source=records.origin,
                resolver=resolver,
                on_message=lambda text: notice(options, text),
            )
    except BaseException:
        target.unlink(missing_ok=True)  # whole or not at all
        target.with_name(f"{target.name}.wal").unlink(missing_ok=True)
        raise
    return {"store": target.name, "records": records.table.num_rows, "entities": found}
