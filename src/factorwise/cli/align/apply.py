"""``factorwise align apply``: match the concepts of two ontologies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from factorwise.cli.align.data import (
    adapted_aligner,
    load_aligner,
    model_option,
    ontology_options,
    read_side,
    threshold_option,
)
from factorwise.cli.files import (
    STANDARD,
    check_different,
    check_target,
    output_option,
    writing,
    written_form,
)
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import Clock, tell_compiling, written_lines
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.io.ontologies.alignments import ENDINGS, FORMS, Correspondence, format_alignment


@verb(example="factorwise align apply mouse.owl human.owl --model anatomy.fw -o found.tsv")
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@model_option
@output_option(metavar="OUT.tsv")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="Lines with tabs, SSSOM, or the RDF of the Alignment API.  [default: by the ending of OUT: .tsv,"
    " .sssom.tsv, .rdf or .xml]",
)
@click.option(
    "--many-to-many",
    is_flag=True,
    help="Without a model: a concept may have several matches.",
)
@threshold_option
@click.option(
    "--search-steps",
    type=Whole(min=1),
    help="Steps of annealing for each concept, many to many.  [default: as given to `align fit`]",
)
@report_options
@ontology_options
def command(
    options: Options,
    left: str,
    right: str,
    model: Path | None,
    output: str,
    form: str | None,
    many_to_many: bool,
    threshold: float,
    search_steps: int | None,
    **given: Any,
) -> None:
    """Match the concepts of the ontologies A and B, the surest matches first.

    Writes a line for each match with the ids of the concept of A and that of B, '=' and the probability of
    the match, separated by tabs. Classes match classes, properties match properties. Without --model no
    known matches are needed: weights that come with factorwise learn from the matches that they are sure of.
    With --json the result is one JSON document, or a summary of it if a file is written.
    """
    report, no_values = given.pop("report"), given.pop("no_values")
    if output != STANDARD:
        check_target("--output", Path(output), left, right, model)
    form = written_form(output, form, ENDINGS, "tsv")
    check_different({"--output": output, "--report": report})
    check_report(report, no_values, left, right, model)
    if model is not None and many_to_many:
        raise click.UsageError(
            "--many-to-many is for matches without --model: the model has it from `align fit`."
        )
    aligner = None if model is None else load_aligner(model, options.seed, search_steps)
    clock = Clock()
    with clock.part("reading"):
        sides = [read_side(options, path, **given) for path in (left, right)]
    tell_compiling(options)
    if aligner is None:
        with clock.part("learning"):
            aligner = adapted_aligner(
                sides, options.seed, search_steps=search_steps or 200, one_to_one=not many_to_many
            )
    began = time.perf_counter()
    matches = aligner.predict(*(side.ontology for side in sides))
    found = [
        Correspondence(match.left, match.right, confidence=match.confidence)
        for match in matches
        if match.confidence >= threshold
    ]
    clock.parts["matching"] = time.perf_counter() - began
    if not found:
        notice(options, _none_found(len(matches), threshold))
    document: dict[str, Any] = {
        "output": "standard output" if output == STANDARD else Path(output).name,
        "model": None if model is None else model.name,
        "concepts": [len(side.ontology) for side in sides],
        "matches": len(found),
        **clock.cost(),
        "report": None,
    }
    if output == STANDARD and options.json:
        emit({"matches": [match._asdict() for match in found]}, (), as_json=True)
    else:
        with writing(output) as stream:
            stream.writelines(format_alignment(found, form))
    if report is not None:
        from factorwise.cli.samplerank_reports import write_matches_report

        ontologies = [side.ontology for side in sides]
        page = Page(report, options, (left, right, model))
        document["report"] = write_matches_report(
            page, document, ontologies, found, aligner, values=not no_values
        )
    if output != STANDARD:
        document["bytes"] = Path(output).stat().st_size
        emit(document, _lines(document), as_json=options.json)


def _none_found(below: int, threshold: float) -> str:
    if below:
        return f"none of {below} matches has a confidence of {threshold:g} or more: give a lower --threshold."
    return "no match was found: check that the two are about the same things, in words of one language."


def _lines(document: dict[str, Any]) -> Iterator[str]:
    left, right = document["concepts"]
    yield from written_lines(
        document,
        [
            ("data", f"{left} and {right} concepts, {document['matches']} matches"),
        ],
    )
