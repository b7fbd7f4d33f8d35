"""``factorwise review``: questions about uncertain records, in a browser or at the console."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import notice, printable
from factorwise.errors import MissingExtraError

if TYPE_CHECKING:
    from factorwise.apps.resolution.curation import Question, Review

WHOLE = "whole"
KEYS = {"y": "same", "n": "different", "u": "unsure"}


@verb(example="factorwise review people.duckdb")
@click.argument("store", metavar="STORE")
@click.option(
    "--id", "id_column", metavar="COLUMN", help="Column with the ids, if STORE is a file with records."
)
@click.option(
    "--port", type=Whole(min=0, most=65_535), default=0, show_default="any that is free", help="Port."
)
@click.option("--no-browser", is_flag=True, help="Print the address, but do not open a browser.")
@click.option("--console", is_flag=True, help="Ask in this terminal instead of a browser.")
@click.option("--who", default="me", help="Name of the person who answers at the console.")
def command(
    options: Options,
    store: str,
    id_column: str | None,
    port: int,
    no_browser: bool,
    console: bool,
    who: str,
) -> None:
    """Ask about the uncertain records of STORE, one question at a time, and learn from the answers.

    Serves a page on this machine only, at an address with a token, until Ctrl-C. If STORE is a file with
    records, such as people.csv, the store people.duckdb is first created beside it, which needs --id.
    """
    path = _prepared(options, store, id_column)
    from factorwise.apps.resolution.curation import Review

    review = Review(path, background=True, random_state=options.seed, n_jobs=options.threads)
    try:
        if console:
            ask_at_console(review, who)
        else:
            _serve(review, port, no_browser)
    except KeyboardInterrupt:
        pass  # the usual way to end it
    finally:
        review.close()


def ask_at_console(review: Review, who: str) -> None:
    """Ask until there are no more questions, or the user quits."""
    while (question := review.next(who)) is not None:
        for line in question_lines(question):
            click.echo(printable(line))
        keys, taken_out = [*KEYS, "b", "q"], []
        if question.kind == WHOLE:
            reply = click.prompt(
                "[y] all one, numbers of those that do not belong, [n] all different, [u], [b], [q]"
            )
            taken_out = _taken_out(question, reply)
            reply = "out" if taken_out else reply
        else:
            reply = click.prompt("[y]es, [n]o, [u]nsure, [b]ack, [q]uit", type=click.Choice(keys))
        if reply == "q":
            return
        if reply == "b":
            undone = review.undo(who=who)
            click.echo("nothing to undo" if undone is None else f"decision {undone} is undone")
            continue
        if reply not in KEYS and not taken_out:
            click.echo(
                "this is not an answer: type a letter, or numbers with spaces between them, but not all"
                " numbers"
            )
            continue
        answer = "all but" if taken_out else KEYS[reply]
        outcome = review.answer(question, answer, taken_out=taken_out, who=who)
        click.echo(f"saved as decision {outcome.decision}, {outcome.moved} records moved\n")
    click.echo("no more questions")


def question_lines(question: Question) -> list[str]:
    """Return a question as lines: the two records side by side, differences marked, and the evidence."""
    if question.kind == WHOLE:
        return _all_lines(question)
    names = list(question.records[0])
    texts = [
        ["" if left_value[name] is None else str(left_value[name]) for name in names]
        for left_value in question.records
    ]
    width = max([len(name) for name in names] + [2])
    left = min(max([len(value) for value in texts[0]] + [len(question.ids[0])]), 40)
    lines = [f"  {'':{width}}  {question.ids[0]:{left}.{left}}  {question.ids[1]}"]
    for name, left_value, two in zip(names, *texts, strict=True):
        marker = " " if left_value == two else "*"
        lines.append(f"{marker} {name:{width}}  {left_value:{left}.{left}}  {two}")
    for side, records in enumerate(question.context):
        if records:
            shown = ", ".join(str(record["id"]) for record in records[:8])
            lines.append(f"  with {question.ids[side]}: {shown} ({question.sizes[side] - 1} in all)")
    lines += [f"  {value:+.2f}  {name}" for name, value in question.evidence[:5]]
    lines.append(f"one entity? probability {question.probability:.2f}")
    return lines


def _all_lines(question: Question) -> list[str]:
    """Return a question about whole entities as lines, one record each.

    Those of one entity share a letter.
    """
    lines = []
    for number, (record, entity) in enumerate(zip(question.shown, question.entities, strict=True), 1):
        values = " | ".join("" if value is None else str(value) for value in record.values())
        lines.append(f"{number:>3} {chr(ord('A') + entity)}  {values}")
    return [*lines, "all one entity? which do not belong? (letters: current entities)"]


def _taken_out(question: Question, reply: str) -> list[str]:
    """Return the ids of the records with the typed numbers; none if they are invalid, or name all records."""
    numbers = reply.replace(",", " ").split()
    if not numbers or not all(one.isdecimal() and 1 <= int(one) <= len(question.shown) for one in numbers):
        return []
    chosen = sorted({int(one) for one in numbers})
    ids = [str(question.shown[number - 1]["id"]) for number in chosen]
    return ids if len(ids) < len(question.shown) else []


def _prepared(options: Options, store: str, id_column: str | None) -> Path:
    """Return the store; if a file with records was given, create the store first."""
    path = Path(store)
    if path.suffix == ".duckdb":
        return path
    target = path.with_suffix(".duckdb")
    if target.exists():
        notice(options, f"{target.name} already exists and is used; its records stay unchanged.")
        return target
    if id_column is None:
        raise click.UsageError(f"{store} is not a store (.duckdb): name the column of its ids with --id.")
    from factorwise.cli.resolve.init import make_store

    reading: dict[str, Any] = {"source": None, "ignore": (), "prefix_ids": False, "encoding": None}
    make_store(options, target, (store,), None, None, (), reading | {"id_column": id_column})
    return target


def _serve(review: Review, port: int, no_browser: bool) -> None:
    try:
        from factorwise.review import Server
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the review page needs Starlette and uvicorn: pip install 'factorwise[review]', or use --console."
        ) from error
    server = Server(review, port=port)
    click.echo(f"review at {server.address}\nCtrl-C ends it")
    if not no_browser:
        webbrowser.open(server.address)
    server.run()
