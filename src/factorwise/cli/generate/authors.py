"""``factorwise generate authors``: make author mentions as a bibliography has them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import click

from factorwise.cli.files import check_target, write_output
from factorwise.cli.numbers import Real
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import aligned, emit, notice
from factorwise.cli.progress import Clock, written_lines


class _Count(click.ParamType):  # type: ignore[type-arg]
    """A whole number, which may be written as 5e6."""

    name = "count"
    toml_type: ClassVar[Any] = ((int, float, str), "a whole number, such as 5000000 or 5e6")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number != int(number):
            self.fail(f"{value!r} is not a whole number, such as 5000000 or 5e6.", param, ctx)
        return int(number)


@verb(example="factorwise generate authors -n 5e6 -o authors.parquet")
@click.option("-n", "--mentions", required=True, type=_Count(), metavar="N", help="Rows to make, as 5e6.")
@path_option(
    "-o", "--output", required=True, metavar="OUT.parquet", help="File to write, whole or not at all."
)
@click.option(
    "--largest-scale",
    type=Real(1, 100_000),
    default=220.0,
    metavar="K",
    help="Cut-off of the law of mentions per author, k^-1.9 exp(-k/K). With 2000, a few have thousands.",
)
def command(options: Options, mentions: int, output: Path, largest_scale: float) -> None:
    """Make N mentions of authors and write them, with the truth in the column 'entity', to a Parquet file.

    Columns: id, entity, name, coauthors (the other names on the paper, as written), venue, year, title,
    paper, position. Rows are by paper, papers in no order. The statistics are printed beside their targets,
    which follow real bibliographies; from 100,000 mentions on, data that miss one are not written.
    With another --largest-scale, only those of mentions per author are checked, against that law. Needs
    names-dataset: pip install 'factorwise[generate]'.
    """
    if output.suffix.lower() != ".parquet":
        raise click.UsageError(f"--output {str(output)!r} must end in .parquet, the only format there is.")
    check_target("--output", output)

    # Arrow takes its time to load: help, and mistakes in options, do not wait for it
    from factorwise.datasets.authors import AuthorsConfig, generate_authors
    from factorwise.datasets.inventory import load_inventory

    config = AuthorsConfig(mentions=mentions, seed=options.seed, largest_scale=largest_scale)
    clock = Clock()
    with clock.part("names"):
        lists = load_inventory()
    with clock.part("mentions"):
        made = generate_authors(config, lists)
    made.check()
    with clock.part("writing"):
        write_output(output, made.table())
    document = {
        "output": output.name,
        "bytes": output.stat().st_size,
        "mentions": len(made),
        "authors": len(made.entity),
        "papers": len(made.papers.lab),
        "statistics": [
            {
                "name": one.name,
                "value": None if math.isnan(one.value) else one.value,
                "low": one.low,
                "high": one.high,
                "met": one.met,
                "binding": one.binding,
            }
            for one in made.statistics
        ],
        **clock.cost(),
    }
    if not all(one.met for one in made.statistics):
        some_bind = any(one.binding for one in made.statistics)
        reason = "the cut-off is another" if some_bind else "too few mentions to bind"
        notice(options, f"statistics are off their targets, which is no error here: {reason}.")
    emit(document, _lines(document), as_json=options.json)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    mentions = f"{document['mentions']} mentions of {document['authors']} authors"
    yield from written_lines(document, [("data", f"{mentions} on {document['papers']} papers")])
    rows = [("statistic", "value", "target")]
    for one in document["statistics"]:
        value = "none" if one["value"] is None else _number(one["value"])
        target = f"{_number(one['low'])} to {_number(one['high'])}"
        rows.append((one["name"], value, target if one["met"] else f"{target}  off"))
    yield from aligned(rows)


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.3g}"
