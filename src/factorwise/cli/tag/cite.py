"""``factorwise tag cite``: references of a text as CSL-JSON or BibTeX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factorwise.cli.files import STANDARD, check_target, output_option, shown, writing, written_form
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit
from factorwise.cli.progress import tell_compiling
from factorwise.cli.tag.options import read_plain_text
from factorwise.errors import DataFileError

if TYPE_CHECKING:  # loads the compiler, which help does not wait for
    from factorwise.apps.tagging.citations.reader import Citation

FORMATS = ("csl", "bibtex", "fields")
ENDINGS = {".json": "csl", ".bib": "bibtex", ".jsonl": "fields"}


@verb(example="factorwise tag cite references.txt -o references.bib")
@click.argument("input_file", metavar="IN")
@output_option(metavar="OUT")
@click.option(
    "--format",
    "layout",
    type=click.Choice(FORMATS),
    help="CSL-JSON, BibTeX, or fields as JSON lines.  [default: by the ending of OUT: .json, .bib or .jsonl]",
)
@path_option(
    "--model",
    metavar="MODEL.fw",
    help="A reader of your own, saved by CitationReader.save.  [default: the one of the package]",
)
@click.option("--encoding", default="utf-8", metavar="NAME", help="How IN is encoded.")
def command(
    options: Options, input_file: str, output: str, layout: str | None, model: Path | None, encoding: str
) -> None:
    """Read the references of the plain text IN: authors, title, journal, year, pages and so on.

    A reference is a line, a paragraph where blank lines divide the text, or begins with its number. Every
    field comes with the probability that it is right: in CSL-JSON under custom.confidence, in BibTeX in
    a field 'confidence'. '-' reads standard input.
    """
    if output != STANDARD:
        check_target("--output", Path(output), input_file, model)
    layout = written_form(output, layout, ENDINGS, "csl")
    text = read_plain_text(input_file, encoding)
    tell_compiling(options)
    from factorwise.apps.tagging.citations.reader import CitationReader, split_references

    references = split_references(text)
    if not references:
        raise DataFileError(
            f"{shown(input_file)}: has no references. Give a text with one reference per line."
        )
    if model is None:
        reader = CitationReader.bundled(n_jobs=options.threads)
    else:
        reader = CitationReader.load(model, n_jobs=options.threads)
    citations = reader.read(references)
    content = format_citations(citations, layout)
    with writing(output) as stream:
        stream.write(content)
    if output != STANDARD:
        fields = sum(len(citation.fields) for citation in citations)
        document = {"output": Path(output).name, "references": len(references), "fields": fields}
        line = f"{document['output']}  ({len(references)} references, {fields} fields, written)"
        emit(document, [line], as_json=options.json)


def format_citations(citations: Sequence[Citation], layout: str) -> str:
    """Return the text of a file in one of the formats."""
    from factorwise.apps.tagging.citations.formats import to_bibtex, to_csl

    if layout == "bibtex":
        return to_bibtex(to_csl(citations))
    if layout == "csl":
        return json.dumps(to_csl(citations), ensure_ascii=False, indent=2) + "\n"
    lines = [
        {"text": citation.text, "fields": [field._asdict() for field in citation.fields]}
        for citation in citations
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
