"""``factorwise align score``: compare the matches found with the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from factorwise.cli.align_data import read_matches, read_reference
from factorwise.cli.files import STANDARD, shown
from factorwise.cli.numbers import Real
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice
from factorwise.errors import DataFileError
from factorwise.io.alignments import Correspondence
from factorwise.io.listing import some
from factorwise.metrics.alignment import OperatingPoint, match_curve, score_matches

CURVE_LINES = 10  # points of the curve that are shown to people; JSON has all


@verb(example="factorwise align score found.tsv --truth reference.tsv --json")
@click.argument("file", metavar="OUT.tsv")
@click.option("--truth", "reference", required=True, metavar="FILE.tsv", help="The true matches.")
@click.option(
    "--threshold",
    type=Real(0, 1),
    default=0.0,
    help="Score matches of this confidence or more.  [default: all]",
)
def command(options: Options, file: str, reference: str, threshold: float) -> None:
    """Score the matches in OUT.tsv, as `align apply` writes it, against those of the reference.

    Where the lines have a fourth column with different confidences, precision and recall are also told as
    ever less sure matches are let in, and the confidence from which on F1 is highest. Choose a threshold on
    other matches than those that are scored in the end. '-' reads standard input.
    """
    if file == STANDARD == reference:
        raise click.UsageError("only one of OUT.tsv and --truth can be standard input.")
    known, found = read_reference(options, reference), read_matches(options, file)
    truth = [_pair(row) for row in known]
    kept = [row for row in found if row.confidence >= threshold]
    document: dict[str, Any] = {
        "file": shown(file),
        "reference": len(truth),
        "found": len(found),
        "threshold": threshold,
        "scores": asdict(score_matches(truth, map(_pair, kept))),
        "best": None,
        "curve": [],
    }
    _check_sides(options, truth, kept, document)
    if len({row.confidence for row in found}) > 1:
        curve = match_curve(truth, map(_pair, found), [row.confidence for row in found])
        document["best"] = _point(curve.best)
        document["curve"] = [_point(curve.at(point)) for point in range(len(curve.threshold))]
    emit(document, _lines(document), as_json=options.json)


def _pair(row: Correspondence) -> tuple[str, str]:
    return row.source, row.target


def _check_sides(
    options: Options,
    truth: Sequence[tuple[str, str]],
    kept: Sequence[Correspondence],
    document: Mapping[str, Any],
) -> None:
    """Tell if nothing is right because the sides were given in another order, or nothing was found.

    And refuse matches of which no concept stands in the reference: they are of other ontologies.
    """
    if not kept:
        notice(options, f"there is no match to score in {document['file']}.")
    elif not document["scores"]["recall"]:
        known, found = {one for pair in truth for one in pair}, [one for row in kept for one in _pair(row)]
        if known.isdisjoint(found):
            raise DataFileError(
                f"{document['file']} and the reference have no concept in common: {some(found)} against"
                f" {some(one for pair in truth for one in pair)}. Give the reference of the same ontologies."
            )
        exchanged = {(row.target, row.source) for row in kept}
        right = sum(pair in exchanged for pair in truth)
        if right:
            notice(
                options,
                f"no match is right, but {right} are with source and target exchanged: the ontologies were"
                " given to `align apply` in another order than the reference's columns.",
            )


def _point(point: OperatingPoint) -> dict[str, Any]:
    return {"threshold": point.threshold, **asdict(point.score)}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    scores = document["scores"]
    limit = f" of confidence {document['threshold']:g} or more" if document["threshold"] else ""
    sizes = f"{scores['predicted']} matches{limit}, {document['reference']} in the reference"
    yield f"{document['file']}  ({sizes})"
    shares = [("precision", "precision"), ("recall", "recall"), ("F1", "f1")]
    yield from aligned([(title, f"{scores[name]:.4f}") for title, name in shares])
    if document["best"]:
        best = document["best"]
        yield f"best F1 {best['f1']:.4f} at a confidence of {best['threshold']:.6g} or more"
        yield "precision and recall"
        rows = [("confidence", "matches", "precision", "recall", "F1")]
        yield from aligned([*rows, *map(_row, _some(document["curve"]))])


def _some(curve: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return some points of the curve, as far apart in the number of matches as can be, the last one too."""
    counts = np.array([point["predicted"] for point in curve])
    wanted = np.linspace(counts[0], counts[-1], CURVE_LINES)
    return [curve[point] for point in np.unique(np.searchsorted(counts, wanted))]


def _row(point: Mapping[str, Any]) -> tuple[str, ...]:
    shares = (f"{point[name]:.4f}" for name in ("precision", "recall", "f1"))
    return (f"{point['threshold']:.6g}", str(point["predicted"]), *shares)
