"""``factorwise resolve fit``: learn from records whose entities are known, and save what was learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.cli.files import files_among, speaking_of, writing
from factorwise.cli.learned_weights import TOP, weight_lines
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import Clock, tell_compiling, written_lines
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.resolve.blocking_report import BlockingReport, blocking_report
from factorwise.cli.resolve.data import (
    Records,
    check_outputs,
    check_sources,
    given_fields,
    given_table,
    one_per_source_option,
    read_records,
    record_options,
    rule_option,
    score_options,
)
from factorwise.cli.resolve.model import (
    field_entries,
    field_lines,
    filter_entry,
    filter_text,
    weight_entries,
)
from factorwise.cli.resolve.progress import telling
from factorwise.cli.resolve.unlabelled import (
    about_option,
    unlabelled_entry,
    unlabelled_rows,
    warn_of_thin_evidence,
)
from factorwise.errors import DataFileError

if TYPE_CHECKING:  # numba and Arrow take their time to load
    import pyarrow as pa

    from factorwise.apps.resolution.schema.fields import FieldSpec

LOST = 0.01  # share of the links in entities that candidates may lose before it is reported


@verb(example="factorwise resolve fit labelled.csv --id id --entity person --model people.fw")
@click.argument("files", nargs=-1, required=True, metavar="LABELLED...")
@record_options
@score_options
@click.option(
    "--entity",
    metavar="COLUMN",
    help="Column with the true entity of each record, empty where it is not known.  [default: learn without]",
)
@click.option(
    "--pairs", metavar="FILE", help="Labelled pairs: a table with the columns id, other and same (1 or 0)."
)
@path_option("--model", required=True, metavar="MODEL.fw", help="Where to save what was learned.")
@path_option(
    "--fields", metavar="FIELDS.toml", help="Kinds of columns; those it does not speak of are inferred."
)
@path_option(
    "--write-fields",
    metavar="FILE.toml",
    help="Write the kinds of all columns, to be changed and given with --fields.",
)
@about_option
@one_per_source_option
@click.option(
    "--no-context", is_flag=True, help="Leave out what the clusters of two records say of the pair."
)
@rule_option
@report_options
def command(options: Options, **given: Any) -> None:
    """Learn from the records in LABELLED which records are of the same entity, and save a model.

    LABELLED is a CSV, Parquet or JSON lines file, or FILE.duckdb::TABLE; several are put under one another.
    What the columns are is inferred (see --write-fields). Blocking rules are chosen that find the pairs of
    one entity; weights are learned from labelled pairs as far as entities that are held out are better for
    it; these also say how good the weights are and how sure to be. Labelled pairs of --pairs are learned from
    too. Without --entity, weights are found from what the records look like, and from the pairs if there are
    any. The model is written whole or not at all.
    """
    names = {name: given.pop(name) for name in Request.__dataclass_fields__ if name != "reading"}
    request = Request(**names, reading=given)
    request.check()
    document, blocking = fit(options, request)
    emit(document, _lines(document, blocking), as_json=options.json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for; the fields are the options of the verb, ``reading`` those of all its kind."""

    files: tuple[str, ...]
    entity: str | None
    pairs: str | None
    model: Path
    fields: Path | None
    write_fields: Path | None
    about: tuple[str, ...]
    one_per_source: bool
    no_context: bool
    report: Path | None
    no_values: bool
    rule: tuple[str, ...]
    reading: Mapping[str, Any]

    @property
    def data(self) -> list[str | Path | None]:
        """The files to learn from, as far as they were given."""
        return [*self.files, self.pairs, self.reading["scores"]]

    def check(self) -> None:
        """Refuse options that do not go together, and files that could not be written."""
        check_report(self.report, self.no_values)
        check_sources(self.one_per_source, self.reading["source"], self.files)
        outputs = {"--model": self.model, "--write-fields": self.write_fields, "--report": self.report}
        check_outputs(outputs, self.fields, *self.data)


