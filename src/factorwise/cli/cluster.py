"""``factorwise cluster``: find entities from pairs that any tool has scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factorwise.cli.files import (
    check_tables,
    reading,
    speaking_of,
    spreadsheet_option,
    write_tables,
    written_bytes,
)
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options, path_option, verb
from factorwise.cli.output import emit, notice
from factorwise.cli.progress import Clock, tell_compiling, written_lines
from factorwise.cli.report_sections import Page, check_report, report_options
from factorwise.cli.resolve.data import SCORE_KINDS, check_outputs, given_pairs, given_table
from factorwise.cli.resolve.progress import WalkBar, draw_clusterings, telling

if TYPE_CHECKING:  # numba and Arrow take long to load
    import pyarrow as pa

    from factorwise.apps.resolution.constraints import Constraints
    from factorwise.apps.resolution.results.answers import Resolution
    from factorwise.apps.resolution.scored_pairs.clusterer import PairClusterer
    from factorwise.apps.resolution.scored_pairs.splink_models import SplinkModel
    from factorwise.apps.resolution.scored_pairs.tables import ScoredPairs
    from factorwise.inference.mcmc.shards.search import SearchProgress

KIND_TEXTS = {
    "probability": "probabilities",
    "percent": "probabilities in percent",
    "bits": "match weights in bits",
    "log-odds": "natural logarithms of odds",
}
INTERRUPTED = 130  # the exit code


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """The user's request; the fields are the options of the verb."""

    file: str
    output: Path
    left: str | None
    right: str | None
    score: str | None
    score_kind: str | None
    records: str | None
    id_column: str | None
    source: str | None
    splink_model: str | None
    labels: str | None
    must_link: str | None
    cannot_link: str | None
    one_per_source: bool
    offset: float | None
    unlinked: float | None
    entities: Path | None
    pairs: Path | None
    second_best: Path | None
    rounds: int | None
    seconds: float | None
    for_spreadsheets: bool
    report: Path | None
    no_values: bool
    encoding: str | None

    def targets(self) -> dict[str, Path | None]:
        """Return the tables to write; the one that marks completion is last."""
        return {
            "--entities": self.entities,
            "--pairs": self.pairs,
            "--second-best": self.second_best,
            "--output": self.output,
        }

    def inputs(self) -> list[str | Path | None]:
        """Return all input files that were given."""
        return [
            self.file,
            self.records,
            self.splink_model,
            self.labels,
            self.must_link,
            self.cannot_link,
        ]

    def check(self) -> None:
        """Refuse options that contradict each other, and files that could not be written."""
        check_report(self.report, self.no_values)
        check_outputs({**self.targets(), "--report": self.report}, *self.inputs())
        check_tables(self.targets())
        if (self.records is None) != (self.id_column is None):
            raise click.UsageError("--records and --id belong together: give both, or neither.")
        if self.source is not None and self.records is None:
            raise click.UsageError("--source is a column of the records: give --records FILE and --id, too.")


@verb(example="factorwise cluster pairs.parquet -o entities.csv --pairs uncertain.csv")
@click.argument("file", metavar="PAIRS")
@path_option("-o", "--output", required=True, metavar="OUT", help="Entities of the records.")
@click.option("--left", metavar="COLUMN", help="Column with the first id.  [default: recognised]")
@click.option("--right", metavar="COLUMN", help="Column with the second id.  [default: recognised]")
@click.option("--score", metavar="COLUMN", help="Column with the score.  [default: recognised]")
@click.option(
    "--score-kind",
    type=click.Choice(SCORE_KINDS),
    help="What a score is: a probability, one in percent, a match weight in bits (as splink's), or the"
    " natural logarithm of the odds.  [default: recognised]",
)
@click.option("--records", metavar="FILE", help="All records, so that those in no pair are written too.")
@click.option("--id", "id_column", metavar="COLUMN", help="Column of the records with the ids.")
@click.option("--source", metavar="COLUMN", help="Column of the records that says where each is from.")
@click.option(
    "--splink-model",
    metavar="FILE.json",
    help="The model that splink saved: names of columns, the expected number of matches, and weights of"
    " pairs that have comparison levels (gamma_ columns) but no score.",
)
@click.option(
    "--labels",
    metavar="FILE",
    help="Known entities (id, entity) or judged pairs (id, other, same), from which to learn the constants.",
)
@click.option("--must-link", metavar="FILE", help="Pairs of ids of one entity: two columns.")
@click.option("--cannot-link", metavar="FILE", help="Pairs of ids of different entities.")
@click.option("--one-per-source", is_flag=True, help="No source has two records of one entity.")
@click.option("--offset", type=Real(), help="Added to the log odds of every pair.  [default: estimated]")
@click.option("--unlinked", type=Real(max=0), help="Weight of a pair without a score.  [default: estimated]")
@path_option("--entities", metavar="FILE", help="Write entities: name, records, coherence.")
@path_option("--pairs", metavar="FILE", help="Write uncertain pairs; draws other clusterings.")
@path_option(
    "--second-best",
    metavar="FILE",
    help="Write the two likeliest clusterings of uncertain groups; draws other clusterings.",
)
@spreadsheet_option
@click.option(
    "--rounds", type=Whole(min=1), help="Rounds of the search, in which it cools down.  [default: 6]"
)
@click.option(
    "--seconds",
    type=Real(min=0, min_open=True),
    help="Start no round of the search after this time.  [default: no limit]",
)
@report_options
@click.option("--encoding", metavar="NAME", help="Encoding of CSV files that are not UTF-8, such as cp1252.")
def command(options: Options, **given: Any) -> None:
    """Find the entities of records from PAIRS that splink or another tool has scored.

    PAIRS is a CSV, Parquet or JSON lines file, or FILE.duckdb::TABLE, with two ids and a score in every row.
    splink's tables of predictions are recognised by their columns. Writes a row for each record with the
    columns id, entity (the smallest id of its records) and confidence, by the same walk as `resolve apply`:
    no threshold is needed, and one false pair seldom chains two entities. The offset of the scores and the
    weight of pairs without a score are learned from --labels, or estimated from the pairs; both are printed.
    """
    request = ClusterRequest(**given)
    request.check()
    document = cluster(options, request)
    emit(document, _lines(document), as_json=options.json)
    if document["interrupted"]:
        raise click.exceptions.Exit(INTERRUPTED)


