"""``factorwise align fit``: learn from two ontologies and known matches, and save the aligner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from factorwise.cli.align.data import ontology_options, read_pair
from factorwise.cli.files import check_different, check_target, files_among, shown, speaking_of
from factorwise.cli.learned_weights import TOP, curve, curve_lines, weight_lines, weights_entry
from factorwise.cli.numbers import Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit
from factorwise.cli.progress import (
    Clock,
    show_progress,
    tell_compiling,
    written_lines,
)
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.samplerank_options import check_complete, learning_options, watch


@verb(example="factorwise align fit mouse.owl human.owl --reference known.tsv --partial --model anatomy.fw")
@click.argument("left", metavar="[A]", required=False)
@click.argument("right", metavar="[B]", required=False)
@click.option("--reference", metavar="FILE", help="Matches that are known: lines with tabs, SSSOM or RDF.")
@click.option(
    "--pair",
    nargs=3,
    multiple=True,
    metavar="A B FILE",
    help="Two more ontologies and their known matches; can be given often.",
)
@path_option("--model", required=True, metavar="MODEL.fw", help="Where to save the aligner.")
@click.option(
    "--complete/--partial",
    default=True,
    help="The reference has all matches, or a part of them: concepts it does not name may then match too.",
)
@click.option("--one-to-one/--many-to-many", default=True, help="How many matches a concept may have.")
@learning_options(temperature=1.0, metric="pairwise", steps=100, per="concept")
@click.option(
    "--search-steps",
    type=Whole(min=1),
    default=200,
    help="Steps of annealing for each concept when matches are found many to many.",
)
@report_options
@ontology_options
def command(options: Options, **given: Any) -> None:
    """Learn which concepts of the ontologies A and B are the same.

    A and B are JSON lines (a concept a line: 'id', 'label', 'synonyms', 'parents', 'instances' ...), OBO,
    OWL, RDF Schema or SKOS. A line of the reference has the ids of a concept of A and one of B and '=',
    separated by tabs. With --pair, one model is learned from several pairs of ontologies. SampleRank learns
    the weights while it walks from alignment to alignment, beginning with those that come with the package.
    Prints the learning curve and the largest weights, with --verbose each pass as it ends and all weights.
    The model is written whole or not at all.
    """
    report, no_values = given.pop("report"), given.pop("no_values")
    alone = (given.pop("left"), given.pop("right"), given.pop("reference"))
    if any(alone) and not all(alone):
        raise click.UsageError("A, B and --reference belong together: give all three, or --pair A B FILE.")
    pairs = [*([alone] if all(alone) else []), *given.pop("pair")]
    if not pairs:
        raise click.UsageError(
            "there is nothing to learn from: give A B --reference FILE, or --pair A B FILE."
        )
    inputs = tuple(file for pair in pairs for file in pair)
    check_target("--model", given["model"], *inputs)
    check_different({"--model": given["model"], "--report": report})
    check_report(report, no_values, *inputs)
    document, weights = fit(options, pairs, **given)
    document["report"] = None
    if report is not None:
        from factorwise.cli.samplerank_reports import write_walk_fit_report

        document["report"] = write_walk_fit_report(Page(report, options, inputs), document, weights, "align")
    emit(document, _lines(document), as_json=options.json)


def fit(
    options: Options,
    pairs: Sequence[tuple[str, str, str]],
    model: Path,
    syntax: str | None,
    language: str | None,
    individuals: bool,
    **settings: Any,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Learn, save, and return the summary and all weights; ``settings`` are those of `OntologyAligner`."""
    clock = Clock()
    with clock.part("reading"):
        written = {"syntax": syntax, "language": language, "individuals": individuals}
        read = [read_pair(options, pair, one_to_one=settings["one_to_one"], **written) for pair in pairs]
    tell_compiling(options)
    with clock.part("loading"):  # scikit-learn takes its time: help, and mistakes in files, do not wait
        from factorwise.apps.alignment.estimator import OntologyAligner

    aligner = OntologyAligner(**settings, random_state=options.seed, verbose=show_progress(options))
    with clock.part("training"), speaking_of(*(shown(reference) for *_, reference in pairs)):
        aligner.fit_pairs(read, callback=watch(options, settings["metric"]))
        check_complete(aligner.history_, settings["passes"])
    with clock.part("writing"):
        aligner.save(model, data=files_among(dict.fromkeys(file for pair in pairs for file in pair)))
    document = {
        "model": {"file": model.name, "bytes": model.stat().st_size},
        "data": {
            "concepts": [sum(len(pair[side]) for pair in read) for side in (0, 1)],
            "matches": sum(len(known) for *_, known in read),
            "pairs": len(read),
        },
        "weights": weights_entry(aligner.weights_by_name(), None if options.verbose else TOP),
        "training": settings,
        "curve": curve(aligner.history_),
        "reliability": aligner.settings_["reliability"],
        **clock.cost(),
    }
    return document, aligner.weights_by_name()


def _lines(document: dict[str, Any]) -> Iterator[str]:
    data, weights, training = document["data"], document["weights"], document["training"]
    kind = "one to one" if training["one_to_one"] else "many to many"
    walks = f"{training['passes']} passes of {training['steps']} steps for each concept"
    rows = [
        (
            "data",
            f"{data['concepts'][0]} and {data['concepts'][1]} concepts, {data['matches']} known matches"
            + (f", {data['pairs']} pairs of ontologies" if data["pairs"] > 1 else ""),
        ),
        ("matches", f"{kind}, reference {'complete' if training['complete'] else 'partial'}"),
        ("weights", f"{weights['all']}, {weights['active']} active"),
        ("training", f"{training['update']}, {training['accept']}, {training['metric']}, {walks}"),
    ]
    yield from written_lines(document, rows)
    yield from curve_lines(document["curve"], training["metric"])
    yield from weight_lines(weights["largest"])
