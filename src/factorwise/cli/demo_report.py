"""The page of ``factorwise demo``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from factorwise.cli.report_sections import Page, run_facts, write_page
from factorwise.cli.resolve.report import convergence, entities_of, pairs_of, sizes_of, weights_of
from factorwise.cli.tag.report import confusion
from factorwise.report import Section, Sentence, Sentences, Table

if TYPE_CHECKING:
    from factorwise.cli.demo import _Authors, _Citations


def write_demo_report(
    page: Page, document: Mapping[str, Any], authors: _Authors, citations: _Citations
) -> dict[str, Any]:
    """Write scores, entities, uncertain pairs, weights, and citations with their fields."""
    found, knowledge = authors.found, authors.resolver.knowledge_
    records = authors.table.drop_columns("id")  # shown for each record anyway
    scores = [[name, before, after] for name, (before, after) in document["scores"].items()]
    true = [label for labels in citations.truth for label in labels]
    predicted = [label for labels in citations.predicted for label in labels]
    sections: list[Section] = [
        Table(
            title="Before and after",
            note="Authors: the same name as printed, against learned. Fields: each word's most frequent"
            " label, against learned.",
            columns=["task", "simple rule", "learned"],
            rows=scores,
        ),
        entities_of(records, found, values=True),
        pairs_of(records, found, knowledge, values=True),
        convergence(authors.rounds),
        sizes_of(found),
        weights_of(knowledge),
        Sentences(
            title="Citations",
            note="Each word with its label; darker means more certain, a frame marks a mistake.",
            sentences=[
                Sentence(words, labels, [round(chance, 4) for chance in sure], truth)
                for (words, truth), labels, sure in zip(
                    citations.test, citations.predicted, citations.probability, strict=True
                )
            ],
        ),
        confusion(true, predicted),
        run_facts(page, document, {"papers": document["papers"], "people": document["people"]}),
    ]
    title = "Who is who in a bibliography, and what its citations say"
    return write_page(page, title, "factorwise demo", sections)
