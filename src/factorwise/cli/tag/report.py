"""The reports of ``tag fit``, ``tag apply`` and ``tag score``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from factorwise.cli.report_sections import (
    Page,
    facts_of,
    probability_bars,
    reliability_chart,
    run_facts,
    shortened,
    template_table,
    write_page,
)
from factorwise.cli.tag.scores import JudgedLabels, scored
from factorwise.io.conll import ColumnFile
from factorwise.metrics.calibration import reliability
from factorwise.report import Chart, Facts, Matrix, Section, Sentence, Sentences, Series, Table
from factorwise.types import Floats

if TYPE_CHECKING:  # these modules load the compiler, which help does not wait for
    from factorwise.apps.tagging.training import Step

MOST_TOKENS = 40_000  # that are shown in sentences
LONGEST_SENTENCE = 2_000  # tokens of one of them
MEANS = ("micro", "macro", "weighted")
HIDDEN = "\u2022"  # stands for a word that is left out


def write_fit_report(
    page: Page,
    document: Mapping[str, Any],
    steps: Sequence[Step],
    learned: Mapping[str, Any],
    by_template: Mapping[str, Floats],
    judged: JudgedLabels | None,
    *,
    values: bool,
) -> dict[str, Any]:
    """Write what was learned: the fall of the objective, held-out scores, features, transitions.

    learned
        What ``tag inspect`` tells of the model. Features name words: they are left out without ``values``.
    by_template
        The weights of each feature template.
    judged
        The held-out sentences, if there are any.
    """
    sections: list[Section] = [
        facts_of("Data", document["data"]),
        facts_of("Training", document["training"]),
    ]
    if judged is not None:
        sections.append(facts_of("Held-out sentences", document["held_out"], _taught(document)))
        sections += quality_of(judged)
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
    if document["constraints"] is not None and (kept := document["constraints"]["kept"]):
        rows = [[one["kind"], ", ".join(one["labels"]), one["weight"]] for one in kept]
        sections.append(
            Table(
                title="Constraints on whole sentences",
                note="What is paid for breaking each.",
                columns=["kind", "labels", "weight"],
                rows=rows,
            )
        )
    sections.append(template_table(by_template, "The least and the largest weight of each template."))
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
    sections.append(run_facts(page, document, {"model": document["model"]["file"]}))
    return write_page(page, f"A tagger: {document['model']['file']}", "factorwise tag fit", sections)


def _taught(document: Mapping[str, Any]) -> str:
    """Say what else was done with held-out sentences."""
    if document["constraints"] is None:
        return ""
    return "The weights of the constraints were learned from these sentences, too: they look a little better."


def quality_of(judged: JudgedLabels) -> list[Section]:
    """Show how good labels are: by type, which is taken for which, how far to trust their probabilities."""
    names, truth, labels = judged.names, judged.truth, judged.labels
    found = reliability(judged.probability, truth == labels)
    text = np.array(names, dtype=object)
    return [
        by_type(scored(names, truth, labels, judged.start)),
        confusion(text[truth].tolist(), text[labels].tolist()),
        reliability_chart(found.as_dict(), "tokens", "How often labels are true, by their probability."),
    ]


def by_type(scores: Mapping[str, Any]) -> Table:
    """Show the scores of each type of span, or of each label."""
    found = scores["spans"] or scores["labels"]
    fields = ("precision", "recall", "f1", "support", "predicted")
    kinds = {**{f"({one})": found[one] for one in MEANS if one in found}, **found["types"]}
    return Table(
        title="By type",
        note="Of spans." if scores["spans"] else "Of tokens, as the labels name no spans.",
        columns=["type", "precision", "recall", "F1", "true", "predicted"],
        rows=[[name, *(score.get(one) for one in fields)] for name, score in kinds.items()],
    )


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
    page: Page, document: Mapping[str, Any], found: Labeled, *, values: bool
) -> dict[str, Any]:
    """Write what was labeled: sentences shaded by doubt, how often each label, how sure."""
    _, _, labels, probability, truth = found
    names, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    sections: list[Section] = [
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
    if truth is not None and len(truth):
        sections += quality_of(_judged(found, truth))
    sections.append(_sentences(found, values=values))
    sections.append(run_facts(page, document, {"model": document["model"]}))
    return write_page(page, f"Labels of {document['output']}", "factorwise tag apply", sections)


def _judged(found: Labeled, truth: Sequence[str]) -> JudgedLabels:
    names, codes = np.unique([*truth, *found.labels], return_inverse=True)
    true, given = codes.reshape(2, -1)
    return JudgedLabels(names.tolist(), true, given, found.table.start, found.probability)


def write_score_report(
    page: Page, document: Mapping[str, Any], truth: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Write the scores: by type, and which labels are taken for which."""
    found = document["spans"] or document["labels"]
    means = [(name, found[name]["f1"]) for name in MEANS if name in found]
    sections: list[Section] = [
        Facts(
            title="Scores",
            rows=[
                *((f"F1, {name}", value) for name, value in means),
                ("token accuracy", document["accuracy"]),
            ],
        ),
        by_type(document),
        confusion(truth, labels),
    ]
    sections.append(run_facts(page, document, {"file": document["file"]}))
    return write_page(page, f"Scores of {document['file']}", "factorwise tag score", sections)


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
        mistakes=True,
    )


def _sentences(found: Labeled, *, values: bool) -> Sentences:
    """Show the most doubtful sentences, as many as there is room for, in their order."""
    table, words, labels, probability, truth = found
    start = table.start
    sizes = np.minimum(np.diff(start), LONGEST_SENTENCE)
    least = np.minimum.reduceat(probability, start[:-1]) if len(sizes) else np.zeros(0)
    order = np.argsort(least, kind="stable")
    shown = np.sort(order[np.cumsum(sizes[order]) <= MOST_TOKENS])
    text = table.column(words)
    bounds = list(pairwise(start.tolist()))
    rounded = np.round(probability, 4)

    def sentence(number: int) -> Sentence:
        begin, beyond = bounds[number]
        end = begin + int(sizes[number])
        return Sentence(
            [shortened(text[k]) if values else HIDDEN for k in range(begin, end)],
            list(labels[begin:end]),
            rounded[begin:end].tolist(),
            None if truth is None else list(truth[begin:end]),
            beyond - end,
        )

    left = len(sizes) - len(shown)
    note = "Each word with its label; darker is surer, a frame marks a mistake."
    if left:
        note += f" {left:,} sentences, which are less in doubt, are not shown."
    return Sentences(title="Sentences", note=note, sentences=[sentence(k) for k in shown.tolist()])


def truth_of(table: ColumnFile, label: int | None, columns: int | None) -> list[str] | None:
    """Return the column of true labels of a file that has the columns of the training data."""
    if label is None or columns is None or table.n_columns != columns:
        return None
    return list(table.column(label))
