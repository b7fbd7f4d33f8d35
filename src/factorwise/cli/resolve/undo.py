"""``factorwise resolve undo``: the last change of a store taken back."""

from __future__ import annotations

import click

from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit


@verb(example="factorwise resolve undo people.duckdb")
@click.argument("store", metavar="STORE")
@click.option("--change", type=int, metavar="NUMBER", help="Which change.  [default: the last one]")
def command(options: Options, store: str, change: int | None) -> None:
    """Take back what changed STORE last: a decision with all that it changed, or a change of a run.

    A change that a later one builds on cannot be undone before that one. `resolve history` has the numbers.
    """
    from factorwise.store import Store

    with Store.open(store) as opened, opened.transaction():
        number, decision = opened.last_step() if change is None else (change, opened.decision_of(change))
        if decision is not None:
            undone = opened.take_back(decision)
        elif number is not None:
            opened.undo(number)
            undone = [number]
        else:
            raise click.UsageError(f"{store} has no change that could be undone.")
    said = [f"change {number} is undone" for number in undone]
    if decision is not None:
        said.append(f"decision {decision} counts no more" + ("" if undone else "; it had changed nothing"))
    emit({"undone": undone, "decision": decision}, [", and ".join(said)], as_json=options.json)
