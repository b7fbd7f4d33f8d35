"""``factorwise tag score``: compare two columns of labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from factorwise.cli.files import STANDARD, shown
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice
from factorwise.cli.progress import Clock, report_row
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.tag.options import (
    NBEST,
    ColumnLayout,
    check_labels,
    column_number,
    layout_options,
    read_table,
)
from factorwise.cli.tag.report import write_score_report
from factorwise.cli.tag.scores import scored
from factorwise.errors import DataFileError
from factorwise.io.conll import ColumnFile
from factorwise.io.listing import some
from factorwise.metrics.sequence import SCHEMES, scheme_name

DEFAULT_COLUMNS = (-2, -1)


@verb(example="factorwise tag score tagged.txt --json")
@click.argument("file", metavar="FILE")
@click.option(
    "--truth-column",
    type=int,
    default=DEFAULT_COLUMNS[0],
    help="Column of the true labels, counted from 0, or from the end with a minus.",
)
@click.option(
    "--prediction-column", type=int, default=DEFAULT_COLUMNS[1], help="Column of the predicted ones."
)
@click.option(
    "--scheme",
    type=click.Choice(["BIO", "BIOES", *SCHEMES], case_sensitive=False),
    help="Count only spans that are whole in this scheme.  [default: any mixture of prefixes is read]",
)
@report_options
@layout_options
def command(
    options: Options,
    file: str,
    truth_column: int,
    prediction_column: int,
    scheme: str | None,
    report: Path | None,
    no_values: bool,
    separator: str | None,
    encoding: str | None,
    comment: str | None,
) -> None:
    """Score the predicted labels in the column file FILE against the true ones.

    The last column is the prediction and the one before it the truth, as `tag apply` writes them. Precision,
    recall and F1 of spans are those of seqeval. Labels that name no spans (NN, VERB) are scored token by
    token. '-' reads standard input.
    """
    check_report(report, no_values, file)
    clock = Clock()
    layout = ColumnLayout(separator=separator, encoding=encoding, comment=comment)
    table, name = read_table(file, layout), shown(file)
    if table.n_columns < 2:
        raise DataFileError(
            f"{name}: there is only one column. Give a file with the true and the predicted label on each"
            " line, or another --separator."
        )
    columns = (
        column_number(table, truth_column, "--truth-column", name),
        column_number(table, prediction_column, "--prediction-column", name),
    )
    if columns[0] == columns[1]:
        raise click.UsageError(
            f"--truth-column and --prediction-column are both column {columns[0]}: name two columns."
        )
    if (truth_column, prediction_column) == DEFAULT_COLUMNS and _has_several_best(file):
        raise DataFileError(
            f"{name}: its last columns are several predictions, written by `tag apply --nbest`. Name the"
            " column of the truth and that of one prediction with --truth-column and --prediction-column."
        )
    document = {"file": name, **measure(table, columns, scheme and scheme_name(scheme), name)}
    document["report"] = None
    if report is not None:
        cost = clock.cost()
        truth, predicted = (list(table.column(column)) for column in columns)
        document["report"] = write_score_report(
            Page(report, options, (file,)), {**document, **cost}, truth, predicted
        )
    _remark(options, table, columns, document)
    if document["unusual"]:
        notice(
            options,
            f"{document['unusual'][0]!r} is no label of a span (B-TYPE, I-TYPE, O ...), so each label is"
            " scored token by token. Give --scheme to insist on spans.",
        )
    emit(document, _lines(document), as_json=options.json)


def measure(table: ColumnFile, columns: tuple[int, int], scheme: str | None, name: str) -> dict[str, Any]:
    """Return the scores of two columns, truth and prediction, as JSON values."""
    used, codes = np.unique(table.codes[list(columns)], return_inverse=True)
    labels = table.vocabulary[used].tolist()
    for column in columns:
        check_labels(table, column, table.encoded(column)[0], name)
        if all(map(_is_number, table.encoded(column)[0])):
            raise DataFileError(
                f"{name}: column {column} holds numbers, not labels. A file of `tag apply --marginals` has"
                " probabilities last: give --truth-column -3 --prediction-column -2."
            )
    truth, predicted = codes.reshape(2, -1)
    scores = scored(labels, truth, predicted, table.start, scheme)
    return {"sentences": len(table), "tokens": table.n_tokens, "scheme": scheme, **scores}


def _has_several_best(file: str) -> bool:
    """Whether a file begins as `tag apply --nbest` writes it."""
    if file == STANDARD:
        return False
    with Path(file).open("rb") as stream:
        return stream.read(len(NBEST)) == NBEST.encode()


def _remark(
    options: Options, table: ColumnFile, columns: tuple[int, int], document: Mapping[str, Any]
) -> None:
    """Say so where scores are zero because something else was scored than labels of this kind."""
    truth, predicted = (table.encoded(column)[0] for column in columns)
    if not set(truth) & set(predicted):
        notice(
            options,
            f"columns {columns[0]} and {columns[1]} have no label in common: {some(truth)} against"
            f" {some(predicted)}. Name others with --truth-column and --prediction-column.",
        )
    elif document["scheme"] and not document["spans"]["micro"]["support"]:
        notice(
            options,
            f"no true span is whole in the scheme {document['scheme']}; labels are such as {some(truth)}."
            " Leave --scheme out, or name another.",
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "." in text  # a label may well be a whole number


def _lines(document: dict[str, Any]) -> Iterator[str]:
    scheme = f", scheme {document['scheme']}" if document["scheme"] else ""
    yield f"{document['file']}  ({document['sentences']} sentences, {document['tokens']} tokens{scheme})"
    found = document["spans"] or document["labels"]
    heading = "span" if document["spans"] else "label"
    rows: list[tuple[str, ...]] = [(heading, "precision", "recall", "F1", "true", "predicted")]
    rows += [_row(name, score) for name, score in found["types"].items()]
    rows += [_row(f"({name})", found[name]) for name in ("micro", "macro", "weighted") if name in found]
    yield from (line.rstrip() for line in aligned(rows))
    yield f"token accuracy {document['accuracy']:.4f}"
    yield from aligned(report_row(document["report"]))


def _row(name: str, score: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (f"{score[field]:.4f}" for field in ("precision", "recall", "f1"))
    return (name, *shares, *(str(score.get(field, "")) for field in ("support", "predicted")))
