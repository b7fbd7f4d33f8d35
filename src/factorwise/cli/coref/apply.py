"""``factorwise coref apply``: find the entities that the mentions of documents speak of."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.apps.coreference.documents import Discourse, Document
from factorwise.cli.coref.data import check_like_training, gathered, given_documents, notice_repeated
from factorwise.cli.coref.prediction import resolved
from factorwise.cli.files import (
    STANDARD,
    check_different,
    check_kind,
    check_target,
    output_option,
    shown,
    writing,
)
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import (
    Clock,
    show_progress,
    tell_compiling,
    written_lines,
)
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.tag.options import read_plain_text
from factorwise.errors import DataFileError

if TYPE_CHECKING:
    from factorwise.apps.coreference.estimator import CoreferenceResolver


@verb(example="factorwise coref apply test.jsonl --model coref.fw -o found.jsonl")
@click.argument("input_file", metavar="IN.jsonl")
@path_option("--model", required=True, metavar="MODEL.fw", help="The resolver.")
@output_option(metavar="OUT.jsonl")
@click.option(
    "--search-steps",
    type=Whole(min=1),
    help="Steps of annealing for each mention.  [default: as given to `coref fit`]",
)
@path_option(
    "--mentions",
    metavar="MENTIONS.fw",
    help="Find the mentions with this finder, from `coref mentions`, in place of those in the file.",
)
@click.option("--text", is_flag=True, help="IN is plain text: needs --mentions.")
@report_options
def command(
    options: Options,
    input_file: str,
    model: Path,
    output: str,
    mentions: Path | None,
    text: bool,
    search_steps: int | None,
    report: Path | None,
    no_values: bool,
) -> None:
    """Find the entities that the mentions of the documents in IN.jsonl speak of.

    Writes the same lines with the number of the entity found in each mention's 'entity', whole numbers from
    0 that are used once in the file: two mentions speak of the same entity where they are equal, in one
    document or, with a model of whole topics, in several. Where a mention had an 'entity', it is kept as
    'truth' (unless there is a 'truth' already); all else stays as it was. Mentions that are left out, by
    their type or because they stand at 'full_until' or later, get null. With --mentions the mentions are
    found first; with --text they are found in a plain text, which is resolved in parts of 2,000 tokens whose
    entities are not joined, and 'characters' says where each token stands in it. With --json the result is
    one JSON document, or a summary of it if a file is written. '-' reads standard input.
    """
    if output != STANDARD:
        check_target("--output", Path(output), input_file, model, mentions)
    if text and mentions is None:
        raise click.UsageError("--text needs --mentions: learn to find mentions with `coref mentions` first.")
    check_different({"--output": output, "--report": report})
    check_report(report, no_values, input_file, model)

    # scikit-learn takes its time to load: help, and mistakes in options, do not wait for it
    from factorwise.apps.coreference.estimator import KIND, CoreferenceResolver

    check_kind(model, KIND)
    chosen = {} if search_steps is None else {"search_steps": search_steps}
    resolver = CoreferenceResolver.load(model, random_state=options.seed, **chosen)
    clock = Clock()
    with clock.part("reading"):
        if text:
            documents = _documents_of_text(options, input_file)
        else:
            documents = given_documents(input_file, mentions=mentions is None)
    if mentions is not None:
        tell_compiling(options)
        with clock.part("mentions"):
            documents = _with_mentions(options, documents, mentions)
    notice_repeated(options, documents, shown(input_file))
    together = _together(options, documents, shown(input_file), resolver)
    tell_compiling(options)
    began = time.perf_counter()
    answers = _answers(options, resolver, documents, together)
    clock.parts["entities"] = time.perf_counter() - began
    document: dict[str, Any] = {
        "output": "standard output" if output == STANDARD else Path(output).name,
        "model": model.name,
        "documents": len(documents),
        "mentions": sum(len(labels) - labels.count(None) for labels in answers),
        "entities": len({label for labels in answers for label in labels} - {None}),
        "left_out": sum(labels.count(None) for labels in answers),
        **clock.cost(),
        "report": None,
    }
    if output == STANDARD and options.json:
        entries = [{"id": one.id, "entities": labels} for one, labels in zip(documents, answers, strict=True)]
        emit({"documents": entries}, (), as_json=True)
    else:
        with writing(output) as stream:
            for one, labels in zip(documents, answers, strict=True):
                stream.write(_line(answered(one, labels)))
    if report is not None:
        from factorwise.cli.samplerank_reports import write_mentions_report

        page = Page(report, options, (input_file, model))
        weights = resolver.weights_by_name()
        document["report"] = write_mentions_report(
            page, document, documents, answers, weights, values=not no_values
        )
    if output != STANDARD:
        document["bytes"] = Path(output).stat().st_size
        emit(document, _lines(document), as_json=options.json)


def _answers(
    options: Options,
    resolver: CoreferenceResolver,
    documents: Sequence[Document],
    together: Sequence[Discourse],
) -> list[list[int | None]]:
    """Return the number of the entity of each mention of each document; None for those left out."""
    found = resolved(resolver, together, threads=options.threads, shown=show_progress(options))
    entity = {
        (discourse.documents[d].id, m): label
        for discourse, labels in zip(together, found, strict=True)
        for (d, m), label in zip(discourse.places, labels, strict=True)
    }
    return [[entity.get((one.id, m)) for m in range(len(one.mentions))] for one in documents]


def _documents_of_text(options: Options, path: str) -> list[Document]:
    from factorwise.pipelines.mentions import documents_of_text

    text = read_plain_text(path)
    if not text.strip():
        raise DataFileError(f"{shown(path)}: has no text. Check that this is the right file.")
    documents = documents_of_text(text, "standard input" if path == STANDARD else Path(path).stem)
    if len(documents) > 1:
        notice(
            options, f"{shown(path)} is resolved in {len(documents)} parts, whose entities are not joined."
        )
    return documents


def _with_mentions(options: Options, documents: Sequence[Document], finder: Path) -> list[Document]:
    from factorwise.apps.tagging.nested import NestedTagger
    from factorwise.pipelines.mentions import find_mentions

    return find_mentions(NestedTagger.load(finder, n_jobs=options.threads), documents)


def _together(
    options: Options, documents: Sequence[Document], name: str, resolver: CoreferenceResolver
) -> list[Discourse]:
    """Return what is clustered together, having checked that it is as the resolver learned it."""
    if not any(document.mentions for document in documents):
        notice(options, f"{name} has no mentions: its documents are written as they are.")
        return []
    check_like_training(options, documents, name, resolver.types, resolver.settings_.get("mentions_told", ()))
    return gathered(
        documents,
        name,
        remedy="apply a model that was learned with --scope document",
        scope=resolver.scope,
        types=resolver.types,
        without_types=resolver.without_types,
    )


def answered(document: Document, labels: Sequence[int | None]) -> dict[str, Any]:
    """Return the document's record with what was found."""
    given = document.record["mentions"]
    mentions = [_answered_mention(mention, label) for mention, label in zip(given, labels, strict=True)]
    return {**document.record, "mentions": mentions}


def _answered_mention(mention: Mapping[str, Any], label: int | None) -> dict[str, Any]:
    truth = mention.get("entity")
    made = {**mention, "entity": label}
    if truth is not None:
        made.setdefault("truth", truth)
    return made


def _line(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell and UTF-8 cannot
        text = json.dumps(record)
    return text + "\n"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    mentions = f"{document['mentions']} mentions"
    if document["left_out"]:
        mentions += f" ({document['left_out']} more left out)"
    yield from written_lines(
        document,
        [
            ("data", f"{document['documents']} documents, {mentions}, {document['entities']} entities"),
        ],
    )
