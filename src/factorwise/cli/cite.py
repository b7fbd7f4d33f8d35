"""``factorwise cite``: find the works and the people of a list of references."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from factorwise.cli.files import (
    check_tables,
    shown,
    spreadsheet_option,
    write_output,
    written_bytes,
)
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit
from factorwise.cli.progress import Clock, tell_compiling, written_lines
from factorwise.cli.resolve.data import check_outputs
from factorwise.cli.tag.options import read_plain_text
from factorwise.errors import DataFileError


@verb(example="factorwise cite references.txt -o works.parquet")
@click.argument("input_file", metavar="IN")
@path_option(
    "-o", "--output", required=True, metavar="OUT", help="Table to write, in the format of its ending."
)
@click.option(
    "--readings",
    type=Whole(min=1),
    default=1,
    show_default=True,
    help="Readings of a reference to choose from while works are found; 1 reads first and compares then.",
)
@path_option(
    "--model",
    metavar="MODEL.fw",
    help="Your own reader, saved by CitationReader.save.  [default: the shipped one]",
)
@click.option("--encoding", default="utf-8", show_default=True, metavar="NAME", help="Encoding of IN.")
@spreadsheet_option
def command(
    options: Options,
    input_file: str,
    output: Path,
    readings: int,
    model: Path | None,
    encoding: str,
    for_spreadsheets: bool,
) -> None:
    """Find the works and the people of the references in the plain text IN.

    A reference is a line, a paragraph where blank lines divide the text, or begins with its number. OUT has a
    row for each: the number of its work, its fields, a number for each of its authors, which is the same for
    the same person, and the text. With --readings 5, fields and works are found at once: a reading that
    agrees with other references of the work may win over the likeliest one. '-' reads standard input. For
    BibTeX and the confidence of fields there is `factorwise tag cite`.
    """
    check_outputs({"--output": output}, input_file, model)
    check_tables({"--output": output})
    clock = Clock()
    text = read_plain_text(input_file, encoding)
    tell_compiling(options)
    from factorwise.apps.tagging.citations.reader import CitationReader, split_references
    from factorwise.pipelines.works import find_works

    references = split_references(text)
    if not references:
        raise DataFileError(
            f"{shown(input_file)}: has no references. Give a text with one reference per line."
        )
    with clock.part("reading"):
        if model is None:
            reader = CitationReader.bundled(n_jobs=options.threads)
        else:
            reader = CitationReader.load(model, n_jobs=options.threads)
    with clock.part("finding"):
        works = find_works(
            references, reader=reader, readings=readings, random_state=options.seed, n_jobs=options.threads
        )
    write_output(output, works.table(), for_spreadsheets=for_spreadsheets)
    document: dict[str, Any] = {
        "output": output.name,
        "references": len(references),
        "works": int(works.work.max()),
        "people": max((number for some in works.people for number in some), default=0),
        "bytes": written_bytes(output),
        **clock.cost(),
    }
    data = "{references} references, {works} works, {people} people".format_map(document)
    emit(document, written_lines(document, [("data", data)]), as_json=options.json)
