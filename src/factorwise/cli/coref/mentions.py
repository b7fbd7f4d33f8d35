"""``factorwise coref mentions``: learn to find mentions in plain text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from factorwise.cli.coref.data import given_documents
from factorwise.cli.coref.scores import score_row
from factorwise.cli.files import STANDARD, check_target, shown, speaking_of
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import aligned, emit
from factorwise.cli.progress import Clock, tell_compiling, written_lines


@verb(example="factorwise coref mentions train.jsonl --model mentions.fw --held-out dev.jsonl")
@click.argument("train", metavar="TRAIN.jsonl")
@path_option("--model", required=True, metavar="MENTIONS.fw", help="Where to save the finder.")
@click.option("--held-out", metavar="FILE.jsonl", help="Documents whose marked mentions are to be found.")
@click.option("--levels", type=Whole(min=1, most=9), default=3, help="Mentions within mentions.")
@click.option("--max-iterations", type=Whole(min=1), help="Iterations of training for each level.")
def command(
    options: Options, train: str, model: Path, held_out: str | None, levels: int, max_iterations: int | None
) -> None:
    """Learn to find mentions, one within another, from the documents in TRAIN.jsonl in which they are marked.

    `coref apply --mentions MENTIONS.fw` then takes texts whose mentions nobody has marked. A mention's 'type'
    and 'mtype' are learned with it. '-' reads standard input.
    """
    if train == STANDARD == held_out:
        raise click.UsageError("only one of TRAIN.jsonl and --held-out can be standard input.")
    check_target("--model", model, train, held_out)
    clock = Clock()
    with clock.part("reading"):
        documents = given_documents(train)
        apart = [] if held_out is None else given_documents(held_out)
    tell_compiling(options)
    from factorwise.pipelines.mentions import find_mentions, train_mention_finder

    with clock.part("training"), speaking_of(shown(train)):
        finder = train_mention_finder(
            documents, levels=levels, max_iterations=max_iterations, n_jobs=options.threads
        )
    with clock.part("writing"):
        finder.save(model)
    scores = None
    if apart:
        from factorwise.metrics.coreference import score_found_mentions

        with clock.part("scoring"):
            sides = [
                [{(mention.start, mention.end): 0 for mention in document.mentions} for document in side]
                for side in (apart, find_mentions(finder, apart))
            ]
            scores = score_found_mentions(*sides).mentions._asdict()
    document = {
        "model": {"file": model.name, "bytes": model.stat().st_size},
        "documents": len(documents),
        "mentions": sum(len(document.mentions) for document in documents),
        "levels": len(finder.taggers_),
        "held_out": scores,
        **clock.cost(),
    }
    emit(document, _lines(document), as_json=options.json)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    counts = f"{document['documents']} documents, {document['mentions']} mentions"
    yield from written_lines(document, [("data", f"{counts}, {document['levels']} levels")])
    if document["held_out"]:
        yield "held out"
        yield from aligned(
            [("metric", "precision", "recall", "F1"), score_row("mentions", document["held_out"])]
        )