def cluster(options: Options, request: ClusterRequest) -> dict[str, Any]:
    """Read, find the constants and the entities, write, and return the summary."""
    clock = Clock()
    with clock.part("reading"):
        model = None if request.splink_model is None else _read_model(request.splink_model)
        scored = _read_pairs(request, model)
        must, cannot = (
            given_pairs(path, scored.ids, request.encoding)
            for path in (request.must_link, request.cannot_link)
        )
        labels = None if request.labels is None else given_table(request.labels, encoding=request.encoding)
    tell_compiling(options)
    with clock.part("loading"):
        from factorwise.apps.resolution.constraints import Constraints
        from factorwise.apps.resolution.scored_pairs.clusterer import PairClusterer

    limits = Constraints(
        must=must, cannot=cannot, sources=scored.sources, one_per_source=request.one_per_source
    )
    with speaking_of(request.must_link, request.cannot_link):
        limits.check(scored.ids)
    clusterer = PairClusterer(
        offset=request.offset,
        unlinked=request.unlinked,
        rounds=request.rounds,
        seconds=request.seconds,
        random_state=options.seed,
        n_jobs=options.threads,
    )
    with clock.part("constants"), speaking_of(request.labels):
        clusterer.fit(scored, labels, constraints=limits, on_message=telling(options))
    _report_pairs(options, request, scored)  # once nothing in the input can be wrong any more
    rounds: list[SearchProgress] = []
    with clock.part("walk"):
        resolution = _walk(options, request, clusterer, scored, limits, rounds)
    reason = resolution.found.reason
    interrupted = reason == "interrupted"
    if interrupted and not resolution.found.rounds:
        raise KeyboardInterrupt
    if request.pairs is not None or request.second_best is not None or request.report is not None:
        with clock.part("draws"):
            resolution, ended = draw_clusterings(options, clusterer, resolution)
            interrupted |= not ended
    with clock.part("writing"):
        written = _write(request, resolution)
    constants = clusterer.constants_
    document = {
        "output": request.output.name,
        "bytes": written_bytes(request.output),
        "records": len(resolution.ids),
        "scored_pairs": len(scored.first),
        "columns": list(scored.columns),
        "score_kind": scored.kind,
        "entities": resolution.n_entities,
        "constants": {**constants._asdict(), "merges": constants.merges.as_dict()},
        "pairs_together": _count_pairs(resolution),
        "expected_pairs": None if model is None else model.expected_pairs(len(resolution.ids)),
        "search": {"rounds": resolution.found.rounds, "stopped": reason, "score": resolution.found.score},
        "interrupted": interrupted,
        "uncertain_pairs": None
        if resolution.posterior is None
        else len(resolution.posterior.uncertain_pairs()),
        "also_written": written,
        **clock.cost(),
    }
    document["report"] = None
    if request.report is not None:
        from factorwise.cli.resolve.cluster_report import write_cluster_report

        page = Page(request.report, options, request.inputs())
        table = _content(request, scored)
        document["report"] = write_cluster_report(
            page, document, table, resolution, scored, constants, rounds, values=not request.no_values
        )
    return document


def _read_model(path: str) -> SplinkModel:
    from factorwise.apps.resolution.scored_pairs.splink_models import read_splink_model

    with reading(path):
        return read_splink_model(path)


