"""``factorwise tag apply``: label the tokens of a column file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
import numpy as np

from factorwise.cli.files import STANDARD, check_different, check_target, output_option, shown, writing
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import Clock, written_lines
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.tag.options import (
    NBEST,
    ColumnLayout,
    ColumnNumbers,
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
@path_option("--model", required=True, metavar="MODEL.fw", help="The tagger.")
@output_option(metavar="OUT")
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
def command(options: Options, **given: Any) -> None:
    """Label the tokens of the column file IN, with or without a column of true labels.

    Writes the columns of IN and, behind them, the predicted label. --marginals adds the probability of that
    label in one more column. --nbest K writes K columns of labels, the most probable sequence first, and
    before each sentence a comment with the probabilities of the sequences: '# nbest=0.81,0.10'. --spans
    writes a JSON object a line: sentence and tokens counted from 0, the end exclusive. --text takes plain
    text and a tagger of words alone, and writes a JSON object a line: characters counted from 0, the end
    exclusive. How the file is written is taken from the training data unless said otherwise. With --json the
    result is one JSON document, or a summary of it if a file is written. '-' reads standard input.
    """
    layout = ColumnLayout(**{name: given.pop(name) for name in ("separator", "encoding", "comment")})
    request = Request(**given, layout=layout)
    request.check()
    if request.text:
        _apply_to_text(options, request)
    else:
        _apply_to_columns(options, request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for; the fields are the options of the verb."""

    input_file: str
    model: Path
    output: str
    marginals: bool
    nbest: int | None
    text: bool
    spans: bool
    columns: tuple[int, ...] | None
    report: Path | None
    no_values: bool
    layout: ColumnLayout

    def check(self) -> None:
        """Refuse options that do not go together, and files that could not be written."""
        if sum([self.marginals, self.nbest is not None, self.spans]) > 1:
            raise click.UsageError("--marginals, --nbest and --spans exclude each other: give one of them.")
        if self.text and (
            self.marginals or self.nbest is not None or self.columns is not None or self.report is not None
        ):
            raise click.UsageError(
                "--text writes spans: leave out --marginals, --nbest, --columns and --report."
            )
        if self.output != STANDARD:
            check_target("--output", Path(self.output), self.input_file, self.model)
        check_different({"--output": self.output, "--report": self.report})
        check_report(self.report, self.no_values, self.input_file, self.model)


def _apply_to_columns(options: Options, request: Request) -> None:
    """Label the tokens of a column file, and write what was asked for."""
    from factorwise.cli.tag.prediction import Predictions, load_model
    from factorwise.kernels.compile.threads import Team

    clock, output = Clock(), request.output
    with clock.part("reading"):
        saved = load_model(request.model)
        layout = request.layout.or_else(saved.layout)
        table = read_table(request.input_file, layout)
    used = _used_columns(options, request, saved, table)
    with clock.part("features"):
        rows, start = saved.encoder.encode_columns([table.column(number) for number in used], table.start)
    with Team(options.threads) as team:
        predictions = Predictions(saved.tagger, rows, start, team)
        word = used[0] if used else 0
        as_json = output == STANDARD and options.json
        with clock.part("labels"):
            found = list(predictions.spans(table, word)) if request.spans else None
            if as_json:
                result = {"spans": found} if request.spans else _document(predictions, request)
            elif found is None:
                pieces = _columns(predictions, table, request)
            else:
                pieces = (json.dumps(span, ensure_ascii=False) + "\n" for span in found)
        with clock.part("writing"):
            if as_json:
                emit(result, (), as_json=True)
            else:
                with _opened(output, layout.encoding or "utf-8") as stream:
                    stream.writelines(pieces)
        document = _summary(output, request.model, table, clock)
        if request.report is not None:
            truth = truth_of(table, saved.label, saved.all)
            labeled = Labeled(table, word, predictions.labels, predictions.probability, truth)
            page = Page(request.report, options, (request.input_file, request.model))
            document["report"] = write_apply_report(page, document, labeled, values=not request.no_values)
    if output != STANDARD:
        document["bytes"] = Path(output).stat().st_size
        emit(document, _lines(document), as_json=options.json)


def _used_columns(options: Options, request: Request, saved: Any, table: ColumnFile) -> Sequence[int]:
    """Return the columns that the tagger reads, and tell where the file has more than it was trained on."""
    from factorwise.cli.tag.prediction import columns_for

    name = shown(request.input_file)
    used = columns_for(saved, table, request.columns, name)
    if request.columns is None and saved.all is not None and table.n_columns > saved.all:
        if table.separator is None and table.n_tokens == len(table):  # no line has a neighbor
            raise DataFileError(
                f"{name}: looks like plain sentences, {table.n_columns} words a line, where a token a line is"
                " read. Give --text for plain text, or say with --columns which to read."
            )
        notice(
            options,
            f"{name} has {table.n_columns} columns where the training data had {saved.all}: read are"
            f" {', '.join(map(str, used))} (counted from 0); name others with --columns.",
        )
    return used


def _apply_to_text(options: Options, request: Request) -> None:
    """Write the spans of a plain text as JSON lines."""
    from factorwise.apps.tagging.estimator import ChainCRF
    from factorwise.apps.tagging.raw_text import find_text_spans

    output = request.output
    text = read_plain_text(request.input_file, request.layout.encoding or "utf-8")
    tagger = ChainCRF.load(request.model, n_jobs=options.threads)
    found = [span._asdict() for span in find_text_spans(tagger, text)]
    if output == STANDARD and options.json:
        emit({"spans": found}, (), as_json=True)
        return
    with _opened(output, "utf-8") as stream:
        stream.writelines(json.dumps(span, ensure_ascii=False) + "\n" for span in found)
    if output != STANDARD:
        document = {"output": Path(output).name, "characters": len(text), "spans": len(found)}
        told = f"{document['output']}  ({len(found)} spans in {len(text)} characters, written)"
        emit(document, [told], as_json=options.json)


def _columns(predictions: Predictions, table: ColumnFile, request: Request) -> Iterator[str]:
    """Return the text of the file with the columns that were predicted."""
    if request.nbest is not None:
        return _best_columns(list(predictions.nbest(request.nbest)), table, request.nbest)
    columns: list[Sequence[str]] = [predictions.labels]
    if request.marginals:
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


def _document(predictions: Predictions, request: Request) -> dict[str, Any]:
    """Return the labels as JSON values, sentence by sentence."""
    if request.nbest is not None:
        return {
            "sentences": [
                [{"labels": labels, "probability": chance} for labels, chance in best]
                for best in predictions.nbest(request.nbest)
            ]
        }
    sentences: list[dict[str, Any]] = [{"labels": labels} for labels in predictions.split(predictions.labels)]
    if request.marginals:
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
        **clock.cost(),
        "report": None,
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield from written_lines(
        document,
        [
            ("data", f"{document['sentences']} sentences, {document['tokens']} tokens"),
        ],
    )
