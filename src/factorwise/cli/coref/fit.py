"""``factorwise coref fit``: learn from documents whose entities are known, and save the resolver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from factorwise.apps.coreference.documents import Discourse, Document, Scope
from factorwise.cli.coref.data import (
    check_truth,
    check_types,
    gathered,
    given_documents,
    notice_repeated,
    scope_option,
)
from factorwise.cli.coref.prediction import resolved
from factorwise.cli.coref.scores import score_lines, size_of
from factorwise.cli.files import STANDARD, check_different, check_target, files_among, shown
from factorwise.cli.learned_weights import TOP, curve, curve_lines, weight_lines, weights_entry
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit
from factorwise.cli.progress import (
    Clock,
    show_progress,
    tell_compiling,
    written_lines,
)
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.samplerank_options import Names, check_complete, learning_options, watch


@verb(example="factorwise coref fit train.jsonl --model coref.fw --held-out dev.jsonl")
@click.argument("train", metavar="TRAIN.jsonl")
@path_option("--model", required=True, metavar="MODEL.fw", help="Where to save the resolver.")
@click.option("--held-out", metavar="FILE.jsonl", help="Documents to score when all is learned.")
@scope_option
@click.option(
    "--types", type=Names(), metavar="PER,LOC", help="Take mentions of these types only.  [default: all]"
)
@click.option("--without-types", type=Names(), metavar="ACT", help="Leave mentions of these types out.")
@learning_options(temperature=0.1, metric="b-cubed", steps=4_000, per="document or topic", cap=0.003)
@click.option(
    "--restart/--no-restart", default=True, help="Begin each walk anew, or go on where the last pass ended."
)
@click.option(
    "--truth-starts",
    type=Real(0, 1),
    default=0.5,
    help="Share of the walks begun anew that begin at the truth, not with every mention alone.",
)
@click.option(
    "--search-steps",
    type=Whole(min=1),
    default=500,
    help="Steps of annealing for each mention when entities are found.",
)
@report_options
def command(options: Options, **given: Any) -> None:
    """Learn coreference from TRAIN.jsonl: one document a line, every mention with its 'entity'.

    A line is an object with 'tokens' and 'mentions' (each with 'start', 'end' and 'entity') and, where
    known, 'id', 'sentences', 'topic' and 'full_until'. Clusters of mentions are scored by features of their
    pairs; SampleRank learns the weights while it walks from clustering to clustering. Beside it a ranker
    learns which earlier mention each one refers back to. '-' reads standard input. Prints the learning curve
    and the largest weights, with --verbose each pass as it ends and all weights. The model is written whole
    or not at all.
    """
    report, no_values = given.pop("report"), given.pop("no_values")
    request = CorefRequest(**given)
    request.check()
    check_different({"--model": request.model, "--report": report})
    check_report(report, no_values, request.train, request.held_out)
    document, weights = fit(options, request)
    document["report"] = None
    if report is not None:
        from factorwise.cli.samplerank_reports import write_walk_fit_report

        page = Page(report, options, (request.train, request.held_out))
        document["report"] = write_walk_fit_report(page, document, weights, "coref")
    emit(document, _lines(document), as_json=options.json)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorefRequest:
    """What the user asked for; the fields are the options of the verb."""

    train: str
    model: Path
    held_out: str | None
    scope: Scope
    types: tuple[str, ...] | None
    without_types: tuple[str, ...] | None
    update: str
    cap: float
    accept: Any
    temperature: float
    metric: Any
    passes: int
    steps: int
    restart: bool
    truth_starts: float
    search_steps: int

    def check(self) -> None:
        """Refuse options that do not go together, and a model that could not be written."""
        if self.train == STANDARD == self.held_out:
            raise click.UsageError("only one of TRAIN.jsonl and --held-out can be standard input.")
        check_target("--model", self.model, self.train, self.held_out)

    def gathered(self, documents: list[Document], path: str) -> list[Discourse]:
        """Return what is clustered together, all of it with entities."""
        without = self.without_types or ()
        return gathered(documents, shown(path), scope=self.scope, types=self.types, without_types=without)


def fit(options: Options, request: CorefRequest) -> tuple[dict[str, Any], dict[str, float]]:
    """Learn, save, score, and return the summary and all weights."""
    clock = Clock()
    with clock.part("reading"):
        documents = given_documents(request.train)
        notice_repeated(options, documents, shown(request.train))
        check_types(documents, shown(request.train), "--types", request.types or ())
        check_types(documents, shown(request.train), "--without-types", request.without_types or ())
        together = request.gathered(documents, request.train)
        entities = check_truth(together, shown(request.train))
        apart = _held_out_discourses(request)
    tell_compiling(options)
    with clock.part("loading"):  # scikit-learn takes its time: help, and mistakes in files, do not wait
        from factorwise.apps.coreference.estimator import CoreferenceResolver
        from factorwise.metrics.coreference import score_documents

    resolver = CoreferenceResolver(
        scope=request.scope,
        types=request.types,
        without_types=request.without_types or (),
        update=request.update,
        cap=request.cap,
        accept=request.accept,
        temperature=request.temperature,
        metric=request.metric,
        passes=request.passes,
        steps=request.steps,
        restart=request.restart,
        truth_starts=request.truth_starts,
        search_steps=request.search_steps,
        random_state=options.seed,
        n_jobs=options.threads,
        verbose=show_progress(options),
    )
    with clock.part("training"):
        resolver.fit(documents, callback=watch(options, request.metric))
        check_complete(resolver.history_, request.passes)
    with clock.part("writing"):
        resolver.save(request.model, data=files_among((request.train, request.held_out)))
    scores = None
    if apart:
        with clock.part("scoring"):
            found = resolved(resolver, apart, threads=options.threads, shown=show_progress(options))
            scores = score_documents([discourse.truth() for discourse in apart], found).as_dict()
    mentions = sum(len(discourse.places) for discourse in together)
    all_mentions = sum(len(document.mentions) for document in documents)
    document = {
        "model": {"file": request.model.name, "bytes": request.model.stat().st_size},
        "data": {
            "documents": len(documents),
            "mentions": mentions,
            "entities": entities,
            "left_out": all_mentions - mentions,
        },
        "weights": weights_entry(resolver.weights_by_name(), None if options.verbose else TOP),
        "training": {
            name: value
            for name, value in asdict(request).items()
            if name not in ("train", "model", "held_out")
        },
        "curve": curve(resolver.history_),
        "held_out": scores,
        **clock.cost(),
    }
    return document, resolver.weights_by_name()


def _held_out_discourses(request: CorefRequest) -> list[Discourse]:
    """Read the documents to score on; none if none were given."""
    if request.held_out is None:
        return []
    apart = request.gathered(given_documents(request.held_out), request.held_out)
    check_truth(apart, shown(request.held_out))
    return apart


def _lines(document: dict[str, Any]) -> Iterator[str]:
    data, weights, training = document["data"], document["weights"], document["training"]
    mentions = f"{data['mentions']} mentions"
    if data["left_out"]:
        mentions += f" ({data['left_out']} more left out)"
    walks = f"{training['passes']} passes of {training['steps']} steps for each {training['scope']}"
    rows = [
        ("data", f"{data['documents']} documents, {mentions}, {data['entities']} entities"),
        ("weights", f"{weights['all']}, {weights['active']} active"),
        ("training", f"{training['update']}, {training['accept']}, {training['metric']}, {walks}"),
    ]
    yield from written_lines(document, rows)
    yield from curve_lines(document["curve"], training["metric"])
    yield from weight_lines(weights["largest"])
    if document["held_out"]:
        yield f"held out  ({size_of(document['held_out'], training['scope'] + 's')})"
        yield from score_lines(document["held_out"])
