"""The reports of ``coref`` and ``align``, whose weights SampleRank learns by walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from factorwise.cli.coref.scores import METRICS
from factorwise.cli.report_sections import (
    MOST_MEMBERS,
    Page,
    facts_of,
    learning_curve,
    probability_bars,
    reliability_chart,
    run_facts,
    shortened,
    template_table,
    weights_table,
    write_page,
)
from factorwise.report import Chart, Entities, Entity, Facts, Section, Table

if TYPE_CHECKING:
    from factorwise.apps.alignment.estimator import OntologyAligner
    from factorwise.apps.coreference.documents import Document
    from factorwise.io.ontologies.alignments import Correspondence
    from factorwise.io.ontologies.ontology import Ontology

MOST_MENTIONS = 30_000
MOST_MATCHES = 20_000
PARTS = ("precision", "recall", "f1")
CONTEXT = 6  # words on each side of a mention
RANKS = "The model ranks clusterings; it gives no probabilities whose calibration could be measured."


def write_walk_fit_report(
    page: Page, document: Mapping[str, Any], weights: Mapping[str, float], verb: str
) -> dict[str, Any]:
    """Write data, settings, the learning curve and all weights."""
    sections: list[Section] = [
        facts_of("Data", document["data"]),
        facts_of("Training", document["training"], "" if document.get("reliability") else RANKS),
        learning_curve(document["curve"], "value", "pass", str(document["training"]["metric"])),
    ]
    if scores := document.get("held_out"):
        rows = [[title, *(scores[name][part] for part in PARTS)] for name, title in METRICS.items()]
        sections.append(Table(title="Scores of held-out documents", columns=["metric", *PARTS], rows=rows))
    if document.get("reliability"):
        sections.append(_calibration(document["reliability"]))
    sections += _weights(weights)
    sections.append(run_facts(page, document, {"model": document["model"]["file"]}))
    return write_page(
        page, f"What was learned: {document['model']['file']}", f"factorwise {verb} fit", sections
    )


def _calibration(reliability: Mapping[str, Any]) -> Chart:
    caption = "How often the candidate pairs that the model learned from are matches, by their probability."
    return reliability_chart(reliability, "pairs", caption)


def _weights(weights: Mapping[str, float]) -> list[Section]:
    return [
        template_table(_by_template(weights), "The smallest and the largest weight of each template."),
        weights_table(weights, "The contribution of each feature to the score."),
    ]


def _by_template(weights: Mapping[str, float]) -> dict[str, list[float]]:
    """Group weights by the template that their name begins with: ``template: feature``."""
    groups: dict[str, list[float]] = {}
    for name, value in weights.items():
        groups.setdefault(name.partition(": ")[0], []).append(value)
    return groups


def write_matches_report(
    page: Page,
    document: Mapping[str, Any],
    sides: Sequence[Ontology],
    matches: Sequence[Correspondence],
    aligner: OntologyAligner,
    *,
    values: bool,
) -> dict[str, Any]:
    """Write the matches with the labels of their concepts, and the evidence for them."""
    left, right = (side.by_id for side in sides)
    rows: list[list[Any]] = []
    for match in matches[:MOST_MATCHES]:
        names = [left[match.source].label, right[match.target].label] if values else []
        rows.append([match.source, match.target, *names, round(match.confidence, 4)])
    columns = ["A", "B", *(["label in A", "label in B"] if values else []), "confidence"]
    beyond = len(matches) - len(rows)
    caption = f"{beyond:,} less certain matches are not shown." if beyond else ""
    sections: list[Section] = [
        Facts(
            title="Result",
            rows=[
                ("concepts of A", len(sides[0])),
                ("concepts of B", len(sides[1])),
                ("matches", len(matches)),
            ],
        ),
        Table(title="Matches", note=caption, columns=columns, rows=rows),
        probability_bars(
            "Confidence", np.array([match.confidence for match in matches]), "confidence, from", "matches"
        ),
    ]
    if aligner.reliability_ is not None:
        sections.append(_calibration(aligner.reliability_.as_dict()))
    sections += _weights(aligner.weights_by_name())
    sections.append(run_facts(page, document, {"model": document["model"]}))
    return write_page(page, f"Matches in {document['output']}", "factorwise align apply", sections)


def write_mentions_report(
    page: Page,
    document: Mapping[str, Any],
    documents: Sequence[Document],
    answers: Sequence[Sequence[int | None]],
    weights: Mapping[str, float],
    *,
    values: bool,
) -> dict[str, Any]:
    """Write the entities with their mentions in context, the largest first, and the evidence for them."""
    groups: dict[int, list[list[Any]]] = {}
    for document_read, labels in zip(documents, answers, strict=True):
        for number, (mention, label) in enumerate(zip(document_read.mentions, labels, strict=True)):
            if label is None:
                continue
            before = document_read.tokens[max(0, mention.start - CONTEXT) : mention.start]
            text = document_read.tokens[mention.start : mention.end]
            after = document_read.tokens[mention.end : mention.end + CONTEXT]
            context = [shortened(" ".join(part)) for part in (before, text, after)] if values else []
            groups.setdefault(label, []).append([f"{document_read.id} {number}", *context])
    ordered = sorted(groups.values(), key=len, reverse=True)
    entities, shown = [], 0
    for rows in ordered:
        some = rows[:MOST_MEMBERS]
        shown += len(some)
        if shown > MOST_MENTIONS:
            break
        entities.append(Entity(str(rows[0][2] if values else rows[0][0]), None, some, len(rows) - len(some)))
    left = len(ordered) - len(entities)
    sections: list[Section] = [
        Facts(
            title="Result",
            note=RANKS,
            rows=[
                *((name, document[name]) for name in ("documents", "mentions", "entities")),
                ("left out", document["left_out"]),
            ],
        ),
        Entities(
            title="Entities",
            note=f"{left:,} smaller entities are not shown." if left else "",
            columns=["mention", *(["before", "text", "after"] if values else [])],
            entities=entities,
            noun="mentions",
            compared=False,
        ),
        *_weights(weights),
    ]
    sections.append(run_facts(page, document, {"model": document["model"]}))
    return write_page(page, f"Entities of {document['output']}", "factorwise coref apply", sections)