def _read_pairs(request: ClusterRequest, model: SplinkModel | None) -> ScoredPairs:
    """Read the scored pairs; sources must be known if each may have only one record of an entity."""
    from factorwise.apps.resolution.scored_pairs.tables import read_scored_pairs
    from factorwise.io.tables.names import require_columns

    left, right = request.left, request.right
    if model is not None and left is None and right is None:
        left, right = f"{model.id_column}_l", f"{model.id_column}_r"
    sources = ("source_dataset_l", "source_dataset_r")
    if model is not None:
        sources = (f"{model.source_column}_l", f"{model.source_column}_r")
    table = given_table(request.file, encoding=request.encoding)
    if model is not None and request.score is None:
        with speaking_of(request.file):
            table = model.weigh(table)
    records = None if request.records is None else given_table(request.records, encoding=request.encoding)
    if records is not None:
        require_columns([str(request.id_column)], records.column_names, str(request.records))
    with speaking_of(request.file):
        scored = read_scored_pairs(
            table,
            left=left,
            right=right,
            score=request.score,
            kind=request.score_kind,
            records=records,
            id=request.id_column,
            source=request.source,
            pair_sources=sources,
        )
    if request.one_per_source and scored.sources is None:
        raise click.UsageError(
            "--one-per-source needs the sources of the records: give --records FILE --id COLUMN"
            " --source COLUMN, or pairs with splink's columns source_dataset_l and source_dataset_r."
        )
    return scored


def _report_pairs(options: Options, request: ClusterRequest, scored: ScoredPairs) -> None:
    """Report what was recognised in the pairs, and what was left out."""
    names = scored.columns
    if request.score_kind is None:
        kind = KIND_TEXTS[scored.kind]
        notice(options, f"{names.score} of {names.left} and {names.right} is read as {kind}.")
    if scored.n_repeated:
        notice(options, f"{scored.n_repeated:,} pairs occur more than once: the highest score counts.")
    if scored.n_selves:
        notice(options, f"{scored.n_selves:,} pairs of a record with itself are left out.")


def _walk(
    options: Options,
    request: ClusterRequest,
    clusterer: PairClusterer,
    scored: ScoredPairs,
    limits: Constraints,
    rounds: list[SearchProgress],
) -> Resolution:
    """Find the entities and show the rounds, which are also added to ``rounds``."""
    from factorwise.apps.resolution.scored_pairs.clusterer import ROUNDS

    with WalkBar(options, request.rounds or ROUNDS, request.seconds) as bar:

        def on_round(progress: SearchProgress) -> None:
            rounds.append(progress)
            bar(progress)

        return clusterer.cluster(scored, constraints=limits, on_round=on_round)


def _write(request: ClusterRequest, resolution: Resolution) -> list[str]:
    """Write all requested tables and return the names of all except the first."""
    tables: dict[str, Callable[[], pa.Table]] = {
        "--output": resolution.table,
        "--entities": resolution.entities,
    }
    if resolution.posterior is not None:
        tables |= {"--pairs": resolution.pairs, "--second-best": resolution.second_best}
    return write_tables(request.targets(), tables, for_spreadsheets=request.for_spreadsheets)


def _count_pairs(resolution: Resolution) -> int:
    """Count the pairs of records in one entity."""
    import numpy as np

    sizes = np.bincount(resolution.labels)
    return int((sizes * (sizes - 1) // 2).sum())


def _content(request: ClusterRequest, scored: ScoredPairs) -> pa.Table:
    """Return the records' values for the report, or nothing if they were not given."""
    import pyarrow as pa

    if request.records is None:
        return pa.table({"record": scored.ids}).select([])
    return given_table(request.records, encoding=request.encoding).drop_columns([str(request.id_column)])


def _lines(document: dict[str, Any]) -> Iterator[str]:
    constants, search = document["constants"], document["search"]
    offset = round(constants["offset"], 2) + 0.0  # not -0.00
    numbers = f"offset {offset:.2f}, unlinked pair weight {constants['unlinked']:.2f}"
    counted = f"{document['records']:,} records, {document['scored_pairs']:,} scored pairs"
    rows = [
        ("data", f"{counted}, {document['entities']:,} entities"),
        ("constants", f"{numbers}, temperature {constants['temperature']:.2f}: {constants['reason']}"),
        ("walk", f"{search['rounds']} rounds, score {search['score']:,.1f}"),
    ]
    if document["expected_pairs"] is not None:
        together = f"{document['pairs_together']:,} in one entity"
        rows.append(("pairs", f"{together}; the splink model expects {document['expected_pairs']:,.0f}"))
    if document["uncertain_pairs"] is not None:
        rows.append(("uncertain", f"{document['uncertain_pairs']:,} pairs, of a probability of 1 to 99 %"))
        rows.append(("probabilities", constants["calibration"]))
    if document["also_written"]:
        rows.append(("also", ", ".join(document["also_written"])))
    yield from written_lines(document, rows)
