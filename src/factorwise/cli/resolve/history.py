"""``factorwise resolve history``: what happened to an entity of a store."""

from __future__ import annotations

import click

from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit


@verb(example="factorwise resolve history people.duckdb 17")
@click.argument("store", metavar="STORE")
@click.argument("entity", type=int, metavar="ENTITY")
def command(options: Options, store: str, entity: int) -> None:
    """Show what happened to ENTITY, the number that STORE gives it: merges, splits, who decided, and when."""
    from factorwise.store import Store

    with Store.open(store, read_only=True) as opened:
        events = opened.history(entity)
        members = opened.ids(opened.members([entity]).column("record").to_numpy()).to_pylist()
    if not events:
        raise click.UsageError(f"{store} has never had an entity {entity}.")
    rows = []
    for one in events:
        other = "new records" if one["other"] is None else f"entity {one['other']}"
        link = "from" if one["event"] == "received" else "to"
        cause = one["who"] or f"run {one['run']}"
        when = one["made"].isoformat(" ", "seconds")
        rows.append(
            [
                str(one["change"]),
                when,
                f"{one['event']} {one['records']:,} {link} {other}",
                one["cause"],
                cause,
            ]
        )
    document = {
        "entity": entity,
        "records": members,
        "events": [one | {"made": one["made"].isoformat()} for one in events],
    }
    lines = [
        f"entity {entity}: {len(members):,} records now",
        *aligned([["change", "when", "what", "cause", "who"], *rows]),
    ]
    emit(document, lines, as_json=options.json)