def fit(options: Options, request: Request) -> tuple[dict[str, Any], list[str]]:
    """Learn, save, and return the summary, and what is told of blocking."""
    clock = Clock()
    with clock.part("reading"):
        records = _read(request)
        given = given_fields(request.fields, records)
        judged = None if request.pairs is None else _judged(request.pairs, records)
    tell_compiling(options)
    with clock.part("loading"):  # numba takes its time: help, and mistakes in files, do not wait
        from factorwise.apps.resolution.constraints import Constraints
        from factorwise.apps.resolution.estimator import EntityResolver

    resolver = EntityResolver(
        fields=given,
        rules=request.rule or None,
        about=request.about,
        context=not request.no_context,
        random_state=options.seed,
        n_jobs=options.threads,
    )
    reports: list[BlockingReport] = []
    with clock.part("learning"), speaking_of(records.name):
        resolver.fit(
            records.table,
            request.entity,
            pairs=judged,
            id=request.reading["id_column"],
            leave_out=records.leave_out,
            constraints=Constraints(sources=records.sources, one_per_source=request.one_per_source),
            tell=telling(options),
            blocked=lambda *found: reports.append(blocking_report(*found)),
        )
    knowledge = resolver.knowledge_
    with clock.part("writing"):
        if request.write_fields is not None:
            _write_fields(request.write_fields, knowledge.fields)
        knowledge.save(request.model, options.seed, files_among(request.data))
    document: dict[str, Any] = {
        "model": {"file": request.model.name, "bytes": request.model.stat().st_size},
        "data": {
            **_data(records, _labels(records, request.entity)),
            "pairs": 0 if judged is None else judged.num_rows,
        },
        "fields": field_entries(knowledge.fields),
        "blocking": reports[0].entry,
        "training": dict(knowledge.training),
        "temperature": knowledge.temperature,
        "filter": filter_entry(knowledge),
        "without_labels": unlabelled_entry(knowledge),
        "weights": weight_entries(knowledge, None if options.verbose else TOP),
        **clock.cost(),
    }
    document["report"] = None
    if request.report is not None:
        from factorwise.cli.resolve.report import write_fit_report

        page = Page(request.report, options, (*request.data, request.fields))
        document["report"] = write_fit_report(page, document, knowledge)
    for warning in knowledge.training.get("warnings", ()):
        notice(options, warning)
    if request.entity is None:
        how = "without labels" if judged is None else "from pairs and from what records look like"
        notice(options, f"no column of entities was given: the weights were found {how}.")
        warn_of_thin_evidence(options, knowledge)
    return document, reports[0].lines


def _read(request: Request) -> Records:
    """Read the records, of which there must be several."""
    hidden = [] if request.entity is None else [request.entity]
    records = read_records(request.files, hidden=hidden, **request.reading)
    if records.table.num_rows == 1:
        raise DataFileError(
            f"{records.name}: has one record, which says nothing of how records of one entity differ."
            " Give more; one record is resolved by `factorwise resolve apply` without a model."
        )
    return records


def _judged(pairs: str, records: Records) -> pa.Table:
    """Read labelled pairs; refuse those that are of no records, or say nothing."""
    from factorwise.apps.resolution.labelled import labelled_pairs

    table = given_table(pairs, ["id", "other", "same"])
    with speaking_of(pairs):
        labelled_pairs(table, records.ids)
    return table


def _write_fields(path: Path, fields: tuple[FieldSpec, ...]) -> None:
    from factorwise.apps.resolution.schema.fields import fields_to_toml

    with writing(str(path)) as stream:
        stream.write(fields_to_toml(fields))


def _labels(records: Records, entity: str | None) -> NDArray[np.int32] | None:
    """Return the number of each record's entity, -1 where it is not known; None without such a column."""
    if entity is None:
        return None
    from factorwise.apps.resolution.training import entity_numbers

    return entity_numbers(records.table, entity)


def _data(records: Records, labels: NDArray[np.int32] | None) -> dict[str, Any]:
    known = None if labels is None else labels[labels >= 0]
    return {
        "records": records.table.num_rows,
        "labelled": 0 if known is None else len(known),
        "entities": None if known is None else len(np.unique(known)),
    }


def _lines(document: dict[str, Any], blocking: list[str]) -> Iterator[str]:
    data, training, weights = document["data"], document["training"], document["weights"]
    text = f"{data['records']:,} records"
    if data["entities"] is not None:
        text += f", {data['labelled']:,} labelled, {data['entities']:,} entities"
    if data["pairs"]:
        text += f", {data['pairs']:,} labelled pairs"
    rows = [("data", text), ("weights", f"{weights['all']}, {weights['active']} active")]
    if "method" in training:
        rows.append(("learned by", training["method"]))
    if "b_cubed" in training:  # entities are known
        rows.append(("B-cubed F1", _quality(training)))
        rows += [("bottleneck", text) for text in bottleneck(document["blocking"], training)]
    rows += unlabelled_rows(document["without_labels"])
    if document["filter"] is not None:
        rows.append(("filter", filter_text(document["filter"])))
    rows.append(("temperature", f"{document['temperature']:.4g}"))
    rows.append(("probabilities", describe_calibration(training)))
    yield from written_lines(document, rows)
    yield from field_lines(document["fields"])
    yield from blocking
    yield from weight_lines(weights["largest"])


def _quality(training: Mapping[str, Any]) -> str:
    where = (
        f"on {training['held_out']:,} records of entities that were held out"
        if training.get("held_out")
        else "on what was learned from, as there are too few entities to hold some out"
    )
    return f"{training['b_cubed']:.4f} {where}"


def bottleneck(blocking: Mapping[str, Any], training: Mapping[str, Any]) -> Iterator[str]:
    """Say that candidates lose what recall is missing, where that is so."""
    lost = 1.0 - blocking["recall"]["connected"]
    if lost >= LOST and lost >= (1.0 - training["recall"]) / 2.0:
        yield (
            f"candidates: {lost:.1%} of the links in entities are between records that no blocking rule puts"
            " together. Give columns that they share, or rules of your own."
        )
