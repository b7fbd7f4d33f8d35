"""The reports of ``flows fit`` and ``flows apply``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from factorwise.cli.report_sections import (
    Page,
    facts_of,
    learning_curve,
    run_facts,
    weights_table,
    write_page,
)
from factorwise.report import Chart, Facts, Matrix, Section, Series, Table
from factorwise.types import Floats

if TYPE_CHECKING:  # SciPy loads slowly
    from factorwise.apps.collective.counts import Counts
    from factorwise.apps.collective.flows import Flows

MOST_PLACES = 80  # largest matrix shown
MOST_STEPS = 48
MOST_SEQUENCES = 5


def write_fit_report(page: Page, document: Mapping[str, Any], weights: Mapping[str, float]) -> dict[str, Any]:
    """Write a report of training: data, learning curve, weights."""
    sections: list[Section] = [
        facts_of("Data", document["data"]),
        facts_of("Training", document["training"]),
    ]
    if document["curve"]:
        curve = learning_curve(document["curve"], "objective", "pass of EM", "objective of all members")
        sections.append(curve)
    sections.append(_weights(weights))
    title = f"How a population moves: {document['model']['file']}"
    sections.append(run_facts(page, document, {"model": document["model"]["file"]}))
    return write_page(page, title, "factorwise flows fit", sections)


def write_apply_report(
    page: Page,
    document: Mapping[str, Any],
    counts: Counts,
    flows: Flows,
    share: float,
    weights: Mapping[str, float],
    *,
    values: bool,
) -> dict[str, Any]:
    """Write a report of inferred flows: flows over time, and counts beside expected counts.

    share
        Expected count per member present.
    """
    names = flows.places if values else tuple(f"place {k + 1}" for k in range(len(flows.places)))
    busiest = np.sum([series.expected.sum(axis=(0, 1)) for series in flows.series], axis=0)
    shown = np.sort(np.argsort(-busiest, kind="stable")[:MOST_PLACES])
    sections: list[Section] = [
        Facts(
            title="Result",
            rows=[
                ("sequences", document["sequences"]),
                ("steps", document["steps"]),
                ("places", len(flows.places)),
                ("flows", document["flows"]),
                ("gap for one member, at most", document["gap"]),
            ],
        ),
    ]
    if not values:
        sections.append(
            Facts(title="Left out", rows=[("names of places and sequences", "--no-values was given")])
        )
    pairs = list(zip(counts.series, flows.series, strict=True))[:MOST_SEQUENCES]
    for number, (given, found) in enumerate(pairs, 1):
        name = found.name if values else str(number)
        sections.append(_totals(given.counts, share * found.counts, found.times, name))
        steps = {
            step: np.round(found.expected[k][np.ix_(shown, shown)], 4).tolist()
            for k, step in enumerate(found.steps[:MOST_STEPS])
        }
        labels = [names[k] for k in shown]
        sections.append(
            _by_place(given.counts[:, shown], share * found.counts[:, shown], found.times, labels, name)
        )
        sections.append(
            Matrix(
                title=f"Flows, sequence {name}" if len(flows) > 1 else "Flows",
                note=_matrix_note(len(shown), len(flows.places), len(steps), len(found.steps)),
                rows=labels,
                columns=labels,
                steps=steps,
                row_label="from",
                column_label="to",
            )
        )
    left = len(flows) - MOST_SEQUENCES
    if left > 0:
        sections.append(Facts(title="Not shown", rows=[("further sequences", left)]))
    sections.append(_weights(weights))
    sections.append(run_facts(page, document, {"model": document["model"]}))
    return write_page(page, f"Flows in {document['output']}", "factorwise flows apply", sections)


def _weights(weights: Mapping[str, float]) -> Table:
    return weights_table(weights, "What each feature adds to the log odds of a move.")


def _totals(counted: Floats, expected: Floats, times: tuple[str, ...], name: str) -> Chart:
    made = np.where(np.isnan(counted).all(axis=1), np.nan, np.nansum(counted, axis=1))
    return Chart(
        title=f"Counts, sequence {name}",
        note="The sum of the counts at each time, and the sum that the flows predict. The model has a"
        " constant population, so the expected sum is the same at all times; counts differ from it by chance,"
        " or because some are missing.",
        series=[
            Series("counted", list(times), made.round(6).tolist()),
            Series("expected", list(times), expected.sum(axis=1).round(6).tolist()),
        ],
        x_label="time",
        y_label="count",
    )


def _by_place(
    counted: Floats, expected: Floats, times: tuple[str, ...], places: Sequence[str], name: str
) -> Matrix:
    """Return counts and expected counts by place and time, for the first times if there are many."""
    made = ~np.isnan(counted)
    parts = {"counted": np.where(made, counted, 0.0), "expected": expected}
    parts["above"] = np.where(made, np.maximum(counted - expected, 0.0), 0.0)
    parts["below"] = np.where(made, np.maximum(expected - counted, 0.0), 0.0)
    first = f" The first {MOST_STEPS} of {len(times)} times." if len(times) > MOST_STEPS else ""
    return Matrix(
        title=f"Counted against expected, sequence {name}",
        note="The slider shows the counts, the expected counts, and by how much counts are above and below"
        f" what is expected. Missing counts are left empty.{first}",
        rows=list(places),
        columns=list(times[:MOST_STEPS]),
        steps={part: np.round(values[:MOST_STEPS].T, 2).tolist() for part, values in parts.items()},
        row_label="place",
        column_label="time",
    )


def _matrix_note(places: int, of_places: int, steps: int, of_steps: int) -> str:
    note = "Darker is more; move the slider through time."
    if places < of_places:
        note += f" The {places} busiest of {of_places} places."
    if steps < of_steps:
        note += f" The first {steps} of {of_steps} steps."
    return note
