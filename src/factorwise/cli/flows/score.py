"""``factorwise flows score``: compare inferred flows with true flows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from factorwise.cli.files import reading_utf8
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit

TITLES = {
    "overlap": "share of members with the right move",
    "moved_overlap": "the same for members that move",
    "relative_error": "sum of errors over sum of true flows",
    "rmse": "root mean squared error",
    "correlation": "correlation",
}


@verb(example="factorwise flows score flows.csv --truth true.csv --json")
@click.argument("file", metavar="FLOWS.csv")
@click.option("--truth", required=True, metavar="TRUE.csv", help="The true flows.")
def command(options: Options, file: str, truth: str) -> None:
    """Score the flows in FLOWS.csv, as `flows apply` writes them, against the true flows.

    Both tables have the columns time, from, to and expected (or count), and sequence if there are several. A
    flow that a table does not contain is zero.
    """
    from factorwise.apps.collective import score_tables

    with reading_utf8(file), reading_utf8(truth):
        score, sizes = score_tables(file, truth)
    scores = {name: value if math.isfinite(value) else None for name, value in asdict(score).items()}
    document = {"file": file, **sizes, "scores": scores}
    emit(document, _lines(document), as_json=options.json)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    scores = document["scores"]
    yield f"{document['file']}  ({document['steps']} steps, {document['places']} places)"
    rows = [("members", f"{scores['expected']:.6g} expected, {scores['true']:.6g} true")]
    for name, title in TITLES.items():
        rows.append((title, "-" if scores[name] is None else f"{scores[name]:.4f}"))
    yield from aligned(rows)
