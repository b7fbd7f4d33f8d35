"""``factorwise resolve undo``: the last change of a store taken back."""

from __future__ import annotations

import click

from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit


@verb(example="factorwise resolve undo people.duckdb")
@click.argument("store", metavar="STORE")
@click.option("--change", type=int, metavar="NUMBER", help="Which change.  [default: the last one]")
def command(options: Options, store: str, change: int | None) -> None:
    """Take a change of entities in STORE back; a decision that it came from counts no more.

    A change that a later one builds on cannot be undone before that one. `resolve history` has the numbers.
    """
    from factorwise.store import Store

    with Store.open(store) as opened, opened.transaction():
        number = opened.last_change() if change is None else change
        if number is None:
            raise click.UsageError(f"{store} has no change that could be undone.")
        undone = opened.undo(number)
        decision = opened.execute("SELECT decision FROM changes WHERE change = ?", [number])[0][0]
        if decision is not None:
            opened.withdraw(decision)
    document = {"undone": number, "change": undone, "decision": decision}
    also = "" if decision is None else f", and decision {decision} counts no more"
    emit(document, [f"change {number} is undone{also}"], as_json=options.json)
