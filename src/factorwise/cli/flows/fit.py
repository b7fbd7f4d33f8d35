"""``factorwise flows fit``: learn how a population moves from counts, and save the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from factorwise.cli.files import check_different, check_target, files_among, reading_utf8, speaking_of
from factorwise.cli.flows.data import (
    features_option,
    notice_population,
    read_counts,
    read_features,
    read_parents,
)
from factorwise.cli.learned_weights import TOP, weight_lines, weights_entry
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import (
    Clock,
    show_progress,
    tell_compiling,
    written_lines,
)
from factorwise.cli.report_sections import Page, check_report, report_options

if TYPE_CHECKING:  # SciPy loads slowly
    from factorwise.apps.collective import Counts

#: The option for the parameter of each kind of noise.
NOISE = {"poisson": "rate", "gaussian": "variance", "multinomial": None, "exact": None}


@verb(example="factorwise flows fit counts.csv --features pairs.csv --population 1000 --model birds.fw")
@click.argument("counts", metavar="COUNTS.csv")
@path_option("--model", required=True, metavar="MODEL.fw", help="Where to save the model.")
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
@click.option("--noise", type=click.Choice(NOISE), default="poisson", help="Noise model of the counts.")
@click.option(
    "--rate",
    type=Real(min=0, min_open=True),
    help="With poisson noise: share of the members present that is counted.  [default: 1]",
)
@click.option(
    "--variance",
    type=Real(min=0, min_open=True),
    help="With gaussian noise: variance of the errors.  [default: 1]",
)
@click.option(
    "--population",
    type=Real(min=0, min_open=True),
    help="Members of each sequence.  [default: estimated from its counts]",
)
@click.option(
    "--parents",
    metavar="TREE.csv",
    help="Table with time and parent, if times form a tree.  [default: a chain]",
)
@click.option(
    "--l2",
    type=Real(min=0),
    default=0.1,
    help="L2 penalty: half of this times the squared norm of the weights is added to the objective.",
)
@click.option("--passes", type=Whole(min=1), default=300, help="Maximum number of passes of EM.")
@click.option(
    "--tolerance",
    type=Real(min=0),
    default=1e-6,
    help="End when the objective decreases by less than this, relative to its size.",
)
@report_options
def command(options: Options, **given: Any) -> None:
    """Learn how the members of a population move from the counts in COUNTS.csv.

    The table has the columns time, place and count, and sequence if there are several, such as days. An empty
    count, or an absent record, is a missing count. Pairs of places that a table of features does not contain
    are impossible moves; without --features, the only feature is staying. With --verbose, each pass of EM is
    reported. The model is written whole or not at all.
    """
    inputs = (given["counts"], *given["features"], given["places"], given["flows"], given["parents"])
    report, no_values = given.pop("report"), given.pop("no_values")
    _check_noise(given)
    check_target("--model", given["model"], *inputs)
    check_different({"--model": given["model"], "--report": report})
    check_report(report, no_values, *inputs)
    document, weights = fit(options, **given)
    document["report"] = None
    if report is not None:
        from factorwise.cli.flows.report import write_fit_report

        document["report"] = write_fit_report(Page(report, options, inputs), document, weights)
    if not document["training"]["settled"]:
        passes = document["training"]["passes"]
        notice(
            options, f"the objective was still decreasing after {passes} passes: allow more with --passes."
        )
    emit(document, _lines(document), as_json=options.json)


def _check_noise(given: dict[str, Any]) -> None:
    """Raise an error for the parameter of another kind of noise."""
    for kind, name in NOISE.items():
        if name is not None and given[name] is not None and given["noise"] != kind:
            raise click.UsageError(
                f"--{name} applies to {kind} noise, but --noise is {given['noise']}: leave --{name} out, or"
                f" give --noise {kind}."
            )


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
    """Fit and save a `CollectiveModel` with ``settings``; return the summary and all weights."""
    clock = Clock()
    tell_compiling(options)
    with clock.part("loading"):  # SciPy and scikit-learn load slowly: --help does not need them
        from factorwise.apps.collective import by_distance, read_distances, staying
        from factorwise.apps.collective.estimator import CollectiveModel
        from factorwise.apps.collective.noise import Noise
    with clock.part("reading"):
        used = read_features(features)
        if places is not None:
            with reading_utf8(places):
                near = by_distance(*read_distances(places))
            with speaking_of(places, *features):
                used = near if used is None else near.join(used)
        known = read_counts(counts, None if used is None else used.places)
        used = staying(known.places) if used is None else used
        estimator = CollectiveModel(**settings, parents=read_parents(parents))
        noise = Noise(kind=settings["noise"], rate=settings["rate"], variance=settings["variance"])
    if settings["population"] is not None:
        each = {series.name: settings["population"] for series in known.series}
        notice_population(options, known, each, noise.share)
    with clock.part("training"):
        with reading_utf8(flows or counts), speaking_of(counts, *features, flows, parents):
            learned_from = _known_steps(known, estimator.parents, flows)
            if learned_from is not None and learned_from[0] < learned_from[1]:
                notice(
                    options,
                    f"{flows} has flows for {learned_from[0]} of {learned_from[1]} steps: weights are learned"
                    " from these steps only.",
                )
            estimator.fit(known, features=used, flows=flows, callback=_pass_callback(options))
        if show_progress(options) and not options.verbose:
            click.echo(err=True)  # ends the line on which the passes were reported
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
            **weights_entry(weights, None if options.verbose else TOP),
            "all": len(estimator.weights_),  # two features may have one name
        },
        "training": {
            "noise": settings["noise"],
            **({} if (name := NOISE[settings["noise"]]) is None else {name: noise.number}),
            **{name: settings[name] for name in ("population", "l2")},
            "passes": len(history),
            "settled": len(history) < settings["passes"],
            "known_flows": flows is not None,
            "known_steps": None if learned_from is None else learned_from[0],
            "steps": None if learned_from is None else learned_from[1],
            "objective": history[-1].objective if history else None,
        },
        "curve": [record._asdict() for record in history],
        **clock.cost(),
    }
    return document, weights


def _known_steps(
    counts: Counts, parents: Mapping[str, str] | None, flows: str | None
) -> tuple[int, int] | None:
    """Return the number of steps with known flows and the number of all steps; None without flows."""
    if flows is None:
        return None
    from factorwise.apps.collective.structure import Structure
    from factorwise.apps.collective.truth import true_flows

    steps = {series.name: Structure(series.times, parents).names for series in counts.series}
    arrays = true_flows(counts.places, steps, flows)
    return sum(int(array.any(axis=(1, 2)).sum()) for array in arrays), sum(map(len, steps.values()))


def _pass_callback(options: Options) -> Any:
    """Return a callback that reports each pass of EM on standard error; None if no report is wanted."""
    if not options.verbose and not show_progress(options):
        return None

    def report_pass(record: Any, _weights: object) -> None:
        text = (
            f"pass {record.number}: objective {record.objective:.6g}, weights changed by {record.change:.2g}"
        )
        click.echo(text if options.verbose else f"\r{text}   ", err=True, nl=options.verbose)

    return report_pass


def _lines(document: dict[str, Any]) -> Iterator[str]:
    data, training = document["data"], document["training"]
    sizes = f"{data['sequences']} sequences, {data['times']} times, {data['places']} places"
    ended = "converged" if training["settled"] else "not converged"
    learned = f"from known flows of {training['known_steps']} of {training['steps']} steps"
    if not training["known_flows"]:
        learned = f"{training['passes']} passes, objective {training['objective']:.6g}, {ended}"
    name = NOISE[training["noise"]]
    rows = [
        ("data", f"{sizes}; {data['counts']} counts, {data['missing']} missing"),
        ("noise", training["noise"] + (f", {name} {training[name]:g}" if name else "")),
        ("training", learned),
    ]
    yield from written_lines(document, rows)
    yield from weight_lines(document["weights"]["largest"])
