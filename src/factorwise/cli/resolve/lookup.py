"""``factorwise resolve lookup``: the entity that a record is of."""

from __future__ import annotations

import click

from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit

ID = "id"


@verb(example='factorwise resolve lookup people.duckdb name="Ann Lee" born=1970')
@click.argument("store", metavar="STORE")
@click.argument("values", nargs=-1, required=True, metavar="COLUMN=VALUE...")
@click.option("--most", type=Whole(min=1), default=5, help="Entities to list.")
def command(options: Options, store: str, values: tuple[str, ...], most: int) -> None:
    """Find which entity of STORE a record with these values is of, with probability and reasons.

    With id=ID alone, which entity the record of the store with this id is in, and which others it may be of.
    Nothing is added to the store.
    """
    record = {}
    for value in values:
        name, sign, text = value.partition("=")
        if not sign:
            raise click.UsageError(f"write COLUMN=VALUE, but {value!r} was given.")
        record[name] = text
    from factorwise.apps.resolution.curation.curator import Curator
    from factorwise.store import Store

    with Store.open(store, read_only=True) as opened:
        curator = Curator(opened, n_jobs=1)
        compared = curator.compared_columns()
        if list(record) == [ID] and ID not in compared:
            found = curator.lookup_id(record[ID], most=most)
        else:
            other = [name for name in record if name not in compared]
            if other:
                raise click.UsageError(
                    f"{store} compares no column {other[0]!r}, but {', '.join(compared)}. Or give {ID}=ID"
                    " alone for a record of the store."
                )
            found = curator.lookup(record, most=most)
    document = {"matches": [match._asdict() for match in found]}
    lines = []
    for match in found:
        lines.append(
            f"entity {match.entity}: probability {match.probability:.3f}, {match.records} records, most alike"
            f" {match.record}"
        )
        lines += [f"    {value:+.2f}  {name}" for name, value in match.reasons[:5]]
    emit(document, lines or ["no entity has anything in common with it"], as_json=options.json)
