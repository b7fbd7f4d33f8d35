"""``factorwise flows fit``: learn how a population moves from counts, and save the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from factorwise.cli.files import check_different, check_target, files_among, reading_utf8, speaking_of
from factorwise.cli.flows_data import features_option, read_counts, read_features, read_parents
from factorwise.cli.learned import TOP, largest, weight_lines
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice, size_text
from factorwise.cli.progress import Clock, cost_rows, peak_memory, show_progress
from factorwise.cli.reports import Page, check_report, report_options, report_row

NOISE = ("poisson", "gaussian", "multinomial", "exact")


@verb(example="factorwise flows fit counts.csv --features pairs.csv --population 1000 --model birds.fw")
@click.argument("counts", metavar="COUNTS.csv")
@click.option(
    "--model",
    required=True,
    type=click.Path(path_type=Path),
    metavar="MODEL.fw",
    help="Where to save the model.",
)
@features_option
@click.option(
    "--places",
    metavar="PLACES.csv",
    help="Table with place and x, y or lat, lon: adds features for classes of distance.",
)
@click.option(
    "--flows",
    metavar="KNOWN.csv",
    help="True flows of some or all sequences, to learn from these instead of by EM.",
)
@click.option(
    "--noise", type=click.Choice(NOISE), default="poisson", show_default=True, help="Of the counts."
)
@click.option(
    "--rate",
    type=Real(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of the members there that is seen, of poisson noise.",
)
@click.option(
    "--variance",
    type=Real(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Of the errors, of gaussian noise.",
)
@click.option(
    "--population",
    type=Real(min=0, min_open=True),
    help="Members of each sequence.  [default: estimated from its counts]",
)
@click.option(
    "--parents",
    metavar="TREE.csv",
    help="Table with time and parent, if times are a tree.  [default: each follows the one before]",
)
@click.option(
    "--l2",
    type=Real(min=0),
    default=0.1,
    show_default=True,
    help="Half of this times the squared weights is added to what is minimised.",
)
@click.option("--passes", type=Whole(min=1), default=100, show_default=True, help="Turns of EM at most.")
@click.option(
    "--tolerance",
    type=Real(min=0),
    default=1e-6,
    show_default=True,
    help="Relative fall of the objective that is too small to go on.",
)
@report_options
def command(options: Options, **given: Any) -> None:
    """Learn how the members of a population move from the counts in COUNTS.csv.

    The table has the columns time, place and count, and sequence if there are several, such as days. An empty
    count, or a record that is not there, is a count that was not made. Pairs of places that a table of
    features does not have are impossible moves; without --features there is one for staying. With --verbose
    each turn of EM is told as it ends. The model is written whole or not at all.
    """
    inputs = (given["counts"], *given["features"], given["places"], given["flows"], given["parents"])
    report, no_values = given.pop("report"), given.pop("no_values")
    check_target("--model", given["model"], *inputs)
    check_different({"--model": given["model"], "--report": report})
    check_report(report, no_values, *inputs)
    document, weights = fit(options, **given)
    document["report"] = None
    if report is not None:
        from factorwise.cli.flows_report import write_fit_report

        document["report"] = write_fit_report(Page(report, options, inputs), document, weights)
    if not document["training"]["settled"]:
        passes = document["training"]["passes"]
        notice(options, f"the objective was still falling after {passes} passes: give more with --passes.")
    emit(document, _lines(document), as_json=options.json)


def fit(
    options: Options,
    counts: str,
    model: Path,
    features: tuple[str, ...],
    places: str | None,
    flows: str | None,
    parents: str | None,
    **settings: Any,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Learn, save, and return the summary and all weights; ``settings`` are those of `CollectiveModel`."""
    clock = Clock()
    with clock.part("loading"):  # SciPy and scikit-learn take their time: help does not wait for them
        from factorwise.apps.collective import by_distance, read_distances, staying
        from factorwise.apps.collective.estimator import CollectiveModel
    with clock.part("reading"):
        used = read_features(features)
        if places is not None:
            with reading_utf8(places):
                near = by_distance(*read_distances(places))
            with speaking_of(places, *features):
                used = near if used is None else near.joined(used)
        known = read_counts(counts, None if used is None else used.places)
        used = staying(known.places) if used is None else used
        estimator = CollectiveModel(**settings, parents=read_parents(parents))
    with clock.part("training"):
        with reading_utf8(flows or counts), speaking_of(counts, *features, flows, parents):
            estimator.fit(known, features=used, flows=flows, callback=_watch(options))
        if show_progress(options) and not options.verbose:
            click.echo(err=True)  # the passes were told on one line
    with clock.part("writing"):
        estimator.save(model, files_among((counts, *features, places, flows, parents)))
    blocks = [series.counts for series in known.series]
    history = estimator.history_
    weights = estimator.weights_by_name()
    document = {
        "model": {"file": model.name, "bytes": model.stat().st_size},
        "data": {
            "sequences": len(blocks),
            "times": sum(map(len, blocks)),
            "places": len(known.places),
            "counts": int(sum(np.isfinite(block).sum() for block in blocks)),
            "missing": int(sum(np.isnan(block).sum() for block in blocks)),
        },
        "weights": {
            "all": len(estimator.weights_),
            "largest": largest(weights, None if options.verbose else TOP),
        },
        "training": {
            **{name: settings[name] for name in ("noise", "rate", "variance", "population", "l2")},
            "passes": len(history),
            "settled": len(history) < settings["passes"],
            "known_flows": flows is not None,
            "objective": history[-1].objective if history else None,
        },
        "curve": [record._asdict() for record in history],
        "seconds": clock.seconds(),
        "peak_memory": peak_memory(),
    }
    return document, weights


def _watch(options: Options) -> Any:
    """Return what tells of each turn of EM on standard error, if that is wanted."""
    if not options.verbose and not show_progress(options):
        return None

    def tell(record: Any, _weights: object) -> None:
        text = (
            f"pass {record.number}: objective {record.objective:.6g}, weights changed by {record.change:.2g}"
        )
        click.echo(text if options.verbose else f"\r{text}   ", err=True, nl=options.verbose)

    return tell


def _lines(document: dict[str, Any]) -> Iterator[str]:
    data, training = document["data"], document["training"]
    sizes = f"{data['sequences']} sequences, {data['times']} times, {data['places']} places"
    ended = "settled" if training["settled"] else "still falling"
    learned = "from known flows"
    if not training["known_flows"]:
        learned = f"{training['passes']} passes, objective {training['objective']:.6g}, {ended}"
    rows = [
        ("data", f"{sizes}; {data['counts']} counts, {data['missing']} missing"),
        ("noise", training["noise"]),
        ("training", learned),
    ]
    yield f"{document['model']['file']}  ({size_text(document['model']['bytes'])}, written)"
    yield from aligned([*rows, *report_row(document["report"]), *cost_rows(document)])
    yield from weight_lines(document["weights"]["largest"])
