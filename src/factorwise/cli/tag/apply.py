"""``factorwise tag apply``: label the tokens of a column file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
import numpy as np

from factorwise.cli.files import STANDARD, check_different, check_target, shown, writing
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice, size_text
from factorwise.cli.progress import Clock, cost_rows, peak_memory
from factorwise.cli.reports import Page, check_report, report_options, report_row
from factorwise.cli.tag.options import (
    NBEST,
    ColumnNumbers,
    Layout,
    layout_options,
    read_plain_text,
    read_table,
)
from factorwise.cli.tag.report import Labeled, truth_of, write_apply_report
from factorwise.errors import DataFileError
from factorwise.io.conll import ColumnFile, format_columns

if TYPE_CHECKING:  # these modules load the compiler, which help does not wait for
    from factorwise.cli.tag.prediction import Predictions

NO_LABEL = "_"  # in the columns of --nbest, where a sentence has fewer label sequences


@verb(example="factorwise tag apply test.txt --model chunks.fw -o tagged.txt")
@click.argument("input_file", metavar="IN")
@click.option(
    "--model", required=True, type=click.Path(path_type=Path), metavar="MODEL.fw", help="The tagger."
)
@click.option(
    "-o",
    "--output",
    default=STANDARD,
    metavar="OUT",
    help="File to write, whole or not at all.  [default: standard output]",
)
@click.option("--marginals", is_flag=True, help="Add a last column: the probability of the label.")
@click.option(
    "--nbest",
    type=Whole(min=1, most=1_000),
    metavar="K",
    help="Write the K most probable label sequences, in K columns.",
)
@click.option(
    "--text",
    is_flag=True,
    help="IN is plain text: find its words and sentences, and write spans with their places as JSON lines.",
)
@click.option("--spans", is_flag=True, help="Write spans with their confidence instead, as JSON lines.")
@click.option(
    "--columns",
    type=ColumnNumbers(),
    metavar="0,1",
    help="Columns of IN that stand for those the tagger was trained on.  [default: the same numbers]",
)
@report_options
@layout_options
def command(
    options: Options,
    input_file: str,
    model: Path,
    output: str,
    marginals: bool,
    nbest: int | None,
    text: bool,
    spans: bool,
    columns: tuple[int, ...] | None,
    report: Path | None,
    no_values: bool,
    separator: str | None,
    encoding: str | None,
    comment: str | None,
) -> None:
    """Label the tokens of the column file IN, with or without a column of true labels.

    Writes the columns of IN and, behind them, the predicted label. --marginals adds the probability of that
    label in one more column. --nbest K writes K columns of labels, the most probable sequence first, and
    before each sentence a comment with the probabilities of the sequences: '# nbest=0.81,0.10'. --spans
    writes a JSON object a line: sentence and tokens counted from 0, the end exclusive. --text takes plain
    text and a tagger of words alone, and writes a JSON object a line: characters counted from 0, the end
    exclusive. How the file is written is taken from the training data unless said otherwise. With --json the
    result is one JSON document, or a summary of it if a file is written. '-' reads standard input.
    """
    if sum([marginals, nbest is not None, spans]) > 1:
        raise click.UsageError("--marginals, --nbest and --spans exclude each other: give one of them.")
    if text and (marginals or nbest is not None or columns is not None or report is not None):
        raise click.UsageError("--text writes spans: leave out --marginals, --nbest, --columns and --report.")
    if output != STANDARD:
        check_target("--output", Path(output), input_file, model)
    check_different({"--output": output, "--report": report})
    check_report(report, no_values, input_file, model)
    if text:
        _apply_to_text(options, input_file, model, output, encoding or "utf-8")
        return
    from factorwise.cli.tag.prediction import Predictions, columns_for, load_model
    from factorwise.kernels.compile.threads import Team

    clock = Clock()
    with clock.part("reading"):
        saved = load_model(model)
        layout = Layout(separator=separator, encoding=encoding, comment=comment).or_else(saved.layout)
        table = read_table(input_file, layout)
    used = columns_for(saved, table, columns, shown(input_file))
    if columns is None and saved.all is not None and table.n_columns > saved.all:
        if table.separator is None and table.n_tokens == len(table):  # no line has a neighbor
            raise DataFileError(
                f"{shown(input_file)}: looks like plain sentences, {table.n_columns} words a line, where a"
                " token a line is read. Give --text for plain text, or say with --columns which to read."
            )
        notice(
            options,
            f"{shown(input_file)} has {table.n_columns} columns where the training data had {saved.all}: read"
            f" are {', '.join(map(str, used))} (counted from 0); name others with --columns.",
        )
    with clock.part("features"):
        rows, start = saved.encoder.encode_columns([table.column(number) for number in used], table.start)
    with Team(options.threads) as team:
        predictions = Predictions(saved.tagger, rows, start, team)
        word = used[0] if used else 0
        as_json = output == STANDARD and options.json
        with clock.part("labels"):
            found = list(predictions.spans(table, word)) if spans else None
            if as_json:
                result = {"spans": found} if spans else _document(predictions, marginals, nbest)
            elif found is None:
                pieces = _columns(predictions, table, marginals, nbest)
            else:
                pieces = (json.dumps(span, ensure_ascii=False) + "\n" for span in found)
        with clock.part("writing"):
            if as_json:
                emit(result, (), as_json=True)
            else:
                with _opened(output, layout.encoding or "utf-8") as stream:
                    stream.writelines(pieces)
        document = _summary(output, model, table, clock)
        if report is not None:
            truth = truth_of(table, saved.label, saved.all)
            labeled = Labeled(table, word, predictions.labels, predictions.probability, truth)
            page = Page(report, options, (input_file, model))
            document["report"] = write_apply_report(page, document, labeled, values=not no_values)
    if output != STANDARD:
        document["bytes"] = Path(output).stat().st_size
        emit(document, _lines(document), as_json=options.json)


def _apply_to_text(options: Options, input_file: str, model: Path, output: str, encoding: str) -> None:
    """Write the spans of a plain text as JSON lines."""
    from factorwise.apps.tagging.estimator import ChainCRF
    from factorwise.apps.tagging.raw_text import find_text_spans

    text = read_plain_text(input_file, encoding)
    found = [span._asdict() for span in find_text_spans(ChainCRF.load(model, n_jobs=options.threads), text)]
    if output == STANDARD and options.json:
        emit({"spans": found}, (), as_json=True)
        return
    with _opened(output, "utf-8") as stream:
        stream.writelines(json.dumps(span, ensure_ascii=False) + "\n" for span in found)
    if output != STANDARD:
        document = {"output": Path(output).name, "characters": len(text), "spans": len(found)}
        told = f"{document['output']}  ({len(found)} spans in {len(text)} characters, written)"
        emit(document, [told], as_json=options.json)


def _columns(
    predictions: Predictions, table: ColumnFile, marginals: bool, nbest: int | None
) -> Iterator[str]:
    """Return the text of the file with the columns that were predicted."""
    if nbest is not None:
        return _best_columns(list(predictions.nbest(nbest)), table, nbest)
    columns: list[Sequence[str]] = [predictions.labels]
    if marginals:
        columns.append(np.char.mod("%.6f", predictions.probability).tolist())
    return format_columns(table, columns)


def _best_columns(
    found: Sequence[Sequence[tuple[list[str], float]]], table: ColumnFile, k: int
) -> Iterator[str]:
    """Return the text with ``k`` columns of labels, and a comment of probabilities before each sentence."""
    comments = dict(table.comments)
    columns: list[list[str]] = [[] for _ in range(k)]
    for sentence, (best, size) in enumerate(zip(found, np.diff(table.start).tolist(), strict=True)):
        chances = ",".join(f"{chance:.6g}" for _, chance in best)
        comments[sentence] = (*comments.get(sentence, ()), f"{NBEST}{chances}")
        for place, column in enumerate(columns):
            column += best[place][0] if place < len(best) else [NO_LABEL] * size
    return format_columns(replace(table, comments=comments), columns)


def _document(predictions: Predictions, marginals: bool, nbest: int | None) -> dict[str, Any]:
    """Return the labels as JSON values, sentence by sentence."""
    if nbest is not None:
        return {
            "sentences": [
                [{"labels": labels, "probability": chance} for labels, chance in best]
                for best in predictions.nbest(nbest)
            ]
        }
    sentences: list[dict[str, Any]] = [{"labels": labels} for labels in predictions.split(predictions.labels)]
    if marginals:
        chances = predictions.split(predictions.probability.tolist())
        for sentence, probability in zip(sentences, chances, strict=True):
            sentence["probabilities"] = probability
    return {"sentences": sentences}


@contextmanager
def _opened(output: str, encoding: str) -> Iterator[TextIO]:
    """Open the output in the encoding of the file, and tell what to do where that lacks a character."""
    try:
        with writing(output, encoding) as stream:
            yield stream
    except UnicodeEncodeError as error:
        raise DataFileError(
            f"{error.object[error.start]!r} cannot be written in {encoding}. Give --encoding utf-8, and IN in"
            " that encoding."
        ) from None


def _summary(output: str, model: Path, table: ColumnFile, clock: Clock) -> dict[str, Any]:
    return {
        "output": "standard output" if output == STANDARD else Path(output).name,
        "model": model.name,
        "sentences": len(table),
        "tokens": table.n_tokens,
        "seconds": clock.seconds(),
        "peak_memory": peak_memory(),
        "report": None,
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['output']}  ({size_text(document['bytes'])}, written)"
    yield from aligned(
        [
            ("data", f"{document['sentences']} sentences, {document['tokens']} tokens"),
            *report_row(document["report"]),
            *cost_rows(document),
        ]
    )
