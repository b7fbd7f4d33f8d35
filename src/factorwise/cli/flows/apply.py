"""``factorwise flows apply``: infer flows from counts."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.files import (
    STANDARD,
    check_different,
    check_kind,
    check_tables,
    check_target,
    output_option,
    speaking_of,
    spreadsheet_option,
    write_output,
    writing,
)
from factorwise.cli.flows.data import features_option, notice_population, read_counts, read_features
from factorwise.cli.numbers import Real
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import Clock, written_lines
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.errors import ConvergenceWarning
from factorwise.io.listing import some

if TYPE_CHECKING:  # Arrow loads slowly
    import pyarrow as pa


@verb(example="factorwise flows apply counts.csv --model birds.fw -o flows.csv")
@click.argument("counts", metavar="COUNTS.csv")
@path_option("--model", required=True, metavar="MODEL.fw", help="The model.")
@features_option
@output_option(metavar="FLOWS.csv", help="File to write, whole or not at all: CSV, Parquet or JSON lines.")
@spreadsheet_option
@click.option("--least", type=Real(min=0), default=1e-3, help="Leave out flows of fewer members.")
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

    Writes the columns time, from, to and expected, and sequence if there are several. The time of a flow is
    the time at which it begins or, in a tree of times, ends. --features are needed if the features of `flows
    fit` were limited to its sequences. With --json, prints a summary if a file is written, otherwise the
    flows.
    """
    check_different({"--output": output, "--report": report})
    if output != STANDARD:
        check_target("--output", Path(output), counts, model, *features)
        check_tables({"--output": Path(output)})
    check_report(report, no_values, counts, model, *features)

    # SciPy and scikit-learn load slowly: import them only after the options are checked
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
    if places := known.places_without_counts():
        notice(options, f"{counts} has no counts for {some(places)}, which the model has: taken as missing.")
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
        **clock.cost(),
        "report": None,
    }
    if output == STANDARD and options.json:
        emit({"flows": table.to_pylist()}, (), as_json=True)
    else:
        _write(output, without_formulas(table) if for_spreadsheets else table)
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


def _write(output: str, table: pa.Table) -> None:
    """Write flows in the format of the file name; numbers in CSV have eight digits."""
    if output != STANDARD and not output.endswith(".csv"):
        write_output(Path(output), table)
        return
    with writing(output) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.column_names)
        *names, members = (column.to_pylist() for column in table.columns)
        writer.writerows(zip(*names, (f"{number:.8g}" for number in members), strict=True))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    sizes = f"{document['sequences']} sequences, {document['steps']} steps"
    yield from written_lines(
        document,
        [
            ("data", f"{sizes}, {document['flows']} flows"),
            ("gap", f"{document['gap']:.2g} at most, for one member"),
        ],
    )
