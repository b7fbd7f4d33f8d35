"""``factorwise flows apply``: find the flows behind counts."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from factorwise.cli.files import (
    STANDARD,
    check_different,
    check_tables,
    check_target,
    speaking_of,
    spreadsheet_option,
    write_output,
    writing,
)
from factorwise.cli.flows.data import features_option, notice_population, read_counts, read_features
from factorwise.cli.learned import check_kind
from factorwise.cli.numbers import Real
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice, size_text
from factorwise.cli.progress import Clock, cost_rows, peak_memory
from factorwise.cli.reports import Page, check_report, report_options, report_row
from factorwise.errors import ConvergenceWarning
from factorwise.io.listing import some


@verb(example="factorwise flows apply counts.csv --model birds.fw -o flows.csv")
@click.argument("counts", metavar="COUNTS.csv")
@click.option(
    "--model", required=True, type=click.Path(path_type=Path), metavar="MODEL.fw", help="The model."
)
@features_option
@click.option(
    "-o",
    "--output",
    default=STANDARD,
    metavar="FLOWS.csv",
    help="File to write, whole or not at all: CSV, Parquet or JSON lines.  [default: standard output]",
)
@spreadsheet_option
@click.option(
    "--least",
    type=Real(min=0),
    default=1e-3,
    show_default=True,
    help="Leave out flows of fewer members.",
)
@click.option(
    "--population",
    type=Real(min=0, min_open=True),
    help="Members of each sequence.  [default: as given to `flows fit`, or estimated]",
)
@report_options
def command(
    options: Options,
    counts: str,
    model: Path,
    features: tuple[str, ...],
    output: str,
    for_spreadsheets: bool,
    least: float,
    population: float | None,
    report: Path | None,
    no_values: bool,
) -> None:
    """Find how many members went from where to where, given the counts in COUNTS.csv.

    Writes the columns time, from, to and expected, and sequence if there are several. A flow has the time at
    which it begins; in a tree of times, that at which it ends. --features are needed if those of `flows fit`
    were for its sequences alone. With --json a summary is printed if a file is written, otherwise the flows.
    """
    check_different({"--output": output, "--report": report})
    if output != STANDARD:
        check_target("--output", Path(output), counts, model, *features)
        check_tables({"--output": Path(output)})
    check_report(report, no_values, counts, model, *features)

    # SciPy and scikit-learn take their time to load: help, and mistakes in options, do not wait for them
    from factorwise.apps.collective.estimator import CollectiveModel
    from factorwise.apps.collective.model_file import KIND
    from factorwise.apps.collective.noise import Noise
    from factorwise.io.tables.reading import without_formulas

    check_kind(model, KIND)
    chosen = {} if population is None else {"population": population}
    loaded = CollectiveModel.load(model, **chosen)
    used = read_features(features)
    clock = Clock()
    with clock.part("reading"):
        known = read_counts(counts, loaded.places_)
    if uncounted := known.uncounted():
        notice(
            options, f"{counts} has no count at {some(uncounted)}, which the model knows: taken as not made."
        )
    with (
        clock.part("flows"),
        speaking_of(counts, *features),
        warnings.catch_warnings(record=True, category=ConvergenceWarning) as caught,
    ):
        warnings.simplefilter("always", ConvergenceWarning)
        flows = loaded.predict(known, features=used)
    noise = Noise(kind=loaded.noise, rate=loaded.rate, variance=loaded.variance)
    notice_population(options, known, {one.name: one.population for one in flows.series}, noise.share)
    for warning in caught:
        notice(options, str(warning.message))
    table = flows.table(least)
    document = {
        "output": "flows" if output == STANDARD else Path(output).name,
        "model": model.name,
        "sequences": len(flows),
        "steps": sum(len(series.steps) for series in flows.series),
        "flows": table.num_rows,
        "population": {series.name: series.population for series in flows.series},
        "gap": max(series.gap for series in flows.series),
        "peak_memory": peak_memory(),
        "seconds": clock.seconds(),
        "report": None,
    }
    if output == STANDARD and options.json:
        emit({"flows": table.to_pylist()}, (), as_json=True)
    elif output == STANDARD or output.endswith(".csv"):
        if for_spreadsheets:
            table = without_formulas(table)
        with writing(output) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(table.column_names)
            *names, members = (column.to_pylist() for column in table.columns)
            writer.writerows(zip(*names, (f"{number:.8g}" for number in members), strict=True))
    else:
        write_output(Path(output), table)
    if report is not None:
        from factorwise.cli.flows.report import write_apply_report

        page = Page(report, options, (counts, model, *features))
        weights = loaded.weights_by_name()
        document["report"] = write_apply_report(
            page, document, known, flows, noise.share, weights, values=not no_values
        )
    if output != STANDARD:
        document["bytes"] = Path(output).stat().st_size
        emit(document, _lines(document), as_json=options.json)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"{document['output']}  ({size_text(document['bytes'])}, written)"
    sizes = f"{document['sequences']} sequences, {document['steps']} steps"
    yield from aligned(
        [
            ("data", f"{sizes}, {document['flows']} flows"),
            ("gap", f"{document['gap']:.2g} at most, for one member"),
            *report_row(document["report"]),
            *cost_rows(document),
        ]
    )
