"""Scores of clusterings, written for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factorwise.cli.output import aligned

METRICS = {
    "pairwise": "pairwise",
    "b_cubed": "B-cubed",
    "muc": "MUC",
    "ceaf_e": "CEAF-e",
    "ceaf_m": "CEAF-m",
    "blanc": "BLANC",
    "lea": "LEA",
}
INDICES = {"conll": "CoNLL average", "rand": "Rand index", "adjusted_rand": "adjusted Rand index"}


def size_of(scores: Mapping[str, Any], groups: str) -> str:
    """Say what was compared."""
    return (
        f"{scores['documents']} {groups}, {scores['items']} mentions,"
        f" {scores['true_clusters']} true entities, {scores['predicted_clusters']} found"
    )


def score_lines(scores: Mapping[str, Any]) -> Iterator[str]:
    """Write all metrics in a table."""
    there = {"mentions": "mentions", **METRICS}
    rows = [score_row(title, scores[name]) for name, title in there.items() if name in scores]
    yield from aligned([("metric", "precision", "recall", "F1"), *rows])
    yield from aligned([(title, f"{scores[name]:.4f}") for name, title in INDICES.items() if name in scores])


def score_row(title: str, score: Mapping[str, float]) -> tuple[str, ...]:
    """Return a row of the table: precision, recall and F1."""
    return (title, *(f"{score[field]:.4f}" for field in ("precision", "recall", "f1")))


def each_lines(groups: Sequence[Mapping[str, Any]], heading: str) -> Iterator[str]:
    """Write the F1 of each metric, and the indices, a line for each document or topic."""
    rows = [(heading, "mentions", *METRICS.values(), "CoNLL", "Rand", "ARI")]
    for scores in groups:
        values = [scores[name]["f1"] for name in METRICS] + [scores[name] for name in INDICES]
        rows.append((scores["id"], str(scores["items"]), *(f"{value:.4f}" for value in values)))
    yield "F1 of each"
    yield from aligned(rows)
