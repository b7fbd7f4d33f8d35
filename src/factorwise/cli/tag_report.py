"""The reports of ``tag fit``, ``tag apply`` and ``tag score``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from factorwise.apps.tagging.training import Step
from factorwise.cli.options import Options
from factorwise.cli.reports import probability_bars, run_facts, write_page
from factorwise.io.conll import ColumnFile
from factorwise.report import Chart, Facts, Matrix, Section, Sentence, Sentences, Series, Table
from factorwise.types import Floats

MOST_TOKENS = 40_000  # that are shown in sentences
HIDDEN = "\u2022"  # stands for a word that is left out


def write_fit_report(
    path: Path,
    options: Options,
    document: Mapping[str, Any],
    steps: Sequence[Step],
    learned: Mapping[str, Any],
    *,
    values: bool,
) -> dict[str, Any]:
    """Write what was learned: the fall of the objective, held-out scores, features, transitions.

    learned
        What ``tag inspect`` tells of the model. Features name words: they are left out without ``values``.
    """
    plain = [(name, value) for name, value in document["training"].items() if not isinstance(value, dict)]
    sections: list[Section] = [
        run_facts(options, document, {"model": document["model"]["file"]}),
        Facts(title="Data", rows=[(name, _text(value)) for name, value in document["data"].items()]),
        Facts(title="Training", rows=plain),
    ]
    if document["held_out"] is not None:
        sections.append(Facts(title="Held-out sentences", rows=list(document["held_out"].items())))
    number = [step.iteration for step in steps]
    if steps:
        sections.append(
            Chart(
                title="Convergence",
                series=[Series("objective", number, [step.objective for step in steps])],
                x_label="iteration",
                y_label="objective",
            )
        )
    scored = [(step.iteration, step.score) for step in steps if step.score is not None]
    if scored:
        sections.append(
            Chart(
                title="Learning curve",
                series=[Series("held out", [at for at, _ in scored], [score for _, score in scored])],
                x_label="iteration",
                y_label=document["held_out"]["measure"],
            )
        )
    if document["constraints"] is not None:
        kept = document["constraints"]["kept"]
        rows = [[one["kind"], ", ".join(one["labels"]), one["weight"]] for one in kept]
        sections.append(
            Table(
                title="Constraints on whole sentences",
                note="What is paid for breaking each.",
                columns=["kind", "labels", "weight"],
                rows=rows,
            )
        )
    if values:
        features = [[one["attribute"], one["label"], one["weight"]] for one in learned["features"]]
        sections.append(
            Table(
                title="Largest weights",
                note=f"{len(features):,} of {document['weights']['all']:,}.",
                columns=["attribute", "label", "weight"],
                rows=features,
            )
        )
    moves = [[" \u2192 ".join(one["labels"]), one["weight"]] for one in learned["strongest_transitions"]]
    sections.append(Table(title="Transitions", columns=["labels", "weight"], rows=moves))
    return write_page(path, f"A tagger: {document['model']['file']}", "factorwise tag fit", sections)


class Labeled(NamedTuple):
    """The tokens of a column file with the labels that they were given.

    words
        Number of the column with the words.
    probability : float64[tokens]
        Of each label.
    truth
        The true labels, where they are known.
    """

    table: ColumnFile
    words: int
    labels: Sequence[str]
    probability: Floats
    truth: Sequence[str] | None


def write_apply_report(
    path: Path, options: Options, document: Mapping[str, Any], found: Labeled, *, values: bool
) -> dict[str, Any]:
    """Write what was labeled: sentences shaded by doubt, how often each label, how sure."""
    _, _, labels, probability, truth = found
    names, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    sections: list[Section] = [
        run_facts(options, document, {"model": document["model"]}),
        Facts(
            title="Result",
            rows=[
                ("sentences", document["sentences"]),
                ("tokens", document["tokens"]),
                ("mean probability of a label", float(np.mean(probability)) if len(probability) else None),
            ],
        ),
        Chart(
            title="Labels",
            style="bar",
            series=[Series("tokens", names[order].tolist(), counts[order].tolist())],
            y_label="tokens",
            log_y=True,
        ),
        probability_bars("How sure the labels are", probability, "probability, from", "tokens"),
    ]
    if truth is not None:
        sections.append(confusion(truth, labels))
    sections.append(_sentences(found, values=values))
    return write_page(path, f"Labels of {document['output']}", "factorwise tag apply", sections)


def write_score_report(
    path: Path, options: Options, document: Mapping[str, Any], truth: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Write the scores: by type, and which labels are taken for which."""
    found = document["spans"] or document["labels"]
    fields = ("precision", "recall", "f1", "support", "predicted")
    rows = [[name, *(score.get(one) for one in fields)] for name, score in found["types"].items()]
    means = [(name, found[name]["f1"]) for name in ("micro", "macro", "weighted") if name in found]
    sections: list[Section] = [
        run_facts(options, document, {"file": document["file"]}),
        Facts(
            title="Scores",
            rows=[
                *((f"F1, {name}", value) for name, value in means),
                ("token accuracy", document["accuracy"]),
            ],
        ),
        Table(title="By type", columns=["type", "precision", "recall", "F1", "true", "predicted"], rows=rows),
        confusion(truth, labels),
    ]
    return write_page(path, f"Scores of {document['file']}", "factorwise tag score", sections)


def confusion(truth: Sequence[str], labels: Sequence[str]) -> Matrix:
    """Show which labels are taken for which."""
    names, codes = np.unique([*truth, *labels], return_inverse=True)
    true, predicted = codes[: len(truth)], codes[len(truth) :]
    counts = np.bincount(true * len(names) + predicted, minlength=len(names) ** 2).reshape(len(names), -1)
    return Matrix(
        title="Confusion",
        note="Tokens by their true label (rows) and the predicted one (columns).",
        rows=names.tolist(),
        columns=names.tolist(),
        steps={"tokens": counts.tolist()},
        row_label="true",
        column_label="predicted",
    )


def _sentences(found: Labeled, *, values: bool) -> Sentences:
    """Show the most doubtful sentences, as many as there is room for, in their order."""
    table, words, labels, probability, truth = found
    start = table.start
    sizes = np.diff(start)
    least = np.minimum.reduceat(probability, start[:-1]) if len(sizes) else np.zeros(0)
    order = np.argsort(least, kind="stable")
    shown = np.sort(order[np.cumsum(sizes[order]) <= MOST_TOKENS])
    text = table.column(words)
    bounds = list(pairwise(start.tolist()))
    rounded = np.round(probability, 4)

    def sentence(number: int) -> Sentence:
        begin, end = bounds[number]
        return Sentence(
            [text[k] if values else HIDDEN for k in range(begin, end)],
            list(labels[begin:end]),
            rounded[begin:end].tolist(),
            None if truth is None else list(truth[begin:end]),
        )

    left = len(sizes) - len(shown)
    note = "Each word with its label; darker is surer, a frame marks a mistake."
    if left:
        note += f" {left:,} sentences, which are less in doubt, are not shown."
    return Sentences(title="Sentences", note=note, sentences=[sentence(k) for k in shown.tolist()])


def _text(value: Any) -> str | int | float | None:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def truth_of(table: ColumnFile, label: int | None, columns: int | None) -> list[str] | None:
    """Return the column of true labels of a file that has the columns of the training data."""
    if label is None or columns is None or table.n_columns != columns:
        return None
    return list(table.column(label))
