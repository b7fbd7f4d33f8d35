"""Options and sections that the reports of all verbs share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from factorwise import __version__
from factorwise.cli.files import check_target, files_among, unwritten
from factorwise.cli.options import Options, path_option
from factorwise.cli.output import size_text
from factorwise.cli.progress import cost_rows
from factorwise.io.models.provenance import provenance, public_command

if TYPE_CHECKING:
    from factorwise.report import Chart, Facts, Section, Table
    from factorwise.types import Floats

ENDINGS = (".html", ".htm")
MOST_MEMBERS = 300  # members of an entity that are shown
LONGEST = 200  # characters of a value that are shown


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a report."""
    for option in (
        click.option(
            "--no-values",
            is_flag=True,
            help="Leave the values of records and texts out of the report; ids and figures stay.",
        ),
        path_option(
            "--report", metavar="FILE.html", help="Write an HTML report: one file that needs no network."
        ),
    ):
        command = option(command)
    return command


def check_report(report: Path | None, no_values: bool, *used: str | Path | None) -> None:
    """Refuse a report that is not HTML, cannot be written or is one of the files ``used``.

    ``--no-values`` without a report is refused, too.
    """
    if report is None:
        if no_values:
            raise click.UsageError("--no-values needs a report: give --report FILE.html, too.")
        return
    if report.suffix.lower() not in ENDINGS:
        raise click.UsageError(f"--report {str(report)!r}: a report is HTML, so its name must end in .html.")
    check_target("--report", report, *used)


class Page(NamedTuple):
    """The path of a report, and what it says about the run.

    read
        The input files of the run.
    """

    path: Path
    options: Options
    read: Sequence[str | Path | None] = ()


def run_facts(page: Page, document: Mapping[str, Any], data: Mapping[str, Any]) -> Facts:
    """Return a section with the command, the settings and the cost of the run.

    document
        The summary of the verb, with its ``seconds`` and ``peak_memory``.
    data
        Further facts: files, models.
    """
    from factorwise.report import Facts

    record = provenance(seed=page.options.seed, data=files_among(page.read))
    rows = [
        ("command", shlex.join(["factorwise", *public_command(sys.argv[1:])])),
        ("when", datetime.now(UTC).isoformat(timespec="seconds")),
        *data.items(),
        *(
            (f"read: {file['name']}", f"{size_text(file['bytes'])}, SHA-256 {file['sha256']}")
            for file in record["data"]
        ),
        ("seed", record["seed"]),
        ("threads", page.options.threads),
        *((name, text) for name, text in cost_rows(document)),
        *record["versions"].items(),
        ("platform", record["platform"]),
    ]
    return Facts(title="What was run", rows=rows)


def template_table(
    groups: Mapping[str, Sequence[float] | Floats], caption: str, column: str = "template"
) -> Table:
    """Return a section with the weights of each template: their number, smallest and largest."""
    from factorwise.report import Table

    spans = [
        (name, len(part), float(np.min(part)), float(np.max(part)))
        for name, part in groups.items()
        if len(part)
    ]
    spans.sort(key=lambda span: min(span[2], 0.0) - max(span[3], 0.0))
    return Table(
        title=f"Weights by {column}",
        note=caption,
        columns=[column, "weights", "least", "largest"],
        rows=spans,
    )


def facts_of(title: str, values: Mapping[str, Any], caption: str = "") -> Facts:
    """Return a section with the entries of a summary that are plain values or lists of them."""
    from factorwise.report import Facts

    rows = [(name.replace("_", " "), _cell(value)) for name, value in values.items()]
    return Facts(title=title, note=caption, rows=[(name, value) for name, value in rows if value is not None])


def _cell(value: Any) -> str | int | float | None:
    """Return a value as text; None for a value that is missing or has parts of its own."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str | int | float) else None


def shortened(text: str, longest: int = LONGEST) -> str:
    """Return a user's text, shortened if it is very long."""
    return text if len(text) <= longest else text[:longest] + "\u2026"


def weights_table(weights: Mapping[str, float], caption: str, column: str = "feature") -> Table:
    """Return a section with all weights, the largest first."""
    from factorwise.report import Table

    rows = sorted(weights.items(), key=lambda row: -abs(row[1]))
    return Table(title="Weights", note=caption, columns=[column, "weight"], rows=rows)


def learning_curve(passes: Sequence[Mapping[str, Any]], value: str, x_label: str, y_label: str) -> Chart:
    """Return a section with a value of each pass, by its number."""
    from factorwise.report import Chart, Series

    line = Series(y_label, [record["number"] for record in passes], [record[value] for record in passes])
    return Chart(title="Learning curve", series=[line], x_label=x_label, y_label=y_label)


def probability_bars(title: str, values: Floats, x_label: str, y_label: str, caption: str = "") -> Chart:
    """Return a section with the number of values in each twentieth between 0 and 1."""
    from factorwise.report import Chart, Series

    counts, edges = np.histogram(values, bins=20, range=(0.0, 1.0))
    bars = Series(y_label, [f"{low:.2f}" for low in edges[:-1]], counts.tolist())
    return Chart(
        title=title, note=caption, style="bar", series=[bars], x_label=x_label, y_label=y_label, log_y=True
    )


def reliability_chart(groups: Mapping[str, Any], cases: str, caption: str) -> Chart:
    """Return a section with the share of cases that came true, by their probability.

    groups
        The result of `Reliability.as_dict`.
    cases
        What has the probabilities: ``"pairs"``, ``"tokens"``.
    """
    from factorwise.report import Chart, Series

    total = sum(groups["cases"])
    return Chart(
        title="Calibration",
        note=f"{caption} {total:,.0f} {cases}; larger points have more of them; expected calibration error"
        f" {groups['error']:.4f}.",
        style="diagonal",
        series=[Series(cases, groups["probability"], groups["share"], groups["cases"])],
        x_label="probability",
        y_label="share that came true",
    )


def write_page(page: Page, title: str, subtitle: str, sections: list[Section]) -> dict[str, Any]:
    """Write the report, and return its entry in the summary."""
    from factorwise.report import Report, write_report

    report = Report(title=title, subtitle=subtitle, sections=sections, version=__version__)
    try:
        size = write_report(page.path, report)
    except OSError as error:
        raise unwritten(page.path, error) from error
    return {"file": page.path.name, "bytes": size}
