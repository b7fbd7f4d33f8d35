"""``factorwise resolve apply``: find the entities of records."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.results.trust import describe_calibration
from factorwise.cli.files import (
    RESOLUTION,
    check_kind,
    speaking_of,
    spreadsheet_option,
    write_tables,
    written_bytes,
)
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice, size_text, tell_on_the_way
from factorwise.cli.progress import Clock, tell_compiling, written_lines
from factorwise.cli.report_sections import Page, report_options
from factorwise.cli.resolve.blocking_report import blocking_report
from factorwise.cli.resolve.blocks import report_counts
from factorwise.cli.resolve.data import (
    Records,
    given_fields,
    given_pairs,
    one_per_source_option,
    read_records,
    record_options,
    rule_option,
    score_options,
)
from factorwise.cli.resolve.onto import KnownRecords, all_content, placed, placements, read_known
from factorwise.cli.resolve.progress import WalkBar, draw_clusterings, telling
from factorwise.cli.resolve.request import ResolveRequest
from factorwise.cli.resolve.shards import is_kept, made_where, opened_executor, ray_option, write_parts
from factorwise.cli.resolve.unlabelled import (
    about_option,
    unlabelled_entry,
    unlabelled_rows,
    warn_of_thin_evidence,
)

if TYPE_CHECKING:  # numba and Arrow take their time to load
    import pyarrow as pa

    from factorwise.apps.resolution.constraints import Constraints
    from factorwise.apps.resolution.estimator import EntityResolver
    from factorwise.apps.resolution.linking import Linked
    from factorwise.apps.resolution.memory import MemoryPlan
    from factorwise.apps.resolution.results.answers import Resolution
    from factorwise.apps.resolution.schema.fields import FieldSpec
    from factorwise.inference.mcmc.shards.search import SearchProgress

#: Why the walk ended, for people; after the first two there is nothing to go on from.
WHY = {
    "settled": "nothing was gained any more",
    "rounds": "there were no more rounds",
    "time": "the time was up",
    "interrupted": "it was interrupted",
}
ENDED = ("settled", "rounds")
INTERRUPTED = 130  # the exit code
SHARE_OF_RECORDS = 8  # records that take more than this part of the memory lie in a file from the beginning


@verb(example="factorwise resolve apply people.csv --id id --model people.fw -o entities.csv")
@click.argument("files", nargs=-1, required=True, metavar="RECORDS...")
@record_options
@score_options
@path_option("--model", metavar="MODEL.fw", help="What was learned.  [default: without labels]")
@path_option("-o", "--output", metavar="OUT", help="Entities of the records.  [required]")
@path_option("--fields", metavar="FIELDS.toml", help="Kinds of columns, without a model.")
@about_option
@click.option(
    "--parts",
    metavar="FOLDER",
    help="Write OUT as a folder of Parquet files, too: a path, or an address such as s3://bucket/entities.",
)
@click.option("--must-link", metavar="FILE", help="Pairs of ids that are of one entity: two columns.")
@click.option("--cannot-link", metavar="FILE", help="Pairs of ids that are not of one entity.")
@one_per_source_option
@path_option("--entities", metavar="FILE", help="Write entities: name, records, coherence.")
@path_option("--canonical", metavar="FILE", help="Write one record for each entity.")
@click.option("--posterior", is_flag=True, help="Draw other clusterings, to find what is in doubt.")
@path_option("--pairs", metavar="FILE", help="Write pairs of 1 to 99 %; draws other clusterings.")
@path_option(
    "--second-best",
    metavar="FILE",
    help="Write two likeliest clusterings of groups in doubt, with shares; draws other clusterings.",
)
@spreadsheet_option
@click.option("--onto", metavar="FILE", help="Entities found earlier (id, entity): place RECORDS into them.")
@click.option("--old", metavar="FILE", help="The records that --onto speaks of.")
@click.option(
    "--rounds",
    type=Whole(min=1),
    help="Rounds of the walk in which it cools down.  [default: 12, or 6 from half a million records on]",
)
@click.option(
    "--seconds",
    type=Real(min=0, min_open=True),
    help="Begin no round of the walk after so long.  [default: no limit]",
)
@rule_option
@report_options
@ray_option
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory that it may take, such as 4GB; what does not fit goes to files in TMPDIR."
    "  [default: half of what is free]",
)
@click.option(
    "--dry-run", is_flag=True, help="Count blocks and pairs, and estimate time and memory; compare nothing."
)
@click.option("--checkpoint", metavar="FOLDER", help="Keep there what it needs to go on.")
@click.option(
    "--checkpoint-seconds",
    type=Real(min=0),
    help="How long to wait at least from one checkpoint to the next.  [default: 60]",
)
def command(options: Options, **given: Any) -> None:
    """Find which of the records in RECORDS are of the same entity.

    RECORDS is a CSV, Parquet or JSON lines file, a folder or a quoted pattern of Parquet files, a table in a
    database (FILE.duckdb::TABLE, FILE.sqlite::TABLE, postgres://USER@HOST/BASE::TABLE), an Excel file, or the
    address of Parquet in an object store; of several the records are linked with one another. Writes a row
    for each record with the columns id, entity (the smallest id of its records) and confidence. Without
    --model, weights are found from what the records look like. Before the walk it prints the blocking rules
    with sizes of blocks and numbers of pairs. Ctrl-C ends the walk with what was found so far. All files are
    written by their ending (.csv, .parquet, .jsonl, .sqlite::TABLE, .duckdb::TABLE), whole or not at all. A
    --report of up to a million records draws other clusterings, too. With --checkpoint, a run that was killed
    goes on where it was when it is started again. With --onto, RECORDS are new ones that are placed into
    known entities; the rows of the old ones come first.
    """
    names = {name: given.pop(name) for name in ResolveRequest.__dataclass_fields__ if name != "reading"}
    if names["output"] is None and not names["dry_run"]:
        raise click.UsageError("Missing option '-o' / '--output'.")
    request = ResolveRequest(**names, reading=given)
    request.check()
    if request.dry_run:
        report_counts(options, request.files, request.reading, request.fields, request.model, request.rule)
        return
    document = made_where(request.ray, request.inputs(), options, resolve, request)
    emit(document, _lines(document), as_json=options.json)
    if document["interrupted"]:
        raise click.exceptions.Exit(INTERRUPTED)


def resolve(options: Options, request: ResolveRequest) -> dict[str, Any]:
    """Read, learn if there is no model, find entities, write, and return the summary."""
    clock = Clock()
    if request.model is not None:
        check_kind(request.model, RESOLUTION)
    with clock.part("reading"):
        from factorwise.apps.resolution.memory import allowed_memory

        most = allowed_memory(request.memory) // SHARE_OF_RECORDS
        records = read_records(request.files, **request.reading, most=most)
        fields = given_fields(request.fields, records)
        known = _known(options, request, records)
        everyone: Records | KnownRecords = known or records
        pairs = _constrained(options, request, everyone.ids)
    tell_compiling(options)
    with clock.part("loading"):  # numba takes its time: help, and mistakes in files, do not wait
        from factorwise.apps.resolution.constraints import Constraints

    limits = Constraints(**pairs, sources=everyone.sources, one_per_source=request.one_per_source)
    with speaking_of(request.must_link, request.cannot_link):
        limits.check(everyone.ids)
    resolver = _resolver(options, request, records, fields, known, limits, clock)
    rounds: list[SearchProgress] = []
    blocking: dict[str, Any] = {}
    if known is None:
        given = _handed_over(records.table)
        if request.canonical is None and request.report is None:
            records = everyone = replace(records, table=records.table.schema.empty_table())
        found = _walk(options, request, records, given, resolver, limits, clock, rounds, blocking)
    else:
        with clock.part("walk"):
            found = placed(records, known, resolver, limits)
    reason = found.found.reason
    interrupted = reason == "interrupted"
    if interrupted:
        _tell_interrupted(options, request, found, rounds)
    if request.draws(len(found.ids), ended=reason in ENDED):
        with clock.part("draws"):
            found, ended = draw_clusterings(options, resolver, found)
            interrupted |= not ended

    @cache
    def content() -> pa.Table:
        return records.content if known is None else all_content(records, known, resolver)

    with clock.part("writing"):
        written = _write(request, content, found)
        if request.parts is not None:
            write_parts(request.parts, found.table(), request.ray, options.threads)
            written.append(request.parts)
    _clear_checkpoint(request, reason)
    assert request.output is not None
    document = {
        "output": request.output.name,
        "bytes": written_bytes(request.output),
        "records": len(found.ids),
        "entities": found.n_entities,
        "model": None if request.model is None else request.model.name,
        "temperature": resolver.knowledge_.temperature,
        "calibration": describe_calibration(resolver.knowledge_.training),
        "without_labels": unlabelled_entry(resolver.knowledge_),
        "placed": None if known is None else placements(known, found),
        "blocking": blocking,
        "search": {"rounds": found.found.rounds, "stopped": reason, "score": _finite(found.found.score)},
        "interrupted": interrupted,
        **_drawn(found),
        "also_written": written,
        **clock.cost(),
    }
    document["report"] = None
    if request.report is not None:
        from factorwise.cli.resolve.report import write_apply_report

        page = Page(request.report, options, request.inputs())
        shown = page, document, content(), found, resolver.knowledge_, rounds
        document["report"] = write_apply_report(*shown, values=not request.no_values)
    return document


def _drawn(found: Resolution) -> dict[str, int | None]:
    """Return how many pairs are uncertain, and by how many draws; None where none were made."""
    drawn = found.posterior
    return {
        "uncertain_pairs": None if drawn is None else len(drawn.uncertain_pairs()),
        "draws": None if drawn is None else len(drawn.labels),
    }


def _clear_checkpoint(request: ResolveRequest, reason: str) -> None:
    """Remove the checkpoint of a walk that came to its end."""
    if request.checkpoint is not None and reason in ENDED:
        from factorwise.apps.resolution.resolving import Keeping

        Keeping(request.checkpoint).clear()


def _known(options: Options, request: ResolveRequest, records: Records) -> KnownRecords | None:
    """Read the old records and their entities; None if all records are new."""
    if request.onto is None or request.old is None:
        return None
    known = read_known(request.onto, request.old, records, request.reading)
    if known.entity.null_count:
        unknown = f"{known.entity.null_count:,} of {len(known.entity):,} old records"
        notice(options, f"{unknown} have no entity in {request.onto}: each is taken for one of its own.")
    return known


def _resolver(
    options: Options,
    request: ResolveRequest,
    records: Records,
    fields: list[FieldSpec] | None,
    known: KnownRecords | None,
    limits: Constraints,
    clock: Clock,
) -> EntityResolver:
    """Load the model, with the rules that were asked for instead of its own, or learn without labels."""
    from factorwise.apps.resolution.estimator import EntityResolver

    settings: dict[str, Any] = {
        "rounds": request.rounds,
        "seconds": request.seconds,
        "random_state": options.seed,
        "n_jobs": options.threads,
    }
    if request.model is not None:
        resolver = EntityResolver.load(request.model, **settings)
        _check_columns(options, records, resolver, known)
        if request.rule:
            from factorwise.apps.resolution.blocking.rule_text import read_rules

            rules = tuple(read_rules(request.rule, resolver.knowledge_.fields))
            resolver.knowledge_ = replace(resolver.knowledge_, rules=rules)
    else:
        notice(options, "no model was given: weights are found from the records themselves, without labels.")
        resolver = EntityResolver(fields=fields, rules=request.rule or None, about=request.about, **settings)
        with clock.part("learning"), speaking_of(records.name):
            resolver.fit(
                records.table,
                leave_out=records.leave_out,
                constraints=limits,
                tell=telling(options),
            )
        warn_of_thin_evidence(options, resolver.knowledge_)
    return resolver


def _finite(score: float) -> float | None:
    """Return the score; None for one that is not finite, which JSON cannot hold."""
    return score if math.isfinite(score) else None


def _check_columns(
    options: Options, records: Records, resolver: EntityResolver, known: KnownRecords | None
) -> None:
    """Refuse records with other columns than the model was learned from; remark on further ones."""
    from factorwise.apps.resolution.schema.agreement import (
        check_present,
        describe_unread_values,
        extra_columns,
    )

    fields = resolver.knowledge_.fields
    tables = {records.name: records.table} | ({} if known is None else {known.name: known.table})
    for name, table in tables.items():
        with speaking_of(name):
            check_present(
                table, fields, records.leave_out
            )  # what they hold is looked at where they are resolved
        for text in describe_unread_values(table, fields):
            notice(options, f"{name}: {text}")
    further = extra_columns(records.table, fields, records.leave_out)
    if further:
        notice(options, f"the model does not know, and does not compare, the columns {', '.join(further)}.")


def _constrained(options: Options, request: ResolveRequest, ids: pa.Array) -> dict[str, NDArray[np.int64]]:
    """Read the pairs that must and must not be together, and remark on files without any."""
    rows = {}
    for name, path in {"must": request.must_link, "cannot": request.cannot_link}.items():
        rows[name] = given_pairs(path, ids, request.reading["encoding"])
        if path is not None and not len(rows[name]):
            notice(options, f"{path} has no pairs: --{name}-link changes nothing.")
    return rows


def _handed_over(table: pa.Table) -> pa.RecordBatchReader:
    """Return the rows of a table, of which nothing is kept once they are read: they may go to a file then."""
    import pyarrow as pa

    batches = table.to_batches()[::-1]
    return pa.RecordBatchReader.from_batches(table.schema, (batches.pop() for _ in range(len(batches))))


def _walk(
    options: Options,
    request: ResolveRequest,
    records: Records,
    given: pa.RecordBatchReader,
    resolver: EntityResolver,
    constraints: Constraints,
    clock: Clock,
    rounds: list[SearchProgress],
    blocking: dict[str, Any],
) -> Resolution:
    """Find the entities, telling of the candidates before the walk and of the walk while it lasts.

    ``given`` are the records to read. What is told of each round is also added to ``rounds``,
    and what is told of candidates to ``blocking``.
    """
    began = time.perf_counter()
    walking = began

    def tell_candidates(linked: Linked) -> None:
        nonlocal walking
        report = blocking_report(linked.candidates, linked.normal)
        blocking.update(report.entry)
        if not options.json and not options.quiet:
            tell_on_the_way(report.lines)
        clock.parts["candidates"] = time.perf_counter() - began
        walking = time.perf_counter()

    def tell_plan(plan: MemoryPlan) -> None:
        if plan.disk:
            notice(
                options,
                f"about {size_text(plan.needed)} do not fit into {size_text(plan.limit)} of memory: about"
                f" {size_text(plan.disk)} go to files in {tempfile.gettempdir()} while it runs.",
            )

    from factorwise.apps.resolution.resolving import default_budget

    planned = request.rounds or default_budget(len(records.ids))[0]
    telling(options)(f"finding and comparing candidates by {len(resolver.knowledge_.rules)} rules")
    with (
        opened_executor(request.ray, options.threads) as executor,
        speaking_of(records.name),
        WalkBar(options, planned, request.seconds) as bar,
    ):

        def watch(progress: SearchProgress) -> None:
            if not rounds and progress.round > 1:
                done = f"{progress.unit} {progress.round - 1}"
                notice(options, f"went on from the checkpoint, after {done}.")
            rounds.append(progress)
            bar(progress)

        found = resolver.resolve(
            given,
            id=request.reading["id_column"],
            constraints=constraints,
            checkpoint=request.checkpoint,
            checkpoint_seconds=60.0 if request.checkpoint_seconds is None else request.checkpoint_seconds,
            executor=executor,
            memory=request.memory,
            planned=tell_plan,
            linked=tell_candidates,
            watch=watch,
        )
    clock.parts["walk"] = time.perf_counter() - walking
    return found


def _tell_interrupted(
    options: Options, request: ResolveRequest, found: Resolution, rounds: list[SearchProgress]
) -> None:
    """Tell what becomes of a walk that was interrupted; one without a round is nothing to write."""
    if not found.found.rounds:
        raise KeyboardInterrupt
    again = ""
    if request.checkpoint is not None and is_kept(request.checkpoint):
        again = f" Started again, the same command goes on from the checkpoint in {request.checkpoint}."
    done = f"{found.found.rounds} rounds"
    if rounds and rounds[-1].unit == "group":
        done = f"{rounds[-1].round} of {rounds[-1].of} groups"
    notice(options, f"interrupted after {done}: what was found so far is written.{again}")


def _write(request: ResolveRequest, content: Callable[[], pa.Table], found: Resolution) -> list[str]:
    """Write all tables asked for and return the names of all but the first one.

    content
        Returns what all records say.
    """
    made: dict[str, Callable[[], pa.Table]] = {
        "--output": found.table,
        "--entities": found.entities,
        "--canonical": lambda: found.canonical(content()),
    }
    if found.posterior is not None:
        made |= {"--pairs": found.pairs, "--second-best": found.second_best}
    return write_tables(request.targets(), made, for_spreadsheets=request.for_spreadsheets)


def _lines(document: dict[str, Any]) -> Iterator[str]:
    search = document["search"]
    score = "" if search["score"] is None else f"; score {search['score']:,.1f}"
    rows = [
        ("data", f"{document['records']:,} records, {document['entities']:,} entities"),
        ("walk", f"{search['rounds']} rounds, until {WHY[search['stopped']]}{score}"),
    ]
    rows += unlabelled_rows(document["without_labels"])
    if document["placed"] is not None:
        new = document["placed"]
        text = f"{new['in_known_entities']:,} of {new['new_records']:,} in known entities"
        rows.append(("new", f"{text}; {new['old_records_moved']:,} old records moved"))
    if document["uncertain_pairs"] is not None:
        rows.append(("uncertain", f"{document['uncertain_pairs']:,} pairs, of a probability of 1 to 99 %"))
        rows.append(("draws", f"{document['draws']:,} other clusterings, independent of each other"))
        rows.append(("probabilities", document["calibration"]))
    if document["also_written"]:
        rows.append(("also", ", ".join(document["also_written"])))
    yield from written_lines(document, rows)
