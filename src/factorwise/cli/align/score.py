"""``factorwise align score``: compare the matches found with the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from factorwise.cli.align.data import read_matches, read_reference, threshold_option
from factorwise.cli.files import STANDARD, shown
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice
from factorwise.errors import DataFileError
from factorwise.io.listing import some
from factorwise.io.ontologies.alignments import Correspondence
from factorwise.metrics.alignment import OperatingPoint, match_curve, score_matches

CURVE_LINES = 10  # points of the curve that are shown to people; JSON has all


@verb(example="factorwise align score found.tsv --truth reference.tsv --json")
@click.argument("file", metavar="OUT.tsv")
@click.option("--truth", required=True, metavar="FILE.tsv", help="The true matches.")
@threshold_option
def command(options: Options, file: str, truth: str, threshold: float) -> None:
    """Score the matches in OUT.tsv, as `align apply` writes it, against the true ones.

    Where the lines have a fourth column with different confidences, precision and recall are also told as
    ever less sure matches are let in, and the confidence from which on F1 is highest. Choose a threshold on
    other matches than those that are scored in the end. '-' reads standard input.
    """
    if file == STANDARD == truth:
        raise click.UsageError("only one of OUT.tsv and --truth can be standard input.")
    known = [_pair(row) for row in read_reference(options, truth)]
    found = read_matches(options, file)
    kept = [row for row in found if row.confidence >= threshold]
    document: dict[str, Any] = {
        "file": shown(file),
        "true": len(known),
        "found": len(found),
        "threshold": threshold,
        "scores": asdict(score_matches(known, map(_pair, kept))),
        "best": None,
        "curve": [],
    }
    _check_sides(options, known, found, kept, document)
    if len({row.confidence for row in found}) > 1:
        curve = match_curve(known, map(_pair, found), [row.confidence for row in found])
        document["best"] = _point(curve.best)
        document["curve"] = [_point(curve.at(point)) for point in range(len(curve.threshold))]
    emit(document, _lines(document), as_json=options.json)


def _pair(row: Correspondence) -> tuple[str, str]:
    return row.source, row.target


def _check_sides(
    options: Options,
    truth: Sequence[tuple[str, str]],
    found: Sequence[Correspondence],
    kept: Sequence[Correspondence],
    document: Mapping[str, Any],
) -> None:
    """Tell if nothing is right because the sides were given in another order, or nothing was found.

    And refuse matches of which no concept stands in the truth: they are of other ontologies.

    kept
        Those of the matches found that are scored.
    """
    known, named = [one for pair in truth for one in pair], [one for row in found for one in _pair(row)]
    if named and set(known).isdisjoint(named):
        raise DataFileError(
            f"{document['file']} and the true matches have no concept in common: {some(named)} against"
            f" {some(known)}. Give with --truth the matches of the same ontologies."
        )
    if not kept:
        notice(options, f"there is no match to score in {document['file']}.")
    elif not document["scores"]["recall"]:
        exchanged = {(row.target, row.source) for row in kept}
        right = sum(pair in exchanged for pair in truth)
        if right:
            notice(
                options,
                f"no match is right, but {right} are with source and target exchanged: the ontologies were"
                " given to `align apply` in another order than the columns of --truth.",
            )


def _point(point: OperatingPoint) -> dict[str, Any]:
    return {"threshold": point.threshold, **asdict(point.score)}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    scores = document["scores"]
    limit = f" of confidence {document['threshold']:g} or more" if document["threshold"] else ""
    sizes = f"{scores['predicted']} matches{limit}, {document['true']} true ones"
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
