"""``factorwise coref score``: compare the entities found with the true ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from factorwise.apps.coreference.documents import Scope
from factorwise.cli.coref.comparison import compared, score_own_mentions, with_kept_truth, with_truth_of
from factorwise.cli.coref.data import given_documents, scope_option
from factorwise.cli.coref.scores import each_lines, score_lines, size_of
from factorwise.cli.files import STANDARD, shown
from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit, notice
from factorwise.metrics.coreference import score_clusterings, score_documents


@verb(example="factorwise coref score found.jsonl --truth test.jsonl --json")
@click.argument("file", metavar="OUT.jsonl")
@click.option(
    "--truth",
    metavar="IN.jsonl",
    help="The documents with the true entities.  [default: 'truth' in the mentions of OUT.jsonl]",
)
@scope_option
@click.option(
    "--own-mentions",
    is_flag=True,
    help="The mentions of OUT.jsonl were found by `coref apply --mentions`: they count, too.",
)
@click.option("--per-document", is_flag=True, help="Scores of each document, or of each topic, too.")
def command(
    options: Options, file: str, truth: str | None, scope: Scope, own_mentions: bool, per_document: bool
) -> None:
    """Score the entities found in OUT.jsonl, as `coref apply` writes it, against the true ones.

    Documents are matched by 'id', their mentions by 'id' or, where not all have one, by 'start' and 'end'.
    Mentions without an 'entity' in OUT.jsonl are left out and counted. Precision and recall are those of
    all documents together: their numerators and denominators are summed. With --own-mentions the two files
    need not have the same mentions, and one that the other file lacks counts as a mistake. '-' reads standard
    input.
    """
    if file == STANDARD == truth:
        raise click.UsageError("only one of OUT.jsonl and --truth can be standard input.")
    name, documents = shown(file), given_documents(file)
    if own_mentions:
        if truth is None or scope == "topic" or per_document:
            raise click.UsageError(
                "--own-mentions needs --truth, and goes without --scope topic and --per-document."
            )
        scores = score_own_mentions(documents, given_documents(truth), name, shown(truth)).as_dict()
        emit({"file": name, "scores": scores}, _own_lines(name, scores), as_json=options.json)
        return
    if truth is None:
        pairs = with_kept_truth(documents, name)
    else:
        pairs = with_truth_of(documents, given_documents(truth), name, shown(truth))
    comparison = compared(pairs, name, by_topic=scope == "topic")
    if comparison.left_out:
        notice(options, f"mentions without an entity in {name} are not scored: {comparison.left_out}.")
    if comparison.shared and scope == "document":
        notice(
            options,
            "documents have entities in common, but each is scored by itself: give --scope topic to score the"
            " documents of a topic together.",
        )
    groups = comparison.groups
    document = {
        "file": name,
        "scope": scope,
        "left_out": comparison.left_out,
        "scores": score_documents(
            [group.truth for group in groups], [group.found for group in groups]
        ).as_dict(),
    }
    if per_document:
        document["per_document"] = [
            {"id": group.id, **score_clusterings(group.truth, group.found).as_dict()} for group in groups
        ]
    emit(document, _lines(document), as_json=options.json)


def _own_lines(name: str, scores: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{name}  ({scores['documents']} documents, {scores['true_mentions']} true mentions,"
        f" {scores['predicted_mentions']} found)"
    )
    yield from score_lines(scores)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    left_out = f", {document['left_out']} left out" if document["left_out"] else ""
    yield f"{document['file']}  ({size_of(document['scores'], document['scope'] + 's')}{left_out})"
    yield from score_lines(document["scores"])
    if "per_document" in document:
        yield from each_lines(document["per_document"], document["scope"])
