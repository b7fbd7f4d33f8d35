"""``factorwise align explain``: why two concepts match, or do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from factorwise.cli.align.data import (
    adapted_aligner,
    concept_named,
    load_aligner,
    model_option,
    ontology_options,
    read_side,
)
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit
from factorwise.cli.progress import tell_compiling


@verb(example="factorwise align explain mouse.owl human.owl MA_0000372 Renal_Cortex")
@click.argument("left", metavar="A")
@click.argument("right", metavar="B")
@click.argument("ours", metavar="X")
@click.argument("theirs", metavar="Y")
@model_option
@click.option("--top", type=Whole(min=1), default=12, help="Reasons and rivals to show.")
@ontology_options
def command(
    options: Options,
    left: str,
    right: str,
    ours: str,
    theirs: str,
    model: Path | None,
    top: int,
    **given: Any,
) -> None:
    """Say why the concept X of the ontology A and the concept Y of B match, or do not.

    X and Y are ids, the last parts of ids, or labels. Shows the probability, the features with their weights,
    whose sum is the score, and the rivals: other candidates of either concept.
    """
    aligner = None if model is None else load_aligner(model, options.seed)
    sides = [read_side(options, path, **given) for path in (left, right)]
    pair = [concept_named(side, text) for side, text in zip(sides, (ours, theirs), strict=True)]
    tell_compiling(options)
    if aligner is None:
        aligner = adapted_aligner(sides, options.seed)
    explanation = aligner.explain(sides[0].ontology, sides[1].ontology, *pair)
    document = {
        "left": pair[0],
        "right": pair[1],
        "probability": explanation.probability,
        "match": explanation.is_match,
        "reasons": [{"feature": name, "weight": weight} for name, weight in explanation.reasons],
        "rivals": [match._asdict() for match in explanation.rivals],
        "conflicts": [match._asdict() for match in explanation.conflicts],
    }
    labels = [side.ontology.by_id[one].label for side, one in zip(sides, pair, strict=True)]
    lines = [
        f"{labels[0]!r} and {labels[1]!r}: probability {explanation.probability:.3f},"
        f" {'a match' if explanation.is_match else 'no match'}"
    ]
    lines += aligned((f"{weight:+.3f}", name) for name, weight in explanation.reasons[:top])
    beside = {
        "rivals": explanation.rivals,
        "would make a class unsatisfiable beside": explanation.conflicts,
    }
    for title, matches in beside.items():
        if matches:
            lines.append(title)
            lines += aligned((f"{match.confidence:.3f}", match.left, match.right) for match in matches[:top])
    emit(document, lines, as_json=options.json)
